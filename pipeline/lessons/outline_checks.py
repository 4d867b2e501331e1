"""What an outline and its entries must keep to before anything more is bought; every fault in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pipeline.lessons.course import Course
from pipeline.lessons.plan import MAX_OUTCOMES, POINT_LIMITS, Plan
from pipeline.lessons.schemas import EntryDetails, Outline, OutlineEntry

#: A kind's number may differ from the plan's by this share of it, and always by one.
TOLERANCE = 0.25
#: The mock exam is one of the last lessons.
MOCK_AMONG_LAST = 3
#: Lessons a revision draws on, where there are so many before it.
REVISION_LESSONS = 3
#: Minutes of a lesson that is no exam.
LESSON_MINUTES = (30, 100)


def outline_problems(course: Course, plan: Plan, outline: Outline) -> list[str]:
    """Return everything wrong with an outline; empty where the scheme can be made from it."""
    entries = outline.entries
    found = [*_orders(plan, entries), *_references(course, entries)]
    if found:
        # The rules below would only say the same again in other words.
        return found
    return [
        *_coverage(course, plan, entries),
        *_pattern(plan, entries),
        *_sequence(entries),
        *_cross_cutting(course, entries),
    ]


def entry_problems(entry: OutlineEntry, details: EntryDetails) -> list[str]:
    """Return everything wrong with the details of one lesson."""
    found = []
    if details.order != entry.order:
        found.append(f"order: {details.order}, wanted {entry.order}")
    late = [order for order in details.prerequisites if not 1 <= order < entry.order]
    if late:
        found.append(f"prerequisites: {late} are not earlier than lesson {entry.order}")
    low, high = LESSON_MINUTES
    if entry.lesson_type != "mock_exam" and not low <= details.minutes <= high:
        found.append(f"minutes: {details.minutes}, wanted {low} to {high}")
    return found


def _orders(plan: Plan, entries: Sequence[OutlineEntry]) -> Iterator[str]:
    if len(entries) != plan.lessons:
        yield f"entries: {len(entries)} lessons, wanted {plan.lessons}"
    for place, entry in enumerate(entries, start=1):
        if entry.order != place:
            yield f"entries.{place - 1}.order: {entry.order}, wanted {place}; orders rise by one without gaps"
            return


def _references(course: Course, entries: Sequence[OutlineEntry]) -> Iterator[str]:
    owner = {point.id: out.id for out in course.outcomes() for point in out.points}
    outcomes = {out.id for out in course.outcomes()}
    across = {out.id for out in course.outcomes(cross_cutting=True)}
    for entry in entries:
        where = f"lesson {entry.order}"
        for ref in entry.outcome_refs:
            if ref in across:
                yield f"{where}: {ref} is cross-cutting; it belongs in cross_cutting, not in outcome_refs"
            elif ref not in outcomes:
                yield f"{where}: there is no outcome {ref} in the catalogue"
            elif ref not in {owner.get(point) for point in entry.points}:
                yield f"{where}: no point of {ref} is listed"
        yield from (
            f"{where}: {ref} is not a cross-cutting outcome" for ref in entry.cross_cutting if ref not in across
        )
        yield from _points(where, entry, owner)


def _points(where: str, entry: OutlineEntry, owner: Mapping[str, str]) -> Iterator[str]:
    for ref in entry.points:
        if ref not in owner:
            yield f"{where}: there is no point {ref} in the catalogue"
        elif owner[ref] not in entry.outcome_refs:
            yield f"{where}: point {ref} belongs to {owner[ref]}, which is not in outcome_refs"


def _coverage(course: Course, plan: Plan, entries: Sequence[OutlineEntry]) -> Iterator[str]:
    teach = [entry for entry in entries if entry.lesson_type == "teach"]
    taught = {point for entry in teach for point in entry.points}
    for out in course.outcomes():
        if out.id in plan.covered:
            if missing := [point.id for point in out.points if point.id not in taught]:
                yield f"no teach lesson teaches {', '.join(missing)} of {out.id}"
        elif any(out.id in entry.outcome_refs for entry in entries):
            yield f"{out.id} is outside this scheme ({plan.lessons} lessons reach as far as {plan.covered[-1]})"
    for entry in teach:
        if len(entry.outcome_refs) > MAX_OUTCOMES:
            yield f"lesson {entry.order}: {len(entry.outcome_refs)} outcomes, wanted at most {MAX_OUTCOMES}"
        if len(entry.points) > plan.max_points:
            yield f"lesson {entry.order}: {len(entry.points)} points, wanted at most {plan.max_points}"


def _pattern(plan: Plan, entries: Sequence[OutlineEntry]) -> Iterator[str]:
    kinds = [entry.lesson_type for entry in entries]
    if kinds[0] != "teach":
        yield f"lesson 1 is {kinds[0]}, wanted teach"
    for kind in ("teach", *POINT_LIMITS):
        wanted, there = plan.counts.get(kind, 0), sum(other == kind for other in kinds)
        slack = 0 if kind == "mock_exam" or not wanted else max(1, round(wanted * TOLERANCE))
        low, high = (max(1, wanted - slack), wanted + slack) if wanted else (0, 0)
        if not low <= there <= high:
            wish = str(low) if low == high else f"{low} to {high}"
            yield f"{there} lessons of type {kind}, wanted {wish} of {plan.lessons}"
    if "mock_exam" in kinds and "mock_exam" not in kinds[-MOCK_AMONG_LAST:]:
        yield f"the mock exam is lesson {kinds.index('mock_exam') + 1}, wanted among the last {MOCK_AMONG_LAST}"


def _sequence(entries: Sequence[OutlineEntry]) -> Iterator[str]:
    taught: dict[str, int] = {}
    for entry in entries:
        if entry.lesson_type == "teach":
            for point in entry.points:
                taught.setdefault(point, entry.order)
            continue
        limit = POINT_LIMITS[entry.lesson_type]
        if len(entry.points) > limit:
            yield f"lesson {entry.order}: {len(entry.points)} points, wanted at most {limit} in {entry.lesson_type}"
        if early := [point for point in entry.points if point not in taught]:
            yield f"lesson {entry.order}: {', '.join(early)} not taught before it"
        if entry.lesson_type == "revision":
            yield from _mixes(entry, taught)


def _mixes(entry: OutlineEntry, taught: Mapping[str, int]) -> Iterator[str]:
    sources = {taught[point] for point in entry.points if point in taught}
    least = min(REVISION_LESSONS, len(set(taught.values())))
    if len(sources) < least:
        yield f"lesson {entry.order}: revises {len(sources)} earlier lessons, wanted at least {least}"


def _cross_cutting(course: Course, entries: Sequence[OutlineEntry]) -> Iterator[str]:
    attached = {ref for entry in entries for ref in entry.cross_cutting}
    missing = [out.id for out in course.outcomes(cross_cutting=True) if out.id not in attached]
    if missing:
        yield f"no lesson practises {', '.join(missing)}; attach cross-cutting outcomes to lessons they fit"
