"""Truth of lines, solutions, forms and roundings in words, units by quantity."""

from __future__ import annotations

import pytest

from pipeline.maths import forms, units
from pipeline.maths.notation import NotReadError, read, statement
from pipeline.maths.solutions import fault
from pipeline.maths.statements import Lines

INTERVAL = r"for \(0 \leq x \leq 360\)"
SOLVED = [
    ("x^2-5x+6=0", "x = 2 or x = 3", "", ""),
    ("x^2-5x+6=0", "x = 2", "", "1 of 2 solutions"),
    ("x^2-5x+6=0", "x = 2 or x = 4", "", "x = 4 does not solve"),
    ("x^2+5x-3=0", "x = 0.54 or x = −5.54", "", ""),
    ("x^2+5x-3=0", "x = 0.55 or x = −5.54", "", "does not solve"),
    ("v=u+a*t", r"\(t=\frac{v-u}{a}\)", "", ""),
    ("v=u+a*t", r"\(t=\frac{v+u}{a}\)", "", "does not follow"),
    ("3x+1>10", "x > 3", "", ""),
    ("3x+1>10", "x ≥ 3", "", "has not the solutions"),
    ("-2x>6", "x < −3", "", ""),
    ("2x+y=7;x-y=2", "x = 3, y = 1", "", ""),
    ("2x+y=7;x-y=2", "(3, 1)", "", ""),
    ("2x+y=7;x-y=2", "x = 3 and y = 2", "", "does not solve"),
    (r"2\sin x^\circ=1", "x = 30 or x = 150", INTERVAL, ""),
    (r"2\sin x^\circ=1", "x = 30", INTERVAL, "x = 150 solves it too"),
    (r"3\sin x=2", "x = 41.8 or x = 138.2", INTERVAL, ""),
    ("5+3x=20", "5", "", ""),
]


@pytest.mark.parametrize(("task", "answer", "question", "said"), SOLVED)
def test_solutions_hold_and_none_is_missing(task: str, answer: str, question: str, said: str) -> None:
    found = fault([statement(part) for part in task.split(";")], read(answer), question)
    assert (found is None) if not said else (said in (found or ""))


TRUE, FALSE, OPEN = True, False, None
LINES = [
    ([r"\(v=u+at\)", r"\(v=18+0.4\times 25\)", r"\(18+0.4\times 25=28\)"], [OPEN, TRUE, TRUE]),
    ([r"\(0^2=30^2+2\times(-0.9)\times s\)", r"\(s=900\div 1.8=500\)"], [TRUE, TRUE]),
    ([r"\(0^2=31^2+2\times(-0.9)\times s\)", r"\(s=900\div 1.8=500\)"], [FALSE, TRUE]),
    ([r"\(u=\sqrt{15.68}\approx 3.96\)"], [TRUE]),
    ([r"\(\sqrt{15.68}\approx 3.97\)"], [FALSE]),
    ([r"\(55\%=231\)", r"\(1\%=231\div 55=4.2\)", r"\(100\%=420\)"], [OPEN, OPEN, OPEN]),
    ([r"\(55\%=231\)", r"\(1\%=231\div 55=4.2\)", r"\(100\%=430\)"], [OPEN, OPEN, FALSE]),
    ([r"\(x^2-5x+6=0\)", r"\((x-2)(x-3)=0\)", "x = 2 or x = 3"], [TRUE, TRUE, TRUE]),
    ([r"\(x^2-5x+6=0\)", r"\((x-2)(x-4)=0\)", "x = 2 or x = 3"], [TRUE, FALSE, TRUE]),
    ([r"\(1.5\text{ m}=150\text{ cm}\)"], [TRUE]),
    ([r"\(1.5\text{ m}=15\text{ cm}\)"], [FALSE]),
    ([r"\(90520\approx 90500\)"], [TRUE]),
    ([r"\(90580\approx 90500\)"], [FALSE]),
    ([r"\(a^m\times a^n=a^{m+n}\)"], [TRUE]),
    ([r"\(8x^2=9x^2\)"], [FALSE]),
    ([r"\(3x+1=10\)"], [OPEN]),
    ([r"\(\sin 40^\circ = 0.643\)"], [TRUE]),
    ([r"\(11.025=11.0\)"], [FALSE]),
    ([r"\(36>10\)", "1639.09 < 1650"], [TRUE, TRUE]),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "truths"), LINES)
def test_lines_are_true_false_or_left_open(lines: list[str], truths: list[bool | None]) -> None:
    found = Lines([read(line) for line in lines])
    told = []
    for line in found.lines:
        verdicts = {verdict.truth for statement in line for verdict in found.verdicts(statement)}
        told.append(False if False in verdicts else None if None in verdicts else True)
    assert told == truths


def test_a_line_in_the_questions_own_letters_is_an_identity() -> None:
    found = Lines([read(r"\(16x^2\times x^3=15x^5\)")], own=frozenset("x"))
    assert [verdict.truth for verdict in found.verdicts(found.lines[0][0])] == [False]


def test_a_formula_in_the_letters_of_the_courses_agrees_with_it() -> None:
    course = [statement("v^2=u^2+2as")]
    for line, truth in ((r"\(a=\frac{v^2-u^2}{2s}\)", True), (r"\(v^2=u^2+3as\)", False), (r"\(v=u+at\)", None)):
        found = Lines([read(line)], formulas=course)
        assert [verdict.truth for verdict in found.verdicts(found.lines[0][0])] == [truth]


FORMS = [
    ("in its simplest form", r"\(2\sqrt{20}\)", "the root of 20"),
    ("in its simplest form", r"\(5\sqrt{3}\) m", ""),
    ("in its lowest terms", r"\(\frac{12}{20}\)", "4 divides"),
    ("Simplify", r"\(\frac{x^2}{x}\)", "cancels"),
    ("with a rational denominator", r"\(\frac{3}{\sqrt{2}}\)", "below the line"),
    ("Factorise fully", r"\(3(x^2-4)\)", "factorised again"),
    ("Factorise", r"\((x+2)(x-3)\)", ""),
    ("Expand", r"\(x(x+1)\)", "a bracket"),
    ("in scientific notation", r"\(36\times 10^7\)", "not from 1"),
    ("in scientific notation", r"\(3.6\times 10^8\)", ""),
    ("as a mixed number", r"\(\frac{7}{4}\)", "not a mixed"),
    ("as a mixed number", r"\(1\frac{3}{4}\)", ""),
    (r"in the form \((x+p)^2+q\)", r"\((x-2)^2-1\)", ""),
    (r"in the form \((x+p)^2+q\)", r"\(x^2-4x+3\)", "not one square"),
    (r"Make \(t\) the subject of \(v=u+at\)", r"\(t=\frac{v-u}{a}\)", ""),
    (r"Change the subject of \(v=u+at\) to \(t\)", r"\(at=v-u\)", "t is not alone"),
    ("Write it with one index.", r"\(n^2\times n^3\)", "not one power"),
    ("Find the exact value", r"\(3.14\)", "a decimal"),
    ("No form is asked", r"\(\frac{12}{20}\)", ""),
]


@pytest.mark.parametrize(("question", "answer", "said"), FORMS)
def test_forms_asked_in_words_are_looked_up_in_what_is_printed(question: str, answer: str, said: str) -> None:
    found = forms.form_fault(question, read(answer)[0])
    assert (found is None) if not said else (said in (found or ""))


ROUNDINGS = {
    "to two significant figures": "2 sf",
    "to 3 s.f.": "3 sf",
    "correct to 1 decimal place": "1 dp",
    "to the nearest penny": "money",
    "to the nearest ten thousand": "nearest 10000",
    "to the nearest degree": "nearest 1",
    "It was measured to the nearest cm. Find the area": "",
    "Find the area": "",
}


@pytest.mark.parametrize("question", ROUNDINGS)
def test_roundings_asked_in_words_are_known(question: str) -> None:
    assert forms.rounding(question) == ROUNDINGS[question]


def test_every_phrase_that_the_author_is_told_is_understood() -> None:
    for phrase in forms.TABLE:
        for words in phrase.words.split(", "):
            assert any(phrase.found(f"Give it {words}.")), words
            if phrase.form:
                for example in phrase.example.split(", "):
                    assert phrase.form(read(example)[0].sides[-1].node) is None


QUANTITIES = {
    "m s⁻²": "acceleration", "m/s²": "acceleration", "metres per second squared": "acceleration", "m s^{-1}": "speed",
    "square metres": "area", "cm³": "volume", "litres": "volume", "km/h": "speed", "N s": "momentum",
    "kg m s⁻¹": "momentum", "W m⁻²": "irradiance", "per cent": "percentage", "£": "money", "µF": "capacitance",
}  # fmt: skip


@pytest.mark.parametrize("unit", QUANTITIES)
def test_a_unit_tells_its_quantity(unit: str) -> None:
    found = units.unit(unit)
    assert found is not None
    assert found.quantity == QUANTITIES[unit]


def test_units_written_in_other_ways_are_one() -> None:
    assert units.same_unit("m s⁻²", "m/s²")
    assert not units.same_unit("cm", "m")
    assert units.same_quantity("cm", "m")
    assert not units.same_quantity("cm²", "cm³")
    assert list(units.asked("Calculate its final velocity in m/s. Find the volume of the box.")) == ["speed", "volume"]
    assert units.printed("m s^{-2}") == "m s⁻²"


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("Find the cost per hour of a rental of 2 hours.", []),
        ("Find the area in square yards per bag.", []),
        ("Find the distance per litre.", []),
        ("Calculate the speed in metres per second.", ["speed"]),
        ("Find the cost of one hour.", ["money"]),
        ("Find the area in square metres.", ["area"]),
    ],
)
def test_a_rate_is_another_quantity(asked: str, names: list[str]) -> None:
    assert list(units.asked(asked)) == names


def test_what_is_no_answer_is_not_judged() -> None:
    with pytest.raises(NotReadError):
        fault([statement("x^2=4")], read("y = 2"), "")
