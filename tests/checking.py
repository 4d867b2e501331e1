"""A shipped course, its scheme and its lessons by the offline author."""

from __future__ import annotations

from functools import cache
from typing import Any

from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.offline import answer

Json = dict[str, Any]


MATHS = Catalogue().course("mathematics", "national_5")


def scheme_of(course: Json, lessons: int) -> list[Json]:
    """The entries of a course's scheme by the offline author, with their details."""
    outline = answer({"kind": "outline", "course": course, "lessons": lessons})["entries"]
    return [
        {**entry, **answer({"kind": "entry", "course": course, "entries": outline, "order": entry["order"]})}
        for entry in outline
    ]


def lesson_of(course: Json, entries: list[Json], order: int) -> Json:
    return answer({"kind": "lesson", "course": course, "entry": entries[order - 1], "entries": entries})


@cache
def course() -> Json:
    return MATHS.to_json()
