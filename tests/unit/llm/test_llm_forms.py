"""Forms of answers: what a schema does not allow is said with its place, and stand-ins fit what they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from pipeline.llm.answers import faults, fitting
from pipeline.llm.base import Message, Request
from pipeline.llm.forms import Misfit, form_of
from pipeline.llm.script import stand_in

PART = {"type": "object", "properties": {"mark": {"type": "integer", "minimum": 1}}, "required": ["mark"]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[A-Z]"},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1, "maxItems": 2},
        "kind": {"enum": ["a", "b"]},
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "next": {"anyOf": [{"$ref": "#/$defs/part"}, {"type": "null"}]},
        "version": {"const": 1},
    },
    "required": ["title", "parts"],
    "additionalProperties": False,
    "$defs": {"part": PART},
}
#: Without the pattern, which no stand-in can follow.
PLAIN = {**SCHEMA, "required": ["parts"], "properties": {**SCHEMA["properties"], "title": PART}}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"title": "Tides", "parts": [{"mark": 1}], "next": None, "share": 0.5, "kind": "a", "version": 1}, []),
        ([], ["the answer: must be of type object"]),
        ({"title": "t"}, ["parts: is missing", "title: must have at least 2 characters", "title: must match ^[A-Z]"]),
        ({"title": "Tidesss", "parts": [{"mark": 1}]}, ["title: must have at most 5 characters"]),
        ({"title": "Tides", "parts": []}, ["parts: must have at least 1 items"]),
        ({"title": "Tides", "parts": [{"mark": 0}]}, ["parts[0].mark: must be at least 1"]),
        ({"title": "Tides", "parts": [{"mark": 1}, {}]}, ["parts[1].mark: is missing"]),
        ({"title": "Tides", "parts": [{"mark": "1"}]}, ["parts[0].mark: must be of type integer"]),
        ({"title": "Tides", "parts": [{"mark": 1}], "more": 1}, ["more: is not wanted"]),
        ({"title": "Tides", "parts": [{"mark": 1}], "share": 1}, ["share: must be less than 1"]),
        ({"title": "Tides", "parts": [{"mark": 1}], "kind": "c"}, ['kind: must be one of ["a", "b"]']),
        ({"title": "Tides", "parts": [{"mark": 1}], "version": 2}, ["version: must be 1"]),
        ({"title": "Tides", "parts": [{"mark": 1}], "next": {"mark": 0}}, ["next: fits none of its forms"]),
    ],
)  # fmt: skip
def test_faults_of_a_value_are_told_with_their_place(value: Any, wanted: list[str]) -> None:
    assert faults(value, SCHEMA) == wanted


def test_limits_do_not_keep_an_answer_from_being_unwrapped() -> None:
    assert fitting('```json\n{"title": "t", "parts": []}\n```', SCHEMA) == '{"title": "t", "parts": []}'
    assert fitting('{"answer": {"title": 1, "parts": []}}', SCHEMA) is None


def test_schemas_that_are_stranger_than_what_is_known_let_pass() -> None:
    for schema in ({"$ref": "#/nowhere"}, {"properties": 3}, {"type": "odd"}, {"pattern": "("}, {"minLength": "x"}):
        assert faults("text", schema) == []


class Level(Enum):
    EASY = 1
    HARD = 2


@dataclass
class Row:
    at: time
    cost: Decimal


class Everything(BaseModel):
    level: Level
    on: date
    at: datetime
    code: Annotated[str, Field(min_length=200, max_length=400)]
    short: Annotated[str, Field(max_length=3)]
    count: Annotated[int, Field(gt=3)]
    below: Annotated[int, Field(le=-2)]
    share: Annotated[float, Field(ge=0, lt=1)]
    rows: Annotated[list[Row], Field(min_length=2)]
    kind: Literal["a", "b"]
    maybe: Row | None
    named: dict[str, int]


@pytest.mark.parametrize("returns", [Everything, Row, PLAIN])
def test_stand_in_fits_what_it_stands_for(returns: Any) -> None:
    form = form_of(returns)
    assert form.read(stand_in(Request("offline", [Message("user", "What?")], schema=form.schema))) is not None


def test_many_faults_are_counted() -> None:
    with pytest.raises(Misfit) as caught:
        form_of({"items": {"type": "integer"}}).read("[" + ", ".join(['"x"'] * 25) + "]")
    assert (len(caught.value.faults), caught.value.faults[-1]) == (21, "and 5 more")
