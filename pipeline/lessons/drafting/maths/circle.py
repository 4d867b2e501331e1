"""Arc length and sector area."""

from __future__ import annotations

from fractions import Fraction
from math import pi

from pipeline.lessons.drafting.maths.tex import Line, ask, example, frac, m, number, pick, told
from pipeline.lessons.drafting.parts import Draw, Example, Json, Mistake, Question, Topic, exact, numeric, places, wrong
from pipeline.lessons.rounding import round_half_up


def topic() -> Topic:
    """Return the topic of outcome geo.circle; points: arc length, sector area."""
    return Topic(
        name="arcs and sectors",
        can="calculate the length of an arc and the area of a sector",
        aim="Take the right fraction of a circle",
        prior=("Circumference and area of a circle, and fractions of a quantity",),
        facts=(
            "The angle at the centre divided by 360° is the fraction of the circle.",
            r"Arc length is this fraction of the circumference: \(\frac{a}{360} \times \pi d\).",
            r"Sector area is this fraction of the area: \(\frac{a}{360} \times \pi r^2\).",
        ),
        keywords=(
            ("arc", "a part of the line round a circle"),
            ("sector", "the part of a circle between two radii"),
        ),
        mistakes=(
            Mistake(
                "The diameter may be used in the area formula.",
                "The area formula squares the radius; with the diameter the result is four times too large.",
            ),
            Mistake(
                "An arc uses the area formula.",
                "An arc is a length, so it is a part of the circumference; a sector is an area.",
            ),
        ),
        explain=_EXPLAIN,
        plain=_PLAIN,
        non_example="A chord is not an arc: it is the straight line between two points of the circle.",
        example=_example,
        makers=(_which, _arc, _sector, _perimeter, _pendulum, _angle),
        starters=(_fraction, _circumference),
    )


_EXPLAIN = told(r"""
    A pizza is cut from its centre into 6 equal slices. Each slice has an angle of 60° at the centre, because a full
    turn is 360° and \(360 \div 6 = 60\). So each slice is \(\frac{60}{360} = \frac{1}{6}\) of the pizza, and its
    crust is \(\frac{1}{6}\) of the whole edge. The slice is a sector, its crust an arc. The same holds for any angle.
    The arc is the fraction \(\frac{a}{360}\) of the circumference \(\pi d\), and the sector is the same fraction of
    the area \(\pi r^2\). With radius 15 cm and angle 48° the arc is \(\frac{48}{360} \times \pi \times 30 = 12.57\)
    cm, to two decimal places. The sector is \(\frac{48}{360} \times \pi \times 15^2 = 94.25\) cm². Choose the formula
    by what is asked: a length comes from the circumference, an area from \(\pi r^2\). Check whether you are given a
    radius or a diameter before you substitute. The perimeter of a sector is its arc and two radii. Going backwards
    also works: an arc divided by the circumference gives the fraction, and this times 360° gives the angle.
""")
_PLAIN = told(r"""
    Cut a pizza into 6 equal slices. Each slice has an angle of 60°, since \(360 \div 6 = 60\). So it is
    \(\frac{60}{360} = \frac{1}{6}\) of the pizza. Its crust is \(\frac{1}{6}\) of the edge. The slice is a sector.
    The crust is an arc. An arc is \(\frac{a}{360}\) of the circumference \(\pi d\). A sector is \(\frac{a}{360}\) of
    the area \(\pi r^2\). Take a radius of 15 cm and 48°. The arc is \(\frac{48}{360} \times \pi \times 30 = 12.57\)
    cm. The sector is \(\frac{48}{360} \times \pi \times 15^2 = 94.25\) cm². Both have two decimal places. A length
    needs the circumference. An area needs \(\pi r^2\). Radius or diameter? Check first. The perimeter of a sector is
    its arc and two radii.
""")


def _two(value: float) -> str:
    return f"{round_half_up(value, places(2)):f}"


def _arc_of(angle: int, radius: int) -> tuple[str, float, tuple[Line, ...]]:
    text = f"{angle}/360*pi*2*{radius}"
    value = angle / 360 * pi * 2 * radius
    return (
        text,
        value,
        (
            ("The fraction of the circle is the angle over 360.", frac(angle, 360), ""),
            ("Take this fraction of the circumference.", rf"{frac(angle, 360)} \times \pi \times {2 * radius}", ""),
            (
                "Calculate and round.",
                rf"{frac(angle, 360)} \times \pi \times {2 * radius} \approx "
                rf"{_two(value)}",
                f"{text} ≈ {_two(value)}",
            ),
        ),
    )


def _sector_of(angle: int, radius: int) -> tuple[str, float, tuple[Line, ...]]:
    text = f"{angle}/360*pi*{radius}^2"
    value = angle / 360 * pi * radius**2
    return (
        text,
        value,
        (
            ("The fraction of the circle is the angle over 360.", frac(angle, 360), ""),
            ("Take this fraction of the area.", rf"{frac(angle, 360)} \times \pi \times {radius}^2", ""),
            (
                "Calculate and round.",
                rf"{frac(angle, 360)} \times \pi \times {radius}^2 \approx {_two(value)}",
                f"{text} ≈ {_two(value)}",
            ),
        ),
    )


def _round(expression: str, value: float, unit: str, errors: tuple[Json, ...] = ()) -> Json:
    shown = f"{_two(value)} {unit.replace('^2', '²')}"
    return numeric(expression, _two(value), shown, rounding=places(2), unit=unit, errors=errors)


def _sizes(draw: Draw) -> tuple[int, int]:
    return draw.one([n for n in range(35, 340) if n % 90 and n not in (60, 120, 180)]), draw.whole(4, 25)


def _example(draw: Draw) -> Example:
    angle, radius = draw.one([(75, 12), (110, 9), (135, 16)])
    _, value, lines = _sector_of(angle, radius)
    return example(
        f"A sector has radius {radius} cm and angle {angle}°. Calculate its area to 2 decimal places.",
        f"{_two(value)} cm²",
        *lines,
    )


def _which(draw: Draw) -> Question:
    angle, radius = draw.one((30, 40, 45, 60, 72, 120)), draw.whole(5, 20)
    shown = rf"{frac(angle, 360)} \times \pi \times"
    return pick(
        f"A sector has radius {radius} cm and angle {angle}°. Choose the calculation of its arc length.",
        (m(f"{shown} {2 * radius}"), f"{angle}/360*pi*{2 * radius}", f"{angle}/360*pi*2*{radius}"),
        (m(f"{shown} {radius}^2"), f"{angle}/360*pi*{radius}^2", "This is the area of the sector.", "1"),
        (m(f"{shown} {radius}"), f"{angle}/360*pi*{radius}", "The radius was used where the diameter belongs.", ""),
        (m(f"{shown} {4 * radius}"), f"{angle}/360*pi*{4 * radius}", "The diameter was doubled.", "0"),
        lines=[("Take the fraction of the circumference.", f"{shown} {2 * radius}", "")],
        why="An arc is a part of the circumference, which is pi times the diameter.",
        reveals=(1,),
    )


def _arc(draw: Draw) -> Question:
    angle, radius = _sizes(draw)
    text, value, lines = _arc_of(angle, radius)
    area = f"{angle}/360*pi*{radius}^2"
    return ask(
        f"An arc of a circle with radius {radius} cm has an angle of {angle}° at the centre. Calculate its "
        f"length in cm, to 2 decimal "
        "places.",
        _round(
            text, value, "cm", (wrong("1", area, _two(angle / 360 * pi * radius**2), "Used the area of the sector"),)
        ),
        *lines,
        why="An arc is a length, so it is a fraction of the circumference.",
        reveals=(1,),
        calculator=True,
    )


def _sector(draw: Draw) -> Question:
    angle, radius = _sizes(draw)
    text, value, lines = _sector_of(angle, radius)
    double = f"{angle}/360*pi*{2 * radius}^2"
    return ask(
        f"A flower bed in {draw.place()} is a sector with radius {radius} m and an angle of {angle}°. "
        f"Calculate its area in m², to 2 "
        "decimal places.",
        _round(text, value, "m^2", (wrong("0", double, _two(4 * value), "Used the diameter"),)),
        *lines,
        why="A sector is the same fraction of the whole area as its angle is of a full turn.",
        asks=(1,),
        reveals=(0,),
        calculator=True,
    )


def _perimeter(draw: Draw) -> Question:
    angle, radius = _sizes(draw)
    text, arc, lines = _arc_of(angle, radius)
    value = arc + 2 * radius
    return ask(
        f"A sector has radius {radius} cm and an angle of {angle}° at the centre. Calculate its perimeter in "
        f"cm, to 2 decimal places.",
        _round(f"{text} + 2*{radius}", value, "cm"),
        *lines,
        ("Add the two radii.", rf"{_two(value)}", f"{text} + 2*{radius} ≈ {_two(value)}"),
        why="The edge of a sector is its arc and two straight lines, the radii.",
        calculator=True,
    )


def _pendulum(draw: Draw) -> Question:
    angle, length = draw.whole(15, 70), 5 * draw.whole(8, 30)
    text, value, lines = _arc_of(angle, length)
    return ask(
        f"The pendulum of a clock in {draw.place()} is {length} cm long and swings through {angle}°. Calculate "
        f"the length in cm of the "
        "path of its end, to 2 decimal places.",
        _round(text, value, "cm"),
        *lines,
        why="The end of the pendulum moves on a circle whose radius is the length of the pendulum.",
        calculator=True,
        hint="What is the radius of the circle?",
    )


def _angle(draw: Draw) -> Question:
    radius, angle = draw.whole(5, 20), 10 * draw.whole(4, 30)
    arc = angle / 360 * 2 * pi * radius
    shown_arc = f"{round_half_up(arc, places(1)):f}"
    value = float(shown_arc) / (2 * pi * radius) * 360
    printed = f"{round_half_up(value, places(1)):f}"
    return ask(
        f"An arc of a circle with radius {radius} cm is {shown_arc} cm long. Calculate the angle at the centre "
        f"in degrees, to 1 decimal "
        "place.",
        numeric(f"{shown_arc}/(2*pi*{radius})*360", printed, f"{printed}°", rounding=places(1), unit="°"),
        ("The arc over the circumference is the fraction.", frac(shown_arc, rf"2 \times \pi \times {radius}"), ""),
        (
            "Multiply by 360.",
            rf"a \approx {printed}",
            f"{shown_arc}/(2*pi*{radius})*360 ≈ {printed}",
        ),
        why="The fraction of the circle is the same for the arc and for the angle.",
        calculator=True,
    )


def _fraction(draw: Draw) -> Question:
    angle = draw.one((30, 36, 40, 45, 60, 72, 80, 90, 120, 135, 144, 150))
    value = Fraction(angle, 360)
    return ask(
        f"Write {angle}° as a fraction of a full turn of 360°, in its simplest form.",
        exact("fraction", f"{angle}/360", f"{value.numerator}/{value.denominator}", "lowest_terms", m(number(value))),
        (
            "Divide by 360 and simplify.",
            f"{frac(angle, 360)} = {number(value)}",
            f"{angle}/360 = {value.numerator}/{value.denominator}",
        ),
        why="A full turn is 360 degrees, so the angle over 360 is the fraction.",
        one=True,
    )


def _circumference(draw: Draw) -> Question:
    radius = draw.whole(3, 20)
    value = 2 * pi * radius
    return ask(
        f"Calculate the circumference in cm of a circle with radius {radius} cm, to 2 decimal places.",
        _round(f"2*pi*{radius}", value, "cm"),
        (
            "Multiply the diameter by pi.",
            rf"\pi \times {2 * radius} \approx {_two(value)}",
            f"2*pi*{radius} ≈ {_two(value)}",
        ),
        why="The circumference is pi times the diameter, and the diameter is twice the radius.",
        calculator=True,
        one=True,
    )
