"""A question as a pupil sees it: number, stem, marks, options or parts, room for the answer in print."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.publish.figures import figure, squared_paper
from pipeline.publish.html import Html, el, join
from pipeline.publish.prose import blocks, inline
from pipeline.publish.view import Question

_DRAWN = re.compile(r"\b(?:sketch|draw|plot)\b", re.IGNORECASE)
#: Cards in which hints would spoil what is tested.
_WITHOUT_HINTS = frozenset({"assessment", "exit_ticket"})
#: Room is given by classes m3 to m6, 12 mm a mark; less than three marks get the least, 24 mm.
_LEAST_ROOM, _MOST_ROOM = 2, 6


def marks(number: int) -> str:
    """The number with its noun: 1 mark, 3 marks."""
    return f"{number} mark" if number == 1 else f"{number} marks"


def letter(place: int) -> str:
    """A, B, C, … for options."""
    return chr(ord("A") + place)


def question(asked: Question, *, mixed: bool) -> Html:
    """The question as a list item; `mixed` where its neighbours differ in the use of the calculator."""
    item = asked.item
    answer = item["answer"]
    parts = answer.get("parts") or ()
    body = [
        blocks(item["stem"]),
        el("p", calculator_rule(item), cls="muted") if mixed else None,
        figures(asked),
        options(answer) if answer["kind"] == "mcq" else None,
        el("ol", [_part(part) for part in parts], cls="parts") if parts else None,
        _hints(asked),
        None if parts or answer["kind"] == "mcq" else room(int(item["marks"]), item["stem"]),
    ]
    return el(
        "li",
        el("span", asked.number, cls="n"),
        el("div", body, cls="body"),
        el("span", marks(int(item["marks"])), cls="marks"),
        id=asked.anchor,
        cls="q",
    )


def calculator_rule(item: Mapping[str, Any]) -> str:
    """Whether the calculator is allowed, as a sentence."""
    return "Calculator allowed." if item.get("calculator") else "No calculator."


def figures(asked: Question) -> list[Html]:
    """The question's figures."""
    return [figure(data, f"{asked.anchor}-f{place}") for place, data in enumerate(asked.item.get("figures") or (), 1)]


def options(answer: Mapping[str, Any], *, key: int | None = None) -> Html:
    """Options in rings; `key` marks the right one."""
    rows = [
        el(
            "li",
            el("span", letter(place), cls="ring"),
            el("span", inline(option["text"]), " (right)" if place == key else None),
            cls="right" if place == key else None,
        )
        for place, option in enumerate(answer["options"])
    ]
    return el("ol", rows, cls="options")


def _part(part: Mapping[str, Any]) -> Html:
    answer = part["answer"]
    chosen = answer["kind"] == "mcq"
    body = [
        blocks(part["prompt"]),
        options(answer) if chosen else room(int(part["marks"]), part["prompt"]),
    ]
    return el(
        "li",
        el("span", part["label"], cls="n"),
        el("div", body, cls="body"),
        el("span", marks(int(part["marks"])), cls="marks"),
    )


def room(number: int, stem: str) -> Html:
    """Empty space on paper: 12 mm a mark, squared paper where something is drawn."""
    if _DRAWN.search(stem):
        return el("div", squared_paper(), cls="space grid")
    size = min(number, _MOST_ROOM)
    return el("div", cls=f"space m{size}" if size > _LEAST_ROOM else "space")


def _hints(asked: Question) -> Html | None:
    hints = asked.item.get("hints") or ()
    if not hints or asked.card["kind"] in _WITHOUT_HINTS:
        return None
    words = [el("li", inline(hint)) for hint in hints]
    noun = "Hint" if len(words) == 1 else "Hints"
    return el("details", el("summary", f"{noun} for question {asked.number}"), el("ul", words))


def working(steps: object) -> Html:
    """Numbered steps: what we do beside the line of mathematics."""
    rows = []
    for step in steps if isinstance(steps, (list, tuple)) else ():
        line = inline(step["shows"]) if step.get("shows") else None
        wide = line is not None and len(step["shows"]) > 40
        label = {"role": "group", "tabindex": "0", "aria_label": "Line of working"} if wide else {}
        shown = el("p", line, cls="line", **label) if line is not None else None
        rows.append(el("li", el("div", el("p", inline(step["does"])), shown, cls="two")))
    return el("ol", join(rows), cls="steps")
