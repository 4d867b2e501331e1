"""WorkflowState: reducers, what is refused, its document; how it is packed into a record."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import WorkflowState
from pipeline.errors import CheckpointCorrupt, InvalidValue
from pipeline.formats.casys.packing import Gathered, Packer, largest, packed_text, unpacked, unpacked_value
from pipeline.records.values import INLINE_LIMIT, encode_value

NAMES = ["workflow_id", "messages", "tasks", "decisions", "context", "checkpoint_id"]
TASK = {"taskId": "a", "result": {"x": 1}, "timestamp": "2026-01-09T14:30:22Z", "duration": 3, "status": "success"}


def test_state_reducers_append_lists_and_merge_the_context() -> None:
    first = WorkflowState("wf").updated(messages=["m"], tasks=[TASK], context={"a": {"deep": 1}, "b": 2})
    second = first.updated(messages=["n"], decisions=["d"], context={"a": {"other": 2}})
    assert second.messages == ["m", "n"]
    assert (second.tasks, second.decisions) == ([TASK], ["d"])
    assert second.context == {"a": {"other": 2}, "b": 2}
    assert (first.messages, first.context["b"], first.decisions) == (["m"], 2, [])


def test_state_belongs_to_one_run_for_ever() -> None:
    state = WorkflowState("wf")
    assert state.updated(workflow_id="wf") == state
    with pytest.raises(InvalidValue, match="'wf'"):
        state.updated(workflow_id="other")
    with pytest.raises(InvalidValue, match="'wf'"):
        state.workflow_id = "other"


def test_state_document_has_the_names_of_its_system_and_is_a_copy() -> None:
    state = WorkflowState("wf", context={"a": [1]})
    document = state.to_json()
    assert list(document) == NAMES
    document["context"]["a"].append(2)
    assert state.context == {"a": [1]}
    assert WorkflowState.from_json(state.to_json()) == state


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"workflow_id": ""}, "workflow_id is empty"),
        ({"workflow_id": 3}, "workflow_id"),
        ({"messages": {}}, "messages is no list"),
        ({"decisions": None}, "decisions is no list"),
        ({"context": []}, "context is no object"),
        ({"checkpoint_id": 3}, "checkpoint_id"),
        ({"tasks": ["a"]}, "tasks[0] is no object"),
        ({"tasks": [TASK, {"taskId": ""}]}, "tasks[1].taskId"),
        ({"tasks": [{"taskId": "a"}]}, "tasks[0].result is missing"),
        ({"tasks": [{**TASK, "status": 1}]}, "tasks[0].status"),
    ],
)
def test_state_that_is_none_is_refused_naming_the_field(change: dict[str, Any], said: str) -> None:
    document = {**WorkflowState("wf").to_json(), **change}
    with pytest.raises(InvalidValue) as refused:
        WorkflowState.from_json(document)
    assert said in str(refused.value)


@pytest.mark.parametrize("name", NAMES[:-1])
def test_state_without_a_field_is_refused(name: str) -> None:
    document = WorkflowState("wf").to_json()
    del document[name]
    with pytest.raises(InvalidValue, match=f"{name} is missing"):
        WorkflowState.from_json(document)


def test_results_are_the_newest_that_stand() -> None:
    tasks = [{**TASK, "status": "error"}, {**TASK, "result": 1}, {**TASK, "taskId": "b", "status": "failed_safe"},
             {**TASK, "result": 2}, {**TASK, "taskId": "c", "status": "error"}]  # fmt: skip
    assert WorkflowState("wf", tasks=tasks).results() == {"a": 2, "b": {"x": 1}}


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
    document = WorkflowState("wf", messages=items, context=context).to_json()
    stored = json.loads(encode_value(Packer().packed(document, blobs)))
    assert unpacked(stored, blobs.__getitem__) == document


def test_packing_writes_nothing_twice_where_a_list_grows() -> None:
    packer, blobs, seen = Packer(), Gathered(), set()
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
    packer, held = Packer(), [{"n": [], "text": _LONG} for _ in range(7)]
    for values in states:
        for item, value in zip(held, values, strict=False):
            item["n"] = value
        # The same objects with other contents, or others.
        items = held if in_place else json.loads(json.dumps(held))
        known, fresh = Gathered(), Gathered()
        once = packer.packed({"tasks": items[: len(values) + 1]}, known)
        again = Packer().packed({"tasks": items[: len(values) + 1]}, fresh)
        assert (encode_value(once), known) == (encode_value(again), fresh)


def test_packing_encodes_what_it_cannot_compare_each_time() -> None:
    packer, at = Packer(), datetime(2026, 1, 9, tzinfo=UTC)
    for second in (1, 2):
        blobs = Gathered()
        stored = packer.packed({"tasks": [{"at": at.replace(second=second), "text": "z" * INLINE_LIMIT}] * 2}, blobs)
        assert unpacked(stored, blobs.__getitem__)["tasks"][1]["at"] == f"2026-01-09T00:00:0{second}Z"


@pytest.mark.parametrize("stored", [None, [], {"tasks": {"$pieces": [{"$blob": "x", "items": 2}], "tail": []}}])
def test_packing_that_makes_no_sense_is_corrupt(stored: Any) -> None:
    with pytest.raises(CheckpointCorrupt):
        unpacked(stored, lambda blob: b"[1]")


def test_packed_text_goes_out_of_line_above_the_limit() -> None:
    blobs = Gathered()
    assert packed_text(b'{"a":1}', blobs.put) == {"a": 1}
    stored = packed_text(encode_value({"a": "x" * INLINE_LIMIT}), blobs.put)
    assert list(stored) == ["$blob", "bytes"]
    assert unpacked_value(stored, blobs.__getitem__) == {"a": "x" * INLINE_LIMIT}


def test_largest_names_parts_of_the_state() -> None:
    document = {
        "id": "x",
        "state": {"context": {"a": "x" * 3000, "b": 1}, "messages": ["y" * 5000], "workflow_id": "w"},
    }
    assert largest(document, 2) == ["state.messages (5 kB)", "state.context.a (3 kB)"]
