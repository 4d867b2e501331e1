"""A run's course as files to take away: what is exported, also of an unfinished or an old run, and where it goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.app.review import CourseReview
from pipeline.errors import ConfigError
from pipeline.export import folder
from pipeline.export.base import DIFFICULTIES, Selection, audience, checked, export
from pipeline.export.folder import Written
from pipeline.lessons import review
from pipeline.lessons.pipeline import bundle_name, todays
from pipeline.publish.base import Bundle
from pipeline.publish.folder import check_plain
from pipeline.publish.view import CourseView
from pipeline.records.reviews import EDITED
from pipeline.store.base import Store

#: Where exports go, below the folder a command is given in.
DEFAULT_FOLDER = "exports"


@dataclass(frozen=True, slots=True)
class Exported:
    """Tell what was exported, and where it is."""

    run: str
    chosen: Selection
    #: Lessons of the course that are not made yet, or failed.
    missing: tuple[int, ...]
    folder: Path
    #: Path → size in bytes.
    files: Mapping[str, int]
    written: Written

    @property
    def outdated(self) -> list[str]:
        """Return files that an earlier export of the same formats wrote and that this one, of all lessons, has not."""
        if self.chosen.suffix or self.chosen.difficulty:
            return []
        formats = {name.partition("/")[0] for name in self.files}
        return [name for name in self.written.left if name.partition("/")[0] in formats]

    def to_json(self) -> list[dict[str, Any]]:
        """Return an object per file and the last one, as `--json` shows them."""
        states = {**dict.fromkeys(self.written.kept, "kept"), **dict.fromkeys(self.written.new, "written")}
        rows = [
            {"type": "file", "file": str(self.folder / name), "audience": audience(name), "bytes": size,
             "state": states.get(name, "unchanged")}
            for name, size in self.files.items()
        ]  # fmt: skip
        lessons = [lesson.order for lesson in self.chosen.lessons]
        return [*rows, {"type": "exported", "run": self.run, "folder": str(self.folder), "files": len(rows),
                        "lessons": lessons, "missing": list(self.missing), "outdated": self.outdated,
                        "lost": list(self.written.lost), **self.chosen.view.rights}]  # fmt: skip


def export_run(
    store: Store,
    run: str,
    formats: Sequence[str],
    *,
    lessons: Sequence[int] = (),
    difficulty: str = "",
    out: Path | None = None,
    overwrite: bool = False,
    begin: Callable[[str], None] = lambda name: None,
) -> Exported:
    """Write a course as files of some formats.

    Args:
        run: Its id, a unique beginning of it, or latest.
        lessons: Only these; empty: all that are made.
        difficulty: Only worksheets of this one; "": all three.
        out: Folder; None: exports/COURSE in the current one.
        overwrite: Also over files that a person changed since.
        begin: Called with the name of each format before it is made.

    Raises:
        ConfigError: There is no such format or lesson, or the run makes none.
        PackageMissing: A format's package is not installed.
        RunNotFound: There is no such run.
        PublishError: The folder cannot be written.
    """
    found = CourseReview.of(store, run)
    chosen, made = export_of(found, formats, lessons, difficulty, begin)
    name = chosen.view.bundle.name
    check_plain(name)
    root = (Path(DEFAULT_FOLDER, name) if out is None else out.expanduser()).absolute()
    written = folder.write(root, made, overwrite=overwrite)
    there = {lesson.order for lesson in chosen.view.lessons}
    missing = tuple(order for order in chosen.view.entries if order not in there)
    return Exported(found.run, chosen, missing, root, {path: len(data) for path, data in made.items()}, written)


def export_of(
    found: CourseReview,
    formats: Sequence[str],
    lessons: Sequence[int] = (),
    difficulty: str = "",
    begin: Callable[[str], None] = lambda name: None,
) -> tuple[Selection, dict[str, bytes]]:
    """Return what is exported of a course, and its files; takes as `export_run`.

    Raises:
        ConfigError: There is no such format, lesson or difficulty, or no lesson is made yet.
        PackageMissing: A format's package is not installed.
    """
    checked(formats or [""])
    if difficulty not in ("", *DIFFICULTIES):
        raise ConfigError(f"There is no difficulty {difficulty!r}.", code="unknown_difficulty",
                          hint=f"It can be {', '.join(DIFFICULTIES)}.")  # fmt: skip
    chosen = _select(found, lessons, difficulty)
    return chosen, export(chosen, formats, begin)


def _select(found: CourseReview, lessons: Sequence[int], difficulty: str) -> Selection:
    view = view_of(found)
    there = {lesson.order: lesson for lesson in view.lessons}
    if not there:
        raise ConfigError("No lesson of this course is made yet.", code="no_lessons",
                          hint=f"`./pipeline.sh status {found.run}{found.store_words}` shows how far it is. The "
                               "offline author writes only outcomes that have topics in the question bank; a model "
                               "writes all.")  # fmt: skip
    for order in lessons:
        if order not in there:
            made = ", ".join(map(str, there))
            said = f"There is no lesson {order} to export."
            raise ConfigError(said, code="lesson_not_found", hint=f"Lessons that are made: {made}.")
    wanted = sorted(set(lessons)) or list(there)
    return Selection(view, tuple(there[order] for order in wanted), difficulty)


def view_of(found: CourseReview) -> CourseView:
    """Return the course of a run as it would be published now, with the lessons that are made."""
    rows = [row for order in range(1, len(found.scheme["entries"]) + 1) if (row := _row(found, order))]
    draft, identity = found.offline, found.state.identity
    about = {"author": "offline" if draft else "model", "model": identity.get("model")}
    signed = review.sign_off(rows)
    return CourseView(
        Bundle(
            name=bundle_name(str(found.course["course_id"]), draft=draft),
            course=found.course,
            scheme=found.scheme,
            lessons=rows,
            about=about | ({"sign_off": signed} if signed else {}),
            draft=draft,
        )
    )


def _row(found: CourseReview, order: int) -> dict[str, Any] | None:
    """Return a lesson's row as people left it and as today's lessons are stored; None where it is not made."""
    row, standing = found.content(order), found.standing(order)
    if row is None:
        return None
    in_force = review.in_force(row, standing, row if standing.status == EDITED else None)
    return todays(in_force, found.entry(order), found.course)
