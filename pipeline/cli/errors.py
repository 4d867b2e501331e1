"""What a person reads when something did not work: three lines and an exit code, never a traceback."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import click

from pipeline import errors
from pipeline.cli.commands import COMMANDS
from pipeline.cli.text import PROGRAM, one_line, warn
from pipeline.errors import PipelineError, RunInterrupted, WaitingForBatch, WaitingForHuman
from pipeline.records.redaction import printable, without_secrets

#: Exit code of each error class by name, as recorded in a run.
EXIT_CODES: Mapping[str, int] = {
    name: cls.exit_code
    for name, cls in vars(errors).items()
    if isinstance(cls, type) and issubclass(cls, (PipelineError, RunInterrupted))
}

#: Before a command that a hint names without the program; lower layers do not know how it is called.
_COMMAND = re.compile(rf"`(?=(?:{'|'.join(COMMANDS)})(?:`| [^`]+`))")
#: What a line that says why a run stands begins with, where that is no error, by class.
_WORDS: Mapping[str, str] = {
    WaitingForBatch.__name__: "Waiting", WaitingForHuman.__name__: "Waiting", RunInterrupted.__name__: "Stopped",
}  # fmt: skip


def word_for(error: Any, detail: str | None = None) -> str:
    """Waiting (a batch, a person), Stopped (by a signal), Note (as asked), or Error.

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


def three_lines(what: str, saved: str = "", command: str = "", *, word: str = "Error") -> list[str]:
    """What happened · what is saved and spent · the command to go on; lines without content are left out."""
    lines = [f"{word}: {one_line(what)}"]
    if saved:
        lines.append(f"Saved: {one_line(saved)}")
    if command:
        lines.append(hint_line(command))
    return lines


def hint_line(hint: str) -> str:
    """The way on: a command that can be typed as it stands, or an advice."""
    command = hint.startswith(PROGRAM) and not hint.endswith(".") and "…" not in hint
    return f"{'Go on' if command else 'Hint'}: {one_line(_COMMAND.sub(rf'`{PROGRAM} ', hint))}"


def exit_code_of(error: Any) -> int:
    """The exit code of an error: an exception, or {"type": …} as recorded; 1 if unknown."""
    if isinstance(error, Mapping):
        return EXIT_CODES.get(str(error.get("type", "")), 1)
    return int(getattr(error, "exit_code", 1))


def report(error: BaseException) -> int:
    """Print what stopped a command, on stderr; the exit code."""
    if isinstance(error, click.ClickException):
        vars(error)["message"] = printable(without_secrets(error.message))
        error.show()
        return error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        warn("Stopped.")
        return RunInterrupted.exit_code
    if isinstance(error, PipelineError | RunInterrupted):
        # Most errors are one line; those of a file with several faults have a line for each.
        word = f"{word_for(error)}: "
        warn(
            word
            + f"\n{' ' * len(word)}".join(
                one_line(line) for line in without_secrets(error.message).splitlines() or [""]
            )
        )
        if error.hint:
            warn(hint_line(without_secrets(error.hint)))
        return error.exit_code
    if isinstance(error, OSError) and error.filename is not None:
        warn(f"Error: {error.filename}: {error.strerror or error}")
        return 1
    said = one_line(without_secrets(str(error)), 200)
    warn(f"Error: unexpected {type(error).__name__}: {said}; details: {keep_details(error)}")
    return 1


def keep_details(error: BaseException) -> str:
    """Write the traceback into a file of the user's own; its path, or why there is none."""
    import tempfile
    import traceback

    try:
        handle, path = tempfile.mkstemp(prefix="pipeline-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(without_secrets("".join(traceback.format_exception(error))))
    except OSError as problem:
        return f"could not be written ({problem.strerror})"
    return path
