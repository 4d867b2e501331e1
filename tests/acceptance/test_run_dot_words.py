"""A graph that routes by labels and context keys, on the command line, with a server that keeps its own bill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.dots import put, read
from tests.said import Cli
from tests.servers.bill import blocks
from tests.servers.billing import BillingServer

ROUTED = """digraph Routed {
  start [shape=Mdiamond]
  write [prompt="Write on, and end your reply with MORE or DONE"]
  rate [prompt="Rate it"]
  exit [shape=Msquare]
  start -> write
  write -> write [condition="preferred_label=MORE"]
  write -> rate [condition="preferred_label=DONE"]
  rate -> exit [condition="context.tier=gold"]
  rate -> write [condition="context.tier=lead"]
}
"""


@pytest.fixture
def replies() -> dict[str, list[str]]:
    """What is answered to a prompt that begins so, in order; the last one again and again."""
    return {"Write": ["One.\n\nMORE", "Two.\n\nDONE"], "Rate": ["Hm.\ntier: gold"]}


@pytest.fixture
def responder(replies: dict[str, list[str]]) -> Any:
    def reply(body: Mapping[str, Any], fault: str) -> str:
        said = replies[blocks(body["messages"][-1]["content"])[-1]["text"].partition(" ")[0]]
        return said.pop(0) if len(said) > 1 else said[0]

    return reply


def told(server: BillingServer, number: int) -> str:
    return "".join(block["text"] for block in blocks(server.seen[number][1]["system"]))


def test_words_are_told_heard_and_simulated(cli: Cli, server: BillingServer, tmp_path: Path) -> None:
    path = put(tmp_path, ROUTED)
    said = cli("run", path, "--run-dir", str(tmp_path / "paid"))
    assert said.code == 0, said.err
    done = ["start", "write", "write", "rate", "exit"]
    assert read(tmp_path / "paid" / "checkpoint.json")["completed_nodes"] == done
    assert server.bill.requests == 3
    assert "preferred_label: MORE, DONE" in told(server, 0)
    assert "tier: gold, lead" in told(server, 2)
    assert cli("run", path, "--simulate", "--run-dir", str(tmp_path / "sim")).code == 0
    assert read(tmp_path / "sim" / "checkpoint.json")["completed_nodes"] == done
    assert server.bill.requests == 3


def test_a_reply_that_no_edge_takes_is_paid_for_once(
    cli: Cli, server: BillingServer, replies: dict[str, list[str]], tmp_path: Path
) -> None:
    replies["Write"] = ["I am not sure.\npreferred_label: LATER"]
    path, folder = put(tmp_path, ROUTED), str(tmp_path / "run")
    said = cli("run", path, "--run-dir", folder)
    assert said.code == 6
    assert "the edges ask for: preferred_label=MORE, preferred_label=DONE" in said.err
    for _ in range(2):
        assert cli("run", path, "--resume", folder).code == 6
        assert cli("run", "--resume", folder).code == 6
    assert server.bill.requests == 1
    # Asked for, it is asked anew; and once the edges are mended, what was paid for goes on.
    assert cli("run", "--resume", folder, "--from", "write").code == 6
    assert server.bill.requests == 2
    put(tmp_path, ROUTED.replace("preferred_label=DONE", "preferred_label=LATER"))
    said = cli("run", path, "--resume", folder, "--accept-changes")
    assert said.code == 0, said.err
    assert server.bill.requests == 3
    assert read(tmp_path / "run" / "checkpoint.json")["completed_nodes"] == ["start", "write", "rate", "exit"]


def test_auto_approve_does_not_decline_and_what_it_passes_over_is_told(cli: Cli, tmp_path: Path) -> None:
    text = """digraph Gate {
  start [shape=Mdiamond]; write [prompt=W]; gate [shape=hexagon]; exit [shape=Msquare]; start -> write -> gate
  gate -> write [label="[R] Reject"]; gate -> exit [label="[P] Publish"]
}"""
    path = put(tmp_path, text)
    said = cli("run", path, "--simulate", "--auto-approve", "--run-dir", str(tmp_path / "run"))
    assert said.code == 0, said.err
    assert read(tmp_path / "run" / "checkpoint.json")["completed_nodes"] == ["start", "write", "gate", "exit"]
    assert "says no" in said.out
    assert "says no" not in cli("run", path, "--simulate").out
    (found,) = [
        row for row in cli("validate", path, "--json").json()[0]["diagnostics"] if row["rule"] == "auto_approve"
    ]
    assert (found["severity"], found["node_id"]) == ("WARNING", "gate")
