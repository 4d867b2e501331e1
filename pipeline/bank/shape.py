"""The closed schema of a topic: which keys there are, what each holds, and what the keys say about each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pipeline.bank.yaml_text import YamlFault, YamlList, YamlMap, YamlText
from pipeline.maths import display
from pipeline.maths.units import unit

#: Key -> what it holds: a text, texts (one may stand alone), names (texts with names), a group; "!": it must be there.
TOPIC = {
    "bank": "text!", "topic": "text!", "course": "text!", "teaches": "text!", "can": "text!", "aim": "text!",
    "prior": "texts!", "facts": "texts!", "keywords": "names!", "misconceptions": "misconceptions!",
    "explain": "text!", "plain": "text!", "non_example": "text!", "example": "items!", "starters": "items!",
    "questions": "questions!", "calculator": "text", "numbers": "text", "letters": "text", "watch_for": "texts",
}  # fmt: skip
ITEM = {
    "stem": "text!", "working": "texts!", "marks": "texts!", "id": "text", "kind": "text", "level": "text",
    "asks": "text", "prior": "text", "calculator": "text", "numbers": "text", "let": "let", "where": "texts",
    "answer": "text", "words": "text", "parts": "parts", "as": "text", "lead": "text", "form": "text", "unit": "text",
    "expression": "text", "wrong": "wrong", "accept": "texts", "must": "texts", "reject": "texts", "feedback": "text",
    "hint": "texts", "follow": "texts", "alternative": "texts", "figure": "figure",
}  # fmt: skip
QUESTION = {**ITEM, **dict.fromkeys(("id", "level", "feedback"), "text!")}
PART = {"ask": "text!", **dict.fromkeys(("answer", "words", "as", "lead", "form", "unit", "expression"), "text")}
WRONG = {"why": "text!", **dict.fromkeys(("is", "text", "as", "by", "form"), "text")}
_GROUPS = {"items": ITEM, "questions": QUESTION, "parts": PART, "wrong": WRONG}
#: The lists of templates in a topic, and how many entries a list has.
GROUPS = ("example", "starters", "questions")
_COUNTS = {"example": (1, 3), "starters": (1, 6), "questions": (4, 24), "parts": (2, 6), "wrong": (1, 4)}
#: Key -> the values it may have.
_VALUES = {
    "bank": "1", "kind": "choice", "level": "[1-5]", "calculator": "yes|no", "numbers": "decimal|fraction",
    "asks": r"[1-9]\d?(?:[ ,]+[1-9]\d?)*", "prior": "[1-5]", "letters": r"[A-Za-zΑ-ω](?: [A-Za-zΑ-ω])*",
    "course": "[a-z0-9_]+/[a-z0-9_]+", "teaches": r"[a-z0-9_.]+", "id": "[a-z][a-z0-9_]*",
}  # fmt: skip


def problems(root: YamlMap) -> list[YamlFault]:
    """Return what is wrong with the shape of a topic; puts a text that stands alone for several into a list."""
    if found := list(_group(root, "topic", TOPIC)):
        return found
    seen: set[str] = set()
    for group in GROUPS:
        for item in root[group]:
            if (name := item.get("id", "")) in seen:
                found.append(YamlFault(item.line, f"the id '{name}' is given twice"))
            seen |= {name} - {""}
            found += _item(root, item, name or group)
    return found


def _group(group: Any, what: str, keys: dict[str, str]) -> Iterator[YamlFault]:
    if not isinstance(group, YamlMap):
        yield YamlFault(getattr(group, "line", 1), f"{what}: keys and values are wanted here")
        return
    for key, kind in keys.items():
        if kind.endswith("!") and key not in group:
            yield YamlFault(group.line, f"{what}: '{key}' is missing")
    for key in group:
        if key not in keys:
            yield YamlFault(key.line, f"'{key}' is not known; there are {', '.join(keys)}")
        else:
            yield from _value(group, key, keys[key].rstrip("!"))


def _value(group: YamlMap, key: YamlText, kind: str) -> Iterator[YamlFault]:
    value = group[key]
    if kind in _GROUPS:
        yield from _entries(key, value, _GROUPS[kind])
    elif kind == "misconceptions":
        for name, entry in value.items() if isinstance(value, YamlMap) else [("", value)]:
            yield from _group(entry, f"misconception '{name}'", {"belief": "text!", "correction": "text!"})
    elif kind in ("names", "figure", "let"):
        for entry in value if isinstance(value, YamlList) and kind == "figure" else [value]:
            needed = {"kind": "name!"} if kind == "figure" else {}
            named = dict.fromkeys(entry, "any" if kind == "let" else "name") if isinstance(entry, YamlMap) else {}
            yield from _group(entry, key, {**named, **needed})
    elif kind == "texts" and isinstance(value, YamlText):
        group[key] = YamlList([value])
    elif kind != "any":
        yield from _text(key, value, kind)


def _entries(key: YamlText, value: Any, keys: dict[str, str]) -> Iterator[YamlFault]:
    entries, (low, high) = value if isinstance(value, YamlList) else [], _COUNTS[key]
    if not low <= len(entries) <= high:
        yield YamlFault(key.line, f"'{key}' is a list of {low} to {high} entries, here {len(entries)}")
    for entry in entries:
        yield from _group(entry, str(entry.get("id", key)) if isinstance(entry, YamlMap) else key, keys)


def _text(key: YamlText, value: Any, kind: str) -> Iterator[YamlFault]:
    if not value or not all(isinstance(text, YamlText) for text in (value if kind == "texts" else [value])):
        yield YamlFault(key.line, f"'{key}' holds {'texts' if kind == 'texts' else 'a text'}")
    elif kind == "text" and key in _VALUES and not re.fullmatch(_VALUES[key], value):
        yield YamlFault(value.line, f"'{key}: {value}' is not one of {_VALUES[key]}")


def _item(root: YamlMap, item: YamlMap, name: str) -> Iterator[YamlFault]:
    parts, wrongs = item.get("parts", []), item.get("wrong", [])
    for spec in parts or [item]:
        if ("answer" in spec) == ("words" in spec):
            yield YamlFault(spec.line, f"{name}: one of 'answer' and 'words' is wanted")
    if parts and item.keys() & {"answer", "words", "kind"}:
        yield YamlFault(item.line, f"{name}: a question with parts has no answer of its own and no kind")
    if item.get("kind") == "choice" and len(wrongs) < 3:
        yield YamlFault(item.line, f"{name}: a choice needs three or four wrong answers")
    for wrong in wrongs:
        if ("is" in wrong) == ("text" in wrong):
            yield YamlFault(wrong.line, f"{name}: a wrong answer has one of 'is' and 'text'")
        if wrong.get("by") not in (None, *root["misconceptions"]):
            yield YamlFault(wrong["by"].line, f"{name}: misconception '{wrong['by']}' is not in this file")
    told = " ".join([item["stem"], *(part["ask"] for part in parts)])
    for spec in (item, *parts, *wrongs):
        yield from _print(name, spec, told)


def _print(name: str, spec: YamlMap, told: str) -> Iterator[YamlFault]:
    if not display.known_form(form := spec.get("form", "")):
        yield YamlFault(form.line, f"{name}: form '{form}' is not known; there are {', '.join(display.FORMS)}")
    if unit(spec.get("unit", "m")) is None and spec["unit"] not in told:
        yield YamlFault(spec["unit"].line, f"{name}: unit '{spec['unit']}' is neither known nor a word of the stem")
