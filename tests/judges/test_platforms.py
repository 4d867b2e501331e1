"""Readers find in the exports what the course says: gift-pegjs in GIFT, Cito's converter in QTI, ours in cartridges."""

from __future__ import annotations

import io
import re
import zipfile
from html import unescape
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from pipeline.export.base import Selection, export
from pipeline.export.responses import CHOICE, ESSAY, NUMBER, SHORT, responses, whole
from pipeline.publish.questions import ShownQuestion
from pipeline.publish.view import CourseView
from tests import read_back
from tests.acceptance.test_site_html import drafted
from tests.cartridges import Cartridge
from tests.judges.programs import judge, not_set
from tests.sites import BUNDLES

_Q3 = "{http://www.imsglobal.org/xsd/imsqtiasi_v3p0}"
_COURSES = ["model", "mock", "mathematics national_5", "physics higher", "application_of_mathematics national_4"]
#: Of the questions, one in so many is compared.
_FOURTH = 4


def course(name: str) -> CourseView:
    return CourseView(BUNDLES[name] if name in BUNDLES else drafted(*name.split(), 12))


def exported(view: CourseView, form: str) -> bytes:
    [data] = export(Selection(view, view.lessons), [form]).values()
    return data


def asked_of(view: CourseView) -> list[ShownQuestion]:
    return [asked for lesson in view.lessons for asked in lesson.questions]


# --- GIFT -------------------------------------------------------------------------------------------

_KINDS = {CHOICE: "MC", NUMBER: "Numerical", SHORT: "Short", ESSAY: "Essay"}


@pytest.mark.parametrize("name", _COURSES)
def test_gift_is_read_back(name: str) -> None:
    view = course(name)
    found = judge("gift.cjs", "gift-pegjs", exported(view, "gift").decode())
    assert sum(one["type"] == "Category" for one in found) == len(view.lessons)
    questions = [one for one in found if one["type"] != "Category"]
    assert len(questions) == len(asked_of(view))
    for asked, one in list(zip(asked_of(view), questions, strict=True))[::_FOURTH]:
        _compare_gift(asked, one)
    texts = [one["stem"]["text"] + one["globalFeedback"]["text"] for one in questions]
    assert not_set(unescape(each) for text in texts for each in re.findall(r"\\[(\[](.*?)\\[)\]]", text)) == []


def _compare_gift(asked: ShownQuestion, one: dict[str, Any]) -> None:
    response = whole(asked)
    assert one["type"] == _KINDS[response.kind]
    assert one["stem"]["format"] == "html"
    said = read_back.of_markup(one["stem"]["text"])
    assert all(map(said.holds, [asked.ask, *(part.ask for part in asked.parts)]))
    assert read_back.of_markup(one["globalFeedback"]["text"]).holds(asked.item["feedback"])
    if response.kind == CHOICE:
        shown = [(option.right, option.text, option.why) for option in asked.options]
        assert [choice["isCorrect"] for choice in one["choices"]] == [right for right, _, _ in shown]
        for choice, (_, text, why) in zip(one["choices"], shown, strict=True):
            assert read_back.of_markup(choice["text"]["text"]) == read_back.of_text(text)
            assert read_back.of_markup(choice["feedback"]["text"]).holds(why)
    elif response.kind == NUMBER:
        key = one["choices"][0]["text"]
        assert (key["number"], key["range"]) == (float(response.number), float(response.tolerance))
        assert all(choice["weight"] == 0 for choice in one["choices"][1:])
    elif response.kind == SHORT:
        accepted = [choice["text"]["text"].replace("\\*", "*") for choice in one["choices"]]
        assert accepted == list(response.accepted)


# --- QTI --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", _COURSES)
def test_qti_is_read_back_as_qti_3(name: str) -> None:
    view = course(name)
    with zipfile.ZipFile(io.BytesIO(exported(view, "qti"))) as archive:
        files = {path: archive.read(path).decode() for path in archive.namelist() if path.startswith("items/")}
    items = [
        (asked, f"items/{lesson.file}/{asked.anchor}.xml") for lesson in view.lessons for asked in lesson.questions
    ]
    chosen = items[::_FOURTH]
    found = judge("qti.mjs", "@citolab/qti-convert", {path: files[path] for _, path in chosen})
    for asked, path in chosen:
        _compare_qti(asked, ET.fromstring(found[path].encode()))


def _compare_qti(asked: ShownQuestion, root: ET.Element) -> None:
    assert root.tag == f"{_Q3}qti-assessment-item"
    body = root.find(f"{_Q3}qti-item-body")
    assert body is not None
    said = read_back.of_markup(read_back.bare(body))
    assert all(map(said.holds, [asked.ask, *(part.ask for part in asked.parts)]))
    assert not said.holds(asked.item["feedback"])
    outcomes = {one.attrib["identifier"]: one for one in root.findall(f"{_Q3}qti-outcome-declaration")}
    assert outcomes["MAXSCORE"].findtext(f"{_Q3}qti-default-value/{_Q3}qti-value") == str(asked.marks)
    declared = root.findall(f"{_Q3}qti-response-declaration")
    for response, one in zip(responses(asked), declared, strict=True):
        value = one.findtext(f"{_Q3}qti-correct-response/{_Q3}qti-value")
        if response.kind == CHOICE:
            assert asked.key is not None
            assert value == asked.key.letter
        elif response.kind == NUMBER:
            assert value == response.number
        else:
            keys = [entry.attrib["map-key"] for entry in one.iter(f"{_Q3}qti-map-entry")]
            assert keys == list(response.accepted)
    choices = [read_back.of_markup(read_back.bare(one)) for one in body.iter(f"{_Q3}qti-simple-choice")]
    assert choices == [read_back.of_text(option.text) for option in asked.options]


# --- Common Cartridge: our own reader, as no other was found -------------------------------------------


@pytest.mark.parametrize("name", _COURSES)
def test_cartridge_is_read_back(name: str) -> None:
    view = course(name)
    found = [one for lesson in Cartridge(exported(view, "imscc")).lessons for one in lesson.questions]
    assert [one.marks for one in found] == [asked.marks for asked in asked_of(view)]
    for asked, one in list(zip(asked_of(view), found, strict=True))[::_FOURTH]:
        said = read_back.of_markup(one.text)
        assert all(map(said.holds, [asked.ask, *(part.ask for part in asked.parts)]))
        options = [read_back.of_markup(text) for text in one.options.values()]
        assert options == [read_back.of_text(option.text) for option in asked.options]
        assert tuple(one.rights) == whole(asked).accepted
