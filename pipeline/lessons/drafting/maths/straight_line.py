"""Equation of a straight line and function notation."""

from __future__ import annotations

from fractions import Fraction

from pipeline.lessons.drafting.maths.gradient import gradient_lines, minus, points_with, shown, simplest
from pipeline.lessons.drafting.maths.tex import Line, ask, code, example, frac, m, number, pick, poly, poly_code, told
from pipeline.lessons.drafting.parts import (
    Draw,
    Example,
    Mistake,
    Question,
    Topic,
    algebra,
    numeric,
    wrong,
)


def topic() -> Topic:
    """Return the topic of outcome alg.line_equation; points: y-b=m(x-a), functions, read a gradient."""
    return Topic(
        name="the equation of a straight line",
        can="determine the equation of a straight line and read its gradient",
        aim="Write the equation of a line from a point and a gradient",
        prior=("The gradient of a line through two points, and rearranging an equation",),
        facts=(
            r"The line through \((a, b)\) with gradient m has the equation \(y - b = m(x - a)\).",
            r"In \(y = mx + c\) the gradient is m and the line crosses the y-axis at \((0, c)\).",
            r"\(f(3)\) is the value of the function f when x is 3.",
        ),
        keywords=(
            ("y-intercept", "where a line crosses the y-axis"),
            ("function notation", "writing f(x) for the value that belongs to x"),
        ),
        mistakes=(
            Mistake(
                r"In \(2x + 3y = 12\) the gradient is 2.",
                r"First make y the subject: \(y = -\frac{2}{3}x + 4\), so the gradient is \(-\frac{2}{3}\).",
            ),
            Mistake(
                r"\(f(3)\) means f times 3.",
                r"It means: put 3 in place of x. With \(f(x) = 2x + 1\), \(f(3) = 7\).",
            ),
        ),
        explain=_LINE,
        plain=_LINE_PLAIN,
        non_example=r"\(y = x^2 + 1\) is not the equation of a straight line, because x is squared.",
        example=_line_example,
        makers=(_line_which, _point_gradient, _function, _two_points, _read, _taxi),
        starters=(_substitution, simplest),
    )


_LINE = told(r"""
    A taxi costs £3 to start with and £2 for each mile. For \(x\) miles the cost is \(y = 2x + 3\). The 2 is the
    gradient, the extra cost of each mile, and the 3 is the y-intercept, the cost at 0 miles. Every line that is not
    vertical can be written as \(y = mx + c\). To find the equation from a point \((a, b)\) and the gradient \(m\),
    use \(y - b = m(x - a)\). For the point (4, 1) and gradient 3: \(y - 1 = 3(x - 4)\), so \(y = 3x - 11\). From two
    points, find the gradient first, then use either point. To read the gradient from another form, make \(y\) the
    subject: \(2x + 3y = 12\) becomes \(3y = -2x + 12\), then \(y = -\frac{2}{3}x + 4\). The gradient is
    \(-\frac{2}{3}\) and the line crosses the y-axis at (0, 4). The same rule can be written as a function: \(f(x) =
    2x + 3\). Then \(f(5)\) is the value for \(x = 5\): \(f(5) = 2 \times 5 + 3 = 13\). And \(f(x) = 9\) asks for
    which \(x\) the value is 9.
""")
_LINE_PLAIN = told(r"""
    A taxi costs £3 to start. Each mile costs £2. For \(x\) miles it costs \(y = 2x + 3\). The 2 is the gradient. The
    3 is the y-intercept. A line has the form \(y = mx + c\). You know a point \((a, b)\) and the gradient \(m\)? Use
    \(y - b = m(x - a)\). For (4, 1) and gradient 3: \(y - 1 = 3(x - 4)\). So \(y = 3x - 11\). You know two points?
    Find the gradient first. To read a gradient, make \(y\) the subject. \(2x + 3y = 12\) becomes \(3y = -2x + 12\).
    Then \(y = -\frac{2}{3}x + 4\). The gradient is \(-\frac{2}{3}\). The line crosses the y-axis at (0, 4). A
    function looks like this: \(f(x) = 2x + 3\). Then \(f(5) = 2 \times 5 + 3 = 13\). And \(f(x) = 9\) asks: which
    \(x\) gives 9?
""")


def _line_lines(g: int, a: int, b: int) -> tuple[tuple[Line, ...], str, str]:
    c = b - g * a
    tex, text = poly([g, c]), poly_code([g, c])
    left = f"y - {minus(b)}"
    right, right_code = f"{'' if g == 1 else '-' if g == -1 else g}(x - {minus(a)})", f"({g})*(x - {minus(a)})"
    return (
        (
            ("Put the point and the gradient into the equation.", f"{left} = {right}", f"{left} = {right_code}"),
            ("Expand and make y the subject.", f"y = {tex}", f"y = {text}"),
        ),
        tex,
        text,
    )


def _line_example(draw: Draw) -> Example:
    a, b, g = draw.one([(2, 7, 4), (3, -1, -2), (-1, 6, 3)])
    lines, tex, _ = _line_lines(g, a, b)
    check = g * a + b - g * a
    return example(
        f"Determine the equation of the line through {shown((a, b))} with gradient {m(str(g))}.",
        m(f"y = {tex}"),
        *lines,
        (f"Check with the point: put {m(f'x = {a}')}.", f"y = {check}", f"({g})*({a}) + ({b - g * a}) = {check}"),
    )


def _line_which(draw: Draw) -> Question:
    p, q, k = draw.one([(2, 3, 12), (3, 4, 24), (2, 5, 20), (3, 2, 18), (4, 3, 12), (5, 2, 10)])
    value = Fraction(-p, q)
    return pick(
        f"Choose the gradient of the line {m(f'{p}x + {q}y = {k}')}.",
        (m(number(value)), code(value), f"-{p}/{q}"),
        (m(str(p)), str(p), "The number before x was read without making y the subject.", "0"),
        (m(number(-value)), code(-value), "The sign did not change when x went to the other side.", "0"),
        (m(number(1 / value)), code(1 / value), "The fraction is upside down.", ""),
        lines=[
            ("Make y the subject.", rf"{q}y = -{p}x + {k}", f"{q}*y = -{p}*x + {k}"),
            (
                f"Divide by {q}.",
                rf"y = {number(value)}x + {k // q if k % q == 0 else frac(k, q)}",
                f"y = -{p}/{q}*x + {k}/{q}",
            ),
        ],
        why="Only in the form y = mx + c is the number before x the gradient.",
        asks=(2,),
    )


def _equation_from(stem: str, g: int, a: int, b: int, first: tuple[Line, ...] = ()) -> Question:
    lines, tex, text = _line_lines(g, a, b)
    c = b - g * a
    return ask(
        stem,
        algebra(
            f"({g})*(x - {minus(a)}) + {minus(b)}",
            text,
            "expanded",
            m(f"y = {tex}"),
            errors=[
                wrong("", poly_code([g, b]), poly_code([g, b]), "Used the y-coordinate of the point as the y-intercept")
            ]
            if c != b
            else [],
        ),
        *first,
        *lines,
        why="The equation says that from the given point to any other point of the line the gradient is the same.",
        hint="Use the form with the point and the gradient.",
    )


def _point_gradient(draw: Draw) -> Question:
    g, a, b = draw.nonzero(-5, 5), draw.nonzero(-5, 5), draw.nonzero(-6, 6)
    return _equation_from(
        f"Determine the equation of the line through {shown((a, b))} with gradient {m(str(g))}. Give it in the form "
        r"\(y = mx + c\).",
        g,
        a,
        b,
    )


def _two_points(draw: Draw) -> Question:
    g = draw.nonzero(-4, 4)
    a, b = points_with(draw, g, 1)
    _, value, expression = gradient_lines(a, b)
    return _equation_from(
        f"Determine the equation of the line through {shown(a)} and {shown(b)}, in the form " r"\(y = mx + c\).",
        g,
        a[0],
        a[1],
        (("Find the gradient.", f"m = {frac(b[1] - a[1], b[0] - a[0])} = {g}", f"{expression} = {code(value)}"),),
    )


def _function(draw: Draw) -> Question:
    a, b, x = draw.nonzero(-6, 6), draw.nonzero(-9, 9), draw.nonzero(-5, 6)
    value = a * x + b
    return ask(
        rf"The function f is \(f(x) = {poly([a, b])}\). Calculate \(f({x})\).",
        numeric(f"({a})*({x}) + ({b})", str(value), m(str(value))),
        (
            f"Put {m(str(x))} in place of x.",
            rf"f({x}) = {minus(a)} \times {minus(x)} {'-' if b < 0 else '+'} {abs(b)}",
            "",
        ),
        ("Calculate.", f"f({x}) = {value}", f"({a})*({x}) + ({b}) = {value}"),
        why="The number in the bracket takes the place of x; it does not multiply f.",
        asks=(1,),
        reveals=(1,),
    )


def _read(draw: Draw) -> Question:
    q, g, c = draw.whole(2, 5), draw.nonzero(-4, 4), draw.nonzero(-6, 6)
    p, k = -g * q, c * q
    tex = f"{poly([p, 0])} + {q}y = {k}"
    return ask(
        f"Determine the gradient of the line {m(tex)}.",
        numeric(f"-({p})/{q}", str(g), m(str(g)), errors=[wrong("0", f"({p})*1", str(p), "Read the number before x")]),
        (f"Take {m(poly([p, 0]))} from both sides.", f"{q}y = {poly([-p, k])}", f"{q}*y = {poly_code([-p, k])}"),
        (f"Divide by {q} and read the number before x.", f"y = {poly([g, c])}", f"y = {poly_code([g, c])}"),
        why="With y alone on one side, the number before x is the gradient.",
        asks=(2,),
        reveals=(0,),
    )


def _taxi(draw: Draw) -> Question:
    start, mile, x = draw.whole(2, 5), draw.whole(2, 4), draw.whole(3, 15)
    total = start + mile * x
    return ask(
        rf"A taxi in {draw.place()} costs f(x) pounds for x miles, with \(f(x) = {poly([mile, start])}\). "
        rf"Calculate x when "
        rf"\(f(x) = {total}\).",
        numeric(f"({total} - {start})/{mile}", str(x), m(f"x = {x}")),
        ("Write the equation.", f"{poly([mile, start])} = {total}", f"{poly_code([mile, start])} = {total}"),
        ("Solve it.", f"x = {x}", f"x = ({total} - {start})/{mile} = {x}"),
        why="Here the value of the function is known, and the x that gives it is wanted.",
        asks=(1,),
        reveals=(1,),
    )


def _substitution(draw: Draw) -> Question:
    a, b, x = draw.whole(2, 6), draw.whole(1, 9), draw.whole(2, 8)
    return ask(
        rf"Calculate y when \(x = {x}\) in \(y = {poly([a, b])}\).",
        numeric(f"{a}*{x} + {b}", str(a * x + b), str(a * x + b)),
        ("Substitute.", rf"y = {a} \times {x} + {b} = {a * x + b}", f"y = {a}*{x} + {b} = {a * x + b}"),
        why="Multiplication comes before addition.",
        one=True,
    )
