"""The guide to exports and the help of the command name every format that there is."""

from __future__ import annotations

from pipeline.cli.export import export
from pipeline.export.base import FORMATS, PUPILS
from tests.documents import codes, table


def test_docs_and_help_name_every_format_and_whom_it_is_for() -> None:
    rows = table("exports.md", "format", "for what")
    shown = {codes(row[0])[0]: row[3].partition(";")[0] for row in rows}
    assert shown == {name: "pupils" if each.audience == PUPILS else "teacher" for name, each in FORMATS.items()}
    help_of = {each.name: str(getattr(each, "help", "")) for each in export.params}
    assert help_of["formats"].startswith(", ".join(FORMATS))
