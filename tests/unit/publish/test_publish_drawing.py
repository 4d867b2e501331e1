"""Figures from their lines: faults, numbers, descriptions, drawings."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.publish.drawing import figure as drawing
from tests.figures import EXAMPLES

FIGURES: list[dict[str, Any]] = [
    {"kind": kind, "lines": list(lines)} for kind, all in EXAMPLES.items() for lines in all
]


def test_every_kind_has_an_example() -> None:
    assert [kind.name for kind in drawing.KINDS] == list(EXAMPLES)


@pytest.mark.parametrize("figure", FIGURES, ids=str)
def test_an_example_has_no_fault_and_is_described_with_its_numbers(figure: dict[str, Any]) -> None:
    assert drawing.faults(figure) == []
    assert len(drawing.alt(figure)) <= 150
    heads, rows = drawing.table(figure)
    said = " ".join([drawing.alt(figure), *heads, *(cell for row in rows for cell in row)])
    assert [number for number in drawing.numbers(figure) if number not in said] == []


@pytest.mark.parametrize(
    ("kind", "line", "fault"),
    [
        ("tetrahedron", "side: 3 cm", "no kind 'tetrahedron'; there are: triangle"),
        ("triangle", "breadth: 3 cm", "no line 'breadth' here; there are: title, corners"),
        ("triangle", "PQ: -3 cm", "'−3 cm' must be greater than 0"),
        ("triangle", "PQ: 9 cm", "a line 'corners: P Q R' is missing"),
        ("axes", "function: y = __import__('os')", "may hold numbers, x, + - * / ^"),
        ("axes", "function: y = x^^2 +", "is not a function such as"),
        ("axes", "x: time / s, 10 to 0", "the range must rise"),
        ("box plot", "box A: 3 12 9 25 40", "must be five rising numbers"),
        ("tree", "first red: 1.2", "not a probability from 0 to 1"),
        ("bearings", "A to B: 65°", "not a bearing in three figures"),
    ],
)
def test_a_wrong_line_is_a_fault_that_says_what_is_known(kind: str, line: str, fault: str) -> None:
    assert fault in " ".join(drawing.faults({"kind": kind, "lines": [line]}))
