"""Forks and checkpoints as the command line gives them: what is made again, and that a checkpoint is of its time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.said import Cli

DIAMOND = """
from pathlib import Path
from pipeline import Pipeline, step

def ran(name):
    with open(Path(__file__).parent / "ran.txt", "a") as file:
        print(name, file=file)

def node(name, *sources):
    @step(name)
    def body(ctx):
        ran(name)
        made = [ctx.outputs[source]["made"] for source in sources]
        return {"made": f"{name}({ctx.params[name] if name in ctx.params else ''}{''.join(made)})"}
    return body

NODES = [node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"), node("e", "d")]
EDGES = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e")]
DIAMOND = Pipeline("diamond", NODES, edges=EDGES, joins={"d": "all"})
"""


@pytest.fixture
def target(root: Path) -> str:
    file = root.parent / "diamond.py"
    file.write_text(DIAMOND)
    return f"{file}:DIAMOND"


def ran(root: Path) -> list[str]:
    """What ran since the last look."""
    file = root.parent / "ran.txt"
    lines = file.read_text().split() if file.exists() else []
    file.unlink(missing_ok=True)
    return lines


def done(run: dict[str, Any]) -> list[str]:
    return sorted(step["step"] for step in run["steps"] if step["status"] == "completed")


def test_case_fork_that_changes_an_input_of_a_finished_node_makes_it_and_its_dependents_again(
    cli: Cli, target: str, root: Path
) -> None:
    assert cli("run", target, "--param", "b=1", "--quiet").code == 0
    ran(root)
    (made,) = cli("fork", "latest", "--set", "params.b=2", "--json").json()
    assert made["changed"] == [{"name": "params.b", "value": 2, "steps": ["b"], "items": []}]
    assert cli("run", target, "--resume", made["run"], "--quiet").code == 0
    assert ran(root) == ["b", "d", "e"]
    (end,) = cli("show", made["run"], "e", "--json").json()
    assert end["outputs"] == {"made": "e(d(b(2a())c(a())))"}


def test_case_checkpoint_of_a_run_that_went_on_holds_only_what_was_there_then(
    cli: Cli, target: str, root: Path
) -> None:
    assert cli("run", target, "--param", "b=1", "--quiet").code == 0
    run = cli("list", "--json").json()[0]["run_id"]
    marks = cli("history", run, "--json").json()
    for place, mark in enumerate(marks, 1):
        (then,) = cli("show", run, "--at", mark["id"], "--json").json()
        assert (then["seq"], done(then)) == (mark["seq"], sorted(each["step"] for each in marks[:place]))
        (child,) = cli("fork", run, "--at", mark["id"], "--json").json()
        assert sorted(child["inherited"]) == done(then)
        ran(root)
        cli("run", target, "--resume", child["run"], "--quiet")
        assert sorted(ran(root)) == sorted(each["step"] for each in marks[place:])
        assert cli("diff", run, child["run"], "--json").json()[0]["same"]
