"""What a person reads when something did not work: three lines and an exit code, never a traceback."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

import click

from pipeline.app.words import one_line
from pipeline.cli.text import warn
from pipeline.errors import PipelineError, RunInterrupted, WaitingForBatch, WaitingForHuman

#: How the line begins that says why a run stopped, where that is no error, by class.
_WORDS: Mapping[str, str] = {
    WaitingForBatch.__name__: "Waiting", WaitingForHuman.__name__: "Waiting", RunInterrupted.__name__: "Stopped",
}  # fmt: skip


def word_for(error: Any, detail: str | None = None) -> str:
    """Return Waiting (for a batch, a person), Stopped (by a signal), Note (as requested), or Error.

    Args:
        error: An exception, or {"type": …} as recorded.
        detail: The run's status_detail.
    """
    if detail == "stopped_as_asked":
        return "Note"
    kind = str(error.get("type", "")) if isinstance(error, Mapping) else type(error).__name__
    if detail == "interrupted" and kind in ("", "NoneType", PipelineError.__name__):
        return "Stopped"
    return _WORDS.get(kind, "Error")


def error_lines(error: PipelineError | RunInterrupted) -> list[str]:
    """Return an error with its hint; one of a file with several faults has a line for each."""
    from pipeline.records.redaction import without_secrets

    word = f"{word_for(error)}: "
    first, *others = [one_line(line) for line in without_secrets(error.message).splitlines() or [""]]
    lines = [f"{word}{first}", *(" " * len(word) + line for line in others)]
    command = getattr(error, "command", "")
    if command:
        lines.append(f"Resume: {one_line(without_secrets(command))}")
    elif error.hint:
        lines.append(f"Hint: {one_line(without_secrets(error.hint))}")
    return lines


def error_json(error: Any) -> Any:
    """Return {"type", "message", "code", "hint"} of an exception; a recorded error as it is."""
    if error is None or isinstance(error, Mapping):
        return error
    words = {name: str(getattr(error, name, "")) for name in ("code", "hint")}
    return {"type": type(error).__name__, "message": one_line(error), **words}


def report(error: BaseException) -> int:
    """Print what stopped a command, on stderr; return the exit code."""
    from pipeline.records.redaction import printable, without_secrets

    if isinstance(error, click.ClickException):
        vars(error)["message"] = printable(without_secrets(error.message))
        said = io.StringIO()
        error.show(said)
        warn(said.getvalue().rstrip("\n"))
        return error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        warn("Stopped.")
        return RunInterrupted.exit_code
    if isinstance(error, PipelineError | RunInterrupted):
        for line in error_lines(error):
            warn(line)
        return error.exit_code
    if isinstance(error, OSError) and error.filename is not None:
        warn(f"Error: {error.filename}: {error.strerror or error}")
        return 1
    what = one_line(without_secrets(str(error)), 200)
    warn(f"Error: unexpected {type(error).__name__}: {what}; details: {_details_file(error)}")
    return 1


def _details_file(error: BaseException) -> str:
    """Write the traceback into a file of the user's own; return its path, or why there is none."""
    import tempfile
    import traceback

    from pipeline.records.redaction import without_secrets

    try:
        handle, path = tempfile.mkstemp(prefix="pipeline-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(without_secrets("".join(traceback.format_exception(error))))
    except OSError as problem:
        return f"could not be written ({problem.strerror})"
    return path
