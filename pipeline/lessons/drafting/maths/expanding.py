"""Expanding brackets."""

from __future__ import annotations

from pipeline.lessons.drafting.maths.tex import (
    Line,
    ask,
    bracket,
    bracket_code,
    example,
    m,
    pick,
    poly,
    poly_code,
    told,
)
from pipeline.lessons.drafting.parts import (
    Draw,
    Example,
    Json,
    Mistake,
    Question,
    Topic,
    algebra,
    wrong,
)


def topic() -> Topic:
    """Return the topic of outcome alg.expand; points: sums, ax(bx+c), two brackets, three terms, integers."""
    return Topic(
        name="expanding brackets",
        can="expand brackets and simplify the result",
        aim="Multiply out brackets and collect like terms",
        prior=("Collecting like terms, and multiplying positive and negative numbers",),
        facts=(
            "Every term inside a bracket is multiplied by what stands in front of it.",
            "Two brackets are multiplied by multiplying every term of one by every term of the other.",
            "After expanding, like terms are collected.",
        ),
        keywords=(
            ("expand", "multiply out, so that no bracket is left"),
            ("like terms", "terms with the same letters to the same powers"),
        ),
        mistakes=(
            Mistake(
                r"Only the first term is multiplied: \(3(x + 5) = 3x + 5\).",
                r"Three lots of \(x + 5\) hold three fives: \(3(x + 5) = 3x + 15\).",
            ),
            Mistake(
                r"A squared bracket squares each term: \((x + 4)^2 = x^2 + 16\).",
                r"There are two middle terms: \((x + 4)(x + 4) = x^2 + 8x + 16\).",
            ),
        ),
        explain=_EXPAND,
        plain=_EXPAND_PLAIN,
        non_example=r"\(5x + 15\) is not expanded further: it has no bracket and no like terms.",
        example=_expand_example,
        makers=(_expand_which, _pair, _outside, _double, _cubic, _square, _sum),
        starters=(_collect, _signs),
    )


_EXPAND = told(r"""
    A garden is \(x + 3\) metres long and \(x + 2\) metres wide. Its area is \((x + 3)(x + 2)\). Cut the garden into
    four parts: \(x\) by \(x\), \(x\) by 2, 3 by \(x\), and 3 by 2. Together they are \(x^2 + 2x + 3x + 6\). Collect
    like terms, and the area is \(x^2 + 5x + 6\). So each term of the first bracket multiplies each term of the
    second. With one bracket it is shorter: \(4(2x - 3) = 8x - 12\), because both terms are multiplied by 4. A letter
    outside works in the same way: \(2x(3x - 5) = 6x^2 - 10x\). Take care with signs. A minus in front changes every
    sign inside: \(-2(x - 4) = -2x + 8\). With more terms nothing new happens, there are only more products: \((x +
    2)(x^2 + 3x - 1) = x^3 + 3x^2 - x + 2x^2 + 6x - 2\), which is \(x^3 + 5x^2 + 5x - 2\). Check an answer by choosing
    a number for \(x\): both sides must give the same value.
""")
_EXPAND_PLAIN = told(r"""
    A garden is \(x + 3\) metres by \(x + 2\) metres. Its area is \((x + 3)(x + 2)\). Cut it into four parts. Add
    them: \(x^2 + 2x + 3x + 6\). Collect like terms: \(x^2 + 5x + 6\). Each term in one bracket multiplies each term
    in the other. One bracket is shorter: \(4(2x - 3) = 8x - 12\). A letter outside works too: \(2x(3x - 5) = 6x^2 -
    10x\). A minus in front changes each sign: \(-2(x - 4) = -2x + 8\). More terms give more products: \((x + 2)(x^2 +
    3x - 1) = x^3 + 3x^2 - x + 2x^2 + 6x - 2\). This is \(x^3 + 5x^2 + 5x - 2\). Check with a number for \(x\). Both
    sides must be equal.
""")


def _expanded(
    stem: str,
    given: tuple[str, str],
    middle: str,
    result: list[int],
    *,
    asks: tuple[int, ...],
    slip: Json | None = None,
) -> Question:
    tex, text = given
    answer = poly_code(result)
    lines: list[Line] = [
        ("Multiply every term.", f"{tex} = {middle}", f"{text} = {_code(middle)}"),
        ("Collect like terms.", f"{tex} = {poly(result)}", f"{text} = {answer}"),
    ]
    return ask(
        stem,
        algebra(text, answer, "expanded", m(poly(result)), errors=[slip] if slip else []),
        *lines,
        why="Every term of one factor multiplies every term of the other; then like terms are collected.",
        asks=asks,
        reveals=(0,) if slip else (),
        hint="How many products are there before you collect terms?",
    )


def _code(tex: str) -> str:
    """Return a sum of terms written as TeX for the evaluator: 3x^2 becomes 3*x^2."""
    text = ""
    for index, sign in enumerate(tex):
        if sign in "x(" and index and tex[index - 1].isdigit():
            text += "*"
        text += sign
    return text


def _terms(*terms: tuple[int, int]) -> str:
    """Return (factor, power) terms in their order, not collected, as TeX."""
    shown = ""
    for factor, power in terms:
        size = poly([factor if power == 0 else abs(factor)] + [0] * power) if power else str(abs(factor))
        shown += (" - " if factor < 0 else " + ") + size if shown else ("-" if factor < 0 else "") + size
    return shown


def _expand_example(draw: Draw) -> Example:
    a, b, c, d = draw.one([(2, 3, 1, 7), (3, 4, 1, 9), (2, 7, 1, 8)])
    tex, text = bracket(a, b) + bracket(c, -d), bracket_code(a, b) + "*" + bracket_code(c, -d)
    middle = _terms((a * c, 2), (-a * d, 1), (b * c, 1), (-b * d, 0))
    result = [a * c, b * c - a * d, -b * d]
    return example(
        f"Expand and simplify {m(tex)}.",
        m(poly(result)),
        (f"Multiply {m(poly([a, 0]))} by both terms of the second bracket.", _terms((a * c, 2), (-a * d, 1)), ""),
        (f"Multiply {b} by both terms of the second bracket.", f"{tex} = {middle}", f"{text} = {_code(middle)}"),
        ("Collect like terms.", f"{tex} = {poly(result)}", f"{text} = {poly_code(result)}"),
    )


def _expand_which(draw: Draw) -> Question:
    a, b, c = draw.whole(2, 6), draw.whole(2, 5), draw.whole(2, 9)
    key = [a * b, a * c]
    others = [[a * b, c], [a * b, a * c + a], [a + b, a + c]]
    texts = (
        ("Only the first term was multiplied.", "0"),
        ("The product of the numbers is not right.", ""),
        ("The numbers were added, not multiplied.", ""),
    )
    if len({tuple(o) for o in [key, *others]}) < 4:
        return _expand_which(draw)
    return pick(
        f"Choose the expansion of {m(f'{a}{bracket(b, c)}')}.",
        (m(poly(key)), poly_code(key), f"{a}*{bracket_code(b, c)}"),
        *((m(poly(o)), poly_code(o), says, mistake) for o, (says, mistake) in zip(others, texts, strict=True)),
        lines=[
            (
                "Multiply both terms.",
                f"{a}{bracket(b, c)} = {poly(key)}",
                f"{a}*{bracket_code(b, c)} = {poly_code(key)}",
            )
        ],
        why=f"Both terms inside are multiplied by {a}.",
        asks=(0, 4),
    )


def _pair(draw: Draw) -> Question:
    a, b, c, d, e, f = (
        draw.whole(2, 6),
        draw.whole(1, 4),
        draw.nonzero(-7, 7),
        draw.whole(2, 5),
        draw.whole(1, 3),
        draw.nonzero(-6, 6),
    )
    tex = f"{a}{bracket(b, c)} + {d}{bracket(e, f)}"
    text = f"{a}*{bracket_code(b, c)} + {d}*{bracket_code(e, f)}"
    middle = _terms((a * b, 1), (a * c, 0), (d * e, 1), (d * f, 0))
    result = [a * b + d * e, a * c + d * f]
    slip_code = poly_code([a * b + d * e, c + f])
    slip = wrong("0", slip_code, slip_code, "Multiplied only the first term of each bracket")
    return _expanded(f"Expand and simplify {m(tex)}.", (tex, text), middle, result, asks=(0,), slip=slip)


def _outside(draw: Draw) -> Question:
    a, b, c = draw.whole(2, 7), draw.whole(2, 6), draw.nonzero(-9, 9)
    tex, text = f"{a}x{bracket(b, c)}", f"{a}*x*{bracket_code(b, c)}"
    result = [a * b, a * c, 0]
    return ask(
        f"Expand {m(tex)}.",
        algebra(
            text,
            poly_code(result),
            "expanded",
            m(poly(result)),
            errors=[
                wrong(
                    "0",
                    poly_code([a * b, 0, c]),
                    poly_code([a * b, 0, c]),
                    "Multiplied only the first term",
                )
            ],
        ),
        ("Multiply the first term.", rf"{a}x \times {b}x = {a * b}x^2", f"{a}*x*{b}*x = {a * b}*x^2"),
        ("Multiply the second term.", f"{tex} = {poly(result)}", f"{text} = {poly_code(result)}"),
        why="Both terms inside the bracket are multiplied by the term in front of it.",
        asks=(1,),
        reveals=(0,),
    )


def _double(draw: Draw) -> Question:
    a, b, c, d = draw.whole(1, 4), draw.nonzero(-8, 8), draw.whole(1, 3), draw.nonzero(-8, 8)
    tex, text = bracket(a, b) + bracket(c, d), bracket_code(a, b) + "*" + bracket_code(c, d)
    middle = _terms((a * c, 2), (a * d, 1), (b * c, 1), (b * d, 0))
    return _expanded(f"Expand and simplify {m(tex)}.", (tex, text), middle, [a * c, a * d + b * c, b * d], asks=(2,))


def _cubic(draw: Draw) -> Question:
    a, b = draw.whole(1, 2), draw.nonzero(-5, 5)
    c, d, e = draw.whole(1, 3), draw.nonzero(-6, 6), draw.nonzero(-6, 6)
    tex = bracket(a, b) + f"({poly([c, d, e])})"
    text = bracket_code(a, b) + f"*({poly_code([c, d, e])})"
    middle = _terms((a * c, 3), (a * d, 2), (a * e, 1), (b * c, 2), (b * d, 1), (b * e, 0))
    return _expanded(
        f"Expand and simplify {m(tex)}.", (tex, text), middle, [a * c, a * d + b * c, a * e + b * d, b * e], asks=(3,)
    )


def _square(draw: Draw) -> Question:
    a, b = draw.whole(1, 4), draw.nonzero(-7, 7)
    tex, text = bracket(a, b) + "^2", bracket_code(a, b) + "^2"
    middle = _terms((a * a, 2), (a * b, 1), (a * b, 1), (b * b, 0))
    slip_code = poly_code([a * a, 0, b * b])
    slip = wrong("1", slip_code, slip_code, "Squared each term and left out the middle terms")
    return _expanded(
        f"Expand and simplify {m(tex)}.", (tex, text), middle, [a * a, 2 * a * b, b * b], asks=(2, 4), slip=slip
    )


def _sum(draw: Draw) -> Question:
    a, b, c = draw.whole(1, 3), draw.whole(2, 9), draw.whole(2, 9)
    place = draw.place()
    tex, text = f"{bracket(a, b)}{bracket(1, c)}", f"{bracket_code(a, b)}*{bracket_code(1, c)}"
    middle = _terms((a, 2), (a * c, 1), (b, 1), (b * c, 0))
    stem = (
        f"A playground in {place} is {m(poly([a, b]))} metres long and {m(poly([1, c]))} metres wide. Express its "
        "area without brackets, in its simplest form."
    )
    return _expanded(stem, (tex, text), middle, [a, a * c + b, b * c], asks=(2,))


def _collect(draw: Draw) -> Question:
    a, b, c, d = draw.whole(2, 9), draw.whole(2, 9), draw.whole(2, 9), draw.whole(1, 9)
    tex, text = f"{a}x + {b} + {c}x - {d}", f"{a}*x + {b} + {c}*x - {d}"
    result = [a + c, b - d]
    return ask(
        f"Simplify {m(tex)}.",
        algebra(text, poly_code(result), "expanded", m(poly(result))),
        ("Add the terms in x, then the numbers.", f"{tex} = {poly(result)}", f"{text} = {poly_code(result)}"),
        why="Only like terms can be added: terms in x with terms in x, numbers with numbers.",
        one=True,
    )


def _signs(draw: Draw) -> Question:
    a, b = draw.whole(2, 9), draw.whole(2, 9)
    tex = rf"-{a}x \times -{b}"
    return ask(
        f"Simplify {m(tex)}.",
        algebra(f"-{a}*x*(-{b})", f"{a * b}*x", "any", m(f"{a * b}x")),
        ("Multiply the numbers; two minus signs give a plus.", f"{tex} = {a * b}x", f"-{a}*x*(-{b}) = {a * b}*x"),
        why="A negative times a negative is positive.",
        one=True,
    )
