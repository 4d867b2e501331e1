"""How many lessons of which kind, and which points each teaches: pure arithmetic over a course.

The model may distribute points otherwise; what it may not change is in outline_checks.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.frameworks import has_exam
from pipeline.lessons.course import Course, CourseOutcome

#: A teach lesson has at most so many learning outcomes and points.
MAX_OUTCOMES = 2
MAX_POINTS = 4
#: Points that a lesson of another kind can draw on: each must be asked at least once.
POINT_LIMITS = {"independent_practice": 8, "formative_assessment": 6, "revision": 8, "mock_exam": 24}
#: From here on a scheme has revision, and a mock exam where there are exams; below, teach lessons only.
PATTERN_FROM = 6
#: From here on it has independent practice and formative assessment too.
FULL_PATTERN_FROM = 8
#: One practice and one assessment for so many lessons, one revision for so many.
PRACTICE_EVERY, ASSESS_EVERY, REVISE_EVERY = 9, 9, 12


@dataclass(frozen=True, slots=True)
class Slot:
    """One lesson's place: what kind it is, and the points it teaches or draws on."""

    order: int
    lesson_type: str
    points: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"order": self.order, "lesson_type": self.lesson_type, "points": list(self.points)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scheme of so many lessons must hold."""

    lessons: int
    #: Lessons by kind.
    counts: dict[str, int]
    #: Outcome ids in teaching order.
    covered: tuple[str, ...]
    not_covered: tuple[str, ...]
    #: Points a teach lesson may have here; more than MAX_POINTS only where one outcome has too many.
    max_points: int
    #: A distribution that keeps every rule.
    slots: tuple[Slot, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as the outline request has it."""
        return {
            "lessons": self.lessons,
            "counts": dict(self.counts),
            "covered": list(self.covered),
            "not_covered": list(self.not_covered),
            "max_points": self.max_points,
            "slots": [slot.to_json() for slot in self.slots],
        }


def make_plan(course: Course, lessons: int) -> Plan:
    """Return the plan of a course in so many lessons (1 to 120)."""
    counts = _counts(lessons, exam=has_exam(course.to_json()))
    teach = counts["teach"]
    outcomes = course.outcomes()
    taken = _reach(outcomes, teach)
    covered = outcomes[:taken]
    owners = [(out.id, point.id) for out in covered for point in out.points]
    max_points = max(MAX_POINTS, -(-len(owners) // teach))
    chunks = _chunks(course, owners, teach, max_points)
    return Plan(
        lessons,
        counts,
        tuple(out.id for out in covered),
        tuple(out.id for out in outcomes[taken:]),
        max_points,
        tuple(_slots(counts, chunks)),
    )


def _counts(lessons: int, *, exam: bool) -> dict[str, int]:
    if lessons < PATTERN_FROM:
        return {"teach": lessons}
    others = {"mock_exam": 1} if exam else {}
    others["revision"] = max(1, lessons // REVISE_EVERY)
    if lessons >= FULL_PATTERN_FROM:
        others["independent_practice"] = max(1, lessons // PRACTICE_EVERY)
        others["formative_assessment"] = max(1, lessons // ASSESS_EVERY)
    return {"teach": lessons - sum(others.values()), **others}


def _reach(outcomes: Sequence[CourseOutcome], teach: int) -> int:
    """Return how many outcomes, from the first, fit into so many teach lessons; at least one."""
    used, points, here = 1, 0, 0
    for index, outcome in enumerate(outcomes):
        left = len(outcome.points)
        while left:
            if points == MAX_POINTS or here == MAX_OUTCOMES:
                used, points, here = used + 1, 0, 0
            step = min(left, MAX_POINTS - points)
            left, points, here = left - step, points + step, here + 1
        if used > teach:
            return max(1, index)
    return len(outcomes)


def _chunks(course: Course, owners: list[tuple[str, str]], teach: int, cap: int) -> list[tuple[str, ...]]:
    """Return the points in order, cut into `teach` lessons: even, along outcomes and groups where that is possible."""
    total = len(owners)
    if teach >= total:
        # More lessons than points: a point is taught over several lessons.
        return [(owners[index * total // teach][1],) for index in range(teach)]
    groups = [course.group_of(owner).id for owner, _ in owners]

    def cost(start: int, end: int) -> int | None:
        names = {owner for owner, _ in owners[start:end]}
        if end - start > cap or len(names) > MAX_OUTCOMES:
            return None
        torn = end < total and owners[end][0] == owners[end - 1][0]
        mixed = len(set(groups[start:end])) - 1
        # The square of what it misses the mean size by, times teach squared so that it stays whole.
        return ((end - start) * teach - total) ** 2 + teach**2 * ((3 if torn else 0) + 6 * mixed)

    @cache
    def best(start: int, lessons: int) -> tuple[int, tuple[int, ...]] | None:
        if lessons == 0:
            return (0, ()) if start == total else None
        found: tuple[int, tuple[int, ...]] | None = None
        for end in range(start + 1, min(total, start + cap) + 1):
            here = cost(start, end)
            rest = best(end, lessons - 1) if here is not None else None
            if here is not None and rest is not None and (found is None or here + rest[0] < found[0]):
                found = (here + rest[0], (end, *rest[1]))
        return found

    answer = best(0, teach)
    ends = answer[1] if answer else tuple(total * (index + 1) // teach for index in range(teach))
    starts = (0, *ends[:-1])
    return [tuple(point for _, point in owners[start:end]) for start, end in zip(starts, ends, strict=True)]


def _slots(counts: dict[str, int], chunks: list[tuple[str, ...]]) -> list[Slot]:
    """Teach lessons with the other kinds spread among them; the mock exam last."""
    after: dict[int, list[str]] = {}
    for kind in ("independent_practice", "formative_assessment", "revision"):
        number = counts.get(kind, 0)
        for index in range(number):
            after.setdefault(len(chunks) * (index + 1) // number, []).append(kind)
    slots: list[Slot] = []
    taught: list[tuple[str, ...]] = []
    since = 0
    for done, chunk in enumerate(chunks, start=1):
        slots.append(Slot(len(slots) + 1, "teach", chunk))
        taught.append(chunk)
        for kind in after.get(done, ()):
            # Revision mixes all so far; practice and assessment take what was new since the last of them.
            source = taught if kind == "revision" else taught[since:] or taught
            slots.append(Slot(len(slots) + 1, kind, _spread(source, POINT_LIMITS[kind])))
        if done in after:
            since = done
    if counts.get("mock_exam"):
        slots.append(Slot(len(slots) + 1, "mock_exam", _spread(taught, POINT_LIMITS["mock_exam"])))
    return slots


def _spread(lessons: Sequence[tuple[str, ...]], limit: int) -> tuple[str, ...]:
    """Return at most `limit` points, evenly over the lessons, in teaching order."""
    points = list(dict.fromkeys(point for lesson in lessons for point in lesson))
    if len(points) <= limit:
        return tuple(points)
    return tuple(points[index * len(points) // limit] for index in range(limit))
