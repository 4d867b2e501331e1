"""Decides how the offline author reads a course: its outcomes, points and cross-cutting skills, in teaching order.

Catalogue text is a user's own; it is made printable here (no stray TeX, links or talk), once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pipeline.content.banned_text import stray_talk

#: Characters that a lesson's title may have.
TITLE_ROOM = 78
_BLANKS = re.compile(r"\s+")
_SQUARE = re.compile(r"\^([23])(?!\d)")
_UNWANTED = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\$`<>]")


@dataclass(frozen=True, slots=True)
class Point:
    """One thing the catalogue says is to be learned."""

    id: str
    #: Printable text of the catalogue.
    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """An outcome, skill or key area of the course."""

    id: str
    title: str
    #: Title of its group (unit, topic, area).
    group: str
    points: tuple[Point, ...]
    cross_cutting: bool


def outcomes(course: Mapping[str, Any]) -> list[Outcome]:
    """Return every outcome with at least one point, in the catalogue's order."""
    found = []
    for group in course.get("groups", ()):
        name = printable(group.get("title", ""), 60)
        for raw in group.get("outcomes") or ():
            points = tuple(_points(raw))
            if points:
                title = printable(raw.get("title", ""), 90, fallback=f"outcome {raw['id']}")
                found.append(Outcome(raw["id"], title, name, points, bool(group.get("cross_cutting"))))
    return found


def _points(raw: Mapping[str, Any]) -> Iterator[Point]:
    """Yield points of an outcome; ids as the catalogue gives them, else outcome.number or outcome.code."""
    listed = raw.get("points") or raw.get("standards") or ()
    for number, point in enumerate(listed, 1):
        if isinstance(point, str):
            yield Point(f"{raw['id']}.{number}", printable(point, 160, fallback=f"point {number} of {raw['id']}"))
            continue
        name = point.get("id") or f"{raw['id']}.{point.get('code') or number}"
        text = point.get("text") or point.get("title") or ""
        skills = ", ".join(str(skill) for skill in point.get("skills") or ())
        yield Point(name, printable(f"{text}: {skills}" if skills else text, 160, fallback=f"point {name}"))


@lru_cache(maxsize=4_096)
def printable(text: str, limit: int, *, fallback: str = "this topic") -> str:
    """Return catalogue text fit for a page: one line, no TeX or markup signs, cut at a word, never empty."""
    plain = _BLANKS.sub(" ", _UNWANTED.sub(" ", str(text)[: 4 * limit])).strip().rstrip(".")
    plain = _SQUARE.sub(lambda power: "²³"[int(power[1]) - 2], plain)
    if len(plain) > limit:
        plain = plain[: limit - 2].rsplit(" ", 1)[0].rstrip(" ,;:") + " …"
    readable = len(plain) >= 3 and any(sign.isalnum() for sign in plain)
    return plain if readable and not stray_talk(plain) else fallback
