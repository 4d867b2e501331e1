"""Texts that would break a file that did not escape them stay texts in the exports for learning platforms."""

from __future__ import annotations

import io
import re
import zipfile
from xml.etree import ElementTree as ET

import pytest

from pipeline.export.base import Selection, export
from pipeline.publish.view import CourseView
from tests import publishing
from tests.cartridges import Cartridge

#: Fields whose words say what a thing is.
_KEPT = frozenset({"kind", "tests", "method", "expression", "component", "more", "lines"})


@pytest.fixture(scope="module")
def view() -> CourseView:
    bundle = publishing.bundle(lessons=2)
    for row in bundle.lessons:
        row["lesson"].update(publishing.poisoned(row["lesson"], _KEPT))
    bundle.course.update(title=f"Maths {publishing.HOSTILE}", licence=publishing.HOSTILE)  # type: ignore[attr-defined]
    return CourseView(bundle)


def made(view: CourseView, name: str) -> bytes:
    [data] = export(Selection(view, view.lessons), [name]).values()
    return data


def test_cartridge_is_read_and_runs_nothing(view: CourseView) -> None:
    cartridge = Cartridge(made(view, "imscc"))
    questions = [one for lesson in cartridge.lessons for one in lesson.questions]
    assert len(questions) == sum(len(lesson.questions) for lesson in view.lessons)
    assert all("alert(1)" in one.text for one in questions)


def test_package_is_well_formed_and_has_elements_of_its_own_only(view: CourseView) -> None:
    with zipfile.ZipFile(io.BytesIO(made(view, "qti"))) as archive:
        trees = [ET.fromstring(archive.read(name)) for name in archive.namelist() if name.endswith(".xml")]
    names = {one.tag.partition("}")[2] for tree in trees for one in tree.iter()}
    assert not names & {"script", "style", "iframe", "a", "link"}
    assert all(one.get("alt") for tree in trees for one in tree.iter() if one.tag.endswith("}img"))


def test_bank_has_its_blocks_and_no_tag_of_theirs(view: CourseView) -> None:
    text = made(view, "gift").decode()
    blocks = text.rstrip("\n").split("\n\n")
    assert len(blocks) == 1 + sum(1 + len(lesson.questions) for lesson in view.lessons)
    for markup in re.findall(r"\[html\](.*?)(?:(?<!\\)[{#]|\n)", text):
        tags = set(re.findall(r"<(/?\w+)", markup))
        assert not tags & {"script", "/style", "/title"}
        assert markup.count("<img") == markup.count('<img src\\="data\\:image/svg')
    assert "alert(1)" in text
