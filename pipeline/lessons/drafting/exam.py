"""Offline mock exams: a card for each paper of the catalogue, with its marks, calculator rule and kinds of question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.bank.template import Template
from pipeline.lessons.drafting.choice import Chooser, Chosen, Json, TopicPart
from pipeline.lessons.drafting.course import printable
from pipeline.publish.view import has_calculators

#: Minutes and marks of an exam whose catalogue gives none.
GENERAL_MINUTES, GENERAL_MARKS = 90, 60
#: Questions of one paper.
LEAST_ITEMS, MOST_ITEMS = 4, 60
_RUBRIC = (
    (0.7, "Ready: keep in practice with one paper a week."),
    (0.5, "Nearly: correct each missed question, then ask for two more like it."),
    (0.0, "Not yet: go back to the lessons of the questions you missed."),
)


@dataclass(frozen=True, slots=True)
class Paper:
    """A timed component of the assessment."""

    id: str
    title: str
    marks: int
    minutes: int
    calculator: bool
    #: All of its questions are multiple choice, or none is; None for both.
    choice: bool | None


def timed_components(course: Mapping[str, Any]) -> list[Paper]:
    """Return the papers of a course; one general paper, or one for each named part, where it gives no times."""
    components = (course.get("assessment") or {}).get("components", ())
    found = [_paper(part) for part in components if part.get("minutes") and (part.get("marks") or 0) > 0]
    if found:
        return found
    parts: Sequence[str] = next((part["parts"] for part in components if part.get("parts")), [])
    if set(parts) == {"non_calculator", "calculator"}:
        return [
            Paper("non_calculator", "Without a calculator", 24, 36, calculator=False, choice=None),
            Paper("calculator", "With a calculator", 36, 54, calculator=True, choice=None),
        ]
    return [Paper("", "Practice paper", GENERAL_MARKS, GENERAL_MINUTES, calculator=True, choice=None)]


def rules_of_calculators(course: Mapping[str, Any]) -> bool:
    """Say whether the catalogue tells in which papers a calculator is used; else questions say so themselves."""
    components = (course.get("assessment") or {}).get("components", ())
    return any(part.get("minutes") and part.get("calculator") is not None for part in components)


def _paper(part: Mapping[str, Any]) -> Paper:
    title = printable(part["title"], 60)
    kinds = part.get("question_types") or ()
    choice = "multiple choice" in title.lower() or "multiple_choice" in kinds
    return Paper(
        part["id"],
        title,
        int(part["marks"]),
        int(part["minutes"]),
        part.get("calculator") is not False,
        choice,
    )


def papers(chooser: Chooser, parts: Sequence[TopicPart], course: Mapping[str, Any]) -> list[Json]:
    """Return a card for each paper that the topics can fill, its marks exactly those of the catalogue if they allow."""
    weights = _weights(course)
    left = timed_components(course)
    every: list[tuple[Paper, list[Chosen]]] = []
    while left:
        paper, *left = left
        every.append((paper, _chosen(paper, left, chooser, parts, weights)))
    return [
        _card(paper, chooser, chosen, calculators=has_calculators(course))
        for paper, chosen in every
        if len(chosen) >= LEAST_ITEMS
    ]


def _weights(course: Mapping[str, Any]) -> dict[str, float]:
    """Return outcome id → share of its group in a paper (1 where the catalogue gives none)."""
    shares: dict[str, tuple[str, float]] = {}
    for group in course.get("groups", ()):
        weight = group.get("weight") or {}
        share = (weight.get("min", 0) + weight.get("max", 0)) / 200 if weight else 1.0
        shares |= {outcome["id"]: (group["id"], share) for outcome in group.get("outcomes") or ()}
    count = Counter(group for group, _ in shares.values())
    return {ref: share / count[group] for ref, (group, share) in shares.items()}


def _chosen(
    paper: Paper,
    later: Sequence[Paper],
    chooser: Chooser,
    parts: Sequence[TopicPart],
    weights: Mapping[str, float],
) -> list[Chosen]:
    """Return questions whose marks add up to the paper's, each part in its share, points not asked yet first."""
    fitting = {part.outcome.id: [one for one in part.topic.questions if _fits(paper, one)] for part in parts}
    sizes = {one.marks for templates in fitting.values() for one in templates}
    reachable = _sums(sizes, paper.marks)
    got: Counter[str] = Counter()
    picked: list[Chosen] = []
    left = paper.marks
    for part in parts:
        for point in part.points.values():
            elsewhere = [one for one in part.topic.questions if any(_fits(other, one) for other in later)]
            if chooser.asking[point] or any(point in part.asked(one) for one in elsewhere):
                continue
            usable = [one for one in fitting[part.outcome.id] if left - one.marks in reachable]
            if chosen := chooser.take(part, usable, point=point):
                picked.append(chosen)
                left -= chosen.template.marks
    spent: set[str] = set()
    while left and len(picked) < MOST_ITEMS and len(spent) < len(parts):
        part = max(
            (part for part in parts if part.outcome.id not in spent),
            key=lambda one: (weights.get(one.outcome.id, 1.0) / (1 + got[one.outcome.id]), -parts.index(one)),
        )
        chosen = _next(chooser, part, fitting[part.outcome.id], left, reachable)
        if chosen is None:
            spent.add(part.outcome.id)
            continue
        picked.append(chosen)
        got[part.outcome.id] += chosen.template.marks
        left -= chosen.template.marks
    return sorted(picked, key=lambda one: (one.template.level, one.template.marks))


def _fits(paper: Paper, template: Template) -> bool:
    if template.calculator and not paper.calculator:
        return False
    return paper.choice is None or paper.choice is (template.kind == "choice")


def _sums(sizes: set[int], most: int) -> set[int]:
    """Return the totals up to `most` that questions of these sizes can reach."""
    found = {0}
    for total in range(1, most + 1):
        if any(total - size in found for size in sizes):
            found.add(total)
    return found


def _next(
    chooser: Chooser, part: TopicPart, templates: Sequence[Template], left: int, reachable: set[int]
) -> Chosen | None:
    """Return a question after which the rest of the marks can still be reached."""
    usable = [one for one in templates if one.marks <= left and left - one.marks in reachable]
    for point in part.points.values():
        if not chooser.asking[point] and (found := chooser.take(part, usable, level=3, point=point)):
            return found
    return chooser.take(part, usable, level=3)


def _card(paper: Paper, chooser: Chooser, chosen: Sequence[Chosen], *, calculators: bool) -> Json:
    total = sum(one.template.marks for one in chosen)
    rule = ("You may use a calculator. " if paper.calculator else "Do not use a calculator. ") if calculators else ""
    card: Json = {
        "kind": "assessment",
        "title": printable(f"Mock exam: {paper.title}", 100),
        "minutes": paper.minutes,
        "instructions": f"{total} marks. {rule}Work alone. Show each line of working.",
        "items": [chooser.item(one) for one in chosen],
        "rubric": list(_bands(total)),
    }
    return {**card, "component": paper.id} if paper.id else card


def _bands(total: int) -> Iterator[str]:
    for share, means in _RUBRIC:
        yield f"{-(-int(share * 10) * total // 10)}: {means}"
