"""The guide to errors names every class with its exit code, and every exit code."""

from __future__ import annotations

import re

import pipeline
from pipeline import errors
from pipeline.cli.main import EPILOG
from pipeline.errors import Pause, PipelineError, RunInterrupted
from tests import messages
from tests.documents import codes, table

ROWS = {codes(row[0])[0]: row[1] for row in table("errors.md", "Class", "Exit")}
CLASSES = {
    name: cls
    for name, cls in vars(errors).items()
    if isinstance(cls, type) and issubclass(cls, (PipelineError, Pause, RunInterrupted))
}


def test_docs_name_every_error_class_with_its_exit_code_and_the_package_has_it() -> None:
    assert {name: str(getattr(cls, "exit_code", "–")) for name, cls in CLASSES.items()} == ROWS
    assert [name for name, cls in CLASSES.items() if getattr(pipeline, name) is not cls] == []


def test_docs_and_help_name_every_exit_code() -> None:
    documented = {int(row[0]) for row in table("errors.md", "Code", "Meaning")}
    shown = {int(code) for code in re.findall(r"\b(\d+) [a-z]", EPILOG.partition("Exit codes:")[2])}
    assert documented == shown == {0, *(int(code) for code in ROWS.values() if code.isdigit())}


def test_docs_and_snapshot_list_every_code_and_message() -> None:
    assert messages.DOCS.read_text(encoding="utf-8") == messages.documented(), "run `python -m tests.messages`"
    assert messages.SNAPSHOT.read_text(encoding="utf-8") == messages.snapshot(), "run `python -m tests.messages`"
