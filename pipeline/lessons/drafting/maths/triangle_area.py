"""Area of a triangle by trigonometry."""

from __future__ import annotations

from math import radians, sin

from pipeline.lessons.drafting.maths.tex import Line, ask, example, frac, m, pick, told
from pipeline.lessons.drafting.parts import Draw, Example, Json, Mistake, Question, Topic, numeric, places, wrong
from pipeline.lessons.rounding import round_half_up


def topic() -> Topic:
    """Return the topic of outcome trig.area."""
    return Topic(
        name="the area of a triangle by trigonometry",
        can="calculate the area of a triangle from two sides and the angle between them",
        aim="Find an area without knowing the height",
        prior=("Area of a triangle from base and height, and the sine in a right-angled triangle",),
        facts=(
            r"The area of a triangle is \(A = \frac{1}{2}ab\sin C\), with C between the sides a and b.",
            "The height on side b is a times the sine of C.",
            "The angle must lie between the two sides that are used.",
        ),
        keywords=(("included angle", "the angle between two given sides"),),
        mistakes=(
            Mistake(
                "Any angle of the triangle may be used.",
                "The formula needs the angle between the two sides; another angle belongs to another height.",
            ),
            Mistake(
                "The half may be left out.",
                "Two sides and the sine give a parallelogram, and the triangle is half of it.",
            ),
        ),
        explain=_EXPLAIN,
        plain=_PLAIN,
        non_example=r"\(\frac{1}{2} \times 5 \times 8\) is the area only if 5 and 8 meet at a right angle.",
        example=_example,
        makers=(_which, _area, _field, _obtuse, _side, _parallelogram),
        starters=(_half_base, _sine),
    )


_EXPLAIN = told(r"""
    A triangular field has sides of 50 m and 70 m that meet at an angle of 40°. Its area would be half of base times
    height, but nobody has measured the height. Take the 70 m side as base and drop a line at right angles to it from
    the opposite corner. This line is the height. It stands in a right-angled triangle with the 50 m side as
    hypotenuse, so \(\sin 40° = \frac{h}{50}\) and \(h = 50 \sin 40°\). The area is \(\frac{1}{2} \times 70 \times 50
    \sin 40° = 1124.88\) m², to two decimal places. In letters: \(A = \frac{1}{2}ab\sin C\), where \(a\) and \(b\) are
    two sides and \(C\) is the angle between them. Each corner has a capital letter and the side opposite to it has
    the same small letter, so \(C\) lies between \(a\) and \(b\). The formula also works when the angle is obtuse. If
    the area is known and a side is wanted, put in what you know and solve the equation. Make sure that the calculator
    is set to degrees, and give square units.
""")
_PLAIN = told(r"""
    A field is a triangle. Two sides are 50 m and 70 m. The angle between them is 40°. Nobody knows the height. But
    you can find it. Take the 70 m side as base. Draw the height from the other corner. It is in a right-angled
    triangle. So \(\sin 40° = \frac{h}{50}\) and \(h = 50 \sin 40°\). The area is \(\frac{1}{2} \times 70 \times 50
    \sin 40° = 1124.88\) m². The formula is \(A = \frac{1}{2}ab\sin C\). The angle \(C\) is between the sides \(a\)
    and \(b\). The letter of a corner and of the side opposite are the same. It works for obtuse angles too. Do you
    know the area? Then put in the numbers and solve for the side. Set the calculator to degrees. Give square units.
""")


def _two(value: float) -> str:
    return f"{round_half_up(value, places(2)):f}"


def _parts(a: int, b: int, angle: int) -> tuple[str, float, tuple[Line, ...]]:
    text = f"1/2*{a}*{b}*sin({angle})"
    value = a * b * sin(radians(angle)) / 2
    shown = rf"{frac(1, 2)} \times {a} \times {b} \times \sin {angle}°"
    return (
        text,
        value,
        (
            ("Put the two sides and the angle between them into the formula.", f"A = {shown}", f"A = {text}"),
            ("Calculate and round.", rf"A \approx {_two(value)}", f"{text} ≈ {_two(value)}"),
        ),
    )


def _answer(text: str, value: float, unit: str, errors: tuple[Json, ...] = ()) -> Json:
    return numeric(
        text, _two(value), f"{_two(value)} {unit.replace('^2', '²')}", rounding=places(2), unit=unit, errors=errors
    )


def _example(draw: Draw) -> Example:
    a, b, angle = draw.one([(9, 14, 52), (8, 11, 67), (13, 6, 38)])
    _, value, lines = _parts(a, b, angle)
    return example(
        f"In triangle PQR, PQ is {a} cm, QR is {b} cm and angle Q is {angle}°. Calculate its area to 2 decimal places.",
        f"{_two(value)} cm²",
        ("Check that the angle lies between the sides: Q is on both PQ and QR.", "", ""),
        *lines,
    )


def _which(draw: Draw) -> Question:
    a, b, angle = draw.whole(5, 15), draw.whole(16, 25), draw.whole(50, 80)
    half = rf"{frac(1, 2)} \times {a} \times {b}"
    return pick(
        f"A triangle has sides of {a} cm and {b} cm with {angle}° between them. Choose the calculation of its area.",
        (m(rf"{half} \times \sin {angle}°"), f"1/2*{a}*{b}*sin({angle})", f"1/2*{a}*{b}*sin({angle})"),
        (
            m(rf"{half} \times \cos {angle}°"),
            f"1/2*{a}*{b}*cos({angle})",
            "The height comes from the sine, not the cosine.",
            "",
        ),
        (m(rf"{a} \times {b} \times \sin {angle}°"), f"{a}*{b}*sin({angle})", "This is the parallelogram.", "1"),
        (m(half), f"1/2*{a}*{b}", "This is right only for a right angle.", ""),
        lines=[("Half of the product of the sides and the sine of the angle.", rf"{half} \times \sin {angle}°", "")],
        why="The height is one side times the sine, and the area is half of base times height.",
        reveals=(1,),
    )


def _asked(stem: str, a: int, b: int, angle: int, unit: str) -> Question:
    text, value, lines = _parts(a, b, angle)
    return ask(
        stem,
        _answer(text, value, unit, (wrong("1", f"{a}*{b}*sin({angle})", _two(2 * value), "Left out the half"),)),
        *lines,
        why="The angle lies between the two sides, so the formula can be used as it stands.",
        reveals=(0, 1),
        calculator=True,
        hint="Which angle lies between the two sides?",
    )


def _area(draw: Draw) -> Question:
    a, b, angle = draw.whole(5, 20), draw.whole(5, 20), draw.whole(25, 85)
    stem = (
        f"In triangle ABC, AB is {a} cm, AC is {b} cm and angle A is {angle}°. Calculate its area in cm², "
        f"to 2 decimal places."
    )
    return _asked(stem, a, b, angle, "cm^2")


def _field(draw: Draw) -> Question:
    a, b, angle = draw.whole(30, 120), draw.whole(30, 120), draw.whole(30, 88)
    stem = (
        f"Two fences of a triangular field near {draw.place()} are {a} m and {b} m long and meet at {angle}°. "
        f"Calculate the area of "
        "the field in m², to 2 decimal places."
    )
    return _asked(stem, a, b, angle, "m^2")


def _obtuse(draw: Draw) -> Question:
    a, b, angle = draw.whole(4, 18), draw.whole(4, 18), draw.whole(95, 155)
    stem = (
        f"{draw.person()} draws a triangle with sides of {a} cm and {b} cm and an angle of {angle}° between "
        f"them. Calculate its area "
        "in cm², to 2 decimal places."
    )
    return _asked(stem, a, b, angle, "cm^2")


def _side(draw: Draw) -> Question:
    a, b, angle = draw.whole(6, 16), draw.whole(5, 18), draw.whole(30, 80)
    area = _two(a * b * sin(radians(angle)) / 2)
    value = 2 * float(area) / (a * sin(radians(angle)))
    printed = f"{round_half_up(value, places(1)):f}"
    return ask(
        f"A triangle has an area of {area} cm². One side is {a} cm, and the angle between it and a second side "
        f"is {angle}°. Calculate "
        "the second side in cm, to 1 decimal place.",
        numeric(f"2*{area}/({a}*sin({angle}))", printed, f"{printed} cm", rounding=places(1), unit="cm"),
        ("Put what is known into the formula.", rf"{area} = {frac(1, 2)} \times {a} \times b \times \sin {angle}°", ""),
        ("Solve for the side.", rf"b \approx {printed}", f"2*{area}/({a}*sin({angle})) ≈ {printed}"),
        why="The formula is an equation; with the area known it can be solved for a side.",
        calculator=True,
    )


def _parallelogram(draw: Draw) -> Question:
    a, b, angle = draw.whole(5, 20), draw.whole(5, 20), draw.whole(35, 80)
    value = a * b * sin(radians(angle))
    return ask(
        f"A parallelogram has sides of {a} cm and {b} cm that meet at {angle}°. A diagonal cuts it into two "
        f"equal triangles. Calculate "
        "the area of the parallelogram in cm², to 2 decimal places.",
        _answer(f"2*1/2*{a}*{b}*sin({angle})", value, "cm^2"),
        (
            "Find the area of one triangle.",
            rf"{frac(1, 2)} \times {a} \times {b} \times \sin {angle}°",
            f"T = 1/2*{a}*{b}*sin({angle})",
        ),
        (
            "Double it.",
            rf"{a} \times {b} \times \sin {angle}° \approx {_two(value)}",
            f"2*1/2*{a}*{b}*sin({angle}) ≈ {_two(value)}",
        ),
        why="Both triangles have the same two sides and the same angle between them.",
        reveals=(1,),
        calculator=True,
    )


def _half_base(draw: Draw) -> Question:
    b, h = 2 * draw.whole(3, 12), draw.whole(3, 15)
    return ask(
        f"A triangle has a base of {b} cm and a height of {h} cm. Calculate its area in cm².",
        numeric(f"1/2*{b}*{h}", str(b * h // 2), f"{b * h // 2} cm²", unit="cm^2"),
        (
            "Half of base times height.",
            rf"{frac(1, 2)} \times {b} \times {h} = {b * h // 2}",
            f"1/2*{b}*{h} = {b * h // 2}",
        ),
        why="A triangle is half of the rectangle with the same base and height.",
        one=True,
    )


def _sine(draw: Draw) -> Question:
    side, angle = draw.whole(5, 20), draw.whole(20, 70)
    value = side * sin(radians(angle))
    return ask(
        f"In a right-angled triangle the hypotenuse is {side} cm and one angle is {angle}°. Calculate the side "
        f"opposite to it in cm, to "
        "2 decimal places.",
        _answer(f"{side}*sin({angle})", value, "cm"),
        (
            "The opposite side is the hypotenuse times the sine.",
            rf"{side} \times \sin {angle}° \approx "
            rf"{_two(value)}",
            f"{side}*sin({angle}) ≈ {_two(value)}",
        ),
        why="The sine is the opposite side over the hypotenuse.",
        calculator=True,
        one=True,
    )
