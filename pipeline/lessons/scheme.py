"""The scheme of work: outline and details as a model writes them, the scheme as it is recorded.

A point id is the outcome's id, a dot and its number ("num.surds.1") or its printed code
("fin.o1.AS1.1"); the catalogue makes them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipeline.lessons.fields import Part, Ref, Text, Words
from pipeline.lessons.schemas import Calculator, LessonType

OUTLINE_SCHEMA = ("outline", 1)
ENTRY_SCHEMA = ("entry", 1)

#: How many lessons a scheme may have.
MIN_LESSONS, MAX_LESSONS, DEFAULT_LESSONS = 1, 120, 18


class OutlineEntry(Part):
    """One lesson in the plan."""

    order: int = Field(ge=1, le=MAX_LESSONS)
    lesson_type: LessonType
    block: Text = Field(
        min_length=5, max_length=60, description="the run of lessons it belongs to, usually the topic's title"
    )
    outcome_refs: list[Ref] = Field(min_length=1, max_length=120, description="outcome ids; 1 to 3 in a teach lesson")
    points: list[Ref] = Field(
        min_length=1, max_length=200, description="point ids; 1 to 4 in a teach lesson, all of its outcomes"
    )
    cross_cutting: list[Ref] = Field(max_length=6, description="ids of cross-cutting outcomes it practises")
    label: Text = Field(
        min_length=10, max_length=100, description="what this lesson is about, as a teacher would write it in a plan"
    )
    rationale: Text = Field(min_length=20, max_length=300, description="why here, after what")


class Outline(Part):
    """The lessons in order."""

    entries: list[OutlineEntry] = Field(min_length=1, max_length=MAX_LESSONS)


class EntryDetails(Part):
    """What the outline does not say of one lesson."""

    order: int = Field(ge=1, le=MAX_LESSONS)
    calculator: Calculator
    minutes: int = Field(ge=5, le=180, description="50 unless the lesson is an exam")
    prerequisites: list[int] = Field(max_length=20, description="orders of earlier lessons it needs")
    summary: Text = Field(min_length=50, max_length=500, description="what is taught and practised, in which steps")
    emphasis: list[Annotated[Text, Words(2, 30)]] = Field(
        min_length=1, max_length=4, description="the difficulties to plan for"
    )
    context: Annotated[Text, Words(2, 40)] = Field(description="one natural Scottish setting for the examples")


class Entry(OutlineEntry):
    """A lesson of the scheme: its place in the outline and its details."""

    calculator: Calculator
    minutes: int = Field(ge=5, le=180)
    prerequisites: list[int] = Field(max_length=20)
    summary: Text = Field(min_length=50, max_length=500)
    emphasis: list[Annotated[Text, Words(2, 30)]] = Field(min_length=1, max_length=4)
    context: Annotated[Text, Words(2, 40)]


class Scheme(Part):
    """The scheme of work."""

    course_id: str
    #: Content hash of the catalogue it was made from.
    catalogue: str
    lesson_count: int = Field(ge=1, le=MAX_LESSONS)
    #: True where the lessons do not reach every learning outcome.
    partial: bool
    #: Outcome ids, in teaching order, that no lesson teaches.
    not_covered: list[Ref]
    entries: list[Entry] = Field(min_length=1, max_length=MAX_LESSONS)
