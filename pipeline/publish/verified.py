"""What stands behind an answer: computed again by code, or nobody's check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.publish.view import LessonView

COMPUTED = "Checked by calculation."
PARTLY = "Checked by calculation in part."
NOBODY = "Not checkable by code: a person must judge it."

#: Kinds whose key carries the calculation; code repeats it before a lesson is published.
_COMPUTED_KINDS = frozenset(
    {
        "numeric", "surd", "fraction", "power", "algebra", "equation", "system", "inequality", "statistics",
        "geometry", "trig", "vector", "science",
    }
)  # fmt: skip


def verified(answer: Mapping[str, Any]) -> str:
    """One of COMPUTED, PARTLY, NOBODY for an answer."""
    kind = answer["kind"]
    if kind == "structured":
        found = {verified(part["answer"]) for part in answer["parts"]}
        return found.pop() if len(found) == 1 else PARTLY
    if kind == "mcq":
        options, key = answer["options"], int(answer["key"])
        return COMPUTED if key < len(options) and options[key].get("expression") else NOBODY
    return COMPUTED if kind in _COMPUTED_KINDS else NOBODY


def counts(lessons: Iterable[LessonView]) -> Counter[str]:
    """How many questions of these lessons stand how."""
    return Counter(verified(question.item["answer"]) for lesson in lessons for question in lesson.questions)
