"""A good offline lesson, what one check finds in it, and answers of every kind to put into it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.checks import ROWS
from pipeline.lessons.findings import Case, Finding
from pipeline.lessons.offline import answer
from pipeline.lessons.reading import read_lesson

Json = dict[str, Any]
EXACT = {"kind": "exact", "amount": 0}


MATHS = Catalogue().course("mathematics", "national_5")


def scheme_of(course: Json, lessons: int) -> list[Json]:
    """The entries of a course's scheme by the offline author, with their details."""
    outline = answer({"kind": "outline", "course": course, "lessons": lessons})["entries"]
    return [
        {**entry, **answer({"kind": "entry", "course": course, "entries": outline, "order": entry["order"]})}
        for entry in outline
    ]


def lesson_of(course: Json, entries: list[Json], order: int) -> Json:
    return answer({"kind": "lesson", "course": course, "entry": entries[order - 1], "entries": entries})


@cache
def course() -> Json:
    return MATHS.to_json()


@cache
def entries() -> list[Json]:
    return scheme_of(course(), 18)


@cache
def written(order: int) -> Json:
    return lesson_of(course(), entries(), order)


#: A lesson on linear and simultaneous equations; its entry.
ORDER = next(entry["order"] for entry in entries() if "alg.linear" in entry["outcome_refs"])
ENTRY = entries()[ORDER - 1]


def fresh() -> Json:
    """A good lesson, to be spoilt."""
    return copy.deepcopy(written(ORDER))


def found(lesson: Json, check: int, entry: Json = ENTRY) -> list[Finding]:
    """What one row finds; the other rows are not run, to keep the suite quick."""
    read = read_lesson(lesson)
    assert read.lesson is not None, read.findings
    row = next(row for row in ROWS if row.number == check)
    faults = row.check(Case(read.lesson, entry, course()))
    return [Finding(check, fault.severity or row.severity, fault.where, fault.found, fault.wanted) for fault in faults]


def items(lesson: Json) -> list[Json]:
    return [item for card in lesson["cards"] for item in card.get("items", ())]


def item_of(lesson: Json, kind: str) -> Json:
    return next(item for item in items(lesson) if item["answer"]["kind"] == kind)


#: A right answer of each kind.
RIGHT: Mapping[str, Json] = {
    "numeric": {"expression": "20/3", "rounding": {"kind": "dp", "amount": 2}, "value": "6.67", "unit": "cm",
                "tolerance": "0", "shown": "6.67 cm"},
    "statistics": {"data": ["2", "4", "6", "9"], "quantity": "median", "value": "5", "unit": "", "rounding": EXACT,
                   "shown": "5"},
    "trig": {"shape": "triangle", "sides": ["5", "7"], "angles": ["30"], "expression": "1/2*5*7*sin(30)",
             "rounding": {"kind": "dp", "amount": 2}, "value": "8.75", "unit": "cm^2", "tolerance": "0",
             "shown": "8.75 cm²"},
    "vector": {"expressions": ["3 - 1", "4 + 2"], "values": ["2", "6"], "shown": "(2, 6)"},
    "science": {"relationship": "v = u + a*t", "relationship_ref": "", "target": "v", "expression": "3 + 2*5",
                "substitutions": [{"name": "u", "value": "3", "unit": "m/s"},
                                  {"name": "a", "value": "2", "unit": "m/s^2"},
                                  {"name": "t", "value": "5", "unit": "s"}],
                "rounding": EXACT, "value": "13", "unit": "m/s", "shown": "13 m/s"},
    "equation": {"equations": ["2*sin(x) = 1"], "variables": ["x"], "low": "0", "high": "360", "rounding": EXACT,
                 "roots": [{"values": ["30"]}, {"values": ["150"]}], "shown": "30 and 150"},
    "inequality": {"relation": "3 - 2*x < 7", "variable": "x", "sign": ">", "boundary": "-2", "shown": "x > -2"},
    "algebra": {"from_expression": "v = u + a*t", "variables": ["v", "u", "a", "t"], "form": "subject",
                "subject": "t", "answer": "(v - u)/a", "shown": "t"},
    "surd": {"expression": "sqrt(50)", "value": "5*sqrt(2)", "form": "simplest", "shown": "5√2"},
}  # fmt: skip


def right(kind: str, /, **changes: Any) -> Json:
    """A right answer of a kind, with changes."""
    return {"kind": kind, "wrong": [], **RIGHT[kind], **changes}


STEM = "A rod of 20 cm is cut into 3 parts; 5, 7, 30, 4, 2, 6, 9, 50 and an angle of 30 degrees. Calculate it, in cm."


def with_answer(lesson: Json, value: Json) -> Json:
    item = item_of(lesson, "equation")
    item.update({"answer": value, "stem": STEM, "working": [{"does": "Calculate.", "shows": "", "check": ""}]})
    item["misconceptions"] = []
    return lesson
