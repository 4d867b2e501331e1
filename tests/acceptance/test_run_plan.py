"""`run --dry-run`: what a start would do, for graphs and Python, new and resumed; nothing is left behind."""

from __future__ import annotations

from pathlib import Path

from tests.said import Cli

DOT = """digraph essay {
  start [shape=Mdiamond]; draft [prompt="Write."]; count [shape=parallelogram, tool_command="exit 3"];
  ask [shape=hexagon, label="Good?"]; done [shape=Msquare];
  start -> draft -> count -> ask; ask -> done [label="Yes"]; ask -> draft [label="No"];
}"""
CODE = """
from pipeline import Pipeline, step

@step()
def first(ctx):
    return {"text": "a"}

@step()
def last(ctx):
    return {"text": ctx.params["name"]}

TALE = Pipeline("tale", [first, last])
"""


def test_graph_is_shown_and_nothing_is_run(cli: Cli, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "essay.dot"
    file.write_text(DOT)
    [plan] = cli("run", str(file), "--dry-run", "--json").json()
    does = {node["node"]: node["does"] for node in plan["nodes"]}
    assert does == {
        "start": "begins the run", "draft": "asks the model", "count": "runs a shell command", "ask": "asks a person",
        "done": "ends the run",
    }  # fmt: skip
    assert (plan["model"], plan["credential"], plan["run"]) == ("claude-sonnet-5-5", False, None)
    said = cli("run", str(file), "--dry-run", "--simulate")
    assert (said.code, "--allow-tools, for count" in said.out, "Model:" in said.out) == (0, True, False)
    assert not list(root.glob("2*"))
    broken = tmp_path / "broken.dot"
    broken.write_text(DOT.replace("done [shape=Msquare];", "").replace("-> done", "-> nowhere"))
    assert cli("run", str(broken), "--dry-run").code == 2


def test_resume_shows_what_stands(cli: Cli, root: Path, tmp_path: Path) -> None:
    file = tmp_path / "tale.py"
    file.write_text(CODE)
    assert cli("run", str(file)).code == 6
    [run] = [each.parent for each in root.rglob("journal*")]
    before = (run / "journal.jsonl").read_bytes()
    [plan] = cli("run", str(file), "--resume", "latest", "--dry-run", "--json").json()
    assert {node["node"]: node["status"] for node in plan["nodes"]} == {"first": "completed", "last": "failed"}
    assert plan["run"] == run.name
    assert (run / "journal.jsonl").read_bytes() == before
