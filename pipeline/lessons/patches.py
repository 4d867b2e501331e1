"""Applies corrections to a lesson's JSON: only where a finding allows it; everything else stays byte for byte."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pipeline.content.addresses import Steps, item_of, owner, steps_of
from pipeline.content.findings import Finding
from pipeline.content.lesson_reader import SHAPE, tidy

#: What a patch calls the value that it puts at its path; the wire schema has all but the last.
_VALUES = ("text", "texts", "number", "item", "card", "value")
#: Lists of numbers; a correction may give them as texts.
_NUMBERS = frozenset({"teaches", "mistakes"})


@dataclass(frozen=True)
class Patch:
    """A new value at an address; None: what is there is taken away."""

    path: str
    value: Any


@dataclass(frozen=True)
class PatchScope:
    """Where corrections may change a lesson."""

    #: Addresses; what is below them is meant too.
    places: Sequence[str]
    #: Questions that failed before: only their whole value is accepted.
    whole: Collection[str] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding], whole: Collection[str] = ()) -> PatchScope:
        """Return the scope of findings: the part of the lesson that each is about, and what it names besides."""
        places = [place for each in findings for place in (owner(each.where), *each.also)]
        return cls(tuple(dict.fromkeys(places)), whole)

    def refusal(self, patch: Patch) -> str:
        """Return why a patch is not accepted; "" where it is."""
        steps, path = steps_of(patch.path), patch.path
        if steps is None:
            return "is at no address, e.g. c4.q2, c4.q2.answer, c2.text, key_points.1"
        if not any(_within(steps, path, place) for place in self.places):
            return "is not what a finding names; it was left out"
        if (item := item_of(path)) in self.whole and not (path == item and isinstance(patch.value, dict)):
            return f"is a part of a question that has failed twice: write the whole question anew, as item at {item}"
        if patch.value is None and path == item and not {"cards", path.partition(".")[0]} & {*self.places}:
            return "takes a question away; write another in its place"
        return ""


def read_patches(raw: Any) -> tuple[list[Patch], str]:
    """Return the patches of a reply, or why it has none; what a patch puts is checked with the rest of the lesson."""
    rows = raw.get("patches") if isinstance(raw, Mapping) else None
    if not isinstance(rows, list) or not rows:
        return [], 'the answer has no patches: {"patches": [{"path": …, "text": …}]}'
    found = []
    for row in rows:
        names = [name for name in _VALUES if name in row] if isinstance(row, Mapping) else []
        if len(names) != 1 or not isinstance(row.get("path"), str):
            return [], f"a patch has a path and one of {', '.join(_VALUES[:-1])}; found {str(row)[:80]}"
        value = None if row[names[0]] == "" else row[names[0]]
        found.append(Patch(row["path"].strip(), value))
    return found, ""


def apply(lesson: Any, patches: Sequence[Patch], scope: PatchScope) -> tuple[Any, list[Finding]]:
    """Return the lesson with the patches, and a finding for each that was refused or could not be applied."""
    made, refused = copy.deepcopy(lesson), []
    # What is taken away goes last, from the end, so that every address means what it meant.
    gone = sorted(
        (each for each in patches if each.value is None),
        key=lambda each: [str(step).zfill(3) for step in steps_of(each.path) or ()],
    )
    for patch in (*(each for each in patches if each.value is not None), *reversed(gone)):
        why = scope.refusal(patch) or _put(made, steps_of(patch.path) or (), _fitting(patch))
        if why:
            refused.append(Finding(SHAPE, "W", patch.path, f"the correction {why}", ""))
    return tidy(made), refused


def _within(steps: Steps, path: str, place: str) -> bool:
    if place == "cards":
        return steps[0] == "cards"
    return path == place or path.startswith((f"{place}.", f"{place}("))


def _fitting(patch: Patch) -> Any:
    """Return the value; numbers that were given as texts are numbers."""
    value, name = patch.value, patch.path.rpartition(".")[2]
    if name in _NUMBERS and isinstance(value, list):
        return [int(each) if isinstance(each, str) and each.isdecimal() else each for each in value]
    return int(value) if name in ("minutes", "mistake") and isinstance(value, str) and value.isdecimal() else value


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
    if isinstance(step, int) and isinstance(node, list):
        if step > len(node) or (step == len(node) and value is None):
            return f"is beyond the end: there are {len(node)}"
        node[step : step + 1] = [] if value is None else [value]
        return ""
    if isinstance(step, int) or not isinstance(node, dict):
        return "is nowhere in the lesson"
    if value is None:
        node.pop(step, None)
    else:
        node[step] = value
    return ""
