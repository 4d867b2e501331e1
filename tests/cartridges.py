"""Reads a Common Cartridge 1.1 as its format says, not as ours writes it: manifest, pages, quizzes in QTI 1.2."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

_CP = "{http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1}"
_QTI = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"
_QUIZ = "imsqti_xmlv1p2/imscc_xmlv1p1/assessment"
#: Values that the profile allows for each field of a quiz and of a question.
_ASSESSMENT = {
    "cc_profile": r"cc\.exam\.v0p1", "qmd_assessmenttype": "Examination", "qmd_scoretype": "Percentage",
    "qmd_feedbackpermitted": "Yes|No", "qmd_hintspermitted": "Yes|No", "qmd_solutionspermitted": "Yes|No",
    "qmd_timelimit": r"\d+", "cc_allow_late_submission": "Yes|No", "cc_maxattempts": "[1-5]|unlimited|Examination",
}  # fmt: skip
_ITEM = {
    "cc_profile": r"cc\.(multiple_choice|multiple_response|true_false|fib|pattern_match|essay)\.v0p1",
    "cc_weighting": r"[1-9]\d?", "cc_question_category": ".+", "qmd_scoringpermitted": "Yes|No",
    "qmd_computerscored": "Yes|No",
}  # fmt: skip
#: Elements whose parts have an order, with it.
_ORDER = {
    "manifest": ("metadata", "organizations", "resources"), "resource": ("file", "dependency"),
    "item": ("title", "item", "itemmetadata", "presentation", "resprocessing", "itemfeedback"),
    "assessment": ("qtimetadata", "section"), "resprocessing": ("outcomes", "respcondition"),
    "respcondition": ("conditionvar", "setvar", "displayfeedback"),
}  # fmt: skip


@dataclass
class CartridgeQuestion:
    """One item of a quiz."""

    ident: str
    kind: str
    marks: int
    text: str
    #: Ident → text.
    options: dict[str, str] = field(default_factory=dict)
    #: What earns all marks.
    rights: list[str] = field(default_factory=list)
    feedback: dict[str, str] = field(default_factory=dict)


@dataclass
class CartridgeLesson:
    """One folder of the contents: its page and the questions of its quiz."""

    title: str
    page: str = ""
    questions: list[CartridgeQuestion] = field(default_factory=list)


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        if tag == "img":
            assert held.get("alt"), "an image without a description"
        assert tag not in ("svg", "script", "style", "link", "iframe")
        self.found += [held[name] or "" for name in ("src", "href") if name in held]


class Cartridge:
    """A package, read whole; every rule that is broken is an AssertionError."""

    def __init__(self, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert archive.testzip() is None
            self._files = {name: archive.read(name) for name in archive.namelist()}
        self._manifest = _tree(self._files["imsmanifest.xml"])
        self._resources = {one.attrib["identifier"]: one for one in self._manifest.iter(f"{_CP}resource")}
        self._check_manifest()
        self.lessons = [self._lesson(item) for item in self._root.findall(f"{_CP}item")]

    @property
    def _root(self) -> ET.Element:
        [organization] = self._manifest.findall(f"{_CP}organizations/{_CP}organization")
        assert organization.get("structure") == "rooted-hierarchy"
        [root] = organization.findall(f"{_CP}item")
        assert root.find(f"{_CP}title") is None
        return root

    def _check_manifest(self) -> None:
        schema = [self._manifest.findtext(f"{_CP}metadata/{_CP}{name}") for name in ("schema", "schemaversion")]
        assert schema == ["IMS Common Cartridge", "1.1.0"]
        idents = [one.attrib["identifier"] for one in self._manifest.iter() if "identifier" in one.attrib]
        assert len(idents) == len(set(idents))
        listed = [one.attrib["href"] for one in self._manifest.iter(f"{_CP}file")]
        assert sorted(listed) == sorted(self._files.keys() - {"imsmanifest.xml"})
        for resource in self._resources.values():
            files = [one.attrib["href"] for one in resource.findall(f"{_CP}file")]
            needed = [one.attrib["identifierref"] for one in resource.findall(f"{_CP}dependency")]
            assert len(needed) == len(set(needed))
            assert all(self._resources[each].get("type") == "webcontent" for each in needed)
            if resource.get("type") == _QUIZ:
                assert len(files) == 1
                assert "href" not in resource.attrib
            else:
                assert resource.get("type") == "webcontent"
                assert resource.attrib["href"] in files

    def _lesson(self, item: ET.Element) -> CartridgeLesson:
        found = CartridgeLesson(item.findtext(f"{_CP}title") or "")
        assert found.title
        for child in item.findall(f"{_CP}item"):
            assert child.findtext(f"{_CP}title")
            assert not child.findall(f"{_CP}item")
            resource = self._resources[child.attrib["identifierref"]]
            [path] = [one.attrib["href"] for one in resource.findall(f"{_CP}file")]
            text = self._files[path].decode()
            if resource.get("type") == _QUIZ:
                found.questions = list(self._questions(path, _tree(self._files[path]), resource))
            else:
                self._check_links(path, text, resource, "")
                found.page = text
        return found

    def _check_links(self, path: str, markup: str, resource: ET.Element, base: str) -> None:
        """Every image is in the package, as something that the resource says it needs."""
        links = _Links()
        links.feed(markup)
        needed = {one.attrib["identifierref"] for one in resource.findall(f"{_CP}dependency")}
        for source in links.found:
            if source.startswith("#"):
                continue
            assert source.startswith(base)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), source.removeprefix(base)))
            assert any(self._resources[each].get("href") == target for each in needed), source

    def _questions(self, path: str, whole: ET.Element, resource: ET.Element) -> Iterator[CartridgeQuestion]:
        [assessment] = whole.findall(f"{_QTI}assessment")
        assert assessment.get("title")
        assert _fields(assessment, _ASSESSMENT)["cc_profile"] == "cc.exam.v0p1"
        [section] = assessment.findall(f"{_QTI}section")
        seen = set()
        for item in section.findall(f"{_QTI}item"):
            assert item.attrib["ident"] not in seen
            seen.add(item.attrib["ident"])
            found = _question(item)
            for markup in (found.text, *found.options.values(), *found.feedback.values()):
                self._check_links(path, markup, resource, "$IMS-CC-FILEBASE$")
            yield found


def _tree(data: bytes) -> ET.Element:
    """The tree of a file whose elements stand in the order of the format."""
    root = ET.fromstring(data)
    for element in root.iter():
        order = _ORDER.get(_name(element))
        if order:
            places = [order.index(_name(child)) for child in element]
            assert places == sorted(places), _name(element)
    return root


def _name(element: ET.Element) -> str:
    return element.tag.partition("}")[2]


def _fields(owner: ET.Element, allowed: dict[str, str]) -> dict[str, str]:
    rows = [
        (one.findtext(f"{_QTI}fieldlabel") or "", one.findtext(f"{_QTI}fieldentry") or "")
        for one in owner.findall(f"{_QTI}qtimetadata/{_QTI}qtimetadatafield")
    ]
    assert len(rows) == len(dict(rows))
    for label, entry in rows:
        assert re.fullmatch(allowed[label], entry), (label, entry)
    return dict(rows)


def _material(owner: ET.Element | None) -> str:
    assert owner is not None
    text = owner.find(f"{_QTI}material/{_QTI}mattext")
    assert text is not None
    assert text.get("texttype") == "text/html"
    return text.text or ""


def _question(item: ET.Element) -> CartridgeQuestion:
    metadata = item.find(f"{_QTI}itemmetadata")
    assert metadata is not None
    fields = _fields(metadata, _ITEM)
    kind = fields["cc_profile"].split(".")[1]
    presentation = item.find(f"{_QTI}presentation")
    assert presentation is not None
    found = CartridgeQuestion(item.attrib["ident"], kind, int(fields["cc_weighting"]), _material(presentation))
    labels = list(presentation.iter(f"{_QTI}response_label"))
    lids, strings = (list(presentation.iter(f"{_QTI}{name}")) for name in ("response_lid", "response_str"))
    assert [len(lids), len(strings)] == ([1, 0] if kind == "multiple_choice" else [0, 1])
    if kind == "multiple_choice":
        assert len(labels) >= 3
        found.options = {one.attrib["ident"]: _material(one) for one in labels}
    assert (fields.get("qmd_computerscored") == "No") == (kind == "essay")
    ident = (lids + strings)[0].attrib["ident"]
    _processing(item, found, ident)
    return found


def _processing(item: ET.Element, found: CartridgeQuestion, ident: str) -> None:
    processing = item.find(f"{_QTI}resprocessing")
    assert processing is not None
    declared = processing.findall(f"{_QTI}outcomes/{_QTI}decvar")
    assert [one.get("varname") for one in declared] == ["SCORE"]
    found.feedback = {
        one.attrib["ident"]: _material(one.find(f"{_QTI}flow_mat")) for one in item.findall(f"{_QTI}itemfeedback")
    }
    shown = set()
    for condition in processing.findall(f"{_QTI}respcondition"):
        equals = condition.findall(f"{_QTI}conditionvar/{_QTI}varequal")
        assert all(one.get("respident") == ident for one in equals)
        if found.kind == "multiple_choice":
            assert {one.text for one in equals} <= found.options.keys()
        for setting in condition.findall(f"{_QTI}setvar"):
            assert (setting.get("varname"), setting.get("action"), setting.text) == ("SCORE", "Set", "100")
            found.rights += [one.text or "" for one in equals]
        if equals and found.kind == "multiple_choice":
            # Moodle adds the feedback of conditions that go on to what all pupils are told.
            assert condition.get("continue") == "No"
        for display in condition.findall(f"{_QTI}displayfeedback"):
            assert display.get("feedbacktype") == "Response"
            shown.add(display.get("linkrefid"))
    assert shown == found.feedback.keys()
    assert bool(found.rights) == (found.kind != "essay")
