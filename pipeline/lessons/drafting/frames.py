"""Decides what a lesson says of an outcome nobody wrote a topic for: honest frames around the catalogue's own words.

No fact about the subject is invented: questions ask pupils to state, explain, exemplify and connect the catalogue's
points, and what is taught is how to learn them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.lessons.drafting.course import Outcome, printable
from pipeline.lessons.drafting.parts import Draw, Example, Maker, Mistake, Question, Step, Topic, choice, option, words

_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]{3,}")
_COMMON = frozenset(
    ("with", "from", "that", "this", "into", "their", "them", "than", "then", "where", "when", "which", "what", "how",
     "each", "such", "more", "most", "over", "under", "between", "using", "used", "uses", "find", "have", "does",
     "other", "only", "some", "same", "both", "also", "about", "reach", "read", "carry", "and", "point", "points")
)  # fmt: skip
#: Points named one by one in an explanation, and characters for all of them together.
_NAMED, _ROOM = 12, 440
#: Points shorter than this (characters) do not say by themselves what they are about.
_SHORT = 25
#: Up to so many points each have questions of their own; beyond, questions ask several at once.
_SINGLE = 8
_TOGETHER = 4


def key_words(text: str, most: int = 3) -> list[str]:
    """Return the words of a catalogue point that an answer should use."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if word.lower() not in _COMMON and word.lower() not in map(str.lower, found):
            found.append(word)
    return found[:most]


def frame(outcome: Outcome) -> Topic:
    """Return a topic for any outcome, made from its title and points."""
    title = printable(outcome.title, 80)
    points = [_placed(point.text, title) for point in outcome.points]
    listed = _listed(points)
    return Topic(
        name=title,
        can=f"explain in my own words what the course asks about {printable(title, 90)}",
        aim="Explain each point of the course in your own words",
        prior=("Ideas and words from earlier work that these points build on",),
        facts=_facts(points),
        keywords=(
            ("point", "one thing that the course says a pupil must know or be able to do"),
            ("non-example", "something that looks as if it belongs to an idea, but does not"),
        ),
        mistakes=(
            Mistake(
                "Reading the notes again and again shows that I know this.",
                "Reading feels easy, but only saying, writing or using an idea with the notes closed shows what you can"
                " recall.",
            ),
        ),
        explain=_EXPLAIN.format(title=title, listed=listed),
        plain=_PLAIN.format(title=title, listed=listed),
        non_example=(
            f"Copying out the words “{printable(points[0], 100)}” is not an explanation: it names the point, "
            "and it does not show what it means."
        ),
        example=lambda draw: _example(draw, points),
        makers=_makers(points),
        starters=tuple(_starter(stem, printable(title, 90)) for stem in _STARTERS),
        watch_for="This page does not teach the facts. Check pupils' explanations against your own notes.",
    )


def _placed(point: str, title: str) -> str:
    """Return a point that says enough by itself: short ones carry the outcome's title."""
    return point if len(point) >= _SHORT else f"{point} ({title})"


def _listed(points: Sequence[str]) -> str:
    named = points[:_NAMED]
    room = max(24, _ROOM // len(named))
    told = "; ".join(f"({number}) {printable(text, room)}" for number, text in enumerate(named, 1))
    return told + (f"; and {len(points) - _NAMED} more" if len(points) > _NAMED else "")


_EXPLAIN = (
    "This part is about {title}. The course lists these points: {listed}. This page does not teach the facts "
    "behind them, because no subject text was written for it. It gives you a way to learn them well from your "
    "class notes and your teacher. Take one point at a time. First say what its main words mean. Then give one "
    "concrete example and show where the point can be seen in it. Next find a non-example: something that looks "
    "similar and does not fit, and say why. Last, close your notes and explain the point aloud. Reading the notes "
    "again feels easy, but it does not show what you can recall. Mark what you missed, open the notes, and put it "
    "right."
)
_PLAIN = (
    "This part is about {title}. The course lists these points: {listed}. This page does not teach the facts. It "
    "shows you how to learn them. Use your class notes. Take one point. Say what its main words mean. Give one "
    "example. Show the point in it. Find a non-example and say why it does not fit. Then close your notes. "
    "Explain the point aloud. Reading again feels easy. It does not show what you can recall. Put right what you "
    "missed."
)


def _facts(points: Sequence[str]) -> tuple[str, ...]:
    stated = [f"The course expects you to know and use this point: {printable(text, 120)}." for text in points[:3]]
    general = [
        "An explanation of a point says what its words mean and gives an example.",
        "Recalling a point with the notes closed shows what has been learned.",
    ]
    return tuple([*stated, *general][:3])


def _example(draw: Draw, points: Sequence[str]) -> Example:
    point, person = printable(draw.one(points), 120), draw.person()
    return Example(
        problem=f"{person} wants to learn this point so that it can be used without notes: {point}.",
        steps=(
            Step(
                "Turn the point into a question, so that there is something to answer.",
                f"Question: what does “{printable(point, 100)}” ask me to know or do?",
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


@dataclass(frozen=True, slots=True)
class _Kind:
    """One way of asking about a point."""

    #: With {who}, {where} and {point}.
    stem: str
    scheme: tuple[tuple[str, str], ...]
    step: str
    #: Characters of the point that the stem quotes.
    quotes: int = 70
    reveals: tuple[int, ...] = ()


_KINDS = (
    _Kind(
        "{who} from {where} starts this topic. Notes closed, state what this point asks you to know or do: {point}.",
        (("States the point in own words", "Says what is meant by: {point}."),),
        "Say what each main word of the point means.",
        quotes=150,
    ),
    _Kind(
        "{who} missed a class in {where}. Explain this in two or three sentences of your own: {point}.",
        (
            ("Says what the point means", "Own words for: {point}."),
            ("Gives a reason or a link", "Says why it holds or what it is used for."),
        ),
        "Say what it means first, then why it matters or how it is used.",
    ),
    _Kind(
        "Think of “{point}”. Give an example that {who} could meet in {where}, and show where the point is seen.",
        (
            ("Gives an example that fits", "A concrete example, not the point's own words."),
            ("Shows the point in it", "Names the part of the example that shows: {point}."),
        ),
        "Choose something concrete, then name the part that shows the point.",
    ),
    _Kind(
        "“I read my notes on {point} three times, so I know it,” says {who} in {where}. Explain a better test of it.",
        (
            ("Names a test from memory", "Says, writes or uses the point with notes closed."),
            ("Applies it to this point", "A question or task on: {point}."),
        ),
        "Ask what shows that something can be recalled, not only recognised.",
        reveals=(0,),
    ),
    _Kind(
        "Describe a non-example for {who} in {where}: something that looks like “{point}” but does not fit. Say why.",
        (
            ("Describes a near miss", "Something similar that does not fit the point."),
            ("Says why it does not fit", "Names what is missing from: {point}."),
        ),
        "Change one thing in an example so that the point no longer holds.",
    ),
    _Kind(
        "Write one question, with its full answer, that would test {who}'s class in {where} on this: {point}.",
        (
            ("Writes a question that can be answered", "A question on: {point}."),
            ("Gives a full answer", "An answer that would earn the marks."),
        ),
        "Start from the answer that should be given, then word the question.",
    ),
    _Kind(
        "{who} in {where} draws a map of the course. Describe one link on it between an earlier idea and {point}.",
        (
            ("Names an earlier idea", "An idea from an earlier lesson or level."),
            ("Says how the two are linked", "One sentence that joins it to: {point}."),
        ),
        "Look for a word, a method or a quantity that both share.",
    ),
)


def _makers(points: Sequence[str]) -> tuple[Maker, ...]:
    """Return questions on each point: the first ones ask every point once, later ones ask more of each."""
    if len(points) > _SINGLE:
        starts = range(0, len(points), _TOGETHER)
        return tuple(_several(start, points[start : start + _TOGETHER]) for start in starts)
    makers: list[Maker] = [_best_evidence(points[0])]
    for turn in range(len(_KINDS)):
        makers += [_asking(_KINDS[(turn + number) % len(_KINDS)], number, text) for number, text in enumerate(points)]
    return tuple(makers)


def _asking(kind: _Kind, number: int, point: str) -> Maker:
    def make(draw: Draw) -> Question:
        who, where = draw.pair()
        quoted = printable(point, kind.quotes)
        scheme = tuple((why, shown.format(point=printable(point, 120))) for why, shown in kind.scheme)
        # A point that was cut ends with its own full stop.
        stem = kind.stem.format(who=who, where=where, point=quoted).replace("….", "…")
        return _open(stem, [point], scheme, kind.step, (number,), kind.reveals)

    return make


def _several(start: int, points: Sequence[str]) -> Maker:
    def make(draw: Draw) -> Question:
        who, where = draw.pair()
        told = "; ".join(f"({number}) {printable(text, 100)}" for number, text in enumerate(points, 1))
        scheme = tuple(
            (f"Explains ({number})", f"Own words for: {printable(text, 120)}.") for number, text in enumerate(points, 1)
        )
        asks = tuple(range(start, start + len(points)))
        stem = f"Explain each of these in a sentence of your own for {who} in {where}: {told}."
        return _open(stem, points, scheme, "Take one point at a time and say what its words mean.", asks, ())

    return make


def _open(
    stem: str,
    points: Sequence[str],
    scheme: tuple[tuple[str, str], ...],
    step: str,
    asks: tuple[int, ...],
    reveals: tuple[int, ...],
) -> Question:
    told = printable("; ".join(points), 200)
    needed = [word for text in points for word in key_words(text)][:4]
    shown = f"An answer in the pupil's own words on: {told}."
    return Question(
        stem=stem,
        answer=words(
            shown, [f"Own words that cover: {told}."], must_have=needed, reject=["The text copied word for word"]
        ),
        working=(Step(step), Step("Compare the answer with class notes and correct it.")),
        scheme=scheme,
        feedback=(
            "A good answer uses the words of the point correctly and adds something of your own: a meaning, a reason or"
            " an example."
        ),
        asks=asks,
        reveals=reveals,
        follow_through="Each mark is given for its own part of the answer.",
    )


#: Options stand in the order of the alphabet; each of these has another place among the three that are wrong.
_FROM_MEMORY = (
    "answering questions about it with the notes closed",
    "explaining it aloud with an example, notes closed",
    "putting it in other words with the notes closed",
    "using it in a new question with the notes closed",
)


def _best_evidence(point: str) -> Maker:
    def make(draw: Draw) -> Question:
        who, where = draw.pair()
        wrong = "Reading or copying can be done without recalling anything."
        return Question(
            stem=f"{who} in {where} learns this: {printable(point, 150)}. Choose what shows best that {who} knows it.",
            answer=choice(
                option(draw.one(_FROM_MEMORY), "It has to be recalled and used."),
                option("reading the page about it slowly and carefully twice", wrong, mistake="0"),
                option("copying the page about it in neat handwriting once", wrong, mistake="0"),
                option("marking the main words about it in a bright colour", wrong, mistake="0"),
            ),
            working=(Step("Ask in which case the point must be recalled without help."),),
            scheme=(("Chooses recall, not reading", "Chooses what is done with notes closed."),),
            feedback=("Recalling with the notes closed shows what is known; reading and copying do not ask for it."),
            reveals=(0,),
        )

    return make


_STARTERS = (
    "Write two things that {who} from {where} could already know before starting on {name}.",
    "Write one word {who} in {where} may meet in {name}, and what you think it means.",
    "State one earlier topic that could help {who} in {where} with {name}, and say how.",
)


def _starter(stem: str, name: str) -> Maker:
    def make(draw: Draw) -> Question:
        who, where = draw.pair()
        return Question(
            stem=stem.format(who=who, where=where, name=name),
            answer=words(
                f"Anything true from earlier work that belongs to {name}.", ["Any true statement from earlier work"]
            ),
            working=(Step("Think back to earlier lessons and write what comes to mind first."),),
            scheme=(("Recalls something relevant", "A true statement from earlier work."),),
            feedback="What you already know is the hook for what comes next, so recall it before you read on.",
            asks=(),
        )

    return make
