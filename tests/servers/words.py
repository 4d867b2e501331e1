"""Answers of the test server as the author of a course without numbers: the twelve outcomes of history.yaml."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from pipeline.lessons.offline import OfflineAuthor
from pipeline.llm.base import Message, Request
from tests.servers.lessons import critique, task_data
from tests.servers.replies import Responder

Json = dict[str, Any]
#: Questions of a topic, in the order of the file.
RECALL, CHOOSE, EXPLAIN, WRITE, LAST = range(5)
_LABELS = ["upsetting_theme: King Edward died in 1066, kings and leaders were killed, and a plague killed many"]
_OPENS = "follow_through: the last mark, for another point that is true"


@cache
def topics() -> list[Json]:
    """What the author knows, an outcome after the other."""
    found: list[Json] = yaml.safe_load(Path(__file__).with_name("history.yaml").read_text(encoding="utf-8"))
    return found


def history(course: Mapping[str, Any]) -> Responder:
    """The responder for the course of these outcomes."""
    points = [point["id"] for group in course["groups"] for out in group["outcomes"] for point in out["points"]]
    place = {point: number for number, point in enumerate(points)}

    def answer(body: Mapping[str, Any], fault: str) -> str:
        data = task_data(body)
        kind = str(data.get("kind"))
        if kind == "critic":
            return json.dumps(critique(data["lesson"]))
        if kind == "solve":
            return json.dumps({"solutions": [_solved(each) for each in data["questions"]]})
        if kind == "lesson":
            entry = data["entry"]
            known = [topics()[place[point]] for point in entry["points"]]
            taught = {point: other["order"] for other in reversed(data["entries"]) for point in other["points"]}
            return json.dumps({"lesson": _lesson(entry, known, [taught.get(point, 0) for point in entry["points"]])})
        asked = Request(str(body["model"]), [Message("user", "")], label=kind, data={"course": course, **data})
        value = json.loads(OfflineAuthor().complete(asked).text)
        for entry in value.get("entries", ()):
            if entry["lesson_type"] == "teach":
                names = [topics()[place[point]]["label"] for point in entry["points"]]
                entry["label"] = "; ".join([names[0], *(name[0].lower() + name[1:] for name in names[1:])])
        if kind == "entry":
            value |= {
                "calculator": "non_calc",
                "context": "People who lived through these years tell what they saw",
                "emphasis": ["Pupils take one writer's view for the whole story"],
            }
        return json.dumps(value)

    return answer


def _solved(question: Mapping[str, Any]) -> Json:
    asks = (ask for topic in topics() for ask in topic["asks"] if ask["ask"].strip() == question["ask"])
    own = next(asks, {"answer": "Compare the hundreds, the rulers, the centuries."})
    right = own["options"][0] if "options" in own else own["answer"]
    offered = [option["text"] if isinstance(option, dict) else option for option in question.get("options") or ()]
    return {"question": question["question"], "answer": right, "options": [offered.index(right) + 1] if offered else []}


def _item(topic: Mapping[str, Any], which: int, *tests: str) -> Json:
    ask = topic["asks"][which]
    made: Json = {"tests": list(tests), "working": ask["lines"], "marks": ask["marks"], "feedback": ask["why"]}
    more = list(ask.get("more", ()))
    if len(ask["marks"]) > 2 and not any(text.startswith("follow_through") for text in more):
        more.append(_OPENS)
    if more:
        made["more"] = more
    if "options" in ask:
        whys = [ask["why"], *ask["wrong"]]
        made["options"] = [{"text": text, "why": why} for text, why in zip(ask["options"], whys, strict=True)]
    else:
        made["answer"] = ask["answer"]
    return {**made, "ask": ask["ask"].strip()}


def _card(kind: str, title: str, minutes: int, items: Sequence[Json], **more: Any) -> Json:
    rising = sorted(items, key=lambda item: len(item["marks"])) if kind.endswith("practice") else list(items)
    return {"kind": kind, "title": title, "minutes": minutes, "items": rising, **more}


def _lesson(entry: Mapping[str, Any], known: Sequence[Json], taught: Sequence[int]) -> Json:
    makers = {"independent_practice": _practice, "formative_assessment": _formative, "revision": _revision,
              "mock_exam": _exam}  # fmt: skip
    kind = entry["lesson_type"]
    return _teaching(entry, known) if kind == "teach" else _asking(known, makers[kind](known, taught), kind)


_TITLES = {
    "independent_practice": "Practice: explaining causes and using sources",
    "formative_assessment": "Short assessment on rulers, land and the plague",
    "revision": "Revision of England from 1066 to the Peasants' Revolt",
    "mock_exam": "Practice paper on England in the Middle Ages",
}


def _asking(known: Sequence[Json], cards: list[Json], kind: str) -> Json:
    return {
        "title": _TITLES[kind],
        "outcome": f"I can {known[0]['can']}, and answer questions on what came after.",
        "prior": ["You have worked through the lessons before this one."],
        "key_points": [known[0]["key"][0], known[-1]["key"][0]],
        "keywords": [known[0]["term"]],
        "misconceptions": [],
        "cycles": [],
        "cards": cards,
        "notes": [{"kind": "watch_for", "text": "A true fact earns nothing until it answers the question."}],
        "labels": _LABELS,
    }


def _practice(known: Sequence[Json], taught: Sequence[int]) -> list[Json]:
    items = [_item(topic, EXPLAIN, f"point {place}") for place, topic in enumerate(known, 1)]
    return [_card("independent_practice", "Explain in your own words", 50, items)]


def _formative(known: Sequence[Json], taught: Sequence[int]) -> list[Json]:
    items = [_item(topic, EXPLAIN, f"point {place}") for place, topic in enumerate(known, 1)]
    return [_card("assessment", "Short assessment", 50, items, rubric=["9: Secure.", "5: Nearly.", "0: Not yet."])]


def _revision(known: Sequence[Json], taught: Sequence[int]) -> list[Json]:
    items = [
        _item(topic, LAST, f"point {place}", *([f"lesson {order}"] if order else []))
        for place, (topic, order) in enumerate(zip(known, taught, strict=True), 1)
    ]
    return [_card("independent_practice", "From all the lessons so far", 50, items)]


def _exam(known: Sequence[Json], taught: Sequence[int]) -> list[Json]:
    short = [_item(topic, RECALL, f"point {place}") for place, topic in enumerate(known, 1)]
    long = [_item(topic, WRITE, f"point {place}") for place, topic in enumerate(known, 1) if place % 2 == 0]
    return [
        _card("assessment", "Section 1: short answers", 25, short),
        _card("assessment", "Section 2: sources and writing", 65, long),
    ]


def _teaching(entry: Mapping[str, Any], known: Sequence[Json]) -> Json:
    earlier = topics()[topics().index(known[0]) - 1] if topics().index(known[0]) else None
    numbers = range(1, len(known) + 1)
    cards = [_card("starter", "What came before", 5, list(_starter(earlier)))]
    for place, topic in zip(numbers, known, strict=True):
        cards += _cycle(topic, place)
    guided = [
        _item(topic, which, f"point {place}", *([f"mistake {place}"] if which == EXPLAIN else []))
        for place, topic in zip(numbers, known, strict=True)
        for which in (EXPLAIN, WRITE)
    ]
    last = [
        _item(topic, LAST, f"point {place}", f"key point {2 * place - 1}", f"key point {2 * place}")
        for place, topic in zip(numbers, known, strict=True)
    ]
    order = entry["order"]
    return {
        "title": _title(known),
        "outcome": f"I can {known[0]['can']}.",
        "prior": ["You can put years in order and say who rules a country." if earlier is None
                  else f"lesson {order - 1}: You can {earlier['can']}."],
        "key_points": [text for topic in known for text in topic["key"]],
        "keywords": [topic["term"] for topic in known],
        "misconceptions": [{"belief": topic["belief"], "correction": topic["correction"]} for topic in known],
        "cycles": [
            {"title": topic["label"][:50], "aim": topic["can"][0].upper() + topic["can"][1:]} for topic in known
        ],
        "cards": [*cards, _card("guided_practice", "Explain, and use a source", 10, guided),
                  _card("exit_ticket", "Before you go", 5, last, rubric=["2: Secure.", "0: Read the text again."])],
        "notes": [{"kind": "if_they_fly", "text": "Ask for the other side of each answer, with a reason."}],
        "labels": _LABELS,
    }  # fmt: skip


def _title(known: Sequence[Json]) -> str:
    titles = [topic["label"] for topic in known]
    both = f"{titles[0]}; {titles[-1][0].lower()}{titles[-1][1:]}"
    return both if len(both) <= 80 else titles[0]


def _cycle(topic: Mapping[str, Any], place: int) -> Iterator[Json]:
    yield {"kind": "explainer", "title": topic["label"], "minutes": 6, "teaches": [place], "text": topic["text"],
           "plain": topic["plain"], "non_example": topic["non_example"], "mistakes": [place]}  # fmt: skip
    model = topic["model"]
    yield {"kind": "modelling", "title": "How to answer", "minutes": 5,
           "examples": [{"working": model["lines"], "ask": model["ask"]}]}  # fmt: skip
    items = [_item(topic, which, f"point {place}", f"key point {2 * place}") for which in (RECALL, CHOOSE)]
    yield _card("check", "Do you remember?", 4, items)


def _starter(earlier: Json | None) -> Iterator[Json]:
    if earlier is not None:
        yield from (_item(earlier, which, "prior 1") for which in (RECALL, CHOOSE, LAST))
        return
    for ask, answer, line in (
        ("Put these years in order: 1215, 1066, 1381.", "1066, 1215, 1381", "Compare the hundreds first."),
        ("What do we call the man who rules a kingdom?", "a king", "The word is short and begins with k."),
        ("In which century is 1066?", "the 11th century", "The first hundred years are the 1st century."),
    ):
        yield {"tests": ["prior 1"], "answer": answer, "working": [line], "marks": ["gives the right answer"],
               "feedback": "Years and rulers are the pegs that events hang on.", "ask": ask}  # fmt: skip
