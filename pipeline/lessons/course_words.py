"""What prompts say otherwise from course to course: by its region, its kind of subject and its calculators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pipeline.frameworks import Region, framework_of, has_exam, region_of
from pipeline.publish.view import has_calculators

#: A subject's name → the prompt with an example of each kind of item; the first that fits counts.
_EXAMPLES = (
    (r"social_\w+|political_\w+|religi\w+", "examples_words"),
    (r"\w*(?:comput|informatics|programming)\w*", "examples_computing"),
    (r"\w*(?:math|algebra|geometry|calculus|statistics|numeracy|arithmetic)\w*", "examples_mathematics"),
    (r"\w*(?:physi|chemi|chimi|biolog|scien|ciencia|engineering|electronic)\w*", "examples_science"),
    (r".*", "examples_words"),
)


def examples_of(subject: str) -> str:
    """Return the name of the prompt with the examples of a subject."""
    return next(name for pattern, name in _EXAMPLES if re.fullmatch(pattern, subject))


@dataclass(frozen=True, slots=True)
class SubjectKind:
    """What the prompts say of subjects of one kind; each field fills the place of its name."""

    #: How questions come about.
    building: str
    #: Examples of answers, and what stands behind the first words of a line of working.
    answers: str
    working: str
    #: A key point; what no key point says is important; what is known before, for what, what an earlier lesson taught,
    #: and what the lesson itself teaches; what wrong options show, and what they do not.
    key_point: str
    subject_matter: str
    known: str
    aim: str
    taught: str
    own: str
    distractors: str
    no_distractors: str
    #: How a setting is chosen: in the scheme, and for one lesson.
    context: str
    setting: str
    #: Where lessons play, and what may become of the setting of an entry.
    settings: str
    moved: str
    #: A label of a lesson, a heading, and what no text may refer to.
    label: str
    mathematics: str
    outside: str
    #: A mistake as pupils make it; and, for the critic, what is taught whole, and what goes too far.
    mistake: str
    both: str
    beyond: str
    #: Words of the schemas, and what this kind says in their place.
    fields: tuple[tuple[str, str], ...] = ()
    #: Command words of levels that ask for numbers.
    unasked: frozenset[str] = frozenset()


_NUMBERS = SubjectKind(
    building="Choose the answer first and build the numbers from it: whole roots, [[whole]], short decimals, where the "
    "topic allows it.",
    answers=r"£12.50, 0.038 cm, \(3\sqrt{5}\), x = 2 or x = −3",
    working=r", then after a line break (\n) the complete line of mathematics",
    key_point="A surd is in its simplest form when no square number greater than 1 divides the number under the root.",
    subject_matter="surds",
    known="list the square numbers from 1 to 144",
    aim="simplifying surds",
    taught="find a common denominator of two fractions",
    own="simplify surds",
    distractors=r"Gradient through (1, 2) and (3, 8): \(\frac{1}{3}\) turns the fraction over; 6 leaves out the "
    "change in \\(x\\); \\(\\frac{5}{2}\\) adds the coordinates.",
    no_distractors='100, 0 and "cannot be done"',
    context="The context is one everyday setting[[inside]] that the numbers fit; no betting, alcohol, weight, crime, "
    "death or weapon.",
    setting="Choose the setting so that it fits one of these places and the numbers of the points.",
    settings="Settings are everyday ones from the task, natural for its places: [[natural]].",
    moved="The setting of the entry may be moved to one of these places.",
    label='"Simplifying surds with a square factor". "Introduction to surds" says nothing.',
    mathematics="Mathematics in text",
    outside="no document, link, book, video or brand",
    mistake='"adds the surds under one root", not "has difficulty with surds"',
    both='both "simplify" and "rationalise" have an example and items',
    beyond="[[logarithm]]",
)
_WORDS = SubjectKind(
    building="A source or text that a question is about stands in ask, some sentences of it, with its author and year; "
    "quote it truly, and call it made up where it is. Questions rise from finding and describing to explaining, "
    "judging and a piece of writing; one that asks for an essay or a paragraph says how long it is and what it draws "
    "on.",
    answers="a name, a year, a sentence; of an essay or a letter the line that it argues or what it must hold, in one "
    "or two sentences",
    working=": what to look for, what to weigh, how to put it; a line of mathematics only where something is counted",
    key_point="A source written at the time shows what its writer wanted readers to believe.",
    subject_matter="sources",
    known="put events in the order of their dates",
    aim="causes and consequences",
    taught="say who wrote a source, and when",
    own="judge how far a source can be trusted",
    distractors="Why the city grew: because its harbour silted up turns the cause over; because people liked cities "
    "names no cause; because the railway opened in 1890 is later than the growth.",
    no_distractors='"because of aliens" and "none of the above"',
    context="The context is where the matter of the points is met: the time and place, the text, the conversation. "
    "Everyday settings are those[[inside_or_near]]; betting, alcohol, weight, crime, death or weapons only where "
    "the points themselves are about them.",
    setting="Where the lesson needs everyday people and places, these serve; people and places of history and of texts "
    "stay what they are.",
    settings="Settings are where the matter of the points is met: its time and place, its text, its conversation. "
    "People and places of history and of texts stay what they are.",
    moved="They serve where an everyday person or place is needed; the matter of the entry stays where it is.",
    label='"Explaining why towns grew so fast". "Introduction to towns" says nothing.',
    mathematics="Numbers and formulas in text, where something is counted",
    outside="no document or book that is not quoted, and no link, video or brand",
    mistake='"takes the writer\'s opinion for a fact", not "has difficulty with sources"',
    both='both "describe" and "explain" have an example and items',
    beyond="a cause that no lesson has named",
    fields=(
        (r"£12.50, 0.038 cm, \(3\sqrt{5}\), x = 2 or x = −3", "a name, a year, a sentence; the line of an essay"),
        ("what we do and why, a line break, the complete line of mathematics", "what we do and why"),
        ("all data, units, rounding and form it wants", "its source or text, and the form and length it wants"),
        ("e.g. added the squares only", "e.g. took a cause for a result"),
        ("one natural setting for the examples", "where the matter of the points is met, or one natural setting"),
    ),
    unasked=frozenset({"calculate", "calculate in one step", "count", "solve", "derive", "prove", "show that"}),
)
#: What schemas say of calculators, and nothing in its place.
CALCULATORS = (", calculator (yes or no, only where the item differs from its lesson)", "")
#: What is said of calculators, where the course has some and where it has none.
_CALCULATOR = {
    True: "Calculator: non_calc where the point is examined without one or trains number work, calc where numbers are "
    "awkward, mixed where both occur, exam_conditions in a mock exam.",
    False: "Calculator: write non_calc; the course says nothing of calculators, so pages do not either, and numbers "
    "need not work out by hand.",
}  # fmt: skip


def kind_of(course: Mapping[str, Any]) -> SubjectKind:
    """Return what the prompts say of the kind of a course's subject."""
    return _WORDS if examples_of(str(course["subject"])) == "examples_words" else _NUMBERS


def course_words(course: Mapping[str, Any]) -> dict[str, str]:
    """Return what fills the places of a prompt file that depend on the course."""
    region = region_of(course)
    kind = kind_of(course)
    calculators = has_calculators(course)
    words = _region_words(region) | {
        "calculator": _CALCULATOR[calculators],
        "more_calculator": ',"more":["calculator: yes"]' if calculators else "",
        "and_calculator": ',"calculator: yes"' if calculators else "",
        "exam_place": " The mock exam is one of the last three lessons." if has_exam(course) else "",
        "logarithm": framework_of(course).logarithm,
        "molar_mass": framework_of(course).molar_mass,
    }
    words |= {each.name: getattr(kind, each.name) for each in fields(kind) if each.type == "str"}
    return words


def _region_words(region: Region) -> dict[str, str]:
    inside = f" in {region.title}" if region.title else ""
    city, town, other, start, end = region.examples
    return {
        "schools": f"{region.adjective} schools" if region.adjective else f"schools{inside}",
        "school": f"a {region.adjective} school" if region.adjective else f"a school{inside}",
        "natural_setting": f"natural {region.adjective} setting" if region.adjective else f"natural setting{inside}",
        "inside": inside,
        "inside_or_near": inside or " of the pupils",
        "home": region.title or "the pupils' own world",
        "stereotypes": f"stereotypes of {region.title or 'any people'}",
        "english": region.english,
        "usage": f"{region.english}, {region.money}, {region.units}.",
        "rule_of_usage": region.rule,
        "natural": region.natural,
        "whole": region.whole,
        "coins": region.coins,
        "city": city, "town": town, "other_town": other, "start": start, "end": end,
    }  # fmt: skip
