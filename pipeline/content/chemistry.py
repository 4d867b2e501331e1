"""Reads equations of chemistry in a text, and says which are not balanced."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

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
_PART = re.compile(rf"^(\d*)\s?({_FORMULA}|e)?(?:[·•.](\d*)({_FORMULA}))?([⁰¹²³⁴-⁹]*)([⁺⁻]?)")
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
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n+")


def unbalanced(text: str) -> Iterator[str]:
    """Yield each equation of a text whose sides have other atoms or another charge."""
    for sentence in _SENTENCE.split(text) if any(arrow in text for arrow in "→⟶⇌") else ():
        for match in _EQUATION.finditer(sentence) if not _NOT_YET.search(sentence) else ():
            left, right = (_counted(side) for side in match.groups())
            if left and right and left != right:
                yield match[0]


def _counted(side: str) -> Counter[str] | None:
    """Return the atoms and the charge of a side; None where a symbol is no element."""
    total: Counter[str] = Counter()
    for term in side.split(" + "):
        found = _PART.match(re.sub(r"\s?\((?:s|l|g|aq)\)$", "", term.strip()))
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
