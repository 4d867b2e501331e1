"""Relationships that a catalogue names in its points, read as formulas: "v=u+at, s=ut+1/2at^2, …"."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.maths.notation import PrintedStatement, statement
from pipeline.maths.statements import names_of
from pipeline.maths.trees import NotReadError


def course_formulas(course: Mapping[str, Any]) -> Sequence[PrintedStatement]:
    """Return the relationships that a catalogue names in its points: "v=u+at, s=ut+1/2at^2, …"."""
    points = [p for g in course.get("groups", ()) for o in g.get("outcomes", ()) for p in o.get("points", ())]
    return _formulas_in(tuple(point["text"] if isinstance(point, Mapping) else str(point) for point in points))


@functools.lru_cache(16)
def _formulas_in(texts: tuple[str, ...]) -> Sequence[PrintedStatement]:
    found = []
    for text in texts:
        for piece in re.findall(r"[A-Za-z]\S*?(?:\s?=\s?)[^,;]+", text):
            one = _first_formula(piece.split())
            if one and len(names_of(one)) >= 3 and not names_of(one) & {"x", "y"} and len(one.sides) == 2:
                found.append(one)
    return found


def _first_formula(words: Sequence[str]) -> PrintedStatement | None:
    """Return what the longest run of words from the first says as a formula."""
    for count in range(len(words), 0, -1):
        plain = re.sub(r"(?<![\^\d/])([A-Za-z])(\d)", r"\1_\2", " ".join(words[:count]))
        # n = m/GFM: what stands together below the line is one denominator.
        plain = re.sub(r"/([A-Z]{2,})\b", r"/(\1)", plain)
        try:
            return statement(re.sub(r"\b(theta|lambda)", r"\\\1 ", plain))
        except NotReadError:
            continue
    return None
