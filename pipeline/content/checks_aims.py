"""Checks of what a lesson says it teaches and takes for granted: its outcome and its prior knowledge (3, 25)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.content.findings import Case, Fault, Severity
from pipeline.content.lesson import ExplainerCard

_WORD = re.compile(r"[a-z]{3,}")
#: Words of outcomes and points that name no subject matter.
_GENERAL = frozenset((
    "can", "and", "the", "with", "for", "from", "their", "them", "they", "that", "this", "these", "those", "when",
    "which", "what", "how", "into", "its", "use", "uses", "using", "apply", "applies", "applying", "calculate",
    "calculates", "calculating", "find", "finds", "finding", "work", "working", "out", "solve", "solves",
    "solving", "explain", "explains", "explaining", "describe", "describes", "state", "show", "shows", "determine",
    "justify", "evaluate", "predict", "derive", "compare", "identify", "name", "make", "makes", "making", "choose",
    "choice", "read", "reads", "reading", "write", "writes", "writing", "know", "knows", "understand", "problem",
    "problems", "question", "questions", "simple", "straightforward", "real", "life", "situation", "situations",
    "context", "contexts", "skill", "skills", "different", "given", "values", "value", "number", "numbers", "one",
    "two", "three", "more", "most", "some", "each", "other", "answer", "answers", "method", "methods", "including",
    "include", "such", "are", "you", "not", "has", "have", "was", "were", "will", "than", "then", "also", "about",
    "between", "both", "all", "any", "lesson", "step", "steps", "stated", "positive", "negative", "reason",
))  # fmt: skip
#: Letters that two words share at least, as a part of the shorter one, where they are forms of one word.
_STEM = 5


def stems(text: str) -> set[str]:
    """Return the words of a text that name its matter, each cut to its first letters."""
    return {word.rstrip("s")[:_STEM] for word in _WORD.findall(text.lower().replace("-", " ")) if word not in _GENERAL}


def aim(case: Case) -> Iterator[Fault]:
    """Check that the outcome speaks of what the lesson teaches, and of each outcome of its entry."""
    lesson, entry = case.lesson, case.entry
    if entry["lesson_type"] != "teach":
        return
    named = stems(lesson.outcome)
    body = [card.text for card in lesson.cards if isinstance(card, ExplainerCard)]
    own = stems(
        " ".join([*body, *lesson.key_points, *lesson.keywords, lesson.title, *(i.ask for _, i in lesson.items())])
    )
    outcomes = _outcomes(case)
    mine = {ref: outcomes[ref] for ref in entry.get("outcome_refs", ()) if ref in outcomes}
    if named and len(named & own) * 2 < len(named):
        yield Fault("outcome", lesson.outcome, "what the lesson teaches")
        return
    others = {ref: words for ref, words in outcomes.items() if ref not in mine and ref.split(".")[0] != "reason"}
    shared = [len(named & words) for words in mine.values()]
    if not any(shared) and any(len(named & words) > 1 for words in others.values()):
        # The words of the explainers may be others than those of the course.
        grave: Severity = "W" if len(named & stems(" ".join(body))) * 2 >= len(named) else "R"
        yield Fault("outcome", lesson.outcome, "the outcome of the task", grave)


def _outcomes(case: Case) -> Mapping[str, set[str]]:
    """Return the words of each outcome of the course, with those of its points."""
    return {
        out["id"]: stems(" ".join([out["title"], *_points(out.get("points", ()))]))
        for group in case.course.get("groups", ())
        for out in group.get("outcomes", ())
    }


def _points(points: Iterable[Any]) -> list[str]:
    return [str(point["text"] if isinstance(point, Mapping) else point) for point in points]


def prior(case: Case) -> Iterator[Fault]:
    """Check that what pupils bring is not what the lesson teaches: a point of the task."""
    lesson = case.lesson
    if case.entry["lesson_type"] != "teach":
        return
    course = [out for group in case.course.get("groups", ()) for out in group.get("outcomes", ())]
    mine = [out for out in course if out["id"] in case.entry.get("outcome_refs", ())]
    ids = set(case.entry.get("points", ()))
    texts = [
        point for out in mine for point in out.get("points", ()) if isinstance(point, Mapping) and point["id"] in ids
    ]
    taught = [stems(text) for text in [*_points(texts), *(out["title"] for out in mine)]]
    for place, text in enumerate(lesson.prior, 1):
        # Earlier lessons may come close to this one.
        same = any(len(point) > 1 and point <= stems(text) for point in taught) and not text.startswith("lesson ")
        if same or any(len(stems(text)) > 2 and stems(text) == stems(key) for key in lesson.key_points):
            grave: Severity = "W" if same else "R"
            yield Fault(f"prior.{place}", f"{text!r} is what the lesson teaches", "what is needed to start", grave)
