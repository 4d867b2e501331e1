"""Which courses there are: the shipped files and, over them, a folder of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import CatalogueError
from pipeline.lessons.catalogue_file import read_course
from pipeline.lessons.course import Course
from pipeline.lessons.names import LEVEL_DIGITS, known_level, known_subject, level_name, shown, subject_name

_SHIPPED = Path(__file__).with_name("catalogue")


@dataclass(frozen=True, slots=True)
class CourseFile:
    """A course that can be made."""

    subject: str
    level: str
    path: Path
    #: From the user's own folder.
    own: bool


class Catalogue:
    """The shipped courses, overlaid by those of a folder (same subject and level: the folder's wins)."""

    def __init__(self, folder: Path | None = None) -> None:
        self._files = {(file.subject, file.level): file for file in _files(_SHIPPED, own=False)}
        if folder is not None:
            if not folder.is_dir():
                raise CatalogueError(f"--catalogue {folder}: there is no such folder")
            self._files.update({(file.subject, file.level): file for file in _files(folder, own=True)})

    def files(self) -> list[CourseFile]:
        """All courses by subject and level, unread."""
        return [self._files[key] for key in sorted(self._files)]

    def course(self, subject: str, level: str) -> Course:
        """The course of a subject and level, in any spelling.

        Raises:
            CatalogueError: Unknown names, no file for a known pair (says how to add one), or a
                file with faults.
        """
        key = (
            subject_name(subject, more=[file.subject for file in self.files()]),
            level_name(level, more=[file.level for file in self.files()]),
        )
        file = self._files.get(key)
        if file is None:
            there = ", ".join(f"{f.subject} {f.level}" for f in self.files())
            raise CatalogueError(
                f"There is no course file for {shown(key[0])} at {shown(key[1])}. There is: {there}.",
                hint=f"`./pipeline.sh subjects new {key[0]} {key[1]} > DIR/{file_name(*key)}`, "
                "fill it in, then --catalogue DIR.",
                subject=key[0],
                level=key[1],
            )
        course = read_course(file.path)
        if (course.subject, course.level) != key:
            raise CatalogueError(
                f"{file.path}: id: is {course.id}, but the file's name says {key[0]}/{key[1]}",
                hint=f"Name it {file_name(course.subject, course.level)}.",
            )
        return course


def file_name(subject: str, level: str) -> str:
    """The name a course's file has in a catalogue folder."""
    return f"{subject}-{level}.yaml"


def check_file(path: Path) -> Course:
    """Read one catalogue file as a run would.

    Raises:
        CatalogueError: Each fault with file, line and key.
    """
    return read_course(path)


def template(subject: str, level: str) -> str:
    """The text of a course file to fill in, valid as it stands but for its content.

    Raises:
        CatalogueError: Unknown subject or level.
    """
    subject, level = subject_name(subject), level_name(level)
    text = (_SHIPPED / "template.txt").read_text(encoding="utf-8")
    scqf = int(LEVEL_DIGITS[level]) - 70
    values = {
        "SUBJECT": subject,
        "LEVEL": level,
        "TITLE": f"{shown(level)} {shown(subject)}",
        "DIGITS": LEVEL_DIGITS[level],
        "SCQF": str(scqf),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _files(folder: Path, *, own: bool) -> list[CourseFile]:
    found = []
    for path in sorted(folder.glob("*.yaml")):
        subject, dash, level = path.stem.rpartition("-")
        if not (dash and subject and level):
            raise CatalogueError(
                f"{path}: the file's name does not say a subject and a level",
                hint="Name it SUBJECT-LEVEL.yaml, e.g. physics-higher.yaml.",
            )
        found.append(CourseFile(known_subject(subject) or subject, known_level(level) or level, path, own))
    return found
