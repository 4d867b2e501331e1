"""Each code check lets good lessons pass and finds its fault in a bad one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.content.addresses import steps_of
from pipeline.content.checks import CODE, ROWS, check_lesson, favourite_place, repeats
from pipeline.content.checks_items import _only_in_key, alike
from pipeline.content.checks_remarks import strangers
from pipeline.content.checks_text import _readable, keywords, scope
from pipeline.content.checks_twins import twin
from pipeline.content.findings import Case, Finding
from pipeline.content.lesson import ExplainerCard, Item, Lesson, Option
from pipeline.content.levels import level_row
from tests.checking import Json, course, scheme_of
from tests.small_lesson import fresh

ENTRY = scheme_of(course(), 1)[0]


def put(lesson: Json, where: str, value: Any) -> None:
    way: list[Any] = list(steps_of(where) or ())
    last, at = way.pop(), lesson
    for step in way:
        at = at[step]
    before = at[last] if not isinstance(last, str) or last in at else None
    at[last] = value(before) if callable(value) else value


def found(lesson: Json) -> set[tuple[int, str, str]]:
    return {(each.check, each.severity, each.where) for each in check_lesson(lesson, entry=ENTRY, course=course())}


def test_years_of_a_question_without_a_calculation_need_not_stand_in_it() -> None:
    words: Json = {
        "tests": ["point 1"], "answer": "Edward I called a parliament in 1295, thirty years after the one of 1265.",
        "working": ["Two men and two years belong together."], "marks": ["names both meetings"],
        "feedback": "Henry III ruled from 1216 to 1272.", "ask": "Describe how the first parliaments began.",
    }  # fmt: skip
    assert not list(strangers("c1.q1", Item.model_validate(words), (), ()))
    summed = {**words, "working": ["Add the two.\n\\(2+3=5\\)"], "answer": "5", "ask": "Work out the sum of 2 and 3."}
    told = list(strangers("c1.q1", Item.model_validate(summed), (), ()))
    assert [fault.where for fault in told] == ["c1.q1.feedback"]
    # A year that is asked for is known, not worked out.
    lesson = fresh()
    lesson["cards"][3]["items"][0] = {**words, "answer": "1085", "feedback": "It was late in his reign.",
                                      "ask": "In which year did William order the survey?"}  # fmt: skip
    assert not [each for each in found(lesson) if each[2].startswith("c4.q1.expression")]


def test_a_good_lesson_stands_and_rows_are_in_order() -> None:
    assert not [each for each in found(fresh()) if each[1] != "W"]
    numbers = [row.number for row in ROWS]
    assert numbers == sorted(set(numbers))
    # What can send a lesson back is told to the author: here, with the shape, or to the critic.
    elsewhere = {1, 2}
    assert not [
        row for row in ROWS if row.who == CODE and row.severity != "W" and not row.rule if row.number not in elsewhere
    ]


def also(text: str) -> Callable[[str], str]:
    return lambda before: f"{before} {text}"


FIGURE = [{"kind": "triangle", "lines": ["corners: P Q R", "PQ: 3 cm", "QR: 4 cm", "PR: 9 cm"]}]
GRAPH = [{"kind": "axes", "lines": ["x: time / s, 0 to 8", "y: speed / m/s, 0 to 20", "line: (0, 6) (8, 16)"]}]
SPOILT: list[tuple[int, str, str, str, Any]] = [
    (12, "R", "c8.q1.ask", "c8.q1", lambda item: {
        **{key: value for key, value in item.items() if key != "answer"}, "ask": "Which of these is not a surd?",
        "options": [{"text": text, "why": "It is a surd."} for text in ("2", "root of 3", "root of 5")]}),
    (11, "W", "c8.q1.options", "c8.q1", lambda item: {
        **{key: value for key, value in item.items() if key != "answer"}, "ask": "Which of these is a surd?",
        "options": [{"text": text, "why": "It is one."} for text in ("root of 3", "2", "4")]}),
    (12, "R", "c8.q1.ask", "c8.q1.ask", also("The answer is the side of a square, \\(3\\sqrt{2}\\).")),
    (16, "R", "c8.q1.marks.2", "c8.q1.marks", ["gives the root", "gives the root"]),
    (16, "R", "c9.rubric", "c9.rubric", ["40: Secure.", "2: Nearly."]),
    (17, "R", "c8.q1.marks.1", "c8.q1.marks", ["\\(3\\sqrt{2}\\)"]),
    (22, "R", "c8.q1.feedback", "c8.q1", lambda item: {
        **item, "ask": "Isla asks: " + item["ask"], "feedback": "Morag is right."}),
    (23, "R", "c2.plain", "c2.plain", lambda text: text.replace("25", "27")),
    (23, "R", "c2.plain", "c2.plain", lambda text: text[:90]),
    (24, "R", "c2.text", "c2.text", lambda text: text.replace(". ", " and ")),
    (26, "R", "c8.q2.ask", "c8.q2.ask", "Write \\(\\sqrt{18}\\) in its simplest form."),
    (26, "R", "c8.q2.ask", "c8.q2.ask", "Write \\(\\sqrt{98}\\) in its simplest form."),
    (28, "R", "keywords.1", "keywords.1", "surd: A root that is called a surd in school books."),
    (28, "R", "keywords.1", "keywords.1", "hypotenuse: The longest side of a right-angled triangle."),
    (30, "R", "c2.text", "c2.text", also("Its color is green.")),
    (30, "R", "c8.q1.ask", "c8.q1.ask", also("It costs $5.")),
    (31, "R", "key_points.1", "key_points.1", also("See the worksheet.")),
    (33, "R", "c8.q1.ask", "c8.q1.ask", also("Rory places a bet on it.")),
    (33, "B", "c2.text", "c2.text", also("Look straight at the sun.")),
    (34, "R", "c8.q1.ask", "c8.q1.ask", also("Use the diagram below.")),
    (34, "R", "c8.q1.figures.1", "c8.q1.figures", FIGURE),
    (34, "W", "c8.q1.figures.1", "c8.q1", lambda item: {**item, "figures": [
        {"kind": "circuit", "lines": ["battery: 12 V", "series R: 4 Ω", "ammeter: 2 A", "voltmeter across R: 8 V"]}]}),
    (34, "R", "c8.q1.figures.1", "c8.q1", lambda item: {
        **item, "ask": "Triangle ABC has sides of 3 cm, 4 cm and 5 cm. " + item["ask"],
        "figures": [{"kind": "triangle", "lines": ["corners: P Q R", "PQ: 3 cm", "QR: 4 cm", "PR: 5 cm"]}]}),
    (34, "R", "c8.q1.figures.1", "c8.q1", lambda item: {
        **item, "ask": "PQ is 6 cm and QR is 4 cm. " + item["ask"],
        "figures": [{"kind": "triangle", "lines": ["corners: P Q R", "PQ: 3 cm", "QR: 4 cm", "PR: 5 cm"]}]}),
    (34, "R", "c8.q1.figures.1", "c8.q1", lambda item: {
        **item, "ask": "The speed rises from 6 m/s at 0 s to 18 m/s at 8 s. " + item["ask"], "figures": GRAPH,
        "expression": "(18-6)/8"}),
    (35, "R", "c8.q1.ask", "c8.q1.ask", also("\\(\\frac{1}\\)")),
]  # fmt: skip


@pytest.mark.parametrize(("check", "severity", "where", "at", "value"), SPOILT)
def test_check_finds_its_fault(check: int, severity: str, where: str, at: str, value: Any) -> None:
    lesson = fresh()
    put(lesson, at, value)
    assert (check, severity, where) in found(lesson)


def test_question_of_another_lesson_with_other_names_is_noted() -> None:
    one, two = fresh(), fresh()
    put(one, "c8.q4.ask", lambda text: text.replace("Oban", "Wick"))
    noted = repeats({1: one, 2: two})
    assert {order for order, _ in noted} == {2}
    assert "c8.q4" in {finding.where for _, finding in noted}


def test_right_options_that_stand_at_one_place_are_noted() -> None:
    def course_of(right: str, others: tuple[str, str], times: int) -> list[Json]:
        options = [{"text": text, "why": "so"} for text in (right, *others)]
        return [{"cards": [{"items": [{"options": options}] * times}]}]

    assert favourite_place(course_of("1", ("2", "3"), 12)) == "The right option stands at A in 12 of 12 choices."
    assert favourite_place(course_of("1", ("2", "3"), 11)) == ""
    mixed = [*course_of("1", ("2", "3"), 5), *course_of("2", ("1", "3"), 5), *course_of("3", ("1", "2"), 5)]
    assert favourite_place(mixed) == ""


@pytest.mark.parametrize(
    ("line", "told"),
    [("\\(u=\\frac{12}{0}=5\\)", True), ("\\(u=5\\times 10^{-79}\\)", False)],
)
def test_what_has_no_value_ends_no_check(line: str, told: bool) -> None:
    """A division by nought is false wherever it stands; a power out of bounds is not compared."""
    lesson = fresh()
    put(lesson, "c8.q1.working.1", f"Divide.\n{line}")
    found = [each for each in check_lesson(lesson, entry=ENTRY, course=course()) if "nought" in each.found]
    assert bool(found) is told


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("c8.q1.working.1", "Add 0 to both sides.\n\\(3+4=7\\)"),
        ("c8.q1.feedback", f"The answer {'9' * 120} is too large, so 0 % of 0.0.0 is left."),
    ],
)
def test_odd_numbers_end_no_check(where: str, text: str) -> None:
    lesson = fresh()
    put(lesson, where, text)
    assert isinstance(check_lesson(lesson, entry=ENTRY, course=course()), list)


@pytest.mark.parametrize(
    ("answer", "text", "told"),
    [
        ("£36", "reject: £36", True),
        ("28 m/s", "accept: 18 m/s", True),
        ("28 m/s", "accept: 28.0 m/s", False),
        ("y = 3cos 4x° − 1", "accept: a = 3, b = 4 and c = −1", False),
    ],
)
def test_accepted_and_rejected_answers(answer: str, text: str, told: bool) -> None:
    """Letters of other things than the answer's are not compared."""
    lesson = fresh()
    put(lesson, "c8.q1.answer", answer)
    put(lesson, "c8.q1.more", [text])
    found = check_lesson(lesson, entry=ENTRY, course=course())
    assert any(each.check == 9 and each.where == "c8.q1.more.1" for each in found) is told


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Going up takes 1.5 s.", False),
        ("Going up takes 1.53 s.", False),
        ("Going up takes 1.6 s.", True),
        ("It is 1.41 times that.", False),
    ],
)
def test_feedback_may_round_what_a_wrong_method_gives(said: str, told: bool) -> None:
    item = Item.model_validate(
        {
            "ask": "A ball is thrown up at 15 m/s; take 9.8 for gravity. Find its time in the air.",
            "tests": ["point 1"],
            "expression": "2*15/9.8",
            "answer": "3.1 s",
            "working": ["Solve.\n\\(t = 3.1\\)"],
            "marks": ["gives 3.1 s"],
            "feedback": said,
            "wrong": [{"method": "15/9.8", "error": "The time to the highest point."}],
        }
    )
    assert bool(list(strangers("c1.q1", item, (), ()))) is told


@pytest.mark.parametrize(
    ("ask", "text", "told"),
    [
        ("List the numbers in the order in which the query gives them.", "reject: 602, 603, 604", False),
        ("List the numbers in the order in which the query gives them.", "reject: 604, 602, 603", True),
        ("List the numbers of the three houses.", "reject: 602, 603, 604", True),
    ],
)
def test_list_in_another_order_is_another_answer_where_order_is_asked_for(ask: str, text: str, told: bool) -> None:
    lesson = fresh()
    put(lesson, "c8.q1.ask", ask)
    put(lesson, "c8.q1.answer", "604, 602, 603")
    put(lesson, "c8.q1.more", [text])
    found = check_lesson(lesson, entry=ENTRY, course=course())
    assert any(each.check == 9 and each.where == "c8.q1.more.1" for each in found) is told


@pytest.mark.parametrize(
    ("ask", "texts", "hint"),
    [
        ("Tables Van (vanNo, make) and Trip (tripNo, vanNo, miles). Name the foreign key.",
         ["vanNo in Trip", "tripNo in Van", "make in Trip", "miles in Van"], None),
        ("Why does the metal expand?", ["the metal will expand", "the metal cools", "the metal melts"], "expand"),
        ("Tables Van (vanNo, make). Name the key.", ["vanNo", "a number", "a colour", "a town"], "vanno"),
    ],
)  # fmt: skip
def test_names_in_code_are_no_hint_where_every_option_has_words_of_the_question(
    ask: str, texts: list[str], hint: str | None
) -> None:
    assert _only_in_key(ask, [Option(text=text, why="It is so.") for text in texts]) == hint


@pytest.mark.parametrize(("word", "told"), [("computer", False), ("security", True)])
def test_general_words_of_the_subject_belong_to_no_later_outcome(word: str, told: bool) -> None:
    topics = [{"id": "a", "title": "Data types"}, {"id": "b", "title": "Computer structure and security"}]
    of_computing = {
        **course(), "subject": "computing_science", "title": "Computing Science", "groups": [{"outcomes": topics}]
    }  # fmt: skip
    lesson = fresh()
    put(lesson, "c8.q1.feedback", f"A {word} has it.")
    case = Case(Lesson.model_validate(lesson), {**ENTRY, "outcome_refs": ["a"], "cross_cutting": []}, of_computing)
    assert any(repr(word) in each.found for each in scope(case)) is told


def test_lengths_are_compared_as_they_are_printed() -> None:
    text = " ".join(f"{'So ' + 'it ' * (length - 2)}is." for length in (14, 14, 15))
    found = [each.found for each in _readable("c3.text", text, (14, 24), 15, "")]
    assert found == ["sentences of 14.3 words on average"]
    lesson = Lesson.model_validate(fresh())
    card = next(card for card in lesson.cards if isinstance(card, ExplainerCard))
    card.text, card.plain = "it " * 250, "it " * 201
    assert not [each for each in twin(Case(lesson, ENTRY, course())) if "as long" in each.found]


@pytest.mark.parametrize(("card", "fits"), [("check", True), ("starter", True), ("exit_ticket", False)])
def test_three_options_will_do_in_checks_and_starters(card: str, fits: bool) -> None:
    assert level_row({"code": "C000 76", "level": "higher"}).fitting(3, card) is fits


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("So we go. « Tournez là. C'est au bout. » The visitor turns there and walks on.", 7),
        ("The two words join. À and le are never left beside each other here.", 10),
        ("He said: “Go on now.” Then he turned round.", 5),
    ],
)
def test_sentences_end_where_a_quotation_does(text: str, longest: int) -> None:
    found = [each.found for each in _readable("c3.text", text, (30, longest - 1), 99, "")]
    assert found == [f"sentences of {longest} words at most"]


@pytest.mark.parametrize(
    ("where", "text", "told"),
    [
        ("c8.q1.ask", "Calculate the length.", False),
        ("c9.rubric", ["2: Go on to security.", "0: Again."], False),
        ("c8.q1.feedback", "It is about security.", True),
    ],
)
def test_what_a_task_demands_and_what_comes_next_is_within_scope(where: str, text: Any, told: bool) -> None:
    topics = [{"id": "a", "title": "Data types"}, {"id": "b", "title": "Calculate the security of a network"}]
    lesson = fresh()
    put(lesson, where, text)
    case = Case(
        Lesson.model_validate(lesson), {**ENTRY, "outcome_refs": ["a"], "cross_cutting": []},
        {**course(), "groups": [{"outcomes": topics}]},
    )  # fmt: skip
    assert bool(list(scope(case))) is told


def test_options_are_as_long_as_they_are_printed() -> None:
    lesson = fresh()
    texts = ("\\(7\\)", "\\(13\\)", "\\(\\begin{pmatrix}8\\\\-3\\\\2\\end{pmatrix}\\)", "\\(30\\)")
    put(lesson, "c8.q1", lambda item: {
        **{key: value for key, value in item.items() if key != "answer"},
        "options": [{"text": text, "why": "It is one."} for text in texts]})  # fmt: skip
    case = Case(Lesson.model_validate(lesson), ENTRY, course())
    assert not [each for each in alike(case) if "characters" in each.found]


def test_keyword_may_be_explained_instead() -> None:
    lesson = fresh()
    put(lesson, "keywords.1", "hypotenuse: The longest side of a right-angled triangle.")
    case = Case(Lesson.model_validate(lesson), ENTRY, course())
    also = next(each.also for each in keywords(case) if "explainer" in each.found)
    assert [where for where in also if where.endswith(".text")], "else the only way out is to drop the word"


def test_lesson_of_three_cycles_has_room_for_both_practices() -> None:
    lesson = fresh()
    cards = Lesson.model_fields["cards"].metadata
    assert max(each.max_length for each in cards if hasattr(each, "max_length")) == 1 + 3 * 3 + 2 + 1, lesson["title"]


def test_finding_names_its_own_place_once() -> None:
    line = Finding(1, "R", "c1.minutes", "59 minutes", "50 ± 5", ("c1.minutes", "c2.minutes")).line()
    assert line == "c1.minutes: 59 minutes; wanted 50 ± 5 (may also be put right at c2.minutes)"
