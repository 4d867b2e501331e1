"""Reads printed texts: their formulas, and what an explanation says that is not true (part of check 14)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from pipeline.content.checks_remarks import false_results
from pipeline.content.findings import Fault
from pipeline.content.numbers import numbers_alone, without_formulas
from pipeline.maths.notation import PrintedStatement, formulas, read
from pipeline.maths.statements import Lines, identical, names_of
from pipeline.maths.sums import false_sums
from pipeline.maths.trees import NotReadError

_PART = re.compile(r"^\(([a-f])\)\s*")
#: Sentences that speak of a mistake may show what is false; after "not" a false value may follow.
_OF_MISTAKES = re.compile(
    r"\b(?:wrong|wrongly|mistake|error|false|forgets?|some|would|if you|belie\w+|think\w*|avoid|incorrect\w*|"
    r"confus\w+|careful|might|may|many|often|pupils?|looks?|seems?|tempt\w+|instead)\b",
    re.IGNORECASE,
)
NOT = re.compile(r"\b(?:not|never|cannot|neither|unlike)\b|n't\b|≠|\\neq?\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\\])|\n+")
#: Two formulas that words call equal.
_EQUAL = re.compile(
    r"\\\(((?:(?!\\\)).)+)\\\) (?:is equal to|equals|(?:can be )?simplif\w+ (?:further )?to|can be written as|"
    r"is the same as) "
    r"\\\(((?:(?!\\\)).)+)\\\)"
)
_WHERE = re.compile(r"\b(?:if|when|where|only|unless|equations?|lines?|solv\w+)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Read:
    """Hold what was read of one printed text."""

    statements: list[PrintedStatement]
    #: All of its mathematics was read.
    whole: bool


def read_line(text: str, nouns: Set[str] = frozenset()) -> Read:
    """Read a text: its second line as mathematics as a whole, else its formulas one by one."""
    told, _, line = _PART.sub("", text).partition("\n")
    found, whole = formulas_in(told)
    if not line:
        return Read(found, whole)
    try:
        return Read([*found, *read(line, nouns)], whole)
    except NotReadError:
        more, complete = formulas_in(line)
        return Read([*found, *more], whole and complete and not numbers_alone(without_formulas(line)))


def formulas_in(text: str) -> tuple[list[PrintedStatement], bool]:
    """Return what the formulas of a text say, and whether all of them were read."""
    found: list[PrintedStatement] = []
    whole = True
    for formula in formulas(text):
        try:
            found += read(f"\\({formula}\\)")
        except NotReadError:
            whole = False
    return found, whole


def false_prose(where: str, text: str, known: Lines) -> Iterator[Fault]:
    """Find formulas, laws and sums of a text that are not true.

    Args:
        known: The formulas of the course.
    """
    # A letter alone has the value that the text gives it; several have values of different examples.
    alone = Lines([formulas_in(text)[0]], parted=True)
    for sentence in _SENTENCE.split(text):
        if _OF_MISTAKES.search(sentence):
            continue
        # "…, not 90": what stands before the word is meant to be true.
        negated = NOT.search(sentence)
        told = sentence[: negated.start()].rpartition(",")[0] if negated else sentence
        for one in formulas_in(told)[0]:
            if said := next(
                (v.said for v in (alone if len(names_of(one)) == 1 else known).verdicts(one) if v.truth is False), ""
            ):
                yield Fault(where, said, "a formula that is true")
        if not _WHERE.search(told):
            yield from (
                Fault(where, said, "a law that holds for all numbers") for said in _false_laws(formulas_in(told)[0])
            )
        for left, right in _EQUAL.findall(told):
            for one in formulas_in(f"\\({left}={right}\\)")[0] if "=" not in left + right else ():
                if said := next((v.said for v in known.verdicts(one) if v.truth is False), ""):
                    yield Fault(where, said, "two formulas that are equal")
        for said in [*false_sums(without_formulas(told, "…")), *false_results(told)]:
            yield Fault(where, said, "a sum that is true")


def _false_laws(found: Sequence[PrintedStatement]) -> Iterator[str]:
    """Yield laws in letters, the same on both sides, that do not hold for all numbers: (a^m)^n = a^(m + n)."""
    for one in found:
        left, right = one.sides[0].node, one.sides[-1].node
        functions = any(part.kind == "function" for node in (left, right) for part in node.walk())
        law = one.relations == ("=",) and len(left.letters) > 1 and left.letters == right.letters and not functions
        if law and identical(left, right) is False:
            yield f"{one.sides[0].text} = {one.sides[-1].text}"
