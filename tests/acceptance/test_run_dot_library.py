"""DOT pipelines from Python, by the names that are public."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline import (
    Checkpoint,
    NodeOutcome,
    RunFolder,
    compile_graph,
    load_checkpoint,
    parse_dot,
    run_compiled_graph,
    run_dot,
    save_checkpoint,
    standard_registry,
)
from pipeline.errors import ConfigError, GraphError, RunExists, RunNotFound, SettingsConflict
from pipeline.llm.script import ScriptedModel
from tests.acceptance.dots import GATE, SHIP, put, read
from tests.documents import DOCS, fenced


def test_graph_runs_from_start_to_exit() -> None:
    result = run_compiled_graph(compile_graph(parse_dot(SHIP)), simulate=True)
    assert (result.status, result.outcome, result.exit_code) == ("completed", "success", 0)
    assert list(result.completed_nodes) == ["start", "plan", "write", "exit"]
    assert result.context["graph.goal"] == "ship it"


def test_run_dir_holds_a_checkpoint_that_loads(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    result = run_compiled_graph(compile_graph(parse_dot(SHIP)), run_dir=tmp_path, simulate=True)
    checkpoint = load_checkpoint(tmp_path / "checkpoint.json")
    assert checkpoint.current_node_id == "exit"
    assert list(checkpoint.completed_nodes) == list(result.completed_nodes)
    assert dict(checkpoint.context) == dict(result.context)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(RunExists):
        run_compiled_graph(compile_graph(parse_dot(SHIP)), run_dir=tmp_path, simulate=True)


def test_entry_node_begins_the_run() -> None:
    graph = compile_graph(parse_dot(SHIP), entry_node_id="write")
    assert list(run_compiled_graph(graph, simulate=True).completed_nodes) == ["write", "exit"]


def test_entry_node_inside_a_branch_waits_for_no_other_branch() -> None:
    ends = "start [shape=Mdiamond]; P [shape=component]; J [shape=tripleoctagon]; exit [shape=Msquare]; "
    graph = compile_graph(parse_dot(f"digraph {{ {ends} start -> P -> {{a b}} -> J -> exit }}"), "a")
    assert list(run_compiled_graph(graph, simulate=True).completed_nodes) == ["a", "J", "exit"]


@pytest.mark.parametrize(("node", "near"), [("#", "start"), ("Write", "write")])
def test_entry_node_that_is_not_there_is_refused(node: str, near: str) -> None:
    with pytest.raises(GraphError) as caught:
        compile_graph(parse_dot(SHIP), entry_node_id=node)
    assert (caught.value.code, caught.value.data["node"]) == ("unknown_node", node)
    assert near in caught.value.hint


@pytest.mark.parametrize(
    ("checkpoint", "ran"),
    [
        (Checkpoint({"reader": "Ann"}, "write", ("start", "plan")), ["write", "exit"]),
        (Checkpoint({"reader": "Ann"}, "plan", ("start", "plan")), ["write", "exit"]),
        (Checkpoint({}, "start", ()), ["start", "plan", "write", "exit"]),
        (Checkpoint({"reader": "Ann"}, "exit", ("start", "plan", "write", "exit")), []),
    ],
)
def test_checkpoint_is_gone_on_with(tmp_path: Path, checkpoint: Checkpoint, ran: list[str]) -> None:
    save_checkpoint(tmp_path / "checkpoint.json", checkpoint)
    result = run_compiled_graph(
        compile_graph(parse_dot(SHIP)), tmp_path, load_checkpoint(tmp_path / "checkpoint.json"), simulate=True
    )
    assert result.status == "completed"
    before = list(checkpoint.completed_nodes)
    assert list(result.completed_nodes) == before + ran
    assert (tmp_path / "write").exists() == ("write" in ran)


def test_entry_and_checkpoint_together_begin_at_the_entry() -> None:
    checkpoint = Checkpoint({"reader": "Ann"}, "plan", ("start", "plan"))
    graph = compile_graph(parse_dot(SHIP), "plan")
    assert list(run_compiled_graph(graph, None, checkpoint, simulate=True).completed_nodes) == [
        "start", "plan", "plan", "write", "exit",
    ]  # fmt: skip


def test_graph_that_cannot_run_is_refused_when_it_is_compiled() -> None:
    with pytest.raises(GraphError):
        compile_graph(parse_dot("digraph G { a -> b }"))


def test_file_runs_and_goes_on(tmp_path: Path) -> None:
    path = put(tmp_path, GATE)
    waits = run_dot(path, tmp_path / "run", simulate=True)
    assert (waits.detail, waits.exit_code) == ("waiting_for_human", 8)
    done = run_dot(path, resume=tmp_path / "run", auto_approve=True)
    assert (done.status, done.run_id) == ("completed", waits.run_id)
    assert list(done.completed_nodes) == ["start", "write", "review", "publish", "exit"]
    assert read(tmp_path / "run" / "final.json")["status"] == "completed"
    with pytest.raises(RunNotFound):
        run_dot(path, resume=tmp_path / "nothing")


def test_changed_file_is_refused_unless_that_is_accepted(tmp_path: Path) -> None:
    run_dot(put(tmp_path, GATE), tmp_path / "run", simulate=True)
    path = put(tmp_path, GATE.replace("Write it", "Write more"))
    with pytest.raises(SettingsConflict, match=r"write \("):
        run_dot(path, resume=tmp_path / "run", auto_approve=True)
    assert run_dot(path, resume=tmp_path / "run", auto_approve=True, accept_changes=True).status == "completed"


def test_handlers_of_ones_own(tmp_path: Path) -> None:
    seen: list[Any] = []
    handlers = standard_registry()
    handlers.register("greet", lambda ctx: NodeOutcome("port", context_updates={"who": ctx.context["reader"]}))
    handlers.register("codergen", lambda ctx: seen.append(ctx.place.node.id))
    text = SHIP.replace('write [prompt="Write it for $reader"]', "write [type=greet]")
    text = text.replace("-> exit", '\n  write -> exit [condition="outcome=port && context.who=Ann"]').replace(
        "-> write \n", "-> write\n"
    )
    result = run_dot(put(tmp_path, text), registry=handlers, params={"reader": "Ann"})
    assert (result.status, seen) == ("completed", ["plan"])
    assert result.context["who"] == "Ann"


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


def test_tools_need_the_permission(tmp_path: Path) -> None:
    text = SHIP.replace('plan [prompt="Plan how to $goal"]', 'plan [shape=parallelogram, tool_command="true"]')
    with pytest.raises(ConfigError, match="plan: true"):
        run_dot(put(tmp_path, text), simulate=True)
    assert run_dot(put(tmp_path, text), simulate=True, allow_tools=True).status == "completed"


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


def test_run_folder_is_a_store(tmp_path: Path) -> None:
    from pipeline.clock import SystemClock

    run = run_dot(put(tmp_path, SHIP), tmp_path / "run", simulate=True).run_id
    assert RunFolder(tmp_path / "run", SystemClock()).run_id == run
