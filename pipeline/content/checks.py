"""The table of code checks: each row one small function, its severity, and the rule as the author reads it.

What can be read of a lesson is checked, whatever else of it cannot. Nothing here asks a model; text is hostile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.content import (
    checks_aims,
    checks_answers,
    checks_items,
    checks_quantities,
    checks_text,
    checks_twins,
    checks_working,
)
from pipeline.content.findings import Case, Check, Fault, Finding, Severity, quoted
from pipeline.content.lesson_reader import SHAPE, read_lesson
from pipeline.content.money import in_own, in_pounds, sign_of
from pipeline.content.shape import shape_faults
from pipeline.publish.questions import places

#: Choices of a course from which on places are counted; share of them that may be right at one place.
LEAST_CHOICES, MOST_AT_ONE_PLACE = 12, 0.45
#: Findings of one check beyond this many say the same again; and all findings of a lesson.
MOST, MOST_TOGETHER = 10, 40


#: Who looks: code, a model that solves the questions without their answers, or the critic.
CODE, SOLVER, CRITIC = "code", "blind solve", "critic"


@dataclass(frozen=True, slots=True)
class Row:
    """One check."""

    number: int
    severity: Severity
    who: str
    #: What it demands, in a few words; also for documentation and About pages.
    demands: str
    #: None where another part of the program looks: shape.py, blind.py, release.py.
    check: Check | None = None
    #: What the author is told of it, with an example; "" where it can only warn, or stands elsewhere in the prompt.
    rule: str = ""


#: The rows of printed mathematics; each stands beside its check.
_OF_MATHEMATICS = (
    Row(number, severity, CODE, demands, check, rule)
    for number, severity, demands, check, rule in (*checks_answers.ROWS, *checks_working.ROWS, *checks_quantities.ROWS)
)
_OTHERS: Sequence[Row] = (
    Row(1, "R", CODE, "fields, counts, lengths and the order of cards are those of the schema"),
    Row(2, "R", CODE, "what an item is for exists: points, key points, mistakes, prior knowledge, earlier lessons"),
    Row(3, "R", CODE, "every planned point is taught and asked, and the outcome says it", checks_aims.aim,
        "outcome speaks of the outcome of the task and of what the explainers teach, in their words."),
    Row(4, "W", CRITIC, "nothing beyond the points of the course so far", checks_text.scope),
    Row(7, "R", SOLVER, "who sees the question only comes to the same answer"),
    Row(10, "R", CRITIC, "somebody would choose each wrong option, by a reasoning that can be said"),
    Row(11, "W", CODE, "options are as many as the level asks for, and alike in length", checks_items.alike),
    Row(12, "R", CODE, "nothing gives the answer away or confuses", checks_items.wording,
        'No "all of these" or "none of these", no true or false, no question for the one that is not. The answer does '
        "not stand in its question, nor in a hint."),
    Row(13, "W", CODE, "right options stand at every place over the course"),
    Row(16, "R", CODE, "each mark is for something else; bands of a rubric fall within the total", checks_items.marks,
        "No text stands twice in marks. Marks that ask names are as many as those in marks. A question that says "
        '"state" carries 1 mark. A rubric begins with the highest band: "4: …", "2: …", "0: …", none above the marks '
        "of its card; a number of marks in instructions is their sum, and a mark that more names is there. In a mock "
        "exam a card names its paper in component and has marks in the paper's ratio to minutes: of 40 marks in 60 "
        "minutes, 20 in 30."),
    Row(17, "R", CODE, "each mark says in words why it is given", checks_items.scheme,
        r'The first line of a mark says in words why it is given ("substitutes into the formula"); the second, after a '
        r'line break, what earns it here ("\(0.5\times 8\times 6\)").'
        ' An item of three marks or more says in more which stay open: "follow_through: the last mark, after a slip".'),
    Row(21, "R", CRITIC, "facts are right"),
    Row(22, "R", CODE, "the people of a question are those of its working, marks and feedback", checks_text.names,
        "Working, marks and feedback of an item speak only of the people whom its question names."),
    Row(23, "R", CODE, "a plain twin has the numbers and equations of its text", checks_twins.twin,
        "plain has every number and equation of text and no other, 60 to 80 % of its words, and says the same: with a "
        "not where text has one. One thing has one year wherever it is told."),
    Row(24, "R", CODE, "sentences and words fit the level", checks_text.reading,
        "Sentences of text and plain keep to the lengths given for the level; half as long again is sent back."),
    Row(25, "R", CODE, "the starter tests prior knowledge, the exit ticket this lesson", checks_aims.prior,
        "prior says what pupils need to start: no point of the task and no key point stands there."),
    Row(26, "R", CODE, "no question twice, also with other names, and none that is a worked example",
        checks_text.repeats,
        "No two items, and no item and worked example, ask the same but for names and places, and no item has the "
        "numbers and the answer of a worked example in other words: change the numbers."),
    Row(27, "R", CODE, "questions of practice get harder", checks_items.rising,
        "In guided and independent practice marks do not fall from question to question."),
    Row(28, "R", CODE, "keywords are defined without themselves, and used", checks_text.keywords,
        "A keyword's definition does not hold the term; the term stands in text or plain of an explainer, and better "
        "also in a question."),
    Row(29, "R", CRITIC, "pupils of the level hold the misconception, and its correction says why it is wrong"),
    Row(30, "R", CODE, "spelling, money and units of the course's region", checks_text.usage, "[[rule_of_usage]]"),
    Row(31, "R", CODE, "nothing outside the page, no stray talk", checks_text.stray,
        "Nothing outside the page: no link, picture, worksheet, book, video, web site or brand; no praise, no talk "
        "about yourself, no words to a reviewer."),
    Row(32, "W", CODE, "people of many names", checks_text.variety),
    Row(33, "B", CODE, "nothing unsafe; a label for themes that a class may need warning of", checks_text.safety,
        "No betting, alcohol, weight, crime, death or weapon as a setting; where the subject itself needs such a "
        "word, a label quotes it. No instruction for dangerous practical work; a safety note says that the school's "
        "own risk assessment decides."),
    Row(34, "R", CODE, "a figure can be drawn, is there, and agrees with its question", checks_items.figures,
        "A question that speaks of a figure, graph, diagram or table has it in figures. The numbers and corners of a "
        "figure are those of its question, its title and the words of its explainer or example; its sides and angles "
        "are possible, its totals are sums. A line of best fit runs through the middle of its points."),
    Row(35, "R", CODE, "mathematics can be set", checks_text.notation,
        r"Formulas use only the notation above. A line break inside a formula, a single $ or a backslash outside a "
        r"formula is an error."),
)  # fmt: skip
ROWS: Sequence[Row] = sorted((*_OTHERS, *_OF_MATHEMATICS), key=lambda row: row.number)


def check_lesson(lesson: Any, *, entry: Mapping[str, Any], course: Mapping[str, Any]) -> list[Finding]:
    """Return everything that code finds wrong with a lesson, in the order of its parts.

    Args:
        lesson: As the author wrote it (tidied), any JSON.
        entry: The scheme's entry for it.
        course: The pinned catalogue course.
    """
    sign = sign_of(course, lesson)
    return [
        replace(each, found=in_own(each.found, sign), wanted=in_own(each.wanted, sign))
        for each in _findings(in_pounds(lesson, sign), entry, course)
    ]


def _findings(lesson: Any, entry: Mapping[str, Any], course: Mapping[str, Any]) -> list[Finding]:
    read = read_lesson(lesson)
    if read.lesson is None:
        return list(read.findings)
    case, found = Case(read.lesson, entry, course), list(read.findings)
    shape = [fault for fault in shape_faults(read.lesson, entry) if read.concerns(fault.where)]
    found += [_finding(SHAPE, "R", fault) for fault in shape]
    for row in ROWS:
        told = (
            [_finding(row.number, row.severity, f) for f in row.check(case) if read.concerns(f.where)]
            if row.check
            else []
        )
        found += sorted(told, key=lambda finding: finding.severity == "W")[:MOST]
    # A warning never takes the place of what is to be put right.
    grave = [finding for finding in found if finding.severity != "W"][:MOST_TOGETHER]
    return grave + [finding for finding in found if finding.severity == "W"][: MOST_TOGETHER - len(grave)]


def _finding(number: int, severity: Severity, fault: Fault) -> Finding:
    found, wanted = quoted(fault.found), quoted(fault.wanted)
    return Finding(number, fault.severity or severity, fault.where, found, wanted, tuple(fault.also))


def repeats(lessons: Mapping[int, Mapping[str, Any]]) -> list[tuple[int, Finding]]:
    """Return the questions of a course that stand in two lessons: (order of the later one, finding).

    Args:
        lessons: Lessons that passed `check_lesson`, by order.
    """
    return [
        (order, Finding(26, "W", fault.where, quoted(fault.found), quoted(fault.wanted)))
        for order, fault in checks_text.repeats_between(lessons)
    ]


def favourite_place(lessons: Iterable[Mapping[str, Any]]) -> str:
    """Return what is to be said where right options stand too often at one place of the page (row 13), else ""."""
    choices = [item["options"] for lesson in lessons for card in lesson["cards"] for item in card.get("items", ())
               if item.get("options")]  # fmt: skip
    stands = Counter(places([option["text"] for option in options]).index(0) for options in choices)
    place, times = stands.most_common(1)[0] if stands else (0, 0)
    if len(choices) < LEAST_CHOICES or times <= MOST_AT_ONE_PLACE * len(choices):
        return ""
    return f"The right option stands at {'ABCDE'[place]} in {times} of {len(choices)} choices."


def summary(lesson: Mapping[str, Any], *, entry: Mapping[str, Any], course: Mapping[str, Any]) -> dict[str, Any]:
    """Return what pages say of a lesson's answers: {"by": {address: how}, "wrong": {address: printed value}}.

    how: "computed" where all that is printed for the item was compared, "in part", "nobody".
    """
    sign = sign_of(course, lesson)
    read = read_lesson(in_pounds(lesson, sign))
    if not read.lesson:
        return {"by": {}, "wrong": {}}
    told: dict[str, Any] = in_own(checks_answers.summary(Case(read.lesson, entry, course)), sign)
    return told
