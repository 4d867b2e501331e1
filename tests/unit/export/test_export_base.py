"""Formats are named and refused in one way; archives are the same bytes whenever and wherever they are made."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from pipeline.errors import ConfigError, PackageMissing
from pipeline.export import base
from pipeline.export.base import FORMATS, Selection, audience, checked, downloads, export, packed, repacked
from pipeline.publish.folder import FolderPublisher
from pipeline.publish.view import CourseView
from pipeline.records.values import digest
from tests.sites import BUNDLES

ROOT = Path(__file__).parents[3]


def chosen(name: str = "model") -> Selection:
    view = CourseView(BUNDLES[name])
    return Selection(view, view.lessons)


def test_unknown_format_is_refused_with_near_names() -> None:
    with pytest.raises(ConfigError) as caught:
        checked(["csv", "doc"])
    assert caught.value.code == "unknown_format"
    assert caught.value.data["near"] == ["docx"]


def test_missing_package_is_named_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "is_installed", lambda package: package not in ("genanki", "typst"))
    with pytest.raises(PackageMissing, match=r"pdf needs a package that is not installed: typst\.") as caught:
        checked(["csv", "pdf"])
    assert (caught.value.data["extra"], caught.value.data["packages"]) == ("export", ["typst"])


def test_format_named_twice_is_one() -> None:
    assert [each.name for each in checked(["csv", "csv"])] == ["csv"]


@pytest.mark.parametrize(
    ("path", "whom"),
    [
        ("docx/01-surds-core-worksheet.docx", "pupils"), ("docx/01-surds-core-answers.docx", "teacher"),
        ("csv/questions.csv", "teacher"), ("markdown/01-answers-to-life.md", "pupils"),
    ],
)  # fmt: skip
def test_file_is_for_pupils_or_the_teacher(path: str, whom: str) -> None:
    assert audience(path) == whom


def test_archive_is_the_same_bytes_whatever_the_order() -> None:
    files = {"b.txt": b"b" * 99, "a/é.txt": b"a"}
    made = packed(files)
    assert made == packed(dict(reversed(files.items())))
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert [each.filename for each in archive.infolist()] == ["a/é.txt", "b.txt"]
        assert {each.date_time for each in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {name: archive.read(name) for name in archive.namelist()} == files


def test_archive_of_a_library_loses_dates_and_folders() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("word/", b"")
        archive.writestr(zipfile.ZipInfo("word/document.xml", (2026, 1, 2, 3, 4, 6)), b"<w/>")
        archive.writestr("[Content_Types].xml", b"<t/>")
    assert repacked(made.getvalue()) == packed({"word/document.xml": b"<w/>", "[Content_Types].xml": b"<t/>"})


def test_table_of_questions_holds_every_question_and_no_formula_of_a_spreadsheet() -> None:
    made = export(chosen(), ["csv"])
    assert made == export(chosen(), ["csv"])
    licence = made["csv/questions-licence.txt"].decode()
    assert licence.splitlines() == [chosen().view.title, chosen().view.rights_line]
    rows = list(csv.DictReader(io.StringIO(made["csv/questions.csv"].decode("utf-8-sig"))))
    for lesson in chosen().lessons:
        own = [row for row in rows if row["lesson"] == str(lesson.order)]
        assert sum(int(row["marks"]) for row in own) == sum(question.marks for question in lesson.questions)
        for question in lesson.questions:
            found = [row for row in own if row["question"] == str(question.number)]
            assert {row["asks"] for row in found} == {question.ask}
            assert [row["answer"] for row in found] == [part.answer for part in question.parts] or [question.answer]
            assert [found[0][f"option {each.letter}"] for each in question.options] == [
                each.text for each in question.options
            ]


def hashes(name: str) -> list[str]:
    """Lines of path and hash of a course in all formats."""
    return [f"{path} {digest(data)}" for path, data in export(chosen(name), list(FORMATS)).items()]


@pytest.mark.parametrize("name", ["model", "mock"])
def test_course_gives_the_same_bytes_in_every_format_in_another_process(name: str) -> None:
    code = f"from tests.unit.export.test_export_base import hashes; print('\\n'.join(hashes({name!r})))"
    again = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=again, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == hashes(name)


@pytest.mark.parametrize("name", ["model", "mock"])
def test_every_file_is_linked_once_and_no_page_of_pupils_leads_to_answers(tmp_path: Path, name: str) -> None:
    files = downloads(CourseView(BUNDLES[name]), list(FORMATS))
    assert {each.path.partition("/")[0] for each in files} == set(FORMATS)
    bundle = replace(BUNDLES[name], downloads=files)
    site = Path(FolderPublisher(tmp_path).publish(bundle).path)
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    labels = {PurePosixPath(each.path).name: each.label for each in files if not each.lesson or "support" in each.path}
    assert labels["questions-licence.txt"] == "licence of a table of the questions for a spreadsheet"
    assert labels["questions.csv"] == "a table of the questions for a spreadsheet"
    if name == "model":
        stem = "01-simplifying-surds-with-square-factors-support"
        assert labels[f"{stem}-worksheet.docx"] == "worksheet A"
        assert labels[f"{stem}-answers.docx"] == "answers to worksheet A (support)"
    for each in files:
        linking = [path for path, text in pages.items() if f'downloads/{each.path}"' in text]
        assert [path.parent.name for path in linking] == ["answers" if each.for_teacher else "lessons"], each.path
        assert (site / "downloads" / each.path).read_bytes() == each.data
