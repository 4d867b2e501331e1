"""Decides the cards of a drafted lesson that teaches, and what all drafted lessons have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.lessons.drafting.bench import CHECK, EXIT, Bench
from pipeline.lessons.drafting.choice import Draw
from pipeline.lessons.drafting.course import TITLE_ROOM, printable
from pipeline.lessons.drafting.parts import Json
from pipeline.lessons.drafting.topics import Part

#: Marks from which a score says: secure, nearly, not yet; as shares of the total.
_BANDS = (
    (0.8, "Secure: go on to the next lesson."),
    (0.5, "Nearly there: correct the missed questions before the next lesson."),
    (0.0, "Not yet: read the explanation again and ask for help with the first step."),
)
_NOT_IN_TITLES = re.compile(r"\blessons?\b|[?.&]", re.IGNORECASE)


def mistake_ids(parts: Sequence[Part]) -> list[list[str]]:
    """Return ids for the misconceptions of each part; three at most in a lesson, one from each part first."""
    shares = {1: (3,), 2: (2, 1)}.get(len(parts), (1, 1, 1))
    found: list[list[str]] = []
    number = 0
    for index, part in enumerate(parts):
        share = min(shares[index] if index < len(shares) else 0, len(part.topic.mistakes))
        found.append([f"m{number + place}" for place in range(1, share + 1)])
        number += share
    return found


def teach(course: Mapping[str, Any], entry: Mapping[str, Any], parts: Sequence[Part]) -> Json:
    """Return a lesson that teaches one to three outcomes, a cycle each."""
    mistakes = mistake_ids(parts)
    bench = Bench(Draw(course.get("course_id"), entry["order"], "teach"), mistakes)
    draw = Draw(course.get("course_id"), entry["order"], "examples")
    cards = [_starter(bench, parts)]
    for number, part in enumerate(parts, 1):
        cards += _cycle(number, part, parts, bench, draw, mistakes[number - 1])
    cards += _practice(bench, parts)
    cards.append(exit_ticket(bench, parts))
    teaching = {point: f"explain_{number}" for number, part in enumerate(parts, 1) for point in part.wanted}
    lesson = shared(entry, parts, mistakes)
    lesson["cycles"] = [{"title": printable(part.topic.name, 50)[:50], "aim": part.topic.aim} for part in parts]
    return finished(lesson, cards, bench, teaching, entry)


def _starter(bench: Bench, parts: Sequence[Part]) -> Json:
    items = [bench.starter(parts[number % len(parts)], number, f"k{number % len(parts) + 1}") for number in range(3)]
    return questions("starter", "start", "What you need to start", 5, items, note="Notes closed.")


def _cycle(
    number: int, part: Part, parts: Sequence[Part], bench: Bench, draw: Draw, mistakes: Sequence[str]
) -> list[Json]:
    topic = part.topic
    explain = {
        "kind": "explainer",
        "id": f"explain_{number}",
        "title": printable(f"What to know: {topic.name}", 100),
        "minutes": 9,
        "cycle": number,
        "text": topic.explain,
        "plain": topic.plain,
        "non_example": topic.non_example,
        "misconceptions": list(mistakes),
        "figures": [],
        "watch_for": topic.watch_for,
    }
    model = {
        "kind": "modelling",
        "id": f"model_{number}",
        "title": printable(f"Worked example: {topic.name}", 100),
        "minutes": 7,
        "cycle": number,
        "examples": [topic.example(draw).to_json(f"example_{number}")],
    }
    items = [bench.take(parts, number - 1, lane=CHECK) for _ in range(2)]
    check = questions("check", f"check_{number}", "Check that it makes sense", 4, items, cycle=number)
    return [explain, model, check]


def _practice(bench: Bench, parts: Sequence[Part]) -> list[Json]:
    """Return guided practice, easy first; with one outcome also practice alone. Every wanted point is asked here."""
    count = {1: 4, 2: 3}.get(len(parts), 2)
    items = [bench.take(parts, index) for _ in range(count) for index in range(len(parts))]
    for index, part in enumerate(parts):
        for point in part.points:
            if point in part.wanted and point not in bench.asking:
                items.append(bench.take(parts, index, point=point))
    cards = [questions("guided_practice", "practice", "Practise with help", 14, items[:8], note=_WORK)]
    alone = items[8:] + ([bench.take(parts, 0) for _ in range(4)] if len(parts) == 1 else [])
    if alone:
        alone += [bench.take(parts, 0) for _ in range(4 - len(alone))]
    sets = -(-len(alone) // _MOST_ALONE)
    for number in range(sets):
        name = "alone" if number == 0 else f"alone_{number + 1}"
        cards.append(questions("independent_practice", name, "Practise alone", 10, alone[number::sets], note=_WORK))
    return cards


#: Questions of one card of practice.
_MOST_ALONE = 12
_WORK = "Show each line of working."


def exit_ticket(bench: Bench, parts: Sequence[Part]) -> Json:
    """Return the closing card: two to four items that name the key points they test."""
    count = max(2, len(parts))
    items = []
    for number in range(count):
        index = number % len(parts)
        items.append(bench.take(parts, index, lane=EXIT, key_points=fact_ids(parts, index, number)))
    return questions("exit_ticket", "exit", "Before you go", 5, items, note="Work alone, notes closed.")


def fact_ids(parts: Sequence[Part], index: int, number: int) -> list[str]:
    """Return the ids of the key learning points that exit question `number`, on part `index`, tests."""
    owners = [owner for owner, _ in facts(parts)]
    own = [f"f{place}" for place, owner in enumerate(owners, 1) if owner == index]
    asked = [n for n in range(max(2, len(parts))) if n % len(parts) == index]
    turn = asked.index(number)
    return own[turn :: len(asked)][:4]


def facts(parts: Sequence[Part]) -> list[tuple[int, str]]:
    """Return (index of the part, key learning point): three or four, one of each part first."""
    found: list[tuple[int, str]] = []
    for round_number in range(4):
        for index, part in enumerate(parts[:4]):
            if round_number < len(part.topic.facts) and len(found) < (3 if round_number else 4):
                found.append((index, part.topic.facts[round_number]))
    return sorted(found[:4], key=lambda entry: entry[0])


def questions(
    kind: str,
    name: str,
    title: str,
    minutes: int,
    items: list[Json],
    *,
    cycle: int = 0,
    note: str = "",
    component: str = "",
) -> Json:
    """Return a card of questions; exit tickets and assessments say what a score means."""
    total = sum(item["marks"] for item in items)
    scored = kind in ("exit_ticket", "assessment")
    return {
        "kind": kind,
        "id": name,
        "title": title,
        "minutes": minutes,
        "cycle": cycle,
        "component": component,
        "instructions": note,
        "items": items,
        "rubric": _bands(total) if scored else [],
    }


def _bands(total: int) -> list[Json]:
    """Return what a score means, best first; small totals have fewer bands."""
    starts = [-(-int(share * 10) * total // 10) for share, _ in _BANDS]
    found = []
    for index, (_, means) in enumerate(_BANDS):
        if index == 0 or starts[index] < starts[index - 1]:
            found.append({"from_marks": starts[index], "means": means})
    return found


def shared(entry: Mapping[str, Any], parts: Sequence[Part], mistakes: Sequence[Sequence[str]]) -> Json:
    """Return the fields that every lesson has, without its cards."""
    prior = [part.topic.prior[0] for part in parts][:5]
    earlier = entry.get("prerequisites") or [0]
    return {
        "order": entry["order"],
        "lesson_type": entry["lesson_type"],
        "title": lesson_title(entry["label"]),
        "outcome": outcome_line(parts),
        "outcome_refs": list(entry["outcome_refs"]),
        "cross_cutting": list(entry["cross_cutting"]),
        "calculator": entry["calculator"],
        "minutes": entry["minutes"],
        "prior_knowledge": [
            {"id": f"k{number}", "text": text, "from_lesson": earlier[-1]} for number, text in enumerate(prior, 1)
        ],
        "key_learning_points": [{"id": f"f{number}", "text": text} for number, (_, text) in enumerate(facts(parts), 1)],
        "keywords": _keywords(parts),
        "misconceptions": [
            {"id": name, "belief": m.belief, "correction": m.correction, "wrong_method": m.wrong_method}
            for part, names in zip(parts, mistakes, strict=True)
            for name, m in zip(names, part.topic.mistakes, strict=False)
        ],
        "cycles": [],
        "labels": [],
        "teacher_notes": {
            "resources": [],
            "watch_for": "Ask pupils to say why each step is allowed, not only what it is.",
            "if_they_struggle": "Go back to the worked example and cover all but its first line.",
            "if_they_fly": "Ask for a question of the same kind with a chosen answer.",
            "safety": "",
        },
    }


def _keywords(parts: Sequence[Part]) -> list[Json]:
    found: dict[str, str] = {}
    for part in parts:
        for term, definition in part.topic.keywords:
            found.setdefault(term, definition)
    return [{"term": term, "definition": text, "gaelic": ""} for term, text in list(found.items())[:5]]


def lesson_title(label: str) -> str:
    """Return a title of 30 to 80 characters from the entry's label."""
    plain = printable(_NOT_IN_TITLES.sub(" ", label.replace("&", "and")), TITLE_ROOM)
    plain = plain[:1].upper() + plain[1:]
    return plain if len(plain) >= 30 else f"{plain}: main ideas and how to use them"


def outcome_line(parts: Sequence[Part]) -> str:
    """Return the "I can …" sentence of a lesson, at most 30 words and 190 characters."""
    told = [part.topic.can for part in parts]
    line = "I can " + "; ".join(told[:2])
    return line if len(line) <= 190 and len(line.split()) <= 30 else _shortened("I can " + told[0])


def _shortened(line: str) -> str:
    return printable(" ".join(line.split()[:28]), 185)


def finished(
    lesson: Json, cards: list[Json], bench: Bench, teaching: Mapping[str, str], entry: Mapping[str, Any]
) -> Json:
    """Return the lesson with its cards timed to its minutes and its points told where they are taught and asked."""
    lesson["cards"] = timed(cards, lesson["minutes"])
    where = {item["id"]: card["id"] for card in cards for item in card.get("items", ())}
    lesson["points"] = [
        {"ref": point, "card": teaching.get(point, where[bench.asking[point][0]]), "items": bench.asking[point][:20]}
        for point in entry["points"]
        if point in bench.asking
    ]
    return lesson


def timed(cards: list[Json], minutes: int) -> list[Json]:
    """Return the cards with minutes in the same proportion that sum to the lesson's; at least one minute each."""
    total = sum(card["minutes"] for card in cards)
    scaled = [max(1, min(_most(card), card["minutes"] * minutes // total)) for card in cards]
    spare = minutes - sum(scaled)
    for index in sorted(range(len(cards)), key=lambda place: -scaled[place]):
        change = max(1 - scaled[index], min(spare, _most(cards[index]) - scaled[index]))
        scaled[index] += change
        spare -= change
    return [{**card, "minutes": time} for card, time in zip(cards, scaled, strict=True)]


def _most(card: Json) -> int:
    return 40 if card["kind"] in ("explainer", "modelling") else 180
