"""Interquartile range and standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pipeline.lessons.data_summary import summarise
from pipeline.lessons.drafting.maths.tex import Line, ask, example, frac, pick, root, told
from pipeline.lessons.drafting.parts import Draw, Example, Json, Mistake, Question, Topic, numeric, places, words
from pipeline.lessons.expressions import approximate
from pipeline.lessons.rounding import round_half_up, show_fraction


def topic() -> Topic:
    """Return the topic of outcome stat.compare; points: interquartile range, standard deviation."""
    return Topic(
        name="comparing data sets",
        can="calculate the interquartile range and standard deviation and compare two sets of data",
        aim="Say which data are higher and which are more spread out",
        prior=("Mean and median of a list of numbers, and putting numbers in order",),
        facts=(
            "The interquartile range is the upper quartile minus the lower quartile.",
            "The standard deviation shows how far values lie from the mean; a small one means consistent data.",
            "A comparison needs one sentence on the average and one on the spread.",
        ),
        keywords=(
            ("interquartile range", "the upper quartile minus the lower one"),
            ("standard deviation", "a measure of how far values lie from the mean"),
        ),
        mistakes=(
            Mistake(
                "The quartiles can be read from the list as it is given.",
                "The values must be put in order first, because quartiles cut an ordered list.",
            ),
            Mistake(
                "A larger spread is better.",
                "A larger spread only means that the values differ more; whether that is good depends on the question.",
            ),
        ),
        explain=_EXPLAIN,
        plain=_PLAIN,
        non_example="The range is not the interquartile range: one unusual value changes the range, and the "
        "quartiles stay.",
        example=_example,
        makers=(_which, _iqr, _deviation, _compare, _even, _deviation_times),
        starters=(_mean, _median),
    )


_EXPLAIN = told(r"""
    Two buses have the same mean delay of 6 minutes. One is always 5, 6 or 7 minutes late, the other sometimes 0 and
    sometimes 20. An average does not show this difference; the spread does. For the interquartile range, put the
    values in order and find the median. The lower quartile is the median of the lower half, the upper quartile that
    of the upper half; with an odd number of values the middle one belongs to neither half. For 2, 4, 5, 7, 8, 9, 12
    the median is 7, the quartiles are 4 and 9, and the interquartile range is \(9 - 4 = 5\). The standard deviation
    uses every value. Find the mean, take each value's distance from it, square the distances and add them, divide by
    one less than the number of values, and take the root: \(s = \sqrt{\frac{\sum (x - \bar{x})^2}{n - 1}}\). For 3,
    5, 7 the mean is 5, the squares are 4, 0 and 4, so \(s = \sqrt{\frac{8}{2}} = 2\). To compare two sets, say which
    is higher on average, and which is more consistent, in the words of the situation.
""")
_PLAIN = told(r"""
    Two buses are 6 minutes late on average. One is always 5, 6 or 7 minutes late. The other is 0 or 20 minutes late.
    The spread shows this. For the interquartile range, put the values in order. Find the median. The lower quartile
    is the median of the lower half. The upper quartile is the median of the upper half. An odd list? Leave out the
    middle value. For 2, 4, 5, 7, 8, 9, 12 the quartiles are 4 and 9. The interquartile range is \(9 - 4 = 5\). The
    standard deviation uses every value: \(s = \sqrt{\frac{\sum (x - \bar{x})^2}{n - 1}}\). For 3, 5, 7 the mean is 5.
    The squares are 4, 0 and 4. So \(s = \sqrt{\frac{8}{2}} = 2\). Then compare. Which is higher on average? Which is
    more consistent?
""")


def _listed(values: Sequence[int]) -> str:
    return ", ".join(str(value) for value in values)


def _fractions(values: Sequence[int]) -> list[Fraction]:
    return [Fraction(value) for value in values]


def _one(quantity: str, values: Sequence[int]) -> Fraction:
    found = summarise(quantity, _fractions(values))
    assert isinstance(found, Fraction)
    return found


def _statistics(quantity: str, values: Sequence[int], printed: str, unit: str, rounding: Json) -> Json:
    return {
        "kind": "statistics",
        "data": [str(value) for value in values],
        "quantity": quantity,
        "rounding": rounding,
        "value": printed,
        "unit": unit,
        "wrong": [],
        "shown": f"{printed} {unit}".strip(),
    }


def _iqr_lines(values: Sequence[int]) -> tuple[Line, ...]:
    low, high = show_fraction(_one("lower_quartile", values)), show_fraction(_one("upper_quartile", values))
    result = show_fraction(_one("interquartile_range", values))
    return (
        ("Put the values in order.", rf"\text{{{_listed(sorted(values))}}}", ""),
        ("Find the medians of the lower and the upper half.", rf"Q_1 = {low} \text{{ and }} Q_3 = {high}", ""),
        ("Subtract.", f"{high} - {low} = {result}", f"{high} - {low} = {result}"),
    )


def _deviation_lines(values: Sequence[int]) -> tuple[tuple[Line, ...], str]:
    mean = sum(values) // len(values)
    squares = [(value - mean) ** 2 for value in values]
    total, less = sum(squares), len(values) - 1
    shown = f"{round_half_up(summarise('standard_deviation', _fractions(values)), places(2)):f}"
    added = "+".join(str(value) for value in values)
    return (
        (
            (
                "Find the mean.",
                rf"\bar{{x}} = {frac(sum(values), len(values))} = {mean}",
                f"({added})/{len(values)} = {mean}",
            ),
            (
                "Square the distances from the mean and add them.",
                f"{' + '.join(str(s) for s in squares)} = {total}",
                f"{' + '.join(str(s) for s in squares)} = {total}",
            ),
            (
                f"Divide by {less} and take the root.",
                rf"s = {root(frac(total, less))} \approx {shown}",
                f"sqrt({total}/{less}) ≈ {shown}",
            ),
        ),
        shown,
    )


def _balanced(draw: Draw, count: int, low: int, high: int) -> list[int]:
    """Return so many different values whose mean is whole."""
    while True:
        values = draw.some(list(range(low, high + 1)), count)
        if sum(values) % count == 0:
            return values


def _example(draw: Draw) -> Example:
    values = draw.one([[12, 15, 11, 18, 14], [22, 27, 25, 20, 26], [31, 35, 38, 33, 33]])
    lines, shown = _deviation_lines(values)
    return example(
        f"Five parcels weigh {_listed(values)} kg. Calculate the standard deviation to 2 decimal places.",
        f"{shown} kg",
        *lines,
    )


def _which(draw: Draw) -> Question:
    values = draw.some(list(range(3, 40)), 7)
    ordered = sorted(values)
    key = ordered[5] - ordered[1]
    others = [ordered[6] - ordered[0], abs(values[5] - values[1]), ordered[3]]
    if len({key, *others}) < 4:
        return _which(draw)
    return pick(
        f"The ages of seven people in a choir in {draw.place()} are {_listed([v + 10 for v in values])}. "
        f"Choose the interquartile range.",
        (str(key), str(key), f"{ordered[5] + 10} - {ordered[1] + 10}"),
        (str(others[0]), str(others[0]), "This is the range.", ""),
        (str(others[1]), str(others[1]), "The list was not put in order.", "0"),
        (str(others[2]), str(others[2]), "This is no difference of quartiles.", ""),
        lines=_iqr_lines([v + 10 for v in values]),
        why="In order, the quartiles are the second and the sixth of seven values.",
    )


def _range_question(draw: Draw, count: int) -> Question:
    values = draw.some(list(range(5, 60)), count)
    printed = show_fraction(_one("interquartile_range", values))
    return ask(
        f"{draw.person()} notes the waiting times at a bus stop in {draw.place()}, in minutes: "
        f"{_listed(values)}. Calculate the "
        "interquartile range in minutes.",
        _statistics("interquartile_range", values, printed, "min", {"kind": "exact", "amount": 0}),
        *_iqr_lines(values),
        why="The quartiles cut the ordered list into quarters; their difference is the spread of the middle half.",
        reveals=(0,),
        hint="Put the values in order first.",
    )


def _iqr(draw: Draw) -> Question:
    return _range_question(draw, draw.one((7, 9)))


def _even(draw: Draw) -> Question:
    return _range_question(draw, draw.one((6, 8, 10)))


def _spread_question(draw: Draw, stem: str, low: int, high: int, unit: str, count: int) -> Question:
    values = _balanced(draw, count, low, high)
    lines, shown = _deviation_lines(values)
    return ask(
        stem.format(values=_listed(values)),
        _statistics("standard_deviation", values, shown, unit, places(2)),
        *lines,
        why="The squares keep distances above and below the mean from cancelling; the root brings back the unit.",
        asks=(1,),
        calculator=True,
        hint="Find the mean first.",
    )


def _deviation(draw: Draw) -> Question:
    stem = (
        f"The masses in g of five apples from a shop in {draw.place()} are {{values}}. Calculate the standard "
        f"deviation in g, to 2 "
        "decimal places."
    )
    return _spread_question(draw, stem, 90, 160, "g", 5)


def _deviation_times(draw: Draw) -> Question:
    stem = (
        f"{draw.person()}'s times in s over six runs near {draw.place()} are {{values}}. Calculate the "
        f"standard deviation in s, to 2 "
        "decimal places."
    )
    return _spread_question(draw, stem, 40, 75, "s", 6)


def _compare(draw: Draw) -> Question:
    first, second = draw.some(["Oban", "Ayr", "Elgin", "Perth", "Dundee", "Paisley"], 2)
    mean_one, mean_two = draw.whole(12, 20), draw.whole(21, 30)
    spread_one, spread_two = draw.one([("2.1", "4.8"), ("5.6", "1.9"), ("3.3", "6.2"), ("4.7", "2.4")])
    steady = first if approximate(Fraction(spread_one)) < approximate(Fraction(spread_two)) else second
    return ask(
        f"Bus delays in {first} have mean {mean_one} and standard deviation {spread_one} minutes; in {second} "
        f"mean {mean_two} and "
        f"standard deviation {spread_two} minutes. Make two comments that compare the delays.",
        words(
            f"On average delays are longer in {second}; they are more consistent in {steady}.",
            [f"Longer on average in {second}, more consistent in {steady}"],
            must_have=["on average", "consistent"],
            reject=["Numbers repeated without comparing them"],
        ),
        (
            f"Compare the means: {mean_one} is less than {mean_two}.",
            rf"{mean_one} < {mean_two}",
            f"{mean_one} < {mean_two}",
        ),
        (
            "Compare the standard deviations: the smaller one is the more consistent.",
            rf"\text{{{spread_one} and {spread_two}}}",
            "",
        ),
        why="The mean compares the size, the standard deviation the spread; both are said in the words of the "
        "situation.",
        asks=(0, 1),
        reveals=(1,),
    )


def _mean(draw: Draw) -> Question:
    values = _balanced(draw, 4, 5, 40)
    mean = sum(values) // 4
    added = " + ".join(str(value) for value in values)
    return ask(
        f"Calculate the mean of {_listed(values)}.",
        numeric(f"({added})/4", str(mean), str(mean)),
        ("Add the values and divide by 4.", f"{frac(added, 4)} = {mean}", f"({added})/4 = {mean}"),
        why="The mean shares the total equally among the values.",
        one=True,
    )


def _median(draw: Draw) -> Question:
    values = draw.some(list(range(5, 60)), 5)
    return ask(
        f"Calculate the median of {_listed(values)}.",
        _statistics("median", values, str(sorted(values)[2]), "", {"kind": "exact", "amount": 0}),
        ("Put the values in order and take the middle one.", rf"\text{{{_listed(sorted(values))}}}", ""),
        why="The median is the middle of the ordered list.",
        one=True,
    )
