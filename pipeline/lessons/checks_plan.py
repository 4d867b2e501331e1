"""Rows 2 and 3: the lesson keeps to its place in the scheme, and covers what was planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.lessons.findings import Case, Fault
from pipeline.lessons.schemas import ExplainerCard, ModellingCard


def references(case: Case) -> Iterator[Fault]:
    """Row 2: outcome, cross-cutting and point ids equal the entry's; order, kind, calculator and time too."""
    lesson, entry = case.lesson, case.entry
    for name in ("outcome_refs", "cross_cutting"):
        yield from _same_ids(name, getattr(lesson, name), entry[name])
    for name in ("order", "lesson_type", "calculator", "minutes"):
        if getattr(lesson, name) != entry[name]:
            yield Fault(name, str(getattr(lesson, name)), str(entry[name]))
    planned = set(entry["points"])
    for index, point in enumerate(lesson.points):
        if point.ref not in planned:
            yield Fault(f"points.{index}.ref", f"{point.ref} is not planned", _some(sorted(planned)))
    for item in lesson.items():
        for ref in item.points:
            if ref not in planned:
                yield Fault(f"{item.id}.points", f"{ref} is not planned", _some(sorted(planned)))
    yield from _unknown(case)


def _same_ids(name: str, found: Sequence[str], wanted: Sequence[str]) -> Iterator[Fault]:
    if set(found) != set(wanted) or len(found) != len(set(found)):
        yield Fault(name, _some(found), _some(wanted))


def _unknown(case: Case) -> Iterator[Fault]:
    known = {outcome["id"] for group in case.course["groups"] for outcome in group["outcomes"]}
    for ref in (*case.lesson.outcome_refs, *case.lesson.cross_cutting):
        if ref not in known:
            yield Fault("outcome_refs", f"{ref} is not in the catalogue", "an id of the catalogue")


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:12]) or "none"


def points(case: Case) -> Iterator[Fault]:
    """Row 3: point → a card that teaches it → an item that asks it."""
    lesson = case.lesson
    listed = {point.ref: point for point in lesson.points}
    teaching = {card.id for card in lesson.cards if isinstance(card, ExplainerCard | ModellingCard)}
    asks = {item.id: set(item.points) for item in lesson.items()}
    for ref in case.entry["points"]:
        if ref not in listed:
            yield Fault("points", f"{ref} is missing", "every point of the scheme's entry")
            continue
        point = listed[ref]
        if lesson.lesson_type == "teach" and point.card not in teaching:
            yield Fault(f"points.{ref}.card", point.card, "an explainer or modelling card")
        silent = [name for name in point.items if ref not in asks[name]]
        if silent:
            yield Fault(
                f"points.{ref}.items", f"{', '.join(silent)} do not name the point", f"items with {ref} in points"
            )
