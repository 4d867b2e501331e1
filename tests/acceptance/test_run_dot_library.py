"""DOT pipelines from Python, by the names that are public."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline import (
    RunFolder,
    compile_graph,
    load_checkpoint,
    parse_dot,
    run_compiled_graph,
    run_dot,
)
from pipeline.clock import SystemClock
from pipeline.errors import GraphError, RunExists, RunNotFound, SettingsConflict
from pipeline.llm.script import ScriptedModel
from tests.acceptance.dots import GATE, SHIP, put, read
from tests.documents import DOCS, fenced


def test_run_dir_holds_a_checkpoint_that_loads(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    result = run_compiled_graph(compile_graph(parse_dot(SHIP)), run_dir=tmp_path, simulate=True)
    checkpoint = load_checkpoint(tmp_path / "checkpoint.json")
    assert (result.status, result.outcome, result.exit_code) == ("completed", "success", 0)
    assert (checkpoint.current_node_id, RunFolder(tmp_path, SystemClock()).run_id) == ("exit", result.run_id)
    assert list(checkpoint.completed_nodes) == list(result.completed_nodes)
    assert dict(checkpoint.context) == dict(result.context)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(RunExists):
        run_compiled_graph(compile_graph(parse_dot(SHIP)), run_dir=tmp_path, simulate=True)


def test_entry_node_begins_the_run_and_inside_a_branch_waits_for_no_other() -> None:
    ends = "start [shape=Mdiamond]; P [shape=component]; J [shape=tripleoctagon]; exit [shape=Msquare]; "
    assert list(run_compiled_graph(compile_graph(parse_dot(SHIP), "write"), simulate=True).completed_nodes) == [
        "write", "exit",
    ]  # fmt: skip
    graph = compile_graph(parse_dot(f"digraph {{ {ends} start -> P -> {{a b}} -> J -> exit }}"), "a")
    assert list(run_compiled_graph(graph, simulate=True).completed_nodes) == ["a", "J", "exit"]


@pytest.mark.parametrize(("node", "near"), [("#", "start"), ("Write", "write")])
def test_entry_node_that_is_not_there_is_refused(node: str, near: str) -> None:
    with pytest.raises(GraphError) as caught:
        compile_graph(parse_dot(SHIP), entry_node_id=node)
    assert (caught.value.code, caught.value.data["node"]) == ("unknown_node", node)
    assert near in caught.value.hint


def test_file_runs_and_goes_on(tmp_path: Path) -> None:
    path = put(tmp_path, GATE)
    waits = run_dot(path, tmp_path / "run", simulate=True)
    assert (waits.detail, waits.exit_code) == ("waiting_for_human", 8)
    changed = put(tmp_path, GATE.replace("Write it", "Write more"), "changed.dot")
    with pytest.raises(SettingsConflict, match=r"write \("):
        run_dot(changed, resume=tmp_path / "run", auto_approve=True)
    done = run_dot(path, resume=tmp_path / "run", auto_approve=True)
    assert (done.status, done.run_id) == ("completed", waits.run_id)
    assert list(done.completed_nodes) == ["start", "write", "review", "publish", "exit"]
    assert read(tmp_path / "run" / "final.json")["status"] == "completed"
    with pytest.raises(RunNotFound):
        run_dot(path, resume=tmp_path / "nothing")


def test_paid_replies_are_asked_once(tmp_path: Path) -> None:
    model = ScriptedModel(["a plan", "a text"])
    path = put(tmp_path, SHIP)
    result = run_dot(path, tmp_path / "run", model=model)
    assert result.status == "completed"
    assert result.spent.calls == 2
    document = read(tmp_path / "run" / "checkpoint.json")
    assert document["node_outcomes"]["plan"]["usage"]["calls"] == 1
    assert (tmp_path / "run" / "plan" / "response.md").read_text() == "a plan"
    assert run_dot(path, resume=tmp_path / "run", model=model).spent.calls == 2


def test_store_of_ones_own_keeps_the_run(tmp_path: Path) -> None:
    store = pipeline.open_store(f"files:{tmp_path / 'runs'}")
    path = put(tmp_path, GATE)
    waits = run_dot(path, store=store, simulate=True)
    done = run_dot(path, resume=waits.run_id, store=store, auto_approve=True)
    assert done.status == "completed"
    assert [head.run_id for head in store.heads()] == [done.run_id]


def test_example_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "course.dot").write_text((DOCS / "examples" / "course.dot").read_text())
    (code,) = [block for block in fenced("graphs.md", "python") if "run_dot(" in block]
    exec(compile(code, "graphs.md", "exec"), {})
    assert capsys.readouterr().out.startswith("completed success")
