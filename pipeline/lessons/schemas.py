"""What a model writes beside lessons (lesson.py): the scheme of work (outline, details, entries), the critic's form.

A point id is the id of the outcome, a dot and its number ("num.surds.1") or its printed code ("fin.o1.AS1.1").
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipeline.content.fields import Part, Ref, Text, Words
from pipeline.content.lesson import Calculator, LessonType

OUTLINE_SCHEMA = ("outline", 1)
ENTRY_SCHEMA = ("entry", 1)

#: How many lessons a scheme may have, and has where nobody says.
MAX_LESSONS, DEFAULT_LESSONS = 120, 18


class OutlineEntry(Part):
    """One lesson in the plan."""

    order: int = Field(ge=1, le=MAX_LESSONS)
    lesson_type: LessonType
    block: Text = Field(
        min_length=5, max_length=60, description="the run of lessons it belongs to, usually the topic's title"
    )
    outcome_refs: list[Ref] = Field(min_length=1, max_length=120, description="outcome ids; 1 or 2 in a teach lesson")
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


class _Placed(Part):
    order: int = Field(ge=1, le=MAX_LESSONS)


class _Details(Part):
    calculator: Calculator
    minutes: int = Field(ge=5, le=180, description="50 unless the lesson is an exam")
    prerequisites: list[int] = Field(max_length=20, description="orders of earlier lessons it needs")
    summary: Text = Field(min_length=50, max_length=500, description="what is taught and practised, in which steps")
    emphasis: list[Annotated[Text, Words(2, 30)]] = Field(
        min_length=1, max_length=4, description="the difficulties to plan for"
    )
    context: Annotated[Text, Words(2, 40)] = Field(description="one natural setting for the examples")


class EntryDetails(_Details, _Placed):
    """What the outline does not say of one lesson."""

    # As many as a lesson has misconceptions; entries of earlier runs may have one more.
    emphasis: list[Annotated[Text, Words(2, 30)]] = Field(
        min_length=1, max_length=3, description="the difficulties to plan for"
    )


class Entry(_Details, OutlineEntry):
    """A lesson of the scheme: its place in the outline and its details."""


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


CRITIQUE_SCHEMA = ("critique", 2)

FIDELITY = ("F1", "F2", "F3", "F4", "F5")
QUALITY = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7")
CRITERIA = FIDELITY + QUALITY

#: What each criterion asks; the anchors for 1, 3 and 5 are in prompts/critic.md.
CRITERION_NAMES = {
    "F1": "outcome and points taught",
    "F2": "within scope",
    "F3": "demand of the level",
    "F4": "follows the scheme entry",
    "F5": "facts right and consistent",
    "Q1": "clear explanation in small steps",
    "Q2": "model prepares the practice",
    "Q3": "misconceptions real and corrected",
    "Q4": "distractors diagnose",
    "Q5": "progression and load",
    "Q6": "mark scheme usable",
    "Q7": "inclusive, natural setting",
}


class Evidence(Part):
    """Where in the lesson."""

    path: str = Field(min_length=1, max_length=40, description="address in the lesson: c4.q2, c2.text, keywords.1")
    quotation: Annotated[Text, Words(1, 24)] = Field(description="copied from there, word for word")


class Judgement(Part):
    """One criterion."""

    criterion: Literal["F1", "F2", "F3", "F4", "F5", "Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7"]
    evidence: list[Evidence] = Field(min_length=1, max_length=4)
    finding: Annotated[Text, Words(1, 40)]
    score: int = Field(ge=1, le=5, description="1 where the lesson lacks the part to be judged")
    fix: Text = Field(max_length=300, description="one order that says what to change; empty at 5")
    paths: list[str] = Field(max_length=4, description="addresses that the fix is about; none at 5")


class Claim(Part):
    """A checkable statement of the lesson."""

    path: str = Field(min_length=1, max_length=40, description="its address in the lesson")
    quotation: Annotated[Text, Words(1, 20)] = Field(description="its words, copied from there")
    status: Literal["right", "wrong", "unsure"]
    reason: Text = Field(max_length=240, description="why it is wrong, and what is right; empty where it is right")


class Concern(Part):
    """Something a pupil should not meet, or a teacher should know of."""

    category: str = Field(min_length=3, max_length=60)
    act: Literal["block", "label"]
    path: str = Field(min_length=1, max_length=40, description="its address in the lesson")
    quotation: Annotated[Text, Words(1, 30)] = Field(description="its words, copied from there")


class Critique(Part):
    """The whole form."""

    claims: list[Claim] = Field(max_length=30)
    judgements: list[Judgement] = Field(min_length=len(CRITERIA), max_length=len(CRITERIA))
    concerns: list[Concern] = Field(max_length=10)
