"""`review`: how the lessons of a course stand before people, and what they decide about one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.app.stores import open_store
from pipeline.app.words import count, one_line, when
from pipeline.cli.options import NamedPath, common_options, own_option, run_argument
from pipeline.cli.text import heading, say, say_json, table, tell
from pipeline.errors import ConfigError
from pipeline.files import read_regular, write_over

if TYPE_CHECKING:
    from pipeline.app.review import CourseReview, LessonReview

_STATUS = {
    "conflict": "✗ conflict", "open": "to review", "approved": "✓ approved", "edited": "✓ edited",
    "redo": "to be made again", "missing": "not made yet", "not_written": "not written",
    "failed": "✗ failed",
}  # fmt: skip


@click.command("review")
@run_argument
@click.argument("item", required=False, metavar="[ITEM]")
@click.option("--approve", is_flag=True, help="Approve the lesson as it is.")
@click.option("--edit", type=NamedPath(allow_dash=True), metavar="FILE",
              help="Replace it by an edited version: JSON of the lesson, or of new values by address; checked first.",
              )  # fmt: skip
@click.option("--redo", metavar="NOTE", help="Have it made again at the next resume; NOTE says what to change.")
@click.option("--keep", is_flag=True, help="Of an edited lesson that was made again since: keep the edit.")
@click.option("--take", is_flag=True, help="Of such a lesson: take the new version, which is then to be reviewed.")
@click.option("--undo", is_flag=True, help="Take the last decision about it back.")
@own_option("review", "--by", default="", metavar="NAME",
            help="Who decides, as it is published.  [default: the login name]")  # fmt: skip
@own_option("review", "--note", default="", metavar="TEXT", help="A note to keep with the decision.")
@own_option("review", "--export", type=NamedPath(), metavar="FILE.jsonl",
            help="Write all decisions as calibration examples: draft, edit, findings, verdict.")  # fmt: skip
@common_options
def review(
    run: str, item: str | None, export: Path | None, as_json: bool, store: str | None, by: str, note: str, **asked: Any
) -> None:
    """Show what is to be reviewed of a course, one lesson (ITEM: 9), or decide about it.

    Decisions can be made while the run is going on. The published course shows them after the
    next resume; `lessons --review` publishes only what was approved or edited.
    """  # fmt: skip
    from pipeline.app import review as desk

    place = open_store(store)
    wished = [name for name, value in asked.items() if value]
    if len(wished) > 1 or (wished and not item):
        raise click.UsageError("Give one ITEM and one decision: --approve, --edit, --redo, --keep, --take or --undo.")
    if export is not None:
        lines = [json.dumps(row, ensure_ascii=True) for row in desk.examples(place, run)]
        write_over(export, "".join(f"{line}\n" for line in lines).encode("ascii"))
        say(f"{count(len(lines), 'example')} written to {export}")
    elif wished and item:
        choice = wished[0]
        decision = desk.ReviewDecision(choice, by or getuser(), asked["redo"] or note, **_edit(asked["edit"]))
        made = desk.decide(place, run, desk.order_of(item), decision)
        course = desk.CourseReview.of(place, run)
        shown = (
            f"The course shows it once it is published: ./pipeline.sh lessons --resume {course.run}{course.store_words}"
        )
        if choice == "redo" and course.offline:
            shown = f"The offline author cannot follow notes: the lesson comes out the same. {shown}"
        tell([made.to_json()], [_decided(made, choice, decision.by), shown], as_json=as_json)
    elif item:
        _show(desk.CourseReview.of(place, run), desk.order_of(item), as_json=as_json)
    else:
        _show_all(desk.CourseReview.of(place, run), as_json=as_json)


def _edit(file: Path | None) -> dict[str, Any]:
    """Return an edit as it was given: all of the lesson, or values by address."""
    if file is None:
        return {}
    text = sys.stdin.buffer.read() if str(file) == "-" else read_regular(file)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{file} is not JSON: {error}", code="invalid_edit") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{file} holds no JSON object.", code="invalid_edit",
                          hint="Give the lesson, or new values by address: {\"c4.q2.answer\": \"…\"}.")  # fmt: skip
    return {"edit": found}


def _decided(lesson: LessonReview, choice: str, by: str) -> str:
    from pipeline.app.review import WORDS

    return f"Lesson {lesson.order} ({one_line(lesson.title, 60)}): {WORDS[choice]}, by {by}"


def _show_all(course: CourseReview, *, as_json: bool) -> None:
    from pipeline.app.review import progress

    queue = course.queue()
    done = progress(queue)
    if as_json:
        say_json({"run": course.run, **done, "lessons": [each.to_json() for each in queue]})
        return
    say(heading(f"REVIEW of run {course.run}", f"{done['approved']} of {done['total']} approved"))
    rows = []
    for each in queue:
        last = each.standing.last
        grave = each.severity if each.findings else ""
        found = f"{len(each.findings)}, {grave}" if grave == "severe" else str(len(each.findings) or "")
        by = f"{last.by}, {when(last.at)}" if last else ""
        rows.append([str(each.order), one_line(each.title, 48), _STATUS[each.status], found, by])
    say(table(["No", "Lesson", "Status", "Findings", "By, when (UTC)"], rows, right=["No"]))
    if left := [each for each in queue if each.status in ("conflict", "open")]:
        say(f"\nLook at one: ./pipeline.sh review {course.run} {left[0].order}{course.store_words}")


def _show(course: CourseReview, order: int, *, as_json: bool) -> None:
    from pipeline.lessons.review import leaves

    lesson, row = course.lesson(order), course.content(order)
    if as_json:
        say_json({"run": course.run, **lesson.to_json(), "value": (row or {}).get("lesson"),
                  "decisions": [each._asdict() for each in course.history(order)]})  # fmt: skip
        return
    if row is not None:
        for where, text in leaves(row["lesson"]).items():
            say(f"{where}: {one_line(text)}")
        say("")
    for line in _lines(course, lesson):
        say(line)
    if row is not None:
        this = f"./pipeline.sh review {course.run} {order}{course.store_words}"
        say(f"Approve: {this} --approve")
        say(f"Edit:    {this} --edit FILE, a JSON object of new texts by place, as they stand above")
        say(f"As pupils see it: ./pipeline.sh ui{course.store_words}")


def _lines(course: CourseReview, lesson: LessonReview) -> Iterator[str]:
    from pipeline.app.review import WORDS
    from pipeline.lessons.review import differences

    yield heading(f"Lesson {lesson.order} of run {course.run}: {_STATUS[lesson.status]}", one_line(lesson.title, 70))
    if lesson.failed:
        yield f"Error: {one_line(lesson.failed)}"
    for each in lesson.findings:
        where = f"{each.where}: " if each.where else ""
        wanted = f" Wanted: {one_line(each.wanted)}" if each.wanted else ""
        yield f"{each.severity.capitalize()} ({each.who}): {where}{one_line(each.text)}{wanted}"
    for decision in course.history(lesson.order):
        note = f": {one_line(decision.note)}" if decision.note else ""
        yield f"{when(decision.at)} {decision.by}: {WORDS.get(decision.choice, decision.choice)}{note}"
    made, edit = course.made(lesson.order), course.edit(lesson.order)
    if made is not None and edit is not None:
        for where, before, after in differences(made["lesson"], edit["lesson"]):
            yield f"- {where}: {one_line(before, 100)}"
            yield f"+ {where}: {one_line(after, 100)}"
    yield ""
