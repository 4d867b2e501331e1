"""`run FILE.dot` through the command line: runs in the store and in folders of their own, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.dots import GATE, SHIP, TOOLS, put, read
from tests.said import Cli
from tests.servers.bill import blocks
from tests.servers.billing import BillingServer


@pytest.fixture
def ship(tmp_path: Path) -> str:
    return put(tmp_path, SHIP)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".attractor_run"


def test_run_lies_in_the_store_and_every_start_is_a_new_one(cli: Cli, ship: str) -> None:
    said = cli("run", ship, "--simulate")
    assert (said.code, said.err) == (0, "")
    assert "Completed nodes: start, plan, write, exit" in said.out
    listed = cli("list").out
    assert all(part in listed for part in ("Ship", "4/4", "completed"))
    for command in ("status", "cost", "log", "history"):
        assert cli(command, "latest").code == 0
    assert "[Simulated] plan" in cli("show", "latest", "plan").out
    rows = cli("run", ship, "--simulate", "--json").json()
    assert [row["step"] for row in rows if row["type"] == "step_completed"] == ["start", "plan", "write", "exit"]
    assert (rows[-1]["type"], rows[-1]["status"], rows[-1]["exit_code"]) == ("result", "completed", 0)
    assert len(cli("list", "--json").json()) == 2


@pytest.mark.parametrize("command", ["run", "run_dot"])
def test_help_says_when_state_is_saved(cli: Cli, command: str) -> None:
    said = cli(command, "--help")
    assert "State is saved after every node" in " ".join(said.out.split())
    for option in ("--run-dir", "--resume", "--resume-from", "--stage-dir", "--agent-cmd", "--execution-log"):
        assert option in said.out


def test_run_dir_is_the_runs_folder(cli: Cli, ship: str, folder: Path, tmp_path: Path) -> None:
    assert (
        cli("run_dot", ship, "--simulate", "--run-dir", str(folder), "--param", "reader=Ann", "--param", "n=3").code
        == 0
    )
    assert {"journal.jsonl", "checkpoint.json", "checkpoints", "graph.dot", "events.jsonl", "manifest.json",
            "final.json", "plan", "write"} <= {path.name for path in folder.iterdir()}  # fmt: skip
    assert (folder / "graph.dot").read_text() == SHIP
    assert (folder / "write" / "prompt.md").read_text() == "Write it for Ann"
    document = read(folder / "checkpoint.json")
    assert (document["pipeline_name"], document["current_node"], document["status"]) == ("Ship", "exit", "completed")
    assert document["completed_nodes"] == ["start", "plan", "write", "exit"]
    assert (document["context"]["reader"], document["context"]["n"]) == ("Ann", 3)
    assert read(folder / "manifest.json")["params"] == {"reader": "Ann", "n": 3}
    assert cli("list", "--json").out == ""
    assert document["run_id"] in cli("list", "--store", f"files:{folder}").out
    for command in ("status", "cost", "log", "history", "draw"):
        said = cli(command, str(folder))
        assert (said.code, said.err) == (0, "")
    assert f"RUN {document['run_id']}" in cli("status", str(folder)).out
    # The documented pair; a checkpoint file of a run means the run.
    before = (folder / "journal.jsonl").read_bytes()
    for more in (
        ["--resume", str(folder)],
        ["--resume-from", str(folder)],
        ["--resume", str(folder / "checkpoint.json")],
    ):
        again = cli("run_dot", ship, *more)
        assert again.code == 0
        assert "already completed" in again.out
    # It takes neither another run, nor other parameters, nor does it move.
    refused = cli("run", ship, "--simulate", "--run-dir", str(folder))
    assert refused.code == 3
    assert f"--resume {folder}" in refused.err
    assert cli("run", ship, "--resume", str(folder), "--param", "reader=Bob").code == 2
    assert cli("run", ship, "--resume", str(folder), "--run-dir", str(tmp_path / "other")).code == 2
    assert (folder / "journal.jsonl").read_bytes() == before
    assert not (tmp_path / "other").exists()


# --- what is refused before anything is made ------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("digraph G { a -> }", ["--simulate"], ["foo.dot:1:18"]),
        ("digraph G { a [shape=Mdiamond] b [shape=box] a -> b }", ["--simulate"], ["exit"]),
        (SHIP.replace("-> exit", '-> exit [condition="outcome ="]'), ["--simulate"], ["Line 7"]),
        (SHIP, [], ["plan, write", "ANTHROPIC_API_KEY", "--simulate"]),
        (SHIP, ["--simulate", "--param", "api_key=x"], ["api_key"]),
        (TOOLS, ["--simulate"], ["hello: echo hello; echo to-$reader", "bad: echo never; exit 3", "--allow-tools"]),
    ],
)  # fmt: skip
def test_what_cannot_run_makes_nothing(
    cli: Cli, tmp_path: Path, folder: Path, text: str, more: list[str], said: list[str]
) -> None:
    answer = cli("run", put(tmp_path, text), *more, "--run-dir", str(folder))
    assert answer.code == 2
    assert all(part in answer.err for part in said)
    assert not folder.exists()
    assert cli("list", "--json").out == ""


@pytest.mark.parametrize("where", ["node", "stylesheet"])
def test_another_provider_is_refused_however_it_is_named(
    cli: Cli, server: BillingServer, tmp_path: Path, folder: Path, where: str
) -> None:
    text = SHIP.replace("plan [", "plan [provider=openrouter, ")
    if where == "stylesheet":
        text = SHIP.replace("graph [", 'graph [model_stylesheet="#plan { provider: openrouter; }", ')
    # An agent of one's own may ask whom it likes.
    agent = ("--agent-cmd", "cat", "--allow-tools")
    assert cli("run", put(tmp_path, text), "--run-dir", str(tmp_path / "agent"), *agent).code == 0
    said = cli("run", put(tmp_path, text), "--run-dir", str(folder))
    assert (said.code, "plan (openrouter)" in said.err) == (2, True)
    assert not folder.exists()


@pytest.mark.parametrize(
    "arguments",
    [(), ("--simulate",), ("nothing.dot", "--simulate"), ("--resume", "nothing"), ("x.py:NAME", "--run-dir", "d")],
)
def test_mistyped_command_lines_are_told(cli: Cli, arguments: tuple[str, ...]) -> None:
    said = cli("run", *arguments)
    assert said.code in (2, 3)
    assert "Error" in said.err
    assert "Traceback" not in said.err


# --- tools and people -----------------------------------------------------------------------------


def test_permission_to_run_commands_is_not_stored_and_asked_for_again(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = put(tmp_path, TOOLS)
    # No prompt: no credential.
    said = cli("run", path, "--allow-tools", "--run-dir", str(folder), "--param", "reader=Bob")
    assert said.code == 6, said.err
    document = read(folder / "checkpoint.json")
    assert document["completed_nodes"] == ["start", "hello", "check"]
    assert document["context"]["tool.stderr"] == ""
    assert b"allow_tools" not in (folder / "journal.jsonl").read_bytes()
    said = cli("run", path, "--resume", str(folder))
    assert (said.code, "echo never" in said.err) == (2, True)
    assert read(folder / "final.json")["status"] == "failed"
    assert cli("run", path, "--allow-tools", "--param", "reader=Ann").code == 0


@pytest.mark.parametrize("own", [True, False])
def test_gate_waits_is_answered_and_the_run_goes_on(cli: Cli, tmp_path: Path, folder: Path, own: bool) -> None:
    path = put(tmp_path, GATE)
    said = cli("run", path, "--simulate", *(["--run-dir", str(folder)] if own else []))
    assert said.code == 8
    run = str(folder) if own else cli("list", "--json").json()[0]["run_id"]
    assert f"./pipeline.sh answer {run} review CHOICE" in said.err
    assert f"--resume {run}" in said.err
    assert not (folder / "final.json").exists()
    (gate,) = cli("gates", run, "--json").json()
    assert (gate["gate"], gate["question"], gate["choices"]) == ("review", "Publish it?", ["[A] Approve", "[R] Revise"])
    assert cli("run", path, "--resume", run).code == 8
    if own:
        assert read(folder / "checkpoint.json")["open_questions"] == {"review": ["[A] Approve", "[R] Revise"]}
    assert cli("answer", run, "review", "r").code == 0
    if own:
        document = read(folder / "checkpoint.json")
        assert (document["current_node"], document["open_questions"]) == ("write", {})
    assert cli("run", path, "--resume", run).code == 8
    assert cli("answer", run, "review#2", "Approve", "--note", "fine").code == 0
    done = cli("run", path, "--resume", run)
    assert done.code == 0, done.err
    assert "Completed nodes: start, write, review, write, review, publish, exit" in done.out
    assert cli("gates", run).out == "No open questions.\n"


def test_auto_approve_does_not_decline_tells_what_it_passes_over_and_is_not_stored(
    cli: Cli, tmp_path: Path, folder: Path
) -> None:
    approve = '  review -> publish [label="[A] Approve"]\n'
    path = put(tmp_path, GATE.replace(approve, "").replace("Revise", "Reject").replace("}", f"{approve}}}"))
    said = cli("run", path, "--simulate", "--auto-approve", "--run-dir", str(folder))
    assert said.code == 0, said.err
    assert "says no" in said.out
    assert read(folder / "checkpoint.json")["completed_nodes"] == ["start", "write", "review", "publish", "exit"]
    assert read(folder / "review" / "status.json")["outputs"]["by"] == "auto-approve"
    assert b'"auto_approve"' not in (folder / "journal.jsonl").read_bytes()
    assert "says no" not in cli("run", path, "--simulate").out


# --- paid replies ---------------------------------------------------------------------------------

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


def test_words_of_the_edges_are_told_and_heard(cli: Cli, server: BillingServer, tmp_path: Path) -> None:
    said = cli("run", put(tmp_path, ROUTED), "--run-dir", str(tmp_path / "paid"))
    assert said.code == 0, said.err
    done = ["start", "write", "write", "rate", "exit"]
    assert read(tmp_path / "paid" / "checkpoint.json")["completed_nodes"] == done
    assert server.bill.requests == 3
    told = ["".join(block["text"] for block in blocks(body["system"])) for _, body in server.seen]
    assert ("preferred_label: MORE, DONE" in told[0], "tier: gold, lead" in told[2]) == (True, True)


def test_a_reply_that_no_edge_takes_is_paid_for_once(
    cli: Cli, server: BillingServer, replies: dict[str, list[str]], tmp_path: Path
) -> None:
    replies["Write"] = ["I am not sure.\npreferred_label: LATER"]
    path, folder = put(tmp_path, ROUTED), str(tmp_path / "run")
    assert cli("run", path, "--run-dir", folder).code == 6
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
