"""Decides which topic a lesson's outcome gets: one written for it, or the honest frame."""

from __future__ import annotations

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
from pipeline.lessons.drafting.parts import Topic

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
