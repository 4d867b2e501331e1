"""How documents go into records: what is long, what grows, what looks like a reference, and what cannot be read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import WorkflowState
from pipeline.errors import CheckpointCorrupt
from pipeline.formats.packer import (
    INLINE_BYTES,
    Gathered,
    StatePacker,
    largest,
    packed,
    unpacked_document,
    unpacked_state,
)
from pipeline.records.values import INLINE_LIMIT, encode_value
from tests.graph_runs import document

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text() | st.sampled_from(["$blob", "$pieces"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(json_values, max_size=4), st.dictionaries(st.text(), json_values, max_size=4), st.integers(0, 3))
def test_packing_law_what_is_unpacked_is_what_was_packed(items: list[Any], context: dict[str, Any], long: int) -> None:
    blobs = Gathered()
    items = items + ["x" * 20_000] * long + ["y" * (INLINE_LIMIT + 1)] * (long // 2)
    whole = WorkflowState("wf", messages=items, context=context).to_json()
    stored = json.loads(encode_value(StatePacker().packed(whole, blobs)))
    assert unpacked_state(stored, blobs.__getitem__) == whole


def test_packing_writes_nothing_twice_where_a_list_grows() -> None:
    packer, blobs, seen = StatePacker(), Gathered(), set()
    for count in range(0, 400, 20):
        before = set(blobs)
        packer.packed({"messages": [f"{n} {'m' * 500}" for n in range(count)]}, blobs)
        assert len(set(blobs) - before) <= 1
        seen |= set(blobs)
    assert seen == set(blobs)
    # 65 of these messages are 32 KiB.
    assert len(blobs) == 380 // 65


#: Long enough that three of it make a piece.
_LONG = "z" * 12_000
_states = st.lists(st.lists(st.sampled_from([0, 0.0, -0.0, False, None, 1, 1.0, True]), max_size=2), max_size=7)


@given(st.lists(_states, min_size=2, max_size=4), st.booleans())
def test_packing_law_what_was_packed_before_makes_no_difference(states: list[list[Any]], in_place: bool) -> None:
    packer, held = StatePacker(), [{"n": [], "text": _LONG} for _ in range(7)]
    for values in states:
        for item, value in zip(held, values, strict=False):
            item["n"] = value
        # The same objects with other contents, or others.
        items = held if in_place else json.loads(json.dumps(held))
        known, fresh = Gathered(), Gathered()
        once = packer.packed({"tasks": items[: len(values) + 1]}, known)
        again = StatePacker().packed({"tasks": items[: len(values) + 1]}, fresh)
        assert (encode_value(once), known) == (encode_value(again), fresh)


def test_packing_encodes_what_it_cannot_compare_each_time() -> None:
    packer, at = StatePacker(), datetime(2026, 1, 9, tzinfo=UTC)
    for second in (1, 2):
        blobs = Gathered()
        stored = packer.packed({"tasks": [{"at": at.replace(second=second), "text": "z" * INLINE_LIMIT}] * 2}, blobs)
        assert unpacked_state(stored, blobs.__getitem__)["tasks"][1]["at"] == f"2026-01-09T00:00:0{second}Z"


@pytest.mark.parametrize("stored", [None, [], {"tasks": {"$pieces": [{"$blob": "x", "items": 2}], "tail": []}}])
def test_packing_that_makes_no_sense_is_corrupt(stored: Any) -> None:
    with pytest.raises(CheckpointCorrupt):
        unpacked_state(stored, lambda blob: b"[1]")


def test_largest_names_parts_of_the_state() -> None:
    sample = {
        "id": "x",
        "state": {"context": {"a": "x" * 3000, "b": 1}, "messages": ["y" * 5000], "workflow_id": "w"},
    }
    assert largest(sample, 2) == ["state.messages (5 kB)", "state.context.a (3 kB)"]


def test_documents_that_grow_are_stored_once_where_they_are_the_same() -> None:
    sizes, known = [], set[str]()
    for length in (200, 400, 600):
        results = {
            f"n{n}": {"effectClass": "pure", "output": "x" * 500 + str(n), "durationMs": 1} for n in range(length)
        }
        made, blobs = document(nodeResults=results), Gathered()
        text = encode_value(packed(made, blobs))
        assert len(text) < 3 * INLINE_BYTES
        assert unpacked_document(text, blobs.__getitem__) == made
        new = set(blobs) - known
        sizes.append(sum(len(blobs[name]) for name in new))
        known |= new
    assert max(sizes) < 1.3 * min(sizes)


@pytest.mark.parametrize(
    "odd", [{"$blob": "x"}, {"$list": [], "tail": 1}, {"$object": 1}, [{"$blob": 1}], {"tail": []}]
)
def test_what_looks_like_a_reference_of_ours_survives(odd: Any) -> None:
    for value in (odd, {"deep": [odd, "x" * INLINE_BYTES]}):
        blobs = Gathered()
        assert unpacked_document(encode_value(packed(value, blobs)), blobs.__getitem__) == value
