"""What a lesson of economics, geography or biology says every day is not refused; what it was mistaken for still is."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pipeline.content.checks import check_lesson
from pipeline.content.checks_prose import read_line
from pipeline.content.findings import Finding
from pipeline.drawing.figure import table
from pipeline.drawing.values import axis
from pipeline.lessons.patches import Patch, PatchScope, apply
from pipeline.maths.statements import Lines
from pipeline.maths.units import unit
from tests.checking import Json, course
from tests.small_lesson import fresh
from tests.unit.lessons.test_checks import put
from tests.unit.lessons.test_good_sentences import EXPLAINER, QUESTION, computed, entry, told

DENSITY = "A town has 12,000 people on 24 km². Calculate its population density, in people per km²."
FORCE = "In a region of 200 km² 40,000 people work, and 2,000 look for work. Calculate the labour force."
SUM = "Of 40 times below 20 s, 10 are below 5 s and 14 from 5 s to 10 s. Find the cumulative frequency at 10 s."
OUTPUT = "The output of a country is £1,800 billion. It grows by £200 billion. Calculate its new output."
PEOPLE = "In 2022 5.47 million people live there. Their number grows by 6 %. Find it in million, to 1 decimal place."
GOOD: list[tuple[int, str, Any]] = [
    (19, QUESTION, computed(DENSITY, "500 people per km²", "12000/24")),
    (19, QUESTION, computed(DENSITY, "500", "12000/24")),
    (19, QUESTION, computed(FORCE, "42,000", "40000+2000")),
    (19, QUESTION, computed(SUM, "24", "10+14")),
    (19, QUESTION, computed("A taxi asks for £3 and £2 for each of 6 km. Calculate the charge.", "£15", "3+2*6")),
    (
        19,
        QUESTION,
        computed("A cell of 0.02 mm fills 40 mm. Calculate the magnifying power of the lens.", "2000", "40/0.02"),
    ),
    (33, EXPLAINER, "A depression brings rain. Its low air pressure draws in wind."),
    (33, EXPLAINER, "In the Great Depression many people lost their work."),
    (33, EXPLAINER, "The depressed demand keeps the price low."),
    (33, EXPLAINER, "The Tropic of Cancer lies at 23.5° N."),
    (33, EXPLAINER, "Write your plan as bullet points. A bullet train is faster."),
    (33, EXPLAINER, "When you inhale, your ribs move up and out. You inhale about 0.5 litres of air."),
    (33, EXPLAINER, "An alcohol has a hydroxyl group on one of its carbon atoms."),
    (33, EXPLAINER, "Farmers in the east grow oilseed rape."),
    (5, QUESTION, computed("A source of 640 Bq halves its activity 3 times. Find it now.", "80 Bq", "640/2^3")),
    (
        6,
        QUESTION,
        computed("A gas at 27 °C is heated to 87 °C. Find the ratio of its pressures.", "1.2", "(87+273)/(27+273)"),
    ),
    (20, QUESTION, computed("Nominal pay is £2,200. The price index is 110. Find real pay.", "£2000", "2200/110*100")),
    (5, QUESTION, computed(OUTPUT, "£2,000 billion", "1800+200")),
    (5, QUESTION, computed(OUTPUT, "£2,000 billion", "(1800+200)*10^9")),
    (15, QUESTION, computed(PEOPLE, "5.8 million", "5.47*1.06")),
    (19, EXPLAINER, "Find the pressure of 2.0 mol of a gas, the mass of 25 cm³ of water and a volume of 3 kg of ice."),
    (19, EXPLAINER, "A kilowatt-hour is the energy of 1000 W in an hour."),
]
BAD: list[tuple[int, str, Any]] = [
    (5, QUESTION, computed(OUTPUT, "£2,100 billion", "1800+200")),
    (15, QUESTION, computed(PEOPLE, "5.80 million", "5.47*1.06")),
    (19, QUESTION, computed("A mass of 6 kg fills 3 m³. Calculate its density.", "2", "6/3")),
    (19, QUESTION, computed("A wire carries 20 A for 3 s. Calculate the charge.", "£60", "20*3")),
    (33, EXPLAINER, "Rory suffers from depression. In bad weather it is worse."),
    (33, EXPLAINER, "Isla was depressed. The weather was bad."),
    (33, EXPLAINER, "Her uncle has cancer."),
    (33, EXPLAINER, "The bullets hit the wall."),
    (33, EXPLAINER, "Inhale helium and speak."),
    (33, EXPLAINER, "Inhale the gas."),
    (33, EXPLAINER, "Rory drinks alcohol. It has a hydroxyl group."),
    (33, EXPLAINER, "The terrorists came at night."),
    (
        6,
        QUESTION,
        computed("A gas at 27 K is heated to 87 K. Find the ratio of its pressures.", "1.2", "(87+273)/(27+273)"),
    ),
    (20, QUESTION, computed("My aunt is 140. She is 70 years older than I am. How old am I?", "70 years", "140-70")),
    (20, QUESTION, computed("Isla is 140 years old. Rory is half as old. How old is he?", "70 years", "140/2")),
    (20, QUESTION, computed("A man, aged 150, walks 3 km in 2 h. Find his speed.", "1.5 km/h", "3/2")),
    (19, EXPLAINER, "It hits the wall with a force of 5 kg. A pressure of 2 mol acts on it."),
]


@pytest.mark.parametrize(("number", "where", "value"), GOOD)
def test_words_with_another_sense_are_not_refused(number: int, where: str, value: Any) -> None:
    assert told(number, where, value) == []


@pytest.mark.parametrize(("number", "where", "value"), BAD)
def test_their_first_sense_still_is(number: int, where: str, value: Any) -> None:
    assert told(number, where, value)


def test_each_line_of_working_is_read_by_itself() -> None:
    lesson = fresh()
    two = "Find both changes.\n\\(\\frac{22-20}{20}\\times 100=10\\) %\n\\(\\frac{190-200}{200}\\times 100={}\\) %"
    put(lesson, "c3.e1.working.1", two.replace("{}", "-5"))
    assert not [fault for fault in found(lesson, 14) if "is not true" in fault.found]
    put(lesson, "c3.e1.working.1", two.replace("{}", "-6"))
    assert [fault.where for fault in found(lesson, 14) if "is not true" in fault.found] == ["c3.e1.working.1"]


def found(lesson: Json, number: int, of: Json | None = None) -> list[Finding]:
    told = check_lesson(lesson, entry=entry(), course=of or course())
    return [each for each in told if each.check == number and each.severity != "W"]


def test_an_axis_may_count_by_the_thousand() -> None:
    assert (axis("price / £ per 1,000, 0 to 600").label, axis("price / £ per 1,000, 0 to 600").high) == (
        "price / £ per 1,000",
        600,
    )
    assert axis("people, 1,000 to 5,000").low == 1000


def test_a_label_that_is_asked_for_may_be_written() -> None:
    lesson = fresh()
    put(lesson, EXPLAINER, lambda text: f"{text} The robber was caught.")
    told = found(lesson, 33)
    assert [each.where for each in told] == [EXPLAINER]
    made, refused = apply(lesson, [Patch("labels.1", "crime: The robber was caught")], PatchScope.of(told))
    assert (refused, found(made, 33)) == ([], [])


def about(more: str) -> Json:
    """The course, its outcomes with more in their titles."""
    of, refs = deepcopy(course()), entry()["outcome_refs"]
    for group in of["groups"]:
        for outcome in group["outcomes"]:
            if outcome["id"] in refs:
                outcome["title"] += more
    return of


def test_what_the_outcomes_name_takes_a_label() -> None:
    lesson, of = fresh(), about(" and the causes of terrorism")
    put(lesson, EXPLAINER, lambda text: f"{text} Terrorists attacked the city in 2001.")
    assert [each.severity for each in found(lesson, 33)] == ["B"]
    assert [each.severity for each in found(lesson, 33, of)] == ["R"]
    lesson["labels"] = ["upsetting_theme: Terrorists attacked the city in 2001"]
    assert found(lesson, 33, of) == []


@pytest.mark.parametrize(("more", "said"), [(" and the growing of grapes", "rape"), (" of the heroine", "heroin")])
def test_what_a_word_of_the_outcomes_only_contains_stays_refused(more: str, said: str) -> None:
    lesson = fresh()
    put(lesson, EXPLAINER, lambda text: f"{text} They spoke of {said}.")
    assert [each.severity for each in found(lesson, 33, about(more))] == ["B"]


@pytest.mark.parametrize(
    ("line", "true"),
    [
        (r"\(\frac{210-200}{200}\times 100=5\) %", True),
        (r"\(\frac{210-200}{200}\times 100=6\) %", False),
        (r"\(\frac{1}{3}\times 100\approx 33\) %", True),
        (r"\(\frac{1}{3}\times 100\approx 34\) %", False),
        (r"\(\frac{3}{20}\times 100\%=16\%\)", False),
        (r"\(\frac{3}{20}=15\%\)", True),
        (r"\(55\%=231\)", None),
    ],
)
def test_a_percentage_that_is_worked_out_is_compared(line: str, true: bool | None) -> None:
    (one,) = read_line(f"Find it.\n{line}").statements
    assert Lines([]).verdicts(one)[0].truth is true


@pytest.mark.parametrize("text", ["mol dm⁻³", "mGy", "µSv", "hPa", "µg", "Mbit/s", "kcal", "sieverts", "acres", "Wb"])
def test_units_of_other_sciences_are_known(text: str) -> None:
    assert unit(text)


def test_a_row_of_a_table_may_be_named_by_its_year() -> None:
    rows = ("row 2010: 2", "row 2019: 5", "row walk: 4")
    figure: Json = {"kind": "table", "lines": ["columns: year | tourists / million", *rows]}
    assert table(figure)[1] == [["2010", "2"], ["2019", "5"], ["walk", "4"]]
    # Rows that are only counted have all their cells.
    assert table({**figure, "lines": [figure["lines"][0], "row 1: 2", "row 2: 5"]})[1] == [["2"], ["5"]]
