"""`export`: what of a run is written, for whom, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

import pytest

from tests.desks import Served
from tests.reviews import drafted as drafted
from tests.reviews import run as run
from tests.said import Cli

MINE = "A person wrote this question by hand: what is \\(2 + 2\\)?"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the course goes by default."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here" / "exports" / "course_c84775-draft"


def rows_of(folder: Path, name: str = "questions") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / f"csv/{name}.csv").read_text(encoding="utf-8-sig"))))


def test_course_is_exported_as_it_stands_and_the_same_again(cli: Cli, run: str, here: Path) -> None:
    said = cli("export", "latest", "--to", "csv")
    assert said.code == 0, said.err
    assert said.out.splitlines()[0] == f"National 5 Mathematics, 2 lessons of 2, in {here}"
    assert said.out.splitlines()[4].split()[:3] == ["csv", "teacher", "2"]
    assert "Offline draft: made without a model and read by nobody." in said.out
    assert "Licence: not stated. Attribution: not stated." in said.out
    first = (here / "csv/questions.csv").read_bytes()
    file, licence, whole = cli("export", run, "--to", "csv,CSV", "--json").json()
    assert (file["audience"], file["state"], file["bytes"]) == ("teacher", "unchanged", len(first))
    assert licence["bytes"] == (here / "csv/questions-licence.txt").stat().st_size
    assert (whole["run"], whole["lessons"], whole["missing"], whole["licence"]) == (run, [1, 2], [], "not stated")
    assert (here / "csv/questions.csv").read_bytes() == first


def test_lessons_are_exported_as_people_left_them(cli: Cli, run: str, here: Path, tmp_path: Path) -> None:
    assert cli("export", run, "--to", "csv", "--lesson", "2").code == 0
    assert {row["lesson"] for row in rows_of(here, "questions-2")} == {"2"}
    edit = tmp_path / "edit.json"
    edit.write_text(json.dumps({"c1.q1.ask": MINE, "c1.q1.answer": "4", "c1.q1.expression": "2 + 2"}))
    said = cli("review", run, "2", "--edit", str(edit), "--by", "A. Lee")
    assert said.code == 0, said.err
    said = cli("export", run, "--to", "csv", "--out", "elsewhere")
    assert "1 of 2 lessons reviewed" in said.out
    assert MINE in {row["asks"] for row in rows_of(here.parents[1] / "elsewhere")}


def test_files_of_an_earlier_export_are_named_where_this_one_should_have_them(cli: Cli, run: str, here: Path) -> None:
    cli("export", run, "--to", "csv,markdown")
    record = json.loads((here / ".exported.json").read_text())
    (here / "markdown/03-gone.md").write_text("a lesson that had another title")
    (here / ".exported.json").write_text(json.dumps({**record, "markdown/03-gone.md": ["0"]}))
    assert "earlier export" not in cli("export", run, "--to", "csv").out
    assert "earlier export" not in cli("export", run, "--to", "markdown", "--lesson", "1").out
    said = cli("export", run, "--to", "markdown").out
    assert "Of an earlier export, and not in this one: markdown/03-gone.md." in said


def test_file_that_was_changed_is_kept_and_named(cli: Cli, run: str, here: Path) -> None:
    cli("export", run, "--to", "csv")
    (here / "csv/questions.csv").write_text("mine")
    assert "Kept as you changed them: csv/questions.csv." in cli("export", run, "--to", "csv").out
    assert cli("export", run, "--to", "csv", "--json").json()[0]["state"] == "kept"
    assert "Written over your changes: csv/questions.csv." in cli("export", run, "--to", "csv", "--overwrite").out
    assert len(rows_of(here)) > 1


def test_unfinished_run_is_exported_as_far_as_it_is(cli: Cli, root: Path, out: Path, here: Path) -> None:
    course = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "2", "--model", "offline")
    assert cli(*course, "--until", "sow").code == 0
    said = cli("export", "latest", "--to", "csv")
    assert (said.code, "No lesson of this course is made yet." in said.err) == (2, True)
    assert cli(*course, "--sample", "1").code == 0
    assert "Not in it, not made yet: lessons 2." in cli("export", "latest", "--to", "csv").out
    assert {row["lesson"] for row in rows_of(here)} == {"1"}


def test_what_cannot_be_exported_is_told(cli: Cli, run: str, here: Path) -> None:
    for arguments, code, words in (
        (["latest", "--to", "cvs"], 2, "Did you mean csv?"),
        (["latest", "--to", ","], 2, "Formats: docx, "),
        (["latest", "--to", "csv", "--lesson", "3"], 2, "Lessons that are made: 1, 2."),
        (["nothing", "--to", "csv"], 3, "nothing"),
        (["latest", "--to", "csv", "--out", "/dev/null/x"], 7, "choose another folder with --out DIR."),
    ):
        said = cli("export", *arguments)
        assert (said.code, words in said.err) == (code, True), said
    assert not here.exists()


def test_course_is_published_with_downloads_that_its_pages_link(cli: Cli, root: Path, out: Path) -> None:
    course = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "1", "--model", "offline")
    assert cli(*course, "--with", "csv,markdown").code == 0
    site = out / "course_c84775-draft"
    lesson, answers = (next(site.glob(f"{folder}/01-*.html")).read_text() for folder in ("lessons", "answers"))
    stem = next(site.glob("lessons/*.html")).stem
    for page, path in (
        (lesson, f"downloads/markdown/{stem}.md"),
        (answers, f"downloads/markdown/{stem}-answers.md"),
        ((site / "answers/index.html").read_text(), "downloads/csv/questions.csv"),
    ):
        assert f'href="../{path}"' in page
        assert path in json.loads((site / "manifest.json").read_text())["files"]
    # Pupils' pages lead to no file with answers.
    assert "-answers.md" not in lesson
    assert "questions.csv" not in lesson
    # The run keeps it; another wish publishes again, and makes no lesson again.
    assert cli("lessons", "--resume", "latest").out.startswith("already completed")
    said = cli("lessons", "--resume", "latest", "--with", "none")
    assert "it is to be published with no downloads" in said.out
    assert not (site / "downloads").exists()
    assert cli("lessons", "--resume", "latest").out.startswith("already completed")


def test_format_of_downloads_is_checked_before_anything_is_made(cli: Cli, root: Path, out: Path) -> None:
    course = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "1", "--model", "offline")
    for arguments in ([], ["--dry-run"]):
        said = cli(*course, "--with", "docs", *arguments)
        assert (said.code, "There is no format 'docs'." in said.err) == (2, True)
    assert not root.exists()


def test_desk_hands_out_the_same_files(cli: Cli, run: str, here: Path, desk: Served) -> None:
    assert 'name="to" value="csv"' in desk.get(f"runs/{run}").text
    got = desk.get(f"runs/{run}/files?to=csv&to=markdown&lesson=2")
    assert (got.status, got.headers["content-disposition"]) == (200, 'attachment; filename="course_c84775-draft.zip"')
    assert cli("export", run, "--to", "csv,markdown", "--lesson", "2").code == 0
    with zipfile.ZipFile(io.BytesIO(got.body)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            path.relative_to(here).as_posix(): path.read_bytes() for path in here.glob("*/*")
        }
    for asked in ("", "to=cvs", "to=csv&lesson=9", "to=csv&difficulty=hard"):
        assert desk.get(f"runs/{run}/files?{asked}").status == 400


def test_export_that_has_no_lessons_names_the_store_in_its_hint(cli: Cli, here: Path, tmp_path: Path) -> None:
    store = f"files:{tmp_path / 'other'}"
    made = cli("lessons", "--subject", "maths", "--level", "n5", "--model", "offline", "--until", "sow", "--lessons",
               "2", "--store", store)  # fmt: skip
    assert made.code == 0, made.err
    said = cli("export", "latest", "--to", "csv", "--store", store)
    assert said.code == 2
    assert f" --store {store}` shows how far it is" in said.err


def test_export_names_a_file_where_a_folder_is_wanted(cli: Cli, run: str, here: Path) -> None:
    Path("notes.txt").write_text("mine")
    for out, where in (("notes.txt", "it"), ("notes.txt/below", str(Path("notes.txt").absolute()))):
        said = cli("export", run, "--to", "csv", "--out", out)
        assert said.code == 7
        assert f": {where} is a file, not a folder." in said.err
    assert Path("notes.txt").read_text() == "mine"
