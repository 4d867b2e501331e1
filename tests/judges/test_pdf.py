"""PDF files are read back by poppler: their text, title and tags."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.export import pdf
from pipeline.export.base import DIFFICULTIES, Selection
from pipeline.export.worksheet import Worksheet, sheets
from pipeline.publish import mathml
from pipeline.publish.view import CourseView
from tests.acceptance.test_site_html import drafted
from tests.sites import BUNDLES

COURSES = ("mock", "mathematics national_5", "physics higher")


def read(program: str, *arguments: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"poppler ({program}) is not installed")
    return subprocess.run([found, *arguments], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture(scope="module", params=COURSES)
def papers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Worksheet, Path]]:
    """The sheets of a course, and the folder of their files."""
    name = str(request.param)
    view = CourseView(BUNDLES[name] if name in BUNDLES else drafted(*name.split(), 6))
    made = tmp_path_factory.mktemp("pdf")
    for path, data in pdf.files(Selection(view, view.lessons)):
        (made / path).write_bytes(data)
    return [(sheet, made) for lesson in view.lessons for sheet in sheets(lesson, DIFFICULTIES)]


def letters(text: str) -> str:
    """The letters and digits alone: lines are broken elsewhere, and signs are typeset."""
    return re.sub(r"[\W_]+", "", text)


def phrases(text: str) -> list[str]:
    """What stands between the formulas."""
    return [letters(content) for kind, content, _ in mathml.split(text) if kind == "text" and letters(content)]


def test_a_fourth_of_the_questions_is_read_back(papers: list[tuple[Worksheet, Path]]) -> None:
    for sheet, folder in papers:
        said = letters(read("pdftotext", "-raw", str(folder / f"{sheet.name}.pdf"), "-"))
        answers = letters(read("pdftotext", "-raw", str(folder / f"{sheet.answers_name}.pdf"), "-"))
        for one in sheet.questions[::4]:
            shown = [
                one.asked.ask,
                *(option.text for option in one.asked.options),
                *(part.ask for part in one.asked.parts),
            ]
            taught = [one.asked.item["feedback"], *(part.answer for part in one.asked.parts), one.asked.answer]
            assert [phrase for text in shown for phrase in phrases(text) if phrase not in said] == []
            assert [phrase for text in (*shown, *taught) for phrase in phrases(text) if phrase not in answers] == []
            assert [phrase for phrase in phrases(one.asked.item["feedback"]) if phrase in said] == []


def test_a_file_is_tagged_and_has_its_title(papers: list[tuple[Worksheet, Path]]) -> None:
    for sheet, folder in papers:
        path = str(folder / f"{sheet.name}.pdf")
        facts = read("pdfinfo", path)
        assert re.search(r"^Title: +\S", facts, re.MULTILINE)
        assert re.search(r"^Tagged: +yes$", facts, re.MULTILINE)
        assert re.search(r"^Page size: .*A4", facts, re.MULTILINE)
        assert not re.search(r"^(Creation|Mod)Date:", facts, re.MULTILINE)
        assert read("pdfinfo", "-struct", path).count("LI (block)") >= len(sheet.questions)
