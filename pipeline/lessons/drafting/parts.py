"""Decides chance for the offline author: the same course, lesson and purpose always draw the same numbers and names."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

PEOPLE = (
    "Ailsa", "Callum", "Eilidh", "Fraser", "Iona", "Rory", "Zainab", "Kacper", "Priya", "Mairi", "Yusuf", "Skye",
    "Lewis", "Aisha", "Finlay", "Sofia", "Ravi", "Catriona", "Omar", "Kirsty", "Mateusz", "Nadia", "Ewan", "Mei",
    "Struan", "Amina", "Isla", "Jakub", "Chidi", "Morven",
)  # fmt: skip
PLACES = (
    "Oban", "Stornoway", "Paisley", "Dundee", "Inverness", "Kirkwall", "Lerwick", "Ayr", "Dumfries", "Perth",
    "Stirling", "Falkirk", "Galashiels", "Elgin", "Fort William", "Glenrothes", "Motherwell", "Arbroath", "Peebles",
    "Thurso", "Greenock", "Aviemore", "Portree",
)  # fmt: skip


class Draw:
    """A source of choices with a name of its own; never the clock, never a shared generator."""

    def __init__(self, *purpose: object) -> None:
        # A text seed gives the same sequence in every process and version of Python.
        self._random = random.Random("|".join(str(part) for part in purpose))
        self._next_pair = self.whole(0, 689)

    def whole(self, low: int, high: int) -> int:
        """Return a whole number from low to high, both possible."""
        return self._random.randint(low, high)

    def nonzero(self, low: int, high: int) -> int:
        """Return a whole number from low to high, but not nought."""
        return self.one([number for number in range(low, high + 1) if number])

    def one(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return choices[self._random.randrange(len(choices))]

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """Return so many different choices, in drawn order."""
        return self._random.sample(list(choices), count)

    def pair(self) -> tuple[str, str]:
        """Return a person and a town; the same pair comes back only after 690 others."""
        self._next_pair += 1
        # 30 and 23 have no common factor, so the two cycles meet again only after their product.
        return PEOPLE[self._next_pair % len(PEOPLE)], PLACES[self._next_pair % len(PLACES)]

    def person(self) -> str:
        """Return a first name."""
        return self.one(PEOPLE)

    def place(self) -> str:
        """Return a town."""
        return self.one(PLACES)


Json = dict[str, Any]
EXACT: Json = {"kind": "exact", "amount": 0}
MONEY: Json = {"kind": "money", "amount": 0}


def places(count: int) -> Json:
    """Return the rule for so many decimal places."""
    return {"kind": "dp", "amount": count}


def figures(count: int) -> Json:
    """Return the rule for so many significant figures."""
    return {"kind": "sf", "amount": count}


@dataclass(frozen=True, slots=True)
class Step:
    """A line of working: what we do, what stands there, and the same for code to test."""

    does: str
    shows: str = ""
    check: str = ""

    def to_json(self) -> Json:
        return {"does": self.does, "shows": self.shows, "check": self.check}


@dataclass(frozen=True, slots=True)
class Question:
    """A question before it has a place in a lesson."""

    stem: str
    #: An answer of the lesson schema.
    answer: Json
    working: tuple[Step, ...]
    #: (why the mark is given, what earns it here); one a mark.
    scheme: tuple[tuple[str, str], ...]
    feedback: str
    #: Names, values and units of what is given, where an expression needs more than the stem's numbers.
    givens: tuple[tuple[str, str, str], ...] = ()
    calculator: bool = False
    #: Which points of the topic it asks, from 0.
    asks: tuple[int, ...] = (0,)
    #: Which misconceptions of the topic it can reveal, from 0.
    reveals: tuple[int, ...] = ()
    hints: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    follow_through: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example."""

    problem: str
    steps: tuple[Step, ...]
    answer: str

    def to_json(self, name: str) -> Json:
        return {"id": name, "problem": self.problem, "steps": [s.to_json() for s in self.steps], "answer": self.answer}


@dataclass(frozen=True, slots=True)
class Mistake:
    """A misconception of a topic."""

    belief: str
    correction: str
    wrong_method: str = ""


Maker = Callable[[Draw], Question]


@dataclass(frozen=True, slots=True)
class Topic:
    """All that a cycle on one outcome needs."""

    #: Words for sentences, no capital: "surds".
    name: str
    #: "I can …" without those two words.
    can: str
    aim: str
    prior: tuple[str, ...]
    facts: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]
    mistakes: tuple[Mistake, ...]
    explain: str
    plain: str
    non_example: str
    example: Callable[[Draw], Example]
    #: Rising in difficulty; every point is asked by one of the first four.
    makers: Sequence[Maker]
    #: Quick questions on what is needed to start.
    starters: Sequence[Maker]
    #: Which points each fact covers is not recorded; the explainer teaches all of them.
    watch_for: str = ""
    extra: Json = field(default_factory=dict)


def item(
    question: Question, name: str, *, points: Sequence[str] = (), wrong: Sequence[str] = (), **fields: Any
) -> Json:
    """Return the question as an item of the lesson schema.

    Args:
        name: Its id.
        points: Ids of the topic's points, for `asks`.
        wrong: Ids of the topic's misconceptions, for `reveals`.
        fields: prior, key_points, from_lesson.
    """
    revealed = [wrong[index] for index in question.reveals if index < len(wrong)]
    scheme = [{"generic": generic, "illustration": shown} for generic, shown in question.scheme]
    return {
        "id": name,
        "points": [points[index] for index in question.asks if index < len(points)][:4],
        "prior": fields.get("prior", ""),
        "key_points": list(fields.get("key_points", ())),
        "misconceptions": revealed[:3],
        "from_lesson": fields.get("from_lesson", 0),
        "calculator": question.calculator,
        "givens": [{"name": n, "value": value, "unit": unit} for n, value, unit in question.givens],
        "answer": _linked(question.answer, wrong),
        "working": [step.to_json() for step in question.working],
        "marks": len(question.scheme),
        "scheme": scheme,
        "alternatives": list(question.alternatives),
        "follow_through": question.follow_through if len(question.scheme) > 1 else "",
        "feedback": question.feedback,
        "hints": list(question.hints),
        "figures": [],
        "stem": question.stem,
    }


def _linked(answer: Json, wrong: Sequence[str]) -> Json:
    """Put the lesson's misconception ids where the topic gave numbers ("0", "1") or none ("")."""

    def name(label: str) -> str:
        return wrong[int(label)] if label.isdigit() and int(label) < len(wrong) else ""

    linked = dict(answer)
    for key in ("wrong", "options"):
        if key in linked:
            linked[key] = [{**entry, "misconception": name(entry["misconception"])} for entry in linked[key]]
    return linked


def wrong(label: str, expression: str, value: str, shows: str) -> Json:
    """Return a wrong answer that a named error leads to; label is the topic's mistake number, or "" for a slip."""
    return {"misconception": label, "expression": expression, "value": value, "shows": shows}


def numeric(
    expression: str, value: str, shown: str, *, rounding: Json = EXACT, unit: str = "", errors: Sequence[Json] = ()
) -> Json:
    """Return a numeric answer."""
    return {
        "kind": "numeric",
        "expression": expression,
        "rounding": dict(rounding),
        "value": value,
        "unit": unit,
        "tolerance": "0",
        "wrong": list(errors),
        "shown": shown,
    }


def exact(kind: str, expression: str, value: str, form: str, shown: str, *, errors: Sequence[Json] = ()) -> Json:
    """Return a surd, fraction or power in a required form."""
    return {"kind": kind, "expression": expression, "value": value, "form": form, "wrong": list(errors), "shown": shown}


def column(expressions: Sequence[str], values: Sequence[str], shown: str) -> Json:
    """Return a vector: the calculation and the value of each component."""
    return {"kind": "vector", "expressions": list(expressions), "values": list(values), "wrong": [], "shown": shown}


def algebra(
    given: str,
    answer: str,
    form: str,
    shown: str,
    *,
    letters: Sequence[str] = ("x",),
    subject: str = "",
    errors: Sequence[Json] = (),
) -> Json:
    """Return an expression in letters."""
    return {
        "kind": "algebra",
        "from_expression": given,
        "variables": list(letters),
        "form": form,
        "subject": subject,
        "answer": answer,
        "wrong": list(errors),
        "shown": shown,
    }


def equation(
    equations: Sequence[str],
    letters: Sequence[str],
    roots: Sequence[Sequence[str]],
    shown: str,
    *,
    rounding: Json = EXACT,
    low: str = "",
    high: str = "",
    errors: Sequence[Json] = (),
) -> Json:
    """Return the solutions of an equation, or of a system where there are two letters."""
    return {
        "kind": "equation" if len(equations) == 1 else "system",
        "equations": list(equations),
        "variables": list(letters),
        "low": low,
        "high": high,
        "rounding": dict(rounding),
        "roots": [{"values": list(values)} for values in roots],
        "wrong": list(errors),
        "shown": shown,
    }


def option(text: str, why: str, *, value: str = "", method: str = "", mistake: str = "") -> Json:
    """Return one choice of a multiple-choice question; mistake is the topic's mistake number."""
    return {"text": text, "expression": value, "method": method, "misconception": mistake, "why": why}


def choice(key: Json, *others: Json) -> Json:
    """Return a multiple-choice answer; numbers rise, else by the alphabet: the key has no favourite place."""
    options = sorted((key, *others), key=_place)
    return {"kind": "mcq", "options": options, "key": options.index(key), "shown": key["text"]}


def _place(entry: Json) -> tuple[int, float, str]:
    try:
        return 0, float(entry["text"].replace("£", "").replace(",", "").split(" ")[0].rstrip("%°")), entry["text"]
    except ValueError:
        return 1, 0.0, entry["text"]


def words(shown: str, accepted: Sequence[str], *, must_have: Sequence[str] = (), reject: Sequence[str] = ()) -> Json:
    """Return an answer in words, marked by a person."""
    return {
        "kind": "short_text",
        "accepted": list(accepted),
        "must_have": list(must_have),
        "reject": list(reject),
        "shown": shown,
    }
