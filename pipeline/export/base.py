"""What is exported and as which formats; a format is a module of this package with a function `files`."""

from __future__ import annotations

import difflib
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePosixPath

from pipeline.errors import ConfigError
from pipeline.extras import is_installed, not_installed
from pipeline.publish.base import Download
from pipeline.publish.view import CourseView, LessonView

#: Whom a file is for. A pupil's file holds no answers, in notes, metadata or descriptions of pictures neither.
PUPILS, TEACHER = "pupils", "teacher"
SUPPORT, CORE, CHALLENGE = DIFFICULTIES = ("support", "core", "challenge")
#: What a worksheet is called where pupils see it: a letter, which tells a class less than the name of the difficulty.
LETTERS = {SUPPORT: "A", CORE: "B", CHALLENGE: "C"}

#: End of the name of a file that says whose the one beside it is.
LICENCE = "-licence"
#: The earliest date that a zip archive can hold: all files in ours have it.
_DATE = (1980, 1, 1, 0, 0, 0)
#: Made on Unix, a regular file that its owner writes and all read: the same wherever this runs.
_UNIX, _MODE = 3, 0o100644 << 16


@dataclass(frozen=True, slots=True)
class Selection:
    """Hold what is exported."""

    view: CourseView
    #: Those chosen, in order.
    lessons: tuple[LessonView, ...]
    #: One of DIFFICULTIES; "": all three.
    difficulty: str = ""

    @property
    def suffix(self) -> str:
        """Return what tells a file of some lessons from one of all of them: "-2-5" of lessons 2 and 5, else ""."""
        if len(self.lessons) == len(self.view.lessons):
            return ""
        return "".join(f"-{lesson.order}" for lesson in self.lessons)

    @property
    def difficulties(self) -> tuple[str, ...]:
        """Return the difficulties of the worksheets that are wanted."""
        return (self.difficulty,) if self.difficulty else DIFFICULTIES


@dataclass(frozen=True, slots=True)
class Format:
    """One format."""

    name: str
    #: Of this package; has `files(chosen: Selection) -> Iterator[tuple[str, bytes]]`: path below the format's folder
    #: ("01-working-with-surds-core-worksheet.docx") and content.
    module: str
    #: What people do with it, in a line.
    purpose: str
    #: PUPILS: of its files those whose names end in "-answers" are the teacher's; TEACHER: all are.
    audience: str
    #: What it needs beyond the core, as it is named where it is installed from.
    packages: tuple[str, ...] = ()


def _table(*formats: Format) -> Mapping[str, Format]:
    return {each.name: each for each in formats}


FORMATS = _table(
    Format(
        "docx",
        "docx",
        "worksheets, and their answers apart, for Word and Google Docs",
        PUPILS,
        ("python-docx", "typst"),
    ),
    Format("pptx", "pptx", "slides of a lesson for PowerPoint and Google Slides", PUPILS, ("python-pptx", "typst")),
    Format("pdf", "pdf", "worksheets and exam papers to print, and their answers apart", PUPILS, ("typst",)),
    Format("gift", "gift", "questions for a quiz in Moodle", TEACHER),
    Format("qti", "qti", "questions for learning platforms that take QTI 2.1", TEACHER),
    Format("imscc", "imscc", "quizzes for Canvas, Brightspace and others that take Common Cartridge", TEACHER),
    Format("anki", "anki", "cards to learn with in Anki", TEACHER, ("genanki", "typst")),
    Format("csv", "csv", "a table of the questions for a spreadsheet", TEACHER),
    Format(
        "google-forms",
        "google_forms",
        "a script for each lesson that makes its quiz in Google Forms",
        TEACHER,
        ("typst",),
    ),
    Format("markdown", "markdown", "lessons as text with TeX formulas, and their answers apart", PUPILS),
)


def checked(formats: Sequence[str]) -> list[Format]:
    """Return the formats of these names, each once; refuses before anything is made.

    Raises:
        ConfigError: A name is no format's.
        PackageMissing: A format's package is not installed.
    """
    for name in formats:
        if name not in FORMATS:
            near = difflib.get_close_matches(name, FORMATS, n=2)
            hint = f"Did you mean {' or '.join(near)}? " if near else ""
            said = f"There is no format {name!r}."
            raise ConfigError(said, code="unknown_format", hint=f"{hint}Formats: {', '.join(FORMATS)}.", near=near)
    found = [FORMATS[name] for name in dict.fromkeys(formats)]
    for each in found:
        if missing := [name for name in each.packages if not is_installed(name)]:
            raise not_installed("export", each.name, missing=missing)
    return found


def export(
    chosen: Selection, formats: Sequence[str], begin: Callable[[str], None] = lambda name: None
) -> dict[str, bytes]:
    """Return {"docx/01-working-with-surds-core-worksheet.docx": bytes, …}: the same course gives the same bytes.

    Args:
        begin: Called with the name of each format before it is made.

    Raises:
        ConfigError: A name is no format's.
        PackageMissing: A format's package is not installed.
    """
    made: dict[str, bytes] = {}
    for each in checked(formats):
        begin(each.name)
        for path, data in import_module(f"pipeline.export.{each.module}").files(chosen):
            made[f"{each.name}/{path}"] = data
    return made


def downloads(view: CourseView, formats: Sequence[str]) -> list[Download]:
    """Return a whole course in some formats, to publish beside its pages."""
    made = export(Selection(view, view.lessons), formats) if view.lessons and formats else {}
    return [_download(view, path, data) for path, data in made.items()]


def _download(view: CourseView, path: str, data: bytes) -> Download:
    stem, whom = PurePosixPath(path).stem, audience(path)
    own = next((lesson for lesson in view.lessons if stem == lesson.file or stem.startswith(f"{lesson.file}-")), None)
    if own is None:
        label = FORMATS[path.partition("/")[0]].purpose
        return Download(path, data, 0, f"licence of {label}" if stem.endswith(LICENCE) else label, whom == TEACHER)
    difficulty, *words = stem.removeprefix(own.file).strip("-").split("-")
    label = " ".join([difficulty, *words]) or "lesson"
    if letter := LETTERS.get(difficulty):
        label = f"worksheet {letter}" if whom == PUPILS else f"answers to worksheet {letter} ({difficulty})"
    return Download(path, data, own.order, label, whom == TEACHER)


def listed(names: str) -> list[str]:
    """Return the names in a text such as "docx,PDF", in small letters; of "none" no name."""
    found = [name.strip().lower() for name in names.split(",") if name.strip()]
    return [] if found == ["none"] else found


def audience(path: str) -> str:
    """Return whom an exported file is for: PUPILS or TEACHER."""
    whole = PurePosixPath(path)
    return TEACHER if whole.stem.endswith("-answers") else FORMATS[whole.parts[0]].audience


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive of files in the order of their names, dated 1980."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system, entry.external_attr = _UNIX, _MODE
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name], compresslevel=9)
    return whole.getvalue()


def repacked(archive: bytes) -> bytes:
    """Return an archive that a library made, with names, order and dates as `packed` has them.

    An Office file begins with the list of its types, as its readers expect.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as whole:
        files = {name: whole.read(name) for name in whole.namelist() if not name.endswith("/")}
    return packed(files)
