"""What an attribute's value is: text, number, truth or duration, and how it is read where files quote everything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

#: Seconds of each unit a duration may have.
UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})")
_DURATION = re.compile(r"([+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))\s*(ms|s|m|h|d)")
_TRUTHS: Mapping[str, bool] = {
    "true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Duration:
    """A number with a unit of time."""

    #: As written: "5m".
    text: str
    seconds: float


Value: TypeAlias = str | int | float | bool | Duration


def bare_value(text: str) -> Value:
    """The value of a word that stands without quotes: true, 3, 0.5, 5m; anything else is text."""
    if text == "true" or text == "false":
        return text == "true"
    if text[0].isalpha() or text[0] == "_":
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if found := _DURATION.fullmatch(text):
        return Duration(text, float(found[1]) * UNITS[found[2]])
    return text


def as_text(value: Value) -> str:
    """The value as people write it; truths are "true" and "false", never Python's words."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.text if isinstance(value, Duration) else str(value)


def as_number(value: Value) -> int | None:
    """A whole number, also one in quotes; None: it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, Duration):
        return None
    text = value.strip()
    return int(text) if _INTEGER.fullmatch(text) else None


def as_decimal(value: Value) -> float | None:
    """A number, also one in quotes; None: it is none."""
    if isinstance(value, bool | Duration):
        return None
    if isinstance(value, int | float):
        return float(value)
    text = value.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def as_flag(value: Value) -> bool | None:
    """A truth, also one in quotes or as yes/no, on/off, 1/0; None: it is none."""
    if isinstance(value, bool):
        return value
    return _TRUTHS.get(as_text(value).strip().lower())


def as_seconds(value: Value) -> float | None:
    """Seconds: a duration, or a number without a unit, in quotes or not; None: it is neither."""
    if isinstance(value, Duration):
        return value.seconds
    if isinstance(value, str) and (found := _DURATION.fullmatch(value.strip())):
        return float(found[1]) * UNITS[found[2]]
    return as_decimal(value)


def plain(value: Value) -> str | int | float | bool:
    """The value as JSON; a duration is its text."""
    return value.text if isinstance(value, Duration) else value


class Attributed:
    """Something with attributes, read by the type that is wanted."""

    __slots__ = ()

    attributes: Mapping[str, Value]

    def text(self, name: str, default: str = "") -> str:
        """The attribute as text; `default` where it is not set."""
        value = self.attributes.get(name)
        return default if value is None else as_text(value)

    def number(self, name: str) -> int | None:
        """The attribute as a whole number; None: not set, or none."""
        value = self.attributes.get(name)
        return None if value is None else as_number(value)

    def decimal(self, name: str) -> float | None:
        """The attribute as a number; None: not set, or none."""
        value = self.attributes.get(name)
        return None if value is None else as_decimal(value)

    def flag(self, name: str) -> bool | None:
        """The attribute as a truth; None: not set, or neither true nor false."""
        value = self.attributes.get(name)
        return None if value is None else as_flag(value)

    def seconds(self, name: str) -> float | None:
        """The attribute as seconds: 300, "300", 5m, "5m"; None: not set, or no time."""
        value = self.attributes.get(name)
        return None if value is None else as_seconds(value)

    def first(self, *names: str) -> str:
        """The first of these attributes that is set to some text; "" if none is."""
        for name in names:
            if found := self.text(name).strip():
                return found
        return ""
