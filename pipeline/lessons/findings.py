"""What a check says: a finding; and what a check sees: one lesson with its place in the scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from pipeline.lessons.answers import PlainAnswer
from pipeline.lessons.fields import texts
from pipeline.lessons.schemas import Item, Lesson

#: B: never published. R: fed back, the lesson is revised. W: recorded, shown to the reviewer.
Severity = Literal["B", "R", "W"]
#: Longest quotation in a finding.
_QUOTED = 160


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault that code found."""

    #: Number of the check's row in the table.
    check: int
    severity: Severity
    #: Path or id of the part that is meant.
    where: str
    found: str
    wanted: str

    def to_json(self) -> dict[str, Any]:
        """Return it as recorded with the lesson."""
        return asdict(self)

    def line(self) -> str:
        """Return one line for the author: where, what was found, what is wanted."""
        return f"{self.where}: {self.found}; wanted {self.wanted}"


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
        """Return every text of the lesson with its path; parts that have an id are named by it."""
        return list(texts(self.lesson.model_dump()))

    def answers(self) -> Iterator[tuple[str, Item, PlainAnswer]]:
        """Yield every answer with the place it stands at; parts of structured items one by one."""
        for item in self.lesson.items():
            for label, answer in item.answers():
                yield f"{item.id}{label}", item, answer


@dataclass(frozen=True, slots=True)
class Fault:
    """What a check yields: a finding without its row's number."""

    where: str
    found: str
    wanted: str
    #: "" for the row's own severity.
    severity: Severity | Literal[""] = ""


Check = Callable[[Case], Iterator[Fault]]


def quoted(text: object) -> str:
    """Return a short quotation of what was found, on one line."""
    plain = " ".join(str(text).split())
    return plain if len(plain) <= _QUOTED else plain[: _QUOTED - 1] + "…"
