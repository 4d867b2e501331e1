"""Rows as CSV that a spreadsheet opens without running any of it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TextIO

from pipeline.records.redaction import printable

#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as `write_csv` writes them."""
    out = io.StringIO()
    write_csv(out, rows)
    return out.getvalue()


def write_csv(out: TextIO, rows: Iterable[Sequence[object]]) -> None:
    """Write rows as CSV, the head first; no cell begins a formula or holds a control character."""
    csv.writer(out, lineterminator="\n").writerows([_no_formula(str(cell)) for cell in row] for row in rows)


def _no_formula(cell: str) -> str:
    cell = printable(cell)
    is_number = cell.lstrip("+-").replace(".", "", 1).isdigit()
    return "'" + cell if cell.startswith(_FORMULA) and not is_number else cell
