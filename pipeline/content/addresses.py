"""Names the places of a lesson: c4.q2 is the second item of the fourth card, c3.e1 a worked example, c4.q2(b) a part.

Fields follow after a dot and lists count from 1: c4.q2.working.1, misconceptions.1.belief, key_points.2, c2.text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: A way into JSON: keys and places, from 0.
Steps = tuple[str | int, ...]

_CARD, _ITEM, _EXAMPLE = re.compile(r"c([1-9]\d?)"), re.compile(r"q([1-9]\d?)(?:\(([a-f])\))?"), re.compile(r"e([1-9])")
_NUMBER = re.compile(r"[1-9]\d{0,2}")


def address(steps: Sequence[str | int]) -> str:
    """Return the name of a place in a lesson's JSON."""
    parts: list[str] = []
    place = 0
    while place < len(steps):
        step, index = steps[place], steps[place + 1] if place + 1 < len(steps) else None
        if isinstance(index, int) and (step in ("items", "examples") or (step == "cards" and not parts)):
            parts.append({"cards": "c", "items": "q", "examples": "e"}[str(step)] + str(index + 1))
            place += 2
        elif step == "parts" and isinstance(index, int) and parts:
            parts[-1] += f"({chr(ord('a') + index)})"
            place += 2
        else:
            parts.append(str(step + 1) if isinstance(step, int) else step)
            place += 1
    return ".".join(parts)


def steps_of(name: str) -> Steps | None:
    """Return the way to a place, or None where the name has another form."""
    found: list[str | int] = []
    for position, part in enumerate(name.split(".")):
        if position == 0 and (match := _CARD.fullmatch(part)):
            found += ["cards", int(match[1]) - 1]
        elif position == 1 and found[0] == "cards" and (match := _ITEM.fullmatch(part)):
            found += ["items", int(match[1]) - 1]
            found += ["parts", ord(match[2]) - ord("a")] if match[2] else []
        elif position == 1 and found[0] == "cards" and (match := _EXAMPLE.fullmatch(part)):
            found += ["examples", int(match[1]) - 1]
        elif position and _NUMBER.fullmatch(part):
            found.append(int(part) - 1)
        elif re.fullmatch(r"[a-z_]{1,20}", part):
            found.append(part)
        else:
            return None
    return tuple(found)


def owner(name: str) -> str:
    """Return the part of a lesson that a place belongs to: its item or example, its card's field, a lesson's field."""
    first, *rest = name.split(".")
    if _CARD.fullmatch(first) and rest:
        return f"{first}.{rest[0].partition('(')[0]}"
    return first


def item_of(name: str) -> str:
    """Return the question or worked example that a place belongs to; "" for none."""
    found = owner(name)
    return found if re.fullmatch(r"c\d+\.[qe]\d+", found) else ""


def texts(value: Any, steps: Steps = ()) -> Iterator[tuple[str, str]]:
    """Yield every text of a lesson with its address, in order."""
    if isinstance(value, str):
        yield address(steps), value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from texts(inner, (*steps, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from texts(inner, (*steps, index))


def value_at(lesson: Any, name: str) -> Any:
    """Return what stands at an address; None where there is nothing."""
    for step in steps_of(name) or ("",):
        try:
            lesson = lesson[step]
        except (KeyError, IndexError, TypeError):
            return None
    return lesson
