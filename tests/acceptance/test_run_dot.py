"""`run FILE.dot` through the command line: runs in the store and in folders of their own, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.dots import GATE, SHIP, TOOLS, put, read
from tests.said import Cli, Said
from tests.servers.billing import BillingServer


@pytest.fixture
def ship(tmp_path: Path) -> str:
    return put(tmp_path, SHIP)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".attractor_run"


def events(said: Said, kind: str) -> list[dict[str, object]]:
    return [row for row in said.json() if row["type"] == kind]


# --- a run of the store ---------------------------------------------------------------------------


def test_run_lies_in_the_store_and_is_listed_by_its_graphs_name(cli: Cli, ship: str) -> None:
    said = cli("run", ship, "--simulate")
    assert (said.code, said.err) == (0, "")
    assert "Completed nodes: start, plan, write, exit" in said.out
    listed = cli("list").out
    assert "Ship" in listed
    assert "4/4" in listed
    assert "completed" in listed
    for command in ("status", "cost", "log", "history"):
        assert cli(command, "latest").code == 0
    assert "[Simulated] plan" in cli("show", "latest", "plan").out


def test_every_start_is_a_new_run(cli: Cli, ship: str) -> None:
    assert [cli("run", ship, "--simulate").code for _ in range(2)] == [0, 0]
    assert len(cli("list", "--json").json()) == 2


@pytest.mark.parametrize("command", ["run", "run_dot"])
def test_help_says_when_state_is_saved(cli: Cli, command: str) -> None:
    said = cli(command, "--help")
    assert "State is saved after every node" in " ".join(said.out.split())
    for option in ("--run-dir", "--resume", "--resume-from", "--stage-dir", "--agent-cmd", "--execution-log"):
        assert option in said.out


# --- a folder of its own --------------------------------------------------------------------------


def test_run_dir_is_the_runs_folder(cli: Cli, ship: str, folder: Path) -> None:
    assert cli("run", ship, "--simulate", "--run-dir", str(folder)).code == 0
    assert {"journal.jsonl", "checkpoint.json", "checkpoints", "graph.dot", "events.jsonl", "manifest.json",
            "final.json", "plan", "write"} <= {path.name for path in folder.iterdir()}  # fmt: skip
    assert (folder / "graph.dot").read_text() == SHIP
    assert (folder / "plan" / "prompt.md").read_text() == "Plan how to ship it"
    document = read(folder / "checkpoint.json")
    assert (document["pipeline_name"], document["current_node"], document["status"]) == ("Ship", "exit", "completed")
    assert document["completed_nodes"] == ["start", "plan", "write", "exit"]
    assert cli("list", "--json").out == ""
    assert document["run_id"] in cli("list", "--store", f"files:{folder}").out


def test_documented_pair_run_dir_then_resume(cli: Cli, ship: str, folder: Path) -> None:
    assert cli("run_dot", ship, "--simulate", "--run-dir", str(folder)).code == 0
    for option in ("--resume", "--resume-from"):
        again = cli("run_dot", ship, option, str(folder))
        assert again.code == 0
        assert "already completed" in again.out
    assert len((folder / "journal.jsonl").read_text().splitlines()) == 10


def test_folder_that_holds_a_run_is_refused_with_both_ways_out(cli: Cli, ship: str, folder: Path) -> None:
    cli("run", ship, "--simulate", "--run-dir", str(folder))
    before = (folder / "journal.jsonl").read_bytes()
    said = cli("run", ship, "--simulate", "--run-dir", str(folder))
    assert said.code == 3
    assert f"--resume {folder}" in said.err
    assert "another folder" in said.err
    assert (folder / "journal.jsonl").read_bytes() == before


def test_run_in_its_folder_is_looked_at_by_the_folders_name(cli: Cli, ship: str, folder: Path) -> None:
    cli("run", ship, "--simulate", "--run-dir", str(folder))
    run = read(folder / "checkpoint.json")["run_id"]
    for command in ("status", "cost", "log", "history", "draw"):
        said = cli(command, str(folder))
        assert (said.code, said.err) == (0, "")
    assert f"RUN {run}" in cli("status", str(folder)).out


def test_checkpoint_file_of_a_run_means_the_run(cli: Cli, ship: str, folder: Path, tmp_path: Path) -> None:
    cli("run", ship, "--simulate", "--run-dir", str(folder))
    said = cli("run", ship, "--resume", str(folder / "checkpoint.json"))
    assert said.code == 0
    assert "already completed" in said.out
    # A run stays in its own folder.
    assert cli("run", ship, "--resume", str(folder), "--run-dir", str(tmp_path / "other")).code == 2
    assert not (tmp_path / "other").exists()


# --- what is refused before anything is made ------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("digraph G { a -> }", "foo.dot:1:18"),
        ("digraph G { a [shape=Mdiamond] b [shape=box] a -> b }", "exit"),
        ("graph G { a -- b }", "digraph"),
        (SHIP.replace("-> exit", '-> exit [condition="outcome ="]'), "Line 7"),
    ],
)
def test_graph_that_cannot_run_makes_nothing(cli: Cli, tmp_path: Path, folder: Path, text: str, said: str) -> None:
    answer = cli("run", put(tmp_path, text), "--simulate", "--run-dir", str(folder))
    assert answer.code == 2
    assert said in answer.err
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
    assert "plan (openrouter)" in said.err
    assert said.code == 2
    assert not folder.exists()


def test_missing_credential_names_simulation_as_a_way_out(cli: Cli, ship: str, folder: Path) -> None:
    said = cli("run", ship, "--run-dir", str(folder))
    assert said.code == 2
    assert "plan, write" in said.err
    assert "ANTHROPIC_API_KEY" in said.err
    assert "--simulate" in said.err
    assert not folder.exists()


def test_graph_without_prompts_needs_no_credential(cli: Cli, tmp_path: Path) -> None:
    text = SHIP.replace("start -> plan -> write -> exit", "start -> exit")
    text = text.replace('  plan [prompt="Plan how to $goal"]\n', "").replace(
        '  write [prompt="Write it for $reader"]\n', ""
    )
    assert cli("run", put(tmp_path, text)).code == 0


@pytest.mark.parametrize(
    "arguments",
    [(), ("--simulate",), ("nothing.dot", "--simulate"), ("--resume", "nothing"), ("x.py:NAME", "--run-dir", "d")],
)
def test_mistyped_command_lines_are_told(cli: Cli, arguments: tuple[str, ...]) -> None:
    said = cli("run", *arguments)
    assert said.code in (2, 3)
    assert "Error" in said.err
    assert "Traceback" not in said.err


def test_parameters_that_hold_keys_are_refused(cli: Cli, ship: str) -> None:
    said = cli("run", ship, "--simulate", "--param", "api_key=x")
    assert said.code == 2
    assert cli("list", "--json").out == ""


# --- tools ----------------------------------------------------------------------------------------


def test_commands_nobody_allowed_are_listed_and_nothing_is_made(cli: Cli, tmp_path: Path, folder: Path) -> None:
    said = cli("run", put(tmp_path, TOOLS), "--run-dir", str(folder), "--simulate")
    assert said.code == 2
    assert "hello: echo hello; echo to-$reader" in said.err
    assert "bad: echo never; exit 3" in said.err
    assert "--allow-tools" in said.err
    assert not folder.exists()


def test_allowed_commands_run_and_the_permission_is_not_stored(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = put(tmp_path, TOOLS)
    said = cli("run", path, "--allow-tools", "--run-dir", str(folder), "--param", "reader=Ann")
    assert said.code == 0, said.err
    document = read(folder / "checkpoint.json")
    assert document["completed_nodes"] == ["start", "hello", "check", "exit"]
    assert document["context"]["tool.output"] == "hello\nto-Ann"
    assert document["context"]["reader"] == "Ann"
    assert b"allow_tools" not in (folder / "journal.jsonl").read_bytes()


def test_resume_asks_for_the_permission_again(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = put(tmp_path, TOOLS)
    assert cli("run", path, "--allow-tools", "--run-dir", str(folder), "--param", "reader=Bob").code == 6
    said = cli("run", path, "--resume", str(folder))
    assert said.code == 2
    assert "echo never" in said.err
    assert read(folder / "final.json")["status"] == "failed"


# --- parameters -----------------------------------------------------------------------------------


def test_parameters_stand_in_prompts_and_in_the_context(cli: Cli, ship: str, folder: Path) -> None:
    cli("run", ship, "--simulate", "--run-dir", str(folder), "--param", "reader=Ann", "--param", "n=3")
    assert (folder / "write" / "prompt.md").read_text() == "Write it for Ann"
    document = read(folder / "checkpoint.json")
    assert (document["context"]["reader"], document["context"]["n"]) == ("Ann", 3)
    assert read(folder / "manifest.json")["params"] == {"reader": "Ann", "n": 3}
    said = cli("run", ship, "--resume", str(folder), "--param", "reader=Bob")
    assert said.code == 2


# --- people ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [True, False])
def test_gate_waits_is_answered_and_the_run_goes_on(cli: Cli, tmp_path: Path, folder: Path, own: bool) -> None:
    path = put(tmp_path, GATE)
    said = cli("run", path, "--simulate", *(["--run-dir", str(folder)] if own else []))
    assert said.code == 8
    run = str(folder) if own else cli("list", "--json").json()[0]["run_id"]
    assert f"./pipeline.sh answer {run} review CHOICE" in said.err
    assert "([A] Approve, [R] Revise)" in said.err
    assert f"--resume {run}" in said.err
    assert not (folder / "final.json").exists()
    (gate,) = cli("gates", run, "--json").json()
    assert (gate["gate"], gate["question"], gate["choices"]) == ("review", "Publish it?", ["[A] Approve", "[R] Revise"])
    waits = cli("run", path, "--resume", run)
    assert waits.code == 8
    assert cli("answer", run, "review", "r").code == 0
    assert cli("run", path, "--resume", run).code == 8
    assert cli("answer", run, "review#2", "Approve", "--note", "fine").code == 0
    done = cli("run", path, "--resume", run)
    assert done.code == 0, done.err
    assert "Completed nodes: start, write, review, write, review, publish, exit" in done.out
    assert cli("gates", run).out == "No open questions.\n"


def test_auto_approve_answers_and_is_not_stored(cli: Cli, tmp_path: Path, folder: Path) -> None:
    said = cli("run", put(tmp_path, GATE), "--simulate", "--auto-approve", "--run-dir", str(folder))
    assert said.code == 0
    assert read(folder / "review" / "status.json")["outputs"]["by"] == "auto-approve"
    assert b'"auto_approve"' not in (folder / "journal.jsonl").read_bytes()


def test_answer_to_a_run_in_its_folder_shows_in_its_checkpoint(cli: Cli, tmp_path: Path, folder: Path) -> None:
    cli("run", put(tmp_path, GATE), "--simulate", "--run-dir", str(folder))
    assert read(folder / "checkpoint.json")["open_questions"] == {"review": ["[A] Approve", "[R] Revise"]}
    cli("answer", str(folder), "review", "A")
    document = read(folder / "checkpoint.json")
    assert (document["current_node"], document["open_questions"]) == ("write", {})


# --- json -----------------------------------------------------------------------------------------


def test_json_is_one_object_a_line(cli: Cli, ship: str) -> None:
    said = cli("run", ship, "--simulate", "--json")
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert [row["step"] for row in rows if row["type"] == "step_completed"] == ["start", "plan", "write", "exit"]
    assert (rows[-1]["type"], rows[-1]["status"], rows[-1]["exit_code"]) == ("result", "completed", 0)
