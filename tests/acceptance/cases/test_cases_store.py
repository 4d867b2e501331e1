"""Acceptance cases 1–10: the store of graph-run checkpoints, over each kind of store."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline import CheckpointStore, GraphCheckpoint
from pipeline.errors import RunNotFound
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from tests.faulty_disk import LazyDisk
from tests.graph_runs import Noted, document, found, loop

BACKENDS: dict[str, Callable[[Path, FakeClock], Store]] = {
    "memory": lambda folder, clock: MemoryStore(clock),
    "files": lambda folder, clock: FileStore(folder, clock, disk=LazyDisk()),
}
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
METADATA = ["id", "runId", "graphId", "nodeId", "timestamp", "stateSize", "hasMemorySnapshot"]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=list(BACKENDS))
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Store:
    return BACKENDS[request.param](tmp_path / "runs", clock)


@pytest.fixture
def checkpoints(store: Store, clock: FakeClock) -> CheckpointStore:
    return CheckpointStore(store, clock=clock)


def test_case_01_what_is_read_is_equal_and_apart(checkpoints: CheckpointStore) -> None:
    given = document()
    checkpoints.save(given)
    given["state"]["scratch"]["step"] = "changed after the save"
    ways: list[Callable[[], GraphCheckpoint | None]] = [
        lambda: checkpoints.get("cp-1"), lambda: checkpoints.load("their-run"), lambda: checkpoints.latest("their-run"),
    ]  # fmt: skip
    for read in ways:
        first = found(read())
        assert first.to_json() == document()
        first.state["scratch"]["step"] = 99
        first.visited_nodes.append("z")
        first.node_results.clear()
        assert found(read()).to_json() == document()


def test_case_01_the_same_of_a_run_of_ours(store: Store, checkpoints: CheckpointStore, clock: FakeClock) -> None:
    run = Noted().chain().run({"n": 1}, store=store, clock=clock).run_id
    first = found(checkpoints.latest(run))
    assert UUID4.fullmatch(first.id)
    assert first == checkpoints.get(first.id) == checkpoints.load(run, "c")
    whole = first.to_json()
    first.state["scratch"]["a"] = first.node_results["a"]["output"]["made"] = "mine"
    assert found(checkpoints.latest(run)).to_json() == whole
    # Our own id of the same checkpoint finds it too.
    own = load(store, run).steps["c#1"].checkpoint
    assert found(checkpoints.get(own)).id == first.id


@pytest.mark.parametrize("step", [0.0, -5.0], ids=["frozen", "stepped back"])
def test_case_02_the_last_saved_is_the_latest_whatever_the_clock_says(
    store: Store, checkpoints: CheckpointStore, clock: FakeClock, step: float
) -> None:
    for number in range(4):
        checkpoints.save(document(f"cp-{number}", node="abcd"[number], timestamp=9000 - number))
        clock.step(step)
    assert found(checkpoints.latest("their-run")).id == "cp-3"
    assert [row["id"] for row in checkpoints.list("theirs")] == ["cp-3", "cp-2", "cp-1", "cp-0"]
    noted = Noted()
    noted.act = {name: lambda ctx: clock.step(step) for name in "abcd"}
    run = noted.chain("abcd").run(store=store, clock=clock).run_id
    assert found(checkpoints.latest(run)).node_id == "d"
    assert [row["nodeId"] for row in checkpoints.list(run_id=run)] == ["d", "c", "b", "a"]


def test_case_03_the_newest_of_a_node(store: Store, checkpoints: CheckpointStore, clock: FakeClock) -> None:
    for number, node in enumerate("aba", 1):
        checkpoints.save(document(f"cp-{number}", node=node))
    assert found(checkpoints.load("their-run", "a")).id == "cp-3"
    assert found(checkpoints.load("their-run", "b")).id == "cp-2"
    assert checkpoints.load("their-run", "c") is None
    assert checkpoints.load("nobody's") is None
    assert checkpoints.load("../x/y") is None
    run = loop(Noted(), 3).run(store=store, clock=clock).run_id
    assert found(checkpoints.load(run, "x")).visited_nodes == ["x", "x", "x"]
    assert checkpoints.load(run, "nowhere") is None


def test_case_04_list_by_graph_and_run(store: Store, checkpoints: CheckpointStore, clock: FakeClock) -> None:
    runs = [Noted().chain("ab").run(store=store, clock=clock).run_id for _ in range(2)]
    for number in range(4):
        checkpoints.save(document(f"cp-{number}", run=f"run-{number % 2}", node="é"))
    checkpoints.save(document("other", graph="another"))
    theirs = checkpoints.list("theirs", limit=3)
    assert [row["id"] for row in theirs] == ["cp-3", "cp-2", "cp-1"]
    assert [list(row) for row in theirs] == [METADATA] * 3
    state = json.dumps(document()["state"], ensure_ascii=False, separators=(",", ":")).encode()
    assert [row["stateSize"] for row in theirs] == [len(state)] * 3
    assert [row["id"] for row in checkpoints.list("theirs", run_id="run-0")] == ["cp-2", "cp-0"]
    assert [(row["runId"], row["nodeId"]) for row in checkpoints.list("letters", run_id=runs[0])] == [
        (runs[0], "b"), (runs[0], "a"),
    ]  # fmt: skip
    assert [row["runId"] for row in checkpoints.list("letters", limit=3)] == [runs[1], runs[1], runs[0]]
    for row in checkpoints.list("letters"):
        made = found(checkpoints.get(row["id"]))
        assert row["stateSize"] == len(json.dumps(made.state, ensure_ascii=False, separators=(",", ":")).encode())
    assert len(checkpoints.list()) == len(checkpoints.list(limit=0)) == 9
    assert checkpoints.list("no such graph") == checkpoints.list(run_id="no such run") == []
    # Another reader, and the same pipeline made anew, change nothing.
    assert CheckpointStore(store).list() == checkpoints.list()
    assert Noted().chain("ab").name == "letters"


def test_case_05_an_id_that_is_saved_again_is_replaced(
    store: Store, checkpoints: CheckpointStore, clock: FakeClock
) -> None:
    for name in ("cp-1", "cp-2"):
        checkpoints.save(document(name))
    checkpoints.save(document("cp-1", node="b"))
    assert found(checkpoints.get("cp-1")).node_id == "b"
    assert len(checkpoints.list("theirs")) == 2
    # Also under another runId.
    checkpoints.save(document("cp-1", run="elsewhere"))
    assert (len(checkpoints.list("theirs")), len(checkpoints.list(run_id="their-run"))) == (2, 1)
    # A checkpoint of a run of ours too: the run itself stays what it is.
    run = Noted().chain().run(store=store, clock=clock).run_id
    before, lines = len(checkpoints.list()), list(store.read(run))
    edited = found(checkpoints.load(run, "b"))
    edited.state["scratch"] = {"edited": True}
    checkpoints.save(edited)
    assert len(checkpoints.list()) == before
    assert found(checkpoints.load(run, "b")).state["scratch"] == {"edited": True}
    assert list(store.read(run)) == lines


def test_case_06_delete_is_silent_and_takes_only_one(
    store: Store, checkpoints: CheckpointStore, clock: FakeClock
) -> None:
    checkpoints.save(document("cp-1"))
    checkpoints.save(document("cp-2", run="other"))
    run = Noted().chain("a").run(store=store, clock=clock).run_id
    own = found(checkpoints.latest(run)).id
    for name in ("cp-1", own, "never was", own.replace("-", "")):
        checkpoints.delete(name)
        checkpoints.delete(name)
    assert (checkpoints.get("cp-1"), checkpoints.load("their-run")) == (None, None)
    assert (checkpoints.get(own), checkpoints.load(run)) == (None, None)
    assert [row["id"] for row in checkpoints.list()] == ["cp-2"]
    # What the run has done is not undone.
    assert load(store, run).status == "completed"


def test_case_07_fork_merges_and_leaves_its_source(
    store: Store, checkpoints: CheckpointStore, clock: FakeClock
) -> None:
    checkpoints.save(document())
    child = checkpoints.fork("cp-1", {"scratch": {"step": 99}, "diagnostics": {"note": 1}})
    forked = found(checkpoints.latest(child))
    assert forked.run_id == child != "their-run"
    assert forked.id != "cp-1"
    assert UUID4.fullmatch(forked.id)
    assert forked.extra["parent"] == {"runId": "their-run", "id": "cp-1"}
    assert forked.state["scratch"] == {"step": 99, "kept": ["é", None]}
    assert forked.state["diagnostics"] == {"totalTokensUsed": 12, "theirs": True, "note": 1}
    assert forked.node_results == document()["nodeResults"]
    assert found(checkpoints.get("cp-1")).to_json() == document()
    for given in (None, "text"):
        checkpoints.save(document("bare", run="bare", state={"input": given, "diagnostics": {}}))
        forked = found(checkpoints.latest(checkpoints.fork("bare", {"input": {"n": 1}, "scratch": {"s": 2}})))
        assert (forked.state["input"], forked.state["scratch"]) == ({"n": 1}, {"s": 2})
    for unknown in ("no-such-id", "0" * 32, "e3ffeebc-340c-4a11-ada0-065b90e58b5e"):
        with pytest.raises(RunNotFound, match=unknown):
            checkpoints.fork(unknown)


def test_case_07_the_same_of_a_run_of_ours(store: Store, checkpoints: CheckpointStore, clock: FakeClock) -> None:
    run = Noted().chain().run({"n": 1}, store=store, clock=clock).run_id
    source, lines = found(checkpoints.load(run, "b")), list(store.read(run))
    child = checkpoints.fork(source.id, {"input": {"n": 2}, "scratch": {"a": 99}})
    assert child != run
    forked = found(checkpoints.latest(child))
    assert forked.id != source.id
    assert (forked.node_id, forked.visited_nodes, forked.pending_edges) == ("b", ["a", "b"], ["b->c"])
    assert forked.state["scratch"] == {"a": 99, "b": "B"}
    assert forked.state["input"] == {"n": 2}
    assert load(store, child).parent == {"run": run, "seq": load(store, run).steps["b#1"].ended_seq}
    assert list(store.read(run)) == lines
    assert checkpoints.get(source.id) == source


def test_case_08_a_fork_makes_again_what_read_the_patch(
    store: Store, checkpoints: CheckpointStore, clock: FakeClock
) -> None:
    noted = Noted()
    noted.act = {
        "a": lambda ctx: {"n": 1},
        "b": lambda ctx: {"n": ctx.params["x"]},
        "c": lambda ctx: {"n": ctx.outputs["b"]["n"] + 1},
        "d": lambda ctx: {"n": ctx.outputs["a"]["n"]},
    }
    pipeline = noted.chain("abcd")
    run = pipeline.run({"x": 1, "y": 1}, store=store, clock=clock).run_id
    child = checkpoints.fork(found(checkpoints.latest(run)).id, {"input": {"x": 5}})
    noted.ran.clear()
    result = pipeline.resume(child, store=store, clock=clock)
    assert (result.status, noted.ran) == ("completed", ["b", "c"])
    assert result.outputs == {"a": {"n": 1}, "b": {"n": 5}, "c": {"n": 6}, "d": {"n": 1}}


def test_case_09_a_checkpoint_holds_what_was_there_then(
    store: Store, checkpoints: CheckpointStore, clock: FakeClock
) -> None:
    seen: list[Any] = []
    noted = Noted()

    def look(ctx: Any) -> dict[str, Any]:
        run = next(iter(store.heads())).run_id
        seen.append(found(checkpoints.load(run, "a")).to_json())
        return {}

    noted.act = {"b": look, "c": look}
    run = noted.chain("abcd").run(store=store, clock=clock).run_id
    seen.append(found(checkpoints.load(run, "a")).to_json())
    assert seen[0] == seen[1] == seen[2]
    assert (seen[0]["visitedNodes"], list(seen[0]["nodeResults"])) == (["a"], ["a"])
    assert seen[0]["state"]["scratch"] == {"a": "A"}


def test_case_10_every_backend_gives_the_same(tmp_path: Path) -> None:
    said = []
    for name, made in BACKENDS.items():
        clock = FakeClock()
        store = made(tmp_path / name, clock)
        checkpoints = CheckpointStore(store, clock=clock)
        Noted().chain().run({"n": 1}, store=store, clock=clock)
        for number in range(6):
            checkpoints.save(document(f"cp-{number}", run=f"run-{number % 2}"))
        checkpoints.delete("cp-3")
        checkpoints.fork("cp-4", {"scratch": {"step": 2}})
        said.append([checkpoints.list(), *(found(checkpoints.get(row["id"])).to_json() for row in checkpoints.list())])
    assert said[0] == said[1]
    assert len(said[0]) == 1 + 3 + 5 + 1
