"""Time travel of DOT graphs: fan-outs, goal gates, people's choices and commands, from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.replies import Responder

GRAPH = """
digraph story {
  goal = "a short story"
  default_fidelity = "full"
  start [shape=Mdiamond]
  plan [prompt="Plan $goal"]
  fan [shape=component]
  left [prompt="The left part"]
  right [prompt="The right part"]
  join [shape=tripleoctagon]
  word [shape=parallelogram, tool_command="printf counted"]
  gate [shape=hexagon, label="Ship it?"]
  polish [prompt="Polish it"]
  done [shape=Msquare]
  start -> plan -> fan
  fan -> left -> join
  fan -> right -> join
  join -> word -> gate
  gate -> done [label="[Y] Yes"]
  gate -> polish [label="[N] No"]
  polish -> gate
}
"""


def reply(body: Mapping[str, Any], _fault: str) -> str:
    content = body["messages"][-1]["content"]
    text = content if isinstance(content, str) else "".join(block["text"] for block in content)
    return f"Answer to: {text}"


@pytest.fixture
def responder() -> Responder:
    return reply


@pytest.fixture
def graph(root: Path) -> str:
    file = root.parent / "story.dot"
    file.write_text(GRAPH)
    return str(file)


def go(cli: Cli, *arguments: str) -> str:
    said = cli("run", *arguments, "--allow-tools", "--auto-approve", "--quiet")
    assert said.code == 0, said.err
    return str(cli("list", "--json").json()[0]["run_id"])


def test_a_graph_replays_equal_acts_nowhere_and_tells_its_routes(cli: Cli, graph: str, server: BillingServer) -> None:
    run = go(cli, graph)
    asked = len(server.seen)
    for point in ("end", "fan", "left", "gate", "7"):
        said = cli("replay", run, "--to", point)
        assert said.code == 0, said.out
    (found,) = cli("replay", run, "--json").json()
    assert (found["taken"], found["differences"]) == (["word#1", "gate#1"], [])
    assert len(server.seen) == asked == 3
    rows = {row["step"]: row for row in cli("history", run, "--context", "--json").json()}
    assert rows["fan"]["edges"] == ["fan->left", "fan->right"]
    assert rows["gate"]["edges"] == ["gate->done"]
    assert rows["gate"]["reason"]
    assert rows["left"]["context"]["last_response"] == {
        "before": "Answer to: Plan a short story", "after": "Answer to: The left part"
    }  # fmt: skip


def test_a_fork_inside_the_fan_out_pays_only_for_the_other_branch(cli: Cli, graph: str, server: BillingServer) -> None:
    run = go(cli, graph)
    log = cli("log", run, "--json").json()
    asks = {row["seq"]: row["path"] for row in log if row["kind"] == "call_started"}
    answered = next(row for row in log if row["kind"] == "call_ended" and asks[row["call"]] in ("left#1", "right#1"))
    other = {"left#1": "right#1", "right#1": "left#1"}[asks[answered["call"]]]
    asked = len(server.seen)
    (made,) = cli("fork", run, "--at", str(answered["seq"]), "--json").json()
    assert sorted(made["goes_on"]) == ["left", "right"]
    go(cli, graph, "--resume", made["run"])
    assert len(server.seen) == asked + 1
    log = cli("log", made["run"], "--json").json()
    assert [row["path"] for row in log if row["kind"] == "call_started"] == [other]
    assert cli("replay", made["run"]).code == 0


def test_a_changed_answer_makes_what_was_told_of_it_again(cli: Cli, graph: str, server: BillingServer) -> None:
    run = go(cli, graph)
    asked = len(server.seen)
    (made,) = cli("fork", run, "--set", "outputs.plan.response=Another plan", "--json").json()
    assert {"left", "right"} <= set(made["changed"][0]["steps"])
    go(cli, "--resume", made["run"])
    assert len(server.seen) == asked + 2
    told = [request for request in server.seen[asked:] if "Another plan" in str(request)]
    assert len(told) == 2
    assert cli("replay", made["run"]).code == 0


def test_a_run_in_its_own_folder_is_forked_into_the_store(cli: Cli, graph: str, root: Path) -> None:
    folder = root.parent / "own"
    said = cli("run", graph, "--simulate", "--auto-approve", "--allow-tools", "--run-dir", str(folder), "--quiet")
    assert said.code == 0, said.err
    assert cli("history", str(folder)).code == 0
    assert cli("replay", str(folder)).code == 0
    (made,) = cli("fork", str(folder), "--at", "join", "--json").json()
    assert (root / made["run"]).is_dir()
    assert cli("run", "--resume", made["run"], "--auto-approve", "--allow-tools", "--quiet").code == 0
    assert cli("diff", f"{folder}@plan", str(folder), "--json").json()[0]["statuses"] == ["running", "completed"]
