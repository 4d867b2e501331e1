"""Surds: simplify, add, multiply, rationalise a denominator."""

from __future__ import annotations

from math import gcd

from pipeline.lessons.drafting.maths.tex import frac, m, root, surd, surd_code
from pipeline.lessons.drafting.parts import (
    Draw,
    Example,
    Mistake,
    Question,
    Step,
    Topic,
    choice,
    exact,
    numeric,
    option,
    wrong,
)
from pipeline.lessons.expressions import square_factor

_SQUARE_FREE = (2, 3, 5, 6, 7, 10, 11, 13)


def topic() -> Topic:
    """Return the topic of outcome num.surds; points: simplify, rationalise."""
    return Topic(
        name="surds",
        can="simplify a surd and rationalise a denominator",
        aim="Simplify surds and remove a surd from a denominator",
        prior=("Square numbers up to 144 and their square roots",),
        facts=(
            "A surd is simplified when the number under the root has no square factor except 1.",
            r"For positive numbers, \(\sqrt{ab} = \sqrt{a} \times \sqrt{b}\).",
            "Multiplying the top and the bottom of a fraction by the same surd does not change its value.",
        ),
        keywords=(
            ("surd", "a root that is not a whole number or a fraction, left as a root"),
            ("rationalise", "write a fraction again so that no root stands below the line"),
        ),
        mistakes=(
            Mistake(
                r"I can take the square factor out as it is: \(\sqrt{50} = 25\sqrt{2}\).",
                r"The square root of the factor comes out: \(\sqrt{50} = \sqrt{25} \times \sqrt{2} = 5\sqrt{2}\).",
            ),
            Mistake(
                r"Roots can be added under one root: \(\sqrt{2} + \sqrt{8} = \sqrt{10}\).",
                r"Simplify first, then collect like surds: \(\sqrt{2} + 2\sqrt{2} = 3\sqrt{2}\).",
            ),
        ),
        explain=_EXPLAIN,
        plain=_PLAIN,
        non_example=r"\(\sqrt{49}\) is not a surd: it is exactly 7.",
        example=_example,
        makers=(_which, _simplify, _rationalise, _collect, _multiply, _length),
        starters=(_square, _factor, _root),
    )


_EXPLAIN = (
    r"Think of a square floor tile with area 50 cm². Its side is \(\sqrt{50}\) cm, a little more than 7 cm. "
    r"The decimal "
    r"never ends and never repeats, so the exact length is left as a root. A root like this is a surd. "
    r"To simplify a surd, look for the largest square number that divides the number under the root. Here "
    r"\(50 = 25 \times 2\), so \(\sqrt{50} = \sqrt{25} \times \sqrt{2} = 5\sqrt{2}\). The 25 leaves the root as 5, its "
    r"square root. Like surds can be collected: \(5\sqrt{2} + 3\sqrt{2} = 8\sqrt{2}\). Unlike surds stay apart. "
    r"A fraction is tidier without a surd below the line. To rationalise the denominator of "
    r"\(\frac{6}{\sqrt{3}}\), multiply "
    r"top and bottom by \(\sqrt{3}\). The bottom becomes \(\sqrt{3} \times \sqrt{3} = 3\), and the fraction becomes "
    r"\(\frac{6\sqrt{3}}{3} = 2\sqrt{3}\). Its value has not changed, because \(\frac{\sqrt{3}}{\sqrt{3}} = 1\)."
)
_PLAIN = (
    r"A square tile has area 50 cm². Its side is \(\sqrt{50}\) cm. The decimal never ends. So we keep the "
    r"root. This is a "
    r"surd. To simplify it, find the largest square number that divides 50. That is 25. So "
    r"\(\sqrt{50} = \sqrt{25} \times \sqrt{2} = 5\sqrt{2}\). The 25 comes out as 5. You can add like surds: "
    r"\(5\sqrt{2} + 3\sqrt{2} = 8\sqrt{2}\). To rationalise \(\frac{6}{\sqrt{3}}\), multiply top and bottom by "
    r"\(\sqrt{3}\). "
    r"The bottom is now \(\sqrt{3} \times \sqrt{3} = 3\). You get \(\frac{6\sqrt{3}}{3} = 2\sqrt{3}\). The "
    r"value is the same, "
    r"because \(\frac{\sqrt{3}}{\sqrt{3}} = 1\)."
)


def _parts(draw: Draw) -> tuple[int, int]:
    """Return (k, r) with r square-free and k no power of it, so that the usual wrong answers differ from k√r."""
    inside = draw.one(_SQUARE_FREE)
    return draw.one([k for k in range(2, 10) if k != inside and k**3 != inside]), inside


def _example(draw: Draw) -> Example:
    k, r = draw.one([(6, 2), (4, 3), (3, 7), (2, 13), (5, 3)])
    return Example(
        problem=f"Simplify {m(root(k * k * r))}.",
        steps=(
            Step(
                f"Find the largest square number that divides {k * k * r}.",
                m(rf"{k * k * r} = {k * k} \times {r}"),
                f"{k * k * r} = {k * k}*{r}",
            ),
            Step(
                "Split the root into two roots.",
                m(rf"{root(k * k * r)} = {root(k * k)} \times {root(r)}"),
                f"sqrt({k * k * r}) = sqrt({k * k})*sqrt({r})",
            ),
            Step(
                f"The root of {k * k} is {k}; it stands in front.",
                m(f"{root(k * k * r)} = {surd(k, r)}"),
                f"sqrt({k * k * r}) = {surd_code(k, r)}",
            ),
        ),
        answer=m(surd(k, r)),
    )


def _splitting(k: int, r: int) -> tuple[Step, ...]:
    n = k * k * r
    return (
        Step("Take out the largest square factor.", m(rf"{n} = {k * k} \times {r}"), f"{n} = {k * k}*{r}"),
        Step("Root the square factor.", m(f"{root(n)} = {surd(k, r)}"), f"sqrt({n}) = {surd_code(k, r)}"),
    )


def _which(draw: Draw) -> Question:
    k, r = _parts(draw)
    n = k * k * r
    return Question(
        stem=f"Choose the simplified form of {m(root(n))}.",
        answer=choice(
            option(
                m(surd(k, r)),
                "The root of the square factor stands in front.",
                value=surd_code(k, r),
                method=f"sqrt({n})",
            ),
            option(
                m(surd(k * k, r)),
                "The square factor came out without its root being taken.",
                value=surd_code(k * k, r),
                method=f"{k * k}*sqrt({r})",
                mistake="0",
            ),
            option(
                m(surd(r, k)),
                "The two parts changed places.",
                value=surd_code(r, k),
                method=f"{r}*sqrt({k})",
            ),
            option(
                m(surd(k + 1, r)),
                "The square root of the factor is not right.",
                value=surd_code(k + 1, r),
                method=f"{k + 1}*sqrt({r})",
            ),
        ),
        working=_splitting(k, r),
        scheme=(("Simplifies the surd", m(surd(k, r))),),
        feedback=f"The largest square factor of {n} is {k * k}; its root, {k}, comes out and {r} stays under the root.",
        reveals=(0,),
    )


def _simplify(draw: Draw) -> Question:
    k, r = _parts(draw)
    n = k * k * r
    return Question(
        stem=f"Express {m(root(n))} as a surd in its simplest form.",
        answer=exact(
            "surd",
            f"sqrt({n})",
            surd_code(k, r),
            "simplest",
            m(surd(k, r)),
            errors=[
                wrong("0", f"{k * k}*sqrt({r})", surd_code(k * k, r), "Took the square factor out without rooting it")
            ],
        ),
        working=_splitting(k, r),
        scheme=(
            ("Finds the square factor", m(rf"{root(k * k)} \times {root(r)}")),
            ("Simplifies", m(surd(k, r))),
        ),
        feedback=f"Because {n} is {k * k} times {r}, the root is {k} times the root of {r}.",
        reveals=(0,),
        hints=("Which square number divides the number under the root?",),
        follow_through="The second mark is open after a smaller square factor that is then fully simplified.",
    )


def _rationalise(draw: Draw) -> Question:
    r = draw.one(_SQUARE_FREE)
    top = draw.one([n for n in range(2, 16) if n != r])
    shared = gcd(top, r)
    a, b = top // shared, r // shared
    value = surd_code(a, r) + (f"/{b}" if b > 1 else "")
    shown = m(frac(surd(a, r), b) if b > 1 else surd(a, r))
    middle = m(rf"\frac{{{top}}}{{{root(r)}}} \times \frac{{{root(r)}}}{{{root(r)}}} = {frac(surd(top, r), r)}")
    steps = [
        Step("Multiply top and bottom by the surd below the line.", middle, f"{top}/sqrt({r}) = {top}*sqrt({r})/{r}"),
    ]
    if shared > 1:
        steps.append(Step(f"Divide top and bottom by {shared}.", shown, f"{top}*sqrt({r})/{r} = {value}"))
    last = ("Simplifies", shown) if shared > 1 else ("Completes the fraction", shown)
    return Question(
        stem=f"Express {m(frac(top, root(r)))} with a rational denominator. Give your answer in its simplest form.",
        answer=exact("surd", f"{top}/sqrt({r})", value, "simplest", shown),
        working=tuple(steps),
        scheme=(("Multiplies top and bottom by the surd", middle), last),
        feedback=f"The bottom becomes {r} because a root times itself is the number under it, so no surd is "
        f"left below.",
        asks=(1,),
        hints=("What can you multiply a root by to lose the root?",),
        follow_through="The second mark is open after a slip in the multiplication.",
    )


def _collect(draw: Draw) -> Question:
    r = draw.one(_SQUARE_FREE[:5])
    p, q = draw.some([2, 3, 4, 5, 6], 2)
    one, two = p * p * r, q * q * r
    return Question(
        stem=f"Simplify fully {m(f'{root(one)} + {root(two)}')}.",
        answer=exact(
            "surd",
            f"sqrt({one}) + sqrt({two})",
            surd_code(p + q, r),
            "simplest",
            m(surd(p + q, r)),
            errors=[wrong("1", f"sqrt({one} + {two})", f"sqrt({one + two})", "Added the numbers under the roots")],
        ),
        working=(
            Step("Simplify the first surd.", m(f"{root(one)} = {surd(p, r)}"), f"sqrt({one}) = {surd_code(p, r)}"),
            Step("Simplify the second surd.", m(f"{root(two)} = {surd(q, r)}"), f"sqrt({two}) = {surd_code(q, r)}"),
            Step(
                "Collect like surds.",
                m(f"{surd(p, r)} + {surd(q, r)} = {surd(p + q, r)}"),
                f"{surd_code(p, r)} + {surd_code(q, r)} = {surd_code(p + q, r)}",
            ),
        ),
        scheme=(
            ("Simplifies one surd", m(surd(p, r))),
            ("Simplifies the other", m(surd(q, r))),
            ("Collects like surds", m(surd(p + q, r))),
        ),
        feedback=f"Both surds are multiples of {m(root(r))}, so they can be added like any like terms.",
        reveals=(1,),
        follow_through="The last mark is open where both surds were changed to like surds with one slip.",
    )


def _multiply(draw: Draw) -> Question:
    r = draw.one((2, 3, 5, 7))
    p, q = draw.some([factor for factor in (2, 3, 5, 6, 7, 10) if factor != r], 2)
    one, two = p * r, q * r
    split = square_factor(one * two)
    assert split is not None
    outside, inside = split
    value, shown = surd_code(outside, inside), m(surd(outside, inside))
    return Question(
        stem=rf"Simplify \({root(one)} \times {root(two)}\).",
        answer=exact("surd", f"sqrt({one})*sqrt({two})", value, "simplest", shown),
        working=(
            Step(
                "Multiply under one root.",
                m(rf"{root(one)} \times {root(two)} = {root(one * two)}"),
                f"sqrt({one})*sqrt({two}) = sqrt({one * two})",
            ),
            Step(
                "Take out the square factor.",
                m(f"{root(one * two)} = {surd(outside, inside)}"),
                f"sqrt({one * two}) = {value}",
            ),
        ),
        scheme=(("Multiplies under one root", m(root(one * two))), ("Simplifies", shown)),
        feedback="The product of two roots is the root of the product; then look for a square factor.",
        follow_through="The second mark is open after a slip in the product.",
    )


def _length(draw: Draw) -> Question:
    k, r = draw.one([(2, 5), (3, 2), (2, 13), (3, 5), (2, 10), (4, 2), (5, 2), (3, 10), (2, 17), (3, 13)])
    n = k * k * r
    first, second = next((a, b) for a in range(1, 30) for b in range(1, 30) if a * a + b * b == n)
    place = draw.place()
    return Question(
        stem=(
            f"A path near {place} runs {first} km east and then {second} km north. Calculate the direct "
            f"distance from its "
            "start to its end, in km, as a surd in its simplest form."
        ),
        answer=exact("surd", f"sqrt({first}^2 + {second}^2)", surd_code(k, r), "simplest", m(surd(k, r)) + " km"),
        working=(
            Step(
                "Use Pythagoras' theorem.",
                m(f"d^2 = {first}^2 + {second}^2 = {n}"),
                f"{first}^2 + {second}^2 = {n}",
            ),
            Step(
                "Take the root and simplify.", m(f"d = {root(n)} = {surd(k, r)}"), f"d = sqrt({n}) = {surd_code(k, r)}"
            ),
        ),
        scheme=(
            ("Finds the square of the distance", m(str(n))),
            ("Simplifies the root", m(surd(k, r)) + " km"),
        ),
        feedback="The exact distance is a surd; a decimal would have to be rounded.",
        follow_through="The second mark is open after a slip in the first line if the root still simplifies.",
    )


def _square(draw: Draw) -> Question:
    n = draw.whole(4, 12)
    return Question(
        stem=f"Calculate {m(f'{n}^2')}.",
        answer=numeric(f"{n}^2", str(n * n), str(n * n)),
        working=(Step("Multiply the number by itself.", m(rf"{n} \times {n} = {n * n}"), f"{n}*{n} = {n * n}"),),
        scheme=(("Calculates the square", str(n * n)),),
        feedback=f"Squaring multiplies a number by itself, so {n} squared is {n * n}, not {2 * n}.",
    )


def _root(draw: Draw) -> Question:
    n = draw.whole(4, 12)
    return Question(
        stem=f"Write down the value of {m(root(n * n))}.",
        answer=numeric(f"sqrt({n * n})", str(n), str(n)),
        working=(Step("Ask which number, squared, gives it.", m(f"{n}^2 = {n * n}"), f"{n}^2 = {n * n}"),),
        scheme=(("Gives the root", str(n)),),
        feedback=f"The square root undoes squaring: {n} squared is {n * n}.",
    )


def _factor(draw: Draw) -> Question:
    k, r = draw.one([(2, 3), (2, 5), (3, 2), (3, 5), (5, 3), (2, 7), (4, 5), (6, 2)])
    n = k * k * r
    return Question(
        stem=f"The number {n} is {k * k} times a whole number. Calculate that number.",
        answer=numeric(f"{n}/{k * k}", str(r), str(r)),
        working=(Step("Divide.", m(rf"{n} \div {k * k} = {r}"), f"{n}/{k * k} = {r}"),),
        scheme=(("Divides correctly", str(r)),),
        feedback=f"Seeing {k * k} as a factor of {n} is the first step in simplifying its root.",
    )
