"""Decides what a lesson says of an outcome nobody wrote a topic for: honest frames around the catalogue's own words.

No fact about the subject is invented: questions ask pupils to state, explain, exemplify and connect the catalogue's
points, and what is taught is how to learn them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.lessons.drafting.choice import Draw
from pipeline.lessons.drafting.course import Outcome, printable
from pipeline.lessons.drafting.parts import Example, Json, Maker, Mistake, Question, Step, Topic, choice, option, words

_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]{3,}")
_COMMON = frozenset(
    [
        "with",
        "from",
        "that",
        "this",
        "into",
        "their",
        "them",
        "than",
        "then",
        "when",
        "where",
        "which",
        "what",
        "each",
        "such",
        "more",
        "most",
        "over",
        "under",
        "between",
        "and",
        "using",
        "used",
        "uses",
        "find",
        "carry",
        "have",
        "does",
        "other",
        "only",
        "some",
        "same",
        "both",
        "also",
        "about",
        "reach",
        "read",
    ]
)


def key_words(text: str, most: int = 3) -> list[str]:
    """Return the words of a catalogue point that an answer should use."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if word.lower() not in _COMMON and word.lower() not in found:
            found.append(word.lower())
    return found[:most]


def frame(outcome: Outcome) -> Topic:
    """Return a topic for any outcome, made from its title and points."""
    title = printable(outcome.title, 80)
    points = [point.text for point in outcome.points]
    listed = "; ".join(f"({number}) {text}" for number, text in enumerate((printable(p, 110) for p in points[:4]), 1))
    short = [printable(text, 120) for text in points]
    return Topic(
        name=title,
        can=f"explain in my own words what the course asks about {printable(title, 90)}",
        aim="Explain each point of the course in your own words",
        prior=("Ideas and words from earlier work that these points build on",),
        facts=_facts(short),
        keywords=(
            ("point", "one thing that the course says a pupil must know or be able to do"),
            ("non-example", "something that looks as if it belongs to an idea, but does not"),
        ),
        mistakes=(
            Mistake(
                "Reading the notes again and again shows that I know this.",
                "Reading feels easy, but only saying, writing or using an idea with the notes closed shows what you can recall.",
            ),
        ),
        explain=_EXPLAIN.format(title=title, listed=listed),
        plain=_PLAIN.format(title=title, listed=listed),
        non_example=(
            f"Copying out the words “{printable(points[0], 100)}” is not an explanation: it names the point, "
            "and it does not show what it means."
        ),
        example=lambda draw: _example(draw, short),
        makers=_makers(short),
        starters=_starters(title),
        watch_for="This page does not teach the facts. Check pupils' explanations against your own notes.",
    )


_EXPLAIN = (
    "This part is about {title}. The course lists these points: {listed}. This page does not teach the facts behind "
    "them, because no subject text was written for it. It gives you a way to learn them well from your class notes "
    "and your teacher. Take one point at a time. First say what its main words mean. Then give one concrete example "
    "and show where the point can be seen in it. Next find a non-example: something that looks similar and does not "
    "fit, and say why. Last, close your notes and explain the point aloud. Reading the notes again feels easy, but it "
    "does not show what you can recall. Mark what you missed, open the notes, and put it right."
)
_PLAIN = (
    "This part is about {title}. The course lists these points: {listed}. This page does not teach the facts. It "
    "shows you how to learn them. Use your class notes. Take one point. Say what its main words mean. Give one example. "
    "Show the point in it. Find a non-example and say why it does not fit. Then close your notes. Explain the point aloud. "
    "Reading again feels easy. It does not show what you can recall. Put right what you missed."
)


def _facts(points: Sequence[str]) -> tuple[str, ...]:
    stated = [f"The course expects you to know and use this point: {text}." for text in points[:3]]
    general = [
        "An explanation of a point says what its words mean and gives an example.",
        "Recalling a point with the notes closed shows what has been learned.",
        "A non-example makes clear where an idea stops.",
    ]
    return tuple([*stated, *general][: max(3, min(4, len(stated)))])


def _example(draw: Draw, points: Sequence[str]) -> Example:
    point, person = draw.one(points), draw.person()
    return Example(
        problem=f"{person} wants to learn this point so that it can be used without notes: {point}.",
        steps=(
            Step(
                "Turn the point into a question, so that there is something to answer.",
                f"Question: what does “{point}” ask me to know or do?"[:200],
            ),
            Step(
                "Close the notes and answer in two sentences, with one example.",
                f"{person} writes an answer from memory.",
            ),
            Step("Open the notes and compare; mark each thing that was missing or wrong."),
            Step("Write the answer again with the missing parts, and keep the question for next week."),
        ),
        answer="A question, an answer from memory, and a corrected answer.",
    )


def _makers(points: Sequence[str]) -> tuple[Maker, ...]:
    """Return questions on each point: the first ones ask every point once, later ones ask more of each."""
    kinds = (_state, _explain, _exemplify, _missing, _contrast, _set_question, _connect)
    makers: list[Maker] = [_best_evidence(0, points[0])]
    for round_number, _ in enumerate(kinds):
        for number, text in enumerate(points):
            makers.append(kinds[(round_number + number) % len(kinds)](number, text))
    return tuple(makers)


def _answer(shown: str, point: str) -> Json:
    return words(
        shown,
        [f"Own words that cover: {point}."],
        must_have=key_words(point),
        reject=["The point copied word for word"],
    )


def _question(stem: str, number: int, point: str, scheme: tuple[tuple[str, str], ...], step: str) -> Question:
    shown = f"An answer in the pupil's own words on: {point}."
    return Question(
        stem=stem,
        answer=_answer(shown, point),
        working=(Step(step), Step("Compare the answer with class notes and correct it.")),
        scheme=scheme,
        feedback="A good answer uses the words of the point correctly and adds something of your own: a meaning, a reason or an example.",
        asks=(number,),
        follow_through="Each mark is given for its own part of the answer.",
    )


def _state(number: int, point: str) -> Maker:
    return lambda draw: _question(
        f"{draw.person()} from {draw.place()} starts this topic. With notes closed, state what this point asks you to know or do: {point}.",
        number,
        point,
        (("States the point in own words", f"Says what is meant by: {point}."[:200]),),
        "Say what each main word of the point means.",
    )


def _explain(number: int, point: str) -> Maker:
    return lambda draw: _question(
        f"{draw.person()} missed a class in {draw.place()}. Explain this point in two or three sentences of your own: {point}.",
        number,
        point,
        (
            ("Says what the point means", f"Own words for: {point}."[:200]),
            ("Gives a reason or a link", "Says why it holds or what it is used for."),
        ),
        "Say what it means first, then why it matters or how it is used.",
    )


def _exemplify(number: int, point: str) -> Maker:
    return lambda draw: _question(
        f"Give one example that {draw.person()} could meet in {draw.place()}, and show where this point is seen in it: {point}.",
        number,
        point,
        (
            ("Gives an example that fits", "A concrete example, not the point's own words."),
            ("Shows the point in it", f"Names the part of the example that shows: {point}."[:200]),
        ),
        "Choose something concrete, then name the part that shows the point.",
    )


def _missing(number: int, point: str) -> Maker:
    def make(draw: Draw) -> Question:
        made = _question(
            f"{draw.person()} in {draw.place()} reads the notes on this point three times and says, “Now I know it.” Explain a better test: {point}.",
            number,
            point,
            (
                ("Names a test from memory", "Says, writes or uses the point with notes closed."),
                ("Applies it to this point", f"A question or task on: {point}."[:200]),
            ),
            "Ask what shows that something can be recalled, not only recognised.",
        )
        return _revealing(made)

    return make


def _revealing(made: Question) -> Question:
    return Question(
        stem=made.stem,
        answer=made.answer,
        working=made.working,
        scheme=made.scheme,
        feedback=made.feedback,
        asks=made.asks,
        reveals=(0,),
        follow_through=made.follow_through,
    )


def _contrast(number: int, point: str) -> Maker:
    return lambda draw: _question(
        f"Help {draw.person()} in {draw.place()}: describe a non-example, something that looks like this point but does not fit, and say why: {point}.",
        number,
        point,
        (
            ("Describes a near miss", "Something similar that does not fit the point."),
            ("Says why it does not fit", f"Names what is missing from: {point}."[:200]),
        ),
        "Change one thing in an example so that the point no longer holds.",
    )


def _set_question(number: int, point: str) -> Maker:
    return lambda draw: _question(
        f"Write one question for {draw.person()}'s class in {draw.place()} that tests this point, with a full answer: {point}.",
        number,
        point,
        (
            ("Writes a question that can be answered", f"A question on: {point}."[:200]),
            ("Gives a full answer", "An answer that would earn the marks."),
        ),
        "Start from the answer that should be given, then word the question.",
    )


def _connect(number: int, point: str) -> Maker:
    return lambda draw: _question(
        f"{draw.person()} in {draw.place()} makes a map of the course. Describe one link from this point to an earlier idea: {point}.",
        number,
        point,
        (
            ("Names an earlier idea", "An idea from an earlier lesson or level."),
            ("Says how the two are linked", f"One sentence that joins it to: {point}."[:200]),
        ),
        "Look for a word, a method or a quantity that both share.",
    )


def _best_evidence(number: int, point: str) -> Maker:
    def make(draw: Draw) -> Question:
        person, place = draw.person(), draw.place()
        wrong = "Reading or copying can be done without recalling anything."
        answer = choice(
            option("explains it aloud and gives an example, notes closed", "It has to be recalled and used."),
            option("reads the page about it slowly and carefully twice", wrong, mistake="0"),
            option("copies the page about it in neat handwriting once", wrong, mistake="0"),
            option("marks the main words about it in a bright colour", wrong, mistake="0"),
        )
        return Question(
            stem=f"{person} in {place} is learning this point: {point}. Choose what shows best that it is known. {person} …",
            answer=answer,
            working=(Step("Ask in which case the point must be recalled without help."),),
            scheme=(("Chooses recall, not reading", "Explains it with notes closed."),),
            feedback="Only recalling with the notes closed shows what is known; reading, copying and colouring do not ask for it.",
            asks=(number,),
            reveals=(0,),
        )

    return make


def _starters(title: str) -> tuple[Maker, ...]:
    name = printable(title, 90)
    return (
        _starter("Write two things that {person} from {place} could already know before starting on {name}.", name),
        _starter("Write one word {person} in {place} may meet in {name}, and what you think it means.", name),
        _starter("State one earlier topic that could help {person} in {place} with {name}, and say how.", name),
    )


def _starter(stem: str, name: str) -> Maker:
    def make(draw: Draw) -> Question:
        return Question(
            stem=stem.format(person=draw.person(), place=draw.place(), name=name),
            answer=words(
                f"Anything true from earlier work that belongs to {name}.", ["Any true statement from earlier work"]
            ),
            working=(Step("Think back to earlier lessons and write what comes to mind first."),),
            scheme=(("Recalls something relevant", "A true statement from earlier work."),),
            feedback="What you already know is the hook for what comes next, so recall it before you read on.",
            asks=(),
        )

    return make
