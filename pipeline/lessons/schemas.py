"""What a model writes: the lesson, the scheme of work (outline, details, entries), the judgement of the critic.

Answer kinds are in answers.py, the notation of maths in fields.py. Ids are unique in a lesson; cards and items are in
teaching order. What one field says about another is checked in shape.py. An item is written in the order of thinking:
givens, answer, working, marks, feedback, and the stem last, so that the wording cannot lead the number. A point id is
the id of the outcome, a dot and its number ("num.surds.1") or its printed code ("fin.o1.AS1.1").
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipeline.lessons.answers import Answer, Bullet, PlainAnswer, Structured, Unit
from pipeline.lessons.fields import Expression, Id, IdOrNone, Part, Ref, Text, Words

#: Number and version of the lesson's wire schema; raise the version when a field changes.
LESSON_SCHEMA = ("lesson", 1)

LessonType = Literal["teach", "independent_practice", "formative_assessment", "revision", "mock_exam"]
Calculator = Literal["non_calc", "mixed", "calc", "exam_conditions"]


class PointCoverage(Part):
    """A catalogue point, where it is taught and by which items it is asked."""

    ref: Ref = Field(description="point id from the scheme entry")
    card: Id = Field(
        description="the explainer or modelling card that teaches it; in lessons without one, the card that asks it"
    )
    items: list[Id] = Field(min_length=1, max_length=20)


class PriorKnowledge(Part):
    """What is needed to start."""

    id: Id
    text: Annotated[Text, Words(2, 30)]
    from_lesson: int = Field(ge=0, le=120, description="order of the earlier lesson; 0 for an earlier level")


class KeyPoint(Part):
    """A fact the lesson teaches, in one sentence: not a topic, an aim or its importance."""

    id: Id
    text: Text = Field(min_length=15, max_length=240)


class Keyword(Part):
    """A term, met in an explainer and in a question."""

    term: Text = Field(min_length=2, max_length=30)
    definition: Text = Field(min_length=10, max_length=200, description="without the term itself")
    gaelic: str = Field(max_length=40, description="empty unless from a checked list")


class Misconception(Part):
    """A belief or a wrong procedure, met in an explainer and used in a distractor or an item."""

    id: Id
    belief: Text = Field(min_length=10, max_length=200)
    correction: Text = Field(min_length=10, max_length=250, description="a fact that says why")
    wrong_method: Expression = Field(description="over the names of an item's givens where it is numeric, else empty")


class Cycle(Part):
    """One small step: explain, model, check, practise."""

    title: Text = Field(min_length=3, max_length=50)
    aim: Annotated[Text, Words(2, 20)] = Field(description="starts with a verb; harder from cycle to cycle")


class Given(Part):
    """A number the item starts from."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,11}$", description="as used in expressions")
    value: Expression = Field(min_length=1)
    unit: Unit


class Figure(Part):
    """Data that the page draws; an item must stay answerable from text and table."""

    kind: Literal[
        "table",
        "bar_chart",
        "line_graph",
        "scatter",
        "function_graph",
        "triangle",
        "circle",
        "solid",
        "vectors",
        "other",
    ]
    alt: Text = Field(
        min_length=10, max_length=150, description="what it shows for the task, all given numbers, never the answer"
    )
    columns: list[Text] = Field(min_length=1, max_length=8)
    rows: list[list[Text]] = Field(
        min_length=1, max_length=20, description="cells as text; for a shape: part and its measure"
    )
    function: Expression = Field(description="y as an expression in x for a function graph, else empty")


class WorkedStep(Part):
    """One line of working."""

    does: Text = Field(min_length=3, max_length=200, description="what we do and why")
    shows: Text = Field(
        max_length=200,
        description=(
            "the complete line, in maths notation; never starts with an equals sign; may be empty in words-only steps"
        ),
    )
    check: Expression = Field(
        description="the same line in evaluator notation so that code can test it; empty where there is nothing to test"
    )


class Item(Part):
    """One question."""

    id: Id
    points: list[Ref] = Field(max_length=4, description="point ids it asks; empty in a starter")
    prior: IdOrNone = Field(description="in a starter the prior knowledge it tests, else empty")
    key_points: list[Id] = Field(max_length=4, description="in an exit ticket the key learning points it tests")
    misconceptions: list[Id] = Field(max_length=3, description="misconceptions it can reveal")
    from_lesson: int = Field(ge=0, le=120, description="order of an earlier lesson it reviews, else 0")
    calculator: bool
    givens: list[Given] = Field(max_length=12)
    answer: Answer
    working: list[WorkedStep] = Field(min_length=1, max_length=8)
    marks: int = Field(ge=1, le=15, description="one for each bullet")
    scheme: list[Bullet] = Field(
        max_length=15, description="as many bullets as marks; empty for structured items, whose parts have their own"
    )
    alternatives: list[Text] = Field(max_length=3, description="other valid methods and what earns their marks")
    follow_through: Text = Field(
        max_length=200, description="which marks are still open after an error; empty for one mark"
    )
    feedback: Text = Field(min_length=10, max_length=400, description="says why, not only what")
    hints: list[Text] = Field(max_length=4)
    figures: list[Figure] = Field(max_length=2)
    stem: Text = Field(
        min_length=10,
        max_length=600,
        description="the question; all data it needs, units asked for; nothing outside the page",
    )

    def answers(self) -> list[tuple[str, PlainAnswer]]:
        """Return its answer under an empty label, or one for each part of a structured question."""
        if isinstance(self.answer, Structured):
            return [(part.label, part.answer) for part in self.answer.parts]
        return [("", self.answer)]


class WorkedExample(Part):
    """A modelled solution; its numbers differ from those of the practice."""

    id: Id
    problem: Text = Field(min_length=10, max_length=400)
    steps: list[WorkedStep] = Field(min_length=3, max_length=7)
    answer: Text = Field(min_length=1, max_length=200, description="as in the last step")


class ExplainerCard(Part):
    """The substance, concrete before abstract, and the same in plainer words."""

    kind: Literal["explainer"]
    id: Id
    title: Text = Field(min_length=5, max_length=100)
    minutes: int = Field(ge=1, le=40)
    cycle: int = Field(ge=0, le=3, description="from 1; 0 outside cycles")
    text: Annotated[Text, Words(80, 220)]
    plain: Text = Field(
        min_length=30,
        max_length=1500,
        description="60 to 80 % of the length; short active sentences; same claims, numbers and maths",
    )
    non_example: Text = Field(
        min_length=10, max_length=300, description="something that looks like it and is not, and why"
    )
    misconceptions: list[Id] = Field(max_length=3, description="those met in this text")
    figures: list[Figure] = Field(max_length=2)
    watch_for: Text = Field(max_length=300, description="note to the teacher")


class ModellingCard(Part):
    """One or two worked examples."""

    kind: Literal["modelling"]
    id: Id
    title: Text = Field(min_length=5, max_length=100)
    minutes: int = Field(ge=1, le=40)
    cycle: int = Field(ge=0, le=3)
    examples: list[WorkedExample] = Field(min_length=1, max_length=2)


class Band(Part):
    """What a score means and what to do next."""

    from_marks: int = Field(ge=0, le=100)
    means: Text = Field(min_length=10, max_length=200)


class QuestionCard(Part):
    """Questions: starter, check, practice, exit ticket or assessment."""

    kind: Literal["starter", "check", "guided_practice", "independent_practice", "exit_ticket", "assessment"]
    id: Id
    title: Text = Field(min_length=5, max_length=100)
    minutes: int = Field(ge=1, le=180)
    cycle: int = Field(ge=0, le=3)
    component: str = Field(max_length=40, description="catalogue component of an exam paper, else empty")
    instructions: Text = Field(max_length=300)
    items: list[Item] = Field(min_length=1, max_length=40)
    rubric: list[Band] = Field(
        max_length=4, description="for exit tickets and assessments, best band first; else empty"
    )


Card = Annotated[ExplainerCard | ModellingCard | QuestionCard, Field(discriminator="kind")]


class Label(Part):
    """Guidance for the teacher: something in the lesson that a class may need warning of."""

    category: Literal[
        "discrimination", "strong_language", "upsetting_theme", "violence", "mental_health", "gambling", "crime",
        "sexual_violence", "reproduction", "recent_event", "practical_work", "relationships",
    ]  # fmt: skip
    quotation: Text = Field(min_length=3, max_length=160)


class TeacherNotes(Part):
    """Notes; together at most 120 words."""

    resources: list[Text] = Field(max_length=6, description="things at hand; no document, site, book, video")
    watch_for: Text = Field(max_length=300)
    if_they_struggle: Text = Field(max_length=300)
    if_they_fly: Text = Field(max_length=300)
    safety: Text = Field(
        max_length=300, description="empty unless practical work; then: the school's own risk assessment decides"
    )


class Lesson(Part):
    """One lesson, complete."""

    order: int = Field(ge=1, le=120)
    lesson_type: LessonType
    title: Text = Field(min_length=30, max_length=80, description="sentence case; no Lesson, &, ? or full stop")
    outcome: Annotated[Text, Words(4, 30)] = Field(
        max_length=190, pattern=r"^I can ", description="one command word the level allows"
    )
    outcome_refs: list[Ref] = Field(min_length=1, max_length=40, description="as in the scheme entry")
    cross_cutting: list[Ref] = Field(max_length=6, description="as in the scheme entry")
    calculator: Calculator
    minutes: int = Field(ge=5, le=180)
    prior_knowledge: list[PriorKnowledge] = Field(min_length=1, max_length=5)
    key_learning_points: list[KeyPoint] = Field(min_length=1, max_length=4)
    keywords: list[Keyword] = Field(max_length=5)
    misconceptions: list[Misconception] = Field(max_length=3)
    cycles: list[Cycle] = Field(max_length=3, description="1 to 3 where the lesson teaches, else none")
    cards: list[Card] = Field(min_length=1, max_length=12)
    points: list[PointCoverage] = Field(min_length=1, max_length=120)
    labels: list[Label] = Field(max_length=6)
    teacher_notes: TeacherNotes

    def items(self) -> list[Item]:
        """Return all questions, in order."""
        return [item for card in self.cards if isinstance(card, QuestionCard) for item in card.items]


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
    context: Annotated[Text, Words(2, 40)] = Field(description="one natural Scottish setting for the examples")


class EntryDetails(_Details, _Placed):
    """What the outline does not say of one lesson."""


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


CRITIQUE_SCHEMA = ("critique", 1)

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
    "Q7": "inclusive, natural Scottish setting",
}


class Evidence(Part):
    """Where in the lesson."""

    id: str = Field(
        min_length=1, max_length=40, description="id of a card, item, keyword or misconception of the lesson"
    )
    quotation: Annotated[Text, Words(1, 12)] = Field(description="copied from there, word for word")


class Judgement(Part):
    """One criterion."""

    criterion: Literal["F1", "F2", "F3", "F4", "F5", "Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7"]
    evidence: list[Evidence] = Field(min_length=1, max_length=4)
    finding: Annotated[Text, Words(1, 40)]
    missing: bool = Field(description="true where the lesson lacks the part to be judged; the score is then ignored")
    score: int = Field(ge=1, le=5)
    fix: Text = Field(max_length=300, description="one order, with the id it is about; empty at 5")


class Claim(Part):
    """A checkable statement of the lesson."""

    id: str = Field(min_length=1, max_length=40)
    claim: Annotated[Text, Words(1, 40)]
    status: Literal["right", "wrong", "unsure"]
    reason: Text = Field(max_length=240)


class Concern(Part):
    """Something a pupil should not meet, or a teacher should know of."""

    category: str = Field(min_length=3, max_length=60)
    act: Literal["block", "label"]
    quotation: Annotated[Text, Words(1, 30)]


class Critique(Part):
    """The whole form."""

    claims: list[Claim] = Field(max_length=30)
    judgements: list[Judgement] = Field(min_length=len(CRITERIA), max_length=len(CRITERIA))
    concerns: list[Concern] = Field(max_length=10)
    verdict: Literal["release", "revise"]
