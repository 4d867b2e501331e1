"""Check 1: what one field of a lesson says about another; counts that depend on the kind of card or lesson.

Prompts take their numbers from the tables here; `rules` says each rule in words, beside the code that checks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.content.fields import count_words
from pipeline.content.findings import Fault
from pipeline.content.lesson import Card, ExplainerCard, Item, Lesson, QuestionCard

#: Items by kind of card, least and most.
ITEMS: Mapping[str, tuple[int, int]] = {
    "starter": (3, 6),
    "check": (2, 4),
    "guided_practice": (4, 8),
    "independent_practice": (4, 12),
    "exit_ticket": (2, 4),
    "assessment": (4, 60),
}
#: Cards of each cycle, in this order.
CYCLE = ("explainer", "modelling", "check")
#: Cards a lesson must have besides its cycles, and those it may have.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "teach": ("starter", "guided_practice", "exit_ticket"),
    "independent_practice": ("independent_practice",),
    "formative_assessment": ("assessment",),
    "revision": ("independent_practice",),
    "mock_exam": ("assessment",),
}
ALLOWED: Mapping[str, frozenset[str]] = {
    "teach": frozenset({*CYCLE, "starter", "guided_practice", "independent_practice", "exit_ticket"}),
    "independent_practice": frozenset({"starter", "explainer", "modelling", "independent_practice", "exit_ticket"}),
    "formative_assessment": frozenset({"assessment"}),
    "revision": frozenset({*CYCLE, "starter", "guided_practice", "independent_practice", "exit_ticket"}),
    "mock_exam": frozenset({"assessment"}),
}
#: What a teach lesson has at least.
TEACH_LEAST: Mapping[str, int] = {"key_points": 3, "keywords": 1, "misconceptions": 1, "cycles": 1}
#: Items in the practice of a lesson of that type, least; marks of a formative assessment.
PRACTICE_LEAST = 8
FORMATIVE_MARKS = (10, 20)
#: Earlier lessons that a revision lesson draws on, where there are so many.
REVISION_LESSONS = 3
#: Minutes by which the cards may miss the lesson's time.
TIMING_SLACK = 5
NOTES_WORDS = 120


def rules() -> list[str]:
    """Return every rule of this module in words."""
    counts = ", ".join(f"{kind} {low} to {high}" for kind, (low, high) in ITEMS.items())
    least = ", ".join(f"{number} {name}" for name, number in TEACH_LEAST.items())
    return [
        f"Items in a card: {counts}.",
        *(
            f"A lesson of type {kind} has {', '.join(needed)}"
            + (" and one to three cycles" if kind == "teach" else "")
            + f"; it may have {', '.join(sorted(ALLOWED[kind] - set(needed))) or 'no other card'}."
            for kind, needed in REQUIRED.items()
        ),
        f"A cycle is three cards that follow each other: {', '.join(CYCLE)}. There are as many explainer cards as "
        "entries in cycles, and the n-th explainer belongs to the n-th cycle. So a teach lesson with two cycles has "
        "the cards starter, explainer, modelling, check, explainer, modelling, check, guided_practice, exit_ticket.",
        "The starter is the first card, the exit_ticket the last.",
        f"A teach lesson has at least {least}.",
        f"The practice of an independent_practice lesson has at least {PRACTICE_LEAST} items.",
        f"A formative_assessment has {FORMATIVE_MARKS[0]} to {FORMATIVE_MARKS[1]} marks together.",
        f'The items of a revision name at least {REVISION_LESSONS} earlier lessons ("lesson 4"), where there are so '
        "many.",
        f"The minutes of the cards add up to those of the lesson, ± {TIMING_SLACK}.",
        f"The notes have at most {NOTES_WORDS} words together.",
        'Targets, in tests: "point 2" is the second point of the task, "key point 1", "mistake 1" (a misconception) '
        'and "prior 3" are entries of your own lists, "lesson 4" is an earlier lesson. Each must exist.',
        'An item of the starter tests "prior n"; any other item at least one "point n".',
        "In a teach lesson every point of the task is taught by an explainer (teaches). In every lesson each point is "
        "tested by an item outside the starter.",
        "The exit_ticket tests every key point, and has a rubric.",
        "In a teach lesson each misconception is met in an explainer (mistakes) and in an item: as a target "
        '"mistake n", or as the mistake of an option or wrong answer.',
        "An item has exactly one of answer, options and parts.",
        "The first option is the right one and has no method and no mistake.",
        'Each part of a question has at least one mark; the marks begin with "(a) ", "(b) " in the order of the parts. '
        "Other marks do not begin so.",
    ]


def shape_faults(lesson: Lesson, entry: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield everything that is wrong between the fields of a lesson, and between it and its entry."""
    yield from _kinds(lesson, entry["lesson_type"])
    yield from _counts(lesson, entry)
    yield from _order(lesson)
    yield from _time_and_notes(lesson, entry)
    yield from _targets(lesson, entry)
    yield from _points(lesson, entry)
    if entry["lesson_type"] == "teach":
        yield from _mistakes(lesson)
    for where, item in lesson.items():
        yield from _item(where, item)


def _cards(lesson: Lesson, kind: str = "") -> list[tuple[str, Card]]:
    """Return the cards, each with its address."""
    return [(f"c{number}", card) for number, card in enumerate(lesson.cards, 1) if kind in ("", card.kind)]


def _explainers(lesson: Lesson) -> list[tuple[str, ExplainerCard]]:
    return [(name, card) for name, card in _cards(lesson) if isinstance(card, ExplainerCard)]


def _kinds(lesson: Lesson, lesson_type: str) -> Iterator[Fault]:
    kinds, allowed = [card.kind for card in lesson.cards], ALLOWED[lesson_type]
    for name, card in _cards(lesson):
        if card.kind not in allowed:
            yield Fault(name, f"a {card.kind} card", f"one of {', '.join(sorted(allowed))} in a {lesson_type} lesson")
    for kind in REQUIRED[lesson_type]:
        if kind not in kinds:
            yield Fault("cards", f"no {kind} card", f"one in a {lesson_type} lesson")


def _counts(lesson: Lesson, entry: Mapping[str, Any]) -> Iterator[Fault]:
    lesson_type = entry["lesson_type"]
    for name, card in _cards(lesson):
        if not isinstance(card, QuestionCard):
            continue
        low, high = ITEMS.get(card.kind, (1, 60))
        if card.kind == lesson_type == "independent_practice":
            low = PRACTICE_LEAST
        if not low <= len(card.items) <= high:
            yield Fault(name, f"{len(card.items)} items", f"{low} to {high} in {card.kind}")
        if card.kind == "exit_ticket" and not card.rubric:
            yield Fault(f"{name}.rubric", "no rubric", 'what a score means, e.g. "4: Secure, go on."')
    for field, least in (TEACH_LEAST if lesson_type == "teach" else {}).items():
        if len(getattr(lesson, field)) < least:
            yield Fault(field, f"{len(getattr(lesson, field))} entries", f"at least {least} in a teach lesson")
    yield from _special_counts(lesson, entry)


def _special_counts(lesson: Lesson, entry: Mapping[str, Any]) -> Iterator[Fault]:
    if entry["lesson_type"] == "formative_assessment":
        marks, (low, high) = sum(len(item.marks) for _, item in lesson.items()), FORMATIVE_MARKS
        if not low <= marks <= high:
            yield Fault("cards", f"{marks} marks together", f"{low} to {high} in a formative assessment")
    if entry["lesson_type"] == "revision":
        named = {number for _, item in lesson.items() for number in item.numbers("lesson")}
        least = min(REVISION_LESSONS, entry["order"] - 1)
        if len(named) < least:
            yield Fault("cards", f"{len(named)} earlier lessons named in tests", f"at least {least} in a revision")


def _order(lesson: Lesson) -> Iterator[Fault]:
    kinds: list[str] = [card.kind for card in lesson.cards]
    if "starter" in kinds[1:]:
        yield Fault("cards", "the starter is not the first card", "the starter first")
    if "exit_ticket" in kinds[:-1]:
        yield Fault("cards", "the exit_ticket is not the last card", "the exit_ticket last")
    places = [index for index, kind in enumerate(kinds) if kind == "explainer"]
    if lesson.cycles and len(places) != len(lesson.cycles):
        yield Fault(
            "cycles", f"{len(lesson.cycles)} entries, but {len(places)} explainer cards", "as many", also=["cards"]
        )
    for number, place in enumerate(places if lesson.cycles else (), 1):
        if tuple(kinds[place : place + 3]) != CYCLE:
            after = ", ".join(kinds[place : place + 3])
            yield Fault("cards", f"the cards of cycle {number} are {after}", f"{', '.join(CYCLE)}, one after the other")


def _time_and_notes(lesson: Lesson, entry: Mapping[str, Any]) -> Iterator[Fault]:
    total = sum(card.minutes for card in lesson.cards)
    if all(card.minutes for card in lesson.cards) and abs(total - entry["minutes"]) > TIMING_SLACK:
        also = [f"{name}.minutes" for name, _ in _cards(lesson)]
        yield Fault(
            "c1.minutes", f"all cards together {total} minutes", f"{entry['minutes']} ± {TIMING_SLACK}", also=also
        )
    words = count_words(" ".join(note.text for note in lesson.notes))
    if words > NOTES_WORDS:
        yield Fault("notes", f"{words} words together", f"at most {NOTES_WORDS}")


def _targets(lesson: Lesson, entry: Mapping[str, Any]) -> Iterator[Fault]:
    """Every number must exist: of a point, key point, misconception, prior, or an earlier lesson."""
    most = {
        "point": len(entry["points"]), "key point": len(lesson.key_points), "mistake": len(lesson.misconceptions),
        "prior": len(lesson.prior), "lesson": entry["order"] - 1,
    }  # fmt: skip
    starters = {f"{name}.q{n}" for name, card in _cards(lesson, "starter") for n in range(1, 61)}
    for where, item in lesson.items():
        for text in item.tests:
            kind, _, number = text.rpartition(" ")
            if kind in most and int(number) > most[kind]:
                yield Fault(f"{where}.tests", f'"{text}", but there are {most[kind]}', f"{kind} 1 to {most[kind]}")
        wanted = "prior" if where in starters else "point"
        # A question may come back to an earlier lesson instead.
        if not item.numbers(wanted) and not (wanted == "point" and item.numbers("lesson")):
            yield Fault(f"{where}.tests", f'no "{wanted} n" in {item.tests}', f'"{wanted} n"')
        numbers = [("options", each.mistake) for each in item.options or ()]
        numbers += [("wrong", each.mistake) for each in item.wrong or ()]
        for field, mistake in numbers:
            if mistake is not None and mistake > most["mistake"]:
                yield Fault(f"{where}.{field}", f"mistake {mistake}, but there are {most['mistake']}", "one of them")
    for where, card in _explainers(lesson):
        for field, numbers_of, kind in (("teaches", card.teaches, "point"), ("mistakes", card.mistakes, "mistake")):
            if wrong := [number for number in numbers_of if number > most[kind]]:
                yield Fault(f"{where}.{field}", f"{kind} {wrong[0]}, but there are {most[kind]}", "numbers that exist")


def _points(lesson: Lesson, entry: Mapping[str, Any]) -> Iterator[Fault]:
    """Every point is taught and asked, every key point is in the exit ticket."""
    explainers = _explainers(lesson)
    taught = {number for _, card in explainers for number in card.teaches}
    asked = {number for _, item in lesson.items() for number in item.numbers("point")}
    left_out = tuple(f"{ref}." for ref in entry.get("not_written", ()))
    for number, ref in enumerate(entry["points"], 1):
        if ref.startswith(left_out):
            continue
        if entry["lesson_type"] == "teach" and explainers and number not in taught:
            also = [f"{name}.{field}" for name, _ in explainers for field in ("teaches", "text", "plain")]
            found = f"no explainer teaches point {number} ({ref})"
            yield Fault(f"{explainers[0][0]}.teaches", found, "each point of the task in teaches", also=also)
        if number not in asked:
            also = [f"{where}.tests" for where, item in lesson.items() if not item.numbers("prior")]
            yield Fault(
                _room(lesson), f"no item tests point {number} ({ref})", f'an item with "point {number}"', also=also
            )
    for name, _ in _cards(lesson, "exit_ticket"):
        tested = {
            n for where, item in lesson.items() if where.startswith(f"{name}.") for n in item.numbers("key point")
        }
        if missing := [n for n in range(1, len(lesson.key_points) + 1) if n not in tested]:
            shown = ", ".join(f"key point {n}" for n in missing)
            yield Fault(name, f"no item tests {shown}", "every key point in tests of the exit_ticket")


def _room(lesson: Lesson) -> str:
    """Return where one more item has room: behind the last one of the practice, else in its place."""
    found = [(name, card) for name, card in _cards(lesson) if isinstance(card, QuestionCard) and card.kind != "starter"]
    if not found:
        return "cards"
    name, card = next((each for each in found if "practice" in each[1].kind), found[-1])
    return f"{name}.q{min(len(card.items) + 1, ITEMS.get(card.kind, (1, 60))[1])}"


def _mistakes(lesson: Lesson) -> Iterator[Fault]:
    """In a lesson that teaches, each misconception is met and can be revealed."""
    met = {number for _, card in _explainers(lesson) for number in card.mistakes}
    used: set[int | None] = set()
    for _, item in lesson.items():
        used |= {*item.numbers("mistake"), *(each.mistake for each in [*(item.options or ()), *(item.wrong or ())])}
    explainers = _explainers(lesson)
    for number in range(1, len(lesson.misconceptions) + 1):
        where = f"misconceptions.{number}"
        if explainers and number not in met:
            also = [f"{name}.mistakes" for name, _ in explainers] + [f"{name}.text" for name, _ in explainers]
            yield Fault(where, "no explainer has it in mistakes", "each misconception met in an explainer", also=also)
        if number not in used:
            also = [f"{name}.tests" for name, _ in lesson.items()]
            yield Fault(
                where, "no item can reveal it", f'"mistake {number}" in tests, or as mistake of an option', also=also
            )


def _item(where: str, item: Item) -> Iterator[Fault]:
    given = [name for name in ("answer", "options", "parts") if getattr(item, name)]
    if len(given) != 1:
        yield Fault(where, f"{' and '.join(given) or 'none of answer, options, parts'}", "exactly one of the three")
    if item.options and (item.options[0].method or item.options[0].mistake):
        yield Fault(f"{where}.options.1", "a method or mistake", "the right option first, without either")
    yield from _marks(where, item.marks, len(item.parts or ()))


def _marks(where: str, marks: Sequence[str], parts: int) -> Iterator[Fault]:
    labels = [mark[1] if len(mark) > 2 and mark[0] == "(" and mark[2] == ")" else "" for mark in marks]
    wanted = [chr(ord("a") + number) for number in range(parts)]
    if parts and (list(dict.fromkeys(labels)) != wanted or labels != sorted(labels)):
        shown = ", ".join(f"({label})" if label else "none" for label in labels)
        yield Fault(f"{where}.marks", f"marks for {shown}", f'marks that begin "({wanted[0]}) " to "({wanted[-1]}) "')
    if not parts and any(label and label in "abcdef" for label in labels):
        yield Fault(f"{where}.marks", "marks of parts, but no parts", "marks without (a), (b)")
