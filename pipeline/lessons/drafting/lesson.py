"""Decides the cards of a drafted lesson that teaches, and what all drafted lessons have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.lessons.drafting.bench import CHECK, EXIT, Bench, Part
from pipeline.lessons.drafting.course import TITLE_ROOM, printable
from pipeline.lessons.drafting.details import papers
from pipeline.lessons.drafting.parts import Draw, Json

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


#: Items of independent practice; marks of a short assessment; items of one exam paper.
PRACTICE_ITEMS = (8, 12)
ASSESSMENT_MARKS = (10, 20)
PAPER_ITEMS = (4, 40)
_ALONE = "Work alone. Show each line of working."


def practise(course: Mapping[str, Any], entry: Mapping[str, Any], parts: Sequence[Part]) -> Json:
    """Return a lesson of practice alone."""
    bench, mistakes = _start(course, entry, parts)
    items = list(_asking_all(bench, parts))[: PRACTICE_ITEMS[1]]
    items += _filling(bench, parts, PRACTICE_ITEMS[0] - len(items))
    cards = [questions("independent_practice", "alone", "Practise alone", 42, items, note=_ALONE)]
    cards.append(exit_ticket(bench, parts[:4]))
    return finished(shared(entry, parts, mistakes), cards, bench, {}, entry)


def assess(course: Mapping[str, Any], entry: Mapping[str, Any], parts: Sequence[Part]) -> Json:
    """Return a short assessment of 10 to 20 marks."""
    bench, mistakes = _start(course, entry, parts)
    low, high = ASSESSMENT_MARKS
    items = list(_asking_all(bench, parts, most=high))
    for made in _asking(bench, parts, rounds=high):
        marks = sum(item["marks"] for item in items)
        if marks >= low and len(items) >= PAPER_ITEMS[0]:
            _forget(bench, made)
            break
        if marks + made["marks"] <= high:
            items.append(made)
        else:
            _forget(bench, made)
    cards = [
        questions("assessment", "paper", "Short assessment", entry["minutes"], items, note="Notes closed. " + _ALONE)
    ]
    return finished(shared(entry, parts, mistakes), cards, bench, {}, entry)


def revise(
    course: Mapping[str, Any], entry: Mapping[str, Any], parts: Sequence[Part], entries: Sequence[Mapping[str, Any]]
) -> Json:
    """Return a revision lesson; each item names the earlier lesson it comes back to."""
    bench, mistakes = _start(course, entry, parts)
    earlier = list(entry.get("prerequisites") or range(1, entry["order"]))
    items = list(_asking_all(bench, parts))[: PRACTICE_ITEMS[1]]
    items += _filling(bench, parts, max(4, min(3, len(earlier))) - len(items))
    for number, made in enumerate(items):
        made["from_lesson"] = _source(made, entries, earlier, number)
    _spread(items, earlier)
    cards = [
        _recall(parts),
        questions("independent_practice", "alone", "Practise what comes back", 35, items, note=_ALONE),
    ]
    return finished(shared(entry, parts, mistakes), cards, bench, {}, entry)


def examine(course: Mapping[str, Any], entry: Mapping[str, Any], parts: Sequence[Part]) -> Json:
    """Return a mock exam: a card for each paper of the catalogue, marks as near to the paper's as items allow."""
    bench, mistakes = _start(course, entry, parts)
    every = papers(course)
    shares = _shared_out(bench, parts, every)
    cards = [_paper(paper, number, bench, parts, shares[number]) for number, paper in enumerate(every)]
    return finished(shared(entry, parts, mistakes), cards, bench, {}, entry)


def _shared_out(bench: Bench, parts: Sequence[Part], every: Sequence[Json]) -> list[list[tuple[int, str]]]:
    """Return the (part, point) pairs of each paper, in turn; what needs a calculator goes where one is allowed."""
    shares: list[list[tuple[int, str]]] = [[] for _ in every]
    pairs = [(index, point) for index, part in enumerate(parts) for point in part.points if point in part.wanted]
    for index, point in pairs:
        open_to = [n for n, paper in enumerate(every) if paper["calculator"] or bench.without(parts[index], point)]
        least = min(open_to or range(len(every)), key=lambda number: (len(shares[number]), number))
        shares[least].append((index, point))
    return shares


def _paper(paper: Json, number: int, bench: Bench, parts: Sequence[Part], share: Sequence[tuple[int, str]]) -> Json:
    items: list[Json] = []
    left = paper["marks"]
    for place, (index, point) in enumerate(share):
        # Every point still to come needs a mark at least.
        most = max(1, left - (len(share) - place - 1))
        items.append(bench.take(parts, index, point=point, most=most, calculator=paper["calculator"]))
        left -= items[-1]["marks"]
    for made in _more(paper, bench, parts, share):
        if left <= 0 or len(items) >= PAPER_ITEMS[1]:
            _forget(bench, made)
            break
        if made["marks"] <= left:
            items.append(made)
            left -= made["marks"]
        else:
            _forget(bench, made)
    rule = "You may use a calculator." if paper["calculator"] else "Do not use a calculator."
    total = sum(item["marks"] for item in items)
    title = printable(f"Mock exam: {paper['title']}", 100)
    note = f"{total} marks. {rule} {_ALONE}"
    name = f"paper_{number + 1}"
    return questions("assessment", name, title, paper["minutes"], items, note=note, component=paper["id"])


def _more(paper: Json, bench: Bench, parts: Sequence[Part], share: Sequence[tuple[int, str]]) -> Iterator[Json]:
    """Yield further items of a paper, its points in turn."""
    pairs = list(share) or [(0, min(parts[0].wanted))]
    for turn in range(PAPER_ITEMS[1] * 3):
        index, point = pairs[turn % len(pairs)]
        yield bench.take(parts, index, point=point, calculator=paper["calculator"])


def _start(course: Mapping[str, Any], entry: Mapping[str, Any], parts: Sequence[Part]) -> tuple[Bench, list[list[str]]]:
    mistakes = mistake_ids(parts)
    return Bench(Draw(course.get("course_id"), entry["order"], entry["lesson_type"]), mistakes), mistakes


def _asking_all(bench: Bench, parts: Sequence[Part], most: int = 0) -> Iterator[Json]:
    """Yield an item for each wanted point that none before has asked.

    Args:
        most: Marks that all of them may have together; 0 for no limit.
    """
    left = sum(len(part.wanted) for part in parts)
    for index, part in enumerate(parts):
        for point in part.points:
            if point not in part.wanted:
                continue
            left -= 1
            if point not in bench.asking:
                # Every point still to come needs a mark at least.
                made = bench.take(parts, index, point=point, most=max(1, most - left) if most else 0)
                most = max(1, most - made["marks"]) if most else 0
                yield made


def _asking(bench: Bench, parts: Sequence[Part], *, rounds: int) -> Iterator[Json]:
    """Yield items of the parts in turn, round after round."""
    for _ in range(rounds):
        for index in range(len(parts)):
            yield bench.take(parts, index)


def _filling(bench: Bench, parts: Sequence[Part], count: int) -> list[Json]:
    return [bench.take(parts, number % len(parts)) for number in range(max(0, count))]


def _forget(bench: Bench, made: Json) -> None:
    """Take back an item that did not fit, so that no point counts as asked by it."""
    for point in made["points"]:
        bench.asking[point].remove(made["id"])
        if not bench.asking[point]:
            del bench.asking[point]


def _source(made: Json, entries: Sequence[Mapping[str, Any]], earlier: Sequence[int], number: int) -> int:
    """Return the order of the earlier lesson that taught what an item asks."""
    for entry in entries:
        if entry["order"] in earlier and set(made["points"]) & set(entry["points"]):
            return int(entry["order"])
    return earlier[number % len(earlier)] if earlier else 0


def _spread(items: Sequence[Json], earlier: Sequence[int]) -> None:
    """Name three different earlier lessons at least, where there are so many: practice of a skill that several used."""
    for order in earlier:
        named = [item["from_lesson"] for item in items]
        if len(set(named)) >= min(3, len(earlier)):
            return
        if order not in named:
            doubled = next((item for item in items if named.count(item["from_lesson"]) > 1), None)
            if doubled is not None:
                doubled["from_lesson"] = order


def _recall(parts: Sequence[Part]) -> Json:
    names = "; ".join(printable(part.topic.name, 45) for part in parts[:6])
    return {
        "kind": "explainer",
        "id": "recall",
        "title": "How to recall before you read",
        "minutes": 15,
        "cycle": 0,
        "text": _RECALL.format(names=names),
        "plain": _RECALL_PLAIN.format(names=names),
        "non_example": "Reading the old notes first is not recall: it shows what the page knows, not what you know.",
        "misconceptions": [],
        "figures": [],
        "watch_for": "Keep notes closed for the first minutes, even if it feels slow.",
    }


_RECALL = (
    "Today you come back to earlier work: {names}. Begin with a blank page and closed notes. For each topic, "
    "write down the main rule or method you remember, one example that shows it, and one mistake that is easy to "
    "make. It is normal that this feels hard after a gap; the effort of finding an answer in your memory is what "
    "makes it easier to find next time. When you have written all you can, open your notes and compare. Tick what "
    "was right, correct what was wrong, and add what was missing in another colour. Then answer the questions "
    "below without looking back. After each one, check the answer at once and say why it is right. Keep a list of "
    "what you missed: that list is your plan for the next days."
)
_RECALL_PLAIN = (
    "Today you come back to earlier work: {names}. Take a blank page. Close your notes. For each topic, write the "
    "main rule. Write one example. Write one mistake that is easy to make. It may feel hard after a gap. That "
    "effort helps you to remember. Then open your notes and compare. Tick what was right. Correct what was wrong. "
    "Add what was missing. Now answer the questions below. Do not look back. Check each answer at once and say "
    "why it is right. Keep a list of what you missed."
)
