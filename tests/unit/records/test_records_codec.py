"""Journal lines, JSON values and charges: what is written comes back, what is damaged is seen."""

from __future__ import annotations

import json
import math
import zlib
from collections import ChainMap, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import InvalidValue
from pipeline.llm.base import Reply
from pipeline.records import kinds
from pipeline.records.charge import Charge
from pipeline.records.codec import decode_fact, decode_line, encode_fact
from pipeline.records.lines import LineDamaged, check_line, encode_line
from pipeline.records.values import canonical, encode_value, value_hash
from tests.tape import AT

KINDS = [cls for cls in vars(kinds).values() if isinstance(cls, type) and issubclass(cls, kinds.Fact) and cls.kind]

text = st.text(st.characters(codec=None), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


def line(fact: kinds.Fact, seq: int = 7) -> bytes:
    return encode_line(seq, AT, 1, encode_fact(fact))


@given(values, st.integers(1, 10**9))
@settings(max_examples=60, deadline=None)
def test_line_gives_back_its_fact_and_envelope(value: Any, seq: int) -> None:
    fact = kinds.TaskCompleted("a#1", "k/1", encode_value(value), item="i", attempt=2, reads={"params.n": "h"})
    record = decode_line(line(fact, seq))
    assert (record.seq, record.at, record.owner, record.fact) == (seq, AT, 1, fact)


#: A value of each type, and of the fields that want more than their type.
_BY_TYPE: dict[Any, Any] = {
    "str": "x", "int": 3, "bytes": b"[]", "Mapping[str, Any]": {"a": [1]}, "Sequence[str]": ["x"],
    "Sequence[Mapping[str, Any]]": [{}],
}  # fmt: skip
_VALUES: dict[str, Any] = {"path": "a#1", "usd": "1.5", "document": {"status": "pending"}}


def test_every_kind_is_written_under_its_name_and_read_as_itself() -> None:
    assert len({cls.kind for cls in KINDS}) == len(KINDS)
    for cls in KINDS:
        if cls is kinds.UnknownFact:
            continue
        required: dict[str, Any] = {
            name: _VALUES.get(name) or _BY_TYPE[item.type]
            for name, item in cls.__dataclass_fields__.items()
            if not _optional(item)
        }
        fact = cls(**required)
        body = json.loads(encode_fact(fact))
        assert set(body) == {"kind", *required}
        assert decode_line(line(fact)).fact == fact


def _optional(item: Any) -> bool:
    return item.default is not item.default_factory


def test_unknown_kinds_and_shapes_are_kept_as_they_came() -> None:
    body = {"kind": "teleported", "to": "moon"}
    fact = decode_fact(dict(body))
    assert fact == kinds.UnknownFact("teleported", {"to": "moon"})
    assert json.loads(encode_fact(fact)) == body
    assert decode_fact({"kind": "gap"}) == kinds.UnknownFact("gap", {})


def test_unknown_fields_of_a_known_kind_are_left_out() -> None:
    assert decode_fact({"kind": "gap", "first": 1, "last": 2, "colour": "red"}) == kinds.Gap(1, 2)


def test_line_is_refused_wherever_a_bit_is_flipped_or_it_is_cut() -> None:
    whole = line(kinds.TaskCompleted("a#1", "k", encode_value({"n": [1, "é"]})))
    assert check_line(whole) == whole[:-1]
    for place in range(len(whole) - 1):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        with pytest.raises(LineDamaged):
            check_line(bytes(flipped))
        with pytest.raises(LineDamaged):
            check_line(whole[:place])


@pytest.mark.parametrize("head", [b"[1", b'{"seq":1', b"nothing"])
def test_line_with_a_right_checksum_over_something_else_is_damaged(head: bytes) -> None:
    with pytest.raises(LineDamaged):
        decode_line(head + b',"crc":"%08x"}\n' % zlib.crc32(head))


@given(values)
@settings(max_examples=60, deadline=None)
def test_values_read_back_as_written_lone_surrogates_and_nul_included(value: Any) -> None:
    assert json.loads(encode_value(value)) == value
    assert value_hash(value) == value_hash(json.loads(canonical(value)))


def test_value_hash_does_not_depend_on_key_order() -> None:
    assert value_hash({"a": 1, "b": {"c": 2, "d": 3}}) == value_hash({"b": {"d": 3, "c": 2}, "a": 1})
    assert value_hash({"a": 1}) != value_hash({"a": 2})


def test_aware_times_are_written_in_utc() -> None:
    assert encode_value(datetime(2026, 1, 9, 14, 30, tzinfo=UTC)) == b'"2026-01-09T14:30:00Z"'


class Thing:
    """No JSON value."""


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"a": [1, float("nan")]}, "out.a[1] is nan"),
        ({"a": float("inf")}, "out.a is inf"),
        ({"a": b"x"}, "out.a is bytes"),
        ({"when": datetime(2026, 1, 9)}, "out.when is a datetime without a time zone"),  # noqa: DTZ001
        ({"a": {"b": Decimal(1)}}, "out.a.b is a Decimal"),
        ({"a": Thing()}, "out.a is a Thing"),
        ({"a": {(1, 2): "x"}}, "out.a has the key (1, 2)"),
    ],
)
def test_values_that_are_no_json_are_refused_by_name(value: Any, named: str) -> None:
    for encode in (encode_value, canonical):
        with pytest.raises(InvalidValue, match="out") as caught:
            encode(value, "out")
        assert named in caught.value.message


def test_values_that_are_no_json_are_refused_with_their_conversion() -> None:
    @dataclass
    class Point:
        x: int

    class Colour(Enum):
        RED = 1

    class Model:
        def model_dump(self, mode: str) -> None: ...

    cases: list[tuple[Any, str]] = [
        (Decimal(1), "str(value)"),
        ({1, 2}, "sorted(value)"),
        (Path("a"), "str(value)"),
        (ValueError("x"), "str(value)"),
        (date(2026, 1, 9), "value.isoformat()"),
        (timedelta(1), "value.total_seconds()"),
        (Point(1), "dataclasses.asdict(value)"),
        (Colour.RED, "value.value"),
        (Model(), 'value.model_dump(mode="json")'),
        ((n for n in "ab"), "list(value)"),
        ({}.items(), "sorted(value)"),
        (Reply("x", "end_turn"), "reply.text"),
        (bytearray(b"x"), "bytes(value).decode()"),
        (math.nan, "null or text"),
        ({(1, 2): 3}, "str(key)"),
        (len, "its result"),
        (Point, "its result"),
        (Thing(), "vars(value)"),
    ]
    for value, conversion in cases:
        with pytest.raises(InvalidValue) as caught:
            encode_value([{"a": value}], "out")
        assert conversion in caught.value.hint, value
        assert "out[0].a" in caught.value.message


def test_views_of_lists_and_mappings_are_recorded_as_these() -> None:
    value = {"a": range(3), "b": deque("xy"), "c": MappingProxyType({"k": ChainMap({"n": 1})})}
    for encode in (encode_value, canonical):
        assert encode(value) == b'{"a":[0,1,2],"b":["x","y"],"c":{"k":{"n":1}}}'
    with pytest.raises(InvalidValue, match=r"out\.c\.k\[1\] is a Decimal"):
        encode_value({"c": MappingProxyType({"k": deque([1, Decimal(1)])})}, "out")


def test_value_that_contains_itself_is_refused() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    with pytest.raises(InvalidValue, match="nested too deeply"):
        encode_value(value, "out")


def test_charge_gives_back_every_field() -> None:
    charge = Charge(
        "interval",
        Decimal("0.1"),
        None,
        {"input": 3},
        {"input": Decimal("0.1")},
        {"input": Decimal(3)},
        "genai-prices",
        "batch",
        "cut",
    )
    data = json.loads(encode_value(charge.to_json()))
    assert Charge.from_json({**data, "colour": "red"}) == charge
    assert Charge.from_json(Charge("exact", Decimal("0.2"), Decimal("0.2")).to_json()).high == Decimal("0.2")
