"""The questions of one offline lesson: chosen from the topics of its outcomes, rising in level, none twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.bank.instance import Instance
from pipeline.bank.template import Template
from pipeline.bank.topic import Bank, Topic
from pipeline.content.checks_text import asked_words
from pipeline.lessons.drafting.course import Outcome, outcomes

Json = dict[str, Any]
#: Lessons whose questions come from parts of their own of a template's space; places of a part at least.
LESSONS, PLACES_EACH = 128, 3
#: Questions of one template in a lesson: one each first, then two; more only where a card would stay too short.
USES, MOST_USES = (1, 2), 6
#: Options of a choice at most.
MOST_OPTIONS = 5
#: Draws tried before a question that stands in the lesson already is left out.
TRIES = 20


@dataclass(frozen=True)
class TopicPart:
    """An outcome of a lesson, with its topic and those of its points that the lesson is about."""

    outcome: Outcome
    topic: Topic
    #: Number of a point in the topic → its number in the scheme's entry.
    points: Mapping[int, int]
    #: Number of another point in the topic → the earlier lesson that taught it.
    earlier: Mapping[int, int]

    def asked(self, template: Template) -> list[int]:
        """Return which of the entry's points a template asks; none where it is about other points of the topic."""
        asks = template.asks or tuple(self.points)
        return [self.points[number] for number in asks if number in self.points]

    def lessons(self, template: Template) -> set[int]:
        """Return the earlier lessons that a template comes back to; none where it has a point not taught before."""
        asks = set(template.asks) - set(self.points)
        return {self.earlier[number] for number in asks} if asks <= set(self.earlier) else set()


@dataclass(frozen=True)
class Chosen:
    """A question with its place: which part, which template, which numbers."""

    part: TopicPart
    template: Template
    instance: Instance
    #: Numbers of the entry's points that it asks, or the earlier lesson that it comes back to.
    targets: tuple[str, ...]


def parts_of(
    bank: Bank, course: Mapping[str, Any], entry: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]
) -> tuple[list[TopicPart], list[str]]:
    """Return the outcomes of an entry that the bank covers, and the ids of those it does not."""
    known = {outcome.id: outcome for outcome in outcomes(course)}
    place = {ref: number for number, ref in enumerate(entry["points"], 1)}
    before = [one for one in entries if one["order"] < entry["order"] and one["lesson_type"] == "teach"]
    taught = {ref: int(one["order"]) for one in before for ref in one["points"]}
    found: list[TopicPart] = []
    missing: list[str] = []
    for ref in entry["outcome_refs"]:
        outcome = known.get(ref)
        topic = bank.topic(str(course["id"]), ref) if outcome else None
        points = {n: place[p.id] for n, p in enumerate(outcome.points, 1) if p.id in place} if outcome else {}
        if outcome is None or topic is None or not points:
            missing.append(ref)
        else:
            told = enumerate(outcome.points, 1)
            earlier = {n: taught[p.id] for n, p in told if p.id in taught and p.id not in place}
            found.append(TopicPart(outcome, topic, points, earlier))
    return found, missing


class Chooser:
    """Chooses the questions of one lesson and knows what has been asked."""

    def __init__(
        self, course_id: str, order: int, parts: Sequence[TopicPart], *, mixed: bool, options: int = MOST_OPTIONS
    ) -> None:
        self._seed, self._order, self._mixed, self._options = course_id, order, mixed, options
        #: All misconceptions of its topics, by turns: id → number. The lesson keeps the first that a question reveals.
        self.mistakes = _numbered([part.topic for part in parts])
        self._uses: Counter[tuple[str, str]] = Counter()
        self._asked: set[tuple[str, ...]] = set()
        #: Entry's point → questions that ask it.
        self.asking: Counter[int] = Counter()

    def take(
        self,
        part: TopicPart,
        templates: Iterable[Template],
        *,
        level: int = 1,
        point: int | None = None,
        most: int = 0,
        again: bool = True,
    ) -> Chosen | None:
        """Return a question with new numbers, of the template least used and nearest in level; None if there is none.

        One that comes back to an earlier lesson stands before a second one of the same template.

        Args:
            part: The outcome it is about.
            templates: Those that would do.
            level: Wanted level of difficulty, 1 to 5.
            point: A point of the entry it must ask.
            most: Marks it may have; 0 for any.
            again: Take a template a third time rather than return None.
        """
        name = part.topic.outcome
        every = [one for one in templates if not most or one.marks <= most]
        every.sort(key=lambda one: (self._uses[name, one.id], abs(one.level - level), one.id))
        fitting = [one for one in every if (point in part.asked(one) if point else part.asked(one))]
        back = [] if point else [one for one in every if not part.asked(one) and part.lessons(one)]
        turns = [(uses, some) for uses in USES for some in (fitting, back)]
        for uses, some in [*turns, *([(MOST_USES, fitting)] if again else [])]:
            for template in some:
                if instance := self._drawn(name, template, uses):
                    asked = part.asked(template)
                    self.asking.update(asked)
                    targets = [f"point {n}" for n in asked[:4]] or [f"lesson {max(part.lessons(template))}"]
                    return Chosen(part, template, instance, tuple(targets))
        return None

    def starter(self, part: TopicPart, number: int) -> Chosen | None:
        """Return a starter question of a topic."""
        starters = part.topic.starters
        for turn in range(len(starters)):
            template = starters[(number + turn) % len(starters)]
            if instance := self._drawn(part.topic.outcome, template, USES[-1]):
                return Chosen(part, template, instance, ())
        return None

    def of(self, topic: Topic) -> dict[str, int]:
        """Return the numbers of a topic's misconceptions, by their ids in its file."""
        return {name: self.mistakes[f"{topic.outcome} {name}"] for name in topic.misconceptions}

    def _drawn(self, name: str, template: Template, most: int) -> Instance | None:
        """Return an instance that asks what no question of the lesson asks; at most so many of one template."""
        uses = self._uses[name, template.id]
        if uses >= most:
            return None
        skip = (self._order - 1) * max(PLACES_EACH, template.space.size // LESSONS)
        for number in range(uses, uses + TRIES):
            instance = template.draw(number, self._seed, skip=skip)
            words = tuple(asked_words(instance.item(tests=())))
            if words not in self._asked:
                self._asked.add(words)
                self._uses[name, template.id] += 1
                return instance
        return None

    def item(self, chosen: Chosen, *more: str) -> Json:
        """Return a chosen question as a lesson's item; `more`: targets besides its points and mistakes."""
        tests = list(dict.fromkeys((*chosen.targets, *more)))
        own = self.of(chosen.part.topic)
        made = chosen.instance.item(tests=tests, mistakes=own)
        mistakes = {own[name] for name in chosen.template.mistakes}
        if "options" in made:
            made["options"] = _fewest(made["options"], self._options)
            mistakes &= {option.get("mistake") for option in made["options"]}
        tests += [f"mistake {number}" for number in sorted(mistakes)][: 8 - len(tests)]
        made["tests"] = tests
        if self._mixed and chosen.template.calculator:
            made = {**made, "more": [*made.get("more", ()), "calculator: yes"]}
        return {**{key: value for key, value in made.items() if key != "ask"}, "ask": made["ask"]}


def _fewest(options: Sequence[Json], count: int) -> list[Json]:
    """Return so many options: the right one, those that a misconception leads to, then the others."""
    first, *wrong = options
    kept = sorted(wrong, key=lambda option: "mistake" not in option)[: count - 1]
    return [first, *(option for option in wrong if option in kept)]


def _numbered(topics: Sequence[Topic]) -> dict[str, int]:
    rows = [[f"{topic.outcome} {name}" for name in topic.misconceptions] for topic in topics]
    turns = [row[turn] for turn in range(max(map(len, rows), default=0)) for row in rows if turn < len(row)]
    return {name: number for number, name in enumerate(turns, 1)}
