"""`subjects`: the courses of the catalogue; a new one from a template or a list of outcomes, a check of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pipeline.app.words import count, one_line
from pipeline.cli.options import NamedPath, OneOf, json_option, own_option
from pipeline.cli.run_options import settings_options
from pipeline.cli.text import say, say_json, table, warn
from pipeline.content.names import LEVELS, SUBJECTS, new_names
from pipeline.errors import CatalogueError
from pipeline.files import replace_file
from pipeline.lessons.catalogue import Catalogue, CourseFile, file_name, read_course
from pipeline.lessons.course import Course
from pipeline.lessons.syllabus.course_file import template
from pipeline.lessons.syllabus.outcome_list import OutcomeList, read_list


@click.group("subjects", invoke_without_command=True)
@settings_options("catalogue")
@json_option
@click.pass_context
def subjects(ctx: click.Context, catalogue: Path | None, as_json: bool) -> None:
    """List the courses of the catalogue; check or start a new one."""
    if ctx.invoked_subcommand is not None:
        return
    courses = Catalogue(catalogue)
    rows = [_row(file) for file in courses.files()]
    for path in courses.unread:
        warn(f"Warning: {path} is not read: its name is not {file_name('SUBJECT', 'LEVEL')}.")
    if as_json:
        for row in rows:
            say_json(row)
        return
    say(table(["Subject", "Level", "Course", "Code", "Learning outcomes", "From"],
              [[str(row["subject"]), str(row["level"]), str(row["title"]), str(row["code"]), str(row["outcomes"]),
                str(row["from"])] for row in rows], right=["Learning outcomes"]))  # fmt: skip
    say()
    say("Any other subject and level can be added, from a list of its outcomes or by hand:")
    say("  ./pipeline.sh subjects import FILE SUBJECT LEVEL --catalogue DIR")
    say("  ./pipeline.sh subjects new SUBJECT LEVEL > DIR/SUBJECT-LEVEL.yaml")
    say("Other spellings of subjects: " + _names(SUBJECTS))
    say("Other spellings of levels: " + _names(LEVELS))


def _row(file: CourseFile) -> dict[str, Any]:
    row = {"subject": file.subject, "level": file.level, "title": "faulty file", "code": "-", "outcomes": 0,
           "from": str(file.path) if file.own else "shipped", "error": None}  # fmt: skip
    try:
        course = read_course(file.path)
    except CatalogueError as error:
        warn(f"Warning: {one_line(error.message)}")
        return {**row, "error": error.message}
    return {**row, "title": course.title, "code": course.code, "outcomes": _outcomes(course)}


def _outcomes(course: Course) -> int:
    return len(course.outcomes()) + len(course.outcomes(cross_cutting=True))


def _names(names: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{name} ({', '.join(also)})" for name, also in names.items() if also)


@subjects.command("new")
@click.argument("subject", type=OneOf("subject", SUBJECTS))
@click.argument("level", type=OneOf("level", LEVELS))
@json_option
def new(subject: str, level: str, as_json: bool) -> None:
    """Print a course file to fill in, for any subject and level."""
    subject, level = new_names(subject, level)
    text = template(subject, level)
    if as_json:
        say_json({"file": file_name(subject, level), "text": text})
        return
    say(text.rstrip("\n"))


@subjects.command("import")
@click.argument("file", type=NamedPath(dir_okay=False))
@click.argument("subject", type=OneOf("subject", SUBJECTS))
@click.argument("level", type=OneOf("level", LEVELS))
@settings_options("catalogue", catalogue="Folder that the course file is written into; made where it is not there.")
@own_option("subjects_import", "--title", default="", metavar="TEXT",
            help="Title of the course.  [default: its level and subject]")  # fmt: skip
@own_option("subjects_import", "--encoding", default="", metavar="NAME",
            help="Encoding of FILE, such as cp1251.  [default: found out]")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the course file that is there.")
@json_option
def import_(
    file: Path, subject: str, level: str, catalogue: Path | None, title: str, encoding: str, overwrite: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Make a course file from outcomes in .csv, .tsv, .txt or .md.

    Shows what was understood; look it over, and change the course file where it is wrong.
    """
    subject, level = new_names(subject, level)
    found = read_list(file, subject, level, title=title, encoding=encoding)
    if not as_json:
        _show(file, found)
    target = _write(catalogue / file_name(subject, level), found.text, overwrite=overwrite) if catalogue else None
    if as_json:
        say_json(_understood(found) | {"written": str(target) if target else None})
    elif target is None:
        say("Nothing was written: --catalogue DIR names the folder for the course file.")
    else:
        say(f"Written: {target} ({read_course(target).title}).")
        say(f"Make the course: ./pipeline.sh lessons --subject {subject} --level {level} --catalogue {catalogue}")


def _write(target: Path, text: str, *, overwrite: bool) -> Path:
    if target.exists() and not overwrite:
        raise CatalogueError(f"{target}: is there already.", code="course_file_exists", hint="--overwrite replaces it.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, text.encode())
    except OSError as error:
        raise CatalogueError(f"{target}: cannot be written: {error.strerror}", code="unwritable_file") from None
    return target


def _show(file: Path, found: OutcomeList) -> None:
    rows = [
        [group.text if place == 0 else "", out.code, out.text, str(len(out.below)), str(out.line)]
        for group in found.groups
        for place, out in enumerate(group.below)
    ]
    say(f"Understood from {file} ({found.encoding}):")
    say(table(["Group", "Code", "Learning outcome", "Points", "Line"], rows, right=["Points", "Line"]))
    points = sum(len(out.below) for group in found.groups for out in group.below)
    say(f"{count(len(rows), 'learning outcome')} in {count(len(found.groups), 'group')}, "
        f"{count(points, 'point')}.")  # fmt: skip
    for note in found.notes:
        say(note)
    blank = ", ".join(found.blank)
    say(f"Left blank, since the list does not say it: {blank}. The course file shows where each stands.")


def _understood(found: OutcomeList) -> dict[str, Any]:
    groups = [
        {
            "title": group.text,
            "code": group.code,
            "outcomes": [
                {"title": out.text, "code": out.code, "line": out.line, "points": [point.text for point in out.below]}
                for out in group.below
            ],
        }
        for group in found.groups
    ]
    return {"encoding": found.encoding, "groups": groups, "notes": list(found.notes), "text": found.text}


@subjects.command("check")
@click.argument("file", type=NamedPath(dir_okay=False))
@json_option
def check(file: Path, as_json: bool) -> None:
    """Read a course file as a run would; report every fault.

    Each is told with its line and key.
    """
    course = read_course(file)
    if as_json:
        say_json({"file": str(file), "title": course.title, "code": course.code, "groups": len(course.groups),
                  "outcomes": _outcomes(course)})  # fmt: skip
        return
    code = f" ({course.code})" if course.code else ""
    say(f"{file}: {course.title}{code}, {count(len(course.groups), 'group')}, "
        f"{count(_outcomes(course), 'learning outcome')}. No faults.")  # fmt: skip
