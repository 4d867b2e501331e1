"""A lesson as a model writes it: what people read, and no second form of it for the computer.

Code reads the printed texts (`maths`) and compares them with one `expression` over the numbers of the question. A field
that is absent has nothing to say; an empty one is refused. Cards and items have no ids: the second item of the fourth
card is c4.q2, its first worked example c4.e1. What one field says about another is checked in shape.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from pipeline.content.fields import Part, Text, Words

#: Name and version of the wire schema; raise the version when a field changes. Version 1: earlier.py.
LESSON_SCHEMA = ("lesson", 2)

LessonType = Literal["teach", "independent_practice", "formative_assessment", "revision", "mock_exam"]
Calculator = Literal["non_calc", "mixed", "calc", "exam_conditions"]

#: What an item is for: "point 2" (of the task), "key point 1", "mistake 1", "prior 3", "lesson 4" (an earlier one).
Target = Annotated[str, StringConstraints(pattern=r"^(point|key point|mistake|prior|lesson) [1-9][0-9]{0,2}$")]
Number = Annotated[int, Field(ge=1, le=40)]
Expression = Annotated[Text, Field(min_length=1, max_length=300)]


#: Kinds of what a class may need warning of.
LABELS = (
    "discrimination", "strong_language", "upsetting_theme", "violence", "mental_health", "gambling", "crime",
    "sexual_violence", "reproduction", "recent_event", "practical_work", "relationships",
)  # fmt: skip
_LABEL = rf"^({'|'.join(LABELS)}): .{{3,160}}$"


class Misconception(Part):
    """A belief or a wrong procedure; numbered from 1 and called "mistake 1" by the items that can reveal it."""

    belief: Text = Field(min_length=10, max_length=200, description="as a pupil holds it")
    correction: Text = Field(min_length=10, max_length=250, description="a fact that says why it is wrong")


class Cycle(Part):
    """One small step: an explainer, a modelling card and a check, in this order."""

    title: Text = Field(min_length=3, max_length=50)
    aim: Annotated[Text, Words(2, 20)] = Field(description="starts with a verb; harder from cycle to cycle")


class Figure(Part):
    """A drawing that code makes from these lines; nothing else is drawn."""

    kind: Text = Field(min_length=3, max_length=24, description="one of the kinds listed under Figures")
    lines: list[Annotated[Text, Field(min_length=3, max_length=200)]] = Field(
        min_length=1, max_length=24, description='"name: value", as listed for the kind'
    )


class Option(Part):
    """One choice."""

    text: Text = Field(min_length=1, max_length=160)
    why: Text = Field(min_length=3, max_length=240, description="what choosing it shows, said to the pupil")
    method: Expression | None = Field(
        default=None, description="of a wrong option: the wrong calculation that gives its text; absent for words"
    )
    mistake: Number | None = Field(default=None, description="number of the misconception that leads to it")


class WrongAnswer(Part):
    """A wrong answer that a named error leads to; code works it out and prints it."""

    method: Expression = Field(description="the wrong calculation, over the numbers of the question")
    error: Text = Field(min_length=3, max_length=200, description="what the pupil did, e.g. added the squares only")
    mistake: Number | None = Field(default=None, description="number of the misconception; absent for a slip")


#: Something that only some items need, with its kind before it.
MORE_KINDS = ("accept", "must", "reject", "alternative", "follow_through", "hint", "calculator")
More = Annotated[
    Text, StringConstraints(pattern=rf"^({'|'.join(MORE_KINDS)}): ", min_length=6, max_length=260)
]  # fmt: skip


class QuestionPart(Part):
    """(a), (b), … of a question, in order."""

    expression: Expression | None = Field(
        default=None, description="as for an item; part_a stands for the result of part (a)"
    )
    answer: Text = Field(min_length=1, max_length=300)
    ask: Text = Field(min_length=5, max_length=400)


class Item(Part):
    """One question. It has one of answer, options and parts."""

    tests: list[Target] = Field(min_length=1, max_length=8, description='e.g. "point 2", "mistake 1"; see Targets')
    expression: Expression | None = Field(
        default=None,
        description=(
            "the whole calculation, unrounded, in the numbers of the question; absent where the answer is words or "
            "read off a figure, or the first formula of ask is the calculation itself"
        ),
    )
    answer: Text | None = Field(
        default=None,
        min_length=1,
        max_length=300,
        description=r"as a pupil should write it: £12.50, 0.038 cm, \(3\sqrt{5}\), x = 2 or x = −3",
    )
    options: list[Option] | None = Field(
        default=None, min_length=3, max_length=5, description="the right one first; code puts them in order"
    )
    parts: list[QuestionPart] | None = Field(default=None, min_length=2, max_length=6)
    wrong: list[WrongAnswer] | None = Field(default=None, min_length=1, max_length=4)
    working: list[Annotated[Text, Field(min_length=3, max_length=420)]] = Field(
        min_length=1, max_length=8, description="what we do and why, a line break, the complete line of mathematics"
    )
    marks: list[Annotated[Text, Field(min_length=5, max_length=360)]] = Field(
        min_length=1,
        max_length=15,
        description=(
            "one text for each mark: why it is given, a line break, what earns it (no second line where that is the "
            'answer); in a question with parts each begins with "(a) "'
        ),
    )
    feedback: Text = Field(min_length=10, max_length=400, description="says why, not only what")
    more: list[More] | None = Field(
        default=None,
        min_length=1,
        max_length=12,
        description=(
            'texts that begin with their kind, "hint: Draw it first.": accept, must, reject (answers in words), '
            "alternative (another valid method and what earns its marks), follow_through (marks still open after an "
            "error), hint (help for the pupil), calculator (yes or no, only where the item differs from its lesson)"
        ),
    )
    figures: list[Figure] | None = Field(default=None, min_length=1, max_length=2)
    ask: Text = Field(
        min_length=10, max_length=600, description="the question, last: all data, units, rounding and form it wants"
    )

    def of(self, kind: str) -> list[str]:
        """Return the texts of `more` of one kind."""
        return [text.removeprefix(f"{kind}: ") for text in self.more or () if text.startswith(f"{kind}: ")]

    def numbers(self, target: str) -> list[int]:
        """Return the numbers of one kind of target ("point", "key point", "mistake", "prior", "lesson")."""
        return [int(text.rsplit(" ", 1)[1]) for text in self.tests if text.rsplit(" ", 1)[0] == target]


class WorkedExample(Part):
    """A modelled solution; its numbers differ from those of the questions."""

    working: list[Annotated[Text, Field(min_length=3, max_length=420)]] = Field(
        min_length=2, max_length=7, description="what we do and why, a line break, the complete line of mathematics"
    )
    answer: Text | None = Field(
        default=None, min_length=1, max_length=200, description="absent where the last line shows it"
    )
    figures: list[Figure] | None = Field(default=None, min_length=1, max_length=2)
    ask: Text = Field(min_length=10, max_length=400)


class ExplainerCard(Part):
    """The substance, concrete before abstract, and the same in plainer words."""

    kind: Literal["explainer"]
    title: Text = Field(min_length=5, max_length=100)
    minutes: int = Field(ge=1, le=40)
    teaches: list[Number] = Field(min_length=1, max_length=8, description="numbers of the points of the task")
    text: Annotated[Text, Words(80, 220)]
    plain: Text = Field(
        min_length=30,
        max_length=1500,
        description="60 to 80 % as long; short active sentences; the same claims, numbers and equations",
    )
    non_example: Text = Field(
        min_length=10, max_length=300, description="something that looks like it and is not, and why"
    )
    mistakes: list[Number] = Field(max_length=3, description="numbers of the misconceptions met in this text")
    figures: list[Figure] | None = Field(default=None, min_length=1, max_length=2)
    watch_for: Text | None = Field(default=None, min_length=3, max_length=300, description="note to the teacher")


class ModellingCard(Part):
    """One or two worked examples."""

    kind: Literal["modelling"]
    title: Text = Field(min_length=5, max_length=100)
    minutes: int = Field(ge=1, le=40)
    examples: list[WorkedExample] = Field(min_length=1, max_length=2)


class QuestionCard(Part):
    """Questions: starter, check, practice, exit ticket or assessment."""

    kind: Literal["starter", "check", "guided_practice", "independent_practice", "exit_ticket", "assessment"]
    title: Text = Field(min_length=5, max_length=100)
    minutes: int = Field(ge=1, le=180)
    component: str | None = Field(default=None, min_length=1, max_length=40, description="catalogue id of a paper")
    instructions: Text | None = Field(default=None, min_length=3, max_length=300)
    items: list[Item] = Field(min_length=1, max_length=60)
    rubric: list[Annotated[Text, StringConstraints(pattern=r"^\d{1,3}: ")]] | None = Field(
        default=None,
        min_length=1,
        max_length=4,
        description="of an exit ticket or assessment, best band first, at most the marks of the card and a colon: "
        '"4: Secure, go on."',
    )


Card = Annotated[ExplainerCard | ModellingCard | QuestionCard, Field(discriminator="kind")]


class Note(Part):
    """A note to the teacher."""

    kind: Literal["resources", "watch_for", "if_they_struggle", "if_they_fly", "safety"] = Field(
        description="safety only for practical work, and then: the school's own risk assessment decides"
    )
    text: Text = Field(min_length=3, max_length=300, description="resources: things at hand, no document, site or book")


class Lesson(Part):
    """One lesson; what its entry in the scheme says is not repeated."""

    title: Text = Field(min_length=30, max_length=80, description="sentence case; no Lesson, &, ? or full stop")
    outcome: Annotated[Text, Words(4, 30)] = Field(
        max_length=190, pattern=r"^I can ", description='starts with "I can " and one command word the level allows'
    )
    prior: list[Annotated[Text, Words(2, 34)]] = Field(
        min_length=1,
        max_length=5,
        description='needed to start; "lesson 3: You can …" where an earlier lesson taught it',
    )
    key_points: list[Annotated[Text, Field(min_length=15, max_length=240)]] = Field(
        min_length=1, max_length=4, description="one fact each, in one sentence: no topic, aim or importance"
    )
    keywords: list[Annotated[Text, StringConstraints(pattern=r"^[^:]{2,30}: .{10,200}$")]] = Field(
        max_length=5,
        description="term of 2 to 30 characters, colon, definition of 10 to 200 without it; each is in an explainer",
    )
    misconceptions: list[Misconception] = Field(max_length=3)
    cycles: list[Cycle] = Field(max_length=3, description="as many as explainer cards; none where nothing is taught")
    #: At most a starter, three cycles of three cards, two practices, an exit ticket.
    cards: list[Card] = Field(min_length=1, max_length=13)
    notes: list[Note] = Field(max_length=8, description="to the teacher, at most 120 words together")
    labels: list[Annotated[Text, StringConstraints(pattern=_LABEL)]] | None = Field(
        default=None,
        min_length=1,
        max_length=6,
        description="what a class may need warning of: kind, colon, words of the lesson (3 to 160 characters); "
        f"kinds: {', '.join(LABELS)}",
    )

    def items(self) -> list[tuple[str, Item]]:
        """Return all questions in order, each with its address (c4.q2)."""
        return [
            (f"c{number}.q{place}", item)
            for number, card in enumerate(self.cards, 1)
            if isinstance(card, QuestionCard)
            for place, item in enumerate(card.items, 1)
        ]

    def examples(self) -> list[tuple[str, WorkedExample]]:
        """Return all worked examples in order, each with its address (c3.e1)."""
        return [
            (f"c{number}.e{place}", example)
            for number, card in enumerate(self.cards, 1)
            if isinstance(card, ModellingCard)
            for place, example in enumerate(card.examples, 1)
        ]


class TextPatch(Part):
    """A new text at a path; an empty one takes an optional field, an entry of a list or a card away."""

    path: str = Field(min_length=1, max_length=80)
    text: Text = Field(max_length=1500)


class ListPatch(Part):
    """New texts of a list (working, marks, tests, key_points, keywords, prior, rubric, labels)."""

    path: str = Field(min_length=1, max_length=80)
    texts: list[Text] = Field(max_length=15)


class NumberPatch(Part):
    """A new number (minutes)."""

    path: str = Field(min_length=1, max_length=80)
    number: int


class ItemPatch(Part):
    """A whole question anew, at its address."""

    path: str = Field(min_length=1, max_length=80)
    item: Item


class CardPatch(Part):
    """A whole card anew; a path one beyond the last adds one."""

    path: str = Field(min_length=1, max_length=80)
    card: Card


CORRECTIONS_SCHEMA = ("corrections", 1)


class Corrections(Part):
    """Put new values in the place of what was found wrong; the rest stays as it is, byte for byte."""

    patches: list[TextPatch | ListPatch | NumberPatch | ItemPatch | CardPatch] = Field(min_length=1, max_length=60)


class AuthorReply(Part):
    """Answer with a lesson or with patches of one, as the task asks: one form, so that both read one cached prefix."""

    lesson: Lesson | None = None
    patches: list[TextPatch | ListPatch | NumberPatch | ItemPatch | CardPatch] | None = None


BLIND_SCHEMA = ("solutions", 1)


class Solution(Part):
    """Answer one question, or one part of it, without its key."""

    question: str = Field(min_length=4, max_length=12, description="its address, e.g. c4.q2 or c4.q2(a)")
    answer: Text = Field(min_length=1, max_length=300, description="the value alone, as a pupil would write it")
    options: list[int] = Field(max_length=5, description="numbers of all options that are right; empty where none")


class Solutions(Part):
    """The answers of somebody who saw the questions only."""

    solutions: list[Solution] = Field(min_length=1, max_length=60)
