"""The questions of a lesson, from the topics of its outcomes: every wanted point asked, none twice, ids in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.lessons.drafting.course import Outcome, outcomes
from pipeline.lessons.drafting.frames import frame
from pipeline.lessons.drafting.maths import (
    appreciation,
    circle,
    compare_data,
    complete_square,
    components,
    discriminant,
    expanding,
    factorising,
    fractions,
    gradient,
    linear,
    magnitude,
    quadratic_formula,
    reverse_percent,
    rounding,
    simultaneous,
    straight_line,
    surds,
    triangle_area,
    volume,
)
from pipeline.lessons.drafting.parts import Draw, Json, Maker, Question, Topic, item

_MATHS = "course_c84775"
#: (course id, outcome id) -> maker of a written topic, whose points are those of the catalogue, in order.
WRITTEN: Mapping[tuple[str, str], Callable[[], Topic]] = {
    (_MATHS, "num.surds"): surds.topic,
    (_MATHS, "num.rounding"): rounding.topic,
    (_MATHS, "num.reverse_percent"): reverse_percent.topic,
    (_MATHS, "num.appreciation"): appreciation.topic,
    (_MATHS, "num.fractions"): fractions.topic,
    (_MATHS, "alg.expand"): expanding.topic,
    (_MATHS, "alg.factorise"): factorising.topic,
    (_MATHS, "alg.complete_square"): complete_square.topic,
    (_MATHS, "alg.line_equation"): straight_line.topic,
    (_MATHS, "alg.linear"): linear.topic,
    (_MATHS, "alg.simultaneous"): simultaneous.topic,
    (_MATHS, "alg.quad_formula"): quadratic_formula.topic,
    (_MATHS, "alg.discriminant"): discriminant.topic,
    (_MATHS, "geo.gradient"): gradient.topic,
    (_MATHS, "geo.circle"): circle.topic,
    (_MATHS, "geo.volume"): volume.topic,
    (_MATHS, "geo.vector_components"): components.topic,
    (_MATHS, "geo.vector_magnitude"): magnitude.topic,
    (_MATHS, "trig.area"): triangle_area.topic,
    (_MATHS, "stat.compare"): compare_data.topic,
}


@dataclass(frozen=True, slots=True)
class Part:
    """An outcome of a lesson, with the points that are meant and its topic."""

    outcome: Outcome
    #: Ids of the points, in the topic's numbering: `asks` counts in it.
    points: tuple[str, ...]
    topic: Topic
    #: Points of `points` that this lesson is to cover.
    wanted: frozenset[str]


def parts_of(course: Mapping[str, Any], entry: Mapping[str, Any]) -> list[Part]:
    """Return the outcomes of a scheme entry with their topics; outcomes the catalogue does not know are left out."""
    known = {outcome.id: outcome for outcome in outcomes(course)}
    wanted = set(entry["points"])
    found = []
    for ref in entry["outcome_refs"]:
        if ref in known:
            found.append(_part(str(course.get("course_id")), known[ref], wanted))
    return found


def _part(course_id: str, outcome: Outcome, wanted: set[str]) -> Part:
    chosen = frozenset(point.id for point in outcome.points if point.id in wanted)
    if not chosen:
        chosen = frozenset(point.id for point in outcome.points[:1])
    make = WRITTEN.get((course_id, outcome.id))
    if make is not None:
        return Part(outcome, tuple(point.id for point in outcome.points), make(), chosen)
    # A frame is made for the wanted points only, so that its text speaks of nothing else.
    points = tuple(point for point in outcome.points if point.id in chosen)
    narrow = Outcome(outcome.id, outcome.title, outcome.group, points, outcome.cross_cutting)
    return Part(outcome, tuple(point.id for point in points), frame(narrow), chosen)


def asked(part: Part, asks: Sequence[int]) -> bool:
    """Say whether a question with these `asks` belongs to the points this lesson covers."""
    return not asks or any(index < len(part.points) and part.points[index] in part.wanted for index in asks)


#: Draws of one maker before a repeat is accepted as the best there is.
TRIES = 40
PRACTICE, CHECK, EXIT = "practice", "check", "exit"
#: Where each lane starts among the makers, so that a lesson does not ask the same thing in three cards.
_STARTS: Mapping[str, Callable[[int], int]] = {
    PRACTICE: lambda makers: 2 if makers > 3 else 0,
    CHECK: lambda makers: 0,
    EXIT: lambda makers: makers // 2,
}
_NOISE = re.compile(r"\W+")


class Bench:
    """Makes the questions of one lesson and knows what has been asked."""

    def __init__(self, draw: Draw, mistakes: Sequence[Sequence[str]]) -> None:
        """Take the lesson's chance, and the misconception ids of each part."""
        self._draw = draw
        self._mistakes = mistakes
        self._stems: set[str] = set()
        self._count = 0
        self._trials: dict[Maker, Question] = {}
        self._next: dict[tuple[int, str], int] = {}
        #: Point id -> ids of the items that ask it.
        self.asking: dict[str, list[str]] = {}

    def take(
        self,
        parts: Sequence[Part],
        index: int,
        *,
        lane: str = PRACTICE,
        point: str | None = None,
        most: int = 0,
        calculator: bool = True,
        **fields: object,
    ) -> Json:
        """Return the next item of part `index`: in order of difficulty, only on points that this lesson covers.

        Args:
            lane: Where in the order of difficulty it starts: checks, practice and exit ticket each keep a count.
            point: Only makers that ask this point.
            most: Marks it may have, where some maker keeps to that; 0 for any.
            calculator: False for questions without one, where some maker does.
            fields: As `parts.item`.
        """
        part = parts[index]
        makers = self._fitting(part, point)
        if not calculator:
            makers = self.without(part, point) or makers
        if most:
            makers = [maker for maker in makers if len(self._trial(maker).scheme) <= most] or makers
        counter = (index, f"{lane}{point}")
        place = self._next.get(counter, self._count if point else _STARTS[lane](len(makers)))
        self._next[counter] = place + 1
        question = self._fresh(makers[place % len(makers)])
        return self._placed(question, part, self._mistakes[index], fields)

    def starter(self, part: Part, number: int, prior: str) -> Json:
        """Return a starter item on prior knowledge."""
        question = self._fresh(part.topic.starters[number % len(part.topic.starters)])
        return self._placed(question, None, (), {"prior": prior})

    def without(self, part: Part, point: str | None) -> list[Maker]:
        """Return the makers of questions on a point that need no calculator."""
        return [maker for maker in self._fitting(part, point) if not self._trial(maker).calculator]

    def _trial(self, maker: Maker) -> Question:
        """Return one question of a maker, to see what its questions ask and how long they are."""
        if maker not in self._trials:
            self._trials[maker] = maker(Draw("trial"))
        return self._trials[maker]

    def _fitting(self, part: Part, point: str | None) -> list[Maker]:
        """Return the makers whose questions ask the lesson's points; a trial draw says what each asks."""
        wanted = [maker for maker in part.topic.makers if asked(part, self._trial(maker).asks)]
        if point is not None:
            wanted = [maker for maker in wanted if point in _ids(part, self._trial(maker).asks)] or wanted
        return wanted or list(part.topic.makers)

    def _fresh(self, maker: Maker) -> Question:
        for _ in range(TRIES):
            question = maker(self._draw)
            key = _NOISE.sub(" ", question.stem.lower())
            if key not in self._stems:
                break
        self._stems.add(key)
        return question

    def _placed(self, question: Question, part: Part | None, wrong: Sequence[str], fields: dict[str, object]) -> Json:
        self._count += 1
        name = f"q{self._count}"
        points = part.points if part else ()
        made = item(question, name, points=points, wrong=wrong, **fields)
        if part:
            made["points"] = [point for point in made["points"] if point in part.wanted]
        for point in made["points"]:
            self.asking.setdefault(point, []).append(name)
        return made


def _ids(part: Part, asks: Sequence[int]) -> list[str]:
    return [part.points[index] for index in asks if index < len(part.points)]
