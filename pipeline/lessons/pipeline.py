"""The lessons pipeline: seed → sow → lessons → publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pipeline.content.checks import favourite_place, repeats, summary
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.engine.tasks import TaskFailure
from pipeline.errors import StepFailed
from pipeline.export.base import downloads, listed
from pipeline.lessons import review
from pipeline.lessons.author import (
    SCHEME_AGAIN,
    Examined,
    ask_until_valid,
    asks_of,
    examine,
    offline,
    prompt_hashes,
    write_lesson,
)
from pipeline.lessons.course import Course
from pipeline.lessons.earlier import current
from pipeline.lessons.outline_checks import entry_problems, outline_problems
from pipeline.lessons.plan import make_plan
from pipeline.lessons.release import warning
from pipeline.lessons.schemas import DEFAULT_LESSONS, Entry, EntryDetails, Outline, OutlineEntry, Scheme
from pipeline.publish.base import Bundle
from pipeline.publish.view import CourseView
from pipeline.records.reviews import TO_REDO
from pipeline.records.values import reference, value_hash


@step(version=1, effect="read")
def seed(ctx: StepContext) -> dict[str, Any]:
    """Return the pinned course, read over once more: {"course_id", "outcomes_created"}."""
    course = Course.from_json(ctx.pin("catalogue"))
    return {"course_id": course.course_id, "outcomes_created": sum(len(group.outcomes) for group in course.groups)}


@step(version=1, effect="read", saves=("scheme",))
def sow(ctx: StepContext) -> dict[str, Any]:
    """Return the scheme of work, saved as "scheme": {"sow_document_id", "lesson_count"}.

    Raises:
        StepFailed: The outline or an entry was not good enough.
    """
    outline = ctx.task("outline", write_outline)
    # Each item names the outline it belongs to, so that the details of another outline are never taken for these.
    made_from = value_hash(outline)
    items = [{"order": row["order"], "outline": made_from} for row in outline["entries"]]

    # Not a function within this one: a worker elsewhere must find it by its name.
    details = ctx.map("entry", items, partial(write_entry, outline), key=lambda item: item["order"], warm=True)
    course = Course.from_json(ctx.pin("catalogue"))
    covered = {ref for row in outline["entries"] if row["lesson_type"] == "teach" for ref in row["outcome_refs"]}
    left = [out.id for out in course.outcomes() if out.id not in covered]
    scheme = Scheme(
        course_id=course.course_id,
        catalogue=course.content_hash(),
        lesson_count=len(items),
        partial=bool(left),
        not_covered=left,
        entries=[Entry(**row, **more) for row, more in zip(outline["entries"], details, strict=True)],
    )
    return {"sow_document_id": ctx.save("scheme", scheme.model_dump(mode="json")), "lesson_count": len(items)}


def write_outline(ctx: StepContext, _item: Any) -> dict[str, Any]:
    """Return the outline as JSON, keeping every rule of outline_checks.

    Raises:
        TaskRejected: Refused, or still wrong after the last revision.
    """
    asks = asks_of(ctx)
    plan = make_plan(asks.course, int(ctx.settings.get("lessons") or DEFAULT_LESSONS))

    def read(text: str) -> Examined[Outline]:
        answer = examine(text, Outline)
        faults = outline_problems(asks.course, plan, answer.value) if answer.value else []
        return Examined(None, tuple(faults), answer.raw) if faults else answer

    outline = ask_until_valid(
        ctx, lambda draft: asks.outline(plan, draft), read, "the outline", hint=SCHEME_AGAIN
    )  # fmt: skip
    return {"entries": [row.model_dump(mode="json") for row in outline.entries]}


def write_entry(outline: dict[str, Any], ctx: StepContext, item: dict[str, Any]) -> dict[str, Any]:
    """Return the details of one lesson, without its order."""
    order = int(item["order"])
    asks = asks_of(ctx)
    entries = [OutlineEntry.model_validate(row) for row in outline["entries"]]

    def read(text: str) -> Examined[EntryDetails]:
        answer = examine(text, EntryDetails)
        faults = entry_problems(entries[order - 1], answer.value) if answer.value else []
        return Examined(None, tuple(faults), answer.raw) if faults else answer

    details = ask_until_valid(
        ctx, lambda draft: asks.entry(entries, order, draft), read, f"entry {order}", hint=SCHEME_AGAIN
    )  # fmt: skip
    return details.model_dump(mode="json", exclude={"order"})


@step(version=1, effect="read", saves=("lessons",))
def lessons(ctx: StepContext) -> dict[str, Any]:
    """Return every lesson of the scheme, saved as "lessons": {"total_lessons", "completed", "failed", "skipped"}.

    Raises:
        StepFailed: Lessons failed (named; the others are kept), unless failed ones are skipped.
    """
    total = int(ctx.outputs["sow"]["lesson_count"])
    sample = ctx.options.get("sample")
    wanted = total if sample is None else min(int(sample), total)
    skip = bool(ctx.options.get("skip_failed"))
    try:
        rows = ctx.map("lessons", range(1, wanted + 1), write_lesson, key=str, warm=True, skip_failed=skip)
    except StepFailed as error:
        error.hint = f"{error.hint.rstrip('.')}; --skip-failed publishes without it."
        raise
    if wanted < total:
        which = "The first lesson" if wanted == 1 else f"The first {wanted} lessons"
        ctx.stop(f"{which} of {total} {'is' if wanted == 1 else 'are'} made, as asked.")
    entries = ctx.load("scheme")["entries"]
    made = [_row(entry, row) for entry, row in zip(entries, rows, strict=True)]
    _note_course(ctx, made)
    ctx.save("lessons", made)
    failed = sum(row["failed"] is not None for row in made)
    empty = sum(row["lesson"] is None for row in made) - failed
    return {"total_lessons": total, "completed": total - failed - empty, "failed": failed, "skipped": empty}


@step(version=1, effect="write", repeatable=True)
def publish(ctx: StepContext) -> dict[str, Any]:
    """Return the course as a site and data: {"path" (folder name), "content_hash", "files"}, and "with" downloads.

    Lessons are published as a person edited them; with the option "review", only once each was approved or edited.

    Raises:
        Pause: A person must decide first.
        PublishedFilesEdited: Published files were edited by hand; names them.
        PublishError: The folder cannot be written.
    """
    bundle, formats = make_bundle(ctx), listed(str(ctx.options.get("downloads") or ""))
    bundle = replace(bundle, downloads=downloads(CourseView(bundle), formats))
    receipt = ctx.services["publisher"].publish(bundle, overwrite=bool(ctx.options.get("overwrite")))
    with_ = {"with": ", ".join(formats)} if bundle.downloads else {}
    return {"path": bundle.name, "content_hash": receipt.content_hash, "files": receipt.files, **with_}


def bundle_name(course_id: str, *, draft: bool) -> str:
    """Return the folder a course is published as: a draft never stands where a model's course stood."""
    return course_id + ("-draft" if draft else "")


def make_bundle(ctx: StepContext) -> Bundle:
    """Return all that is published; nothing in it depends on run, time, attempts or money."""
    course, scheme = ctx.pin("catalogue"), ctx.load("scheme")
    stored = zip(_reviewed(ctx), scheme["entries"], strict=True)
    rows = [todays(row, entry, course) for row, entry in stored]
    draft = offline(ctx)
    signed = review.sign_off(rows)
    return Bundle(
        name=bundle_name(course["course_id"], draft=draft),
        course=course,
        scheme=scheme,
        lessons=[row for row in rows if row["lesson"] is not None],
        failed=[
            {"order": row["order"], "label": row["label"], "reason": row["failed"]}
            | {key: row[key] for key in ("not_written",) if row.get(key)}
            for row in rows
            if row["lesson"] is None
        ],
        about=_about(ctx, course, draft=draft) | ({"sign_off": signed} if signed else {}),
        draft=draft,
    )


def _reviewed(ctx: StepContext) -> list[dict[str, Any]]:
    """Return the rows of all lessons as people left them.

    Raises:
        Pause: A person must decide first.
    """
    rows = ctx.load("lessons")
    tasks = ctx.place.standings("lessons")
    found = {row["order"]: tasks[name] for row in rows if (name := f"lessons/{row['order']}") in tasks}
    review.refuse_undecided(rows, found, all_of_them=bool(ctx.options.get("review")))
    if again := sum(each.status == TO_REDO for each in found.values()):
        lessons = "1 lesson is" if again == 1 else f"{again} lessons are"
        ctx.note(f"{lessons} to be made again, as asked in a review: resume the run once more.")
    edits = {
        order: ctx.place.recorded(reference(each.edit, 0))
        for order, each in found.items()
        if each.edit
    }  # fmt: skip
    return [review.in_force(row, found.get(row["order"]), edits.get(row["order"])) for row in rows]


def todays(row: Mapping[str, Any], entry: Mapping[str, Any], course: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as today's lessons are stored; what an earlier version wrote is checked by today's checks."""
    today = current(row, entry)
    if today["lesson"] is not None and "by" not in today["checks"]:
        today["checks"] |= summary(today["lesson"], entry=entry, course=course)
    return today


def _about(ctx: StepContext, course: Mapping[str, Any], *, draft: bool) -> dict[str, Any]:
    settings = ctx.settings
    return {
        "author": "offline" if draft else "model",
        "model": settings["model"],
        "critic": None if draft else settings["model"],
        "effort": settings.get("effort"),
        "prompts": prompt_hashes(ctx),
        "catalogue": value_hash(course),
    }


def _row(entry: Mapping[str, Any], row: Any) -> dict[str, Any]:
    """Return a lesson's row in the artifact: what was written, or why there is nothing."""
    if isinstance(row, TaskFailure):
        reason = str(row.error.get("message") or "failed")
        empty = {"order": entry["order"], "lesson": None, "checks": {"warnings": []}, "critic": None}
        return {**empty, "label": entry["label"], "failed": reason}
    return {**row, "label": entry["label"], "failed": None}


def _note_course(ctx: StepContext, rows: Sequence[dict[str, Any]]) -> None:
    """Note what only the whole course shows: questions asked twice, a favourite place of right options."""
    today = [current(row, entry) for row, entry in zip(rows, ctx.load("scheme")["entries"], strict=True)]
    written = {row["order"]: row["lesson"] for row in today if row["lesson"] is not None}
    found = repeats(written)
    for order, finding in found:
        rows[order - 1]["checks"]["warnings"].append(warning(finding))
    if found:
        what = "1 question stands" if len(found) == 1 else f"{len(found)} questions stand"
        ctx.note(f"{what} in two lessons; the page About names them.")
    if favourite := favourite_place(written.values()):
        ctx.note(favourite)


PIPELINE = Pipeline("lessons", [seed, sow, lessons, publish])
