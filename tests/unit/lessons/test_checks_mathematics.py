"""Printed mathematics is compared: what is right passes, each kind of fault is found where it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.content import checks_answers, checks_quantities, checks_working
from pipeline.content.checks_data import conversions
from pipeline.content.checks_items import figures
from pipeline.content.findings import Case
from pipeline.content.lesson import Lesson
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.earlier import converted
from pipeline.maths.sums import false_sums
from tests.checking import Json, course, scheme_of
from tests.small_lesson import fresh

PHYSICS = Catalogue().course("physics", "higher").to_json()
ENTRY = {**scheme_of(course(), 1)[0], "calculator": "calc"}
ROWS = (*checks_answers.ROWS, *checks_working.ROWS, *checks_quantities.ROWS)
GOOD = sorted(Path("../shared/lessons").glob("GOOD_*.json"))


def question(ask: str, answer: str, *lines: str, expression: str = "", **more: Any) -> Json:
    made = {
        "tests": ["point 1"], "working": [f"Work it out.\n{line}" for line in lines], "feedback": "It was worked out.",
        "marks": ["gives the answer"], "ask": ask, "answer": answer, "expression": expression, **more,
    }  # fmt: skip
    return {key: value for key, value in made.items() if value}


def case_of(item: Json, **entry: Any) -> Case:
    lesson = fresh()
    lesson["cards"][7]["items"][0] = item
    return Case(Lesson.model_validate(lesson), {**ENTRY, **entry}, course())


def test_a_part_gives_its_letters_their_values() -> None:
    part = {"expression": "part_a*10", "answer": "35", "ask": r"Write the equation, and find \(y\) for \(x=10\)."}
    item: Json = {
        "tests": ["point 1"], "feedback": "One product gives every other value.", "marks": ["(a) divides", "(b) multiplies"],
        "working": ["(a) Divide.\n\\(\\frac{14}{4}=3.5\\)", "(b) Put in 10.\n\\(y=3.5x=3.5\\times 10=35\\)"],
        "parts": [{"expression": "14/4", "answer": "3.5", "ask": "Find the constant of proportionality."}, part],
        "ask": r"In a proportional relationship, \(y=14\) when \(x=4\).",
    }  # fmt: skip
    assert not [fault for fault in checks_working.lines(case_of(item)) if "is not true" in fault.found]
    item["parts"][1] = {**part, "ask": r"Write the equation, and find \(y\) for \(x=9\)."}
    assert [fault for fault in checks_working.lines(case_of(item)) if "is not true" in fault.found]


def found(case: Case) -> list[tuple[int, str]]:
    return [
        (number, fault.where.removeprefix("c8.q1."))
        for number, severity, _, check, _ in ROWS
        for fault in check(case)
        if (fault.severity or severity) != "W"
    ]


AREA = "Find the area of a rectangle of 6 cm by 4 cm."
EGG = "Four eggs are 0.15388 cm wide together. Find the width of one in cm, to two significant figures."
SOLVE = r"Solve \(x^2-5x+6=0\)."
OPTIONS = [
    {"text": "£75", "why": "It is right."},
    {"text": "£72", "why": "You added 20 %.", "method": "60*1.2"},
    {"text": "£48", "why": "You took 20 % off.", "method": "60*0.8"},
]
COAT = "A coat costs £60 after 20 % was taken off. What was its price before?"
MAP = "A map has a scale of 1/2 inch to 10 miles. Find the distance in miles for 3 1/4 inches."
FLASKS = "In 3 of 12 flasks nothing grew. Give the ratio of those with growth to those without, in its simplest form."
OUNCE = "Find the price of 12 oz for £3.60 in pounds per ounce."
# One line a question.
# ruff: noqa: E501
RIGHT: list[Json] = [
    question(AREA, "24 cm²", r"\(6\times 4=24\) cm²", expression="6*4"),
    question(EGG, "0.038 cm", r"\(0.15388\div 4=0.03847\)", r"\(0.03847\approx 0.038\)", expression="0.15388/4"),
    question(SOLVE, "x = 2 or x = 3", r"\((x-2)(x-3)=0\)", "x = 2 or x = 3"),
    question(r"Make \(t\) the subject of \(v=u+at\).", r"\(t=\frac{v-u}{a}\)", r"\(v-u=at\)", r"\(t=\frac{v-u}{a}\)"),
    question(r"Solve \(3x+1>10\).", "x > 3", r"\(3x>9\)", r"\(x>3\)"),
    question(r"Find the vector from \((1, 4)\) to \((6, 2)\).", "(5, −2)", r"\((6-1,2-4)=(5,-2)\)", expression="(6-1, 2-4)"),
    question("The readings are 3, 5 and 10. Find their mean.", "6", r"\(\frac{3+5+10}{3}=6\)", expression="mean(3, 5, 10)"),
    question(COAT, "", r"\(60\div 0.8=75\)", expression="60/0.8", options=OPTIONS),
    question(r"Work out \(6x+6\) when \(x=-3\).", "−12", r"\(6\times(-3)+6=-12\)"),
    question("How many pupils are two thirds of 36 pupils?", "24 pupils", r"\(\frac{2}{3}\times 36=24\)", expression="2/3*36"),
    question(MAP, "65 miles", r"\(3.25\div 0.5\times 10=65\) miles", expression="3.25/0.5*10"),
    question(FLASKS, "3 : 1", r"\(12-3=9\), \(9:3=3:1\)", expression="(12-3)/3"),
]  # fmt: skip
WRONG: list[tuple[int, str, Json]] = [
    (5, "answer", question(AREA, "26 cm²", r"\(6\times 4=24\) cm²", expression="6*4")),
    (5, "answer", question(EGG, "0.039 cm", r"\(0.15388\div 4=0.03847\)", expression="0.15388/4")),
    (5, "answer", question(SOLVE, "x = 2", r"\((x-2)(x-3)=0\)", "x = 2 or x = 3")),
    (5, "expression", question(AREA, "24 cm²", r"\(6\times 4=24\) cm²", expression="6 x 4")),
    (5, "answer", question(r"Solve \(3x+1>10\).", "x < 3", r"\(3x>9\)", r"\(x>3\)")),
    (6, "expression", question(AREA, "28 cm²", r"\(7\times 4=28\) cm²", expression="8*3.5")),
    (8, "options.2.text", question(COAT, "", r"\(60\div 0.8=75\)", expression="60/0.8",
                                   options=[OPTIONS[0], {"text": "£75.00", "why": "The same."}, OPTIONS[2]])),
    (9, "options.2.method", question(COAT, "", r"\(60\div 0.8=75\)", expression="60/0.8",
                                     options=[OPTIONS[0], {**OPTIONS[1], "text": "£73"}, OPTIONS[2]])),
    (9, "wrong.1.method", question(AREA, "24 cm²", r"\(6\times 4=24\)", expression="6*4",
                                   wrong=[{"method": "4*6", "error": "multiplied the other way round"}])),
    (14, "working.1", question(AREA, "24 cm²", r"\(6\times 4=25\)", r"\(6\times 4=24\) cm²", expression="6*4")),
    (14, "working.1", question(SOLVE, "x = 2 or x = 3", r"\((x-2)(x-4)=0\)", "x = 2 or x = 3")),
    (14, "working.1", question(AREA, "24 cm²", r"\(12+12=24\)", expression="6*4", working=["So 6 times 4 is 26.\n\\(6\\times 4=24\\)"])),
    (14, "working.1", question(EGG, "0.038 cm", r"\(0.15388\div 2=0.07694\)", expression="0.15388/4")),
    (14, "marks.1", question(AREA, "24 cm²", r"\(6\times 4=24\)", expression="6*4", marks=["multiplies\n\\(6\\times 5\\)"])),
    (14, "feedback", question(AREA, "24 cm²", r"\(6\times 4=24\)", expression="6*4", feedback="Half of 24 is 13, so it is not that.")),
    (15, "answer", question(EGG, "0.0385 cm", r"\(0.15388\div 4=0.03847\)", expression="0.15388/4")),
    (15, "answer", question(r"Write \(\sqrt{80}\) in its simplest form.", r"\(2\sqrt{20}\)", r"\(\sqrt{80}=2\sqrt{20}\)")),
    (19, "answer", question(AREA, "24 cm", r"\(6\times 4=24\)", expression="6*4")),
    (19, "answer", question("A car goes 60 m in 4 s. Find its speed in m/s.", "15 m", r"\(60\div 4=15\)", expression="60/4")),
    (19, "answer", question("248 kg of feed are used on 5 days each. Find the total in kg.", "1240", r"\(248\times 5=1240\)",
                            expression="248*5")),
    (19, "answer", question("A 2 kg ball gains 3 m/s in 0.5 s. Calculate the average force on the ball.", "12 J",
                            r"\(2\times 3\div 0.5=12\)", expression="2*3/0.5")),
    (19, "answer", question("The times in minutes are 3, 5 and 10. Calculate the mean.", "6 m",
                            r"\(\frac{3+5+10}{3}=6\)", expression="mean(3, 5, 10)")),
    (20, "answer", question("5 pupils share 24 cards. How many tickets are 24 tickets for 5?", "4.8 tickets",
                            r"\(24\div 5=4.8\)", expression="24/5")),
    (6, "expression", question(MAP, "77 miles", r"\(3.85\div 0.5\times 10=77\) miles", expression="3.85/0.5*10")),
    (15, "answer", question(FLASKS, "9 : 3", r"\(12-3=9\), \(9:3=3\)", expression="(12-3)/3")),
    (19, "answer", question(OUNCE, "0.30", r"\(3.60\div 12=0.30\)", expression="3.60/12")),
]  # fmt: skip


def test_a_rate_in_a_unit_that_is_not_known_has_its_unit() -> None:
    assert not found(case_of(question(OUNCE, "£0.30 per ounce", r"\(3.60\div 12=0.30\)", expression="3.60/12")))


@pytest.mark.parametrize("item", RIGHT, ids=lambda item: str(item["ask"][:40]))
def test_right_questions_raise_no_alarm_and_are_computed(item: Json) -> None:
    case = case_of(item)
    assert found(case) == []
    assert checks_answers.summary(case)["by"]["c8.q1"] == "computed"


@pytest.mark.parametrize(("row", "where", "item"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_a_fault_is_found_where_it_stands(row: int, where: str, item: Json) -> None:
    told = found(case_of(item))
    assert (row, where) in told or (row == 15 and (5, where) in told)


def test_a_sum_without_letters_is_not_solved() -> None:
    """It raised IndexError: nothing to be solved for."""
    item = question(r"Look at \(8+3=11\). What is the sum?", "11", r"\(8+3=11\)")
    assert found(case_of(item)) == []


BOX = ["solid: cuboid", "length: 6 m", "breadth: 6 m", "height: 8 m"]
DIAGRAM = ["x: path, 0 to 8", "y: energy / kJ mol⁻¹, 0 to 160", "line: (0, 60) (4, 150)", "label peak: (4, 150)"]


@pytest.mark.parametrize(
    ("figure", "ask", "fits"),
    [
        ({"kind": "solid", "lines": BOX}, "A hall is 6 m long, 6 m wide and 7 m high. Find its height.", False),
        ({"kind": "solid", "lines": BOX}, "A hall is 6 m long, 6 m wide and 8 m high. Find its height.", True),
        ({"kind": "axes", "lines": DIAGRAM}, "The reactants have 60 kJ mol⁻¹ and the peak 140 kJ mol⁻¹.", False),
        ({"kind": "axes", "lines": DIAGRAM}, "The reactants have 60 kJ mol⁻¹ and the peak 150 kJ mol⁻¹.", True),
    ],
)
def test_a_figure_has_the_sizes_of_its_question(figure: Json, ask: str, fits: bool) -> None:
    case = case_of(question(ask, "as said", "as said", figures=[figure]))
    told = [fault.found for fault in figures(case) if "the question says" in fault.found]
    assert (not told) is fits


@pytest.mark.parametrize(
    ("said", "true"),
    [
        ("27 is less than 36", True),
        ("36 is less than 27", False),
        ("£40 is more than £45", False),
        ("2 m is less than 36 cm", True),
        ("350 g is 0.35 kg", True),
        ("350 g is 3.5 kg", False),
        ("3 h is 180 min", True),
        ("50 m is 20 cm longer", True),
    ],
)
def test_comparisons_and_conversions_in_words_are_true(said: str, true: bool) -> None:
    assert (not list(false_sums(f"The bus waits, because {said}."))) is true


@pytest.mark.parametrize(("price", "right"), [("£12.90", True), ("£12.9", False), ("£13", True)])
def test_pence_have_two_places(price: str, right: bool) -> None:
    rows = {row for row, _ in found(case_of(question("Add £6 and £6.90.", price, price)))}
    assert (20 not in rows) is right


@pytest.mark.parametrize(("head", "fits"), [("biomass / kg", False), ("mass of one / kg", True)])
def test_a_bar_has_the_value_of_the_column_of_its_axis(head: str, fits: bool) -> None:
    table = {"kind": "table", "lines": [f"columns: level | {head}", "row 1: snails | 80", "row 2: weed | 400"]}
    chart = {"kind": "bar chart", "lines": ["x: level", "y: biomass / kg", "bar snails: 90", "bar weed: 400"]}
    case = case_of(question("What does the diagram show?", "as said", "as said", figures=[table, chart]))
    assert (not [fault for fault in figures(case) if "the table has" in fault.found]) is fits


@pytest.mark.parametrize(
    ("said", "true"), [("an eighth is 12.5 %", True), ("a third is 33 %", True), ("a sixth is 12.5 %", False)]
)
def test_parts_in_words_are_their_percentages(said: str, true: bool) -> None:
    assert (not list(false_sums(f"One part was passed on, and {said}."))) is true


@pytest.mark.parametrize(
    ("ask", "answer", "possible"),
    [
        ("A triangle has sides of 3 cm, 4 cm and 5 cm. Calculate its perimeter in cm.", "12 cm", True),
        ("A triangle has sides of 3 cm, 4 cm and 9 cm. Calculate its perimeter in cm.", "16 cm", False),
        ("Can a triangle have sides of 3 cm, 4 cm and 9 cm? Give their sum in cm.", "16 cm", True),
        ("In triangle ABC, AB = 5 cm, BC = 6 cm and AC = 14 cm. Find the perimeter in cm.", "25 cm", False),
        ("A triangle has angles of 95° and 92°. Find their sum in degrees.", "187°", False),
        ("Calculate the efficiency of the motor.", "125 %", False),
        ("Calculate the frequency of the wave in Hz.", "−50 Hz", False),
        ("How far does the ball fall in m?", "−11 m", False),
        ("Calculate the displacement of the ball in m.", "−11 m", True),
    ],
)
def test_what_cannot_be_is_found_in_words_and_answers(ask: str, answer: str, possible: bool) -> None:
    rows = {row for row, _ in found(case_of(question(ask, answer, answer)))}
    assert (20 in rows) is not possible


def test_words_are_compared_by_nobody() -> None:
    case = case_of(
        question(
            "Explain why 2 is the only even prime.", "Every other even number has 2 as a factor.", "\\(4=2\\times 2\\)"
        )
    )
    assert found(case) == []
    assert checks_answers.summary(case)["by"]["c8.q1"] == "nobody"


@pytest.mark.parametrize("expression", ["16", None])
def test_what_is_read_off_a_figure_is_not_called_computed(expression: str | None) -> None:
    lines = ["x: time / h, 0 to 8", "y: temperature / °C, 0 to 20", "line: (0, 4) (4, 16) (8, 6)"]
    item = question("The graph shows a pond. State the temperature at 4 h, in °C.", "16 °C", "Read the line: 16 °C.")
    item |= {"figures": [{"kind": "axes", "lines": lines}]} | ({"expression": expression} if expression else {})
    assert checks_answers.summary(case_of(item))["by"]["c8.q1"] == "nobody"
    assert not [each for each in checks_answers.belongs(case_of(item)) if each.where == "c8.q1.expression"]


def test_what_needs_a_calculator_is_not_asked_without_one() -> None:
    item = question(
        r"Find \(\sin 40^\circ\) to 2 decimal places.", "0.64", r"\(\sin 40^\circ\approx 0.64\)", expression="sin(40)"
    )
    assert (18, "ask") in found(case_of(item, calculator="non_calc"))
    assert found(case_of(item)) == []


def test_wrong_methods_print_like_the_answer() -> None:
    wrong = [{"method": "6+4", "error": "added the sides"}, {"method": "6*4/7", "error": "divided by 7"}]
    item = question(AREA, "24.0 cm²", r"\(6\times 4=24\)", expression="6*4", wrong=wrong)
    printed = checks_answers.summary(case_of(item))["wrong"]
    assert (printed["c8.q1.wrong.1"], printed["c8.q1.wrong.2"]) == ("10 cm²", "3.4 cm²")


def test_no_wrong_answer_prints_as_the_right_one() -> None:
    ask = "A digital scale shows 7.9959 kg. Round this mass to 3 significant figures."
    wrong = [{"method": "7+1", "error": "left out the zeros"}, {"method": "7.9963", "error": "misread the scale"}]
    item = question(ask, "8.00 kg", r"\(7.9959\approx 8.00\) kg", expression="7.9959", wrong=wrong)
    printed = checks_answers.summary(case_of(item))["wrong"]
    assert (printed["c8.q1.wrong.1"], printed["c8.q1.wrong.2"]) == ("8 kg", "7.9963 kg")
    ask = "A coat costs £20. Its price falls by £5. Calculate the new price."
    item = question(ask, "£15", r"\(20-5=15\)", expression="20-5", wrong=[{"method": "5-20", "error": "turned round"}])
    assert checks_answers.summary(case_of(item))["wrong"]["c8.q1.wrong.1"] == "−£15"


@pytest.mark.skipif(not GOOD, reason="the good lessons are not here")
@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_good_lessons_raise_no_alarm(path: Path) -> None:
    old = json.loads(path.read_text(encoding="utf-8"))
    data = PHYSICS if "physics" in path.stem else course()
    case = Case(Lesson.model_validate(converted(old)), {**ENTRY, "calculator": old["calculator"]}, data)
    assert found(case) == []
    by = checks_answers.summary(case)["by"]
    assert sum(how == "computed" for how in by.values()) >= 0.7 * len(by)


@pytest.mark.parametrize(("wide", "told"), [("8 V high and 5 ms wide", True), ("5 V high and 5 ms wide", False)])
def test_a_number_with_two_units_may_be_either(wide: str, told: bool) -> None:
    ask = f"Each division of a trace is {wide}; its peak is 2 divisions high. Calculate the peak voltage."
    case = case_of(question(ask, "10 V", r"\(2\times 5=10\) V", expression="2*5"))
    assert any(fault.where == "c8.q1.expression" for fault in conversions(case)) is told


def test_a_number_that_is_used_twice_may_be_a_count() -> None:
    ask = "Two waves take 10 divisions of 10 ms. Calculate the frequency."
    case = case_of(question(ask, "20 Hz", r"\(2\div 0.1=20\) Hz", expression="2/(10*10/1000)"))
    assert not list(conversions(case))


def test_a_question_of_a_paper_without_calculators_allows_none() -> None:
    long = question(AREA.replace("6 cm by 4 cm", "6.137 cm by 4.219 cm"), "25.89 cm²", expression="6.137*4.219")
    case = case_of({**long, "working": ["Multiply."], "more": ["calculator: yes"]})
    assert not [fault for fault in checks_quantities.without_calculator(case) if "c8.q1" in fault.where]
    case.lesson.cards[7].component = "p1"  # type: ignore[union-attr]
    assert [fault for fault in checks_quantities.without_calculator(case) if "c8.q1" in fault.where]


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("The acceleration is 2 m/s², and the velocity is 4 m/s.", True),
        ("The air resistance of 500 N is a force.", True),
        (r"The time: \(a=\frac{6}{3}=2\) m/s².", True),
        ("The volume at 40 s is read off.", True),
        ("The acceleration of 2 m/s is constant.", False),
        (r"So the energy is \(3\times 4=12\) N.", False),
        ("The axis shows the velocity in m.", False),
    ],
)
def test_a_quantity_that_a_text_names_has_its_own_unit(text: str, stands: bool) -> None:
    case = case_of(question(AREA, "24 cm²", r"\(6\times 4=24\)", expression="6*4"))
    case.lesson.notes[0].text = text
    assert bool(list(checks_quantities.told_units(case))) is not stands
