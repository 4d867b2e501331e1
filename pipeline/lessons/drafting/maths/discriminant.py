"""The discriminant."""

from __future__ import annotations

from pipeline.lessons.drafting.maths.quadratic_formula import substitute
from pipeline.lessons.drafting.maths.tex import (
    Line,
    ask,
    example,
    frac,
    m,
    pick,
    poly,
    told,
)
from pipeline.lessons.drafting.parts import (
    Draw,
    Example,
    Mistake,
    Question,
    Topic,
    numeric,
    words,
    wrong,
)


def topic() -> Topic:
    """Return the topic of outcome alg.discriminant; points: know and use b²-4ac, name the roots."""
    return Topic(
        name="the discriminant",
        can="determine the nature of the roots of a quadratic equation with the discriminant",
        aim="Say how many roots there are without solving",
        prior=("The quadratic formula, and reading off a, b and c with their signs",),
        facts=(
            r"The discriminant of \(ax^2 + bx + c = 0\) is \(b^2 - 4ac\).",
            "A positive discriminant means two real and distinct roots.",
            "If it is 0 there are two equal real roots; if it is negative there are no real roots.",
        ),
        keywords=(
            ("discriminant", "the number under the root in the quadratic formula"),
            ("nature of the roots", "how many real solutions there are, and whether they are equal"),
        ),
        mistakes=(
            Mistake(
                "A discriminant of 0 means no roots.",
                "Then the root in the formula is 0, so both signs give the same solution: two equal roots.",
            ),
            Mistake(
                "The minus sign of b may be left out, or squared to a minus.",
                "Squaring b with its sign always gives a positive number, so brackets are needed.",
            ),
        ),
        explain=_DISCRIMINANT,
        plain=_DISCRIMINANT_PLAIN,
        non_example=r"\(b^2 - 4ac\) is not a solution of the equation: it only tells how many real solutions "
        r"there are.",
        example=_discriminant_example,
        makers=(_nature, _value, _describe, _equal_roots),
        starters=(substitute, _sign),
    )


_DISCRIMINANT = told(r"""
    The graph of a quadratic can cross the x-axis twice, touch it once, or miss it. The roots of the equation are
    where it meets the axis. You can tell which case it is without a drawing. In the quadratic formula the root holds
    \(b^2 - 4ac\), the discriminant. If it is positive, it has a square root, and the signs plus and minus give two
    different answers: two real and distinct roots. If it is 0, plus and minus make no difference: there are two equal
    real roots, also called one repeated root. If it is negative, no real number has this square: there are no real
    roots. Take \(3x^2 - 4x + 2 = 0\). Here \(a = 3\), \(b = -4\) and \(c = 2\), so \(b^2 - 4ac = (-4)^2 - 4 \times 3
    \times 2 = 16 - 24 = -8\). The discriminant is less than 0, so there are no real roots. In an answer, state the
    value, compare it with 0, and then name the roots.
""")
_DISCRIMINANT_PLAIN = told(r"""
    The graph of a quadratic can cross the x-axis twice. It can touch it once. It can miss it. The discriminant tells
    you which. It is \(b^2 - 4ac\). Is it more than 0? Then there are two real and distinct roots. Is it 0? Then there
    are two equal real roots, one repeated root. Is it less than 0? Then there are no real roots. Take \(3x^2 - 4x + 2
    = 0\). So \(a = 3\), \(b = -4\), \(c = 2\). Then \(b^2 - 4ac = (-4)^2 - 4 \times 3 \times 2 = 16 - 24 = -8\). This
    is less than 0. So there are no real roots. Write the value. Compare it with 0. Then name the roots.
""")
_NATURES = {1: "two real and distinct roots", 0: "two equal real roots", -1: "no real roots"}


def _discriminant_lines(a: int, b: int, c: int) -> tuple[Line, ...]:
    value = b * b - 4 * a * c
    sign = "> 0" if value > 0 else "= 0" if value == 0 else "< 0"
    nature = _NATURES[(value > 0) - (value < 0)]
    low = f"({c})" if c < 0 else str(c)
    return (
        ("Substitute a, b and c with their signs.", rf"b^2 - 4ac = ({b})^2 - 4 \times {a} \times {low}", ""),
        ("Calculate the discriminant.", rf"b^2 - 4ac = {value}", f"({b})^2 - 4*{a}*{low} = {value}"),
        (f"Compare with 0 and name the roots: {nature}.", f"{value} {sign}" if value else "0 = 0", ""),
    )


def _quadratic(draw: Draw, sign: int) -> tuple[int, int, int]:
    """Return a, b, c whose discriminant has this sign."""
    if sign == 0:
        k, p, q = 1, draw.whole(1, 3), draw.nonzero(-5, 5)
        return k * p * p, 2 * p * q, q * q
    while True:
        a, b, c = draw.whole(1, 5), draw.nonzero(-8, 8), draw.nonzero(-6, 6)
        value = b * b - 4 * a * c
        if value * sign > 0:
            return a, b, c


def _discriminant_example(draw: Draw) -> Example:
    a, b, c = draw.one([(2, -7, 4), (5, 3, 2), (4, -11, 6)])
    nature = _NATURES[1 if b * b > 4 * a * c else -1]
    return example(
        f"Determine the nature of the roots of {m(poly([a, b, c]) + ' = 0')}.", nature, *_discriminant_lines(a, b, c)
    )


def _nature(draw: Draw) -> Question:
    value = draw.one((0, draw.whole(1, 60), -draw.whole(1, 60)))
    right = _NATURES[(value > 0) - (value < 0)]
    others = [text for text in (*_NATURES.values(), "two real roots and one repeated root") if text != right]
    says = {text: "This belongs to another sign of the discriminant." for text in others}
    return pick(
        f"A quadratic equation has discriminant {m(str(value))}. Choose the nature of its roots.",
        (right, "", ""),
        *((text, "", says[text], "0" if value == 0 and "no real" in text else "") for text in others),
        lines=[
            ("Compare the discriminant with 0.", f"{value} {'>' if value > 0 else '<' if value < 0 else '='} 0", "")
        ],
        why="Positive: two real and distinct roots. Zero: two equal real roots. Negative: no real roots.",
        asks=(1,),
    )


def _value(draw: Draw) -> Question:
    a, b, c = _quadratic(draw, draw.one((-1, 1)))
    value = b * b - 4 * a * c
    low = f"({c})" if c < 0 else str(c)
    slip = -b * b - 4 * a * c
    return ask(
        f"Calculate the discriminant of {m(poly([a, b, c]) + ' = 0')}.",
        numeric(
            f"({b})^2 - 4*{a}*{low}",
            str(value),
            m(str(value)),
            errors=[wrong("1", f"-({b})^2 - 4*{a}*{low}", str(slip), "Squared b without its sign in brackets")],
        ),
        *_discriminant_lines(a, b, c)[:2],
        why="b is squared with its sign, so the first part is positive; then 4ac is taken off.",
        reveals=(1,),
    )


def _describe(draw: Draw) -> Question:
    sign = draw.one((1, 0, -1))
    a, b, c = _quadratic(draw, sign)
    value = b * b - 4 * a * c
    nature = _NATURES[sign]
    return ask(
        f"Determine the nature of the roots of {m(poly([a, b, c]) + ' = 0')}.",
        words(
            f"Discriminant {m(str(value))}, so {nature}",
            [nature],
            must_have=[str(value), nature],
            reject=["The solutions of the equation, without its discriminant"],
        ),
        *_discriminant_lines(a, b, c),
        why="The sign of the discriminant decides; the value alone does not name the roots.",
        asks=(0, 1),
        reveals=(0, 1),
    )


def _equal_roots(draw: Draw) -> Question:
    a, half = draw.whole(1, 3), draw.whole(1, 5)
    b = 2 * a * half
    c = a * half * half
    return ask(
        rf"The equation \({poly([a, b, 0])} + c = 0\) has equal roots. Determine the value of c.",
        numeric(f"{b}^2/(4*{a})", str(c), m(f"c = {c}")),
        ("Equal roots mean that the discriminant is 0.", rf"{b}^2 - 4 \times {a} \times c = 0", f"{b}^2 - 4*{a}*c = 0"),
        ("Solve for c.", rf"c = {frac(b * b, 4 * a)} = {c}", f"c = {b}^2/(4*{a}) = {c}"),
        why="With equal roots the formula's root is 0, so the discriminant is 0.",
        asks=(0, 1),
        reveals=(0,),
    )


def _sign(draw: Draw) -> Question:
    a, b = draw.whole(11, 60), draw.whole(61, 99)
    return ask(
        f"Calculate {m(f'{a} - {b}')}.",
        numeric(f"{a} - {b}", str(a - b), m(str(a - b))),
        ("Subtract; the result is below 0.", f"{a} - {b} = {a - b}", f"{a} - {b} = {a - b}"),
        why="More is taken off than there is, so the result is negative.",
        one=True,
    )
