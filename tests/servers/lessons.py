"""Answers of the test server as an author, solver and critic of lessons, from the HTTP request alone.

An author's answer is what the offline author says to the same data; corrections, solutions and judgements are made
here. Faults of the content are built in where the plan asks for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pipeline.content.addresses import item_of, owner, value_at
from pipeline.lessons.asks import course_text
from pipeline.lessons.catalogue import Catalogue
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
_FINDING = re.compile(r"^- ([a-z][a-z0-9_.()]*): ", re.MULTILINE)


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
def _marks() -> tuple[str, ...]:
    prompts = load_prompts({"subject": "mathematics", "level": "gcse"})
    return prompts["revision"].partition("\n")[0], prompts["correction"].partition(".")[2].partition("\n")[0]


def is_correction(body: Mapping[str, Any]) -> bool:
    """The request says what was wrong with an earlier answer."""
    text = _last(body)
    return any(mark in text for mark in _marks())


def _last(body: Mapping[str, Any]) -> str:
    return "".join(block["text"] for block in blocks(body["messages"][-1]["content"]))


@cache
def _courses() -> list[tuple[str, dict[str, Any]]]:
    shipped = Catalogue()
    courses = [shipped.course(file.subject, file.level) for file in shipped.files()]
    return [(course_text(course), course.to_json()) for course in courses]


def _course(body: Mapping[str, Any]) -> dict[str, Any]:
    """The course that the system prompt shows."""
    system = "".join(block["text"] for block in blocks(body.get("system") or []))
    return next((course for text, course in _courses() if text in system), {})


def answer(body: Mapping[str, Any], fault: str) -> str:
    """The responder for a course of lessons. Equal requests have equal answers."""
    data = task_data(body)
    kind = str(data.get("kind"))
    if kind == "critic":
        # With one criterion at 2 no lesson may be released.
        low = {"Q1": 2} if fault in ("lowscore", "passlow") else {}
        return json.dumps(critique(data["lesson"], low))
    if kind == "solve":
        return json.dumps(solutions(data["questions"], WRONG_VALUE if fault == "unsolved" else "See the working."))
    data = {"course": _course(body), **data}
    asked = Request(str(body["model"]), [Message("user", "")], label=kind, data={**data, "kind": _author_kind(kind)})
    value = json.loads(OfflineAuthor().complete(asked).text)
    if fault == "wrong" and kind in ("lesson", "correction"):
        _miscalculate(value)
    if kind == "correction":
        value = corrections(value, data["present"], _FINDING.findall(_last(body)))
    if fault == "offplan":
        _leave_the_plan(value)
    # A lesson and its patches have one form.
    return json.dumps({"lesson": value} if kind == "lesson" else value, ensure_ascii=False)


def _author_kind(kind: str) -> str:
    return "lesson" if kind == "correction" else kind


def corrections(good: Mapping[str, Any], present: Mapping[str, Any], places: list[str]) -> dict[str, Any]:
    """Patches that put a good lesson's questions in the place of the faulty ones, and more words elsewhere."""
    patches: list[dict[str, Any]] = []
    for place in dict.fromkeys(item_of(place) or owner(place) for place in places):
        whole, now = value_at(good, place), present.get(place) or value_at(present.get("lesson"), place)
        if isinstance(whole, dict) and "ask" in whole and "tests" in whole and whole != now:
            patches.append({"path": place, "item": whole})
        elif isinstance(now, dict) and "feedback" in now:
            patches.append({"path": f"{place}.feedback", "text": (now["feedback"] + _AGAIN)[:400]})
        elif isinstance(now, dict) and "title" in now:
            patches.append({"path": f"{place}.title", "text": (now["title"] + " again")[:100]})
        elif isinstance(now, str):
            patches.append({"path": place, "text": (now + " again")[:80]})
    return {"patches": patches or [{"path": "title", "text": str(good.get("title"))}]}


def solutions(questions: list[dict[str, Any]], said: str) -> dict[str, Any]:
    """The same answer to every question."""
    asked = [part for each in questions for part in each.get("parts") or [each]]
    return {"solutions": [{"question": each["question"], "answer": said, "options": []} for each in asked]}


def critique(
    lesson: Mapping[str, Any], scores: Mapping[str, int] | None = None, *, quotation: str = "", **more: Any
) -> dict[str, Any]:
    """A full form that quotes the first card; each criterion has 5 but for those in `scores`."""
    card, low = lesson["cards"][0], scores or {}
    judgements = [
        {
            "criterion": name,
            "evidence": [{"path": "c1", "quotation": quotation or " ".join(str(card["title"]).split()[:8])}],
            "finding": "Steps are missing." if name in low else "As it should be.",
            "score": low.get(name, 5),
            "fix": "Explain it in smaller steps." if name in low else "",
            "paths": ["c1"] if name in low else [],
        }
        for name in CRITERIA
    ]
    return {"claims": [], "judgements": judgements, "concerns": [], **more}


def _items(lesson: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for card in lesson.get("cards") or []:
        yield from card.get("items") or []


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
        for name in ("options", "parts", "wrong"):
            item.pop(name, None)
        item |= {"expression": "2 + 2", "answer": WRONG_VALUE, "ask": "Work out 2 + 2 and write the number."}
        return
