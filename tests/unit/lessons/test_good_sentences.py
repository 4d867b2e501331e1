"""What a teacher would write every day is not refused; the same with a slip in it still is."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from pipeline.content.checks import ROWS
from pipeline.content.findings import Case
from pipeline.content.lesson import Lesson
from tests.checking import Json, course, scheme_of
from tests.small_lesson import fresh
from tests.unit.lessons.test_checks import put
from tests.unit.lessons.test_checks_mathematics import question

EXPLAINER, ASK, QUESTION = "c2.text", "c8.q1.ask", "c8.q1"


def computed(ask: str, answer: str, expression: str) -> Json:
    """Return a question whose answer is computed."""
    return question(ask, answer, "", expression=expression)


def drawn(ask: str, kind: str, *lines: str) -> Json:
    """Return a question with a figure."""
    return question(ask, "It is so.", "", figures=[{"kind": kind, "lines": list(lines)}])


SHARES = ("columns: group | people", "row: boys | 12", "row: girls | 18")
BARS = ("x: month", "y: rainfall / mm", "bar May: 80", "bar June: 60", "bar July: 90")
CONE = ("solid: cone", "height: 12 cm", "slant height: 13 cm")
#: Row, place, what is added there, or the question that stands there.
GOOD: list[tuple[int, str, Any]] = [
    (
        6,
        QUESTION,
        computed(
            "Eight tiles, each 45 cm wide, lie side by side. Find the width of the row in m.", "3.6 m", "45*8/100"
        ),
    ),
    (
        6,
        QUESTION,
        computed(
            "A car is 20 times as long as a model of 24 cm. Find the length of the car in m.", "4.8 m", "24*20/100"
        ),
    ),
    (
        6,
        QUESTION,
        computed("Shelves of 85 cm and 45 cm stand side by side. Find their width in m.", "1.3 m", "(85+45)/100"),
    ),
    (6, QUESTION, computed("A box holds 12 bags of 250 g. Find the mass of the bags in kg.", "3 kg", "250*12/1000")),
    (6, QUESTION, computed("A current of 20 mA is in a resistor of 150 Ω. Find the voltage.", "3 V", "20*150/1000")),
    (6, QUESTION, computed("A mat is 60 cm by 40 cm. Find its area in m².", "0.24 m²", "60*40/10000")),
    (6, QUESTION, computed("A phone contract costs £25 a month. Find the cost for 1 year.", "£300", "25*12")),
    (
        6,
        QUESTION,
        computed("Isla reads for 45 minutes each day. Find how long she reads in 1 week.", "315 minutes", "45*7"),
    ),
    (6, QUESTION, computed("A phone contract costs £25 a month. Find the cost for 2 years.", "£600", "25*24")),
    (14, EXPLAINER, "The coins 10, 20 and 50 make 80 pence."),
    (14, EXPLAINER, "The prime factors 2, 3 and 5 make 30."),
    (14, EXPLAINER, "The digits 1, 2 and 3 make 123."),
    (14, EXPLAINER, r"An equation in two letters is \(2x+y=x+2y\)."),
    (14, EXPLAINER, r"Every point of the line has \(2x+y=x+2y\)."),
    (14, EXPLAINER, "The sides 3, 4 and 5 make 1 right angle."),
    (14, EXPLAINER, "The scores 2, 4 and 6 give 4 as the mean."),
    (14, EXPLAINER, "The digits 1, 2 and 4 make 6 numbers."),
    (14, EXPLAINER, "Here 20 and 30 make 1 pair."),
    (14, EXPLAINER, "So 5 and 7 give 35 as their product."),
    (14, EXPLAINER, "Half of 7 is 3½."),
    (14, EXPLAINER, "Here 19 divided by 5 is 3 remainder 4."),
    (14, EXPLAINER, "Here 19 divided by 5 is 3 with 4 left."),
    (14, EXPLAINER, "So 2 divided by 3 is 0.66 rounded down."),
    (14, EXPLAINER, "So 3 times 2 equals 2 plus 2 plus 2."),
    (14, EXPLAINER, "So 3 times 40 is 12 tens."),
    (14, EXPLAINER, "So 1000 times 3000 is 3 million."),
    (14, EXPLAINER, "Here 36 divided by 4 equals 3 squared."),
    (16, ASK, r"Then find f(3)"),
    (16, ASK, "Write the score as a percentage of 40 marks"),
    (16, ASK, "Now solve equation (2)"),
    (
        20,
        QUESTION,
        computed(
            "Two fair dice are rolled. Calculate the probability that the total is 7.", r"\(\frac{1}{6}\)", "6/36"
        ),
    ),
    (
        20,
        QUESTION,
        computed("Two fair dice are rolled. What is the probability that the total is 7?", r"\(\frac{1}{6}\)", "6/36"),
    ),
    (20, EXPLAINER, "The probability that the mean is 12 is 0.4."),
    (20, EXPLAINER, "The probability is 0.3 that a bus is 5 minutes late."),
    (20, EXPLAINER, r"The probability that the total is 7 is \(\frac{1}{6}\)."),
    (20, EXPLAINER, "The ratio is equal to 40:60."),
    (20, EXPLAINER, "It changed from 1:50 to 1:75."),
    (20, EXPLAINER, "The Shard is 310 m tall."),
    (20, EXPLAINER, "Each Kelpie at Falkirk is 30 m tall."),
    (20, EXPLAINER, "A runner is 100 m from the finish."),
    (20, EXPLAINER, "The height of the climber is 20 m."),
    (20, EXPLAINER, "A cheetah runs at 30 m/s."),
    (20, EXPLAINER, "A dolphin swims at 10 m/s."),
    (20, EXPLAINER, "A roller coaster runs down a slope at 25 m/s."),
    (20, EXPLAINER, "A flower bed is 8 m long."),
    (20, EXPLAINER, "A doll's house is 60 cm tall."),
    (20, EXPLAINER, "A pencil is 7 mm wide."),
    (20, EXPLAINER, "A bus is 2.5 m wide."),
    (20, EXPLAINER, "A heater costs £0.24 an hour."),
    (20, EXPLAINER, "Parking is £0.80 an hour."),
    (20, EXPLAINER, "She earns an extra £0.50 an hour."),
    (20, EXPLAINER, "A coffee machine costs £450."),
    (20, EXPLAINER, "A tea set costs £85."),
    (20, EXPLAINER, "A wedding cake costs £320."),
    (20, EXPLAINER, "The fridge runs 168 hours a week."),
    (20, EXPLAINER, "The new area is 125 % of the area of the old one."),
    (20, EXPLAINER, "The club has 115 % of the members of last year."),
    (20, EXPLAINER, "The shop had 115 % of the customers of last year."),
    (20, EXPLAINER, "The old way takes 120 % of the time."),
    (20, EXPLAINER, r"The speed of light \(2.25\times 10^{8}\) m/s in water is less."),
    (20, EXPLAINER, "She left in the class of 2019."),
    (30, EXPLAINER, "The bite-size prize was seized on the horizon, at full size or downsized to stateSize."),
    (30, EXPLAINER, "Capsized boats and maize are on this humorous quiz."),
    (33, EXPLAINER, "Let each pupil throw a die at their desk."),
    (33, EXPLAINER, "Ask groups to drop a die on their desks ten times."),
    (33, EXPLAINER, "Never look directly at the sun."),
    (34, QUESTION, drawn("In which month did most rain fall?", "bar chart", "title: Rainfall in Oban in 2023", *BARS)),
    (34, QUESTION, drawn("In which month did most rain fall?", "bar chart", "title: Notes of class 4B on rain", *BARS)),
    (34, QUESTION, drawn("In which month did most rain fall?", "bar chart", "title: Rain on the 100 m track", *BARS)),
    (34, QUESTION, drawn("A cone has slant height 13 cm and height 12 cm. Find its radius.", "solid", *CONE)),
    (34, QUESTION, drawn("The share of boys is 40 % of the class. How many boys are there?", "table", *SHARES)),
]
BAD: list[tuple[int, str, Any]] = [
    (
        6,
        QUESTION,
        computed("Two tiles, each 45 cm wide, lie side by side. Find the width of the row in m.", "90 m", "45*2"),
    ),
    (6, QUESTION, computed("A tray holds 2 bags of 250 g. Find the mass of the bags in kg.", "500 kg", "250*2")),
    (6, QUESTION, computed("A phone contract costs £25 a month. Find the cost for 1 year.", "£336", "28*12")),
    (14, EXPLAINER, "The angles 90°, 162° and 108° make 350°."),
    (14, EXPLAINER, "The coins £2, £3 and £5 make £11 in all."),
    (14, EXPLAINER, "The numbers 3, 4 and 5 add up to 13."),
    (14, EXPLAINER, "So 5 and 7 make 13."),
    (14, EXPLAINER, "Here 20 % of 80 is 18."),
    (14, EXPLAINER, "Half of 24 is 13 tickets."),
    (14, EXPLAINER, r"So \(2x+y=x+2y\)."),
    (16, ASK, "Now find it. (4)"),
    (16, ASK, "Now find it [4 marks]"),
    (20, EXPLAINER, "The probability that the mean is 12 is 1.4."),
    (20, EXPLAINER, "The probability of rain is 1.3, so it is sure."),
    (20, EXPLAINER, "The bus leaves at 25:10."),
    (20, EXPLAINER, "Isla is 17 m tall."),
    (20, EXPLAINER, "The height of the boy is 17 m."),
    (20, EXPLAINER, "Rory runs at 30 m/s."),
    (20, EXPLAINER, "A swimmer goes at 10 m/s."),
    (20, EXPLAINER, "A bus is 250 m long."),
    (20, EXPLAINER, "She is paid £0.12 an hour."),
    (20, EXPLAINER, "A coffee costs £450."),
    (20, EXPLAINER, "The fridge runs 169 hours a week."),
    (20, EXPLAINER, "The survey has 115 % of the people in favour."),
    (20, EXPLAINER, r"The speed of light \(2.25\times 10^{8}\) m/s is a constant."),
    *((30, EXPLAINER, f"That is {word} here.") for word in ("behavior", "fiber", "honor", "organized", "analyzing")),
    *(
        (30, EXPLAINER, f"That is {word} here.")
        for word in ("factorized", "rationalize", "hypothesized", "vapor", "labeled", "Color")
    ),
    (33, EXPLAINER, "Do not inhale the gas. Then look at the sun through the slit."),
    (33, EXPLAINER, "Let pupils climb on their desks."),
    (34, QUESTION, drawn("Find the radius of a cone of height 11 cm.", "solid", *CONE)),
    (
        34,
        QUESTION,
        drawn(
            "The number of boys is 13. How many pupils are there?",
            "table",
            "columns: group | people",
            "row: number of boys | 12",
        ),
    ),
]


def told(number: int, where: str, value: Any) -> list[str]:
    """Return what one row finds above a warning once a text, or a question, stands in a good lesson."""
    lesson = fresh()
    put(lesson, where, (lambda before: f"{before} {value}") if isinstance(value, str) else value)
    row = next(row for row in ROWS if row.number == number)
    assert row.check
    found = row.check(Case(Lesson.model_validate(lesson), entry(), course()))
    return [f"{fault.where}: {fault.found}" for fault in found if (fault.severity or row.severity) != "W"]


def told_of(value: Any) -> str:
    return str(value["ask"] if isinstance(value, dict) else value)[:60]


@cache
def entry() -> Json:
    return {**scheme_of(course(), 1)[0], "calculator": "calc"}


@pytest.mark.parametrize(("number", "where", "text"), GOOD, ids=told_of)
def test_a_good_sentence_stands(number: int, where: str, text: Any) -> None:
    assert told(number, where, text) == []


@pytest.mark.parametrize(("number", "where", "text"), BAD, ids=told_of)
def test_a_slip_is_found(number: int, where: str, text: Any) -> None:
    assert told(number, where, text)
