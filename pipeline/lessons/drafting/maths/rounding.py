"""Rounding to significant figures."""

from __future__ import annotations

from fractions import Fraction

from pipeline.lessons.drafting.maths.tex import ask, example, pick, told
from pipeline.lessons.drafting.parts import Draw, Example, Mistake, Question, Topic, figures, numeric, places, wrong
from pipeline.lessons.rounding import round_half_up


def topic() -> Topic:
    """Return the topic of outcome num.rounding."""
    return Topic(
        name="significant figures",
        can="round a number to a stated number of significant figures",
        aim="Round numbers of any size to significant figures",
        prior=("Rounding to the nearest whole number, ten and hundred, and to decimal places",),
        facts=(
            "The first significant figure of a number is its first digit that is not zero.",
            "Rounding keeps the size of a number: digits dropped before the decimal point are replaced by zeros.",
            "A number is rounded up when the first dropped digit is 5 or more.",
        ),
        keywords=(("significant figure", "a digit that counts, from the first one that is not zero onwards"),),
        mistakes=(
            Mistake(
                "Zeros at the start of a decimal count, so 0.00472 to 2 significant figures is 0.00.",
                "Zeros at the start only show the size; counting begins at 4, so 0.00472 becomes 0.0047.",
            ),
            Mistake(
                "Dropped digits just disappear, so 48 362 to 2 significant figures is 48.",
                "The number must keep its size, so zeros fill the empty places: 48 000.",
            ),
        ),
        explain=_EXPLAIN,
        plain=_PLAIN,
        non_example="0.50 and 0.5 show the same value, but 0.50 is stated to two significant figures and 0.5 to one.",
        example=_example,
        makers=(_which, _large, _small, _quotient, _area),
        starters=(_nearest, _decimal),
    )


_EXPLAIN = told(r"""
    A crowd of 48362 people is often reported as 48000. The number has been rounded to two significant figures. The
    first significant figure of a number is the first digit that is not zero. After it, every digit counts, zeros
    included. To round to two significant figures, count two digits from the first significant one and look at the
    next digit. If that digit is 5 or more, the last kept digit goes up by one. If it is 4 or less, nothing changes.
    In 48362 the next digit is 3, so 48 is kept. Zeros fill the places before the decimal point, so that the number
    keeps its size: 48000. With small numbers the zeros at the start do not count. In 0.00472 the first significant
    figure is 4, so to two significant figures it is 0.0047. A zero inside or at the end can be significant: 3.0481 to
    three significant figures is 3.05, and 2.998 to three significant figures is 3.00. Round once, at the end of a
    calculation, because rounding early makes the final answer less exact.
""")
_PLAIN = told(r"""
    48362 people is often told as 48000 people. This is rounding to two significant figures. Find the first digit that
    is not zero. Start to count there. Then every digit counts, zeros too. Count two digits. Look at the next digit.
    Is it 5 or more? Then the last kept digit goes up by one. Is it 4 or less? Then it stays. In 48362 the next digit
    is 3. So we keep 48. Zeros keep the size: 48000. Zeros at the start do not count. So 0.00472 becomes 0.0047. Zeros
    inside or at the end can count: 3.0481 becomes 3.05 and 2.998 becomes 3.00 with three significant figures. Round
    once, at the end.
""")


def _rounded(text: str, count: int) -> str:
    found = round_half_up(Fraction(text), figures(count))
    return f"{found:f}"


def _example(draw: Draw) -> Example:
    a, b = draw.one([("7.3", "2.9"), ("8.6", "3.7"), ("5.9", "4.3"), ("9.2", "3.1")])
    value = Fraction(a) * Fraction(b)
    exact = f"{float(value):.2f}"
    shown = _rounded(exact, 2)
    return example(
        f"A rug is {a} m long and {b} m wide. Calculate its area to 2 significant figures.",
        f"{shown} m²",
        ("Multiply, and keep all digits.", rf"A = {a} \times {b} = {exact}", f"{a}*{b} = {exact}"),
        (f"Count two digits from the first one that is not zero and look at the digit after them, in {exact}.", "", ""),
        ("Round by that digit.", rf"A \approx {shown}", f"{a}*{b} ≈ {shown}"),
    )


def _digits(draw: Draw, count: int) -> str:
    """Return digits with no zero, no 9 and no 5, so that each wrong rounding differs from the right one."""
    return "".join(str(draw.one((1, 2, 3, 4, 6, 7, 8))) for _ in range(count))


def _which(draw: Draw) -> Question:
    digits = _digits(draw, 5)
    key = _rounded(digits, 2)
    cut, other = digits[:2], (key[:2] if key[:2] != digits[:2] else str(int(digits[:2]) + 1))
    down = digits[:2] if key[:2] != digits[:2] else other
    return pick(
        f"Choose {digits} rounded to 2 significant figures.",
        (key, key, f"{key} + 0"),
        (f"{down}000", f"{down}000", "The digit after the last kept one was read wrongly.", ""),
        (cut, cut, "The dropped digits were not replaced by zeros.", "1"),
        (f"{digits[:3]}00", f"{digits[:3]}00", "Three figures were kept.", ""),
        lines=[
            (
                f"Look at the third digit, {digits[2]}, then fill with zeros.",
                rf"{digits} \approx {key}",
                f"{digits} ≈ {key}",
            )
        ],
        why="Two digits are kept, the third decides, and zeros keep the size of the number.",
        reveals=(1,),
    )


def _large(draw: Draw) -> Question:
    digits, place = _digits(draw, 6), draw.place()
    count = draw.one((2, 3))
    shown = _rounded(digits, count)
    return ask(
        f"A bus line from {place} carried {digits} people in a year. Round this to {count} significant figures.",
        numeric(
            f"{digits}*1",
            shown,
            shown,
            rounding=figures(count),
            errors=[wrong("1", f"{digits[:count]}*1", digits[:count], "Left out the zeros that keep the size")],
        ),
        (f"Look at digit {count + 1}, which is {digits[count]}.", "", ""),
        ("Round and fill with zeros.", rf"{digits} \approx {shown}", f"{digits} ≈ {shown}"),
        why="Zeros replace the dropped digits, so that the number stays as large as it was.",
        reveals=(1,),
        one=True,
    )


def _small(draw: Draw) -> Question:
    text = "0." + "0" * draw.whole(1, 3) + _digits(draw, 4)
    count = draw.one((2, 3))
    shown = _rounded(text, count)
    return ask(
        f"A sheet of paper is measured as {text} m thick with its stack. Round {text} to {count} significant figures.",
        numeric(
            f"{text}*1",
            shown,
            shown,
            rounding=figures(count),
            errors=[wrong("0", f"{text}*1", f"{float(text):.{count}f}", "Counted the zeros at the start")],
        ),
        ("Start counting at the first digit that is not zero.", "", ""),
        ("Round at the digit after the last kept one.", rf"{text} \approx {shown}", f"{text} ≈ {shown}"),
        why="Zeros at the start show only the size; counting starts at the first digit that is not zero.",
        reveals=(0,),
        one=True,
    )


def _quotient(draw: Draw) -> Question:
    people, cost = draw.one((7, 9, 11, 13)), draw.whole(401, 899)
    while cost % people == 0:
        cost += 1
    answer = round_half_up(Fraction(cost, people), figures(3))
    shown = f"{answer:f}"
    who = draw.person()
    return ask(
        f"{who} shares {cost} g of dough equally among {people} bowls. Calculate the mass in each bowl, in g, to 3 "
        "significant figures.",
        numeric(f"{cost}/{people}", shown, f"{shown} g", rounding=figures(3), unit="g"),
        ("Divide.", rf"{cost} \div {people} = {float(Fraction(cost, people)):.4f} \ldots", ""),
        ("Round to 3 significant figures.", rf"{cost} \div {people} \approx {shown}", f"{cost}/{people} ≈ {shown}"),
        why="The rounding is done once, on the final value.",
        calculator=True,
    )


def _area(draw: Draw) -> Question:
    radius = f"{draw.whole(2, 9)}.{draw.whole(1, 9)}"
    place = draw.place()
    from_text = Fraction(radius)
    value = float(from_text) ** 2 * 3.141592653589793
    shown = f"{round_half_up(value, figures(3)):f}"
    return ask(
        f"A round flower bed in {place} has radius {radius} m. Calculate its area in m², to 3 significant figures.",
        numeric(
            f"pi*{radius}^2",
            shown,
            f"{shown} m²",
            rounding=figures(3),
            unit="m^2",
            errors=[
                wrong("", f"2*pi*{radius}", f"{2 * 3.141592653589793 * float(radius):.1f}", "Used the circumference")
            ],
        ),
        ("Substitute in the area formula.", rf"A = \pi \times {radius}^2", f"A = pi*{radius}^2"),
        ("Calculate and round once, at the end.", rf"A \approx {shown}", f"pi*{radius}^2 ≈ {shown}"),
        why="Keeping all digits until the end gives the answer that the exact value rounds to.",
        calculator=True,
        hint="Keep all digits on the calculator until the last line.",
    )


def _nearest(draw: Draw) -> Question:
    n = draw.whole(211, 889)
    while n % 10 == 0:
        n += 1
    shown = f"{round_half_up(Fraction(n), {'kind': 'nearest', 'amount': 10}):f}"
    return ask(
        f"Round {n} to the nearest ten.",
        numeric(f"{n}*1", shown, shown, rounding={"kind": "nearest", "amount": 10}),
        ("Look at the ones digit.", rf"{n} \approx {shown}", f"{n} ≈ {shown}"),
        why="The ones digit decides whether the tens digit stays or goes up by one.",
        one=True,
    )


def _decimal(draw: Draw) -> Question:
    text = f"{draw.whole(1, 9)}.{_digits(draw, 3)}"
    shown = f"{round_half_up(Fraction(text), places(1)):f}"
    return ask(
        f"Round {text} to one decimal place.",
        numeric(f"{text}*1", shown, shown, rounding=places(1)),
        ("Look at the second decimal digit.", rf"{text} \approx {shown}", f"{text} ≈ {shown}"),
        why="The digit after the last kept one decides; the rest is dropped.",
        one=True,
    )
