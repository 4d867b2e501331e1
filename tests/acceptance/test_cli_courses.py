"""`courses`: many courses from a file: checked first, a run each, gone on with as a whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.app import courses as many
from pipeline.app.plan import plan
from tests.documents import ROOT
from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer
from tests.servers.mishaps import Plan

SHORT = "subject,level,lessons\nmathematics,national_5,1\nphysics,higher,1\n"
TWO = "subject,level,lessons\nmathematics,national_5,2\nphysics,higher,1\n"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_MODEL", "offline")


def write(folder: Path, text: str) -> str:
    path = folder / "courses.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.usefixtures("offline")
def test_courses_are_made_each_in_a_run_and_left_alone_by_the_same_command(
    cli: Cli, root: Path, out: Path, tmp_path: Path
) -> None:
    file = write(tmp_path, TWO)
    said = cli("courses", file)
    assert said.code == 0, said.err
    assert "2 of 2 courses completed. Spent by this command: $0.00." in said.out
    assert sorted(path.name for path in out.iterdir() if (path / "index.html").exists()) == [
        "course_c84775-draft", "course_c85776-draft",
    ]  # fmt: skip
    rows = cli("list", "--json").json()
    assert sorted((row["subject"], row["status"]) for row in rows) == [
        ("mathematics", "completed"), ("physics", "completed"),
    ]  # fmt: skip
    again = cli("courses", file, "--quiet")
    assert again.code == 0
    assert again.out.count("already completed") == 2
    assert len(cli("list", "--json").json()) == 2


@pytest.mark.usefixtures("out", "offline")
def test_courses_names_every_wrong_line_and_begins_none(cli: Cli, root: Path, tmp_path: Path) -> None:
    file = write(tmp_path, "\n".join([
        "Subject,level,Lessons,batch,effort,max-cost-usd",
        "mathematics,national_5,2,,,",
        "mathematic,higher,2,,,",
        "",
        ",higher,,,,",
        "physics,higher,two,,,",
        "physics,higher,500,,,",
        "physics,higher,,maybe,,",
        "maths,N5,3,,,",
        "physics,higher,,,huge,",
        "physics,higher,,,,lots",
    ]))  # fmt: skip
    said = cli("courses", file)
    assert said.code == 2
    assert said.out == ""
    assert [line.strip().removeprefix("Error: ") for line in said.err.splitlines()] == [
        "courses.csv line 3: There is no course file for Mathematic at Higher. Did you mean mathematics? "
        "Available: application_of_mathematics national_4, mathematics national_5, physics higher.",
        "courses.csv line 5: the subject is missing",
        "courses.csv line 6: --lessons: 'two' is not a whole number",
        "courses.csv line 7: --lessons is 500; it can be 1 to 120.",
        "courses.csv line 8: --batch: 'maybe' is neither yes nor no",
        "courses.csv line 9: duplicate of line 2",
        "courses.csv line 10: --effort is 'huge'; it can be low, medium, high, xhigh, max.",
        "courses.csv line 11: --max-cost-usd is 'lots'; it must be an amount of dollars such as 2.50, or none.",
        "Hint: Nothing was started.",
    ]
    assert not root.exists()


@pytest.mark.usefixtures("out", "offline")
def test_courses_check_once_what_no_line_can_help(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, garbage = write(tmp_path, SHORT), tmp_path / "garbage.db"
    garbage.write_bytes(b"no database " * 100)
    for option, value, code, said in (
        ("--executor", "nonsense", 2, "Error: --executor is 'nonsense'"),
        ("--executor", "dask:local", 2, "Error: A file store belongs to"),
        ("--store", f"sqlite:{garbage}", 3, "Error: The database of"),
    ):
        told = cli("courses", file, option, value)
        assert (told.code, told.err.startswith(said)) == (code, True), told.err
        assert "line 2" not in told.err + told.out
    course = ["lessons", "--subject", "physics", "--level", "higher"]
    for command in (course, ["courses", file]):
        for executor in ("nonsense", "dask://u:geheim@h:1"):
            told = cli(*command, "--dry-run", "--executor", executor)
            assert (told.code, "--executor" in told.err, "geheim" in told.err) == (2, True, False)
    monkeypatch.delenv("PIPELINE_MODEL")
    told = cli("courses", write(tmp_path, "subject,level,model\nphysics,higher,claude-sonnet-5-5\n"))
    assert told.code == 2
    assert "line 2: --model claude-sonnet-5-5 needs a credential" in told.err
    assert "ANTHROPIC_API_KEY" in told.err.splitlines()[-1]


@pytest.mark.usefixtures("out", "offline")
def test_courses_go_on_with_what_was_stopped_but_not_with_other_settings_unasked(cli: Cli, tmp_path: Path) -> None:
    said = cli("courses", write(tmp_path, TWO), "--until", "seed", "--quiet")
    assert said.code == 0
    assert "0 of 2 courses completed, 2 stopped as requested." in said.out
    other = write(tmp_path, TWO.replace("national_5,2", "national_5,3"))
    refused = cli("courses", other)
    assert refused.code == 2
    assert "courses.csv line 2: Run " in refused.err
    assert "Hint: Nothing was started. Use --accept-changes" in refused.err
    rows = cli("courses", other, "--accept-changes", "--json").json()
    assert (rows[-1]["completed"], rows[-1]["exit_code"]) == (2, 0)
    assert len(cli("list", "--json").json()) == 2


NO_TABLES = [
    ("", "line 1: the column 'subject' is missing"),
    ("subject,level\n", "lists no courses"),
    ("subject,level,colour\nphysics,higher,red\n", "line 1: unknown column 'colour'"),
    ("subject,level,level\n", "line 1: duplicate column 'level'"),
    ("subject,level\nphysics,higher,3\nphysic,higher\n", "line 2: it has more cells than the header"),
    (
        "subject,level\nphysics,higher,3\nphysic,higher\n",
        "line 3: There is no course file for Physic at Higher. Did you mean physics?",
    ),
    ("subject,level,\nphysics,higher,3\n", "line 2: it has more cells than the header"),
    ('subject,level\n"physics,higher\n', "line 2: unexpected end of data"),
    ('subject,level\n"physics,higher\n', "Look for an unmatched quotation mark."),
    ("subject,level\n" + "\n" * 1_000_000, "courses.csv is longer than 1,000,000 characters."),
]


@pytest.mark.usefixtures("out", "offline")
def test_courses_reads_what_spreadsheets_write_and_refuses_what_is_no_table(cli: Cli, tmp_path: Path) -> None:
    for text, wanted in NO_TABLES:
        said = cli("courses", write(tmp_path, text))
        assert (said.code, wanted in said.err) == (2, True), said.err
    path = tmp_path / "courses.csv"
    path.write_bytes(b"\xef\xbb\xbfsubject;level;lessons\r\nphysics;Higher;1\r\n;;\r\n")
    said = cli("courses", str(path), "--dry-run")
    assert said.code == 0, said.err
    assert "1 course of courses.csv" in said.out
    path.write_bytes("subject,level\nphysique appliquée,higher\n".encode("latin-1"))
    assert "is not UTF-8" in cli("courses", str(path)).err
    assert "cannot be read" in cli("courses", str(tmp_path / "none.csv")).err


@pytest.mark.usefixtures("out")
def test_courses_dry_run_says_what_each_line_would_cost_and_makes_nothing(
    cli: Cli, root: Path, server: BillingServer, tmp_path: Path
) -> None:
    said = cli("courses", write(tmp_path, TWO), "--dry-run", "--json")
    assert said.code == 0
    assert [plan["line"] for plan in said.json()] == [2, 3]
    assert all(plan["expected_usd"] > 0 for plan in said.json())
    assert server.bill.requests == 0
    server.free_fault = (401, "authentication_error", "invalid x-api-key")
    said = cli("courses", write(tmp_path, TWO))
    assert (said.code, "1 not started" in said.out) == (4, True)
    assert not root.exists()


@pytest.mark.usefixtures("out", "offline")
def test_courses_plans_no_line_that_is_a_course_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[str] = []
    real = plan

    def counted(asked: Any, execution: Any) -> Any:
        planned.append(asked.subject)
        return real(asked, execution)

    monkeypatch.setattr(many, "plan", counted)
    said = cli("courses", write(tmp_path, "subject,level\n" + "physics,higher\nPhysics,HIGHER\n" * 150), "--dry-run")
    assert said.code == 2
    assert "line 52: duplicate of line 2" in said.err
    assert "line 53: this line and those below it were not looked at" in said.err
    assert planned == ["physics"]


@pytest.mark.usefixtures("out")
def test_courses_go_on_past_one_that_fails_and_exit_with_its_code(
    cli: Cli, server: BillingServer, tmp_path: Path
) -> None:
    # The first course may spend next to nothing, so it stops at its own ceiling; the second has another one.
    file = write(tmp_path, "subject,level,lessons,max_cost_usd\nmathematics,national_5,1,0.01\nphysics,higher,1,\n")
    said = cli("courses", file)
    assert said.code == 5
    assert "Line 2, National 5 Mathematics: Error:" in said.err
    assert "1 of 2 courses completed." in said.out
    assert "The same command again" in said.err
    (spent,) = [row for row in cli("courses", file, "--json").json() if row["type"] == "courses"]
    assert (spent["completed"], spent["exit_code"], spent["spent_now_usd"]) == (1, 5, 0)


@pytest.mark.usefixtures("out")
def test_courses_stop_as_a_whole_at_the_days_limit(cli: Cli, server: BillingServer, tmp_path: Path) -> None:
    file = write(tmp_path, TWO)
    said = cli("courses", file, "--daily-budget-usd", "0.35")
    assert said.code == 5
    assert "the day's limit of $0.35" in said.err
    assert "1 not started" in said.out
    assert len(cli("list", "--json").json()) == 1
    assert server.bill.usd <= Decimal("0.35")
    again = cli("courses", file, "--daily-budget-usd", "50")
    assert again.code == 0, again.err
    assert int(server.bill.to_json()["repeated"]) == 0


def process(file: str, folder: Path, server: BillingServer, *more: str) -> subprocess.Popen[str]:
    """Start the command for itself."""
    env = {**os.environ, "ANTHROPIC_API_KEY": "sk-ant-of-nobody", "ANTHROPIC_BASE_URL": server.url}
    command = [sys.executable, "-m", "pipeline", "courses", file, "--json", "--store", f"files:{folder / 'runs'}",
               "--out", str(folder / "site"), *more]  # fmt: skip
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def iter_until(started: subprocess.Popen[str], kind: str, *, times: int) -> Iterator[dict[str, Any]]:
    """Lines of a process up to the one that says so for that many times."""
    assert started.stdout is not None
    for line in started.stdout:
        row = json.loads(line)
        yield row
        times -= row["type"] == kind
        if not times:
            return
    raise AssertionError("it ended before")


def test_courses_killed_in_the_middle_go_on_and_pay_nothing_twice(tmp_path: Path) -> None:
    file = write(tmp_path, SHORT)
    with BillingServer(plan=Plan(), responder=answer, latency=0.02) as server:
        with process(file, tmp_path, server, "--concurrency", "1") as first:
            begun = list(iter_until(first, "task_completed", times=2))
            os.kill(first.pid, signal.SIGKILL)
        assert begun[0]["type"] == "course"
        with process(file, tmp_path, server, "--concurrency", "1") as second:
            said, errors = second.communicate()
        assert second.returncode == 0, errors
        rows = [json.loads(line) for line in said.splitlines()]
        assert rows[-1]["completed"] == 2
        assert [row["line"] for row in rows if row["type"] == "result"] == [2, 3]
        # At most the one call that was in flight.
        assert int(server.bill.to_json()["repeated"]) <= 1
        assert len([path for path in (tmp_path / "runs").iterdir() if path.name[0].isdigit()]) == 2


def test_courses_interrupted_begin_no_other(tmp_path: Path) -> None:
    with BillingServer(responder=answer, latency=0.02) as server:
        with process(write(tmp_path, SHORT), tmp_path, server) as started:
            list(iter_until(started, "call_started", times=1))
            started.send_signal(signal.SIGINT)
            rows = [json.loads(line) for line in started.communicate(timeout=300)[0].splitlines()]
        assert started.returncode == 130
        assert (rows[-1]["begun"], rows[-1]["completed"], rows[-1]["exit_code"]) == (1, 0, 130)


@pytest.mark.usefixtures("offline", "out")
def test_course_that_another_process_completes_meanwhile_is_said_to_be_complete(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.app import course

    file = write(tmp_path, "subject,level,lessons\nmathematics,national_5,2\n")
    assert cli("courses", file, "--until", "sow").code == 0
    prepared = course._set_up

    def overtaken(*arguments: object, **how: object) -> object:
        """Between the look at the run and its opening the other one is faster."""
        monkeypatch.setattr(course, "_set_up", prepared)
        assert cli("lessons", "--resume", "latest").code == 0
        return prepared(*arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(course, "_set_up", overtaken)
    said = cli("courses", file)
    assert said.code == 0
    assert "already completed   2/2" in said.out
