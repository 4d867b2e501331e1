"""Reads printed texts: formulas, equations of chemistry, what an explanation says that is not true (of check 14)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

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

    statements: Sequence[PrintedStatement]
    #: All of its mathematics was read.
    whole: bool


def read_line(text: str, nouns: Set[str] = frozenset()) -> Read:
    """Read a text: each line after its first as mathematics as a whole, else its formulas one by one."""
    told, *lines = _PART.sub("", text).split("\n")
    shown, whole = formulas_in(told)
    found = [*shown]
    for line in filter(None, lines):
        try:
            found += read(line, nouns)
        except NotReadError:
            more, complete = formulas_in(line)
            found += more
            whole = whole and complete and not numbers_alone(without_formulas(line))
    return Read(found, whole)


@lru_cache(4_096)
def formulas_in(text: str) -> tuple[Sequence[PrintedStatement], bool]:
    """Return what the formulas of a text say, and whether all of them were read."""
    found: list[PrintedStatement] = []
    whole = True
    for formula in formulas(text):
        try:
            found += read(f"\\({formula}\\)")
        except NotReadError:
            whole = False
    return tuple(found), whole


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


# ---- equations of chemistry

_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_CHARGE = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
#: One substance: its number, its formula, its charge, its state.
_FORMULA = r"(?:[A-Z][a-z]?[₀-₉]*|\((?:[A-Z][a-z]?[₀-₉]*)+\)[₀-₉]*)+"
_TERM = rf"(?:\d+\s?)?(?:{_FORMULA}(?:[·•.]\d*{_FORMULA})?[⁰¹²³⁴-⁹]*[⁺⁻]?|e⁻)(?:\s?\((?:s|l|g|aq)\))?"
_SIDE = rf"{_TERM}(?:\s\+\s{_TERM})*"
#: Arrows stand between whole sides: what goes on behind them is not read.
_EQUATION = re.compile(
    rf"(?<![\w₀-₉⁺⁻+])(?<![→⟶⇌+]\s)({_SIDE})\s*(?:→|⟶|⇌)\s*({_SIDE})(?![\w₀-₉⁺⁻=≡–•-])(?!\s[+→⟶⇌])(?!\s?\()"
)
_SUBSTANCE = re.compile(rf"^(\d*)\s?({_FORMULA}|e)?(?:[·•.](\d*)({_FORMULA}))?([⁰¹²³⁴-⁹]*)([⁺⁻]?)")
_ATOMS = re.compile(r"([A-Z][a-z]?)([₀-₉]*)|\(((?:[A-Z][a-z]?[₀-₉]*)+)\)([₀-₉]*)")
#: Elements whose symbols stand in formulas at school.
_ELEMENTS = frozenset(
    re.findall(
        "[A-Z][a-z]?",
        "HHeLiBeBCNOFNeNaMgAlSiPSClArKCaScTiVCrMnFeCoNiCuZnGaGeAsSeBrKrRbSrZrMoAgCdSnSbIXeCsBaPtAuHgPbBi",
    )
)
#: Sentences in which an equation is not meant to be balanced.
_NOT_YET = re.compile(
    r"\b(?:balanc\w*|unbalanced|not|wrong|mistake|skeleton|copy|complete|word equation)\b", re.IGNORECASE
)
_STOP = re.compile(r"(?<=[.?!])\s+|\n+")


def unbalanced(text: str) -> Iterator[str]:
    """Yield each equation of a text whose sides have other atoms or another charge."""
    for sentence in _STOP.split(text) if any(arrow in text for arrow in "→⟶⇌") else ():
        for match in _EQUATION.finditer(sentence) if not _NOT_YET.search(sentence) else ():
            left, right = (_counted(side) for side in match.groups())
            if left and right and left != right:
                yield match[0]


def _counted(side: str) -> Counter[str] | None:
    """Return the atoms and the charge of a side; None where a symbol is no element."""
    total: Counter[str] = Counter()
    for term in side.split(" + "):
        found = _SUBSTANCE.match(re.sub(r"\s?\((?:s|l|g|aq)\)$", "", term.strip()))
        if found is None or not found[2]:
            return None
        number = int(found[1] or 1)
        atoms = Counter({"e": 0}) if found[2] == "e" else _atoms(found[2])
        for symbol, count in _atoms(found[4] or "").items():
            atoms[symbol] += int(found[3] or 1) * count
        if not _ELEMENTS.issuperset(atoms.keys() - {"e"}):
            return None
        for symbol, count in atoms.items():
            total[symbol] += number * count
        size = int(found[5].translate(_CHARGE) or 1) if found[6] else 0
        total["charge"] += number * size * (-1 if found[6] == "⁻" else 1)
    return Counter({symbol: count for symbol, count in total.items() if count})


def _atoms(formula: str) -> Counter[str]:
    atoms: Counter[str] = Counter()
    for symbol, count, group, times in _ATOMS.findall(formula):
        if symbol:
            atoms[symbol] += int(count.translate(_DIGITS) or 1)
        for inner, number in _atoms(group).items() if group else ():
            atoms[inner] += number * int(times.translate(_DIGITS) or 1)
    return atoms
