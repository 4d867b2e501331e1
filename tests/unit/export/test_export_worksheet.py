"""Three worksheets of rising difficulty from any lesson; papers; text fields as passages."""

from __future__ import annotations

import copy
from statistics import mean

import pytest

from pipeline.export.base import CHALLENGE, CORE, DIFFICULTIES, SUPPORT
from pipeline.export.worksheet import Worksheet, sheets
from pipeline.formulas.passages import Formula, Run, blocks, line
from pipeline.publish.view import CourseView, LessonView
from tests import publishing


def lesson_with(**entry: object) -> LessonView:
    """The lesson of the small course, with other facts in its entry."""
    bundle = publishing.bundle()
    bundle.scheme["entries"][0].update(entry)
    bundle.lessons[0]["lesson"]["cards"][4]["items"][1]["more"] = ["hint: Find a common denominator."]
    return CourseView(bundle).lessons[0]


def by_difficulty(lesson: LessonView) -> dict[str, Worksheet]:
    return {sheet.difficulty: sheet for sheet in sheets(lesson, DIFFICULTIES)}


def test_three_sheets_rise_in_difficulty() -> None:
    made = by_difficulty(lesson_with())
    marks = [mean(question.asked.marks for question in made[name].questions) for name in (SUPPORT, CORE, CHALLENGE)]
    assert marks == sorted(marks)
    asked = [tuple(question.asked.address for question in sheet.questions) for sheet in made.values()]
    assert len(set(asked)) == len(DIFFICULTIES)
    for sheet in made.values():
        assert [question.number for question in sheet.questions] == [*range(1, len(sheet.questions) + 1)]
    assert [sheet.label for sheet in made.values()] == ["Worksheet A", "Worksheet B", "Worksheet C"]
    assert made[CORE].name.endswith("-core-worksheet")
    assert made[CORE].answers_name.endswith("-core-answers")


def test_only_support_shows_hints_words_and_examples() -> None:
    made = by_difficulty(lesson_with())
    assert any(question.hints for question in made[SUPPORT].questions)
    assert made[SUPPORT].examples
    assert made[SUPPORT].words
    for name in (CORE, CHALLENGE):
        assert not any(question.hints for question in made[name].questions)
        assert not made[name].examples
        assert not made[name].words


@pytest.mark.parametrize(
    ("first", "hints"),
    [
        ("Find the largest square factor.\n\\(48 = 16 \\times 3\\)", ["Find the largest square factor."]),
        ("Write 48 as a product.\n\\(48 = 16 \\times 3\\)", ["Write 48 as a product."]),
        ("Divide by 16.\n\\(48 = 16 \\times 3\\)", []),
        ("It is a surd.\n\\(48 = 16 \\times 3\\)", []),
    ],
)
def test_the_first_step_is_a_hint_where_it_tells_no_number_and_no_answer(first: str, hints: list[str]) -> None:
    bundle = publishing.bundle()
    row = copy.deepcopy(dict(bundle.lessons[0]))
    row["lesson"]["cards"][4]["items"] = [
        publishing.item("a surd", 1, ask="Say what the root of 48 is.") | {"working": [first, "So it is."]}
    ]
    row["checks"] = {"by": {"c5.q1": "computed"}}
    lesson = LessonView(row["lesson"], row["checks"], None, bundle.scheme["entries"][0], {})
    asked = {question.asked.address: question for question in by_difficulty(lesson)[SUPPORT].questions}
    assert asked["c5.q1"].hints == hints


def test_a_paper_is_the_same_for_everyone() -> None:
    (paper,) = sheets(lesson_with(lesson_type="mock_exam"), (SUPPORT, CORE))
    assert paper.difficulty == ""
    assert len(paper.questions) == len(lesson_with().questions)
    assert (paper.name[-6:], paper.answers_name[-14:]) == ("-paper", "-paper-answers")
    assert sum(section.marks for section in paper.sections) == paper.marks


def test_the_calculator_is_named_once_where_all_agree_and_never_without_calculators() -> None:
    (section,) = by_difficulty(lesson_with(calculator="mixed"))[CORE].sections
    assert section.rule
    assert not any(map(section.rule_of, section.questions))
    (section,) = by_difficulty(lesson_with(calculator=""))[CORE].sections
    assert not section.rule
    assert not any(map(section.rule_of, section.questions))


def test_text_fields_become_passages() -> None:
    made = blocks("So x^2 is\n\n- \\(a = b\\)\n- two\n\nand \\[x = 2\\] holds.")
    assert [passage.kind for passage in made] == ["p", "ul", "ul", "p", "formula", "p"]
    assert made[0].pieces == (Run("So x"), Run("2", raised=True), Run(" is"))
    assert isinstance(made[1].pieces[0], Formula)
    assert line("a\nb") == (Run("a"), Run("\n"), Run("b"))
    assert line(r"\(\href{x}\)") == (Run(r"\href{x}", code=True),)


def test_a_formula_that_pages_may_break_is_one() -> None:
    (made,) = line(r"\(\sqrt{48} = \sqrt{16 \times 3} = 4\sqrt{3}\)")
    assert isinstance(made, Formula)
    assert [child.text for child in made.content].count("=") == 2
    assert r"3} = 4" in made.tex
