"""The closed schema of a topic: which keys there are, what each holds, and what the keys say about each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from pipeline.lessons.bank import printing
from pipeline.lessons.bank.source import Fault, Mapping, Sequence, Text
from pipeline.lessons.maths.units import unit

#: Key -> what it holds: a text, texts (one may stand alone), names (a mapping of texts) or other groups.
TOPIC = {
    "bank": "text", "topic": "text", "course": "text", "teaches": "text", "can": "text", "aim": "text",
    "prior": "texts", "facts": "texts", "keywords": "names", "misconceptions": "misconceptions", "explain": "text",
    "plain": "text", "non_example": "text", "example": "items", "starters": "items", "questions": "items",
}  # fmt: skip
TOPIC_MAY = {"calculator": "text", "numbers": "text", "letters": "text", "watch_for": "texts"}
ITEM = {"stem": "text", "working": "texts", "marks": "texts"}
ITEM_MAY = {
    "id": "text", "kind": "text", "level": "text", "asks": "text", "prior": "text", "calculator": "text",
    "numbers": "text", "let": "let",
    "where": "texts", "answer": "text", "words": "text", "parts": "parts", "as": "text", "lead": "text",
    "form": "text", "unit": "text", "expression": "text", "wrong": "wrong", "accept": "texts", "must": "texts",
    "reject": "texts", "feedback": "text", "hint": "text", "follow": "text", "alternative": "text", "figure": "figures",
}  # fmt: skip
PART = {"ask": "text"}
PART_MAY = dict.fromkeys(("answer", "words", "as", "lead", "form", "unit", "expression"), "text")
WRONG = {"why": "text"}
WRONG_MAY = dict.fromkeys(("is", "text", "as", "by", "form"), "text")
#: Key -> the values it may have.
_VALUES = {
    "bank": "1", "kind": "choice", "level": "[1-5]", "calculator": "yes|no", "numbers": "decimal|fraction",
    "asks": r"[1-9]\d?(?:[ ,]+[1-9]\d?)*", "prior": "[1-5]", "letters": r"[A-Za-zΑ-ω](?: [A-Za-zΑ-ω])*",
    "course": "[a-z0-9_]+/[a-z0-9_]+", "teaches": r"[a-z0-9_.]+", "id": "[a-z][a-z0-9_]*",
}  # fmt: skip
GROUPS = ("example", "starters", "questions")
#: How many items a group may have.
_COUNTS = {"example": (1, 3), "starters": (1, 6), "questions": (4, 24)}


def problems(root: Mapping) -> list[Fault]:
    """Return what is wrong with the shape of a topic; puts a text that stands alone for several into a list."""
    found = list(_group(root, "topic", TOPIC, TOPIC_MAY))
    if not found:
        found = list(chain(_ids(root), *(_item(root, item, group) for group in GROUPS for item in root[group])))
    return found


def _group(group: Any, what: str, must: dict[str, str], may: dict[str, str]) -> Iterator[Fault]:
    if not isinstance(group, Mapping):
        yield Fault(getattr(group, "line", 1), f"{what}: keys and values are wanted here")
        return
    known = {**must, **may}
    for key in group:
        if key not in known:
            yield Fault(key.line, f"'{key}' is not known; there are {', '.join(known)}")
    for key in must:
        if key not in group:
            yield Fault(group.line, f"{what}: '{key}' is missing")
    for key, value in group.items():
        if key in known:
            yield from _value(group, key, value, known[key])


def _value(group: Mapping, key: Text, value: Any, kind: str) -> Iterator[Fault]:
    if kind == "texts" and isinstance(value, Text):
        group[key] = Sequence([value])
        group[key].line = value.line
    elif kind in ("text", "texts"):
        texts = value if isinstance(value, Sequence) and kind == "texts" else [value]
        if not texts or not all(isinstance(text, Text) for text in texts):
            yield Fault(key.line, f"'{key}' holds {'a text' if kind == 'text' else 'texts'}")
        elif isinstance(value, Text) and key in _VALUES and not re.fullmatch(_VALUES[key], value):
            yield Fault(value.line, f"'{key}: {value}' is not one of {_VALUES[key]}")
    elif kind == "figures":
        for figure in value if isinstance(value, Sequence) else [value]:
            yield from _names(figure, "a figure", "kind")
    elif kind in ("names", "let"):
        yield from _names(value, key) if kind == "names" else _group(value, "let", {}, dict.fromkeys(value, "any"))
    elif kind != "any":
        yield from _parts(key, value, kind)


def _names(group: Any, what: str, needed: str = "") -> Iterator[Fault]:
    if not isinstance(group, Mapping) or not all(isinstance(value, Text) for value in group.values()):
        yield Fault(getattr(group, "line", 1), f"{what}: wanted one 'name: text' a line")
    elif needed and needed not in group:
        yield Fault(group.line, f"{what}: '{needed}' is missing")


def _parts(key: Text, value: Any, kind: str) -> Iterator[Fault]:
    if kind == "misconceptions":
        for name, entry in value.items() if isinstance(value, Mapping) else [("", value)]:
            yield from _group(entry, f"misconception '{name}'", {"belief": "text", "correction": "text"}, {})
        return
    if not isinstance(value, Sequence):
        yield Fault(key.line, f"'{key}' holds a list (lines that begin with -)")
        return
    must, may = {"items": (ITEM, ITEM_MAY), "parts": (PART, PART_MAY), "wrong": (WRONG, WRONG_MAY)}[kind]
    low, high = _COUNTS.get(key, (1, 6))
    if not low <= len(value) <= high:
        yield Fault(key.line, f"'{key}' has {len(value)} entries, wanted {low} to {high}")
    for entry in value:
        yield from _group(entry, str(entry.get("id", key)) if isinstance(entry, Mapping) else key, must, may)


def _ids(root: Mapping) -> Iterator[Fault]:
    seen: set[str] = set()
    for group in GROUPS:
        for item in root[group]:
            if group == "questions" and ("id" not in item or "level" not in item or "feedback" not in item):
                yield Fault(item.line, "a question needs 'id', 'level' and 'feedback'")
            if (name := item.get("id", "")) in seen and name:
                yield Fault(item.line, f"the id '{name}' is given twice")
            seen.add(name)


def _item(root: Mapping, item: Mapping, group: str) -> Iterator[Fault]:
    name, wrongs = item.get("id", group), item.get("wrong", [])
    for spec in item.get("parts", [item]):
        if ("answer" in spec) == ("words" in spec):
            yield Fault(spec.line, f"{name}: one of 'answer' and 'words' is wanted")
    if "parts" in item and (item.keys() & {"answer", "words", "kind"} or not 2 <= len(item["parts"]) <= 6):
        yield Fault(item.line, f"{name}: a question with parts has 2 to 6 of them, no answer of its own and no kind")
    if not (3 if item.get("kind") == "choice" else 0) <= len(wrongs) <= 4:
        yield Fault(item.line, f"{name}: a choice needs three or four wrong answers, other questions have four at most")
    if len(item["working"]) > 8 or len(item["marks"]) > 15:
        yield Fault(item.line, f"{name}: at most 8 lines of working and 15 marks")
    for wrong in wrongs:
        if ("is" in wrong) == ("text" in wrong):
            yield Fault(wrong.line, f"{name}: a wrong answer has one of 'is' and 'text'")
        if wrong.get("by") not in (None, *root["misconceptions"]):
            yield Fault(wrong["by"].line, f"{name}: misconception '{wrong['by']}' is not in this file")
    told = " ".join([item["stem"], *(part["ask"] for part in item.get("parts", ()))])
    for spec in (item, *item.get("parts", ()), *wrongs):
        yield from _print(name, spec, told)


def _print(name: str, spec: Mapping, told: str) -> Iterator[Fault]:
    if not printing.known_form(form := spec.get("form", "")):
        yield Fault(form.line, f"{name}: form '{form}' is not known; there are {', '.join(printing.FORMS)}")
    if unit(spec.get("unit", "m")) is None and spec["unit"] not in told:
        yield Fault(spec["unit"].line, f"{name}: unit '{spec['unit']}' is neither known nor a word of the stem")
