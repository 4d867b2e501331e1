"""`subjects`: what there is, a template for more, a check of a file; and `recover`."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from pipeline.cli.options import CourseName
from pipeline.content.names import LEVELS, SUBJECTS
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import RunEnded
from pipeline.records.lines import encode_line
from tests.runs import Script
from tests.said import Cli


def test_subjects_lists_the_shipped_courses_and_every_name(cli: Cli) -> None:
    text = cli("subjects").out
    for part in ("mathematics", "National 5 Mathematics", "C847 75", "shipped", "physics (phys)", "national_5 (n5"):
        assert part in text


def test_subjects_of_an_own_folder_stand_beside_the_shipped_and_are_checked(cli: Cli, tmp_path: Path) -> None:
    own = tmp_path / "biology-national_5.yaml"
    text = cli("subjects", "new", "bio", "n5").out
    own.write_text(text)
    rows = cli("subjects", "--catalogue", str(tmp_path), "--json").json()
    assert {row["from"] for row in rows} == {"shipped", str(own)}
    assert ("biology", "national_5") in {(row["subject"], row["level"]) for row in rows}
    said = cli("subjects", "check", str(own))
    assert (said.code, said.out.endswith("No faults.\n")) == (0, True)
    # A line for each fault, and the hint.
    own.write_text(text.replace("marks: 50", "marks: fifty").replace("level: 5", "level: five"))
    said = cli("subjects", "check", str(own))
    assert (said.code, [str(own) in line for line in said.err.splitlines()]) == (2, [True, True, False])
    own.write_text("- nothing\n")
    said = cli("subjects", "--catalogue", str(tmp_path))
    assert (said.code, "faulty file" in said.out, "biology-national_5.yaml:1" in said.err) == (0, True, True)
    refused = cli("subjects", "new", "b" * 41, "n5")
    assert (refused.code, "longer than 40 characters" in refused.err) == (2, True)


SYLLABUS = """Unit 1: Cells
Pupils should be able to:
1. Describe the parts of a cell
2. Explain osmosis
Unit 2: Energy
3. Compare fuels
"""


@pytest.mark.usefixtures("out")
def test_import_shows_what_it_understood_and_writes_a_course_that_is_made(cli: Cli, tmp_path: Path) -> None:
    source, folder = tmp_path / "ks3.txt", tmp_path / "courses"
    source.write_text(SYLLABUS)
    said = cli("subjects", "import", str(source), "Science", "Key Stage 3")
    assert "Nothing was written" in said.out
    assert not folder.exists()
    into = ("--catalogue", str(folder))
    said = cli("subjects", "import", str(source), "Science", "Key Stage 3", *into)
    file = folder / "science-ks3.yaml"
    assert said.code == 0
    for part in ("Unit 1: Cells", "Explain osmosis", "3 learning outcomes in 2 groups", "(line 2)", f"Written: {file}"):
        assert part in said.out
    assert (
        cli("subjects", "check", str(file)).out == f"{file}: KS3 Science, 2 groups, 3 learning outcomes. No faults.\n"
    )
    # Nothing is replaced unless that is asked for.
    again = cli("subjects", "import", str(source), "science", "ks3", *into)
    assert (again.code, "is there already" in again.err) == (2, True)
    row = cli("subjects", "import", str(source), "science", "ks3", *into, "--overwrite", "--title", "Lower Science",
              "--json").json()[0]  # fmt: skip
    assert [group["title"] for group in row["groups"]] == ["Unit 1: Cells", "Unit 2: Energy"]
    assert (row["groups"][1]["outcomes"][0]["line"], row["written"]) == (6, str(file))
    plan = cli("lessons", "--subject", "Science", "--level", "ks3", *into, "--lessons", "3", "--dry-run").out
    assert "Lower Science, 3 lessons" in plan
    assert cli("lessons", "--subject", "science", "--level", "KS3", *into, "--lessons", "2", "--yes").code == 0
    (run,) = cli("list", "--subject", "SCIENCE", "--json").json()
    assert (run["subject"], run["level"], run["status"]) == ("science", "ks3", "completed")
    # The same names in another spelling resume it; another level does not.
    resume = ("lessons", "--resume", run["run_id"], "--subject", "Science", "--level")
    assert (cli(*resume, "key stage 3").code, cli(*resume, "ks4").code) == (0, 2)
    unknown = cli("list", "--subject", "scienze")
    assert (unknown.code, "No run has the subject 'scienze'" in unknown.err) == (2, True)


def test_name_with_a_slip_is_asked_back_before_a_file_is_made(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "list.txt"
    source.write_text(SYLLABUS)
    for names, meant in (
        (("histroy", "ks3"), "history"),
        (("art", "hiher"), "higher"),
        (("mathmatics", "n5"), "mathematics"),
    ):
        said = cli("subjects", "import", str(source), *names, "--catalogue", str(tmp_path / "courses"))
        assert (said.code, f"Did you mean {meant}?" in said.err) == (2, True)
        assert cli("subjects", "new", *names).code == 2
    assert not (tmp_path / "courses").exists()
    # What is only like a usual name, or short, is a subject of its own.
    for name in ("marathi", "musica", "arts"):
        assert cli("subjects", "new", name, "ks3").code == 0


def test_subjects_names_files_of_the_folder_that_it_does_not_read(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "syllabus.pdf").write_bytes(b"%PDF")
    (tmp_path / "latin.yml").write_text("catalogue: 1\n")
    text = cli("subjects", "new", "latin", "gcse").out
    (tmp_path / "Latin-GCSE.yml").write_text(text)
    said = cli("subjects", "--catalogue", str(tmp_path))
    assert [line for line in said.err.splitlines() if "is not read" in line] == [
        f"Warning: {tmp_path / name} is not read: its name is not SUBJECT-LEVEL.yaml."
        for name in ("latin.yml", "syllabus.pdf")
    ]
    assert "GCSE Latin" in said.out


def test_names_are_completed_from_the_catalogue_too(tmp_path: Path) -> None:
    (tmp_path / "science-ks3.yaml").touch()
    context = click.Context(click.Command("lessons"))
    context.params["catalogue"] = tmp_path
    for kind, names, begun, wanted in (
        ("subject", SUBJECTS, "s", ["spanish", "science"]), ("level", LEVELS, "ks3", ["ks3"]),
    ):  # fmt: skip
        items = CourseName(kind, names).shell_complete(context, click.Argument(["x"]), begun)
        assert [item.value for item in items] == wanted


def test_recover_appends_what_the_disk_had_refused_once(root: Path, cli: Cli, tmp_path: Path) -> None:
    run = Script(root).begin("seed").leave()
    fact = RunEnded("in_progress", "interrupted")
    line = encode_line(3, "2026-01-09T14:31:00.000Z", 1, encode_fact(fact))
    file = tmp_path / "emergency.jsonl"
    file.write_bytes(json.dumps({"emergency": run}).encode() + b"\n" + line)
    assert cli("recover", run, str(file)).out == f"1 record appended to run {run}. {file} is no longer needed.\n"
    assert cli("recover", run, str(file)).out == f"Run {run} already has all of these. {file} is no longer needed.\n"
    assert cli("log", run, "--json").json()[-1]["kind"] == "run_ended"
