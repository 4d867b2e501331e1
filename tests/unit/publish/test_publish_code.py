"""Code in lessons: its lines stand as code, indented, on pages and in Markdown; marks are told apart from it."""

from __future__ import annotations

import pytest

from pipeline.publish.markdown import _md, _question
from pipeline.publish.prose import are_code, words
from pipeline.publish.questions import ShownQuestion
from tests.small_lesson import fresh

ASK = "What does fare hold?\nIF age < 16 THEN\n    SET fare TO 10\nELSE\n    SET fare TO 20\nEND IF"


def shown(**item: object) -> ShownQuestion:
    made = {**fresh()["cards"][0]["items"][0], **item}
    return ShownQuestion(1, "c1.q1", made, {"kind": "check", "items": [made]}, {}, None)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (ASK, [False, True, True, True, True, True]),
        ("total = 0\nfor n in range(4):\n    total = total + n\nprint(total)", [True] * 4),
        ("SELECT name\nFROM pupils\nWHERE age >= 12", [True] * 3),
        ("IF bags >= 3 THEN", [True]),
        ("IF age > 60 looks right, but 60 is left out.", [False]),
        ("x = 2\nx = −3", [False, False]),
        ("IF, ELSE and the boundary value", [False]),
        ("WHERE and ORDER BY", [False]),
        ("Two kinds\n\nRETURN total", [False, False, True]),
        ("For each of the four\nif it is there", [False, False]),
    ],
)
def test_lines_of_code_are_told_from_sentences_and_from_equations(text: str, code: list[bool]) -> None:
    assert are_code(text.split("\n")) == code


def test_a_page_sets_each_line_of_code_as_code_and_keeps_its_indent() -> None:
    made = str(words(ASK))
    assert made.startswith("What does fare hold?<br><code>IF age &lt; 16 THEN</code><br>")
    assert "<br><code>\u00a0\u00a0\u00a0\u00a0SET fare TO 10</code><br>" in made


def test_markdown_keeps_the_lines_of_code_and_no_mark_stands_in_them() -> None:
    assert _md(ASK).split("\n")[1:3] == ["`IF age < 16 THEN`\\", "`\u00a0\u00a0\u00a0\u00a0SET fare TO 10`\\"]
    assert next(_question(shown(ask=ASK))).endswith("`END IF`\\\n(1)")


def test_the_answer_earns_one_of_several_marks_that_name_nothing() -> None:
    marks = ["says that the condition is false", "gives the value stored under ELSE"]
    scheme = shown(answer="65", marks=marks).scheme
    assert [earns for _, earns, _ in scheme] == ["", "65"]
    parts = [{"answer": "real", "ask": "The type?"}, {"answer": "7", "ask": "The value?"}]
    labelled = ["(a) names it", "(b) follows the loop", "(b) gives the value"]
    scheme = shown(parts=parts, marks=labelled).scheme
    assert scheme == [("(a)", "real", "names it"), ("(b)", "", "follows the loop"), ("(b)", "7", "gives the value")]
