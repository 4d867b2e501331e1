"""Graph-run checkpoints: their documents, views of our runs as such, and saved documents taken over as runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import CheckpointStore, GraphCheckpoint, Outcome, Pipeline, step
from pipeline.clock import SystemClock
from pipeline.engine.routing import Route, Settled, by_label
from pipeline.errors import CheckpointCorrupt, ConfigError, InvalidValue, Pause, PipelineError, RunLocked, SecretRefused
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.store.retention import removable
from tests.graph_runs import Noted, document


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(SystemClock())


@pytest.fixture
def checkpoints(store: MemoryStore) -> CheckpointStore:
    return CheckpointStore(store)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


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
        *(({key: value for key, value in document().items() if key != name}, name)
          for name in ("id", "graphId", "runId", "nodeId", "timestamp", "state", "nodeResults", "visitedNodes",
                       "pendingEdges")),
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


def test_save_beside_another_process_that_saves_to_the_same_run_is_refused(
    store: MemoryStore, checkpoints: CheckpointStore
) -> None:
    checkpoints.save(document())
    holder = store.open(next(iter(store.heads())).run_id)
    with pytest.raises(RunLocked):
        checkpoints.save(document("cp-2"))
    checkpoints.save(document("cp-3", run="another"))
    holder.close()
    checkpoints.save(document("cp-2"))
    assert [row["id"] for row in CheckpointStore(store).list()] == ["cp-2", "cp-3", "cp-1"]


def test_documents_saved_first_by_two_processes_at_once_stand_in_one_run(store: MemoryStore) -> None:
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


def test_run_that_holds_documents_is_nothing_to_go_on_with_nor_to_clean_up(
    store: MemoryStore, checkpoints: CheckpointStore
) -> None:
    for number in range(3):
        checkpoints.save(document(f"cp-{number}", run=f"run-{number}"))
    assert {head.document["status"] for head in store.heads()} == {"completed"}
    later = SystemClock().now() + timedelta(days=400)
    assert removable(store.heads(), max_age_days=30, max_runs=1, now=later) == []


# --- runs of ours, and documents as runs ---


class Remembered:
    """A memory that notes what it is told."""

    def __init__(self, refuses: int = 0) -> None:
        self.written: list[tuple[str, str]] = []
        self.refuses = refuses

    def read(self, query: str) -> Iterable[tuple[str, str, float]]:
        return [("t1", f"about {query}", 0.5)]

    def write(self, type: str, content: str, scope: str, key: str) -> None:
        if self.refuses:
            self.refuses -= 1
            raise OSError("no room")
        if (content, key) not in self.written:
            self.written.append((content, key))


def latest(checkpoints: CheckpointStore, run: str, node: str | None = None) -> GraphCheckpoint:
    made = checkpoints.load(run, node)
    assert made is not None
    return made


def branches(noted: Noted) -> Pipeline:
    """a chooses b, never c; both lead to d."""
    noted.act = {"a": lambda ctx: Outcome({}, "left")}
    steps = [
        noted.step(name, effect) for name, effect in zip("abcd", ("pure", "write", "read", "external"), strict=True)
    ]
    return Pipeline("fork", steps, edges=[("a", "b", "left"), ("a", "c", "right"), ("b", "d"), ("c", "d")])


def test_view_names_what_routing_passed_by_and_what_is_pending(
    store: MemoryStore, checkpoints: CheckpointStore
) -> None:
    run = branches(Noted()).run(store=store).run_id
    first = latest(checkpoints, run, "a")
    assert (first.visited_nodes, first.pending_edges, first.skipped_nodes) == (["a"], ["a->b"], ["c"])
    last = latest(checkpoints, run)
    assert (last.visited_nodes, last.pending_edges, last.skipped_nodes) == (["a", "b", "d"], [], ["c"])
    assert {name: result["effectClass"] for name, result in last.node_results.items()} == {
        "a": "pure", "b": "write", "d": "external",
    }  # fmt: skip


def test_view_of_what_was_cut_off_says_that_it_begins_again(store: MemoryStore, checkpoints: CheckpointStore) -> None:
    noted = Noted()

    def pause(ctx: Any) -> None:
        raise Pause("paused_budget", PipelineError("enough"))

    noted.act, noted.bad = {"b": pause}, {"x"}
    run = noted.chain().run(store=store).run_id
    assert latest(checkpoints, run).pending_edges == ["a->b"]
    run = noted.chain("axc").run(store=store).run_id
    assert latest(checkpoints, run).pending_edges == ["a->x"]
    before = checkpoints.load(run, "x", policy="before")
    assert before is not None
    assert before.pending_edges == ["a->x"]
    (row,) = [row for row in checkpoints.list(run_id=run, policy="before") if row["nodeId"] == "a"]
    first = checkpoints.get(row["id"])
    assert first is not None
    assert (first.visited_nodes, first.pending_edges, first.state["scratch"]) == ([], [], {})


def test_view_shows_no_failure_that_was_tried_again_by_itself(store: MemoryStore, checkpoints: CheckpointStore) -> None:
    noted = Noted()

    def third(ctx: Any) -> dict[str, Any]:
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return {}

    def router(settled: Settled) -> Route:
        return Route((), retry_seconds=0.0) if settled.failed else by_label(settled)

    noted.act = {"b": third}
    pipeline = noted.chain()
    pipeline.definition = replace(pipeline.definition, router=router)
    run = pipeline.run(store=store).run_id
    assert [row["nodeId"] for row in checkpoints.list(run_id=run)] == ["c", "b", "a"]


def test_view_reads_long_values_and_artifacts_back(store: MemoryStore, checkpoints: CheckpointStore) -> None:
    big = "x" * 100_000

    @step()
    def a(ctx: Any) -> Outcome:
        ctx.save("plan", {"n": [1]})
        return Outcome({"big": big}, context={"big": big})

    run = Pipeline("big", [a]).run(store=store).run_id
    made = latest(checkpoints, run)
    assert made.node_results["a"]["output"] == {"big": big}
    assert (made.state["scratch"], made.state["artifacts"]) == ({"big": big}, {"plan": {"n": [1]}})
    assert checkpoints.list("big")[0]["stateSize"] > 100_000


def test_view_shows_a_failure_that_led_on_as_visited_without_a_result(
    store: MemoryStore, checkpoints: CheckpointStore
) -> None:
    noted = Noted()
    noted.bad = {"a"}
    steps = [noted.step("a"), noted.step("b")]
    run = Pipeline("led", steps, edges=[("a", "b", "fail")]).run(store=store).run_id
    made = latest(checkpoints, run)
    assert (made.visited_nodes, list(made.node_results)) == (["a", "b"], ["b"])


def test_view_shows_what_the_memory_said_and_what_it_has_not_taken_yet(
    store: MemoryStore, checkpoints: CheckpointStore
) -> None:
    @step()
    def a(ctx: Any) -> dict[str, Any]:
        ctx.memory.read("tides")
        ctx.memory.read("tides")
        ctx.memory.write("fact", "learned", "sea")
        return {}

    pipeline = Pipeline("memory", [a, step("b")(lambda ctx: {})])
    memory = Remembered(refuses=1)
    run = pipeline.run(store=store, services={"memory": memory}).run_id
    made = latest(checkpoints, run)
    reads = [{"traceId": "t1", "content": "about tides", "strength": 0.5}]
    assert made.memory_snapshot == {
        "reads": reads, "pendingWrites": [{"type": "fact", "content": "learned", "scope": "sea"}],
    }  # fmt: skip
    pipeline.resume(run, store=store, services={"memory": memory})
    made = latest(checkpoints, run)
    assert made.memory_snapshot == {"reads": reads, "pendingWrites": []}
    assert [row["hasMemorySnapshot"] for row in checkpoints.list("memory")] == [True] * 3
    assert (made.state["diagnostics"]["memoryReads"], made.state["diagnostics"]["memoryWrites"]) == (2, 1)


def test_adopted_document_runs_exactly_what_it_says_is_pending(
    store: MemoryStore, checkpoints: CheckpointStore
) -> None:
    noted = Noted()
    noted.act = {"b": lambda ctx: {"saw": [ctx.context["step"], ctx.params["topic"], ctx.outputs["a"]["n"]]}}
    pipeline = noted.chain()
    checkpoints.save(document(graph="letters", skippedNodes=[]))
    run = checkpoints.adopt("cp-1", pipeline)
    assert load(store, run).parent == {"run": "their-run", "checkpoint": "cp-1"}
    first = latest(checkpoints, run)
    assert (first.visited_nodes, first.pending_edges) == (["a"], ["a->b"])
    assert first.state["scratch"] == document()["state"]["scratch"]
    assert noted.ran == []
    result = pipeline.resume(run, store=store)
    assert (result.status, noted.ran, result.outputs["b"]) == ("completed", ["b", "c"], {"saw": [1, "tides", 1.5]})
    found = checkpoints.get("cp-1")
    assert found is not None
    assert found.to_json() == document(graph="letters", skippedNodes=[])


@pytest.mark.parametrize(
    ("more", "ran"),
    [
        ({"visitedNodes": ["a"], "pendingEdges": ["a->c"], "skippedNodes": ["b"]}, "cd"),
        # Without edges: what was not visited, over those of a success.
        ({"visitedNodes": ["a"], "pendingEdges": []}, "be"),
        ({"visitedNodes": ["a", "b"], "pendingEdges": []}, "e"),
        ({"visitedNodes": ["a", "b", "e"], "pendingEdges": []}, ""),
    ],
)
def test_adopted_document_runs_the_edges_it_names_or_what_was_not_visited(
    store: MemoryStore, checkpoints: CheckpointStore, more: dict[str, Any], ran: str
) -> None:
    noted = Noted()
    edges = [("a", "b"), ("a", "c", "fail"), ("b", "e"), ("c", "d")]
    pipeline = Pipeline("fork", [noted.step(name) for name in "abcde"], edges=edges)
    checkpoints.save(document(graph="fork", **more))
    assert pipeline.resume(checkpoints.adopt("cp-1", pipeline), store=store).status == "completed"
    assert "".join(noted.ran) == ran


def test_writes_that_were_staged_in_a_document_are_applied_once(
    store: MemoryStore, checkpoints: CheckpointStore
) -> None:
    staged = [{"type": "fact", "content": text, "scope": "sea"} for text in ("one", "two")]
    noted, memory = Noted(), Remembered(refuses=1)
    pipeline = noted.chain()
    checkpoints.save(document(graph="letters", memorySnapshot={"reads": [], "pendingWrites": staged}))
    runs = [checkpoints.adopt("cp-1", pipeline) for _ in range(2)]
    first = pipeline.resume(runs[0], store=store, services={"memory": memory})
    # They come before anything else.
    assert (first.status, first.detail, noted.ran) == ("in_progress", "interrupted", [])
    for run in (runs[0], runs[0], runs[1]):
        assert pipeline.resume(run, store=store, services={"memory": memory}).status == "completed"
    assert memory.written == [("one", "cp-1/1"), ("two", "cp-1/2")]
    assert load(store, runs[0]).unapplied == {}


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"visitedNodes": [], "pendingEdges": []}, ConfigError),
        ({"state": {"input": {"api_key": "x"}}}, SecretRefused),
    ],
)
def test_document_that_cannot_be_a_position_makes_no_run(
    store: MemoryStore, checkpoints: CheckpointStore, more: dict[str, Any], error: type[Exception]
) -> None:
    checkpoints.save(document(graph="letters", **more))
    with pytest.raises(error):
        checkpoints.adopt("cp-1", Noted().chain())
    assert not list(store.heads(lambda head: head["pipeline"] == "letters"))


@pytest.mark.parametrize("patch", [{"memory": {}}, {"artifacts": {"x": 1}}, {"diagnostics": {"x": 1}}, {"input": 1}])
def test_patch_that_cannot_be_given_to_a_run_of_ours_is_refused(
    store: MemoryStore, checkpoints: CheckpointStore, patch: dict[str, Any]
) -> None:
    run = Noted().chain().run(store=store).run_id
    with pytest.raises(ConfigError):
        checkpoints.fork(latest(checkpoints, run).id, patch)
    assert len(list(store.heads())) == 1


def test_missing_value_is_named_and_hides_no_other_checkpoint(store: MemoryStore, checkpoints: CheckpointStore) -> None:
    @step()
    def b(ctx: Any) -> dict[str, Any]:
        return {"big": "x" * 100_000}

    run = Pipeline("torn", [step("a")(lambda ctx: {}), b]).run(store=store).run_id
    state = load(store, run)
    store.backend.delete(f"runs/{run}/blobs/{state.steps['b#1'].outputs['$blob']}")
    with pytest.raises(CheckpointCorrupt):
        checkpoints.latest(run)
    assert latest(checkpoints, run, "a").visited_nodes == ["a"]
