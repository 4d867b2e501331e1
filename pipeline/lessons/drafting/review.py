"""Decides the cards of drafted lessons that do not teach: practice alone, a short assessment, revision, a mock exam."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.lessons.drafting.bench import Bench
from pipeline.lessons.drafting.choice import Draw
from pipeline.lessons.drafting.course import printable
from pipeline.lessons.drafting.details import papers
from pipeline.lessons.drafting.lesson import exit_ticket, finished, mistake_ids, questions, shared
from pipeline.lessons.drafting.parts import Json
from pipeline.lessons.drafting.topics import Part

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
