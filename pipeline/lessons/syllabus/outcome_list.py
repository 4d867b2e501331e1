"""A list of outcomes in a file, as a course file: what was understood, what was not, and the text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import CatalogueError
from pipeline.files import read_regular
from pipeline.frameworks import named_framework
from pipeline.lessons.syllabus.course_file import course_file
from pipeline.lessons.syllabus.table import is_table, read_markdown, read_table
from pipeline.lessons.syllabus.text import read_outcomes
from pipeline.lessons.syllabus.tree import ListItem, SourceTree, groups_of

#: Ends of the names of files that are read.
ENDS = (".csv", ".tsv", ".txt", ".md")
#: A list of outcomes is some kilobytes; more than this (bytes) is another kind of file.
MAX_BYTES = 1_000_000
#: First bytes of files that are no text → what they are, and what helps.
_OTHERS = (
    (b"%PDF", "a PDF", "Copy the outcomes out of it and save them as a .txt file."),
    (b"PK\x03\x04", "a Word, Excel or OpenDocument file", "Save it as CSV or as plain text."),
    (b"\xd0\xcf\x11\xe0", "an old Word or Excel file", "Save it as CSV or as plain text."),
    (b"{\\rtf", "a rich text file", "Save it as plain text."),
)
#: What a file is in that has no mark and is not UTF-8: what Excel and Notepad write in western Europe and America.
_FALLBACK = "cp1252"
_ENCODINGS = "Save it as UTF-8, or name its encoding: --encoding utf-8, utf-16, cp1252, cp1250, cp1251, mac_roman …"
_KEYS = ("code", "framework", "region", "assessment", "marking")


@dataclass(frozen=True)
class OutcomeList:
    """What was understood of a file."""

    #: Groups of outcomes of points.
    groups: Sequence[ListItem]
    #: What was left out, joined or guessed, one sentence each.
    notes: Sequence[str]
    encoding: str
    #: Text of the course file.
    text: str
    #: Keys of it that the list does not say.
    blank: Sequence[str]


def read_list(path: Path, subject: str, level: str, *, title: str = "", encoding: str = "") -> OutcomeList:
    """Return what a file says, as a course of a subject and level.

    Args:
        title: Of the course; "": made from level and subject.
        encoding: Of the file, as Python names it; "": found out.

    Raises:
        CatalogueError: It is no text, or holds no outcomes; or a name that cannot be one.
    """
    end = path.suffix.lower()
    if end not in ENDS:
        raise CatalogueError(
            f"{path}: the name ends in {end or 'nothing'}, wanted {', '.join(ENDS)}.",
            code="not_text",
            hint="Save a table as CSV, a document as plain text; out of a PDF copy the outcomes into a .txt file.",
        )
    text, found = _source(path, encoding)
    reading = _read(text, end)
    groups, notes = groups_of(reading, reading.title or "Learning outcomes")
    if not groups:
        raise CatalogueError(
            f"{path}: no learning outcomes were found.",
            code="no_outcomes",
            hint="Put each on a line of its own, with a bullet or a number before it.",
        )
    written = course_file(subject, level, title, groups, path.name, named_framework(text))
    blank = [key for key in _KEYS if f"\n{key}:" not in written]
    if "framework" not in blank:
        # Where the framework is at home.
        blank.remove("region")
    if reading.title:
        notes.append(f'"{reading.title}" was taken for the title of the list and left out; --title names the course.')
    return OutcomeList(groups, [*reading.notes, *notes], found, written, blank)


def _read(text: str, end: str) -> SourceTree:
    if end in (".csv", ".tsv"):
        return read_table(text, "\t" if end == ".tsv" else "")
    if end == ".md":
        return read_markdown(text)
    if is_table(text):
        return read_table(text)
    return read_outcomes(text)


def _source(path: Path, encoding: str = "") -> tuple[str, str]:
    """Return the text of a file and the encoding it was read in.

    Args:
        encoding: As Python names it; "": by its mark or the zeros it begins with, else UTF-8, else Windows-1252.

    Raises:
        CatalogueError: It cannot be read, is too large, or is no text.
    """
    try:
        raw = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise CatalogueError(f"{path}: cannot be read: {error.strerror}", code="unreadable_file") from None
    if len(raw) > MAX_BYTES:
        raise _no_text(path, f"is larger than {MAX_BYTES:,} bytes", "Keep the outcomes alone.")
    for begin, what, hint in _OTHERS:
        if raw.startswith(begin):
            raise _no_text(path, f"is {what}, not text", hint)
    for name in [encoding] if encoding else [json.detect_encoding(raw), _FALLBACK, "latin-1"]:
        try:
            text = raw.decode(name)
        except LookupError:
            raise _no_text(path, f"cannot be read as {encoding}: there is no such encoding", _ENCODINGS) from None
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            break
        return text, name
    raise _no_text(path, f"is not text{f' in {encoding}' if encoding else ''}", _ENCODINGS)


def _no_text(path: Path, what: str, hint: str) -> CatalogueError:
    return CatalogueError(f"{path}: {what}.", code="not_text", hint=hint)
