"""What a check says: a finding; and what a check sees: one lesson with its place in the scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from pipeline.content.addresses import texts
from pipeline.content.lesson import ExplainerCard, Lesson
from pipeline.content.numbers import numbers_in

#: B: never published. R: fed back, the lesson is corrected. W: recorded, shown to the reviewer.
Severity = Literal["B", "R", "W"]
#: Longest quotation in a finding.
_QUOTED = 160


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault that code found."""

    #: Number of the check's row in the table.
    check: int
    severity: Severity
    #: Address of the part that is meant.
    where: str
    found: str
    wanted: str
    #: Other addresses that a correction may change.
    also: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as recorded with the lesson."""
        names = ("check", "severity", "where", "found", "wanted")
        return {name: getattr(self, name) for name in names}

    def line(self) -> str:
        """Return one line for the author: where, what was found, what is wanted."""
        wanted = f"; wanted {self.wanted}" if self.wanted else ""
        others = [place for place in self.also if place != self.where]
        also = f" (may also be put right at {', '.join(others)})" if others else ""
        return f"{self.where}: {self.found}{wanted}{also}"


@dataclass(frozen=True)
class Case:
    """What a check looks at."""

    lesson: Lesson
    #: The scheme's entry, JSON.
    entry: Mapping[str, Any]
    #: The pinned catalogue course, JSON.
    course: Mapping[str, Any]

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """Return every text of the lesson with its address."""
        return list(texts(self.lesson.model_dump(exclude_none=True)))

    @cached_property
    def taught(self) -> set[Fraction]:
        """Return the numbers that a lesson teaches: 8 bits of a byte, the 95 °C of a reaction."""
        told = [card.text for card in self.lesson.cards if isinstance(card, ExplainerCard)]
        told += [*self.lesson.key_points, *self.lesson.keywords]
        return {number for text in told for number in numbers_in(text)}


@dataclass(frozen=True, slots=True)
class Fault:
    """What a check yields: a finding without its row's number."""

    where: str
    found: str
    wanted: str
    #: "" for the row's own severity.
    severity: Severity | Literal[""] = ""
    also: Sequence[str] = ()


Check = Callable[[Case], Iterator[Fault]]


def quoted(text: object) -> str:
    """Return a short quotation of what was found, on one line."""
    plain = " ".join(str(text).split())
    return plain if len(plain) <= _QUOTED else plain[: _QUOTED - 1] + "…"
