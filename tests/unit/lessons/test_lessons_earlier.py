"""Lessons of version 1 read as today's: every printed word stays, and the same lesson takes fewer characters."""

from __future__ import annotations

import json
import tarfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.content.lesson import Lesson
from pipeline.lessons.earlier import converted
from tests import golden

GOOD = sorted(Path("../shared/lessons").glob("GOOD_*.json"))
#: Fields of version 1 that no page prints: what code calculated with, and names that became places.
UNPRINTED = frozenset(
    {"id", "kind", "ref", "card", "points", "prior", "key_points", "category", "lesson_type", "outcome_refs",
     "cross_cutting", "calculator", "component", "expression", "value", "check", "form", "tolerance", "unit", "givens",
     "method", "wrong_method", "misconception", "misconceptions", "rounding", "relationship", "relationship_ref",
     "substitutions", "from_expression", "equations", "variables", "low", "high", "roots", "relation", "variable",
     "sign", "boundary", "data", "quantity", "sides", "angles", "target", "label", "uses", "subject", "function",
     "items", "name", "values", "expressions"}
)  # fmt: skip
#: Fields of today's lesson that nobody reads on a page.
FOR_CODE = frozenset({"kind", "minutes", "teaches", "tests", "expression", "method", "mistake", "mistakes"})


@cache
def stored() -> list[dict[str, Any]]:
    """The lessons of the offline course that version 1 left behind."""
    found = []
    with tarfile.open(Path(golden.__file__).with_name("stores-2.tar.xz")) as archive:
        for member in archive:
            if member.isfile() and member.name.startswith("lessons_offline/") and "/blobs/" in member.name:
                text = archive.extractfile(member)
                row = json.loads(zlib.decompress(text.read())) if text else None
                if isinstance(row, dict) and isinstance(row.get("lesson"), dict):
                    found.append(row["lesson"])
    assert found
    return found


def texts(value: Any, without: frozenset[str], name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a JSON value with the names of the fields they stand in."""
    if isinstance(value, str) and name not in without:
        yield name, value
    elif isinstance(value, dict | list):
        # An algebraic answer was written twice; pages print what is shown.
        if isinstance(value, dict) and "from_expression" in value:
            value = {"shown": value["shown"], "wrong": value["wrong"]}
        pairs = value.items() if isinstance(value, dict) else [(name, one) for one in value]
        for key, one in pairs:
            yield from texts(one, without, key)


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def check_nothing_is_lost(old: dict[str, Any]) -> None:
    new = converted(old)
    Lesson.model_validate(new)
    printed = "\n".join(text for _, text in texts(new, frozenset()))
    bare = printed.replace("\\(", "").replace("\\)", "")
    lost = []
    for name, text in texts(old, UNPRINTED):
        # The answer of a worked example may stand in its last line only; answers of parts are joined on the page.
        kept = text in printed or (name == "answer" and text.replace("\\(", "").replace("\\)", "") in bare)
        if not kept and not (name == "shown" and text.startswith("(a)")):
            lost.append((name, text))
    assert lost == []


def test_no_word_of_a_stored_lesson_is_lost() -> None:
    for lesson in stored():
        check_nothing_is_lost(lesson)


@pytest.mark.skipif(not GOOD, reason="the five lessons are not here")
def test_good_lessons_take_a_third_fewer_characters_and_most_of_them_are_read_by_people() -> None:
    lessons = [json.loads(path.read_text(encoding="utf-8")) for path in GOOD]
    for lesson in lessons:
        check_nothing_is_lost(lesson)
    new = [converted(lesson) for lesson in lessons]
    before, after = sum(map(size, lessons)), sum(map(size, new))
    said = sum(size(text) - 2 for lesson in new for _, text in texts(lesson, FOR_CODE))
    assert after <= 0.7 * before, f"{1 - after / before:.1%} fewer characters: {before} before, {after} now"
    assert said >= 0.65 * after, f"{said / after:.1%} of {after} characters are read by people"


def test_points_are_numbered_as_in_the_scheme_and_drawings_are_kept() -> None:
    lesson = stored()[0]
    refs = [row["ref"] for row in lesson["points"]]
    backwards = converted(lesson, [*reversed(refs), "another"])
    taught = {number for card in backwards["cards"] for number in card.get("teaches", ())}
    assert taught == set(range(1, len(refs) + 1))
    figures = [figure for card in backwards["cards"] for figure in card.get("figures", ())]
    assert all(figure["lines"][0].startswith("title: ") for figure in figures)
