"""LibreOffice opens what Word and PowerPoint are to open; docx-integrity finds nothing; questions are read back."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.export.base import Selection, export
from pipeline.publish.view import CourseView, LessonView
from tests.sites import BUNDLES

#: Parts of a text that are no plain words: formulas, and what pages set in another way.
_NO_WORDS = re.compile(r"\\\(.*?\\\)|\\\[.*?\\\]|[^A-Za-z ]+", re.DOTALL)


def exported(name: str, folder: Path) -> tuple[CourseView, list[Path]]:
    view = CourseView(BUNDLES["mock"])
    made = []
    for path, data in export(Selection(view, view.lessons), [name]).items():
        made.append(folder / Path(path).name)
        made[-1].write_bytes(data)
    return view, made


def converted(soffice: str, paths: Sequence[Path], folder: Path, kind: str) -> list[Path]:
    """The files as LibreOffice writes them; each must be there."""
    home = f"-env:UserInstallation={(folder / 'home').as_uri()}"
    command = [soffice, home, "--headless", "--convert-to", kind, "--outdir", str(folder), *map(str, paths)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    made = [folder / f"{path.stem}.{kind.partition(':')[0]}" for path in paths]
    assert [path for path in made if not path.exists()] == []
    return made


def phrases(text: str) -> list[str]:
    """Runs of four plain words and more."""
    return [found for piece in _NO_WORDS.split(text) if len((found := piece.strip()).split()) > 3]


def asked(lesson: LessonView) -> list[str]:
    """What every fourth question asks, and its options."""
    every_fourth = lesson.questions[::4]
    assert every_fourth
    return [text for one in every_fourth for text in (one.ask, *(option.text for option in one.options))]


def test_docx_opens_in_libreoffice_with_its_questions(soffice: str, tmp_path: Path) -> None:
    view, paths = exported("docx", tmp_path)
    texts = {path.stem: " ".join(path.read_text("utf-8").split()) for path in converted(
        soffice, paths, tmp_path, "txt:Text (encoded):UTF8")}  # fmt: skip
    for lesson in view.lessons:
        whole = " ".join(text for stem, text in texts.items() if stem.startswith(lesson.file))
        for phrase in (each for text in asked(lesson) for each in phrases(text)):
            assert phrase in whole, (lesson.file, phrase)
    for path in converted(soffice, paths[:2], tmp_path, "pdf"):
        assert path.read_bytes().startswith(b"%PDF")


def test_docx_integrity_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("docx_integrity")
    _, paths = exported("docx", tmp_path)
    command = [str(Path(sys.executable).parent / "docx-integrity"), "check", "--fail-on", "warn", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_slides_open_in_libreoffice_one_page_each_with_their_questions(soffice: str, tmp_path: Path) -> None:
    view, paths = exported("pptx", tmp_path)
    made = converted(soffice, paths, tmp_path, "odp")
    for lesson, path, odp in zip(view.lessons, paths, made, strict=True):
        with zipfile.ZipFile(path) as archive:
            slides = [name for name in archive.namelist() if re.fullmatch(r"ppt/slides/slide\d+\.xml", name)]
        with zipfile.ZipFile(odp) as archive:
            content = archive.read("content.xml").decode("utf-8")
        assert content.count("<draw:page ") == len(slides)
        whole = " ".join(re.sub(r"<[^>]*>", "", re.sub(r"<text:(?:s|line-break|tab)[^>]*/>", " ", content)).split())
        for phrase in (each for text in asked(lesson) for each in phrases(text)):
            assert phrase in whole, (lesson.file, phrase)


def test_nothing_on_slides_runs_over_their_edges(soffice: str, tmp_path: Path) -> None:
    reader = shutil.which("pdftotext")
    if reader is None:
        pytest.skip("pdftotext (poppler) is not installed")
    _, paths = exported("pptx", tmp_path)
    for path in converted(soffice, paths, tmp_path, "pdf"):
        boxes = subprocess.run([reader, "-bbox", str(path), "-"], check=True, capture_output=True, text=True).stdout
        for page in boxes.split("<page ")[1:]:
            wide, high = (float(found) for found in re.findall(r'(?:width|height)="([\d.]+)"', page)[:2])
            for word in re.findall(r'<word xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)"', page):
                _, top, right, bottom = map(float, word)
                assert right < wide * 0.96
                # Text ends above the footer, or is the footer.
                assert bottom < high * 0.925 or top > high * 0.925
