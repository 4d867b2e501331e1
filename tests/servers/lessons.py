"""Answers of the test server as an author and a critic of lessons, from the HTTP request alone.

An author's answer is what the offline author says to the same data; a critic's is made here. Faults
of the content are built in where the plan asks for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pipeline.lessons.offline import OfflineAuthor
from pipeline.lessons.prompts import load_prompts
from pipeline.lessons.schemas import CRITERIA
from pipeline.llm.base import Message, Request
from tests.servers.bill import blocks

_OPEN, _CLOSE = "<task_data>", "</task_data>"
#: A reference that no catalogue holds.
OFF_PLAN = "zz.99"
#: What a miscalculated answer says.
WRONG_VALUE = "987654321"
_AGAIN = " Look at the working once more."


def task_data(body: Mapping[str, Any]) -> dict[str, Any]:
    """The structured question: at the end of the last user message, and what is shared in the system prompt; or {}."""
    found = _data_in("".join(block["text"] for block in blocks(body["messages"][-1]["content"])))
    if not found:
        return {}
    shared = _data_in("".join(block["text"] for block in blocks(body.get("system") or [])))
    return {**shared, **found}


def _data_in(text: str) -> dict[str, Any]:
    start = text.rfind(_OPEN)
    end = text.find(_CLOSE, start)
    if start < 0 or end < 0:
        return {}
    try:
        found = json.loads(text[start + len(_OPEN) : end])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@cache
def _correction_mark() -> str:
    return load_prompts()["revision"].partition("\n")[0]


def is_correction(body: Mapping[str, Any]) -> bool:
    """The request says what was wrong with an earlier answer."""
    return _correction_mark() in "".join(block["text"] for block in blocks(body["messages"][-1]["content"]))


def answer(body: Mapping[str, Any], fault: str) -> str:
    """The responder for a course of lessons. Equal requests have equal answers."""
    data = task_data(body)
    kind = str(data.get("kind"))
    if kind == "critic":
        # With one criterion at 2 no lesson may be released, whatever the form's own verdict.
        low = {"Q1": 2} if fault in ("lowscore", "passlow") else {}
        return json.dumps(critique(data["lesson"], low, verdict="revise" if fault == "lowscore" else "release"))
    asked = Request(str(body["model"]), [Message("user", "")], label=kind, data=data)
    value = json.loads(OfflineAuthor().complete(asked).text)
    if kind == "lesson" and data.get("previous") is not None:
        _revise(value, data["previous"])
    if fault == "offplan":
        _leave_the_plan(value)
    if fault == "wrong":
        _miscalculate(value)
    return json.dumps(value, ensure_ascii=False)


def critique(
    lesson: Mapping[str, Any], scores: Mapping[str, int] | None = None, *, verdict: str = "release", quotation: str = ""
) -> dict[str, Any]:
    """A full form that quotes the first card; each criterion has 5 but for those in `scores`."""
    card, low = lesson["cards"][0], scores or {}
    judgements = [
        {
            "criterion": name,
            "evidence": [{"id": card["id"], "quotation": quotation or " ".join(str(card["title"]).split()[:8])}],
            "finding": "Steps are missing." if name in low else "As it should be.",
            "missing": False,
            "score": low.get(name, 5),
            "fix": f"Explain {card['id']} in smaller steps." if name in low else "",
        }
        for name in CRITERIA
    ]
    return {"claims": [], "judgements": judgements, "concerns": [], "verdict": verdict}


def _items(lesson: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for card in lesson.get("cards") or []:
        yield from card.get("items") or []


def _revise(lesson: dict[str, Any], previous: Any) -> None:
    """Make the revision differ from what it revises, so that its critic is asked something new."""
    before = next(_items(previous), {}) if isinstance(previous, Mapping) else {}
    times = str(before.get("feedback", "")).count(_AGAIN) + 1
    for item in _items(lesson):
        item["feedback"] = (item["feedback"] + _AGAIN * times)[:400]
        return


def _leave_the_plan(value: dict[str, Any]) -> None:
    entries = value.get("entries")
    place = entries[0] if isinstance(entries, list) and entries else value
    for name in ("outcome_refs", "points", "cross_cutting"):
        if name in place:
            place[name] = [*place[name], OFF_PLAN]
            return


def _miscalculate(lesson: Mapping[str, Any]) -> None:
    """Give the first question an answer that its own calculation contradicts."""
    for item in _items(lesson):
        item["answer"] = {
            "kind": "numeric",
            "expression": "2+2",
            "rounding": {"kind": "exact", "amount": 0},
            "value": WRONG_VALUE,
            "unit": "",
            "tolerance": "0",
            "wrong": [],
            "shown": WRONG_VALUE,
        }
        return
