"""Reverse percentages."""

from __future__ import annotations

from fractions import Fraction

from pipeline.lessons.drafting.maths.tex import Line, ask, example, money, pick, told
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
from pipeline.lessons.rounding import round_half_up


def pence(value: Fraction) -> str:
    """Return an amount with two decimal places, half up."""
    return f"{round_half_up(value, MONEY):.2f}"


def pounds(value: Fraction) -> str:
    """Return an amount as it is printed: £1,250.00."""
    return money(Fraction(pence(value)))


def topic() -> Topic:
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
    100 %, and 25 % was taken off, so £60 is 75 % of it. Divide by 75 to find 1 %: \(60 \div 75 = 0.8\). Multiply by
    100 to find 100 %: \(0.8 \times 100 = 80\). The jacket cost £80. Check: 25 % of £80 is £20, and \(80 - 20 = 60\).
    The same can be done in one step: \(60 \div 0.75 = 80\). For a rise, the new amount is more than 100 %. If rent is
    £540 after a rise of 8 %, then £540 is 108 % of the old rent, and the old rent was \(540 \div 1.08 = 500\), so
    £500. Many people take the percentage of the new amount instead. That is wrong, because 25 % of £60 is £15, but
    the shop took 25 % of the higher price, £80. So first write down which percentage the given amount is, and then
    divide.
""")
_REVERSE_PLAIN = told(r"""
    A jacket costs £60 in a sale. The sale takes 25 % off. What was the price before? The price before is 100 %. Now
    it is 75 %. So £60 is 75 %. First find 1 %: \(60 \div 75 = 0.8\). Then find 100 %: \(0.8 \times 100 = 80\). The
    price was £80. Check it: 25 % of £80 is £20, and \(80 - 20 = 60\). One step is enough: \(60 \div 0.75 = 80\). Rent
    is £540 after a rise of 8 %. So £540 is 108 %. The old rent was \(540 \div 1.08 = 500\), so £500. Do not take 25 %
    of £60. That is only £15. The shop took 25 % of £80. First write the percentage. Then divide.
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
        (pounds(Fraction(original)), str(original), f"{after}/(1 - {percent}/100)"),
        (pounds(naive), str(naive), f"{percent} % of the sale price was added.", "0"),
        (pounds(off), str(off), f"{percent} % was taken off again.", "1"),
        (pounds(Fraction(after + percent)), str(after + percent), "The percentage was added as pounds.", ""),
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
                    pence(naive),
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
    stem = (
        f"In a sale in {draw.place()} a tent is reduced by {percent} % and costs £{after}. Calculate its "
        f"full price in £."
    )
    return _question(stem, original, percent, after, -1)


def _rise(draw: Draw) -> Question:
    original, percent, after = _case(draw, (5, 10, 15, 35), 1)
    stem = f"{draw.person()}'s rent rises by {percent} % to £{after} a month. Calculate the rent in £ before the rise."
    return _question(stem, original, percent, after, 1)


def _vat(draw: Draw) -> Question:
    original, percent, after = _case(draw, (20,), 1)
    stem = (
        f"A joiner in {draw.place()} charges £{after}, which includes VAT at {percent} %. Calculate the "
        f"charge in £ without VAT."
    )
    return _question(stem, original, percent, after, 1)


def _people(draw: Draw) -> Question:
    original, percent, after = _case(draw, (5, 15, 25), 1)
    stem = (
        f"Visits to a museum in {draw.place()} rose by {percent} % in a year, to {after} visits in one week. "
        f"Calculate the "
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
