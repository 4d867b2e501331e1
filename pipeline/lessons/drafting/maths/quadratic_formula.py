"""The quadratic formula."""

from __future__ import annotations

from math import isqrt, sqrt

from pipeline.lessons.drafting.maths.tex import (
    Line,
    ask,
    example,
    m,
    pick,
    poly,
    poly_code,
    root,
    told,
)
from pipeline.lessons.drafting.parts import (
    Draw,
    Example,
    Mistake,
    Question,
    Topic,
    equation,
    numeric,
    places,
)
from pipeline.lessons.rounding import round_half_up


def topic() -> Topic:
    """Return the topic of outcome alg.quad_formula."""
    return Topic(
        name="the quadratic formula",
        can="solve a quadratic equation with the quadratic formula",
        aim="Solve any quadratic equation with the formula",
        prior=("Substituting positive and negative numbers into a formula, and square roots",),
        facts=(
            r"The solutions of \(ax^2 + bx + c = 0\) are \(x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}\).",
            "The equation must have 0 on one side before a, b and c are read off.",
            "The sign in front of the root gives two solutions, one with plus and one with minus.",
        ),
        keywords=(("quadratic equation", "an equation whose highest power of the unknown is 2"),),
        mistakes=(
            Mistake(
                r"\((-5)^2\) is \(-25\).",
                r"A negative number squared is positive: \((-5)^2 = 25\). Put negative numbers in brackets.",
            ),
            Mistake(
                "Only the root is divided by 2a.",
                "The whole top, with the first number and the root, is divided by 2a.",
            ),
        ),
        explain=_FORMULA,
        plain=_FORMULA_PLAIN,
        non_example=r"\(3x + 7 = 0\) is not quadratic: there is no \(x^2\), so the formula does not apply.",
        example=_formula_example,
        makers=(_formula_which, _two_places, _one_place, _negative_c, _ball),
        starters=(substitute, _approximate),
    )


_FORMULA = told(r"""
    Some quadratic equations cannot be factorised with whole numbers. The quadratic formula solves all of them. First
    write the equation with 0 on one side: \(ax^2 + bx + c = 0\). Read off \(a\), \(b\) and \(c\) with their signs.
    Then \(x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}\). Take \(2x^2 - 5x + 1 = 0\). Here \(a = 2\), \(b = -5\) and \(c =
    1\). Work out the part under the root by itself: \((-5)^2 - 4 \times 2 \times 1 = 25 - 8 = 17\). Then \(x =
    \frac{5 \pm \sqrt{17}}{4}\). The sign \(\pm\) stands for two calculations. With plus, \(x = 2.28\) to two decimal
    places; with minus, \(x = 0.22\). Put negative numbers in brackets, because \((-5)^2\) is 25, and the calculator
    reads \(-5^2\) as \(-25\). Divide the whole top by \(2a\), not only the root. Round at the end, to the places that
    the question asks for. Check by putting an answer back into the equation.
""")
_FORMULA_PLAIN = told(r"""
    Some quadratic equations have no easy factors. The formula solves them all. Write the equation with 0 on one side:
    \(ax^2 + bx + c = 0\). Read \(a\), \(b\) and \(c\) with their signs. Then \(x = \frac{-b \pm \sqrt{b^2 -
    4ac}}{2a}\). Take \(2x^2 - 5x + 1 = 0\). So \(a = 2\), \(b = -5\), \(c = 1\). First the part under the root:
    \((-5)^2 - 4 \times 2 \times 1 = 25 - 8 = 17\). Then \(x = \frac{5 \pm \sqrt{17}}{4}\). Plus gives \(x = 2.28\).
    Minus gives \(x = 0.22\). Both have two decimal places. Use brackets: \((-5)^2\) is 25, but \(-5^2\) is \(-25\).
    Divide the whole top by \(2a\). Round at the end.
""")


def _irrational(draw: Draw, a_choices: tuple[int, ...], c_sign: int) -> tuple[int, int, int]:
    """Return a, b, c with two irrational roots."""
    while True:
        a, b, c = draw.one(a_choices), draw.nonzero(-9, 9), c_sign * draw.whole(1, 6)
        under = b * b - 4 * a * c
        if under > 0 and isqrt(under) ** 2 != under:
            return a, b, c


def _roots(a: int, b: int, c: int, count: int) -> list[str]:
    under = b * b - 4 * a * c
    found = sorted((-b + sign * sqrt(under)) / (2 * a) for sign in (-1, 1))
    return [f"{round_half_up(value, places(count)):f}" for value in found]


def _formula_lines(a: int, b: int, c: int, found: list[str]) -> tuple[Line, ...]:
    under = b * b - 4 * a * c
    square = f"({b})^2" if b < 0 else f"{b}^2"
    low = f"({c})" if c < 0 else str(c)
    return (
        (
            "Read off a, b and c, and find the part under the root.",
            rf"b^2 - 4ac = {square} - 4 \times {a} \times {low} = {under}",
            f"{square} - 4*{a}*{low} = {under}",
        ),
        ("Put the numbers into the formula.", rf"x = \frac{{{-b} \pm {root(under)}}}{{{2 * a}}}", ""),
        (
            "Find the solution with minus.",
            rf"x \approx {found[0]}",
            f"({-b} - sqrt({under}))/{2 * a} ≈ {found[0]}",
        ),
        (
            "Find the solution with plus.",
            rf"x \approx {found[1]}",
            f"({-b} + sqrt({under}))/{2 * a} ≈ {found[1]}",
        ),
    )


def _formula_example(draw: Draw) -> Example:
    a, b, c = draw.one([(3, 7, 1), (2, 9, 3), (5, -8, 2)])
    found = _roots(a, b, c, 2)
    return example(
        f"Solve {m(poly([a, b, c]) + ' = 0')}. Give your answers to 2 decimal places.",
        rf"\(x = {found[0]}\) or \(x = {found[1]}\)",
        *_formula_lines(a, b, c, found),
    )


def _formula_which(draw: Draw) -> Question:
    a, b, c = draw.one((2, 3)), -draw.one((3, 5, 7)), draw.one((1, -1, -2))
    under = b * b - 4 * a * c
    wrong_under = -b * b - 4 * a * c
    if wrong_under == b * b - a * c:
        return _formula_which(draw)
    return pick(
        rf"In the quadratic formula for \({poly([a, b, c])} = 0\), choose the number under the root.",
        (str(under), str(under), f"({b})^2 - 4*{a}*({c})"),
        (str(wrong_under), str(wrong_under), "The square of a negative number was taken as negative.", "0"),
        (str(b * b + 4 * a * c), str(b * b + 4 * a * c), "The sign of the second part was changed.", ""),
        (str(b * b - a * c), str(b * b - a * c), "The 4 was left out.", ""),
        lines=[
            (
                "Substitute with brackets.",
                rf"({b})^2 - 4 \times {a} \times ({c}) = {under}",
                f"({b})^2 - 4*{a}*({c}) = {under}",
            )
        ],
        why="A negative number squared is positive; the second part is 4 times a times c, taken off.",
    )


def _solve(draw: Draw, abc: tuple[int, int, int], count: int) -> Question:
    a, b, c = abc
    found = _roots(a, b, c, count)
    noun = "decimal place" if count == 1 else "decimal places"
    return ask(
        f"Solve {m(poly([a, b, c]) + ' = 0')}. Give your answers to {count} {noun}.",
        equation(
            [f"{poly_code([a, b, c])} = 0"],
            ["x"],
            [[value] for value in found],
            rf"\(x = {found[0]}\) or \(x = {found[1]}\)",
            rounding=places(count),
        ),
        *_formula_lines(a, b, c, found),
        why="The formula gives both solutions; the rounding is done once, at the end.",
        reveals=(0, 1),
        calculator=True,
        hint="Work out the part under the root first.",
    )


def _two_places(draw: Draw) -> Question:
    return _solve(draw, _irrational(draw, (2, 3, 4), 1), 2)


def _one_place(draw: Draw) -> Question:
    return _solve(draw, _irrational(draw, (1, 2), 1), 1)


def _negative_c(draw: Draw) -> Question:
    return _solve(draw, _irrational(draw, (2, 3, 5), -1), 2)


def _ball(draw: Draw) -> Question:
    b, c = draw.one([(10, 3), (12, 5), (9, 4), (14, 3), (13, 6), (11, 2)])
    under = b * b + 20 * c
    time = (b + sqrt(under)) / 10
    shown = f"{round_half_up(time, places(2)):f}"
    who, place = draw.person(), draw.place()
    return ask(
        rf"{who} throws a ball on the beach at {place}. Its height in metres after t seconds is \(h = {c} + "
        rf"{b}t - 5t^2\). "
        "Calculate the time in seconds when it reaches the ground, to 2 decimal places.",
        numeric(f"({b} + sqrt({b}^2 + 4*5*{c}))/(2*5)", shown, f"{shown} s", rounding=places(2), unit="s"),
        ("At the ground the height is 0.", f"5t^2 - {b}t - {c} = 0", ""),
        ("Find the part under the root.", rf"{b}^2 + 4 \times 5 \times {c} = {under}", f"{b}^2 + 4*5*{c} = {under}"),
        (
            "Put it into the formula; the time is positive.",
            rf"t = \frac{{{b} + {root(under)}}}{{10}} \approx {shown}",
            f"({b} + sqrt({under}))/10 ≈ {shown}",
        ),
        why="The other solution is negative, and the ball was not in the air before it was thrown.",
        calculator=True,
    )


def substitute(draw: Draw) -> Question:
    """Ask for the value of b² - 4ac at given numbers."""
    b, a, c = -draw.whole(2, 9), draw.whole(1, 4), draw.whole(1, 5)
    value = b * b - 4 * a * c
    return ask(
        rf"Calculate \(b^2 - 4ac\) when \(a = {a}\), \(b = {b}\) and \(c = {c}\).",
        numeric(f"({b})^2 - 4*{a}*{c}", str(value), m(str(value))),
        (
            "Substitute with brackets.",
            rf"({b})^2 - 4 \times {a} \times {c} = {value}",
            f"({b})^2 - 4*{a}*{c} = {value}",
        ),
        why="The square of a negative number is positive.",
        one=True,
    )


def _approximate(draw: Draw) -> Question:
    n = draw.one([n for n in range(11, 60) if isqrt(n) ** 2 != n])
    shown = f"{round_half_up(sqrt(n), places(1)):f}"
    return ask(
        f"Calculate {m(root(n))} to one decimal place.",
        numeric(f"sqrt({n})", shown, shown, rounding=places(1)),
        ("Use the calculator and round.", rf"{root(n)} \approx {shown}", f"sqrt({n}) ≈ {shown}"),
        why="The root lies between two whole numbers, and the second decimal digit decides the rounding.",
        calculator=True,
        one=True,
    )
