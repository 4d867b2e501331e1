"""What a person reads when a command does not work, and the exit code it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from pipeline import errors as errors_module
from pipeline.cli import errors
from pipeline.errors import (
    BatchLost,
    BudgetExceeded,
    PipelineError,
    RunInterrupted,
    RunNotFound,
    WaitingForBatch,
    WaitingForHuman,
    WriteFailed,
)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ConfigError", 2), ("CatalogueError", 2), ("CredentialMissing", 2), ("GraphError", 2), ("RunNotFound", 3),
        ("RunLocked", 3), ("CheckpointCorrupt", 3), ("ModelUnavailable", 4), ("SpendLimit", 4), ("BudgetExceeded", 5),
        ("StepFailed", 6), ("TaskRejected", 6), ("NeedsConfirmation", 6), ("PublishError", 7), ("WaitingForHuman", 8),
        ("WaitingForBatch", 75), ("RunInterrupted", 130),
    ],
)  # fmt: skip
def test_errors_exit_codes_are_those_of_the_documentation(name: str, code: int) -> None:
    assert getattr(errors_module, name)("x").exit_code == code


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
        (PipelineError("x"), None, "Error"),
    ],
)
def test_errors_are_not_what_was_asked_for(error: Any, detail: str | None, word: str) -> None:
    assert errors.word_for(error, detail) == word


def test_errors_are_three_lines() -> None:
    assert errors.three_lines("a\nb", "run 7; spent $1.00", "./pipeline.sh lessons --resume 7") == [
        "Error: a b",
        "Saved: run 7; spent $1.00",
        "Resume: ./pipeline.sh lessons --resume 7",
    ]


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (
            RunNotFound("No run.", hint="`./pipeline.sh list` shows them."),
            3,
            "Error: No run.\nHint: `./pipeline.sh list` shows them.\n",
        ),
        (BudgetExceeded(command="./pipeline.sh lessons --resume 7"), 5, "Resume: ./pipeline.sh lessons --resume 7\n"),
        (RunInterrupted(), 130, "Stopped: Interrupted.\n"),
        (WaitingForHuman("Go?"), 8, "Waiting: Go?\n"),
        (PipelineError("x"), 1, "Error: x\n"),
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
    assert out == ""
    assert err.endswith(shown)
    assert "Traceback" not in err


def test_errors_nobody_expected_are_one_line_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ZeroDivisionError) as caught:
        raise ZeroDivisionError("by nought")
    assert errors.report(caught.value) == 1
    (file,) = tmp_path.iterdir()
    err = capsys.readouterr().err
    assert err == f"Error: unexpected ZeroDivisionError: by nought; details: {file}\n"
    assert "Traceback" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_errors_keep_the_user_of_a_database_since_the_command_needs_it(capsys: pytest.CaptureFixture[str]) -> None:
    hint = "./pipeline.sh list --store postgresql://me@host:5432/runs"
    errors.report(PipelineError("There is no store at postgres://me:TOPSECRET@host/runs.", command=hint))
    assert capsys.readouterr().err == f"Error: There is no store at postgres://me@host/runs.\nResume: {hint}\n"


@pytest.mark.parametrize(
    "error",
    [
        PipelineError(
            "postgresql://:TOPSECRET@host/db", hint="postgresql://me:a@TOPSECRET@host; https://TOPSECRET@host"
        ),
        PipelineError(
            "The server said: host=db password='a TOPSECRET' failed", hint="postgresql://me:TOPSECRET@host/db"
        ),
        click.UsageError('{"password": "TOPSECRET"} is no option'),
        ValueError("PGPASSWORD=TOPSECRET; ?token=TOPSECRET&x=1"),
    ],
)
def test_errors_repeat_no_secret_whoever_worded_them(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    errors.report(error)
    kept = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "TOPSECRET" not in capsys.readouterr().err + kept
