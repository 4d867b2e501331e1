"""The catalogue: built-in courses and files of the user; each fault is named with file, line and key."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from pipeline.content.fields import MAX_REF
from pipeline.content.names import LEVELS, SUBJECTS, known_level, level_name, nearest, shown, subject_name
from pipeline.errors import CatalogueError
from pipeline.files import read_text
from pipeline.lessons.course import FORMAT, Course, Place, course_id, course_problems

#: A catalogue file is some kilobytes; more than this (bytes) is a mistake.
MAX_BYTES = 1_000_000
#: So many faults are named at once.
MAX_FAULTS = 10


def read_course(path: Path) -> Course:
    """Return the course a catalogue file describes; one whose text was seen before is not parsed again.

    Raises:
        CatalogueError: It cannot be read, is no YAML or breaks the format; each fault names
            file, line and key.
    """
    return _course(path, _text(path))


@functools.lru_cache(32)
def _course(path: Path, text: str) -> Course:
    lines, data = _parse(path, text)
    if not isinstance(data, dict):
        raise CatalogueError(f"{path}:1: is not a mapping of keys to values", code="invalid_catalogue", hint=_HINT)
    version = data.get("catalogue")
    if version != FORMAT:
        line = lines.get(("catalogue",), 1)
        raise CatalogueError(
            f"{path}:{line}: catalogue: is {version!r}, wanted {FORMAT}", code="invalid_catalogue", hint=_HINT
        )
    subject, level, code = (str(data.get(key) or "") for key in ("subject", "level", "code"))
    data = {"id": f"{subject}/{level}", "course_id": course_id(subject, level, code), **data}
    faults = list(_normalise(data))
    told = [where for where, _ in faults]
    try:
        course = Course.model_validate(data)
        if not (faults := faults or course_problems(course)):
            return course
    except ValidationError as error:
        # A place that was named is not named again, but for keys that nobody knows there: they may be the reason.
        faults += [
            (item["loc"], _said(item))
            for item in error.errors(include_url=False)
            if item["type"] == "extra_forbidden" or not any(item["loc"][: len(where)] == where for where in told)
        ]
    raise CatalogueError("\n".join(_located(path, lines, faults)), code="invalid_catalogue", hint=_HINT, file=str(path))


_HINT = "`./pipeline.sh subjects new SUBJECT LEVEL` prints a file with every key."


def _text(path: Path) -> str:
    try:
        return read_text(path, MAX_BYTES)
    except OSError as error:
        raise CatalogueError(f"{path}: cannot be read: {error.strerror}", code="unreadable_file") from None
    except ValueError as error:
        raise CatalogueError(f"{path}: {error}", code="invalid_catalogue") from None


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without aliases: one may contain itself, and nothing in this format needs one."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            problem = f"*{event.anchor}: aliases are not allowed"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def _parse(path: Path, text: str) -> tuple[dict[Place, int], Any]:
    lines: dict[Place, int] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return lines, None
        _note_lines(path, node, (), lines)
        return lines, loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise CatalogueError(
            f"{path}:{_line(error.problem_mark)}: {error.problem}", code="invalid_catalogue", hint=_HINT
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CatalogueError(
            f"{path}: is not YAML: {str(error).splitlines()[0]}", code="invalid_catalogue", hint=_HINT
        ) from None


def _line(mark: Any) -> int:
    return 1 if mark is None else int(mark.line) + 1


def _note_lines(path: Path, node: yaml.Node, where: Place, lines: dict[Place, int]) -> None:
    lines[where] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_lines(path, item, (*where, index), lines)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = (*where, str(key.value))
            if place in lines:
                shown = ".".join(str(part) for part in place)
                raise CatalogueError(
                    f"{path}:{key.start_mark.line + 1}: {shown}: appears twice", code="invalid_catalogue", hint=_HINT
                )
            _note_lines(path, value, place, lines)
            lines[place] = key.start_mark.line + 1


def _normalise(data: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Turn content points and standards into one list of points with ids, in place; yields faults."""
    groups = data.get("groups")
    for g, group in enumerate(groups if isinstance(groups, list) else []):
        outcomes = group.get("outcomes") if isinstance(group, dict) else None
        for o, outcome in enumerate(outcomes if isinstance(outcomes, list) else []):
            where: Place = ("groups", g, "outcomes", o)
            if isinstance(outcome, dict):
                yield from _points(where, outcome)


def _points(where: Place, outcome: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    given = [key for key in ("points", "standards") if key in outcome]
    if len(given) != 1:
        wanted = "both points and standards" if given else "neither points nor standards"
        yield where, f"has {wanted}, wanted one of them"
        return
    rows = outcome.pop(given[0])
    if not isinstance(rows, list):
        yield (*where, given[0]), "is not a list"
        return
    outcome["points"] = points = []
    for index, row in enumerate(rows):
        place, numbered = (*where, given[0], index), f"{outcome.get('id')}.{index + 1}"
        if given[0] == "points" and isinstance(row, str):
            points.append({"id": numbered, "text": row})
        elif given[0] == "standards" and isinstance(row, dict) and isinstance(row.get("code"), str):
            coded = f"{outcome.get('id')}.{row['code']}"
            points.append({**row, "id": coded if len(coded) <= MAX_REF else numbered})
        elif given[0] == "points":
            yield place, f"is {row!r}, wanted a text (in quotes where it holds a colon)"
        else:
            yield place, "has no code, wanted {code: …, text: …}"


def _said(item: Mapping[str, Any]) -> str:
    found = item.get("input")
    simple = isinstance(found, (str, int, float, bool)) and item["type"] not in ("extra_forbidden", "missing")
    return f"{item['msg']}" + (f" (found {found!r})" if simple else "")


def _located(path: Path, lines: Mapping[Place, int], faults: list[tuple[Place, str]]) -> Iterator[str]:
    for where, said in faults[:MAX_FAULTS]:
        place = where
        while place and place not in lines:
            # Standards become points on the way in; their line is found under the old key.
            old = tuple("standards" if part == "points" else part for part in place)
            if old in lines:
                place = old
                break
            place = place[:-1]
        key = ".".join(str(part) for part in where)
        yield f"{path}:{lines.get(place, 1)}: {key + ': ' if key else ''}{said}"
    if len(faults) > MAX_FAULTS:
        yield f"… and {len(faults) - MAX_FAULTS} more"


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
        """Look at the names of the files; none is read.

        Raises:
            CatalogueError: The folder cannot be read, or two of its files are the same course.
        """
        self._folder = folder
        self._files = {(file.subject, file.level): file for file in _files(_SHIPPED, own=False)[0]}
        #: Files of the folder whose names say no subject and level, or that are no course files at all.
        self.unread: list[Path] = []
        if folder is not None:
            found, self.unread = _files(folder, own=True)
            own: dict[tuple[str, str], CourseFile] = {}
            for file in found:
                first = own.setdefault((file.subject, file.level), file)
                if first is not file:
                    raise CatalogueError(
                        f"{file.path}: is the same course as {first.path.name} by its name",
                        code="invalid_catalogue",
                        hint="Keep one of them.",
                    )
            self._files |= own

    def files(self) -> list[CourseFile]:
        """Return all courses by subject and level, unread."""
        return [self._files[key] for key in sorted(self._files)]

    def course(self, subject: str, level: str) -> Course:
        """Return the course of a subject and level, in any spelling.

        Raises:
            CatalogueError: No file for the pair (says how to add one), or a file with faults.
        """
        key = subject_name(subject), level_name(level)
        file = self._files.get(key)
        if file is None:
            raise self._missing(*key)
        course = read_course(file.path)
        if (course.subject, course.level) != key:
            raise CatalogueError(
                f"{file.path}: id: is {course.id}, but the file's name says {key[0]}/{key[1]}",
                code="invalid_catalogue",
                hint=f"Name it {file_name(course.subject, course.level)}.",
            )
        return course

    def _missing(self, subject: str, level: str) -> CatalogueError:
        """Return the error for a course without a file: what was probably meant, and how to add it."""
        files = self.files()
        subjects, levels = {*SUBJECTS, *(file.subject for file in files)}, {*LEVELS, *(file.level for file in files)}
        meant = [nearest(name, names) for name, names in ((subject, subjects), (level, levels)) if name not in names]
        if not any(meant):
            # A usual subject, but the file that there is for the level has its name misspelt.
            meant = [nearest(subject, [file.subject for file in files if file.own and file.level == level])]
        guess = ", ".join(filter(None, meant))
        unread = ", ".join(path.name for path in self.unread)
        return CatalogueError(
            f"There is no course file for {shown(subject)} at {shown(level)}."
            + (f" Did you mean {guess}?" if guess else "")
            + f" Available: {', '.join(f'{file.subject} {file.level}' for file in files)}."
            + (f" Not read, since their names are not {file_name('SUBJECT', 'LEVEL')}: {unread}." if unread else ""),
            code="unknown_course",
            hint=("" if self._folder else "If the file is there, name its folder: --catalogue DIR. If not: ")
            + f"`./pipeline.sh subjects new {subject} {level} > DIR/{file_name(subject, level)}` and fill it in, or "
            f"`./pipeline.sh subjects import OUTCOMES {subject} {level} --catalogue DIR`; then --catalogue DIR.",
            subject=subject,
            level=level,
            nearest=guess or None,
        )


def file_name(subject: str, level: str) -> str:
    """Return the name a course's file has in a catalogue folder."""
    return f"{subject}-{level}.yaml"


#: Ends of the names of course files.
_ENDS = (".yaml", ".yml")


def _files(folder: Path, *, own: bool) -> tuple[list[CourseFile], list[Path]]:
    """Return the course files of a folder, and what else there is to read in it."""
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise CatalogueError(
            f"--catalogue {folder}: cannot be read: {error.strerror}", code="unreadable_file"
        ) from None
    found, unread = [], []
    for path in paths:
        names = _names(path.stem) if path.suffix.lower() in _ENDS else None
        if names:
            found.append(CourseFile(*names, path, own))
        else:
            unread.append(path)
    return found, unread


def _names(stem: str) -> tuple[str, str] | None:
    """Return the subject and level of "physics-higher", of "maths-key-stage-3"; None where it does not say both."""
    parts = stem.split("-")
    splits = [("-".join(parts[:at]), "-".join(parts[at:])) for at in range(1, len(parts))]
    # A dash stands between the two, but may stand in a name as well.
    known = [pair for pair in splits if known_level(pair[1]) or re.match(_YEAR, pair[1])]
    try:
        return next((subject_name(subject), level_name(level)) for subject, level in [*known, *splits[-1:]])
    except (StopIteration, CatalogueError):
        return None


#: "year-9": levels that are counted.
_YEAR = r"(?i)(year|grade|class|stage|form|klasse|level|semester|part)[-_ ]?\w{1,2}$"
