"""A question as pages show it: its number, options in order, parts and marks, and how its answer was checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from pipeline.frameworks import REGIONS, Region
from pipeline.html import clean, count
from pipeline.records.values import digest

COMPUTED, PARTLY, NOBODY = "computed", "in part", "nobody"
SENTENCES = {
    COMPUTED: "Checked by calculation.",
    PARTLY: "Checked by calculation in part; the rest was not checked by code, a person must judge it.",
    NOBODY: "Not checked by code: a person must judge it.",
}
SOLVED = {
    "agreed": "A second solver, who saw the question only, found the same answer.",
    "differs": "A second solver, who saw the question only, found another answer: look at it.",
}

#: An option that is one number: a sign, money, digits or a fraction; what follows is its unit.
_NUMBER = re.compile(
    r"(?P<money>[£$€]?)(?P<sign>[-−]?)(?P<money_after>[£$€]?)"
    r"(?:\\frac\{(?P<top>\d+)\}\{(?P<bottom>\d+)\}|(?P<digits>\d[\d,]*(?:\.\d+)?)(?:/(?P<under>[1-9]\d*))?)"
    r"(?P<unit>[^\d=<>]*)\Z"
)

_DRAWN = re.compile(r"\b(?:sketch|draw|plot)\b", re.IGNORECASE)
#: Room for an answer goes by marks: less than the least get that, more than the most get no more.
LEAST_ROOM, _MOST_ROOM = 2, 6
#: The most for an answer in sentences, as on sheets of paper: an essay takes a page.
_MOST_WRITTEN = 18
#: What is written at length, and the least room for it.
_LONG, _LONG_ROOM = re.compile(r"\b(?:essay|paragraph)\b", re.IGNORECASE), {"essay": 18, "paragraph": 6}
#: Height of the room for one mark, millimetres.
MARK_MM = 12

#: More words than these are a sentence.
_FEW_WORDS = 3
_WORD, _FORMULA = re.compile(r"[A-Za-z]{3,}"), re.compile(r"\\\(.*?\\\)", re.DOTALL)


def is_drawn(ask: str) -> bool:
    """Return whether the answer is a drawing, so that it needs squared paper."""
    return bool(_DRAWN.search(ask))


def room(marks: int, *, written: str = "") -> int:
    """Return the room on paper for an answer, in marks of MARK_MM each.

    Args:
        written: What is asked, where the answer is sentences: an essay or a paragraph takes its room for any marks.
    """
    if not written:
        return max(LEAST_ROOM, min(marks, _MOST_ROOM))
    asked = _LONG.search(written)
    least = _LONG_ROOM[asked[0].lower()] if asked else LEAST_ROOM
    return max(least, min(marks, _MOST_WRITTEN))


def letter(place: int) -> str:
    """Return A, B, C, … for places from 0."""
    return chr(ord("A") + place)


def places(texts: Sequence[str]) -> list[int]:
    """Return the options' indices in the order in which people see them.

    Numbers in one unit rise; other texts stand by a hash, so that the order tells nothing of the right one.
    """
    numbers = [_number(text) for text in texts]
    if None not in numbers and len({unit for _, unit in filter(None, numbers)}) == 1:
        return sorted(range(len(texts)), key=lambda index: (numbers[index], index))
    texts = list(map(clean, texts))
    together = "\n".join(sorted(texts))
    return sorted(range(len(texts)), key=lambda index: (digest(f"{texts[index]}\n{together}".encode()), index))


def _number(text: str) -> tuple[Fraction, str] | None:
    found = _NUMBER.match(text.replace("\\(", "").replace("\\)", "").strip())
    if not found:
        return None
    top, under = found["top"] or found["digits"].replace(",", ""), found["bottom"] or found["under"] or "1"
    value = Fraction(top) / (int(under) or 1)
    return -value if found["sign"] else value, (found["money"] or found["money_after"]) + found["unit"].strip()


class ShownOption(NamedTuple):
    """One choice at its place."""

    letter: str
    text: str
    why: str
    right: bool


class ShownPart(NamedTuple):
    """(a), (b), … of a question."""

    label: str
    ask: str
    answer: str
    marks: int
    #: The same as people read it: "2 marks".
    worth: str


@dataclass(frozen=True)
class ShownQuestion:
    """One item with its number on the page."""

    number: int
    #: As checks name it: c4.q2.
    address: str
    item: Mapping[str, Any]
    card: Mapping[str, Any]
    #: What code found out about the answers of its lesson: {"by", "wrong", "blind"}.
    checks: Mapping[str, Any]
    #: None: the course has no calculators.
    calculator: bool | None
    region: Region = REGIONS["none"]

    @property
    def anchor(self) -> str:
        """Return its id, the same on the lesson and the answers page."""
        return f"q{self.number}"

    @property
    def ask(self) -> str:
        return str(self.item["ask"])

    @property
    def marks(self) -> int:
        return len(self.item["marks"])

    @property
    def worth(self) -> str:
        """Return its marks as people read them: "1 mark"."""
        return self.worth_of(self.marks)

    def worth_of(self, marks: int) -> str:
        """Return so many marks as people read them."""
        return self.region.said(count(marks, "mark"))

    @property
    def checked(self) -> str:
        """Return how what is printed was checked: COMPUTED, PARTLY or NOBODY."""
        found = (self.checks.get("by") or {}).get(self.address)
        return found if found in SENTENCES else NOBODY

    @property
    def solved(self) -> str:
        """Return "agreed" or "differs" where a second solver answered it, else ""."""
        return str((self.checks.get("blind") or {}).get(self.address, ""))

    @cached_property
    def options(self) -> list[ShownOption]:
        """Return the choices in their order."""
        made = self.item.get("options") or ()
        order = places([option["text"] for option in made])
        return [
            ShownOption(letter(place), made[index]["text"], made[index]["why"], index == 0)
            for place, index in enumerate(order)
        ]

    @property
    def key(self) -> ShownOption | None:
        """Return the right choice."""
        return next((option for option in self.options if option.right), None)

    @property
    def parts(self) -> list[ShownPart]:
        """Return (a), (b), … with the marks that the mark scheme gives each."""
        labels = [label for label, _, _ in self.scheme]
        return [
            ShownPart(name, part["ask"], part["answer"], labels.count(name), self.worth_of(labels.count(name)))
            for name, part in self._labelled()
        ]

    def _labelled(self) -> list[tuple[str, Mapping[str, Any]]]:
        return [(f"({letter(place).lower()})", part) for place, part in enumerate(self.item.get("parts") or ())]

    @property
    def answer(self) -> str:
        """Return the answer of a question without parts, without the letter of an option."""
        return str(self.key.text if self.key else self.item.get("answer", ""))

    @cached_property
    def scheme(self) -> list[tuple[str, str, str]]:
        """Return label of the part ("" for none), what earns the mark and why it is given, mark by mark.

        What earns it is "" where that is the whole answer, in words: it stands above. Of several marks that name
        nothing, the last is for the answer.
        """
        answers = {label: _short(part["answer"]) for label, part in self._labelled()}
        whole = self.key.text if self.key else _short(self.answer)
        rows: list[tuple[str, str, str]] = []
        given: set[str] = set()
        for text in reversed(self.item["marks"]):
            label = text[:3] if text[:3] in answers else ""
            why, earns = divided(text.removeprefix(label))
            rows.append((label, earns or ("" if label in given else answers.get(label, whole)), why))
            given |= set() if earns else {label}
        return rows[::-1]

    def of(self, kind: str) -> list[str]:
        """Return the texts of `more` of one kind."""
        return [text.removeprefix(f"{kind}: ") for text in self.item.get("more") or () if text.startswith(f"{kind}: ")]

    def wrong(self) -> Iterator[tuple[str, str, str]]:
        """Yield each wrong answer: its printed value, else "", its method, and what the pupil did."""
        values = self.checks.get("wrong") or {}
        for place, slip in enumerate(self.item.get("wrong") or (), 1):
            yield str(values.get(f"{self.address}.wrong.{place}", "")), slip["method"], slip["error"]


def is_written(answer: str) -> bool:
    """Return whether an answer is a sentence, not a value or a few words."""
    return len(_WORD.findall(_FORMULA.sub("", answer))) > _FEW_WORDS


def _short(answer: str) -> str:
    return "" if is_written(answer) else answer


def divided(text: str) -> tuple[str, str]:
    """Return the words before the line break, and the line after it or ""."""
    words, _, line = clean(text).partition("\n")
    return words.strip(), line.strip()
