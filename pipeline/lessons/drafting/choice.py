"""The questions of one offline lesson: chosen from the topics of its outcomes, rising in level, none twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.lessons.bank import Bank, Instance, Template, Topic
from pipeline.lessons.drafting.course import Outcome, outcomes

Json = dict[str, Any]
#: Draws of one template in a lesson that are kept apart from those of the next lesson.
DRAWS_EACH = 3
#: Draws tried before a question that stands in the lesson already is left out.
TRIES = 20


@dataclass(frozen=True)
class Part:
    """An outcome of a lesson, with its topic and those of its points that the lesson is about."""

    outcome: Outcome
    topic: Topic
    #: Number of a point in the topic → its number in the scheme's entry.
    points: Mapping[int, int]

    def asked(self, template: Template) -> list[int]:
        """Return which of the entry's points a template asks; none where it is about other points of the topic."""
        asks = template.asks or tuple(self.points)
        return [self.points[number] for number in asks if number in self.points]


@dataclass(frozen=True)
class Chosen:
    """A question with its place: which part, which template, which numbers."""

    part: Part
    template: Template
    instance: Instance
    #: Numbers of the entry's points that it asks.
    points: tuple[int, ...]


def parts_of(bank: Bank, course: Mapping[str, Any], entry: Mapping[str, Any]) -> tuple[list[Part], list[str]]:
    """Return the outcomes of an entry that the bank covers, and the ids of those it does not."""
    known = {outcome.id: outcome for outcome in outcomes(course)}
    place = {ref: number for number, ref in enumerate(entry["points"], 1)}
    found: list[Part] = []
    missing: list[str] = []
    for ref in entry["outcome_refs"]:
        outcome = known.get(ref)
        topic = bank.topic(str(course["id"]), ref) if outcome else None
        points = {n: place[p.id] for n, p in enumerate(outcome.points, 1) if p.id in place} if outcome else {}
        if outcome is None or topic is None or not points:
            missing.append(ref)
        else:
            found.append(Part(outcome, topic, points))
    return found, missing


class Selection:
    """Chooses the questions of one lesson and knows what has been asked."""

    def __init__(self, course_id: str, order: int, parts: Sequence[Part]) -> None:
        self._seed, self._order = course_id, order
        #: The first of each topic's misconceptions, one of each topic in turn, at most three: id → number.
        self.mistakes = _numbered([part.topic for part in parts])
        self._uses: Counter[tuple[str, str]] = Counter()
        self._keys: set[object] = set()
        self._asks: set[str] = set()
        #: Entry's point → questions that ask it.
        self.asking: Counter[int] = Counter()

    def take(
        self,
        part: Part,
        templates: Iterable[Template],
        *,
        level: int = 1,
        point: int | None = None,
        most: int = 0,
    ) -> Chosen | None:
        """Return a question with new numbers, of the template least used and nearest in level; None if there is none.

        Args:
            part: The outcome it is about.
            templates: Those that would do.
            level: Wanted level of difficulty, 1 to 5.
            point: A point of the entry it must ask.
            most: Marks it may have; 0 for any.
        """
        fitting = [
            template
            for template in templates
            if (point in part.asked(template) if point else part.asked(template))
            and (not most or template.marks <= most)
        ]
        name = part.topic.outcome
        fitting.sort(key=lambda one: (self._uses[name, one.id], abs(one.level - level), one.id))
        for template in fitting:
            if instance := self._drawn(name, template):
                asked = tuple(part.asked(template))
                self.asking.update(asked)
                return Chosen(part, template, instance, asked)
        return None

    def starter(self, part: Part, number: int) -> Chosen | None:
        """Return a starter question of a topic."""
        starters = part.topic.starters
        for turn in range(len(starters)):
            template = starters[(number + turn) % len(starters)]
            if instance := self._drawn(part.topic.outcome, template):
                return Chosen(part, template, instance, ())
        return None

    def _drawn(self, name: str, template: Template) -> Instance | None:
        """Return an instance whose numbers and words no question of the lesson has; at most twice of one template."""
        uses = self._uses[name, template.id]
        if uses >= 2:
            return None
        first = (self._order - 1) * DRAWS_EACH + uses
        for place in range(first, first + TRIES):
            instance = template.draw(place, self._seed)
            ask = instance.item(tests=["point 1"], mistakes={})["ask"]
            if (name, instance.key) not in self._keys and ask not in self._asks:
                self._keys.add((name, instance.key))
                self._asks.add(ask)
                self._uses[name, template.id] += 1
                return instance
        return None

    def item(self, chosen: Chosen, *more: str) -> Json:
        """Return a chosen question as a lesson's item; `more`: targets besides its points and mistakes."""
        mistakes = sorted({self.mistakes[name] for name in chosen.template.mistakes if name in self.mistakes})
        tests = [*(f"point {number}" for number in chosen.points[:4]), *more]
        tests += [f"mistake {number}" for number in mistakes][: 8 - len(tests)]
        return chosen.instance.item(tests=tests, mistakes=self.mistakes)


def _numbered(topics: Sequence[Topic]) -> dict[str, int]:
    rows = [[name for name in topic.misconceptions] for topic in topics[:3]]
    turns = [row[turn] for turn in range(3) for row in rows if turn < len(row)]
    chosen = turns[:3]
    in_order = [name for row in rows for name in row if name in chosen]
    return {name: number for number, name in enumerate(dict.fromkeys(in_order), 1)}
