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

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import InvalidValue
from pipeline.llm.base import Message, Reply
from pipeline.records import codec, kinds
from pipeline.records.charge import Charge
from pipeline.records.codec import Record, decode_fact, decode_line, encode_fact
from pipeline.records.kinds import StepCompleted, StepStarted, TaskCompleted
from pipeline.records.lines import TAIL, LineDamaged, check_line, encode_line
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
    "str": "x", "int": 3, "Text": b"[]", "Mapping[str, Any]": {"a": [1]}, "Sequence[str]": ["x"],
    "Sequence[Mapping[str, Any]]": [{}],
}  # fmt: skip
_VALUES: dict[str, Any] = {"path": "a#1", "usd": "1.5", "document": {"status": "pending"}}


def test_every_kind_is_written_under_its_name_and_read_as_itself() -> None:
    assert len({cls.kind for cls in KINDS}) == len(KINDS)
    for cls in KINDS:
        if cls is kinds.UnknownFact:
            continue
        required: dict[str, Any] = {
            item.name: _VALUES.get(item.name) or _BY_TYPE[cls.__annotations__[item.name]]
            for item in msgspec.structs.fields(cls)
            if item.required
        }
        fact = cls(**required)
        body = json.loads(encode_fact(fact))
        assert set(body) == {"kind", *required}
        assert decode_line(line(fact)).fact == fact


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


names = st.text(st.characters(codec="ascii"), max_size=6) | st.sampled_from(
    ['","value":', '"', "\\", "é", "\x7f", "\ud800", '","reads":{', "null"]
)
tables = st.dictionaries(names, names, max_size=2)
edges = st.lists(names, max_size=2) | st.just(())
numbers = st.integers(-2, 12) | st.just(10**20)
seconds = st.sampled_from([0.0, 1e-06, 12.5, 1e14])
paths = st.sampled_from(["a#1", "fan#2/left#1", "a", "é#1", 'a"#1', ""])
json_texts = st.sampled_from([b"1", b'{"value":2}', b'"x"', encode_value("é\x00\ud800"), b'{"a":",\\"value\\":"}'])
finished = st.builds(
    TaskCompleted, paths, names, json_texts, item=names, hash=names, attempt=numbers, reads=tables, code=names
)
facts = finished | st.one_of(
    st.builds(StepStarted, paths, st.lists(st.lists(names, min_size=2, max_size=2), max_size=2), numbers, numbers),
    st.builds(
        StepCompleted, paths, st.dictionaries(names, values, max_size=2), names, edges, names | st.just("success"),
        tables, tables, tables, numbers, seconds, names, st.lists(tables, max_size=1) | st.just(()),
    ),
)  # fmt: skip


def read_by_json(line: bytes) -> Record | None:
    """What the json module makes of a line; None: nothing."""
    try:
        return codec._decode_rare(line)
    except LineDamaged:
        return None


@given(facts)
@settings(max_examples=150, deadline=None)
def test_both_ways_to_read_and_write_a_fact_agree(fact: kinds.Fact) -> None:
    whole = line(fact)[:-1]
    assert decode_line(whole, whole=True) == read_by_json(whole)
    text = getattr(fact, fact.text) if fact.text else b""
    body = {name: value for name, value in json.loads(encode_fact(fact)).items() if name not in ("kind", fact.text)}
    for item in msgspec.structs.fields(fact):
        value = getattr(fact, item.name)
        default = item.default_factory() if callable(item.default_factory) else item.default
        if item.name != fact.text:
            assert body.pop(item.name, default) == (list(value) if isinstance(value, tuple) and value else value)
    assert not body
    assert encode_fact(fact).endswith(text + b"}")


@given(finished, st.data())
@settings(max_examples=150, deadline=None)
def test_line_of_another_writer_is_read_as_the_json_module_reads_it(fact: TaskCompleted, data: st.DataObject) -> None:
    head = bytearray(line(fact)[: -TAIL - 1])
    place = data.draw(st.integers(0, len(head) - 1))
    # White space between the parts is what only the quick way takes.
    junk: Any = st.binary(max_size=2).filter(lambda data: not set(data) & set(b" \t\n\r")) | st.sampled_from(
        [b'"', b"}", b',"x":1', b"0", b"-", b"null"]
    )
    head[place : place + data.draw(st.integers(0, 3))] = data.draw(junk)
    whole = bytes(head) + b',"crc":"%08x"}' % zlib.crc32(head)
    try:
        record = decode_line(whole, whole=True)
    except LineDamaged:
        record = None
    assert record == read_by_json(whole)


@given(values)
@settings(max_examples=60, deadline=None)
def test_values_read_back_as_written_lone_surrogates_and_nul_included(value: Any) -> None:
    assert json.loads(encode_value(value)) == value
    assert value_hash(value) == value_hash(json.loads(canonical(value)))


class Thing:
    """No JSON value."""


def test_kinds_shapes_and_fields_of_later_versions_are_kept_or_left_out() -> None:
    body = {"kind": "teleported", "to": "moon"}
    fact = decode_fact(dict(body))
    assert fact == kinds.UnknownFact("teleported", {"to": "moon"})
    assert json.loads(encode_fact(fact)) == body
    assert decode_fact({"kind": "gap"}) == kinds.UnknownFact("gap", {})
    assert decode_fact({"kind": "gap", "first": 1, "last": 2, "colour": "red"}) == kinds.Gap(1, 2)


def test_numbers_that_are_no_json_are_never_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode_fact(StepCompleted("a#1", {"n": math.nan}, "c"))


@pytest.mark.parametrize("kind", [None, 3, [], {}])
def test_line_without_a_kind_is_damaged(kind: Any) -> None:
    with pytest.raises(LineDamaged):
        decode_line(encode_line(1, AT, 1, json.dumps({"kind": kind}).encode()))


@pytest.mark.parametrize("head", [b"[1", b'{"seq":1', b"nothing", b'{"kind":"gap","first":' + b"[" * 100_000])
def test_line_with_a_right_checksum_over_something_else_is_damaged(head: bytes) -> None:
    with pytest.raises(LineDamaged):
        decode_line(head + b',"crc":"%08x"}\n' % zlib.crc32(head))


def test_equal_values_are_encoded_the_same_whatever_their_types_and_order() -> None:
    assert value_hash({"a": 1, "b": {"c": 2, "d": 3}}) == value_hash({"b": {"d": 3, "c": 2}, "a": 1})
    assert value_hash({"a": 1}) != value_hash({"a": 2})
    assert encode_value(datetime(2026, 1, 9, 14, 30, tzinfo=UTC)) == b'"2026-01-09T14:30:00Z"'
    value = {"a": range(3), "b": deque("xy"), "c": MappingProxyType({"k": ChainMap({"n": 1})})}
    for encode in (encode_value, canonical):
        assert encode(value) == b'{"a":[0,1,2],"b":["x","y"],"c":{"k":{"n":1}}}'


def test_values_that_are_no_json_are_refused_with_their_place_and_conversion() -> None:
    @dataclass
    class Point:
        x: int

    class Colour(Enum):
        RED = 1

    class Model:
        def model_dump(self, mode: str) -> None: ...

    endless: dict[str, Any] = {}
    endless["self"] = endless
    cases: list[tuple[Any, str]] = [
        (Decimal(1), "str(value)"),
        ({1, 2}, "sorted(value)"),
        (Path("a"), "str(value)"),
        (ValueError("x"), "str(value)"),
        (date(2026, 1, 9), "value.isoformat()"),
        (datetime(2026, 1, 9), "value.astimezone()"),  # noqa: DTZ001
        (timedelta(1), "value.total_seconds()"),
        (Message("user", "x"), "dataclasses.asdict(value)"),
        (Colour.RED, "value.value"),
        (Model(), 'value.model_dump(mode="json")'),
        ((n for n in "ab"), "list(value)"),
        ({}.items(), "sorted(value)"),
        (Reply("x", "end_turn"), "reply.text"),
        (bytearray(b"x"), "bytes(value).decode()"),
        (math.nan, "null or text"),
        (math.inf, "null or text"),
        ({(1, 2): 3}, "str(key)"),
        (MappingProxyType({"k": deque([1, Decimal(1)])}), "str(value)"),
        (len, "its result"),
        (Point, "its result"),
        (Thing(), "vars(value)"),
        (endless, "text keys"),
    ]
    for value, conversion in cases:
        for encode in (encode_value, canonical):
            with pytest.raises(InvalidValue) as caught:
                encode([{"a": value}], "out")
            assert conversion in caught.value.hint, value
            assert caught.value.data["key"].startswith("out[0].a")


def test_charge_gives_back_every_field() -> None:
    part = {"input": Decimal("0.1")}
    charge = Charge("interval", Decimal("0.1"), None, {"input": 3}, part, part, "genai-prices", "batch", "cut")
    assert Charge.from_json({**json.loads(encode_value(charge.to_json())), "colour": "red"}) == charge
