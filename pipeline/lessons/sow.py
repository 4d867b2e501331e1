"""Steps seed and sow: the course a run is about, and its scheme of work, checked before any lesson is bought."""

from __future__ import annotations

from functools import partial
from typing import Any

from pipeline.engine.step import StepContext, step
from pipeline.lessons.author import ask_until_valid, asks_of
from pipeline.lessons.examine import Examined, course_of, examine
from pipeline.lessons.outline_rules import entry_problems, outline_problems
from pipeline.lessons.plan import make_plan
from pipeline.lessons.scheme import DEFAULT_LESSONS, Entry, EntryDetails, Outline, OutlineEntry, Scheme
from pipeline.records.values import value_hash


@step(version=1, effect="read")
def seed(ctx: StepContext) -> dict[str, Any]:
    """The pinned course, read over once more: {"course_id", "outcomes_created"}."""
    course = course_of(ctx.pin("catalogue"))
    return {"course_id": course.course_id, "outcomes_created": sum(len(group.outcomes) for group in course.groups)}


@step(version=1, effect="read", saves=("scheme",))
def sow(ctx: StepContext) -> dict[str, Any]:
    """The scheme of work, saved as "scheme": {"sow_document_id", "lesson_count"}.

    Raises:
        StepFailed: The outline or an entry was not good enough.
    """
    outline = ctx.task("outline", write_outline)
    # Each item names the outline it belongs to, so that the details of another outline are never taken for these.
    made_from = value_hash(outline)
    items = [{"order": row["order"], "outline": made_from} for row in outline["entries"]]

    # Not a function within this one: a worker elsewhere must find it by its name.
    details = ctx.map("entry", items, partial(write_entry, outline), key=lambda item: item["order"], warm=True)
    course = course_of(ctx.pin("catalogue"))
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
    """The outline as JSON, keeping every rule of outline_rules.

    Raises:
        TaskRejected: Refused, or still wrong after the last revision.
    """
    asks = asks_of(ctx)
    plan = make_plan(asks.course, int(ctx.settings.get("lessons") or DEFAULT_LESSONS))

    def read(text: str) -> Examined[Outline]:
        answer = examine(text, Outline)
        faults = outline_problems(asks.course, plan, answer.value) if answer.value else []
        return Examined(None, tuple(faults), answer.raw) if faults else answer

    outline = ask_until_valid(ctx, lambda draft: asks.outline(plan, draft), read, "the outline")
    return {"entries": [row.model_dump(mode="json") for row in outline.entries]}


def write_entry(outline: dict[str, Any], ctx: StepContext, item: dict[str, Any]) -> dict[str, Any]:
    """The details of one lesson, without its order."""
    order = int(item["order"])
    asks = asks_of(ctx)
    entries = [OutlineEntry.model_validate(row) for row in outline["entries"]]

    def read(text: str) -> Examined[EntryDetails]:
        answer = examine(text, EntryDetails)
        faults = entry_problems(entries[order - 1], answer.value) if answer.value else []
        return Examined(None, tuple(faults), answer.raw) if faults else answer

    details = ask_until_valid(ctx, lambda draft: asks.entry(entries, order, draft), read, f"entry {order}")
    return details.model_dump(mode="json", exclude={"order"})
