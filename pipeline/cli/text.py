"""How things are written on a screen: glyphs, money, times, tables, JSON lines. Knows no command."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

from pipeline import environment
from pipeline.cli.fitting import blocks, fitted
from pipeline.records.charge import dollars
from pipeline.records.redaction import printable

#: The version of every object that `--json` writes; raised when a key changes its meaning.
JSON_VERSION = 1
#: How commands name the program; where they are printed it becomes what can be typed there.
PROGRAM = "./pipeline.sh"
#: Widths of the lines in a heading and under a table's head.
HEADING, RULE = 75, 73

_ASCII = str.maketrans(
    {
        "═": "=", "─": "-", "⏳": "...", "✓": "+", "✗": "x", "·": "-", "–": "-", "—": "-", "…": "...",
        "→": "->", "≤": "<=", "≥": ">=", "×": "x", "“": '"', "”": '"', "‘": "'", "’": "'", "£": "GBP ",
    }
)  # fmt: skip
_HEX = frozenset("0123456789abcdef")
_RULE_LINE = re.compile(r"^[═─]+$", re.MULTILINE)


def plain_ascii(stream: TextIO) -> bool:
    """The stream, or the locale the user chose, knows no more than ASCII."""
    if os.environ.get("LC_ALL", "") in ("C", "POSIX"):
        return True
    try:
        "═⏳".encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return True
    return False


def for_stream(text: str, *, ascii_only: bool) -> str:
    """The text as a terminal may get it: no control characters (model text is no command), ASCII where asked."""
    text = printable(text)
    if ascii_only:
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return text.encode("utf-8", "replace").decode("utf-8")


def program() -> str:
    """How the program is called from the folder that the caller stands in."""
    file = environment.home() / "pipeline.sh"
    here = file.parent == Path(os.path.realpath("."))
    return PROGRAM if here or not file.is_file() else shlex.quote(str(file))


def write(stream: TextIO, text: str) -> None:
    """Write a line; what the stream cannot show becomes ASCII, never an error. Commands in it can be typed here."""
    if PROGRAM in text:
        text = text.replace(PROGRAM, program())
    stream.write(for_stream(text, ascii_only=plain_ascii(stream)) + "\n")


def columns() -> int | None:
    """How wide tables may be: as the terminal, or as COLUMNS says where it is set (`watch` does that); None: any."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return None


def say(text: str = "") -> None:
    """A line on stdout; no rule in it is wider than the screen."""
    width = columns()
    write(sys.stdout, text if width is None else ruled(text, width))


def ruled(text: str, columns: int) -> str:
    """The text with its rules cut to so many columns, so that a narrow terminal does not break them."""
    return _RULE_LINE.sub(lambda rule: rule[0][:columns], text)


def warn(text: str) -> None:
    """A line on stderr; lost without complaint if nobody reads it."""
    try:
        write(sys.stderr, text)
        sys.stderr.flush()
    except OSError:
        pass


def say_json(data: Mapping[str, Any]) -> None:
    """One object on one line of stdout, with the format version first."""
    sys.stdout.write(json_line(data) + "\n")


def json_line(data: Mapping[str, Any]) -> str:
    """An object as one line of ASCII JSON; money becomes a number."""
    return json.dumps({"v": JSON_VERSION, **data}, default=_plain, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


def heading(*lines: str) -> str:
    """Lines between two double rules."""
    rule = "═" * HEADING
    return "\n".join([rule, *lines, rule])


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> str:
    """A table with a rule under its head, as wide as the screen at most; where it cannot be, a block of lines a row.

    Args:
        right: Columns that are right-aligned.
    """
    width = columns()
    fit = fitted(head, rows, width)
    if fit is None:
        assert width is not None
        return "\n".join(blocks(head, rows, width))
    text = _aligned(fit.head + fit.rows, " " * fit.gap, [name in right for name in head])
    lines = [line.rstrip() for line in text.splitlines()]
    rule = max(RULE if width is None else min(RULE, width), *map(len, lines))
    return "\n".join([*lines[: len(fit.head)], "─" * rule, *lines[len(fit.head) :]])


def _aligned(cells: Sequence[Sequence[str]], gap: str, right: Sequence[bool]) -> str:
    from tabulate import DataRow, TableFormat, tabulate

    row = DataRow("", gap, "")
    look = TableFormat(None, None, None, None, row, row, 0, None)
    align = ["right" if to_the_right else "left" for to_the_right in right]
    return tabulate(cells, tablefmt=look, disable_numparse=True, colalign=align)


def money(usd: Any) -> str:
    """Return dollars as $1.85, "unknown" for None; nothing that was paid reads as nothing."""
    return "unknown" if usd is None else dollars(Decimal(str(usd)))


def money_between(low: Any, high: Any) -> str:
    """What was spent, both ends where they differ; `high` None: no upper bound is known."""
    if high is None:
        return f"at least {money(low)}, no upper bound known"
    return money(low) if Decimal(str(high)) == Decimal(str(low)) else f"{money(low)} to at most {money(high)}"


def with_unpriced(text: str, unpriced: int) -> str:
    """Return an amount with the number of calls whose price is not known, so that it does not read as all."""
    return f"{text} + {unpriced:,} unpriced" if unpriced else text


def duration(seconds: float | None) -> str:
    """Seconds for people: 3 s, 4 min 47 s, 1 h 12 min."""
    if seconds is None:
        return "-"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def when(moment: str | datetime | None) -> str:
    """A recorded time as `2026-01-09 14:30:22` (UTC)."""
    if not moment:
        return "-"
    text = moment.isoformat() if isinstance(moment, datetime) else moment
    return text[:19].replace("T", " ")


def count(number: int, noun: str) -> str:
    """`1 lesson`, `2 lessons`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def missing_records(first: int, last: int, reason: str) -> str:
    """Say which records are missing; where none is, only what a gap was recorded for."""
    if last < first:
        return reason
    return f"{f'record {first} is' if first == last else f'records {first} to {last} are'} missing: {reason}"


def size(length: int) -> str:
    """Return a number of bytes for people: 812 bytes, 96 KB, 1.4 MB."""
    if length < 1000:
        return count(length, "byte")
    return f"{length / 1000:,.0f} KB" if length < 1_000_000 else f"{length / 1_000_000:,.1f} MB"


def short_hash(value: Any) -> str:
    """A text as it is, any other value as JSON; a content hash by its beginning."""
    text = value if isinstance(value, str) else json.dumps(value, default=_plain, ensure_ascii=False)
    return text[:12] + "…" if len(text) == 64 and set(text) <= _HEX else text


def one_line(text: object, limit: int = 500) -> str:
    """Text on one line, cut with an ellipsis."""
    flat = " ".join(str(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
