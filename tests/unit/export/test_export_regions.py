"""Pages, worksheets, slides and papers say words as they are said where the course's pupils live."""

from __future__ import annotations

import html
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pipeline.export.base import Selection, export
from pipeline.export.paper import documents
from pipeline.frameworks import REGIONS
from pipeline.publish import site
from pipeline.publish.view import CourseView
from tests.sites import BUNDLES

pytest.importorskip("docx")
pytest.importorskip("pptx")
_TAG = re.compile(r"<[^>]+>")
#: What only one of them says.
BRITISH = re.compile(r"[Pp]upils?\b|\b\d+\smarks?\b|\b[Mm]arks?\b(?! as)|Mock exam|Licence|Scheme of work|Revision")
AMERICAN = ("students", "points", "scoring guide", "Practice exam", "License", "Course plan")


def texts(name: str, region: str) -> Iterator[str]:
    """All that people read of a sample course in a region, but for its data."""
    sample = BUNDLES[name]
    # What stands in the sample itself is its author's.
    lessons = json.loads(re.sub("the marks|Pupils who|second mark", "stars", json.dumps(sample.lessons)))
    bundle = replace(sample, course={**sample.course, "region": region}, lessons=lessons)
    view = CourseView(bundle)
    for path, data in site.build(bundle).items():
        if path.endswith(".html"):
            yield html.unescape(_TAG.sub(" ", data.decode()))
    chosen = Selection(view, view.lessons)
    for _, document in documents(chosen):
        yield " ".join(re.findall(r'"(?:text|worth|marks)": "([^"]*)"', json.dumps(document)))
        yield " ".join(_strings(document))
    for path, data in export(chosen, ["docx", "pptx", "gift", "csv", "markdown", "qti", "imscc"]).items():
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                inside = [
                    archive.read(each) for each in archive.namelist() if re.search(r"document|slide\d|html$", each)
                ]
        else:
            inside = [data]
        for one in inside:
            yield f"{path} " + html.unescape(_TAG.sub(" ", one.decode()))


def _strings(value: object) -> Iterator[str]:
    """Texts of a document that stand in lists: its keys and kinds are none."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _strings(each if key in ("line", "body", "blocks", "rows", "facts", "head", "items") else [])
    elif isinstance(value, list):
        for each in value:
            yield from [each] if isinstance(each, str) else _strings(each)


@pytest.mark.parametrize("name", ["model", "mock"])
def test_course_of_the_united_states_says_students_and_points(name: str) -> None:
    whole = list(texts(name, "United States"))
    assert [
        text[max(0, found.start() - 60) : found.end() + 20] for text in whole for found in BRITISH.finditer(text)
    ] == []
    said = [word for word in AMERICAN if any(word in text for text in whole)]
    assert said == [word for word in AMERICAN if name == "mock" or word != "Practice exam"]


def test_words_are_said_as_a_region_has_them() -> None:
    here, there = REGIONS["england"], REGIONS["united_states"]
    for text, other in (
        ("1 mark", "1 point"), ("2 marks", "2 points"), ("Pupils' pages", "Students' pages"),
        ("Answers and mark schemes", "Answers and scoring guides"), ("Questions marked as", "Questions marked as"),
    ):  # fmt: skip
        assert (here.said(text), there.said(text)) == (text, other)
