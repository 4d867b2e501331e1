"""The bank for Moodle: signs that mean something are escaped, formulas are TeX, figures stand in it."""

from __future__ import annotations

import base64
import copy
import re
from dataclasses import replace

from pipeline.export.base import Selection, export
from pipeline.publish.base import Bundle
from pipeline.publish.view import CourseView
from tests.sites import BUNDLES


def bank(bundle: Bundle) -> str:
    view = CourseView(bundle)
    [(name, data)] = export(Selection(view, view.lessons), ["gift"]).items()
    assert name == "gift/national-5-mathematics-questions.gift.txt"
    return data.decode()


def with_item(**fields: object) -> Bundle:
    """The first question of the course with other fields."""
    bundle = copy.deepcopy(BUNDLES["model"])
    bundle.lessons[0]["lesson"]["cards"][0]["items"][0].update(fields)
    return bundle


def first(text: str) -> str:
    return text.split("\n\n")[2]


def test_every_lesson_is_a_category_and_every_question_is_one_block() -> None:
    view = CourseView(BUNDLES["model"])
    blocks = bank(BUNDLES["model"]).rstrip("\n").split("\n\n")
    assert blocks[0].startswith("// National 5 Mathematics: question bank")
    assert blocks[0].endswith("// Licence: not stated. Attribution: not stated.")
    categories = [block for block in blocks if block.startswith("$CATEGORY: ")]
    assert categories[0] == "$CATEGORY: $course$/top/National 5 Mathematics/01 Simplifying surds with square factors"
    assert len(categories) == len(view.lessons)
    assert len(blocks) == 1 + len(categories) + sum(len(lesson.questions) for lesson in view.lessons)


def test_slash_in_a_title_begins_no_category_below() -> None:
    bundle = copy.deepcopy(BUNDLES["model"])
    bundle.lessons[0]["lesson"]["title"] = "Speed in km/h and m/s"
    assert "/top/National 5 Mathematics/01 Speed in km//h and m//s\n" in bank(bundle)


def test_signs_of_the_format_are_escaped() -> None:
    ask = "Is a: b = {c} ~ #d\\e\n\nor not? // 5"
    text = first(bank(with_item(ask=ask)))
    assert r"Is a\: b \= \{c\} \~ \#d\\e" in text
    assert "\n\n" not in text
    assert not re.search(r"^//", text, re.MULTILINE)


def test_formulas_are_tex_that_mathjax_sets() -> None:
    text = first(bank(with_item(ask=r"Find \(\frac{1}{2} < 15%\) and \[x = \pounds 3\]")))
    assert r"\\(\\frac\{1\}\{2\} &lt; 15\\%\\)" in text
    assert r"\\[x \= \\pounds 3\\]" in text
    assert "<math" not in text


def test_kinds_of_answers() -> None:
    text = bank(BUNDLES["model"])
    assert (
        "{#\n\t=60:0\n\t=%0%19:0#[html]<p>added instead of multiplying</p>\n\t####[html]<p>Answer\\: 60\u202fcm</p>"
        in text
    )
    assert "{\n\t=4√3\n\t=4sqrt(3)\n\t####" in text
    assert text.count("\t=[html]") == text.count("\t~[html]") / 2 == 2
    assert "<b>(a)</b> Simplify" in text
    assert "(2 marks)" in text


def test_star_stands_for_itself() -> None:
    text = first(bank(with_item(answer=r"\(4.1 \times 10^{22}\)")))
    assert "\t=4.1 \\\\* 10^22\n" in text


def test_figure_stands_in_the_text_with_its_description() -> None:
    found = re.search(r'src\\="data\\:image/svg\+xml;base64,([^"]*)" alt\\="([^"]+)"', bank(BUNDLES["model"]))
    assert found is not None
    assert base64.b64decode(found[1].replace("\\=", "=")).startswith(b"<svg xmlns=")


def test_some_lessons_are_named() -> None:
    view = CourseView(BUNDLES["model"])
    chosen = Selection(view, view.lessons[1:])
    assert list(export(chosen, ["gift"])) == ["gift/national-5-mathematics-questions-2.gift.txt"]
    assert list(export(chosen, ["qti", "imscc"])) == [
        "qti/national-5-mathematics-2-qti21.zip", "imscc/national-5-mathematics-2.imscc",
    ]  # fmt: skip


def test_draft_says_so() -> None:
    assert "$course$/top/National 5 Mathematics (draft)/01" in bank(replace(BUNDLES["draft"]))
