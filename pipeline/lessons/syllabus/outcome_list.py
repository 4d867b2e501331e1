"""A list of outcomes in a file, as a course file: what was understood, what was not, and the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import CatalogueError
from pipeline.frameworks import named_framework
from pipeline.lessons.syllabus.course_file import course_file
from pipeline.lessons.syllabus.source import source_text
from pipeline.lessons.syllabus.table import is_table, markdown_table, read_table
from pipeline.lessons.syllabus.text import read_outcomes
from pipeline.lessons.syllabus.tree import ListItem, SourceTree, groups_of

#: Ends of the names of files that are read.
ENDS = (".csv", ".tsv", ".txt", ".md")
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

    @property
    def outcomes(self) -> int:
        """Return how many there are."""
        return sum(len(group.below) for group in self.groups)

    @property
    def points(self) -> int:
        """Return how many there are."""
        return sum(len(out.below) for group in self.groups for out in group.below)


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
    text, found = source_text(path, encoding)
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
    if end == ".md" and (table := markdown_table(text)):
        return read_table(table, "|")
    if is_table(text):
        return read_table(text)
    return read_outcomes(text, markdown=end == ".md")
