"""What a person reads at the end of a command, well or badly, and the exit code it leaves."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest

from pipeline.app.start import RunReport
from pipeline.cli import errors, results
from pipeline.cli.run import read_param
from pipeline.engine.result import RunResult
from pipeline.errors import (
    BatchLost,
    BudgetExceeded,
    PipelineError,
    RunInterrupted,
    RunNotFound,
    StepFailed,
    WaitingForBatch,
    WaitingForHuman,
    WriteFailed,
)
from pipeline.records.run import Spend

COMMAND = "./pipeline.sh lessons --resume 20260109_143022"


@pytest.mark.parametrize(
    ("error", "detail", "word"),
    [
        (WaitingForBatch(), "waiting_for_batch", "Waiting"),
        ({"type": "WaitingForHuman", "message": "Go?"}, "waiting_for_human", "Waiting"),
        (BatchLost(), "waiting_for_batch", "Error"),
        (PipelineError("Interrupted (INT)."), "interrupted", "Stopped"),
        (WriteFailed(), "interrupted", "Error"),
        ({"type": "PipelineError"}, "stopped_as_asked", "Note"),
        (BudgetExceeded(), "paused_budget", "Error"),
    ],
)
def test_errors_are_not_what_was_asked_for(error: Any, detail: str | None, word: str) -> None:
    assert errors.word_for(error, detail) == word


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (RunNotFound("No\nrun.", hint="`list` shows them."), 3, "Error: No\n       run.\nHint: `list` shows them.\n"),
        (BudgetExceeded(command=COMMAND), 5, f"Resume: {COMMAND}\n"),
        (RunInterrupted(), 130, "Stopped: Interrupted.\n"),
        (WaitingForHuman("Go?"), 8, "Waiting: Go?\n"),
        (click.Abort(), 130, "Stopped.\n"),
        (PermissionError(13, "Permission denied", "/x/y"), 1, "Error: /x/y: Permission denied\n"),
        (click.UsageError("no such thing"), 2, "Error: no such thing\n"),
    ],
)
def test_errors_are_told_on_stderr_without_a_traceback(
    error: BaseException, code: int, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert errors.report(error) == code
    out, err = capsys.readouterr()
    assert (out, err.endswith(shown), "Traceback" in err) == ("", True, False)


def test_errors_nobody_expected_are_one_line_and_a_file_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError) as caught:
        raise ZeroDivisionError("by nought")
    assert errors.report(caught.value) == 1
    (file,) = tmp_path.iterdir()
    assert capsys.readouterr().err == f"Error: unexpected ZeroDivisionError: by nought; details: {file}\n"
    assert "Traceback" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "error",
    [
        PipelineError("postgresql://:TOPSECRET@host/db", hint="postgresql://me:a@TOPSECRET@host; https://TOPSECRET@host"),
        PipelineError("The server: host=db password='a TOPSECRET' failed", command="x postgresql://me:TOPSECRET@host/db"),
        click.UsageError('{"password": "TOPSECRET"} is no option'),
        ValueError("PGPASSWORD=TOPSECRET; ?token=TOPSECRET&x=1"),
    ],
)  # fmt: skip
def test_errors_repeat_no_secret_whoever_worded_them(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    errors.report(error)
    kept = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "TOPSECRET" not in capsys.readouterr().err + kept


def test_errors_keep_the_user_of_a_database_since_the_command_needs_it(capsys: pytest.CaptureFixture[str]) -> None:
    command = "./pipeline.sh list --store postgresql://me@host:5432/runs"
    errors.report(PipelineError("No store.", command=command))
    assert capsys.readouterr().err == f"Error: No store.\nResume: {command}\n"


# --- how a start ends -----------------------------------------------------------------------------


def ended(
    status: str = "completed", detail: str | None = None, error: PipelineError | None = None, published: str = ""
) -> RunReport:
    spent = Spend(usd=Decimal("1.85"), high=Decimal("0.12"), tokens={"input": 23654})
    result = RunResult("20260109_143022", status, detail, error, spent=spent, seconds=287.0)
    return RunReport(result, "" if status == "completed" else COMMAND, published)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (ended(), 0),
        (ended("in_progress", "stopped_as_asked", PipelineError("as asked")), 0),
        (ended("failed", None, StepFailed("x")), 6),
        (ended("in_progress", "paused_budget", BudgetExceeded()), 5),
        (ended("in_progress", "interrupted", PipelineError("Interrupted (INT).")), 130),
        (ended("in_progress", "interrupted"), 130),
        (ended("failed"), 1),
    ],
)
def test_end_leaves_the_code_of_what_happened(end: RunReport, code: int) -> None:
    assert end.result.exit_code == results.report_json(end)["exit_code"] == code


def test_end_says_where_the_course_is_what_it_took_and_both_ends_of_the_spend() -> None:
    assert results.success_lines(ended(published="/site/course_c84775")) == [
        "Published: /site/course_c84775",
        "Time: 4 min 47 s · Tokens: 23,654 · Cost: $1.85 to at most $1.97",
        "Run: 20260109_143022",
    ]
    assert results.failure_lines(ended("failed", None, StepFailed("lessons:\n2 failed"))) == [
        "Error: lessons: 2 failed",
        "Saved: run 20260109_143022; spent $1.85 to at most $1.97",
        f"Resume: {COMMAND}",
    ]


def test_end_with_the_store_gone_says_what_has_to_come_back_first() -> None:
    first = "Restore the file from a copy"
    gone = WriteFailed("runs.db is gone.", hint="Bring it back.", gone=first, emergency="/kept/file")
    end = ended("in_progress", "store", gone)
    assert results.failure_lines(end) == [
        "Error: runs.db is gone.",
        "Spent: $1.85 to at most $1.97 by run 20260109_143022",
        "Kept: records that the store did not accept, in /kept/file; resuming on this machine adds them",
        f"Hint: Restore the file from a copy, then: {COMMAND}",
    ]
    assert results.report_json(end)["resume_command"] is None
    assert results.report_json(ended("in_progress", "store", WriteFailed("Full.")))["resume_command"] == COMMAND


def test_end_gives_advice_that_the_resume_command_lacks() -> None:
    told = ended("in_progress", "paused_budget", BudgetExceeded("Too much.", hint="Resume with a higher limit."))
    assert results.failure_lines(told)[0] == "Error: Too much. Resume with a higher limit."
    command = ended("failed", None, StepFailed("No.", command=COMMAND))
    assert results.failure_lines(command)[0] == "Error: No."


def test_end_in_json_has_the_same_facts() -> None:
    data = results.report_json(ended("failed", None, StepFailed("no", hint="try")))
    assert data["error"] == {"type": "StepFailed", "code": "step_failed", "message": "no", "hint": "try"}
    assert (data["cost_usd"], data["cost_usd_at_most"]) == (Decimal("1.85"), Decimal("1.97"))


def test_parameter_that_is_nested_without_end_is_a_text() -> None:
    assert read_param("towns=" + "[" * 100_000) == ("towns", "[" * 100_000)
