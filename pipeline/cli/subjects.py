"""`subjects`: the courses of the catalogue; a template for a new course, a check of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pipeline.cli.options import OneOf, json_option
from pipeline.cli.run_options import settings_options
from pipeline.cli.text import count, one_line, say, say_json, table, warn
from pipeline.content.names import LEVELS, SUBJECTS
from pipeline.errors import CatalogueError
from pipeline.lessons.catalogue import Catalogue, CourseFile, read_course, template
from pipeline.lessons.course import Course


@click.group("subjects", invoke_without_command=True)
@settings_options("catalogue")
@json_option
@click.pass_context
def subjects(ctx: click.Context, catalogue: Path | None, as_json: bool) -> None:
    """List the courses of the catalogue; check or start a new one."""
    if ctx.invoked_subcommand is not None:
        return
    rows = [_row(file) for file in Catalogue(catalogue).files()]
    if as_json:
        for row in rows:
            say_json(row)
        return
    say(table(["Subject", "Level", "Course", "Code", "Learning outcomes", "From"],
              [[str(row["subject"]), str(row["level"]), str(row["title"]), str(row["code"]), str(row["outcomes"]),
                str(row["from"])] for row in rows], right=["Learning outcomes"]))  # fmt: skip
    say()
    say("Subjects: " + _names(SUBJECTS))
    say("Levels: " + _names(LEVELS))
    say("A course that is not listed: ./pipeline.sh subjects new SUBJECT LEVEL > DIR/SUBJECT-LEVEL.yaml")


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
    return ", ".join(f"{name} ({', '.join(also)})" if also else name for name, also in names.items())


@subjects.command("new")
@click.argument("subject", type=OneOf("subject", SUBJECTS))
@click.argument("level", type=OneOf("level", LEVELS))
def new(subject: str, level: str) -> None:
    """Print a course file to fill in."""
    say(template(subject, level).rstrip("\n"))


@subjects.command("check")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def check(file: Path) -> None:
    """Read a course file as a run would; report every fault with its line and key."""
    course = read_course(file)
    say(f"{file}: {course.title} ({course.code}), {count(len(course.groups), 'group')}, "
        f"{count(_outcomes(course), 'learning outcome')}. No faults.")  # fmt: skip
