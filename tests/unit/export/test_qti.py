"""The QTI package: its manifest names every file, each item has its key, marks and figures, pupils see no answer."""

from __future__ import annotations

import io
import posixpath
import zipfile
from xml.etree import ElementTree as ET

import pytest

from pipeline.export.base import Selection, export
from pipeline.export.responses import NUMBER, responses
from pipeline.publish.view import CourseView
from tests import read_back
from tests.sites import BUNDLES

_CP = "{http://www.imsglobal.org/xsd/imscp_v1p1}"
_Q = "{http://www.imsglobal.org/xsd/imsqti_v2p1}"


def package(name: str) -> tuple[CourseView, dict[str, bytes]]:
    view = CourseView(BUNDLES[name])
    [data] = export(Selection(view, view.lessons), ["qti"]).values()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return view, {path: archive.read(path) for path in archive.namelist()}


def item(files: dict[str, bytes], lesson: int, number: int) -> ET.Element:
    view = CourseView(BUNDLES["model"])
    return ET.fromstring(files[f"items/{view.lessons[lesson].file}/q{number}.xml"])


@pytest.mark.parametrize("name", ["model", "mock", "empty"])
def test_manifest_names_every_file_once_and_tests_their_items(name: str) -> None:
    view, files = package(name)
    manifest = ET.fromstring(files["imsmanifest.xml"])
    listed = [one.attrib["href"] for one in manifest.iter(f"{_CP}file")]
    assert sorted(listed) == sorted(files.keys() - {"imsmanifest.xml"})
    idents = {one.attrib["identifier"] for one in manifest.iter(f"{_CP}resource")}
    assert len(idents) == sum(len(lesson.questions) + 1 for lesson in view.lessons)
    assert {one.attrib["identifierref"] for one in manifest.iter(f"{_CP}dependency")} <= idents
    for lesson in view.lessons:
        path = f"tests/{lesson.file}.xml"
        hrefs = [one.attrib["href"] for one in ET.fromstring(files[path]).iter(f"{_Q}assessmentItemRef")]
        assert [posixpath.normpath(posixpath.join("tests", href)) for href in hrefs] == [
            f"items/{lesson.file}/{asked.anchor}.xml" for asked in lesson.questions
        ]


@pytest.mark.parametrize("name", ["model", "mock"])
def test_every_item_says_what_the_course_does(name: str) -> None:
    view, files = package(name)
    for lesson in view.lessons:
        for asked in lesson.questions:
            path = f"items/{lesson.file}/{asked.anchor}.xml"
            root = ET.fromstring(files[path])
            outcomes = {one.attrib["identifier"]: one for one in root.findall(f"{_Q}outcomeDeclaration")}
            assert outcomes["MAXSCORE"].findtext(f"{_Q}defaultValue/{_Q}value") == str(asked.marks)
            body = root.find(f"{_Q}itemBody")
            assert body is not None
            for image in body.iter(f"{_Q}img"):
                assert image.get("alt")
                assert f"items/{lesson.file}/{image.get('src')}" in files
            said = read_back.of_markup(read_back.bare(body))
            assert all(map(said.holds, [asked.ask, *(part.ask for part in asked.parts)]))
            assert not said.holds(asked.item["feedback"])
            declared = root.findall(f"{_Q}responseDeclaration")
            assert len(declared) == max(len(asked.parts), 1)
            choices = [read_back.of_markup(read_back.bare(one)) for one in body.iter(f"{_Q}simpleChoice")]
            assert choices == [read_back.of_text(option.text) for option in asked.options]
            if asked.key:
                assert declared[0].findtext(f"{_Q}correctResponse/{_Q}value") == asked.key.letter


def test_number_is_marked_within_its_tolerance() -> None:
    view, files = package("model")
    [first, *_] = view.lessons[0].questions
    [response] = responses(first)
    assert response.kind == NUMBER
    equal = item(files, 0, 1).find(f".//{_Q}equal")
    assert equal is not None
    assert equal.attrib == {"toleranceMode": "exact"}


def test_short_answer_is_marked_by_the_template() -> None:
    root = item(package("model")[1], 0, 2)
    processing = root.find(f"{_Q}responseProcessing")
    assert processing is not None
    assert processing.get("template") == "http://www.imsglobal.org/question/qti_v2p1/rptemplates/map_response"
    keys = {one.get("mapKey"): one.get("mappedValue") for one in root.iter(f"{_Q}mapEntry")}
    assert keys == {"4√3": "2", "4sqrt(3)": "2"}


def test_parts_are_interactions_of_one_item_and_their_marks_add_up() -> None:
    root = item(package("model")[1], 0, 9)
    assert [one.get("responseIdentifier") for one in root.iter() if one.get("responseIdentifier")] == [
        "RESPONSE_A", "RESPONSE_B",
    ]  # fmt: skip
    terms = root.findall(f".//{_Q}sum/{_Q}variable")
    assert [one.get("identifier") for one in terms] == ["SCORE_A", "SCORE_B"]
    most = {one.get("identifier"): one.get("normalMaximum") for one in root.iter(f"{_Q}outcomeDeclaration")}
    assert (most["SCORE"], most["SCORE_A"], most["SCORE_B"]) == ("3", "2", "1")
