"""A cartridge, read by a reader written from the format, holds the questions of the course, its pages no answers."""

from __future__ import annotations

import re

import pytest

from pipeline.export.base import Selection, export
from pipeline.publish.view import CourseView
from tests import read_back
from tests.cartridges import Cartridge
from tests.sites import BUNDLES


def read(name: str) -> tuple[CourseView, Cartridge]:
    view = CourseView(BUNDLES[name])
    [data] = export(Selection(view, view.lessons), ["imscc"]).values()
    assert [data] == list(export(Selection(view, view.lessons), ["imscc"]).values())
    return view, Cartridge(data)


@pytest.mark.parametrize("name", ["model", "draft", "mock", "empty"])
def test_every_question_is_read_back(name: str) -> None:
    view, cartridge = read(name)
    assert len(cartridge.lessons) == len(view.lessons)
    for lesson, found in zip(view.lessons, cartridge.lessons, strict=True):
        assert found.title == f"{lesson.order:02d} {lesson.title}"
        assert [one.marks for one in found.questions] == [asked.marks for asked in lesson.questions]
        for asked, one in zip(lesson.questions, found.questions, strict=True):
            said = read_back.of_markup(one.text)
            assert all(map(said.holds, [asked.ask, *(part.ask for part in asked.parts)]))
            assert [read_back.of_markup(text) for text in one.options.values()] == [
                read_back.of_text(option.text) for option in asked.options
            ]
            if asked.key:
                assert one.rights == [asked.key.letter]
            for option in asked.options:
                assert read_back.of_markup(one.feedback[f"{option.letter}_fb"]) == read_back.of_text(option.why)


def test_kinds_and_what_is_accepted() -> None:
    _, cartridge = read("model")
    questions = cartridge.lessons[0].questions
    kinds = {one.ident: one.kind for one in questions}
    assert sorted(set(kinds.values())) == ["essay", "fib", "multiple_choice"]
    assert questions[0].rights == ["60", "60 cm", "60cm"]
    assert questions[1].rights[:2] == ["4√3", "4sqrt(3)"]
    parts = questions[-1]
    assert (parts.kind, parts.marks) == ("essay", 3)
    assert "(2 marks)" in parts.text
    assert "(1 mark)" in parts.text


def test_page_holds_no_answer_to_a_question() -> None:
    view, cartridge = read("model")
    page = cartridge.lessons[0].page
    for asked in view.lessons[0].questions:
        assert not read_back.of_markup(page).holds(asked.item["feedback"])
        assert not any(text in page for text in asked.item["marks"])
    assert len(re.findall("<h2", page)) == len(view.lessons[0].cards) + 1
    assert len(re.findall(r'<img src="../figures/l01-[a-z0-9-]+\.svg" alt="[^"]+"', page)) == 1
