"""Acceptance cases 21, 23, 25 and 27: what graph-run checkpoints show of our runs, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline import CheckpointStore, Outcome, ScriptedModel
from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows
from pipeline.errors import (
    ConfigError,
    GraphError,
    Pause,
    PipelineError,
    RunNotFound,
    SchemaTooNew,
    SettingsConflict,
    TaskRejected,
)
from pipeline.llm.base import Message, Reply, Request
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load, records
from tests.codes import coded
from tests.documents import ROOT
from tests.graph_runs import Noted, document, found, loop
from tests.journals import ended, started
from tests.stores import write

BEFORE, AFTER = "before", "after"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(SystemClock())


def boundaries(checkpoints: CheckpointStore, run: str, policy: str) -> list[tuple[str, str]]:
    """(node, before or after it) of what is listed, oldest first."""
    shown = []
    for row in reversed(checkpoints.list(run_id=run, policy=policy)):
        made = found(checkpoints.get(row["id"]))
        shown.append((made.node_id, AFTER if made.node_id in made.visited_nodes else BEFORE))
    return shown


def test_case_21_a_policy_shows_exactly_its_boundaries(store: MemoryStore) -> None:
    run = Noted().chain().run(store=store).run_id
    both, checkpoints = [("b", BEFORE), ("b", AFTER)], CheckpointStore(store, nodes={"b": "both"})
    for policy, shown in {
        "explicit": both,
        "before": [("a", BEFORE), *both, ("c", BEFORE)],
        "after": [("a", AFTER), *both, ("c", AFTER)],
        "every_node": [("a", AFTER), *both, ("c", AFTER)],
        "both": [("a", BEFORE), ("a", AFTER), *both, ("c", BEFORE), ("c", AFTER)],
    }.items():
        assert boundaries(checkpoints, run, policy) == shown, policy
    assert boundaries(CheckpointStore(store), run, "none") == []
    assert boundaries(CheckpointStore(store), run, "exit") == [("c", AFTER)]
    asked = CheckpointStore(store, nodes={"a": "none", "b": "before"})
    assert boundaries(asked, run, "every_node") == [("b", BEFORE), ("c", AFTER)]


def test_case_21_failures_and_interrupts_are_always_shown(store: MemoryStore) -> None:
    noted, checkpoints = Noted(), CheckpointStore(store)
    noted.bad = {"b"}
    failed = noted.chain().run(store=store).run_id

    def pause(ctx: Any) -> None:
        raise Pause("paused_budget", PipelineError("enough"))

    noted.act, noted.bad = {"b": pause}, set()
    paused = noted.chain().run(store=store).run_id
    for policy in ("none", "explicit", "before", "after", "both", "exit"):
        assert ("b", BEFORE) in boundaries(checkpoints, failed, policy)
        for run in (failed, paused):
            latest = found(checkpoints.latest(run, policy=policy))
            assert (latest.visited_nodes, latest.node_id, list(latest.node_results)) == (["a"], "b", ["a"])


def test_case_21_an_unknown_policy_is_refused(store: MemoryStore) -> None:
    with pytest.raises(ConfigError, check=coded("unknown_policy")):
        CheckpointStore(store).list(policy="sometimes")
    with pytest.raises(ConfigError, check=coded("unknown_policy")):
        CheckpointStore(store, nodes={"a": "often"})


_STOPPED = """
import sys
from pipeline import Pipeline, open_store, step

@step()
def a(ctx):
    return {}

@step()
def b(ctx):
    print("ready", flush=True)
    sys.stdin.readline()
    return {}

@step()
def c(ctx):
    return {}

def listen(event):
    if event.type == "stopping":
        print("stopping", flush=True)

store = open_store(f"files:{sys.argv[1]}")
print(Pipeline("stopped", [a, b, c]).run(store=store, listener=listen).detail)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_case_21_a_signal_leaves_a_checkpoint_whatever_the_policy(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-c", _STOPPED, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, getattr(signal, name))
        # What is in flight is let finish.
        assert process.stdout.readline() == "stopping\n"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "interrupted\n"
    checkpoints = CheckpointStore(FileStore(tmp_path, SystemClock()))
    (row,) = checkpoints.list("stopped", policy="none")
    made = found(checkpoints.get(row["id"]))
    assert (made.visited_nodes, made.pending_edges, made.skipped_nodes) == (["a", "b"], ["b->c"], [])


def usage(name: str) -> dict[str, int]:
    return {"a": {"input_tokens": 9000, "output_tokens": 1000}, "b": {"input_tokens": 20, "output_tokens": 3}}[name]


def test_case_23_sums_go_on_from_the_checkpoint(store: MemoryStore) -> None:
    noted = Noted()

    def reply(request: Request) -> Reply:
        return Reply("x", "end_turn", usage=usage(request.messages[0].text[0]), model="scripted", request_id="r")

    def ask(name: str) -> Callable[[Any], Any]:
        return lambda ctx: {"text": ctx.ask(Request("scripted", [Message("user", name)])).text}

    # b pays, then fails: what its failed attempt used counts, too.
    def twice(ctx: Any) -> Any:
        ask("b")(ctx)
        if bad:
            raise TaskRejected("no")
        return {}

    bad = [True]
    model = ScriptedModel(reply, paid=True)
    noted.act = {"a": ask("a"), "b": twice, "c": ask("b")}
    pipeline = noted.chain()
    run = pipeline.run(store=store, model=model, options={"max_cost_usd": None}).run_id
    checkpoints = CheckpointStore(store)
    first, failed = found(checkpoints.load(run, "a")), found(checkpoints.latest(run))
    assert first.state["diagnostics"]["totalTokensUsed"] == 10_000
    assert failed.state["diagnostics"]["totalTokensUsed"] == 10_023
    bad.clear()
    result = pipeline.resume(run, store=store, model=model)
    last = found(checkpoints.latest(run))
    total = last.state["diagnostics"]["totalTokensUsed"]
    tokens: Counter[str] = Counter()
    for row in rows(records(store, run)):
        tokens.update(row.tokens)
    assert total == sum(tokens.values()) == sum(result.spent.tokens.values()) == 10_000 + 3 * 23
    assert last.state["diagnostics"]["nodeTimings"]["b"]["tokensUsed"] == 46
    # What was there before the resume is as it was.
    assert checkpoints.load(run, "a") == first


def test_case_25_an_unknown_id_is_named(store: MemoryStore) -> None:
    checkpoints = CheckpointStore(store)
    assert checkpoints.get("nobody-knows") is None
    for call in (checkpoints.fork, checkpoints.adopt):
        with pytest.raises(RunNotFound, check=coded("run_not_found", checkpoint="nobody-knows")):
            call("nobody-knows")
    with pytest.raises(RunNotFound, match="20260101_000000"):
        Noted().chain().resume("20260101_000000", store=store)


def test_case_25_a_newer_format_is_refused_naming_the_versions(store: MemoryStore) -> None:
    run = write(store, [started(format=2), ended(2)], head=False)
    with pytest.raises(SchemaTooNew, match=r"format 2.*reads format 1"):
        Noted().chain().resume(run, store=store)
    with pytest.raises(SchemaTooNew, match="format 2"):
        CheckpointStore(store).load(run)
    # It hides nothing else.
    Noted().chain().run(store=store)
    assert len(CheckpointStore(store).list("letters")) == 3


def test_case_25_a_checkpoint_of_another_graph_is_refused(store: MemoryStore) -> None:
    noted, other = Noted(), Noted()
    noted.bad = {"b"}
    run = noted.chain().run(store=store).run_id
    with pytest.raises(SettingsConflict, match="has changed"):
        other.chain("xyz").resume(run, store=store)
    checkpoints = CheckpointStore(store)
    checkpoints.save(document("cp-1", graph="letters", node="z"))
    with pytest.raises(GraphError, check=coded("other_graph")):
        checkpoints.adopt("cp-1")
    checkpoints.save(document("cp-2", graph="unheard", node="z"))
    with pytest.raises(ConfigError, check=coded("unknown_graph")):
        checkpoints.adopt("cp-2")
    with pytest.raises(GraphError, check=coded("other_graph")):
        checkpoints.adopt("cp-2", other.chain("xb", pipeline="unheard"))
    with pytest.raises(SettingsConflict, check=coded("other_graph")):
        checkpoints.adopt("cp-2", other.chain("xb"))
    assert (other.ran, [head.run_id for head in store.heads() if head.document["pipeline"] == "unheard"]) == ([], [])


def test_case_27_a_loop_keeps_its_visits_and_its_count(store: MemoryStore) -> None:
    noted = Noted()
    visits: list[int] = []
    bad = [True]

    def x(ctx: Any) -> Outcome:
        visits.append(ctx.visit)
        if ctx.visit == 4 and bad:
            raise ValueError("not yet")
        return Outcome({"visit": ctx.visit}, "more" if ctx.visit < 5 else "enough")

    noted.act = {"x": x}
    pipeline = loop(noted, 5)
    run = pipeline.run(store=store).run_id
    checkpoints = CheckpointStore(store)
    made = found(checkpoints.latest(run))
    assert made.visited_nodes == ["x", "x", "x"]
    assert made.node_results["x"]["output"] == {"visit": 3}
    bad.clear()
    assert pipeline.resume(run, store=store).status == "completed"
    assert visits == [1, 2, 3, 4, 4, 5]
    made = found(checkpoints.latest(run))
    assert made.visited_nodes == ["x"] * 5 + ["end"]
    assert load(store, run).visits == {"x": 5, "end": 1}
