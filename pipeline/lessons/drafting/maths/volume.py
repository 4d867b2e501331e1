"""Volumes of spheres, cones and pyramids."""

from __future__ import annotations

from fractions import Fraction
from math import pi

from pipeline.lessons.drafting.maths.tex import Line, ask, example, frac, m, pick, told
from pipeline.lessons.drafting.parts import (
    Draw,
    Example,
    Json,
    Mistake,
    Question,
    Topic,
    figures,
    numeric,
    places,
    wrong,
)
from pipeline.lessons.rounding import round_half_up


def topic() -> Topic:
    """Return the topic of outcome geo.volume."""
    return Topic(
        name="the volume of a solid",
        can="calculate the volume of a sphere, a cone and a pyramid",
        aim="Choose the formula for a solid and use it",
        prior=("Volume of a cuboid and of a cylinder, and area of a circle",),
        facts=(
            r"The volume of a sphere is \(V = \frac{4}{3}\pi r^3\).",
            r"The volume of a cone is \(V = \frac{1}{3}\pi r^2 h\), with h the height at right angles to the base.",
            r"The volume of a pyramid is \(V = \frac{1}{3}Ah\), with A the area of its base.",
        ),
        keywords=(
            ("radius", "half of the diameter"),
            ("perpendicular height", "the distance from the tip to the base, at right angles to the base"),
        ),
        mistakes=(
            Mistake(
                "The diameter can stand where the formula has the radius.",
                "The radius is half of the diameter, so a diameter is halved before anything else.",
            ),
            Mistake(
                "A cone holds as much as the cylinder around it.",
                "It holds a third of that, and so does a pyramid in its prism.",
            ),
        ),
        explain=_EXPLAIN,
        plain=_PLAIN,
        non_example="The slanted edge of a cone is not its height: the height meets the base at a right angle.",
        example=_example,
        makers=(_which, _cone, _sphere, _pyramid, _hemisphere, _height),
        starters=(_cylinder, _half),
    )


_EXPLAIN = told(r"""
    How much ice cream fits into a cone that is 12 cm high and 6 cm wide at the top? A cone is a third of the cylinder
    with the same base and height: \(V = \frac{1}{3}\pi r^2 h\). The diameter is 6 cm, so the radius is 3 cm. Put it in:
    \(V = \frac{1}{3} \times \pi \times 3^2 \times 12 = 113.1\) cm³, to one decimal place. A pyramid is in the same way
    a third of the prism around it: \(V = \frac{1}{3}Ah\), where \(A\) is the area of the base. With a square base of
    side 5 m and a height of 9 m that is \(\frac{1}{3} \times 25 \times 9 = 75\) m³. For a sphere the formula is
    \(V = \frac{4}{3}\pi r^3\); a ball with radius 3 cm has the volume \(\frac{4}{3} \times \pi \times 3^3 = 113.1\)
    cm³, as much as the cone. A solid that is made of several parts, such as a cone with half a sphere on top, is cut
    into them, and the volumes are added. The height must meet the base at a right angle. Cube the radius before you
    multiply, keep all figures in the calculator, and round only at the end. Volumes have cubic units.
""")
_PLAIN = told(r"""
    An ice cream cone is 12 cm high. It is 6 cm wide at the top. How much does it hold? A cone is a third of a
    cylinder. The formula is \(V = \frac{1}{3}\pi r^2 h\). The diameter is 6 cm. So the radius is 3 cm. \(V =
    \frac{1}{3} \times \pi \times 3^2 \times 12 = 113.1\) cm³. A pyramid is a third of a prism. The formula is \(V =
    \frac{1}{3}Ah\). \(A\) is the area of the base. Take a square base of side 5 m and a height of 9 m. \(\frac{1}{3}
    \times 25 \times 9 = 75\) m³. A sphere has \(V = \frac{4}{3}\pi r^3\). Take a radius of 3 cm. \(\frac{4}{3} \times
    \pi \times 3^3 = 113.1\) cm³. Is a solid made of parts? Find each volume. Then add them. The height meets the base
    at a right angle. Round only at the end. Use cubic units.
""")


def _three(value: float) -> str:
    """Return a value to three significant figures, as it is printed."""
    return f"{round_half_up(value, figures(3)):f}"


def _answer(text: str, value: float, unit: str, errors: tuple[Json, ...] = ()) -> Json:
    shown = f"{_three(value)} {unit.replace('^3', '³')}"
    return numeric(text, _three(value), shown, rounding=figures(3), unit=unit, errors=errors)


def _cone_of(radius: int, height: int) -> tuple[str, float, tuple[Line, ...]]:
    text, value = f"1/3*pi*{radius}^2*{height}", pi * radius**2 * height / 3
    shown = rf"{frac(1, 3)} \times \pi \times {radius}^2 \times {height}"
    return (
        text,
        value,
        (
            ("Put radius and height into the formula of a cone.", f"V = {shown}", f"V = {text}"),
            (
                "Calculate, and round to 3 significant figures.",
                rf"V \approx {_three(value)}",
                f"{text} ≈ {_three(value)}",
            ),
        ),
    )


def _sphere_of(radius: int) -> tuple[str, float, tuple[Line, ...]]:
    text, value = f"4/3*pi*{radius}^3", 4 * pi * radius**3 / 3
    return (
        text,
        value,
        (
            (
                "Put the radius into the formula of a sphere.",
                rf"V = {frac(4, 3)} \times \pi \times {radius}^3",
                f"V = {text}",
            ),
            (
                "Calculate, and round to 3 significant figures.",
                rf"V \approx {_three(value)}",
                f"{text} ≈ {_three(value)}",
            ),
        ),
    )


def _example(draw: Draw) -> Example:
    radius, height = draw.one([(4, 15), (5, 9), (7, 20)])
    _, value, lines = _cone_of(radius, height)
    return example(
        f"A cone has a diameter of {2 * radius} cm and a height of {height} cm. Calculate its volume to 3 significant "
        "figures.",
        f"{_three(value)} cm³",
        ("Halve the diameter to find the radius.", f"r = {radius}", f"{2 * radius}/2 = {radius}"),
        *lines,
    )


def _which(draw: Draw) -> Question:
    # With a radius of 4 two of the wrong options are equal.
    radius = draw.whole(5, 12)
    wide = 2 * radius
    return pick(
        f"A ball has a diameter of {wide} cm. Choose the calculation of its volume.",
        (m(rf"{frac(4, 3)} \times \pi \times {radius}^3"), f"4/3*pi*{radius}^3", f"4/3*pi*({wide}/2)^3"),
        (m(rf"{frac(4, 3)} \times \pi \times {wide}^3"), f"4/3*pi*{wide}^3", "The diameter was used as radius.", "0"),
        (m(rf"{frac(1, 3)} \times \pi \times {radius}^3"), f"1/3*pi*{radius}^3", "A third belongs to cones.", ""),
        (m(rf"{frac(4, 3)} \times \pi \times {radius}^2"), f"4/3*pi*{radius}^2", "The radius was only squared.", ""),
        lines=[
            ("Halve the diameter.", f"r = {radius}", f"{wide}/2 = {radius}"),
            ("Put it into the formula of a sphere.", rf"{frac(4, 3)} \times \pi \times {radius}^3", ""),
        ],
        why="A sphere's formula needs the radius, cubed.",
        reveals=(0,),
    )


def _cone(draw: Draw) -> Question:
    radius, height = draw.whole(3, 12), draw.whole(8, 30)
    text, value, lines = _cone_of(radius, height)
    whole = f"pi*{radius}^2*{height}"
    return ask(
        f"A cone has a radius of {radius} cm and a height of {height} cm. Calculate its volume in cm³, to 3 "
        "significant figures.",
        _answer(text, value, "cm^3", (wrong("1", whole, _three(3 * value), "Found the volume of the cylinder"),)),
        *lines,
        why="A cone is a third of the cylinder with the same base and height.",
        reveals=(1,),
        calculator=True,
        hint="What part of a cylinder is a cone?",
    )


def _sphere(draw: Draw) -> Question:
    radius = draw.whole(4, 15)
    wide = 2 * radius
    _, value, lines = _sphere_of(radius)
    return ask(
        f"A glass float of a fishing net in {draw.place()} is a sphere with a diameter of {wide} cm. Calculate its "
        "volume in cm³, to 3 significant figures.",
        _answer(
            f"4/3*pi*({wide}/2)^3",
            value,
            "cm^3",
            (wrong("0", f"4/3*pi*{wide}^3", _three(8 * value), "Used the diameter as radius"),),
        ),
        ("Halve the diameter to find the radius.", f"r = {radius}", f"{wide}/2 = {radius}"),
        *lines,
        why="The radius is half of the diameter, and it is cubed.",
        reveals=(0,),
        calculator=True,
        hint="Are you told the radius or the diameter?",
    )


def _pyramid(draw: Draw) -> Question:
    side, third = draw.whole(4, 14), draw.whole(1, 4)
    height, value = 3 * third, side * side * third
    return ask(
        f"A tent of a festival in {draw.place()} is a pyramid with a square base of side {side} m. It is {height} m "
        "high. Calculate its volume in m³.",
        numeric(
            f"1/3*{side}^2*{height}",
            str(value),
            f"{value} m³",
            unit="m^3",
            errors=(wrong("1", f"{side}^2*{height}", str(3 * value), "Found the volume of the prism"),),
        ),
        ("Find the area of the base.", f"A = {side}^2 = {side * side}", f"{side}^2 = {side * side}"),
        (
            "Take a third of base times height.",
            rf"V = {frac(1, 3)} \times {side * side} \times {height} = {value}",
            f"1/3*{side * side}*{height} = {value}",
        ),
        why="A pyramid is a third of the prism with the same base and height.",
        reveals=(1,),
        hint="What is the area of the base?",
    )


def _hemisphere(draw: Draw) -> Question:
    radius, height = draw.whole(3, 9), draw.whole(8, 20)
    ball, top = f"1/2*4/3*pi*{radius}^3", f"1/3*pi*{radius}^2*{height}"
    half, cone = 2 * pi * radius**3 / 3, pi * radius**2 * height / 3
    return ask(
        f"{draw.person()} models a buoy as a cone with half a sphere below it. Both have a radius of {radius} cm, and "
        f"the cone is {height} cm high. Calculate the volume of the buoy in cm³, to 3 significant figures.",
        _answer(f"{ball} + {top}", half + cone, "cm^3"),
        (
            "Find half of the sphere.",
            rf"{frac(1, 2)} \times {frac(4, 3)} \times \pi \times {radius}^3",
            f"H = {ball}",
        ),
        ("Find the cone.", rf"{frac(1, 3)} \times \pi \times {radius}^2 \times {height}", f"C = {top}"),
        (
            "Add both, and round to 3 significant figures.",
            rf"V \approx {_three(half + cone)}",
            f"{ball} + {top} ≈ {_three(half + cone)}",
        ),
        why="A solid made of two parts holds what both hold together.",
        calculator=True,
        hint="Into which two solids can you cut it?",
    )


def _height(draw: Draw) -> Question:
    radius, height = draw.whole(3, 9), draw.whole(8, 24)
    given = _three(pi * radius**2 * height / 3)
    value = 3 * float(given) / (pi * radius**2)
    printed = f"{round_half_up(value, places(1)):f}"
    return ask(
        f"A cone has a volume of {given} cm³ and a radius of {radius} cm. Calculate its height in cm, to 1 decimal "
        "place.",
        numeric(f"3*{given}/(pi*{radius}^2)", printed, f"{printed} cm", rounding=places(1), unit="cm"),
        ("Put what is known into the formula.", rf"{given} = {frac(1, 3)} \times \pi \times {radius}^2 \times h", ""),
        ("Multiply by 3 and divide.", rf"h \approx {printed}", f"3*{given}/(pi*{radius}^2) ≈ {printed}"),
        why="The formula is an equation; with the volume known it can be solved for the height.",
        calculator=True,
    )


def _cylinder(draw: Draw) -> Question:
    radius, height = draw.whole(2, 9), draw.whole(5, 20)
    value = pi * radius**2 * height
    return ask(
        f"A cylinder has a radius of {radius} cm and a height of {height} cm. Calculate its volume in cm³, to 3 "
        "significant figures.",
        _answer(f"pi*{radius}^2*{height}", value, "cm^3"),
        (
            "Multiply the area of the base by the height.",
            rf"\pi \times {radius}^2 \times {height} \approx {_three(value)}",
            f"pi*{radius}^2*{height} ≈ {_three(value)}",
        ),
        why="A cylinder is a prism with a circle as its base.",
        calculator=True,
        one=True,
    )


def _half(draw: Draw) -> Question:
    wide = draw.one((3, 5, 7, 9, 11, 13, 15))
    radius = Fraction(wide, 2)
    return ask(
        f"A circle has a diameter of {wide} cm. What is its radius in cm?",
        numeric(f"{wide}/2", f"{float(radius):g}", f"{float(radius):g} cm", unit="cm"),
        ("Halve the diameter.", rf"{wide} \div 2 = {float(radius):g}", f"{wide}/2 = {float(radius):g}"),
        why="The diameter is twice the radius.",
        one=True,
    )
