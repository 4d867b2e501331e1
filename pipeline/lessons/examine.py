"""From a reply's text to a checked value: JSON, shape, code checks; what is wrong goes back as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.lessons.checks import check_lesson
from pipeline.lessons.course import Course
from pipeline.lessons.fields import MAX_PROBLEMS, problems
from pipeline.lessons.findings import Finding
from pipeline.lessons.schemas import Lesson
from pipeline.lessons.scheme import Entry
from pipeline.lessons.shape import parse_lesson
from pipeline.llm.answers import json_in, unwrapped

M = TypeVar("M", bound=BaseModel)
#: Copied from the scheme entry into the lesson, word for word.
COPIED = ("order", "lesson_type", "outcome_refs", "cross_cutting", "calculator", "minutes")


@dataclass(frozen=True, slots=True)
class Examined(Generic[M]):
    """A value, or why there is none."""

    value: M | None
    #: What must be put right, one sentence each; empty with a value.
    faults: tuple[str, ...] = ()
    #: The answer as JSON, for the next request; None where it was no JSON.
    raw: Any = None
    #: Findings that do not hold the lesson back, as JSON.
    warnings: tuple[dict[str, Any], ...] = ()


def read_json(text: str, names: frozenset[str]) -> tuple[Any, str]:
    """Return the JSON value of a text and "", or None and what is wrong.

    A byte-order mark, a code fence and words around the only object are no part of it; nor is what wraps the object
    that has any of the fields `names`: a key of another name, a list of one, a JSON text as a string.
    """
    try:
        value = json_in(text)
    except (ValueError, RecursionError) as error:
        return None, f"the answer is no JSON object: {error}"
    found = (inner for inner in unwrapped(value) if isinstance(inner, dict) and not names.isdisjoint(inner))
    return next(found, value), ""


def examine(text: str, model: type[M]) -> Examined[M]:
    """A reply as a value of `model`."""
    raw, fault = read_json(text, frozenset(model.model_fields))
    if fault:
        return Examined(None, (fault,))
    try:
        return Examined(model.model_validate(raw), raw=raw)
    except ValidationError as error:
        return Examined(None, tuple(problems(error)), raw)


def examine_lesson(text: str, entry: Entry, course: Mapping[str, Any]) -> Examined[Any]:
    """A reply as a lesson that fits its entry and passes the code checks; the value is its JSON.

    Args:
        course: The pinned catalogue.
    """
    raw, fault = read_json(text, frozenset(Lesson.model_fields))
    if fault:
        return Examined(None, (fault,))
    lesson, wrong = parse_lesson(raw)
    if lesson is None:
        return Examined(None, tuple(wrong), raw)
    plan = entry.model_dump(mode="json")
    differs = [f"{key}: {raw[key]!r}, wanted {plan[key]!r} as in the entry" for key in COPIED if raw[key] != plan[key]]
    findings = check_lesson(raw, entry=plan, course=dict(course))
    blocking = [item for item in findings if item.severity != "W"]
    faults = [*differs, *(item.line() for item in blocking)]
    if faults:
        return Examined(None, tuple(faults[:MAX_PROBLEMS]), raw)
    return Examined(lesson, (), raw, tuple(warning(item) for item in findings))


def warning(finding: Finding) -> dict[str, Any]:
    """A finding as it is recorded and shown beside its lesson."""
    return {**finding.to_json(), "text": f"{finding.found}; wanted {finding.wanted}"}


def course_of(pinned: Any) -> Course:
    """The course a run is pinned to."""
    return Course.from_json(pinned)
