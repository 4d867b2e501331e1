"""What a condition is made of, and whether it holds; missing keys are "", text is compared exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Lookup: TypeAlias = Callable[[str], str]

#: Other spellings of an outcome; both sides of a comparison are read so.
OUTCOMES: Mapping[str, str] = {
    "failure": "fail",
    "failed": "fail",
    "succeeded": "success",
    "partial": "partial_success",
    "partially_succeeded": "partial_success",
}
#: The split dialect's words, which it compares with `status`.
_STATUSES: Mapping[str, str] = {
    "SUCCESS": "success", "FAILURE": "fail", "FAIL": "fail", "PARTIAL": "partial_success", "SKIPPED": "skipped",
    "PARTIAL_SUCCESS": "partial_success", "RETRY": "retry",
}  # fmt: skip
#: Where else the value of a key may stand.
_OTHERWISE: Mapping[str, tuple[str, ...]] = {"status": ("status", "outcome"), "outcome.status": ("outcome", "status")}

_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})")
_FALSE = ("", "false", "0")


def outcome_word(text: str) -> str:
    """An outcome by the name it is stored under: failed → fail, succeeded → success, partial → partial_success."""
    return OUTCOMES.get(text, text)


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison, or a bare key."""

    #: As written.
    key: str
    #: "=", "!=", "<", "<=", ">", ">=", "CONTAINS", "STARTS_WITH", "ENDS_WITH", "IN"; "": whether it is true.
    operator: str
    #: What it is compared with; several for IN, none for a bare key.
    literals: tuple[str, ...]

    @property
    def about_outcome(self) -> bool:
        """It asks for the outcome, so other spellings of outcomes count as the same."""
        return self.key.removeprefix("context.") in ("outcome", "status", "outcome.status")

    def holds(self, lookup: Lookup) -> bool:
        value = self._value(lookup)
        if not self.operator:
            return value.strip().lower() not in _FALSE
        literals = self.literals
        if self.about_outcome and self.operator in ("=", "!=", "IN"):
            value, literals = self._outcome(value), tuple(self._outcome(literal) for literal in literals)
        if self.operator == "IN":
            return value in literals
        return _OPERATORS[self.operator](value, literals[0])

    def _value(self, lookup: Lookup) -> str:
        for name in _places(self.key):
            if value := lookup(name):
                return value
        return ""

    def _outcome(self, text: str) -> str:
        return outcome_word(text) if self.key == "outcome" else _STATUSES.get(text, outcome_word(text))


def _places(key: str) -> tuple[str, ...]:
    """The names under which a key's value may stand, the first that has one counts."""
    for prefix in ("context.", "outcome."):
        if key.startswith(prefix) and key not in _OTHERWISE:
            return (key, key.removeprefix(prefix))
    return _OTHERWISE.get(key, (key,))


def _numbers(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    def holds(value: str, literal: str) -> bool:
        left, right = value.strip(), literal.strip()
        if not (_NUMBER.fullmatch(left) and _NUMBER.fullmatch(right)):
            return False
        return compare(float(left), float(right))

    return holds


_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda value, literal: value == literal,
    "!=": lambda value, literal: value != literal,
    "<": _numbers(lambda left, right: left < right),
    "<=": _numbers(lambda left, right: left <= right),
    ">": _numbers(lambda left, right: left > right),
    ">=": _numbers(lambda left, right: left >= right),
    "CONTAINS": lambda value, literal: literal in value,
    "STARTS_WITH": lambda value, literal: value.startswith(literal),
    "ENDS_WITH": lambda value, literal: value.endswith(literal),
}


@dataclass(frozen=True, slots=True)
class Both:
    """All of them hold."""

    parts: tuple[Part, ...]

    def holds(self, lookup: Lookup) -> bool:
        return all(part.holds(lookup) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of them holds."""

    parts: tuple[Part, ...]

    def holds(self, lookup: Lookup) -> bool:
        return any(part.holds(lookup) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """It does not hold."""

    part: Part

    def holds(self, lookup: Lookup) -> bool:
        return not self.part.holds(lookup)


Part: TypeAlias = Clause | Both | Either | Not
