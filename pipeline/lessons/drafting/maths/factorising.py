"""Factorising."""

from __future__ import annotations

from math import gcd

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
    """Return the topic of outcome alg.factorise; points: common factor, two squares, trinomials, combinations."""
    return Topic(
        name="factorising",
        can="factorise an expression fully",
        aim="Choose the right way to factorise, starting with a common factor",
        prior=("Expanding two brackets, and factor pairs of a whole number",),
        facts=(
            "Factorising is the reverse of expanding: it writes a sum as a product.",
            r"A difference of two squares factorises as \(a^2 - b^2 = (a + b)(a - b)\).",
            r"In \(x^2 + bx + c = (x + p)(x + q)\) the numbers p and q multiply to c and add to b.",
        ),
        keywords=(
            ("factorise", "write as a product of factors"),
            ("common factor", "something that divides every term"),
            ("trinomial", "an expression with three terms"),
        ),
        mistakes=(
            Mistake(
                r"A common factor may be left inside: \(6x^2 + 9x = 3(2x^2 + 3x)\) is finished.",
                r"Factorise fully: \(x\) also divides both terms, so it is \(3x(2x + 3)\).",
            ),
            Mistake(
                r"\(x^2 - 25\) is \((x - 5)^2\).",
                r"\((x - 5)^2\) has a term in \(x\); the difference of squares is \((x + 5)(x - 5)\).",
            ),
        ),
        explain=_FACTORISE,
        plain=_FACTORISE_PLAIN,
        non_example=r"\(x(x + 5) + 6\) is not factorised: it is still a sum, because 6 is added.",
        example=_factor_example,
        makers=(_factor_which, _common, _squares, _unitary, _non_unitary, _combined),
        starters=(_pairs, _highest),
    )


_FACTORISE = told(r"""
    Expanding turns a product into a sum. Factorising goes back. Always look first for a common factor, something that
    divides every term. In \(6x^2 + 9x\) both terms can be divided by 3 and by \(x\), so \(6x^2 + 9x = 3x(2x + 3)\).
    Next count the terms. Two terms that are squares with a minus between them are a difference of two squares: \(4x^2
    - 25 = (2x + 5)(2x - 5)\), because the middle terms \(-10x\) and \(10x\) cancel. Three terms may be two brackets.
    For \(x^2 + 7x + 12\) find two numbers that multiply to 12 and add to 7: they are 3 and 4, so it is \((x + 3)(x +
    4)\). If the number in front of \(x^2\) is not 1, try pairs and check the middle term: \(2x^2 + 7x + 3 = (2x +
    1)(x + 3)\), since \(6x + x = 7x\). Some expressions need two steps: in \(3x^2 - 12\) the 3 comes out first, and
    then \(3(x^2 - 4) = 3(x + 2)(x - 2)\). Expand at the end to check.
""")
_FACTORISE_PLAIN = told(r"""
    Factorising is expanding in reverse. First look for a common factor. It divides every term. In \(6x^2 + 9x\) it is
    \(3x\): \(6x^2 + 9x = 3x(2x + 3)\). Then count the terms. Two squares with a minus are a difference of two
    squares: \(4x^2 - 25 = (2x + 5)(2x - 5)\). The middle terms \(-10x\) and \(10x\) cancel. Three terms may be two
    brackets. In \(x^2 + 7x + 12\), find two numbers. They multiply to 12. They add to 7. They are 3 and 4: \((x +
    3)(x + 4)\). Is there a number before \(x^2\)? Try pairs: \(2x^2 + 7x + 3 = (2x + 1)(x + 3)\), since \(6x + x =
    7x\). Some need two steps. In \(3x^2 - 12\), take out 3: \(3(x^2 - 4) = 3(x + 2)(x - 2)\). Expand to check.
""")


def _factored(
    given: list[int],
    tex: str,
    text: str,
    *lines: Line,
    why: str,
    asks: tuple[int, ...],
    reveals: tuple[int, ...] = (),
    slip: Json | None = None,
) -> Question:
    return ask(
        f"Factorise fully {m(poly(given))}.",
        algebra(poly_code(given), text, "factorised", m(tex), errors=[slip] if slip else []),
        *lines,
        ("Write as a product.", f"{poly(given)} = {tex}", f"{poly_code(given)} = {text}"),
        why=why,
        asks=asks,
        reveals=reveals,
        hint="Is there a common factor? Then count the terms.",
    )


def _product(p: int, q: int) -> tuple[str, str]:
    """Return (x + p)(x + q) as TeX and code; a square where they are equal."""
    if p == q:
        return bracket(1, p) + "^2", bracket_code(1, p) + "^2"
    return bracket(1, p) + bracket(1, q), bracket_code(1, p) + "*" + bracket_code(1, q)


def _factor_example(draw: Draw) -> Example:
    k, p, q = draw.one([(2, 3, 5), (3, 2, 7), (2, 4, 7)])
    given = [k, k * (p + q), k * p * q]
    tex, text = _product(p, q)
    inner = [1, p + q, p * q]
    return example(
        f"Factorise fully {m(poly(given))}.",
        m(f"{k}{tex}"),
        (
            f"Take out the common factor {k}.",
            f"{poly(given)} = {k}({poly(inner)})",
            f"{poly_code(given)} = {k}*({poly_code(inner)})",
        ),
        (
            f"Find two numbers that multiply to {p * q} and add to {p + q}.",
            rf"{p} \times {q} = {p * q} \text{{ and }} {p} + {q} = {p + q}",
            f"{p}*{q} = {p * q}; {p} + {q} = {p + q}",
        ),
        ("Write the two brackets.", f"{poly(given)} = {k}{tex}", f"{poly_code(given)} = {k}*{text}"),
    )


def _factor_which(draw: Draw) -> Question:
    n = draw.whole(3, 11)
    given = [1, 0, -n * n]
    key = (m(bracket(1, n) + bracket(1, -n)), bracket_code(1, n) + "*" + bracket_code(1, -n), poly_code(given))
    return pick(
        f"Choose the factorised form of {m(poly(given))}.",
        key,
        (m(bracket(1, -n) + "^2"), bracket_code(1, -n) + "^2", "This has a middle term when expanded.", "1"),
        (m(bracket(1, n) + "^2"), bracket_code(1, n) + "^2", "This has a middle term and ends in plus.", "1"),
        (m(f"x(x - {n * n})"), f"x*(x - {n * n})", "The last term has no x to take out.", ""),
        lines=[("Write both terms as squares.", rf"{poly(given)} = x^2 - {n}^2", f"{poly_code(given)} = x^2 - {n}^2")],
        why=f"It is a difference of two squares, the squares of x and {n}.",
        asks=(1,),
        reveals=(1,),
    )


def _common(draw: Draw) -> Question:
    k, a = draw.whole(2, 8), draw.whole(2, 7)
    b = draw.one([n for n in range(-9, 10) if n and gcd(n, a) == 1])
    given = [k * a, k * b, 0]
    slip_code = f"{k}*({poly_code([a, b, 0])})"
    return _factored(
        given,
        f"{k}x{bracket(a, b)}",
        f"{k}*x*{bracket_code(a, b)}",
        (f"Find the highest common factor, {m(f'{k}x')}.", "", ""),
        why="The number and the letter both divide every term, so both come out.",
        asks=(0,),
        reveals=(0,),
        slip=wrong("0", slip_code, slip_code, "Took out the number and left the letter inside"),
    )


def _squares(draw: Draw) -> Question:
    p = draw.whole(1, 5)
    a = draw.one([n for n in range(2, 10) if gcd(n, p) == 1])
    given = [p * p, 0, -a * a]
    first = "x" if p == 1 else f"({p}x)"
    code = "x" if p == 1 else f"({p}*x)"
    return _factored(
        given,
        bracket(p, a) + bracket(p, -a),
        bracket_code(p, a) + "*" + bracket_code(p, -a),
        (
            "Write both terms as squares.",
            f"{poly(given)} = {first}^2 - {a}^2",
            f"{poly_code(given)} = {code}^2 - {a}^2",
        ),
        why="The two middle terms cancel when the brackets are multiplied out, so only the squares are left.",
        asks=(1,),
        reveals=(1,),
    )


def _unitary(draw: Draw) -> Question:
    p = draw.nonzero(-9, 9)
    q = draw.one([n for n in range(-9, 10) if n and n not in (p, -p)])
    tex, text = _product(p, q)
    low, high = f"({p})" if p < 0 else str(p), f"({q})" if q < 0 else str(q)
    return _factored(
        [1, p + q, p * q],
        tex,
        text,
        (
            f"Find two numbers that multiply to {p * q} and add to {p + q}.",
            rf"{low} \times {high} = {p * q}",
            f"{low}*{high} = {p * q}",
        ),
        why="The product of the two numbers is the last term and their sum is the number before x.",
        asks=(2,),
    )


def _non_unitary(draw: Draw) -> Question:
    a = draw.one((2, 3, 5))
    b = draw.one([n for n in range(-7, 8) if n and gcd(n, a) == 1])
    d = draw.one([n for n in range(-6, 7) if n and a * n + b])
    given = [a, a * d + b, b * d]
    inner, outer = poly([a * d, 0]), poly([b, 0])
    return _factored(
        given,
        bracket(a, b) + bracket(1, d),
        bracket_code(a, b) + "*" + bracket_code(1, d),
        (
            "Try pairs until the middle terms fit.",
            f"{inner} {'-' if b < 0 else '+'} {outer.lstrip('-')} = {poly([a * d + b, 0])}",
            f"{poly_code([a * d, 0])} + ({poly_code([b, 0])}) = {poly_code([a * d + b, 0])}",
        ),
        why="Both middle products are needed to check the pair: together they make the term in x.",
        asks=(2,),
    )


def _combined(draw: Draw) -> Question:
    k, n = draw.one((2, 3, 5, 7)), draw.whole(2, 9)
    given = [k, 0, -k * n * n]
    return _factored(
        given,
        f"{k}{bracket(1, n)}{bracket(1, -n)}",
        f"{k}*{bracket_code(1, n)}*{bracket_code(1, -n)}",
        (
            "Take out the common factor.",
            f"{poly(given)} = {k}({poly([1, 0, -n * n])})",
            f"{poly_code(given)} = {k}*({poly_code([1, 0, -n * n])})",
        ),
        why="After the common factor is out, a difference of two squares is left inside the bracket.",
        asks=(0, 1, 3),
        reveals=(0, 1),
    )


def _pairs(draw: Draw) -> Question:
    p, q = draw.some([2, 3, 4, 5, 6, 7, 8, 9], 2)
    low, high = sorted((p, q))
    return ask(
        f"Two whole numbers multiply to {p * q} and add to {p + q}. The smaller one is {low}. Calculate the larger.",
        algebra(f"{p + q} - {low}", str(high), "any", str(high), letters=("x",)),
        ("Take the smaller number from the sum.", f"{p + q} - {low} = {high}", f"{p + q} - {low} = {high}"),
        ("Check the product.", rf"{low} \times {high} = {p * q}", f"{low}*{high} = {p * q}"),
        why="Pairs with a given product and sum are what two brackets are built from.",
        one=True,
    )


def _highest(draw: Draw) -> Question:
    shared = draw.whole(2, 9)
    one, two = draw.one([(2, 3), (3, 4), (2, 5), (3, 5), (4, 5)])
    return ask(
        f"The numbers {shared * one} and {shared * two} are {shared} times {one} and a number. Calculate that number.",
        algebra(f"{shared * two}/{shared}", str(two), "any", str(two)),
        (
            f"Divide by the common factor {shared}.",
            rf"{shared * two} \div {shared} = {two}",
            f"{shared * two}/{shared} = {two}",
        ),
        why=f"Both numbers share the factor {shared}; what is left after dividing has no common factor.",
        one=True,
    )
