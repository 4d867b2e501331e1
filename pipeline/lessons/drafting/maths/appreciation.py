"""Appreciation, compound interest and depreciation."""

from __future__ import annotations

from fractions import Fraction

from pipeline.lessons.drafting.maths.reverse_percent import pence, pounds
from pipeline.lessons.drafting.maths.tex import Line, ask, example, pick, told
from pipeline.lessons.drafting.parts import (
    MONEY,
    Draw,
    Example,
    Mistake,
    Question,
    Topic,
    numeric,
    wrong,
)


def topic() -> Topic:
    """Return the topic of outcome num.appreciation; points: appreciation with compound interest, depreciation."""
    return Topic(
        name="appreciation and depreciation",
        can="calculate a value after it has risen or fallen by a percentage for several years",
        aim="Use a multiplier for a change that repeats each year",
        prior=("Percentage increase and decrease, and powers of a number",),
        facts=(
            "A rise of 4 % multiplies a value by 1.04; a fall of 4 % multiplies it by 0.96.",
            "A change that repeats for n years multiplies by the n-th power of the multiplier.",
            "With compound interest each year's interest is added, so the next year's interest is larger.",
        ),
        keywords=(
            ("appreciation", "a rise in what something is worth"),
            ("depreciation", "a fall in what something is worth"),
            ("compound interest", "interest that is paid on earlier interest as well"),
        ),
        mistakes=(
            Mistake(
                "Three years at 5 % is a change of 15 %.",
                "Each year's 5 % is taken of a new value, so the multiplier is used three times: 1.05 cubed.",
            ),
            Mistake(
                "A fall of 12 % means multiplying by 0.12.",
                "0.12 gives the part that is lost; the part that is left is 0.88.",
            ),
        ),
        explain=_CHANGE,
        plain=_CHANGE_PLAIN,
        non_example="Simple interest is not compound interest: it pays the same amount every year.",
        example=_change_example,
        makers=(_change_which, _savings, _car, _house, _interest, _machine),
        starters=(_increase, _cube),
    )


_CHANGE = told(r"""
    A savings account with £2000 pays 3 % a year. After one year there is 103 % of the money, so we multiply by 1.03:
    \(2000 \times 1.03 = 2060\). In the second year the 3 % is taken of £2060, not of £2000, so we multiply by 1.03
    again. After three years the amount is \(2000 \times 1.03^3 = 2185.454\), which is £2185.45. This is compound
    interest. House prices that rise, or appreciate, work in the same way. Values can also fall, or depreciate. A van
    worth £15000 that loses 20 % of its value each year keeps 80 %, so each year multiplies by 0.8. After two years it
    is worth \(15000 \times 0.8^2 = 9600\), so £9600. Taking 40 % off once would give £9000, which is wrong, because
    the second year's 20 % is taken of a smaller value. To find only the interest, or only the loss, subtract at the
    end. Round once, at the end, and give money to the nearest penny where needed.
""")
_CHANGE_PLAIN = told(r"""
    You save £2000 at 3 % a year. After one year you have 103 %. So multiply by 1.03: \(2000 \times 1.03 = 2060\). In
    the second year the 3 % is taken of £2060, not of £2000. So multiply by 1.03 again. After three years you have
    \(2000 \times 1.03^3 = 2185.454\). That is £2185.45. This is compound interest. When a value rises, it
    appreciates. When it falls, it depreciates. A van costs £15000. It loses 20 % each year. It keeps 80 %. So
    multiply by 0.8 each year. After two years: \(15000 \times 0.8^2 = 9600\). That is £9600. Taking 40 % off once
    gives £9000. That is wrong. Round once, at the end.
""")


def _power(start: int, percent: Fraction, years: int, sign: int) -> tuple[str, Fraction, str]:
    """Return (multiplier as text, value, expression)."""
    factor = 1 + sign * percent / 100
    text = f"{float(factor):.4f}".rstrip("0")
    return text, start * factor**years, f"{start}*{text}^{years}"


def _change_lines(start: int, text: str, years: int, value: Fraction) -> tuple[Line, ...]:
    return (
        ("Find the multiplier of one year.", text, ""),
        (f"Use it {years} times.", rf"{start} \times {text}^{years}", ""),
        (
            "Calculate, and round to the nearest penny.",
            rf"{start} \times {text}^{years} \approx {pence(value)}",
            f"{start}*{text}^{years} ≈ {pence(value)}",
        ),
    )


def _change_example(draw: Draw) -> Example:
    start, percent, years = draw.one([(4200, 6, 3), (5600, 4, 3), (3800, 7, 2)])
    text, value, _ = _power(start, Fraction(percent), years, 1)
    return example(
        f"A painting worth £{start} appreciates by {percent} % a year. Calculate its value after {years} years.",
        pounds(value),
        *_change_lines(start, text, years, value),
    )


def _change_which(draw: Draw) -> Question:
    start, percent, years = 100 * draw.whole(12, 60), draw.one((5, 10, 20)), draw.one((2, 3))
    text, value, expression = _power(start, Fraction(percent), years, -1)
    once = Fraction(start * (100 - percent * years), 100)
    lost = start * Fraction(percent, 100) ** years
    year = Fraction(start * (100 - percent), 100)
    return pick(
        f"A bike worth £{start} loses {percent} % of its value each year. Choose its value after {years} years.",
        (pounds(value), f"{pence(value)}", f"{expression}"),
        (pounds(once), str(once), "The percentages were added up and taken off once.", "0"),
        (pounds(lost), pence(lost), "The part that is lost was used as multiplier.", "1"),
        (pounds(year), str(year), "Only one year was counted.", ""),
        lines=_change_lines(start, text, years, value),
        why=f"Each year {100 - percent} % is left, so {text} is used {years} times.",
        asks=(1,),
        reveals=(0, 1),
        calculator=True,
    )


def _changed(stem: str, start: int, percent: Fraction, years: int, sign: int) -> Question:
    text, value, expression = _power(start, percent, years, sign)
    added = start * (1 + sign * percent * years / 100)
    sum_text = f"{start} {'+' if sign > 0 else '-'} {start}*{years}*{float(percent):g}/100"
    return ask(
        stem,
        numeric(
            expression,
            pence(value),
            pounds(value),
            rounding=MONEY,
            unit="£",
            errors=[wrong("0", sum_text, pence(added), "Added the yearly percentages")],
        ),
        *_change_lines(start, text, years, value),
        why="Each year's change is taken of the value at the start of that year, so the multiplier is used again.",
        asks=(0,) if sign > 0 else (1,),
        reveals=(0,),
        calculator=True,
        hint="What do you multiply by for one year?",
    )


def _savings(draw: Draw) -> Question:
    start, percent, years = 50 * draw.whole(20, 120), draw.one((2, 3, 4, 5)), draw.one((2, 3, 4))
    stem = (
        f"{draw.person()} saves £{start} at {percent} % compound interest a year. Calculate the amount in £ "
        f"after {years} "
        "years, to the nearest penny."
    )
    return _changed(stem, start, Fraction(percent), years, 1)


def _car(draw: Draw) -> Question:
    start, percent, years = 500 * draw.whole(12, 50), draw.one((8, 12, 15, 18)), draw.one((2, 3, 4))
    stem = (
        f"{draw.person()} buys a car in {draw.place()} for £{start}. Each year it depreciates by {percent} %. "
        f"Calculate its "
        f"value in £ after {years} years, to the nearest penny."
    )
    return _changed(stem, start, Fraction(percent), years, -1)


def _house(draw: Draw) -> Question:
    start, percent, years = 1000 * draw.whole(110, 260), draw.one((2, 3, 4)), draw.one((3, 4))
    stem = (
        f"A flat in {draw.place()} is worth £{start} and appreciates by {percent} % a year. Calculate its "
        f"value in £ after "
        f"{years} years, to the nearest penny."
    )
    return _changed(stem, start, Fraction(percent), years, 1)


def _interest(draw: Draw) -> Question:
    start, percent, years = 100 * draw.whole(15, 60), draw.one((2, 3, 4)), draw.one((2, 3))
    text, value, expression = _power(start, Fraction(percent), years, 1)
    gained = value - start
    return ask(
        f"{draw.person()} in {draw.place()} invests £{start} at {percent} % compound interest a year. "
        f"Calculate the interest "
        f"in £ earned in {years} years, to the nearest penny.",
        numeric(f"{expression} - {start}", pence(gained), pounds(gained), rounding=MONEY, unit="£"),
        ("Find the multiplier of one year.", text, ""),
        (
            f"Find the amount after {years} years.",
            rf"{start} \times {text}^{years} \approx {pence(value)}",
            f"{expression} ≈ {pence(value)}",
        ),
        ("Subtract what was invested.", rf"{pence(value)} - {start} = {pence(gained)}", ""),
        why="The interest is what has been added, so the first amount is subtracted at the end.",
        calculator=True,
    )


def _machine(draw: Draw) -> Question:
    start, first, second = 1000 * draw.whole(8, 40), draw.one((20, 25, 30)), draw.one((5, 10, 15))
    one, two = Fraction(100 - first, 100), Fraction(100 - second, 100)
    value = start * one * two
    a, b = f"{float(one):g}", f"{float(two):g}"
    return ask(
        f"A machine in {draw.place()} costs £{start}. It depreciates by {first} % in the first year and by "
        f"{second} % in the "
        "second. Calculate its value in £ after two years.",
        numeric(
            f"{start}*{a}*{b}",
            pence(value),
            pounds(value),
            rounding=MONEY,
            unit="£",
            errors=[
                wrong(
                    "0",
                    f"{start}*(1 - ({first} + {second})/100)",
                    pence(start * Fraction(100 - first - second, 100)),
                    "Added the percentages",
                )
            ],
        ),
        ("Find both multipliers.", rf"{a} \text{{ and }} {b}", ""),
        ("Multiply by both.", rf"{start} \times {a} \times {b} = {pence(value)}", f"{start}*{a}*{b} = {pence(value)}"),
        why="The second fall is taken of the value after the first, so the multipliers are multiplied, not added.",
        asks=(1,),
        reveals=(0,),
        calculator=True,
    )


def _increase(draw: Draw) -> Question:
    amount, percent = 100 * draw.whole(2, 12), draw.one((5, 10, 20, 25))
    value = amount * (100 + percent) // 100
    return ask(
        f"Increase £{amount} by {percent} %.",
        numeric(f"{amount}*(100 + {percent})/100", str(value), f"£{value}", unit="£"),
        (
            "Add the percentage of the amount.",
            rf"{amount} + {value - amount} = {value}",
            f"{amount} + {value - amount} = {value}",
        ),
        why="The increase is a part of the old amount and is added to it.",
        one=True,
    )


def _cube(draw: Draw) -> Question:
    tenths = draw.whole(1, 5)
    base = f"1.{tenths}"
    value = Fraction(base) ** 2
    shown = f"{float(value):.2f}"
    return ask(
        f"Calculate {base} × {base}.",
        numeric(f"{base}*{base}", shown, shown),
        ("Multiply.", rf"{base} \times {base} = {shown}", f"{base}*{base} = {shown}"),
        why="A change that repeats multiplies by the same number again, so powers are needed.",
        one=True,
    )
