"""Anki's own importer reads the cards; a second file updates them instead of making them twice."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from pipeline.export.base import Selection, export
from pipeline.publish import tex
from pipeline.publish.view import CourseView
from tests.sites import BUNDLES


def test_cards_are_those_of_the_course_and_come_once(tmp_path: Path) -> None:
    collection = pytest.importorskip("anki.collection")
    view = CourseView(BUNDLES["mock"])
    [(name, data)] = export(Selection(view, view.lessons), ["anki"]).items()
    package = tmp_path / Path(name).name
    package.write_bytes(data)
    opened = collection.Collection(str(tmp_path / "collection.anki2"))
    try:
        for _ in range(2):
            asked = collection.ImportAnkiPackageRequest(
                package_path=str(package), options=collection.ImportAnkiPackageOptions()
            )
            opened.import_anki_package(asked)
        notes = [opened.get_note(number) for number in opened.find_notes("")]
        questions = [question for lesson in view.lessons for question in lesson.questions]
        words = [word for lesson in view.lessons for word in lesson.lesson["keywords"]]
        assert len(notes) == len(questions) + len(words)
        decks = {deck.name for deck in opened.decks.all_names_and_ids()}
        assert {f"{view.title}::{each.order:02d} {each.title}" for each in view.lessons} <= decks
        fronts = [unescape(re.sub(r"<[^>]*>", "", note.fields[0])) for note in notes]
        for question in questions[::4]:
            formulas = re.findall(r"\\\((.*?)\\\)", question.ask)
            assert any(all(tex.portable(each) in front for each in formulas) for front in fronts), question.ask
        for lesson in view.lessons:
            for card in opened.find_cards(f'"deck:{view.title}::{lesson.order:02d} {lesson.title}"'):
                shown = opened.get_card(card).render_output()
                assert "{{" not in shown.question_text + shown.answer_text
    finally:
        opened.close()
