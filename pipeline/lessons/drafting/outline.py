"""Decides the order and kinds of lessons of an offline scheme: how many teach, what each covers, where the others stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.lessons.drafting.course import Outcome, Point, outcomes, printable
from pipeline.lessons.drafting.parts import Json

#: Below this many lessons a scheme only teaches.
PATTERN_FROM = 6
#: A teach lesson covers at most so many outcomes and points.
MOST_OUTCOMES, MOST_POINTS = 3, 4
#: Points that a lesson which reviews or examines can reasonably ask.
MOST_REVIEWED = 12
#: Outcomes that a mock exam draws on.
MOST_EXAMINED = 30
#: Share of lessons that teach where there is time for everything.
TEACH_SHARE = 0.55
OTHERS = ("independent_practice", "formative_assessment", "revision")


@dataclass(frozen=True, slots=True)
class Unit:
    """What one teach lesson covers: outcomes with the points that are meant, in order."""

    parts: tuple[tuple[Outcome, tuple[Point, ...]], ...]

    @property
    def size(self) -> int:
        return sum(len(points) for _, points in self.parts)

    def joined(self, other: Unit) -> Unit | None:
        """Return both in one lesson; None where it would be too much, or spans two groups."""
        together = Unit(self.parts + other.parts)
        fits = len(together.parts) <= MOST_OUTCOMES and together.size <= MOST_POINTS
        return together if fits and self.parts[0][0].group == other.parts[0][0].group else None


def outline(course: Mapping[str, Any], count: int) -> list[Json]:
    """Return the outline entries of a scheme of `count` lessons."""
    taught = [outcome for outcome in outcomes(course) if not outcome.cross_cutting]
    across = [outcome.id for outcome in outcomes(course) if outcome.cross_cutting]
    kinds = lesson_kinds(count, taught)
    units = iter(teach_units(taught, kinds.count("teach")))
    entries: list[Json] = []
    done: list[Unit] = []
    for order, kind in enumerate(kinds, 1):
        if kind == "teach":
            unit = next(units)
            done.append(unit)
        else:
            unit = _reviewed(kind, done, kinds[: order - 1])
        cross = [across[(order - 1) % len(across)]] if across else []
        entries.append(_entry(order, kind, unit, cross, done[-1]))
    return entries


def lesson_kinds(count: int, taught: Sequence[Outcome]) -> list[str]:
    """Return the kind of each lesson, in order."""
    most = sum(len(outcome.points) for outcome in taught)
    if count < PATTERN_FROM:
        teach = min(count, most)
        return ["teach"] * teach + ["independent_practice"] * (count - teach)
    least = max(1, count // 12) * len(OTHERS) + 1
    needed = len(packed(taught))
    teach = min(most, count - least, max(needed, round(TEACH_SHARE * count)))
    others = count - teach - 1
    return [*_mixed(teach, others), "mock_exam"]


def _mixed(teach: int, others: int) -> list[str]:
    """Spread the other kinds evenly after the teach lessons, in turn; the last is a revision."""
    kinds: list[str] = []
    placed = 0
    for number in range(1, teach + 1):
        kinds.append("teach")
        while placed < others * number // teach:
            kinds.append(OTHERS[placed % len(OTHERS)])
            placed += 1
    return kinds


def teach_units(taught: Sequence[Outcome], lessons: int) -> list[Unit]:
    """Return what each of so many teach lessons covers; fewer lessons than outcomes: outcomes share, then fall out."""
    units = [unit for outcome in taught for unit in _chunks(outcome)]
    while len(units) > lessons:
        best = _cheapest_join(units)
        if best is None:
            units = packed(taught)[:lessons]
            break
        index, together = best
        units[index : index + 2] = [together]
    while len(units) < lessons:
        index = max(range(len(units)), key=lambda place: (units[place].size, -place))
        if units[index].size < 2:
            break
        units[index : index + 1] = _halves(units[index])
    return units


def packed(taught: Sequence[Outcome]) -> list[Unit]:
    """Return the fewest lessons that cover everything in order."""
    units: list[Unit] = []
    for unit in (unit for outcome in taught for unit in _chunks(outcome)):
        together = units[-1].joined(unit) if units else None
        if together is None:
            units.append(unit)
        else:
            units[-1] = together
    return units


def _chunks(outcome: Outcome) -> list[Unit]:
    points = outcome.points
    parts = -(-len(points) // MOST_POINTS)
    size = -(-len(points) // parts)
    return [Unit(((outcome, points[start : start + size]),)) for start in range(0, len(points), size)]


def _cheapest_join(units: Sequence[Unit]) -> tuple[int, Unit] | None:
    found: list[tuple[int, int, Unit]] = []
    for index in range(len(units) - 1):
        together = units[index].joined(units[index + 1])
        if together is not None and len({outcome.id for outcome, _ in together.parts}) == len(together.parts):
            found.append((together.size, index, together))
    if not found:
        return None
    _, index, together = min(found, key=lambda entry: entry[:2])
    return index, together


def _halves(unit: Unit) -> list[Unit]:
    (outcome, points), half = unit.parts[0], (unit.size + 1) // 2
    if len(unit.parts) > 1:
        return [Unit(unit.parts[:1]), Unit(unit.parts[1:])]
    return [Unit(((outcome, points[:half]),)), Unit(((outcome, points[half:]),))]


def _reviewed(kind: str, done: Sequence[Unit], before: Sequence[str]) -> Unit:
    """Return what a lesson that does not teach draws on: an exam on all, a revision on many, others on the latest."""
    if kind == "mock_exam":
        return _spread(done, MOST_EXAMINED)
    teach_since = 0
    for earlier in reversed(before):
        if earlier == kind:
            break
        teach_since += earlier == "teach"
    reach = max(teach_since, 3 if kind == "revision" else 1)
    return _spread(done[-reach:], MOST_REVIEWED)


def _spread(done: Sequence[Unit], most: int) -> Unit:
    """Return one point of each outcome, the first points first, then second points, up to `most`."""
    gathered: dict[str, tuple[Outcome, list[Point]]] = {}
    for unit in done:
        for outcome, points in unit.parts:
            gathered.setdefault(outcome.id, (outcome, []))[1].extend(points)
    step = max(1, -(-len(gathered) // most))
    chosen = list(gathered.values())[::step]
    room = most - len(chosen)
    parts = []
    for outcome, points in chosen:
        extra = min(room, len(points) - 1, MOST_POINTS - 1)
        room -= max(extra, 0)
        parts.append((outcome, tuple(points[: 1 + max(extra, 0)])))
    return Unit(tuple(parts))


_LABELS = {
    "teach": "{title}",
    "independent_practice": "Independent practice: {title}",
    "formative_assessment": "Short assessment: {title}",
    "revision": "Revision: {title}",
    "mock_exam": "Mock exam: {title}",
}
_REASONS = {
    "teach": "Follows the recommended order of the course within {group}.",
    "independent_practice": "Pupils work alone on what the lessons before taught, before it is assessed.",
    "formative_assessment": "Shows what the class can do alone after the lessons before, while there is time to act.",
    "revision": "Comes back to earlier lessons after a gap, so that they are recalled again.",
    "mock_exam": "Near the end, so that pupils meet exam conditions and there is a picture of the whole course.",
}


def _entry(order: int, kind: str, unit: Unit, cross: list[str], latest: Unit) -> Json:
    names = [outcome.title for outcome, _ in unit.parts]
    title = " and ".join([", ".join(names[:-1]), names[-1]]) if 1 < len(names) <= MOST_OUTCOMES else names[0]
    if len(names) > MOST_OUTCOMES:
        title = f"{names[0]} to {names[-1]}"
    group = printable(latest.parts[0][0].group, 56, fallback="The course")
    label = printable(_LABELS[kind].format(title=title), 100)
    return {
        "order": order,
        "lesson_type": kind,
        "block": group if len(group) >= 5 else f"Block {group}",
        "outcome_refs": [outcome.id for outcome, _ in unit.parts],
        "points": [point.id for _, points in unit.parts for point in points],
        "cross_cutting": cross,
        "label": label if len(label) >= 10 else f"{label}: the points of the course"[:100],
        "rationale": _REASONS[kind].format(group=group),
    }
