"""Turns a lesson of the question bank into one of another region: people, places, money, spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.content.cast import PEOPLE, PLACES
from pipeline.content.money import in_own
from pipeline.content.spelling import respelt
from pipeline.frameworks import Region

_NAME = re.compile(rf"\b(?:{'|'.join((*PEOPLE, *PLACES))})\b")
_MONEY = re.compile(r"\b(?:pounds?|pence|penny)\b")
#: Words that a region may have others for, and that mean one thing in every lesson.
_OURS = re.compile(r"\b(?:[Pp]upils?|Mock exam|[Tt]rapezium)\b|(?<=\d )marks\b|\bmarks(?= are open)")
#: Steps through the lists of names, as a cast's are.
_STEP = 7


def localised(lesson: Any, region: Region, order: int) -> Any:
    """Return a drafted lesson in the words of a region; one of Scotland as it is."""
    if region.people is PEOPLE:
        return lesson
    told: dict[str, str] = {}
    money = {"pounds": region.money, "pound": region.money.removesuffix("s"), "pence": region.coins,
             "penny": region.coin_name} if region.currency else {}  # fmt: skip

    def other(match: re.Match[str]) -> str:
        """Return the name that stands for a drawn one in this lesson, each another."""
        person = match[0] in PEOPLE
        names = region.people if person else region.places
        used = sum((name in PEOPLE) == person for name in told)
        return told.setdefault(match[0], names[(order + used) * _STEP % len(names)])

    def said(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: said(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [said(item, key) for item in value]
        # Kinds, and the names of a figure's lines, are words of the schema.
        if not isinstance(value, str) or key == "kind":
            return value
        name, colon, text = value.rpartition(": ") if key == "lines" else ("", "", value)
        text = _MONEY.sub(lambda found: money.get(found[0], found[0]), _NAME.sub(other, text))
        text = _OURS.sub(lambda found: region.said(found[0]), text)
        return name + colon + respelt(text, region.spelling)

    return in_own(said(lesson), region.currency or "£")
