"""Percentages: back to the original amount, and change repeated over years."""

from __future__ import annotations

from fractions import Fraction

from pipeline.lessons.drafting.choice import Draw
from pipeline.lessons.drafting.maths.tex import money
from pipeline.lessons.drafting.maths.writing import Line, ask, example, pick, told
from pipeline.lessons.drafting.parts import MONEY, Example, Mistake, Question, Topic, numeric, wrong
from pipeline.lessons.rounding import round_half_up


def _two(value: Fraction) -> str:
    return f"{round_half_up(value, MONEY):.2f}"


def _pounds(value: Fraction) -> str:
    return money(Fraction(_two(value)))


def reverse() -> Topic:
    """Return the topic of outcome num.reverse_percent."""
    return Topic(
        name="reverse percentages",
        can="determine the original amount from the amount after a percentage change",
        aim="Find the amount before a percentage change",
        prior=("Percentage of a quantity, and percentage increase and decrease",),
        facts=(
            "The amount before a change is always 100 %.",
            "After a rise of 20 % the new amount is 120 % of the original; after a fall of 20 % it is 80 %.",
            "Dividing by the percentage that is left gives 1 %, and 100 times this gives the original.",
        ),
        keywords=(("original amount", "what there was before the change, always 100 per cent"),),
        mistakes=(
            Mistake(
                "To undo a 20 % rise, I take 20 % off the new amount.",
                "20 % of the new amount is more than 20 % of the original, so the new amount must be divided by 1.2.",
            ),
            Mistake(
                "The price I am told is 100 %.",
                "The told price is after the change; the original price, which is not told, is 100 %.",
            ),
        ),
        explain=_REVERSE,
        plain=_REVERSE_PLAIN,
        non_example="Finding a sale price from a full price is not a reverse percentage: there the original is known.",
        example=_reverse_example,
        makers=(_reverse_which, _sale, _rise, _vat, _people),
        starters=(_share, _multiplier),
    )


_REVERSE = told(r"""
    A jacket costs £60 in a sale with 25 % off. What was its price before? The £60 is not 100 %. The original price is
    100 %, and 25 % was taken off, so £60 is 75 % of it. Divide by 75 to find 1 %: \(60 \div 75 = 0.8\). Multiply by 100
    to find 100 %: \(0.8 \times 100 = 80\). The jacket cost £80. Check: 25 % of £80 is £20, and \(80 - 20 = 60\). The same
    can be done in one step: \(60 \div 0.75 = 80\). For a rise, the new amount is more than 100 %. If rent is £540 after a
    rise of 8 %, then £540 is 108 % of the old rent, and the old rent was \(540 \div 1.08 = 500\), so £500. Many people
    take the percentage of the new amount instead. That is wrong, because 25 % of £60 is £15, but the shop took 25 % of
    the higher price, £80. So first write down which percentage the given amount is, and then divide.
""")
_REVERSE_PLAIN = told(r"""
    A jacket costs £60 in a sale. The sale takes 25 % off. What was the price before? The price before is 100 %. Now it
    is 75 %. So £60 is 75 %. First find 1 %: \(60 \div 75 = 0.8\). Then find 100 %: \(0.8 \times 100 = 80\). The price was
    £80. Check it: 25 % of £80 is £20, and \(80 - 20 = 60\). One step is enough: \(60 \div 0.75 = 80\). Rent is £540 after a
    rise of 8 %. So £540 is 108 %. The old rent was \(540 \div 1.08 = 500\), so £500. Do not take 25 % of £60. That is only
    £15. The shop took 25 % of £80. First write the percentage. Then divide.
""")


def _undo(after: int, percent: int, original: int) -> tuple[Line, ...]:
    return (
        (f"The amount told is {percent} % of the original.", rf"{percent}\% = {after}", ""),
        ("Divide to find 1 %.", rf"1\% = {after} \div {percent}", ""),
        (
            "Multiply by 100 to find the original.",
            rf"100\% = {after} \div {percent} \times 100 = {original}",
            f"{after}/{percent}*100 = {original}",
        ),
    )


def _reverse_example(draw: Draw) -> Example:
    original, percent = draw.one([(240, 15), (360, 35), (420, 45)])
    after = original * (100 - percent) // 100
    return example(
        f"After a fall of {percent} %, a bicycle costs £{after}. Calculate its price before the fall.",
        f"£{original}",
        *_undo(after, 100 - percent, original),
    )


def _case(draw: Draw, percents: tuple[int, ...], sign: int) -> tuple[int, int, int]:
    """Return (original, percent, after): whole pounds, the original chosen first."""
    percent = draw.one(percents)
    original = 20 * draw.whole(6, 60)
    return original, percent, original * (100 + sign * percent) // 100


def _reverse_which(draw: Draw) -> Question:
    original, percent, after = _case(draw, (10, 20, 30, 40), -1)
    naive = Fraction(after * (100 + percent), 100)
    off = Fraction(after * (100 - percent), 100)
    return pick(
        f"A coat in {draw.place()} costs £{after} after {percent} % off. Choose its price before.",
        (_pounds(Fraction(original)), str(original), f"{after}/(1 - {percent}/100)"),
        (_pounds(naive), str(naive), f"{percent} % of the sale price was added.", "0"),
        (_pounds(off), str(off), f"{percent} % was taken off again.", "1"),
        (_pounds(Fraction(after + percent)), str(after + percent), "The percentage was added as pounds.", ""),
        lines=_undo(after, 100 - percent, original),
        why=f"£{after} is {100 - percent} % of the price before, so divide by {100 - percent} and multiply by 100.",
        reveals=(0, 1),
    )


def _question(stem: str, original: int, percent: int, after: int, sign: int, unit: str = "£") -> Question:
    shown = f"£{original}" if unit == "£" else f"{original}"
    naive = Fraction(after * (100 - sign * percent), 100)
    operation = "-" if sign > 0 else "+"
    return ask(
        stem,
        numeric(
            f"{after}/(100 {'+' if sign > 0 else '-'} {percent})*100",
            str(original),
            shown,
            unit=unit,
            errors=[
                wrong(
                    "0",
                    f"{after} {operation} {after}*{percent}/100",
                    _two(naive),
                    f"Took {percent} % of the amount after the change",
                )
            ],
        ),
        *_undo(after, 100 + sign * percent, original),
        why="The original is 100 %; the amount told is the percentage that there is after the change.",
        reveals=(0,),
        calculator=True,
        hint="Which percentage of the original is the amount you are told?",
    )


def _sale(draw: Draw) -> Question:
    original, percent, after = _case(draw, (5, 15, 25, 35, 45), -1)
    stem = f"In a sale in {draw.place()} a tent is reduced by {percent} % and costs £{after}. Calculate its full price in £."
    return _question(stem, original, percent, after, -1)


def _rise(draw: Draw) -> Question:
    original, percent, after = _case(draw, (5, 10, 15, 35), 1)
    stem = f"{draw.person()}'s rent rises by {percent} % to £{after} a month. Calculate the rent in £ before the rise."
    return _question(stem, original, percent, after, 1)


def _vat(draw: Draw) -> Question:
    original, percent, after = _case(draw, (20,), 1)
    stem = f"A joiner in {draw.place()} charges £{after}, which includes VAT at {percent} %. Calculate the charge in £ without VAT."
    return _question(stem, original, percent, after, 1)


def _people(draw: Draw) -> Question:
    original, percent, after = _case(draw, (5, 15, 25), 1)
    stem = (
        f"Visits to a museum in {draw.place()} rose by {percent} % in a year, to {after} visits in one week. Calculate the "
        "number of visits in the same week of the year before."
    )
    return _question(stem, original, percent, after, 1, unit="")


def _share(draw: Draw) -> Question:
    percent, amount = draw.one((5, 15, 25, 35)), 20 * draw.whole(3, 20)
    value = percent * amount // 100
    return ask(
        f"Calculate {percent} % of £{amount}.",
        numeric(f"{percent}/100*{amount}", str(value), f"£{value}", unit="£"),
        (
            "Divide by 100 and multiply.",
            rf"{percent} \div 100 \times {amount} = {value}",
            f"{percent}/100*{amount} = {value}",
        ),
        why="Per cent means out of a hundred, so one per cent is the amount divided by 100.",
        one=True,
    )


def _multiplier(draw: Draw) -> Question:
    percent = draw.one((5, 12, 18, 25, 30, 40))
    left = 100 - percent
    return ask(
        f"A price falls by {percent} %. Calculate the percentage of the price that is left.",
        numeric(f"100 - {percent}", str(left), f"{left} %", unit="%"),
        ("Take the fall from 100 %.", rf"100 - {percent} = {left}", f"100 - {percent} = {left}"),
        why="The whole price is 100 %, so what is left is the rest.",
        one=True,
    )


def appreciation() -> Topic:
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
    \(2000 \times 1.03 = 2060\). In the second year the 3 % is taken of £2060, not of £2000, so we multiply by 1.03 again.
    After three years the amount is \(2000 \times 1.03^3 = 2185.454\), which is £2185.45. This is compound interest. House
    prices that rise, or appreciate, work in the same way. Values can also fall, or depreciate. A van worth £15000 that
    loses 20 % of its value each year keeps 80 %, so each year multiplies by 0.8. After two years it is worth
    \(15000 \times 0.8^2 = 9600\), so £9600. Taking 40 % off once would give £9000, which is wrong, because the second
    year's 20 % is taken of a smaller value. To find only the interest, or only the loss, subtract at the end. Round once,
    at the end, and give money to the nearest penny where needed.
""")
_CHANGE_PLAIN = told(r"""
    You save £2000 at 3 % a year. After one year you have 103 %. So multiply by 1.03: \(2000 \times 1.03 = 2060\). In the
    second year the 3 % is taken of £2060, not of £2000. So multiply by 1.03 again. After three years you have
    \(2000 \times 1.03^3 = 2185.454\). That is £2185.45. This is compound interest. When a value rises, it appreciates. When
    it falls, it depreciates. A van costs £15000. It loses 20 % each year. It keeps 80 %. So multiply by 0.8 each year.
    After two years: \(15000 \times 0.8^2 = 9600\). That is £9600. Taking 40 % off once gives £9000. That is wrong. Round
    once, at the end.
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
            rf"{start} \times {text}^{years} \approx {_two(value)}",
            f"{start}*{text}^{years} ≈ {_two(value)}",
        ),
    )


def _change_example(draw: Draw) -> Example:
    start, percent, years = draw.one([(4200, 6, 3), (5600, 4, 3), (3800, 7, 2)])
    text, value, _ = _power(start, Fraction(percent), years, 1)
    return example(
        f"A painting worth £{start} appreciates by {percent} % a year. Calculate its value after {years} years.",
        _pounds(value),
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
        (_pounds(value), f"{_two(value)}", f"{expression}"),
        (_pounds(once), str(once), "The percentages were added up and taken off once.", "0"),
        (_pounds(lost), _two(lost), "The part that is lost was used as multiplier.", "1"),
        (_pounds(year), str(year), "Only one year was counted.", ""),
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
            _two(value),
            _pounds(value),
            rounding=MONEY,
            unit="£",
            errors=[wrong("0", sum_text, _two(added), "Added the yearly percentages")],
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
        f"{draw.person()} saves £{start} at {percent} % compound interest a year. Calculate the amount in £ after {years} "
        "years, to the nearest penny."
    )
    return _changed(stem, start, Fraction(percent), years, 1)


def _car(draw: Draw) -> Question:
    start, percent, years = 500 * draw.whole(12, 50), draw.one((8, 12, 15, 18)), draw.one((2, 3, 4))
    stem = (
        f"{draw.person()} buys a car in {draw.place()} for £{start}. Each year it depreciates by {percent} %. Calculate its "
        f"value in £ after {years} years, to the nearest penny."
    )
    return _changed(stem, start, Fraction(percent), years, -1)


def _house(draw: Draw) -> Question:
    start, percent, years = 1000 * draw.whole(110, 260), draw.one((2, 3, 4)), draw.one((3, 4))
    stem = (
        f"A flat in {draw.place()} is worth £{start} and appreciates by {percent} % a year. Calculate its value in £ after "
        f"{years} years, to the nearest penny."
    )
    return _changed(stem, start, Fraction(percent), years, 1)


def _interest(draw: Draw) -> Question:
    start, percent, years = 100 * draw.whole(15, 60), draw.one((2, 3, 4)), draw.one((2, 3))
    text, value, expression = _power(start, Fraction(percent), years, 1)
    gained = value - start
    return ask(
        f"{draw.person()} in {draw.place()} invests £{start} at {percent} % compound interest a year. Calculate the interest "
        f"in £ earned in {years} years, to the nearest penny.",
        numeric(f"{expression} - {start}", _two(gained), _pounds(gained), rounding=MONEY, unit="£"),
        ("Find the multiplier of one year.", text, ""),
        (
            f"Find the amount after {years} years.",
            rf"{start} \times {text}^{years} \approx {_two(value)}",
            f"{expression} ≈ {_two(value)}",
        ),
        ("Subtract what was invested.", rf"{_two(value)} - {start} = {_two(gained)}", ""),
        why="The interest is what has been added, so the first amount is subtracted at the end.",
        calculator=True,
    )


def _machine(draw: Draw) -> Question:
    start, first, second = 1000 * draw.whole(8, 40), draw.one((20, 25, 30)), draw.one((5, 10, 15))
    one, two = Fraction(100 - first, 100), Fraction(100 - second, 100)
    value = start * one * two
    a, b = f"{float(one):g}", f"{float(two):g}"
    return ask(
        f"A machine in {draw.place()} costs £{start}. It depreciates by {first} % in the first year and by {second} % in the "
        "second. Calculate its value in £ after two years.",
        numeric(
            f"{start}*{a}*{b}",
            _two(value),
            _pounds(value),
            rounding=MONEY,
            unit="£",
            errors=[
                wrong(
                    "0",
                    f"{start}*(1 - ({first} + {second})/100)",
                    _two(start * Fraction(100 - first - second, 100)),
                    "Added the percentages",
                )
            ],
        ),
        ("Find both multipliers.", rf"{a} \text{{ and }} {b}", ""),
        ("Multiply by both.", rf"{start} \times {a} \times {b} = {_two(value)}", f"{start}*{a}*{b} = {_two(value)}"),
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
