"""Completing the square."""

from __future__ import annotations

from fractions import Fraction

from pipeline.lessons.drafting.maths.tex import (
    Line,
    ask,
    bracket,
    bracket_code,
    code,
    example,
    m,
    number,
    pick,
    poly,
    poly_code,
    signed,
    told,
)
from pipeline.lessons.drafting.parts import Draw, Example, Mistake, Question, Topic, algebra, numeric, wrong


def topic() -> Topic:
    """Return the topic of outcome alg.complete_square."""
    return Topic(
        name="completing the square",
        can="express a quadratic in completed square form",
        aim="Rewrite a quadratic as a square and a number",
        prior=("Expanding a squared bracket, and halving whole numbers",),
        facts=(
            "The number in the bracket is half of the number in front of x.",
            "The square of that half is added inside the bracket, so it is taken off again outside.",
            r"\((x + p)^2 + q\) shows the least value of the quadratic, q.",
        ),
        keywords=(("completed square form", "a squared bracket with a number added or taken off"),),
        mistakes=(
            Mistake(
                r"\(x^2 + 6x + 11\) is \((x + 6)^2 + 11\).",
                r"\((x + 6)^2\) has the middle term \(12x\); half of 6 is needed: \((x + 3)^2 + 2\).",
            ),
            Mistake(
                "The last number stays as it is.",
                "The squared bracket brings its own number, so that number has to be taken off.",
            ),
        ),
        explain=_SQUARE,
        plain=_SQUARE_PLAIN,
        non_example=r"\(x(x + 6) + 11\) equals \(x^2 + 6x + 11\), but it is not completed square form: no "
        r"bracket is squared.",
        example=_square_example,
        makers=(_square_which, _even, _negative, _odd, _least),
        starters=(_half, _bracket_square),
    )


_SQUARE = told(r"""
    Picture a square of side \(x\), with a strip of width 3 along two sides. Its area is \(x^2 + 3x + 3x = x^2 + 6x\).
    One corner is missing: a small square of 3 by 3. With it the whole is a square of side \(x + 3\). So \(x^2 + 6x =
    (x + 3)^2 - 9\). This is called completing the square. For \(x^2 + 6x + 11\) take half of 6, which is 3, write
    \((x + 3)^2\), and take off 9, the square of 3. Then \(x^2 + 6x + 11 = (x + 3)^2 - 9 + 11 = (x + 3)^2 + 2\). With
    a negative middle term the half is negative: \(x^2 - 8x + 10 = (x - 4)^2 - 16 + 10 = (x - 4)^2 - 6\). With an odd
    middle number, work in fractions: half of 5 is \(\frac{5}{2}\) and its square is \(\frac{25}{4}\). The form is
    useful because a square is never less than 0. So the least value of \((x + 3)^2 + 2\) is 2, when \(x = -3\).
    Expand to check.
""")
_SQUARE_PLAIN = told(r"""
    Take a square of side \(x\). Put a strip of width 3 along two sides. The area is \(x^2 + 3x + 3x = x^2 + 6x\). A
    corner of 3 by 3 is missing. With it, the side is \(x + 3\). So \(x^2 + 6x = (x + 3)^2 - 9\). Now take \(x^2 + 6x
    + 11\). Half of 6 is 3. Write \((x + 3)^2\). Take off 9. You get \((x + 3)^2 - 9 + 11 = (x + 3)^2 + 2\). A minus
    works too: \(x^2 - 8x + 10 = (x - 4)^2 - 16 + 10 = (x - 4)^2 - 6\). Half of 5 is \(\frac{5}{2}\). Its square is
    \(\frac{25}{4}\). A square is never less than 0. So the least value of \((x + 3)^2 + 2\) is 2, when \(x = -3\).
""")


def _completed(p: Fraction, q: Fraction) -> tuple[str, str]:
    """Return (x + p)² + q as TeX and code."""
    inside = f"x {'-' if p < 0 else '+'} {number(abs(p))}"
    code_inside = f"x {'-' if p < 0 else '+'} {code(abs(p))}"
    end = "" if not q else f" {'-' if q < 0 else '+'} {number(abs(q))}"
    code_end = "" if not q else f" {'-' if q < 0 else '+'} {code(abs(q))}"
    left = r"\left(" + inside + r"\right)" if p.denominator > 1 else f"({inside})"
    return f"{left}^2{end}", f"({code_inside})^2{code_end}"


def _square_lines(b: int, c: int) -> tuple[tuple[Line, ...], str, str]:
    p = Fraction(b, 2)
    q = c - p * p
    tex, text = _completed(p, q)
    start, start_code = _completed(p, -p * p)
    given, given_code = poly([1, b, c]), poly_code([1, b, c])
    return (
        (
            (f"Halve the number in front of x: half of {b} is {m(number(p))}.", number(p), f"{b}/2 = {code(p)}"),
            (
                "Write the squared bracket and take off its number.",
                f"{given} = {start}{signed(c)}",
                f"{given_code} = {start_code}{signed(c)}",
            ),
            ("Put the numbers together.", f"{given} = {tex}", f"{given_code} = {text}"),
        ),
        tex,
        text,
    )


def _square_example(draw: Draw) -> Example:
    b, c = draw.one([(10, 7), (12, 5), (14, 20)])
    lines, tex, _ = _square_lines(b, c)
    return example(rf"Express \({poly([1, b, c])}\) in the form \((x + p)^2 + q\).", m(tex), *lines)


def _square_which(draw: Draw) -> Question:
    p = draw.whole(2, 8)
    q = draw.one([n for n in range(-9, 10) if n])
    b, c = 2 * p, p * p + q
    lines, tex, text = _square_lines(b, c)
    others = (
        (_completed(Fraction(b), Fraction(c)), "The number was not halved.", "0"),
        (_completed(Fraction(p), Fraction(c)), "The number of the bracket was not taken off.", "1"),
        (_completed(Fraction(p), Fraction(c + p * p)), "The number of the bracket was added.", "1"),
    )
    return pick(
        f"Choose the completed square form of {m(poly([1, b, c]))}.",
        (m(tex), text, poly_code([1, b, c])),
        *((m(form[0]), form[1], says, mistake) for form, says, mistake in others),
        lines=lines,
        why=f"Half of {b} is {p}, and the square of {p} is taken off.",
        reveals=(0, 1),
    )


def _complete(draw: Draw, b: int, c: int) -> Question:
    lines, tex, text = _square_lines(b, c)
    slip, slip_code = _completed(Fraction(b), Fraction(c))
    del slip
    return ask(
        rf"Express \({poly([1, b, c])}\) in the form \((x + p)^2 + q\).",
        algebra(
            poly_code([1, b, c]),
            text,
            "completed_square",
            m(tex),
            errors=[wrong("0", slip_code, slip_code, "Did not halve the number in front of x")],
        ),
        *lines,
        why="The squared bracket makes the terms in x; its own number must be taken off, because it was not "
        "there before.",
        reveals=(0, 1),
        hint="What is half of the number in front of x?",
    )


def _even(draw: Draw) -> Question:
    p = draw.whole(2, 9)
    return _complete(draw, 2 * p, draw.whole(1, 40))


def _negative(draw: Draw) -> Question:
    p = draw.whole(2, 9)
    return _complete(draw, -2 * p, draw.nonzero(-15, 40))


def _odd(draw: Draw) -> Question:
    return _complete(draw, draw.one((-9, -7, -5, -3, 3, 5, 7, 9)), draw.nonzero(-6, 12))


def _least(draw: Draw) -> Question:
    p, q = draw.nonzero(-8, 8), draw.nonzero(-12, 12)
    b, c = 2 * p, p * p + q
    lines, _, _ = _square_lines(b, c)
    return ask(
        rf"Calculate the least value of \({poly([1, b, c])}\) by completing the square.",
        numeric(f"{c} - ({b}/2)^2", str(q), m(str(q))),
        *lines,
        (f"The square is least, 0, when {m(f'x = {-p}')}.", str(q), f"(({-p}) + ({p}))^2 + ({q}) = {q}"),
        why="A square is never negative, so the least value is the number beside it.",
        reveals=(1,),
    )


def _half(draw: Draw) -> Question:
    n = draw.whole(3, 12)
    return ask(
        f"Calculate the square of half of {2 * n}.",
        numeric(f"({2 * n}/2)^2", str(n * n), str(n * n)),
        ("Halve first, then square.", f"{n}^2 = {n * n}", f"({2 * n}/2)^2 = {n * n}"),
        why="Halving comes first; then the half is multiplied by itself.",
        one=True,
    )


def _bracket_square(draw: Draw) -> Question:
    p = draw.nonzero(-9, 9)
    result = [1, 2 * p, p * p]
    return ask(
        f"Expand {m(bracket(1, p) + '^2')}.",
        algebra(bracket_code(1, p) + "^2", poly_code(result), "expanded", m(poly(result))),
        (
            "Multiply the bracket by itself.",
            f"{bracket(1, p)}^2 = {poly(result)}",
            f"{bracket_code(1, p)}^2 = {poly_code(result)}",
        ),
        why="There are two equal middle terms, so the number in front of x is twice the number in the bracket.",
        one=True,
    )
