"""Applies corrections to a lesson's JSON: only where a finding allows it; everything else stays byte for byte."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pipeline.lessons.addresses import Steps, item_of, owner, steps_of
from pipeline.lessons.findings import Finding
from pipeline.lessons.lesson import CardPatch, Corrections, ItemPatch, ListPatch, NumberPatch, TextPatch
from pipeline.lessons.reading import SHAPE, tidy

Patch = TextPatch | ListPatch | NumberPatch | ItemPatch | CardPatch
#: Lists of numbers; a correction may give them as texts.
_NUMBERS = frozenset({"teaches", "mistakes"})


@dataclass(frozen=True)
class Scope:
    """Where corrections may change a lesson."""

    #: Addresses; what is below them is meant too.
    places: Sequence[str]
    #: Questions and examples that failed before: only their whole value is accepted.
    whole: Collection[str] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding], whole: Collection[str] = ()) -> Scope:
        """Return the scope of findings: the part of the lesson that each is about, and what it names besides."""
        places = [place for each in findings for place in (owner(each.where), *each.also)]
        return cls(tuple(dict.fromkeys(places)), whole)

    def refusal(self, patch: Patch) -> str:
        """Return why a patch is not accepted; "" where it is."""
        steps, path = steps_of(patch.path), patch.path
        if steps is None:
            return "is no address, e.g. c4.q2, c4.q2.answer, c2.text, key_points.1"
        if not any(_within(path, place) for place in self.places):
            return "is not what a finding names; leave it as it is"
        if (item := item_of(path)) in self.whole and not (path == item and isinstance(patch, ItemPatch)):
            return f"has failed twice: write the whole question anew, as an item at {item}"
        return ""


def apply(lesson: Any, corrections: Corrections, scope: Scope) -> tuple[Any, list[Finding]]:
    """Return the lesson with the patches, and a finding for each that could not be applied."""
    made, refused = copy.deepcopy(lesson), []
    for patch in corrections.patches:
        why = scope.refusal(patch) or _put(made, steps_of(patch.path) or (), _value(patch))
        if why:
            refused.append(Finding(SHAPE, "W", patch.path, f"the correction {why}", ""))
    return tidy(made), refused


def _within(path: str, place: str) -> bool:
    if place == "cards":
        return path == "cards" or steps_of(path)[:1] == ("cards",)  # type: ignore[index]
    return path == place or path.startswith((f"{place}.", f"{place}("))


def _value(patch: Patch) -> Any:
    if isinstance(patch, TextPatch):
        return patch.text or None
    if isinstance(patch, ListPatch):
        numbers = patch.path.rpartition(".")[2] in _NUMBERS and all(text.isdecimal() for text in patch.texts)
        return [int(text) if numbers else text for text in patch.texts]
    if isinstance(patch, NumberPatch):
        return patch.number
    return (patch.item if isinstance(patch, ItemPatch) else patch.card).model_dump(mode="json", exclude_none=True)


def _put(lesson: Any, steps: Steps, value: Any) -> str:
    """Put a value at its place, None: take away what is there; returns why it cannot be done, else ""."""
    node = lesson
    for step, after in pairwise(steps):
        below = _below(node, step, [] if isinstance(after, int) else {})
        if below is None:
            return "is nowhere in the lesson"
        node = below
    return _set(node, steps[-1], value)


def _below(node: Any, step: str | int, empty: Any) -> Any:
    """Return what stands at a step; one place beyond a list's end, and a field that is absent, begin there."""
    if isinstance(step, int):
        if not isinstance(node, list) or step > len(node):
            return None
        if step == len(node):
            node.append(empty)
        return node[step]
    return node.setdefault(step, empty) if isinstance(node, dict) else None


def _set(node: Any, step: str | int, value: Any) -> str:
    if isinstance(step, int) != isinstance(node, list) or not isinstance(node, (list, dict)):
        return "is nowhere in the lesson"
    if isinstance(step, int):
        if step > len(node) or (step == len(node) and value is None):
            return f"is beyond the end: there are {len(node)}"
        node[step : step + 1] = [] if value is None else [value]
    elif value is None:
        node.pop(step, None)
    else:
        node[step] = value
    return ""
