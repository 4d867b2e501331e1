"""Gradient of a line through two points."""

from __future__ import annotations

from fractions import Fraction

from pipeline.lessons.drafting.maths.tex import Line, ask, code, example, frac, m, number, pick, told
from pipeline.lessons.drafting.parts import (
    Draw,
    Example,
    Mistake,
    Question,
    Topic,
    exact,
    numeric,
    wrong,
)


def topic() -> Topic:
    """Return the topic of outcome geo.gradient."""
    return Topic(
        name="the gradient of a line",
        can="calculate the gradient of a straight line from two points",
        aim="Compare the change in y with the change in x",
        prior=("Coordinates in four quadrants, and subtracting negative numbers",),
        facts=(
            r"The gradient of the line through two points is \(m = \frac{y_2 - y_1}{x_2 - x_1}\).",
            "A line that falls from left to right has a negative gradient.",
            "A horizontal line has gradient 0; the gradient of a vertical line is undefined.",
        ),
        keywords=(("gradient", "how much a line rises for each step of 1 to the right"),),
        mistakes=(
            Mistake(
                "The gradient is the change in x divided by the change in y.",
                "It tells the rise for one step to the right, so the change in y is divided by the change in x.",
            ),
            Mistake(
                "The order of the points may differ between top and bottom.",
                "Both differences must start with the same point, or the sign is wrong.",
            ),
        ),
        explain=_GRADIENT,
        plain=_GRADIENT_PLAIN,
        non_example="The length of a ramp is not its gradient: a long ramp can be almost flat.",
        example=_gradient_example,
        makers=(_gradient_which, _whole, _fractional, _ramp, _missing),
        starters=(_difference, simplest),
    )


_GRADIENT = told(r"""
    A ramp rises 1 m over 12 m along the ground. A steeper one rises 3 m over the same 12 m. The gradient compares the
    two changes: rise divided by step to the right. For a line through two points the rise is the difference of the
    y-coordinates and the step is the difference of the x-coordinates: \(m = \frac{y_2 - y_1}{x_2 - x_1}\). Take A(2,
    3) and B(6, 11). Then \(m = \frac{11 - 3}{6 - 2} = \frac{8}{4} = 2\): for each step of 1 to the right the line
    rises by 2. Take C(−1, 4) and D(5, 1). Then \(m = \frac{1 - 4}{5 - (-1)} = \frac{-3}{6} = -\frac{1}{2}\): the line
    falls. Start with the same point on top and below, and put negative coordinates in brackets. It does not matter
    which point comes first: both differences change their signs, and the quotient stays. If both points have the same
    y-coordinate, the gradient is 0 and the line is horizontal. If they have the same x-coordinate, you would divide
    by 0, so the gradient is undefined and the line is vertical. Leave a gradient as a fraction in its simplest form.
""")
_GRADIENT_PLAIN = told(r"""
    A ramp rises 1 m over 12 m. Another rises 3 m over 12 m. It is steeper. The gradient is the rise divided by the
    step to the right. For two points use \(m = \frac{y_2 - y_1}{x_2 - x_1}\). Take A(2, 3) and B(6, 11). \(m =
    \frac{11 - 3}{6 - 2} = \frac{8}{4} = 2\). So the line rises by 2 for each step of 1. Take C(−1, 4) and D(5, 1).
    \(m = \frac{1 - 4}{5 - (-1)} = \frac{-3}{6} = -\frac{1}{2}\). The line falls. Start with the same point on top and
    below. Use brackets for negative numbers. Which point is first does not matter. The same y-coordinate means
    gradient 0. The line is horizontal. The same x-coordinate means you divide by 0. Then the gradient is undefined.
    The line is vertical. Leave a fraction in its simplest form.
""")

Place = tuple[int, int]


def points_with(draw: Draw, top: int, bottom: int) -> tuple[Place, Place]:
    """Return two points whose line has gradient top/bottom."""
    k = draw.whole(1, 2)
    x, y = draw.nonzero(-5, 5), draw.nonzero(-5, 5)
    return (x, y), (x + k * bottom, y + k * top)


def minus(value: int) -> str:
    """Return a number for the end of a difference: negative ones in brackets."""
    return f"({value})" if value < 0 else str(value)


def gradient_lines(a: Place, b: Place) -> tuple[tuple[Line, ...], Fraction, str]:
    """Return the lines that find the gradient of AB, its value, and the calculation."""
    value = Fraction(b[1] - a[1], b[0] - a[0])
    top, bottom = f"{b[1]} - {minus(a[1])}", f"{b[0]} - {minus(a[0])}"
    expression = f"({top})/({bottom})"
    return (
        (
            ("Put the coordinates into the formula.", f"m = {frac(top, bottom)}", f"m = {expression}"),
            (
                "Calculate and simplify.",
                f"m = {frac(b[1] - a[1], b[0] - a[0])} = {number(value)}",
                f"{expression} = {code(value)}",
            ),
        ),
        value,
        expression,
    )


def shown(place: Place) -> str:
    """Return the coordinates of a point."""
    return m(f"({place[0]}, {place[1]})")


def _gradient_example(draw: Draw) -> Example:
    a, b = draw.one([((-3, 2), (1, 10)), ((-2, -5), (4, 7)), ((-4, 9), (2, -3))])
    lines, value, _ = gradient_lines(a, b)
    return example(
        f"Calculate the gradient of the line through A{shown(a)} and B{shown(b)}.",
        m(f"m = {number(value)}"),
        *lines,
        ("Say what it means: the rise for each step of 1 to the right.", f"m = {number(value)}", f"m = {code(value)}"),
    )


def _gradient_which(draw: Draw) -> Question:
    top, bottom = draw.one([(2, 3), (3, 4), (3, 5), (2, 5), (-2, 3), (-3, 4), (4, 3), (-5, 2)])
    a, b = points_with(draw, top, bottom)
    lines, value, expression = gradient_lines(a, b)
    return pick(
        f"Choose the gradient of the line through {shown(a)} and {shown(b)}.",
        (m(number(value)), code(value), expression),
        (m(number(1 / value)), code(1 / value), "The change in x was divided by the change in y.", "0"),
        (m(number(-value)), code(-value), "The order of the points was changed.", "1"),
        (m(number(-1 / value)), code(-1 / value), "Both errors were made.", "0"),
        lines=lines,
        why="The change in y is divided by the change in x, starting with the same point.",
        reveals=(0, 1),
    )


def _find(draw: Draw, a: Place, b: Place) -> Question:
    lines, value, expression = gradient_lines(a, b)
    printed = f"{value.numerator}/{value.denominator}" if value.denominator > 1 else str(value.numerator)
    flipped = f"({b[0]} - {minus(a[0])})/({b[1]} - {minus(a[1])})"
    turned = 1 / value
    return ask(
        f"Calculate the gradient of the line through A{shown(a)} and B{shown(b)}. Give your answer in its "
        f"simplest form.",
        exact(
            "fraction",
            expression,
            printed,
            "lowest_terms",
            m(number(value)),
            errors=[
                wrong(
                    "0",
                    flipped,
                    f"{turned.numerator}/{turned.denominator}",
                    "Divided the change in x by the change in y",
                )
            ],
        ),
        *lines,
        why="The gradient is the change in y for each change of 1 in x.",
        reveals=(0, 1),
        hint="Write both differences in the same order.",
    )


def _whole(draw: Draw) -> Question:
    return _find(draw, *points_with(draw, draw.nonzero(-5, 5), draw.whole(1, 2)))


def _fractional(draw: Draw) -> Question:
    top, bottom = draw.one([(1, 2), (2, 3), (-1, 3), (3, 4), (-3, 2), (-2, 5), (5, 3), (-4, 3), (1, 4)])
    return _find(draw, *points_with(draw, top, bottom))


def _ramp(draw: Draw) -> Question:
    k, length = draw.whole(1, 4), draw.one((12, 15, 16, 20))
    rise = k * 10
    value = Fraction(rise, length * 100)
    return ask(
        f"A ramp at a library in {draw.place()} rises {rise} cm over a level distance of {length * 100} cm. "
        f"Calculate its gradient "
        "as a fraction in its simplest form.",
        exact(
            "fraction",
            f"{rise}/{length * 100}",
            f"{value.numerator}/{value.denominator}",
            "lowest_terms",
            m(number(value)),
        ),
        ("Divide the rise by the level distance.", frac(rise, length * 100), ""),
        ("Simplify.", f"{frac(rise, length * 100)} = {number(value)}", f"{rise}/{length * 100} = {code(value)}"),
        why="Both lengths have the same unit, so the gradient is a plain number.",
        reveals=(0,),
    )


def _missing(draw: Draw) -> Question:
    g, x1, y1, step = draw.nonzero(-4, 4), draw.nonzero(-4, 4), draw.nonzero(-4, 4), draw.whole(2, 4)
    x2, y2 = x1 + step, y1 + g * step
    return ask(
        f"The line through {shown((x1, y1))} and {m(f'({x2}, k)')} has gradient {m(str(g))}. Determine the value of k.",
        numeric(f"{minus(y1)} + {minus(g)}*({x2} - {minus(x1)})", str(y2), m(f"k = {y2}")),
        (
            "Write the gradient with k.",
            f"{frac(f'k - {minus(y1)}', f'{x2} - {minus(x1)}')} = {g}",
            f"(k - {minus(y1)})/({x2} - {minus(x1)}) = {g}",
        ),
        ("Multiply by the change in x.", rf"k - {minus(y1)} = {g * step}", f"k - {minus(y1)} = {g * step}"),
        ("Solve for k.", f"k = {y2}", f"k = {y2}"),
        why="The change in y is the gradient times the change in x.",
        reveals=(0,),
    )


def _difference(draw: Draw) -> Question:
    a, b = draw.whole(1, 9), draw.whole(1, 9)
    return ask(
        f"Calculate {m(f'{a} - (-{b})')}.",
        numeric(f"{a} - (-{b})", str(a + b), str(a + b)),
        ("Taking off a negative number adds it.", f"{a} + {b} = {a + b}", f"{a} - (-{b}) = {a + b}"),
        why="Two minus signs beside each other make a plus.",
        one=True,
    )


def simplest(draw: Draw) -> Question:
    """Ask for a fraction in its simplest form."""
    top, bottom = draw.one([(1, 2), (2, 3), (3, 4), (2, 5), (3, 5)])
    k = draw.whole(2, 6)
    return ask(
        f"Write {m(frac(k * top, k * bottom))} in its simplest form.",
        exact("fraction", f"{k * top}/{k * bottom}", f"{top}/{bottom}", "lowest_terms", m(frac(top, bottom))),
        (
            f"Divide top and bottom by {k}.",
            f"{frac(k * top, k * bottom)} = {frac(top, bottom)}",
            f"{k * top}/{k * bottom} = {top}/{bottom}",
        ),
        why="Dividing top and bottom by the same number does not change the value.",
        one=True,
    )
