"""Graph-run checkpoint documents: names, shapes, and what is kept of others."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import CheckpointStore, GraphCheckpoint
from pipeline.clock import SystemClock
from pipeline.errors import CheckpointCorrupt, InvalidValue, RunLocked, SecretRefused
from pipeline.store.memory import MemoryStore
from pipeline.store.retention import removable
from tests.graph_runs import document

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def checkpoints() -> CheckpointStore:
    return CheckpointStore(MemoryStore(SystemClock()))


def without(name: str) -> dict[str, Any]:
    made = document()
    del made[name]
    return made


def test_document_has_the_printed_names_and_their_python_spellings() -> None:
    made = GraphCheckpoint.from_json(document(skippedNodes=["c"]))
    assert made.graph_id == made.graphId == "theirs"
    assert made.node_results is made.nodeResults
    assert (made.skippedNodes, made.memorySnapshot) == (["c"], None)
    assert list(made.to_json())[:6] == ["id", "graphId", "runId", "nodeId", "timestamp", "state"]
    with pytest.raises(AttributeError):
        _ = made.noderesults


@pytest.mark.parametrize(
    ("data", "key"),
    [
        *((without(name), name) for name in ("id", "graphId", "runId", "nodeId", "timestamp", "state", "nodeResults",
                                             "visitedNodes", "pendingEdges")),
        (document(id=""), "id"), (document(timestamp="now"), "timestamp"), (document(timestamp=True), "timestamp"),
        (document(timestamp=-1), "timestamp"), (document(state=[]), "state"),
        (document(state={"diagnostics": 1}), "state.diagnostics"),
        (document(nodeResults={"b": {"effectClass": "magic", "durationMs": 1}}), "nodeResults.b.effectClass"),
        (document(nodeResults={"b": {"effectClass": "pure", "durationMs": -1}}), "nodeResults.b.durationMs"),
        (document(nodeResults={"b": {"effectClass": "pure"}}), "nodeResults.b.durationMs"),
        (document(visitedNodes=["a", 1]), "visitedNodes[1]"), (document(pendingEdges="a->b"), "pendingEdges"),
        (document(skippedNodes={}), "skippedNodes"), (document(memorySnapshot=[]), "memorySnapshot"),
        (document(memorySnapshot={"reads": []}), "memorySnapshot.pendingWrites"),
        (document(memorySnapshot={"reads": [{"traceId": 1}], "pendingWrites": []}), "memorySnapshot.reads[0].traceId"),
        ([], ""), (None, ""),
    ],
)  # fmt: skip
def test_document_of_another_shape_is_refused_by_its_key(checkpoints: CheckpointStore, data: Any, key: str) -> None:
    with pytest.raises(CheckpointCorrupt) as caught:
        checkpoints.save(data)
    assert caught.value.data["key"] == key
    assert key in str(caught.value)
    assert checkpoints.list() == []


def test_document_with_what_is_no_json_or_a_secret_is_refused(checkpoints: CheckpointStore) -> None:
    with pytest.raises(InvalidValue, match=r"checkpoint\.state\.scratch\.x"):
        checkpoints.save(document(state={"scratch": {"x": float("nan")}}))
    with pytest.raises(SecretRefused):
        checkpoints.save(document(state={"scratch": {"x": "sk-ant-api03-never-to-be-stored-0123456789"}}))
    assert checkpoints.list() == []


@settings(max_examples=40, deadline=None)
@given(values=st.dictionaries(st.text(max_size=8), _values, max_size=4), state=_values)
def test_document_of_others_comes_back_as_it_was(values: dict[str, Any], state: Any) -> None:
    checkpoints = CheckpointStore(MemoryStore(SystemClock()))
    saved = document(skippedNodes=None, memorySnapshot=None, state={"input": state, "scratch": values})
    saved = {**{f"x-{name}": value for name, value in values.items()}, **saved}
    checkpoints.save(saved)
    found = checkpoints.get("cp-1")
    assert found is not None
    assert found.to_json() == json.loads(json.dumps(saved))


def test_save_beside_another_process_that_saves_to_the_same_run_is_refused() -> None:
    store = MemoryStore(SystemClock())
    checkpoints = CheckpointStore(store)
    checkpoints.save(document())
    holder = store.open(next(iter(store.heads())).run_id)
    with pytest.raises(RunLocked):
        checkpoints.save(document("cp-2"))
    checkpoints.save(document("cp-3", run="another"))
    holder.close()
    checkpoints.save(document("cp-2"))
    assert [row["id"] for row in CheckpointStore(store).list()] == ["cp-2", "cp-3", "cp-1"]


def test_documents_saved_first_by_two_processes_at_once_stand_in_one_run() -> None:
    store = MemoryStore(SystemClock())
    ours, theirs = CheckpointStore(store), CheckpointStore(store)
    create = store.create

    def late(*given: Any, **named: Any) -> Any:
        store.create = create  # type: ignore[method-assign]
        theirs.save(document("cp-2"))
        return create(*given, **named)

    store.create = late  # type: ignore[method-assign]
    ours.save(document("cp-1"))
    assert len(list(store.heads())) == 1
    assert [row["id"] for row in ours.list()] == [row["id"] for row in theirs.list()] == ["cp-1", "cp-2"]


def test_run_that_holds_documents_is_nothing_to_go_on_with_nor_to_clean_up() -> None:
    store = MemoryStore(SystemClock())
    checkpoints = CheckpointStore(store)
    for number in range(3):
        checkpoints.save(document(f"cp-{number}", run=f"run-{number}"))
    assert {head.document["status"] for head in store.heads()} == {"completed"}
    later = SystemClock().now() + timedelta(days=400)
    assert removable(store.heads(), max_age_days=30, max_runs=1, now=later) == []
