"""Write to the screen: glyphs, money, times, tables, JSON lines. Knows no command.

What is only needed for some output is imported there: `list` and `--help` start fast.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TextIO

from pipeline import environment
from pipeline.app.words import plain

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
#: What a write to a device, a full disk or a limited file raises.
_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF, errno.ENXIO})
_RULE_LINE = re.compile(r"^[═─]+$", re.MULTILINE)


def plain_ascii(stream: TextIO) -> bool:
    """Return whether the stream, or the locale the user chose, has nothing but ASCII."""
    if os.environ.get("LC_ALL", "") in ("C", "POSIX"):
        return True
    try:
        "═⏳".encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return True
    return False


def for_stream(text: str, *, ascii_only: bool) -> str:
    """Return a text without control characters (a model's text is no command), and in ASCII where asked."""
    own = text.translate(_ASCII)
    if not own.isascii() or not own.replace("\n", "").isprintable():
        # Not of our own glyphs alone.
        from pipeline.records.redaction import printable

        text = printable(text)
    if ascii_only:
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return text.encode("utf-8", "replace").decode("utf-8")


def program() -> str:
    """Return how the program is called from the current folder."""
    file = environment.home() / "pipeline.sh"
    if file.parent == Path(os.path.realpath(".")) or not file.is_file():
        return PROGRAM
    import shlex

    return shlex.quote(str(file))


def write(stream: TextIO, text: str) -> None:
    """Write a line; what the stream cannot show becomes ASCII, never an error. Commands in it can be typed here."""
    if "pipeline.sh" in text:
        text = environment.typed(text).replace(PROGRAM, program())
    stream.write(for_stream(text, ascii_only=plain_ascii(stream)) + "\n")


def columns() -> int | None:
    """Return how wide tables may be: the terminal, or COLUMNS where it is set (`watch` does that); None: any."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdigit():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def say(text: str = "") -> None:
    """Write a line on stdout; no rule in it is wider than the screen."""
    width = columns()
    write(sys.stdout, text if width is None else ruled(text, width))


def ruled(text: str, columns: int) -> str:
    """Return the text with its rules cut to so many columns, so that a narrow terminal does not break them."""
    return _RULE_LINE.sub(lambda rule: rule[0][:columns], text)


def warn(text: str) -> None:
    """Write a line on stderr; lost without complaint if nothing reads it."""
    try:
        write(sys.stderr, text)
        sys.stderr.flush()
    except OSError:
        pass


def say_json(data: Mapping[str, Any]) -> None:
    """Write one object on one line of stdout, with the format version first."""
    sys.stdout.write(json_line(data) + "\n")


def tell(objects: Iterable[Mapping[str, Any]], lines: Iterable[str], *, as_json: bool) -> None:
    """Write an answer as objects for programs or as lines for people; only what is written is asked for."""
    if as_json:
        for each in objects:
            say_json(each)
    else:
        for line in lines:
            say(line)


def json_line(data: Mapping[str, Any]) -> str:
    """Return an object as one line of ASCII JSON; money becomes a number."""
    import json

    text = json.dumps({"v": JSON_VERSION, **data}, default=plain, separators=(",", ":"), allow_nan=False)
    return environment.typed(text)


def quietly(write: Callable[[], None]) -> None:
    """Write to stdout; where it takes nothing more, the exit code is still that of the work."""
    try:
        write()
        sys.stdout.flush()
    except OSError as error:
        stdout_refused(error)


def is_of_stdout(error: OSError) -> bool:
    """Return whether stdout raised this: what files refuse is translated where they are written, or names them."""
    return isinstance(error, BrokenPipeError) or (error.filename is None and error.errno in _REFUSALS)


def stdout_refused(error: OSError) -> int:
    """Stop writing to stdout, and say so unless its reader left on purpose.

    Returns the exit code of a command that had nothing else to do than to write.
    """
    # What is still buffered goes nowhere, without a complaint at exit.
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    finally:
        os.close(devnull)
    if isinstance(error, BrokenPipeError):
        return 0
    warn(f"Error: stdout cannot be written: {error.strerror or error}.")
    return 1


def heading(*lines: str) -> str:
    """Return lines between two double rules."""
    rule = "═" * HEADING
    return "\n".join([rule, *lines, rule])


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> str:
    """Return a table with a rule under its head, as wide as the screen at most.

    Where there is too little room columns move together, then words go below each other, then each row becomes a
    block of lines. No word (an id, a sum) is ever cut.

    Args:
        right: Columns that are right-aligned.
    """
    from tabulate import DataRow, TableFormat, tabulate

    width = columns()
    layout = _layout([head, *rows], width)
    if layout is None:
        assert width is not None
        return "\n".join(_blocks(head, rows, width))
    gap, widths = layout
    heads = _wrapped(head, widths)
    cells = heads + [line for row in rows for line in _wrapped(row, widths)]
    spaced = DataRow("", " " * gap, "")
    look = TableFormat(None, None, None, None, spaced, spaced, 0, None)
    align = ["right" if name in right else "left" for name in head]
    shown = tabulate(cells, tablefmt=look, disable_numparse=True, colalign=align)
    lines = [line.rstrip() for line in shown.splitlines()]
    rule = max(RULE if width is None else min(RULE, width), *map(len, lines))
    return "\n".join([*lines[: len(heads)], "─" * rule, *lines[len(heads) :]])


def _layout(cells: Sequence[Sequence[str]], width: int | None) -> tuple[int, list[int]] | None:
    """Return the spaces between columns and the width of each; None: no table fits, as no word is cut."""
    whole = [max(map(len, column)) for column in zip(*cells, strict=True)]
    least = [max(len(word) for cell in column for word in cell.split() or [""]) for column in zip(*cells, strict=True)]
    between = len(whole) - 1
    for gap in (3, 2):
        if width is None or sum(whole) + gap * between <= width:
            return gap, whole
    assert width is not None
    for gap in (2, 1):
        if sum(least) + gap * between <= width:
            widths = list(whole)
            while sum(widths) + gap * between > width:
                # The widest column that may be narrower gives first.
                free = [at for at in range(len(widths)) if widths[at] > least[at]]
                widths[max(free, key=lambda at: widths[at])] -= 1
            return gap, widths
    return None


def _wrapped(row: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Return a row as lines of cells, each cell within its width."""
    import textwrap

    cells = [
        [cell] if len(cell) <= width
        else textwrap.wrap(cell, max(width, 1), break_long_words=False, break_on_hyphens=False)
        for cell, width in zip(row, widths, strict=True)
    ]  # fmt: skip
    return [list(line) for line in zip_longest(*cells, fillvalue="")]


def _blocks(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a block of lines for each row, its fields with their names; empty ones are left out."""
    import textwrap

    found: list[str] = []
    for row in rows:
        first, *others = [f"{name}: {cell}" for name, cell in zip(head, row, strict=True) if cell.strip(" -")]
        found.append(first)
        lines: list[str] = []
        for field in others:
            if lines and len(f"  {lines[-1]} · {field}") <= width:
                lines[-1] += f" · {field}"
            else:
                lines.append(field)
        for line in lines or [""]:
            found += textwrap.wrap(line, width, initial_indent="  ", subsequent_indent="    ",
                                   break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return found
