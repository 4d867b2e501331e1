"""The form an answer is written in: lines for people, objects, or a CSV in which nothing is a formula."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from pipeline.cli.text import say, say_json
from pipeline.records.redaction import printable

#: What a spreadsheet takes for the begin of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Form:
    """What was asked for.

    Raises:
        click.UsageError: Two forms at once.
    """

    as_csv: bool
    as_json: bool

    def __post_init__(self) -> None:
        if self.as_csv and self.as_json:
            raise click.UsageError("--csv and --json cannot both be written.")

    def write(
        self, lines: Iterable[str], objects: Iterable[Mapping[str, Any]], rows: Iterable[Sequence[object]]
    ) -> None:
        """Write an answer; of the three only that in the form asked for is made. The first row is the CSV's head."""
        if self.as_csv:
            csv.writer(sys.stdout, lineterminator="\n").writerows([_plain(str(cell)) for cell in row] for row in rows)
        elif self.as_json:
            for found in objects:
                say_json(found)
        else:
            for text in lines:
                say(text)


def _plain(cell: str) -> str:
    cell = printable(cell)
    return "'" + cell if cell.startswith(_FORMULA) and not _is_number(cell) else cell


def _is_number(cell: str) -> bool:
    return cell.lstrip("+-").replace(".", "", 1).isdigit()
