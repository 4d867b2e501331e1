"""The files beside a run's journal: what they say, that they come back, and that nothing depends on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Setup
from pipeline.engine.step import Outcome, StepContext
from pipeline.formats.attractor.documents import load_checkpoint
from pipeline.formats.attractor.handlers.standard import standard_registry
from pipeline.formats.attractor.runner import CompiledGraph, GraphRunner
from pipeline.formats.attractor.source import Source
from pipeline.formats.attractor.views import folder_name
from pipeline.store.reader import load
from pipeline.store.run_folder import RunFolder
from pipeline.testing import FakeClock
from tests.faulty_disk import LazyDisk

SOURCE = """digraph Ship {
  graph [goal="ship it"]
  start [shape=Mdiamond]
  write [prompt="Write it", goal_gate=true]
  exit [shape=Msquare]
  start -> write -> exit
  write -> write [condition="outcome=again"]
}
"""
Body = Callable[[StepContext], Any]


class Ship:
    """One run of the graph in a folder, as often as it takes."""

    def __init__(self, folder: Path, write: Body) -> None:
        self.folder = folder
        self.store = RunFolder(folder, SystemClock(), disk=LazyDisk())
        handlers = standard_registry()
        handlers.register("codergen", write)
        self.graph = CompiledGraph.of(Source(SOURCE), handlers)
        self.notes: list[str] = []

    def go(self, resume: str = "") -> RunResult:
        clock = FakeClock()
        emit = Emitter(clock, [lambda event: self.notes.append(str(event.data.get("text", "")))])
        runner = GraphRunner(self.graph, Setup(self.store, clock, emit, {}), self.folder)
        return runner.resume(load(self.store, resume)) if resume else runner.start({}, {})

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "events.jsonl").read_text().splitlines()]

    def files(self) -> dict[str, bytes]:
        own = ("journal.jsonl", "checkpoint.json", "lock")
        files = [path for path in self.folder.rglob("*") if path.is_file() and "blobs" not in path.parts]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files if path.name not in own}


def twice(ctx: StepContext) -> Outcome:
    """Wants to go on first, succeeds at its second visit."""
    if ctx.visit == 1:
        return Outcome({"prompt": "Write it", "response": "half"}, "again", {"last_response": "half"})
    return Outcome({"prompt": "Write it", "response": "w" * 40_000}, context={"last_response": "whole"})


@pytest.fixture
def ship(tmp_path: Path) -> Ship:
    ship = Ship(tmp_path / ".attractor_run", twice)
    assert ship.go().status == "completed"
    return ship


def test_folder_holds_the_files_of_a_run(ship: Ship) -> None:
    assert set(ship.files()) == {
        "checkpoints/001_start.json", "checkpoints/002_write.json", "checkpoints/003_write.json",
        "checkpoints/004_exit.json", "events.jsonl", "exit/status.json", "final.json", "graph.dot", "manifest.json",
        "start/status.json", "write/prompt.md", "write/response.md", "write/status.json",
        "write/visit_2/prompt.md", "write/visit_2/response.md", "write/visit_2/status.json",
    }  # fmt: skip
    assert (ship.folder / "graph.dot").read_text() == SOURCE
    assert (ship.folder / "write/response.md").read_text() == "half"
    assert (ship.folder / "write/visit_2/response.md").read_text() == "w" * 40_000
    assert ship.read("write/status.json")["outcome"] == "again"
    assert ship.read("write/status.json")["context_updates"]["last_response"] == "half"
    assert ship.read("manifest.json")["name"] == "Ship"
    assert ship.read("manifest.json")["goal"] == "ship it"
    assert ship.read("final.json")["status"] == "completed"


def test_checkpoint_has_the_names_of_every_dialect(ship: Ship) -> None:
    document = ship.read("checkpoint.json")
    assert document["run_id"] == ship.store.run_id
    assert (document["pipeline_name"], document["current_node"], document["current_node_id"]) == (
        "Ship", "exit", "exit",
    )  # fmt: skip
    assert document["completed_nodes"] == ["start", "write", "write", "exit"]
    assert document["node_history"] == [
        ["start", "success"], ["write", "again"], ["write", "success"], ["exit", "success"],
    ]  # fmt: skip
    assert document["goal_gate_status"] == {"write": "satisfied"}
    assert document["outcome"]["status"] == "success"
    assert document["context"]["last_response"] == "whole"
    assert [(visit["node"], visit["visit"], visit["status"]) for visit in document["node_outcomes"].values()] == [
        ("start", 1, "success"), ("write", 2, "success"), ("exit", 1, "success"),
    ]  # fmt: skip
    (before,) = document["earlier_visits"]
    assert (before["node"], before["visit"], before["status"], before["edges"]) == (
        "write",
        1,
        "again",
        ["write->write"],
    )
    assert document["node_outcomes"]["write"]["reason"] == "only"
    assert (document["last_completed_step"], document["status"], document["total_cost_usd"]) == ("exit", "completed", 0)
    assert {"timestamp", "node_retries", "logs", "fidelity_state"} <= set(document)
    found = load_checkpoint(ship.folder)
    assert (found.current_node_id, found.completed, found.visits()[1]) == ("exit", True, ("write", "again"))


def test_numbered_checkpoints_say_how_it_stood_then(ship: Ship) -> None:
    then = ship.read("checkpoints/002_write.json")
    assert (then["current_node"], then["outcome"]["status"], then["context"]["last_response"]) == (
        "write", "again", "half",
    )  # fmt: skip
    assert (then["goal_gate_status"], then["next_nodes"], then["number"]) == ({"write": "unsatisfied"}, ["write"], 2)
    assert then["edge_selected"] == {"edges": ["write->write"], "reason": "condition"}
    found = load_checkpoint(ship.folder / "checkpoints/002_write.json")
    assert (found.outcome, found.next_node_id) == ("again", "write")


def test_events_are_told_in_the_familys_words(ship: Ship) -> None:
    events = ship.events()
    assert [event["type"] for event in events] == [
        "pipeline.started",
        "node.started", "node.completed", "edge.selected", "checkpoint.saved",
        "node.started", "node.completed", "edge.selected", "checkpoint.saved",
        "node.started", "node.completed", "edge.selected", "checkpoint.saved",
        "node.started", "node.completed", "checkpoint.saved",
        "pipeline.completed",
    ]  # fmt: skip
    assert all(set(event) == {"type", "run_id", "timestamp", "node_id", "data", "seq"} for event in events)
    assert {event["run_id"] for event in events} == {ship.store.run_id}
    chosen = next(event for event in events if event["type"] == "edge.selected" and event["node_id"] == "write")
    assert chosen["data"] == {"edge": "write->write", "from": "write", "to": "write", "reason": "condition"}
    saved = [event["data"]["file"] for event in events if event["type"] == "checkpoint.saved"]
    assert saved == sorted(path.relative_to(ship.folder).as_posix() for path in (ship.folder / "checkpoints").iterdir())


@pytest.mark.parametrize("harm", ["gone", "torn"])
def test_views_come_back_when_the_run_goes_on(tmp_path: Path, harm: str) -> None:
    failing: list[bool] = [True]

    def write(ctx: StepContext) -> Any:
        if ctx.visit == 2 and failing:
            raise ValueError("no")
        return twice(ctx)

    ship = Ship(tmp_path / "run", write)
    ran = ship.go()
    assert (ran.status, ship.read("final.json")["status"]) == ("failed", "failed")
    before = ship.files()
    for name in before:
        path = ship.folder / name
        if harm == "gone":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-5] if harm == "torn" else b"something else\n")
    (ship.folder / "checkpoints/009_other.json").write_text("{}")
    failing.clear()
    assert ship.go(ran.run_id).status == "completed"
    after = ship.files()
    assert "checkpoints/009_other.json" not in after
    for name in before.keys() - {"events.jsonl", "final.json", "write/visit_2/status.json"}:
        assert after[name] == before[name], name
    assert after["events.jsonl"].startswith(before["events.jsonl"])
    types = [event["type"] for event in ship.events()]
    assert types.count("pipeline.resumed") == 1
    assert types[-1] == "pipeline.completed"
    assert ship.read("final.json")["status"] == "completed"


def test_run_goes_on_where_views_cannot_be_written(tmp_path: Path) -> None:
    ship = Ship(tmp_path / "run", twice)
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "write").write_text("a file where a folder is needed")
    result = ship.go()
    assert result.status == "completed"
    assert any("no longer updated" in note for note in ship.notes)
    (ship.folder / "write").unlink()
    assert ship.go(result.run_id).worked is False
    assert len(ship.files()) == 16


def test_link_in_the_place_of_a_view_is_not_followed(tmp_path: Path) -> None:
    ship = Ship(tmp_path / "run", twice)
    (tmp_path / "run").mkdir()
    (tmp_path / "precious").write_text("mine")
    for name in ("events.jsonl", "final.json", ".final.json.new"):
        (tmp_path / "run" / name).symlink_to(tmp_path / "precious")
    assert ship.go().status == "completed"
    assert (tmp_path / "precious").read_text() == "mine"
    assert ship.read("final.json")["status"] == "completed"


@pytest.mark.parametrize(
    ("node", "folder"),
    [
        ("write", "write"), ("lock", "lock_"), ("Blobs", "Blobs_"), ("..", "%2E."), (".git", "%2Egit"),
        ("journal.jsonl", "journal.jsonl_"), ("a b", "a b"), ("ü", "%C3%BC"), ("a:b", "a%3Ab"),
    ],
)  # fmt: skip
def test_node_has_a_folder_of_its_own(node: str, folder: str) -> None:
    assert folder_name(node) == folder
    long = {folder_name("n" * 199 + node[-1] + last) for last in "ab"}
    assert (len(long), max(map(len, long)) < 140) == (2, True)
