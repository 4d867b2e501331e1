"""Linear equations and inequations."""

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
    told,
)
from pipeline.lessons.drafting.parts import (
    Draw,
    Example,
    Json,
    Mistake,
    Question,
    Topic,
    equation,
    numeric,
)


def topic() -> Topic:
    """Return the topic of outcome alg.linear; points: rational coefficients, rational solutions."""
    return Topic(
        name="linear equations and inequations",
        can="solve a linear equation or inequation, also with fractions",
        aim="Keep both sides in balance until the letter stands alone",
        prior=("Expanding a bracket, and adding and multiplying fractions and negative numbers",),
        facts=(
            "Doing the same to both sides of an equation keeps it true.",
            "Multiplying every term by the common denominator removes fractions.",
            "Multiplying or dividing an inequation by a negative number turns its sign round.",
        ),
        keywords=(
            ("equation", "a statement that two expressions have the same value"),
            ("inequation", "a statement that one expression is less or more than another"),
        ),
        mistakes=(
            Mistake(
                r"A term keeps its sign when it goes to the other side: \(5x = 2x + 12\) gives \(7x = 12\).",
                r"Taking \(2x\) from both sides leaves \(3x = 12\).",
            ),
            Mistake(
                r"\(-2x < 6\) gives \(x < -3\).",
                r"Dividing by \(-2\) turns the sign: \(x > -3\). Test with \(x = 0\), which fits both.",
            ),
        ),
        explain=_LINEAR,
        plain=_LINEAR_PLAIN,
        non_example=r"\(x^2 + 3 = 12\) is not linear, because the letter is squared.",
        example=_linear_example,
        makers=(_linear_which, _both_sides, _fraction_side, _inequation, _bracket_equation, _turned, _tickets),
        starters=(one_step, value_of),
    )


_LINEAR = told(r"""
    Two phone offers cost the same when \(5x + 8 = 2x + 29\), with \(x\) in gigabytes. An equation is like a balance:
    what is done to one side must be done to the other. Take \(2x\) from both sides: \(3x + 8 = 29\). Take 8 from both
    sides: \(3x = 21\). Divide both by 3: \(x = 7\). Check by putting 7 back: \(5 \times 7 + 8 = 43\) and \(2 \times 7
    + 29 = 43\). Fractions are removed first. In \(\frac{x}{2} + \frac{x}{3} = 10\) multiply every term by 6: \(3x +
    2x = 60\), so \(5x = 60\) and \(x = 12\). The solution need not be whole: \(4x = 10\) gives \(x = \frac{5}{2}\).
    An inequation is solved in the same way, with one difference. If both sides are multiplied or divided by a
    negative number, the sign turns round. From \(7 - 2x < 15\) we get \(-2x < 8\), and dividing by \(-2\) gives \(x >
    -4\). Test one number to be sure: \(x = 0\) gives \(7 < 15\), which is true, and 0 is more than \(-4\).
""")
_LINEAR_PLAIN = told(r"""
    Think of a balance. Do the same to both sides. Take \(5x + 8 = 2x + 29\). Take away \(2x\): \(3x + 8 = 29\). Take
    away 8: \(3x = 21\). Divide by 3: \(x = 7\). Check: \(5 \times 7 + 8 = 43\) and \(2 \times 7 + 29 = 43\). Remove
    fractions first. In \(\frac{x}{2} + \frac{x}{3} = 10\), multiply every term by 6: \(3x + 2x = 60\). So \(5x = 60\)
    and \(x = 12\). Some answers are fractions: \(4x = 10\) gives \(x = \frac{5}{2}\). An inequation works the same,
    but one thing differs. You divide by a negative number? Then turn the sign round. \(7 - 2x < 15\) gives \(-2x <
    8\). Divide by \(-2\): \(x > -4\). Test it. \(x = 0\) gives \(7 < 15\). This is true, and 0 is more than \(-4\).
""")


def _solved(a: int, b: int, c: int, d: int) -> tuple[tuple[Line, ...], Fraction]:
    """Return the lines that solve ax + b = cx + d, and x."""
    x = Fraction(d - b, a - c)
    return (
        (
            f"Take {m(poly([c, 0]))} from both sides.",
            f"{poly([a - c, b])} = {d}",
            f"{poly_code([a - c, b])} = {d}",
        ),
        (
            f"{'Take' if b > 0 else 'Add'} {abs(b)} {'from' if b > 0 else 'to'} both sides.",
            f"{poly([a - c, 0])} = {d - b}",
            f"{poly_code([a - c, 0])} = {d - b}",
        ),
        (f"Divide both sides by {a - c}.", f"x = {number(x)}", f"x = {code(x)}"),
    ), x


def _linear_example(draw: Draw) -> Example:
    a, b, c, d = draw.one([(7, 5, 3, 29), (9, -4, 4, 21), (8, 3, 2, 18)])
    lines, x = _solved(a, b, c, d)
    return example(f"Solve {m(f'{poly([a, b])} = {poly([c, d])}')}.", m(f"x = {number(x)}"), *lines)


def _linear_which(draw: Draw) -> Question:
    c, x, gap = draw.whole(2, 5), draw.whole(2, 9), draw.whole(2, 6)
    a, b = c + gap, draw.whole(2, 12)
    d = gap * x + b
    added = Fraction(d - b, a + c)
    plus = Fraction(d + b, gap)
    other = Fraction(d - b, 1)
    values = [Fraction(x), added, plus, other]
    if len(set(values)) < 4:
        return _linear_which(draw)
    lines, _ = _solved(a, b, c, d)
    return pick(
        f"Choose the solution of {m(f'{poly([a, b])} = {poly([c, d])}')}.",
        (m(f"x = {x}"), str(x), f"({d} - {b})/({a} - {c})"),
        (m(f"x = {number(added)}"), code(added), "The terms in x were added.", "0"),
        (m(f"x = {number(plus)}"), code(plus), "The number kept its sign on the other side.", "0"),
        (m(f"x = {number(other)}"), code(other), "The last division was left out.", ""),
        lines=lines,
        why=f"Taking {m(f'{c}x')} and {b} from both sides leaves {m(f'{gap}x = {gap * x}')}.",
    )


def _root_answer(lines: str, x: Fraction) -> Json:
    return equation([lines], ["x"], [[code(x)]], m(f"x = {number(x)}"))


def _both_sides(draw: Draw) -> Question:
    c, gap = draw.whole(2, 6), draw.whole(2, 7)
    a, b = c + gap, draw.nonzero(-12, 12)
    x = draw.one([Fraction(n) for n in range(-6, 9) if n] + [Fraction(n, gap) for n in (1, 3, 5)])
    d = int(gap * x + b) if (gap * x).denominator == 1 else gap + b
    lines, x = _solved(a, b, c, d)
    return ask(
        f"Solve {m(f'{poly([a, b])} = {poly([c, d])}')}.",
        _root_answer(f"{poly_code([a, b])} = {poly_code([c, d])}", x),
        *lines,
        why="Each step does the same to both sides, so the equation stays true.",
        asks=(0, 1),
        reveals=(0,),
        hint="Collect the letter on one side first.",
    )


def _fraction_side(draw: Draw) -> Question:
    p, q = draw.one([(2, 3), (2, 5), (3, 4), (3, 5), (4, 5)])
    k = draw.whole(1, 6)
    x, right = p * q * k, (p + q) * k
    given = f"x/{p} + x/{q} = {right}"
    return ask(
        rf"Solve \(\frac{{x}}{{{p}}} + \frac{{x}}{{{q}}} = {right}\).",
        _root_answer(given, Fraction(x)),
        (f"Multiply every term by {p * q}.", f"{q}x + {p}x = {p * q * right}", f"{q}*x + {p}*x = {p * q * right}"),
        ("Collect like terms.", f"{p + q}x = {p * q * right}", f"{p + q}*x = {p * q * right}"),
        (f"Divide both sides by {p + q}.", f"x = {x}", f"x = {x}"),
        why="The common denominator is a multiple of both denominators, so no fraction is left.",
        hint="Which number do both denominators divide?",
    )


def _bracket_equation(draw: Draw) -> Question:
    a, b, x, c = draw.whole(2, 6), draw.nonzero(-8, 8), draw.nonzero(-5, 9), draw.whole(1, 9)
    right = a * (x + b) + c
    return ask(
        f"Solve {m(f'{a}{bracket(1, b)} + {c} = {right}')}.",
        _root_answer(f"{a}*{bracket_code(1, b)} + {c} = {right}", Fraction(x)),
        ("Expand the bracket.", f"{poly([a, a * b])} + {c} = {right}", f"{poly_code([a, a * b])} + {c} = {right}"),
        ("Take all numbers to the right.", f"{a}x = {a * x}", f"{a}*x = {a * x}"),
        (f"Divide both sides by {a}.", f"x = {x}", f"x = {x}"),
        why="The bracket is opened first, so that terms can be moved one by one.",
    )


def _inequality(relation: str, sign: str, boundary: Fraction) -> Json:
    return {
        "kind": "inequality",
        "relation": relation,
        "variable": "x",
        "sign": sign,
        "boundary": code(boundary),
        "wrong": [],
        "shown": m(f"x {sign} {number(boundary)}"),
    }


def _inequation(draw: Draw) -> Question:
    gap, b, c = draw.whole(2, 6), draw.nonzero(-9, 9), draw.whole(1, 5)
    a, d = c + gap, draw.nonzero(-20, 20)
    sign = draw.one("<>")
    x = Fraction(d - b, gap)
    return ask(
        f"Solve {m(f'{poly([a, b])} {sign} {poly([c, d])}')}.",
        _inequality(f"{poly_code([a, b])} {sign} {poly_code([c, d])}", sign, x),
        (
            f"Take {m(poly([c, 0]))} from both sides.",
            f"{poly([gap, b])} {sign} {d}",
            f"{poly_code([gap, b])} {sign} {d}",
        ),
        ("Take the number to the right.", f"{gap}x {sign} {d - b}", f"{gap}*x {sign} {d - b}"),
        (f"Divide by {gap}; it is positive, so the sign stays.", f"x {sign} {number(x)}", f"x {sign} {code(x)}"),
        why="The steps are those of an equation; a positive divisor does not change the sign.",
        asks=(1,),
        reveals=(0,),
    )


def _turned(draw: Draw) -> Question:
    b, c = draw.whole(3, 15), draw.whole(2, 7)
    sign, other = draw.one((("<", ">"), (">", "<")))
    x = draw.nonzero(-6, 6)
    right = b - c * x
    return ask(
        f"Solve {m(f'{b} - {c}x {sign} {right}')}.",
        _inequality(f"{b} - {c}*x {sign} {right}", other, Fraction(x)),
        (f"Take {b} from both sides.", f"-{c}x {sign} {right - b}", f"-{c}*x {sign} {right - b}"),
        (f"Divide by {m(f'-{c}')} and turn the sign round.", f"x {other} {x}", f"x {other} {code(x)}"),
        why="Dividing by a negative number changes the order of the numbers, so the sign is turned.",
        asks=(0, 1),
        reveals=(1,),
    )


def _tickets(draw: Draw) -> Question:
    adult, child, people = draw.whole(7, 14), draw.whole(3, 6), draw.whole(9, 24)
    x = draw.whole(3, people - 3)
    total = adult * x + child * (people - x)
    place = draw.place()
    return ask(
        f"A group of {people} goes by boat from {place}. An adult ticket costs £{adult} and a child ticket £{child}. "
        f"Together they pay £{total}. Calculate the number of adults.",
        numeric(f"({total} - {child}*{people})/({adult} - {child})", str(x), str(x)),
        (
            "Write an equation with x adults.",
            f"{adult}x + {child}({people} - x) = {total}",
            f"{adult}*x + {child}*({people} - x) = {total}",
        ),
        (
            "Expand and collect.",
            f"{adult - child}x + {child * people} = {total}",
            f"{adult - child}*x + {child * people} = {total}",
        ),
        ("Solve.", f"x = {x}", f"x = ({total} - {child * people})/{adult - child} = {x}"),
        why="The children are the rest of the group, so one letter is enough.",
    )


def one_step(draw: Draw) -> Question:
    """Ask for the solution of ax = b."""
    a, x = draw.whole(3, 9), draw.whole(2, 12)
    return ask(
        f"Solve {m(f'{a}x = {a * x}')}.",
        _root_answer(f"{a}*x = {a * x}", Fraction(x)),
        (f"Divide both sides by {a}.", f"x = {x}", f"x = {x}"),
        why="Division undoes multiplication.",
        one=True,
    )


def value_of(draw: Draw) -> Question:
    """Ask for the value of ax + b at a negative number."""
    a, b, x = draw.whole(2, 6), draw.whole(1, 9), -draw.whole(2, 6)
    value = a * x + b
    return ask(
        f"Calculate the value of {m(poly([a, b]))} when {m(f'x = {x}')}.",
        numeric(f"{a}*({x}) + {b}", str(value), m(str(value))),
        ("Substitute with brackets.", rf"{a} \times ({x}) + {b} = {value}", f"{a}*({x}) + {b} = {value}"),
        why="Multiplication comes before addition, and a positive times a negative is negative.",
        one=True,
    )
