"""Blind solve: what somebody who sees no key is asked, and whether their answers are the lesson's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.content.findings import Finding
from pipeline.content.lesson import Figure, Item, Lesson, Solutions
from pipeline.content.money import in_pounds
from pipeline.drawing import figure as drawing
from pipeline.maths.comparison import same_answer
from pipeline.publish.questions import places

#: The row of the blind solve in the table of checks.
BLIND = 7
AGREED, DIFFERS = "agreed", "differs"
#: How an answer begins where the question lacks something; prompts/solver.md asks for it.
CANNOT = "cannot be answered"


def questions(lesson: Lesson, only: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the questions of a lesson as pupils see them, without keys.

    Args:
        only: Addresses; None: all.
    """
    return [
        _shown(where, item)
        for where, item in lesson.items()
        if (only is None or where in only) and not _hides(item)
    ]  # fmt: skip


def _shown(where: str, item: Item) -> dict[str, Any]:
    shown: dict[str, Any] = {"question": where, "ask": item.ask}
    if item.options:
        shown["options"] = [item.options[index].text for index in option_order(item)]
    if item.parts:
        shown["parts"] = [
            {"question": f"{where}({chr(ord('a') + n)})", "ask": part.ask} for n, part in enumerate(item.parts)
        ]
    if item.figures:
        shown["figures"] = [_seen(figure) for figure in item.figures]
    return shown


def asked_of(where: str, item: Item) -> list[Any]:
    """Return all that a solution is compared with; where it is as before, the comparison stands."""
    first = item.options[0].text if item.options else item.answer
    return [_shown(where, item), first, [part.answer for part in item.parts or ()]]


def option_order(item: Item) -> list[int]:
    """Return the options in the order of the page."""
    return places([option.text for option in item.options or ()])


def _seen(figure: Figure) -> dict[str, Any]:
    """Return what a drawing shows: its lines; for a function that is hidden, the data beside the drawing."""
    shown = figure.model_dump()
    if "function" in _hidden(figure):
        shown["data"] = drawing.table(shown)[1]
        shown["lines"] = [line for line in figure.lines if not line.startswith(("function", "hide:"))]
    return shown


def _hidden(figure: Figure) -> set[str]:
    return {line.partition(":")[2].strip() for line in figure.lines if line.startswith("hide:")}


def _hides(item: Item) -> bool:
    """Return whether a figure draws what neither its lines nor its data would tell."""
    return any(_hidden(figure) - {"function", "x numbers", "y numbers"} for figure in item.figures or ())


def compared(lesson: Lesson, solved: Solutions, sign: str = "£") -> tuple[dict[str, str], list[Finding]]:
    """Return what came of each question that could be compared, and a finding for each answer that differs.

    Args:
        sign: Of the lesson's money.
    """
    said = {each.question: each for each in solved.solutions}
    results: dict[str, str] = {}
    findings: list[Finding] = []
    for where, item in lesson.items():
        for place, key, same in _answers(where, item, said, sign):
            if same is None:
                continue
            results[where] = DIFFERS if not same or results.get(where) == DIFFERS else AGREED
            if not same:
                found = f"the lesson's answer is {key}; somebody who saw only the question found {said[place].answer}"
                findings.append(Finding(BLIND, "R", place, found, "a question with one answer, and that answer"))
    return results, findings


def _answers(where: str, item: Item, said: Mapping[str, Any], sign: str) -> list[tuple[str, str, bool | None]]:
    """Return (address, key, whether the solution is the key; None: not compared) of an item or its parts."""
    if item.options:
        solution = said.get(where)
        if solution is None or not solution.options:
            return []
        right, key = option_order(item).index(0) + 1, item.options[0].text
        # A number that contradicts the text beside it was miscounted.
        texts = [_plain(option.text) for option in item.options]
        miscounted = len(solution.options) == 1 and texts.count(_plain(solution.answer)) == 1
        same = _plain(solution.answer) == _plain(key) if miscounted else solution.options == [right]
        return [(where, key, same)]
    keys = (
        [(where, item.answer or "", item.ask)]
        if not item.parts
        else [(f"{where}({chr(ord('a') + n)})", part.answer, part.ask) for n, part in enumerate(item.parts)]
    )
    accepted = [_plain(text) for text in item.of("accept")]
    found: list[tuple[str, str, bool | None]] = []
    for place, key, ask in keys:
        if place in said:
            answer = _last(said[place].answer, key, item)
            same = _plain(answer) in (_plain(key), *accepted) or same_answer(
                *(in_pounds(text, sign) for text in (key, answer, ask))
            )
            if same is None and opposed(key, answer, f"{item.ask} {ask}", item.of("accept")):
                same = False
            found.append((place, key, False if answer.lower().startswith(CANNOT) else same))
    return found


def _last(answer: str, key: str, item: Item) -> str:
    """Return an answer without the values before it that the item's own lines show: "y = 5x; y = 45" is y = 45."""
    *before, last = answer.split("; ")
    lines = [_plain(text) for line in (*item.working, *item.marks) for text in re.split(r"\\\(|\\\)|\n|, |: ", line)]
    return last if before and "; " not in key and all(_plain(text) in lines for text in before) else answer


#: Words of which one answer has one and a right one the other; and those that tell short answers apart.
_PAIRS = (
    "left right, exothermic endothermic, biotic abiotic, acute obtuse, series parallel, oxidation reduction, "
    "oxidised reduced, mitosis meiosis, acidic alkaline, cathode anode, transverse longitudinal, clockwise "
    "anticlockwise, north south, east west, scalar vector, perpendicular parallel, rational irrational, odd even, "
    "ionic covalent, positive negative, dominant recessive, masculine feminine, singular plural, maximum minimum"
)
_OF_SHORT = (
    "yes no, increases decreases, increase decrease, rises falls, higher lower, more less, larger smaller, up down, "
    "greater smaller, faster slower"
)
_NEGATED = re.compile(r"\b(?:not|never|neither|nor|cannot|\w+n['’]t)\b", re.IGNORECASE)


def opposed(key: str, answer: str, question: str, accepted: Sequence[str] = ()) -> bool:
    """Say whether two answers in words cannot both be right: opposites, or two of the things a question names."""
    if _NEGATED.search(f"{key} {answer}"):
        return False
    one, two = _words(key), _words(answer)
    also = _words(" ".join(accepted))
    short = max(len(one), len(two)) <= 3
    for pair in f"{_PAIRS}, {_OF_SHORT}".split(", ") if short else _PAIRS.split(", "):
        first, second = pair.split()
        for mine, other in ((first, second), (second, first)):
            if mine in one - two and other in two - one - also:
                return True
    named = all(f" {' '.join(_in_order(text))} " in f" {' '.join(_in_order(question))} " for text in (key, answer))
    return short and named and bool(one and two) and one.isdisjoint(two | also)


def _words(text: str) -> set[str]:
    return set(_in_order(text))


def _in_order(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.lower())


def _plain(text: str) -> str:
    return re.sub(r"\\[()\[\]]|[\s.]+$|\s+", "", text).replace("−", "-").casefold()
