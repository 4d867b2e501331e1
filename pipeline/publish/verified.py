"""What stands behind an answer: computed again by code, or nobody's check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.publish.view import LessonView

COMPUTED, TESTED, SUBSTITUTED, PARTLY, NOBODY = "computed", "point-tested", "substituted", "in part", "nobody"

#: How an answer of each kind is checked before its lesson may be published; the key carries the calculation.
_HOW = {
    **dict.fromkeys(
        ("numeric", "surd", "fraction", "power", "statistics", "geometry", "trig", "vector", "science"), COMPUTED
    ),
    "algebra": TESTED,
    "equation": SUBSTITUTED,
    "system": SUBSTITUTED,
    "inequality": SUBSTITUTED,
}
SENTENCES = {
    COMPUTED: "Checked by calculation.",
    TESTED: "Checked by calculation at many points.",
    SUBSTITUTED: "Checked by putting it back into the question.",
    PARTLY: "Checked by calculation in part; the rest is not checkable by code, a person must judge it.",
    NOBODY: "Not checkable by code: a person must judge it.",
}


def verified(answer: Mapping[str, Any]) -> str:
    """How an answer was checked: one of COMPUTED, TESTED, SUBSTITUTED, PARTLY, NOBODY."""
    kind = answer["kind"]
    if kind == "structured":
        found = {verified(part["answer"]) for part in answer["parts"]}
        if NOBODY in found and len(found) > 1:
            return PARTLY
        return found.pop() if len(found) == 1 else COMPUTED
    if kind == "mcq":
        key = answer["options"][int(answer["key"])]
        return COMPUTED if key.get("expression") and key.get("method") else NOBODY
    return _HOW.get(kind, NOBODY)


def counts(lessons: Iterable[LessonView]) -> Counter[str]:
    """How many questions of these lessons were checked how."""
    return Counter(verified(question.item["answer"]) for lesson in lessons for question in lesson.questions)
