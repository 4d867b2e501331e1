"""Fractions and mixed numbers: the four operations."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from pipeline.lessons.drafting.maths.tex import Line, ask, example, frac, m, number, pick, told
from pipeline.lessons.drafting.parts import Draw, Example, Mistake, Question, Topic, exact, numeric, wrong


def topic() -> Topic:
    """Return the topic of outcome num.fractions."""
    return Topic(
        name="fractions and mixed numbers",
        can="add, subtract, multiply and divide fractions and mixed numbers",
        aim="Choose and carry out the right method for each operation",
        prior=("Equivalent fractions, and changing a mixed number into an improper fraction",),
        facts=(
            "Fractions are added and subtracted with a common denominator.",
            "Fractions are multiplied top by top and bottom by bottom.",
            "Dividing by a fraction is multiplying by the fraction turned upside down.",
        ),
        keywords=(
            ("common denominator", "a number that all the lower numbers divide"),
            ("mixed number", "a whole number and a proper fraction together"),
        ),
        mistakes=(
            Mistake(
                r"Tops and bottoms are added: \(\frac{1}{2} + \frac{1}{3} = \frac{2}{5}\).",
                r"Halves and thirds are different parts; as sixths they are \(\frac{3}{6} + \frac{2}{6} = "
                r"\frac{5}{6}\).",
            ),
            Mistake(
                "In a division the first fraction is turned upside down.",
                "The second fraction, the one that divides, is turned, and then the two are multiplied.",
            ),
        ),
        explain=_EXPLAIN,
        plain=_PLAIN,
        non_example=r"\(\frac{0.5}{3}\) is not in its simplest form, because a decimal stands above the line.",
        example=_example,
        makers=(_which, _add, _multiply, _divide, _mixed, _order, _recipe),
        starters=(_improper, _equivalent),
    )


_EXPLAIN = told(r"""
    A pancake mix needs \(\frac{3}{4}\) kg of flour and \(\frac{2}{3}\) kg of oats. Quarters and thirds are parts of
    different size, so they cannot be counted together as they are. Both can be cut into twelfths: \(\frac{3}{4} =
    \frac{9}{12}\) and \(\frac{2}{3} = \frac{8}{12}\). Together they are \(\frac{17}{12} = 1\frac{5}{12}\) kg. So
    adding and subtracting need a common denominator. Multiplying does not: two thirds of three quarters is
    \(\frac{2}{3} \times \frac{3}{4} = \frac{6}{12} = \frac{1}{2}\), top by top and bottom by bottom. Dividing asks
    how many times one fraction goes into the other. \(\frac{3}{4} \div \frac{1}{8}\) is 6, because there are six
    eighths in three quarters. The method is to turn the second fraction upside down and multiply: \(\frac{3}{4}
    \times \frac{8}{1} = 6\). Change mixed numbers into improper fractions before you multiply or divide:
    \(1\frac{2}{3} = \frac{5}{3}\). In a longer calculation, brackets come first, then multiplication and division,
    then addition and subtraction. Give the answer in its simplest form.
""")
_PLAIN = told(r"""
    You need \(\frac{3}{4}\) kg of flour and \(\frac{2}{3}\) kg of oats. The parts have different sizes. So you cannot
    count them together. Cut both into twelfths: \(\frac{3}{4} = \frac{9}{12}\) and \(\frac{2}{3} = \frac{8}{12}\).
    Add: \(\frac{17}{12} = 1\frac{5}{12}\) kg. To add or subtract, use a common denominator. To multiply, do top by
    top and bottom by bottom: \(\frac{2}{3} \times \frac{3}{4} = \frac{6}{12} = \frac{1}{2}\). To divide, turn the
    second fraction upside down. Then multiply. \(\frac{3}{4} \div \frac{1}{8}\) becomes \(\frac{3}{4} \times
    \frac{8}{1} = 6\). Six eighths fit into three quarters. Change mixed numbers first: \(1\frac{2}{3} =
    \frac{5}{3}\). Brackets come first. Then multiply and divide. Then add and subtract. Give the simplest form.
""")
_PROPER = [Fraction(a, b) for b in (2, 3, 4, 5, 6, 7, 8, 9) for a in range(1, b) if Fraction(a, b).denominator == b]


def _plain(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}" if value.denominator > 1 else str(value.numerator)


def _in(value: Fraction) -> str:
    return f"({_plain(value)})"


def _result(
    expression: str, value: Fraction, errors: list[tuple[str, str, Fraction, str]] | None = None
) -> dict[str, object]:
    return exact(
        "fraction",
        expression,
        _plain(value),
        "lowest_terms",
        m(number(value)),
        errors=[wrong(label, text, _plain(worth), says) for label, text, worth, says in errors or []],
    )


def _sum_lines(a: Fraction, b: Fraction, sign: str) -> tuple[Line, ...]:
    shared = lcm(a.denominator, b.denominator)
    p, q = a.numerator * shared // a.denominator, b.numerator * shared // b.denominator
    value = a + b if sign == "+" else a - b
    top = p + q if sign == "+" else p - q
    return (
        (
            f"Write both with the common denominator {shared}.",
            f"{number(a)} {sign} {number(b)} = {frac(p, shared)} {sign} {frac(q, shared)}",
            f"{_plain(a)} {sign} {_plain(b)} = {p}/{shared} {sign} {q}/{shared}",
        ),
        (
            f"{'Add' if sign == '+' else 'Subtract'} the tops and simplify.",
            f"{frac(p, shared)} {sign} {frac(q, shared)} = {number(value)}",
            f"{top}/{shared} = {_plain(value)}",
        ),
    )


def _example(draw: Draw) -> Example:
    a, b = draw.one(
        [(Fraction(7, 3), Fraction(5, 4)), (Fraction(8, 5), Fraction(4, 3)), (Fraction(9, 4), Fraction(6, 5))]
    )
    value = a / b
    turned = 1 / b
    whole_a, whole_b = _mix(a), _mix(b)
    return example(
        rf"Calculate \({whole_a} \div {whole_b}\).",
        m(number(value)),
        (
            "Change the mixed numbers into improper fractions.",
            rf"{whole_a} \div {whole_b} = {number(a)} \div {number(b)}",
            "",
        ),
        (
            "Turn the second fraction upside down and multiply.",
            rf"{number(a)} \div {number(b)} = {number(a)} \times {number(turned)}",
            f"{_in(a)}/{_in(b)} = {_in(a)}*{_in(turned)}",
        ),
        (
            "Multiply and simplify.",
            rf"{number(a)} \times {number(turned)} = {number(value)}",
            f"{_in(a)}*{_in(turned)} = {_plain(value)}",
        ),
    )


def _mix(value: Fraction) -> str:
    whole = value.numerator // value.denominator
    return f"{whole}{number(value - whole)}"


def _which(draw: Draw) -> Question:
    a, b = draw.some(_PROPER, 2)
    key = a + b
    naive = Fraction(a.numerator + b.numerator, a.denominator + b.denominator)
    others = [naive, Fraction(a.numerator + b.numerator, a.denominator * b.denominator), a * b]
    if len({key, *others}) < 4 or a.denominator == b.denominator:
        return _which(draw)
    says = (
        ("Tops and bottoms were added.", "0"),
        ("The tops were added without being changed.", "0"),
        ("The fractions were multiplied.", ""),
    )
    return pick(
        f"Choose the value of {m(f'{number(a)} + {number(b)}')}.",
        (m(number(key)), _plain(key), f"{_plain(a)} + {_plain(b)}"),
        *((m(number(o)), _plain(o), text, mistake) for o, (text, mistake) in zip(others, says, strict=True)),
        lines=_sum_lines(a, b, "+"),
        why="Only parts of the same size can be counted together.",
    )


def _add(draw: Draw) -> Question:
    a, b = sorted(draw.some([f for f in _PROPER if f.denominator > 2], 2), reverse=True)
    if a.denominator == b.denominator:
        return _add(draw)
    sign = draw.one("+-")
    naive = Fraction(a.numerator + b.numerator, a.denominator + b.denominator)
    errors = [
        ("0", f"({a.numerator} + {b.numerator})/({a.denominator} + {b.denominator})", naive, "Added tops and bottoms")
    ]
    return ask(
        f"Calculate {m(f'{number(a)} {sign} {number(b)}')}. Give your answer in its simplest form.",
        _result(f"{_plain(a)} {sign} {_plain(b)}", a + b if sign == "+" else a - b, errors if sign == "+" else None),
        *_sum_lines(a, b, sign),
        why="With a common denominator the parts have the same size, so their numbers can be counted.",
        reveals=(0,),
    )


def _multiply(draw: Draw) -> Question:
    a, b = draw.some(_PROPER, 2)
    value = a * b
    top, bottom = a.numerator * b.numerator, a.denominator * b.denominator
    return ask(
        rf"Calculate \({number(a)} \times {number(b)}\). Give your answer in its simplest form.",
        _result(f"{_in(a)}*{_in(b)}", value),
        (
            "Multiply top by top and bottom by bottom.",
            rf"{number(a)} \times {number(b)} = {frac(top, bottom)}",
            f"{_in(a)}*{_in(b)} = {top}/{bottom}",
        ),
        ("Simplify.", f"{frac(top, bottom)} = {number(value)}", f"{top}/{bottom} = {_plain(value)}"),
        why="A part of a part is found by multiplying; no common denominator is needed.",
    )


def _quotient(stem: str, a: Fraction, b: Fraction, first: str = "") -> Question:
    value, turned = a / b, 1 / b
    return ask(
        stem,
        _result(
            f"({first or _plain(a)})/{_in(b)}",
            value,
            [("1", f"{_in(1 / a)}*{_in(b)}", 1 / value, "Turned the first fraction upside down")]
            if value != 1 / value
            else None,
        ),
        (
            "Turn the second fraction upside down and multiply.",
            rf"{number(a)} \times {number(turned)}",
            f"{_in(a)}/{_in(b)} = {_in(a)}*{_in(turned)}",
        ),
        (
            "Multiply and simplify.",
            rf"{number(a)} \times {number(turned)} = {number(value)}",
            f"{_in(a)}*{_in(turned)} = {_plain(value)}",
        ),
        why="Dividing by a fraction asks how often it fits in, which is multiplying by its reciprocal.",
        reveals=(1,),
        hint="Which of the two fractions is turned upside down?",
    )


def _divide(draw: Draw) -> Question:
    a, b = draw.some(_PROPER, 2)
    return _quotient(rf"Calculate \({number(a)} \div {number(b)}\). Give your answer in its simplest form.", a, b)


def _mixed(draw: Draw) -> Question:
    a = draw.whole(1, 4) + draw.one(_PROPER)
    b = draw.whole(1, 3) + draw.one([f for f in _PROPER if f.denominator <= 5])
    value = a * b
    return ask(
        rf"Calculate \({_mix(a)} \times {_mix(b)}\). Give your answer as a fraction in its simplest form.",
        exact("fraction", f"({_mix_code(a)})*({_mix_code(b)})", _plain(value), "lowest_terms", m(number(value))),
        ("Change both into improper fractions.", rf"{number(a)} \times {number(b)}", ""),
        (
            "Multiply and simplify.",
            rf"{number(a)} \times {number(b)} = {number(value)}",
            f"{_in(a)}*{_in(b)} = {_plain(value)}",
        ),
        why="A mixed number is a sum, so it is written as one fraction before it is multiplied.",
    )


def _order(draw: Draw) -> Question:
    a, b, c = draw.some(_PROPER, 3)
    product = b * c
    value = a + product
    return ask(
        rf"Calculate \({number(a)} + {number(b)} \times {number(c)}\). Give your answer in its simplest form.",
        _result(f"{_plain(a)} + {_in(b)}*{_in(c)}", value),
        (
            "Multiply first.",
            rf"{number(b)} \times {number(c)} = {number(product)}",
            f"{_in(b)}*{_in(c)} = {_plain(product)}",
        ),
        (
            "Then add with a common denominator.",
            f"{number(a)} + {number(product)} = {number(value)}",
            f"{_plain(a)} + {_plain(product)} = {_plain(value)}",
        ),
        why="Multiplication comes before addition, with fractions as with whole numbers.",
        reveals=(0,),
    )


def _recipe(draw: Draw) -> Question:
    a = draw.whole(2, 5) + draw.one([Fraction(1, 2), Fraction(1, 4), Fraction(3, 4)])
    b = draw.one([Fraction(1, 8), Fraction(3, 8), Fraction(2, 5), Fraction(3, 5), Fraction(2, 3)])
    return _quotient(
        rf"{draw.person()} in {draw.place()} has \({_mix(a)}\) kg of oats. Each bag holds \({number(b)}\) kg. "
        rf"Calculate how many bags "
        "the oats fill, as a fraction in its simplest form.",
        a,
        b,
        _mix_code(a),
    )


def _improper(draw: Draw) -> Question:
    value = draw.whole(1, 6) + draw.one(_PROPER)
    return ask(
        f"Write {m(_mix(value))} as an improper fraction.",
        exact("fraction", _mix_code(value), _plain(value), "lowest_terms", m(number(value))),
        (
            "Multiply the whole number by the denominator and add the top.",
            f"{_mix(value)} = {number(value)}",
            f"{_mix_code(value)} = {_plain(value)}",
        ),
        why="Each whole holds as many parts as the denominator says.",
        one=True,
    )


def _mix_code(value: Fraction) -> str:
    whole = value.numerator // value.denominator
    return f"{whole} + {_plain(value - whole)}"


def _equivalent(draw: Draw) -> Question:
    a, k = draw.one(_PROPER), draw.whole(2, 7)
    return ask(
        f"The fraction {m(number(a))} is equal to a fraction with denominator {a.denominator * k}. Calculate "
        f"its top number.",
        numeric(f"{a.numerator}*{a.denominator * k}/{a.denominator}", str(a.numerator * k), str(a.numerator * k)),
        (
            f"Multiply top and bottom by {k}.",
            f"{number(a)} = {frac(a.numerator * k, a.denominator * k)}",
            f"{_plain(a)} = {a.numerator * k}/{a.denominator * k}",
        ),
        why="Multiplying top and bottom by the same number cuts the parts smaller without changing the amount.",
        one=True,
    )
