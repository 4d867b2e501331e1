"""Decides how an offline scheme names and explains each place of the plan; which lesson covers what is the plan's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.frameworks import Region, region_of
from pipeline.lessons.course import Course
from pipeline.lessons.drafting.course import TITLE_ROOM, Outcome, outcomes, printable
from pipeline.lessons.plan import make_plan

Json = dict[str, Any]


def outline(course: Mapping[str, Any], plan: Mapping[str, Any] | None, lessons: int) -> list[Json]:
    """Return the outline entries for a plan (as `Plan.to_json`), or for so many lessons where there is none yet."""
    slots = (plan or make_plan(Course.from_json(course), lessons).to_json())["slots"]
    every = outcomes(course)
    owner = {point.id: outcome for outcome in every if not outcome.cross_cutting for point in outcome.points}
    across = [outcome.id for outcome in every if outcome.cross_cutting]
    entries: list[Json] = []
    for number, slot in enumerate(slots):
        found = list({owner[point].id: owner[point] for point in slot["points"]}.values())
        entries.append(_entry(slot, found, _cross(across, number, len(slots)), region_of(course)))
    return _parted(entries)


def _parted(entries: list[Json]) -> list[Json]:
    """Number the parts of what takes several lessons, so that no two have one name."""
    uses = Counter(entry["label"] for entry in entries)
    so_far: Counter[str] = Counter()
    for entry in entries:
        label = entry["label"]
        so_far[label] += 1
        if uses[label] > 1:
            part = f" ({so_far[label]})"
            entry["label"] = printable(label, TITLE_ROOM - len(part)) + part
    return entries


def _cross(across: Sequence[str], number: int, lessons: int) -> list[str]:
    """Return the cross-cutting outcomes of a lesson: in turn; several where there are more of them than lessons."""
    return list(across[number % len(across) :: lessons][:6]) if across else []


_LABELS = {
    "teach": "{title}",
    "independent_practice": "Independent practice: {title}",
    "formative_assessment": "Short assessment: {title}",
    "revision": "Revision: {title}",
    "mock_exam": "Mock exam: {title}",
}
_REASONS = {
    "teach": "Follows the recommended order of the course within {group}.",
    "independent_practice": "Pupils work alone on what the lessons before taught, before it is assessed.",
    "formative_assessment": "Shows what the class can do alone after the lessons before, while there is time to act.",
    "revision": "Comes back to earlier lessons after a gap, so that they are recalled again.",
    "mock_exam": "Near the end, so that pupils meet exam conditions and there is a picture of the whole course.",
}
#: More outcomes than these are named by the first and the last.
_MOST_NAMED = 2


def _entry(slot: Mapping[str, Any], found: Sequence[Outcome], cross: list[str], region: Region) -> Json:
    kind = slot["lesson_type"]
    group = printable(found[-1].group, 56, fallback="The course")
    label = printable(region.said(_LABELS[kind]).format(title=_together([outcome.title for outcome in found])), 100)
    return {
        "order": slot["order"],
        "lesson_type": kind,
        "block": group if len(group) >= 5 else f"Block {group}",
        "outcome_refs": [outcome.id for outcome in found],
        "points": list(slot["points"]),
        "cross_cutting": cross,
        "label": label if len(label) >= 10 else f"{label}: the points of the course",
        "rationale": region.said(_REASONS[kind]).format(group=group),
    }


def _together(titles: Sequence[str]) -> str:
    if len(titles) == 1:
        return titles[0]
    joint = " and " if len(titles) <= _MOST_NAMED else " to "
    limit = 38
    return printable(titles[0], limit) + joint + printable(titles[-1], limit)
