"""A good offline lesson, what one check finds in it, and answers of every kind to put into it."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.checks import ROWS
from pipeline.lessons.findings import Case, Finding
from pipeline.lessons.offline import answer
from pipeline.lessons.shape import parse_lesson

Json = dict[str, Any]


@cache
def course() -> Json:
    return Catalogue().course("mathematics", "national_5").to_json()


@cache
def entries() -> list[Json]:
    outline = answer({"kind": "outline", "course": course(), "lessons": 18})["entries"]
    return [
        {**entry, **answer({"kind": "entry", "course": course(), "entries": outline, "order": entry["order"]})}
        for entry in outline
    ]


@cache
def written(order: int) -> Json:
    return answer({"kind": "lesson", "course": course(), "entry": entries()[order - 1], "entries": entries()})


#: A lesson on linear and simultaneous equations; its entry.
ORDER = next(entry["order"] for entry in entries() if "alg.linear" in entry["outcome_refs"])
ENTRY = entries()[ORDER - 1]


def fresh() -> Json:
    """A good lesson, to be spoilt."""
    return copy.deepcopy(written(ORDER))


def found(lesson: Json, check: int, entry: Json = ENTRY) -> list[Finding]:
    """What one row finds; the other rows are not run, to keep the suite quick."""
    parsed, problems = parse_lesson(lesson)
    assert parsed is not None, problems
    row = next(row for row in ROWS if row.number == check)
    faults = row.check(Case(parsed, entry, course()))
    return [Finding(check, fault.severity or row.severity, fault.where, fault.found, fault.wanted) for fault in faults]


def items(lesson: Json) -> list[Json]:
    return [item for card in lesson["cards"] for item in card.get("items", ())]


def item_of(lesson: Json, kind: str) -> Json:
    return next(item for item in items(lesson) if item["answer"]["kind"] == kind)


def numeric(**changes: Any) -> Json:
    base = {
        "kind": "numeric", "expression": "20/3", "rounding": {"kind": "dp", "amount": 2}, "value": "6.67", "unit": "cm",
        "tolerance": "0", "wrong": [], "shown": "6.67 cm",
    }  # fmt: skip
    return {**base, **changes}


def statistics(**changes: Any) -> Json:
    base = {
        "kind": "statistics", "data": ["2", "4", "6", "9"], "quantity": "median", "value": "5", "unit": "",
        "rounding": {"kind": "exact", "amount": 0}, "wrong": [], "shown": "5",
    }  # fmt: skip
    return {**base, **changes}


def geometry(**changes: Any) -> Json:
    base = {
        "kind": "trig", "shape": "triangle", "sides": ["5", "7"], "angles": ["30"], "expression": "1/2*5*7*sin(30)",
        "rounding": {"kind": "dp", "amount": 2}, "value": "8.75", "unit": "cm^2", "tolerance": "0", "wrong": [],
        "shown": "8.75 cm²",
    }  # fmt: skip
    return {**base, **changes}


def vector(**changes: Any) -> Json:
    base = {"kind": "vector", "expressions": ["3 - 1", "4 + 2"], "values": ["2", "6"], "wrong": [], "shown": "(2, 6)"}
    return {**base, **changes}


def science(**changes: Any) -> Json:
    base = {
        "kind": "science", "relationship": "v = u + a*t", "relationship_ref": "", "target": "v",
        "substitutions": [{"name": "u", "value": "3", "unit": "m/s"}, {"name": "a", "value": "2", "unit": "m/s^2"},
                          {"name": "t", "value": "5", "unit": "s"}],
        "expression": "3 + 2*5", "rounding": {"kind": "exact", "amount": 0}, "value": "13", "unit": "m/s", "wrong": [],
        "shown": "13 m/s",
    }  # fmt: skip
    return {**base, **changes}


def equation(**changes: Any) -> Json:
    base = {
        "kind": "equation", "equations": ["2*sin(x) = 1"], "variables": ["x"], "low": "0", "high": "360",
        "rounding": {"kind": "exact", "amount": 0}, "roots": [{"values": ["30"]}, {"values": ["150"]}], "wrong": [],
        "shown": "30 and 150",
    }  # fmt: skip
    return {**base, **changes}


def algebra(**changes: Any) -> Json:
    base = {
        "kind": "algebra", "from_expression": "v = u + a*t", "variables": ["v", "u", "a", "t"], "form": "subject",
        "subject": "t", "answer": "(v - u)/a", "wrong": [], "shown": "t",
    }  # fmt: skip
    return {**base, **changes}


def surd(**changes: Any) -> Json:
    base = {
        "kind": "surd",
        "expression": "sqrt(50)",
        "value": "5*sqrt(2)",
        "form": "simplest",
        "wrong": [],
        "shown": "5√2",
    }
    return {**base, **changes}


STEM = "A rod of 20 cm is cut into 3 parts; 5, 7, 30, 4, 2, 6, 9, 50 and an angle of 30 degrees. Calculate it, in cm."


def with_answer(lesson: Json, value: Json) -> Json:
    item = item_of(lesson, "equation")
    item.update({"answer": value, "stem": STEM, "working": [{"does": "Calculate.", "shows": "", "check": ""}]})
    item["misconceptions"] = []
    return lesson
