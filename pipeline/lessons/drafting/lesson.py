"""Offline lessons from the question bank: teaching, practice, short assessment, revision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.bank.topic import Bank, Topic
from pipeline.content.checks_text import stem_of
from pipeline.content.levels import level_row
from pipeline.lessons.drafting.choice import Chooser, Chosen, Json, TopicPart, parts_of
from pipeline.lessons.drafting.course import TITLE_ROOM, printable
from pipeline.lessons.drafting.exam import papers, rules_of_calculators

#: Marks from which a score says: secure, nearly, not yet; as shares of the total.
_BANDS = (
    (0.8, "Secure: go on to the next lesson."),
    (0.5, "Nearly there: correct the missed questions before the next lesson."),
    (0.0, "Not yet: read the explanation again and ask for help with the first step."),
)
_NOT_IN_TITLES = re.compile(r"\blessons?\b|[?.&]", re.IGNORECASE)
_WORK = "Show each line of working."
_ALONE = "Work alone. Show each line of working."
#: Questions of practice alone, least and most; marks of a short assessment.
PRACTICE, ASSESSMENT_MARKS = (8, 12), (10, 20)
#: Longest question that goes into a note to the teacher.
_NOTE_ROOM = 200


def lesson(
    bank: Bank, course: Mapping[str, Any], entry: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]
) -> Json:
    """Return the lesson of a scheme's entry, with "not_written": ids of its outcomes that no bank covers.

    Where the bank covers none of them, that is all it has.
    """
    parts, missing = parts_of(bank, course, entry, entries)
    if not parts:
        return {"not_written": missing}
    mixed = entry["calculator"] == "mixed" or not rules_of_calculators(course)
    options = level_row(course).options
    chooser = Chooser(str(course["course_id"]), int(entry["order"]), parts, mixed=mixed, options=options)
    match entry["lesson_type"]:
        case "independent_practice":
            cards = _practice(chooser, parts)
        case "formative_assessment":
            cards = _assessment(chooser, parts, entry)
        case "revision":
            cards = _revision(chooser, parts, entry, entries)
        case "mock_exam":
            cards = papers(chooser, parts, course)
        case _:
            cards = _teaching(chooser, parts)
    if not cards:
        return {"not_written": list(entry["outcome_refs"])}
    made = _whole(chooser, parts, entry, cards)
    return {**made, "not_written": missing} if missing else made


def _teaching(chooser: Chooser, parts: Sequence[TopicPart]) -> list[Json]:
    """Return starter, a cycle for each outcome, practice, exit ticket."""
    closing = _exit_questions(chooser, parts)
    cards = [_starter(chooser, parts)]
    for part in parts:
        cards += _cycle(chooser, part)
    guided = [_take(chooser, part, level, again=False) for level in (2, 3, 4) for part in parts]
    guided += [_take(chooser, part, 5, again=False) for part in parts]
    guided += _unasked(chooser, parts)
    if not any(one and one.template.mistakes for one in guided):
        guided += [chooser.take(part, [one for one in part.topic.questions if one.mistakes]) for part in parts]
    items = _rising(guided)
    while len(items) < 4 and (more := _take(chooser, parts[len(items) % len(parts)], 3)):
        items = _rising([*items, more])
    cards.append(_questions("guided_practice", "Practise with help", 14, chooser, items[:8], note=_WORK))
    levels = (2, 3, 3, 4) if len(parts) == 1 else ()
    alone = _rising([_take(chooser, parts[0], level, again=False) for level in levels])
    alone = _rising([*items[8:], *alone])
    # Lessons of earlier schemes have three outcomes: no room for another card.
    if len(alone) >= 4 and len(parts) < 3:
        cards.append(_questions("independent_practice", "Practise alone", 10, chooser, alone, note=_ALONE))
    cards.append(_exit_ticket(chooser, parts, closing))
    return cards


def _starter(chooser: Chooser, parts: Sequence[TopicPart]) -> Json:
    """Return three questions on what the lesson needs."""
    texts = _prior(parts)
    items: list[Json] = []
    for number in range(6):
        part = parts[number % len(parts)]
        chosen = chooser.starter(part, number // len(parts))
        if chosen and len(items) < 3:
            text = part.topic.prior[min(chosen.template.prior, len(part.topic.prior)) - 1]
            place = next((n for n, told in enumerate(texts, 1) if told.endswith(text)), 1)
            items.append(chooser.item(chosen, f"prior {place}"))
    return _card("starter", "What you need to start", 5, items, note="Notes closed.")


def _cycle(chooser: Chooser, part: TopicPart) -> Iterator[Json]:
    topic = part.topic
    explain: Json = {
        "kind": "explainer",
        "title": printable(f"What to know: {topic.name}", 100),
        "minutes": 9,
        "teaches": sorted(part.points.values()),
        "text": topic.explain,
        "plain": topic.plain,
        "non_example": topic.non_example,
        "mistakes": sorted(chooser.of(topic).values()),
    }
    if topic.watch_for:
        explain["watch_for"] = topic.watch_for
    yield explain
    # All of them; a lesson on some of the topic's points has one, not that of the lesson before.
    turn = len(set(part.earlier.values())) % len(topic.examples)
    some = topic.examples if len(part.points) == len(part.outcome.points) else topic.examples[turn : turn + 1]
    yield {
        "kind": "modelling",
        "title": printable(f"Worked example: {topic.name}", 100),
        "minutes": 7,
        "examples": [one.draw(0, "example").example() for one in some],
    }
    easy = [one for one in topic.questions if one.level <= 2]
    choices = [one for one in topic.questions if one.kind == "choice"]
    picked = [
        chooser.take(part, choices) or chooser.take(part, easy) or chooser.take(part, topic.questions),
        chooser.take(part, easy, level=2) or chooser.take(part, topic.questions, level=2),
    ]
    yield _questions("check", "Check that it makes sense", 4, chooser, _rising(picked))


def _exit_questions(chooser: Chooser, parts: Sequence[TopicPart]) -> list[Chosen]:
    """Return the questions of the exit ticket, chosen first so that their templates are not those of the checks."""
    count = max(1, 3 // len(parts))
    found = []
    for part in parts:
        middle = [one for one in part.topic.questions if 2 <= one.level <= 3 and one.kind != "choice"]
        for turn in range(count):
            found.append(chooser.take(part, middle, level=2 + turn) or _take(chooser, part, 2 + turn))
    return [chosen for chosen in found if chosen][:4]


def _exit_ticket(chooser: Chooser, parts: Sequence[TopicPart], chosen: Sequence[Chosen]) -> Json:
    """Return the closing card; together its questions test every key point."""
    owners = [owner for owner, _ in _facts(parts)]
    items = []
    for turn, question in enumerate(chosen):
        mine = [n for n, owner in enumerate(owners, 1) if parts[owner] is question.part]
        turns = [n for n, other in enumerate(chosen) if other.part is question.part]
        share = mine[turns.index(turn) :: len(turns)]
        items.append(chooser.item(question, *(f"key point {number}" for number in share[:3])))
    return _card("exit_ticket", "Before you go", 5, items, note="Work alone, notes closed.", scored=True)


def _practice(chooser: Chooser, parts: Sequence[TopicPart]) -> list[Json]:
    closing = _exit_questions(chooser, parts[:4])
    picked = list(_unasked(chooser, parts))
    for turn in range(4 * PRACTICE[1]):
        if len(picked) >= PRACTICE[0] + 2:
            break
        picked.append(_take(chooser, parts[turn % len(parts)], 2 + turn // len(parts) % 4))
    cards = [
        _questions("independent_practice", "Practise alone", 42, chooser, _rising(picked)[: PRACTICE[1]], note=_ALONE)
    ]
    return [*cards, _exit_ticket(chooser, parts, closing)]


def _assessment(chooser: Chooser, parts: Sequence[TopicPart], entry: Mapping[str, Any]) -> list[Json]:
    low, high = ASSESSMENT_MARKS
    picked: list[Chosen] = []
    marks, left = 0, sum(len(part.points) for part in parts)
    for part in parts:
        for point in part.points.values():
            left -= 1
            if not chooser.asking[point]:
                # Each point still to come needs two marks.
                chosen = chooser.take(part, part.topic.questions, level=2, point=point, most=high - marks - 2 * left)
                picked += [chosen] if chosen else []
                marks += chosen.template.marks if chosen else 0
    for turn in range(20):
        if marks >= low and len(picked) >= 4:
            break
        part = parts[turn % len(parts)]
        if chosen := chooser.take(part, part.topic.questions, level=3, most=high - marks):
            picked.append(chosen)
            marks += chosen.template.marks
    note = "Notes closed. " + _ALONE
    return [
        _questions("assessment", "Short assessment", entry["minutes"], chooser, _rising(picked), note=note, scored=True)
    ]


def _revision(
    chooser: Chooser,
    parts: Sequence[TopicPart],
    entry: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
) -> list[Json]:
    """Return practice of earlier lessons, each question naming the one it comes back to."""
    closing = _exit_questions(chooser, parts[:4])
    picked = _rising(_unasked(chooser, parts))[: PRACTICE[1]]
    while len(picked) < PRACTICE[0] and (more := _take(chooser, parts[len(picked) % len(parts)], 3)):
        picked = _rising([*picked, more])
    earlier = list(entry.get("prerequisites") or range(1, int(entry["order"])))
    source = {
        part.outcome.id: [
            int(other["order"])
            for other in entries
            if other["order"] in earlier and part.outcome.id in other["outcome_refs"]
        ]
        for part in parts
    }
    items = []
    for number, chosen in enumerate(picked):
        lessons = source[chosen.part.outcome.id] or earlier or [1]
        items.append(chooser.item(chosen, f"lesson {lessons[number % len(lessons)]}"))
    _spread(items, earlier)
    card = _card("independent_practice", "Practise what comes back", 40, items, note="Notes closed. " + _ALONE)
    return [card, _exit_ticket(chooser, parts, closing)]


def _spread(items: Sequence[Json], earlier: Sequence[int]) -> None:
    """Name three earlier lessons at least, where there are so many: practice of a skill that several of them used."""
    for order in earlier:
        named = [next(target for target in item["tests"] if target.startswith("lesson ")) for item in items]
        if len(set(named)) >= min(3, len(earlier)):
            return
        wanted = f"lesson {order}"
        doubled = next((n for n, target in enumerate(named) if named.count(target) > 1), None)
        if wanted not in named and doubled is not None:
            tests = items[doubled]["tests"]
            tests[tests.index(named[doubled])] = wanted


def _take(chooser: Chooser, part: TopicPart, level: int, *, again: bool = True) -> Chosen | None:
    plain = [one for one in part.topic.questions if one.kind != "choice"]
    return chooser.take(part, plain, level=level, again=False) or chooser.take(
        part, part.topic.questions, level=level, again=again
    )


def _unasked(chooser: Chooser, parts: Sequence[TopicPart]) -> Iterator[Chosen | None]:
    """Yield a question for each point of the entry that none has asked yet."""
    for part in parts:
        for point in part.points.values():
            if not chooser.asking[point]:
                yield chooser.take(part, part.topic.questions, level=2, point=point)


def _rising(chosen: Sequence[Chosen | None] | Iterator[Chosen | None]) -> list[Chosen]:
    return sorted((one for one in chosen if one), key=lambda one: (one.template.level, one.template.marks))


def _questions(
    kind: str,
    title: str,
    minutes: int,
    chooser: Chooser,
    chosen: Sequence[Chosen],
    *,
    note: str = "",
    scored: bool = False,
) -> Json:
    return _card(kind, title, minutes, [chooser.item(one) for one in chosen], note=note, scored=scored)


def _card(kind: str, title: str, minutes: int, items: list[Json], *, note: str = "", scored: bool = False) -> Json:
    card: Json = {"kind": kind, "title": title, "minutes": minutes}
    if note:
        card["instructions"] = note
    card["items"] = items
    if scored:
        card["rubric"] = list(_bands(sum(len(item["marks"]) for item in items)))
    return card


def _bands(total: int) -> Iterator[str]:
    """Yield what a score means, best first; small totals have fewer bands."""
    before = total + 1
    for share, means in _BANDS:
        least = -(-int(share * 10) * total // 10)
        if least < before:
            yield f"{least}: {means}"
            before = least


def _facts(parts: Sequence[TopicPart]) -> list[tuple[int, str]]:
    """Return (index of the part, key point): three or four, one of each part first."""
    found: list[tuple[int, str]] = []
    for turn in range(4):
        for index, part in enumerate(parts[:4]):
            if turn < len(part.topic.facts) and len(found) < 4:
                found.append((index, part.topic.facts[turn]))
    return sorted(found, key=lambda row: row[0])


def _prior(parts: Sequence[TopicPart]) -> list[str]:
    """Return what the lesson needs: the topics' own, in turn, at most five."""
    found = [part.topic.prior[turn] for turn in range(5) for part in parts if turn < len(part.topic.prior)]
    return list(dict.fromkeys(found))[:5]


def _whole(chooser: Chooser, parts: Sequence[TopicPart], entry: Mapping[str, Any], cards: list[Json]) -> Json:
    """Return the lesson around its cards."""
    exam = entry["lesson_type"] == "mock_exam"
    teaching = entry["lesson_type"] == "teach"
    words = {term: told for part in parts for term, told in part.topic.keywords.items() if not exam}
    if teaching:
        words = {term: told for term, told in words.items() if any(explains(part.topic, term) for part in parts)}
    kept = _kept(cards)
    told = {
        chooser.of(part.topic)[name]: belief for part in parts for name, belief in part.topic.misconceptions.items()
    }
    return {
        "title": lesson_title(entry["label"]),
        "outcome": _outcome(parts),
        "prior": _prior(parts),
        "key_points": [text for _, text in _facts(parts)],
        "keywords": [f"{term}: {text}" for term, text in list(words.items())[:5]],
        "misconceptions": [told[n] for n in kept],
        "cycles": [{"title": printable(part.topic.name, 50)[:50], "aim": part.topic.aim} for part in parts if teaching],
        "cards": timed([_renumbered(card, kept) for card in cards], int(entry["minutes"])),
        "notes": list(_notes(parts)) if teaching else [],
    }


def explains(topic: Topic, term: str) -> bool:
    """Say whether a topic's text has a keyword, in some form of the word."""
    return stem_of(term) in f"{topic.explain} {topic.plain}".lower()


def _kept(cards: Sequence[Json]) -> dict[int, int]:
    """Return the misconceptions that questions reveal, the first three: number among all → number in the lesson."""
    revealed = {
        int(target.split()[1])
        for card in cards
        for item in card.get("items", ())
        for target in item["tests"]
        if target.startswith("mistake ")
    }
    return {number: place for place, number in enumerate(sorted(revealed)[:3], 1)}


def _renumbered(value: Any, kept: Mapping[int, int]) -> Any:
    """Return a card with the numbers of the misconceptions that the lesson keeps, and no mention of others."""
    if isinstance(value, list):
        return [_renumbered(each, kept) for each in value]
    if not isinstance(value, Mapping):
        return value
    made: Json = {}
    for key, each in value.items():
        if key == "mistake":
            if each in kept:
                made[key] = kept[each]
        elif key == "mistakes":
            made[key] = [kept[number] for number in each if number in kept]
        elif key == "tests":
            others = [target for target in each if not target.startswith("mistake ")]
            numbers = [int(target.split()[1]) for target in each if target.startswith("mistake ")]
            made[key] = others + [f"mistake {kept[number]}" for number in numbers if number in kept]
        else:
            made[key] = _renumbered(each, kept)
    return made


def _notes(parts: Sequence[TopicPart]) -> Iterator[Json]:
    """Yield an easier and a harder question of the topic that stand nowhere else in the lesson."""
    for kind, levels in (("if_they_struggle", (1, 2)), ("if_they_fly", (5, 4))):
        part = parts[0]
        for template in sorted(part.topic.questions, key=lambda one: abs(one.level - levels[0])):
            item = template.draw(0, f"note {kind}").item(tests=["point 1"], mistakes={})
            if template.level in levels and "answer" in item and "figures" not in item:
                text = f"{item['ask']} (Answer: {item['answer']})"
                if len(text) <= _NOTE_ROOM:
                    yield {"kind": kind, "text": text}
                    break


def lesson_title(label: str) -> str:
    """Return a title of 30 to 80 characters from the entry's label."""
    plain = printable(_NOT_IN_TITLES.sub(" ", label.replace("&", "and")), TITLE_ROOM)
    plain = plain[:1].upper() + plain[1:]
    return plain if len(plain) >= 30 else f"{plain}: main ideas and how to use them"


def _outcome(parts: Sequence[TopicPart]) -> str:
    """Return the "I can …" sentence; it names all outcomes where there are two, else the first two of many."""
    line = "I can " + " and ".join(part.topic.can for part in parts[:2])
    if len(line) <= 190 and len(line.split()) <= 30:
        return line
    return printable(" ".join(("I can " + parts[0].topic.can).split()[:28]), 185)


def timed(cards: list[Json], minutes: int) -> list[Json]:
    """Return the cards with minutes in the same proportion that sum to the lesson's; at least one minute each."""
    total = sum(card["minutes"] for card in cards)
    most = [40 if card["kind"] in ("explainer", "modelling") else 180 for card in cards]
    scaled = [max(1, min(most[n], card["minutes"] * minutes // total)) for n, card in enumerate(cards)]
    spare = minutes - sum(scaled)
    for index in sorted(range(len(cards)), key=lambda place: -scaled[place]):
        change = max(1 - scaled[index], min(spare, most[index] - scaled[index]))
        scaled[index] += change
        spare -= change
    return [{**card, "minutes": time} for card, time in zip(cards, scaled, strict=True)]
