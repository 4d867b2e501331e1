"""What an attribute's value is: text, number, truth or duration; files quote everything, so text is read as each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")

#: Seconds of each unit of a duration.
_UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DIGITS = r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})"
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(_DIGITS)
_DURATION = re.compile(rf"({_DIGITS})\s*(ms|s|m|h|d)")
_TRUTHS = {**dict.fromkeys(("true", "yes", "on", "1"), True), **dict.fromkeys(("false", "no", "off", "0"), False)}


@dataclass(frozen=True, slots=True)
class Duration:
    """A number with a unit of time."""

    #: As written: "5m".
    text: str
    seconds: float


Value: TypeAlias = str | int | float | bool | Duration


def bare_value(text: str) -> Value:
    """Return the value of a word without quotes: true, 3, 0.5, 5m; anything else is text."""
    if text == "true" or text == "false":
        return text == "true"
    if text[0].isalpha() or text[0] == "_":
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    seconds = _duration(text)
    return text if seconds is None else Duration(text, seconds)


def _duration(text: str) -> float | None:
    found = _DURATION.fullmatch(text)
    return float(found[1]) * _UNITS[found[2]] if found else None


def as_text(value: Value) -> str:
    """Return the value as people write it: "true" and "false", a duration with its unit."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.text if isinstance(value, Duration) else str(value)


def as_number(value: Value) -> int | None:
    """Return a whole number, also one in quotes; None if it is none."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value.strip()) else None


def as_decimal(value: Value) -> float | None:
    """Return a number, also one in quotes; None if it is none."""
    if isinstance(value, bool | Duration):
        return None
    if isinstance(value, int | float):
        return float(value)
    return float(value) if _NUMBER.fullmatch(value.strip()) else None


def as_flag(value: Value) -> bool | None:
    """Return a truth, also one in quotes or as yes/no, on/off, 1/0; None if it is none."""
    return value if isinstance(value, bool) else _TRUTHS.get(as_text(value).strip().lower())


def as_seconds(value: Value) -> float | None:
    """Return the seconds of a duration or of a number without a unit, quoted or not; None if it is neither."""
    if isinstance(value, Duration):
        return value.seconds
    seconds = _duration(value.strip()) if isinstance(value, str) else None
    return as_decimal(value) if seconds is None else seconds


def plain(value: Value) -> str | int | float | bool:
    """Return the value as JSON; a duration is its text."""
    return value.text if isinstance(value, Duration) else value


class Attributed:
    """Something with attributes, read by the type that is wanted."""

    __slots__ = ()

    attributes: Mapping[str, Value]

    def text(self, name: str, default: str = "") -> str:
        """Return the attribute as text; `default` if it is not set."""
        value = self.attributes.get(name)
        return default if value is None else as_text(value)

    def number(self, name: str) -> int | None:
        """Return the attribute as a whole number; None if it is not set, or none."""
        return self._read(name, as_number)

    def decimal(self, name: str) -> float | None:
        """Return the attribute as a number; None if it is not set, or none."""
        return self._read(name, as_decimal)

    def flag(self, name: str) -> bool | None:
        """Return the attribute as a truth; None if it is not set, or neither true nor false."""
        return self._read(name, as_flag)

    def seconds(self, name: str) -> float | None:
        """Return the attribute as seconds: 300, "300", 5m, "5m"; None if it is not set, or no time."""
        return self._read(name, as_seconds)

    def _read(self, name: str, read: Callable[[Value], T]) -> T | None:
        value = self.attributes.get(name)
        return None if value is None else read(value)

    def first(self, *names: str) -> str:
        """Return the first of these attributes that is set to some text, trimmed; "" if none is."""
        return next((found for name in names if (found := self.text(name).strip())), "")
