"""Names that people give values: what is missing is named, and what nobody asks for is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import MissingValue
from tests.acceptance.dots import SHIP, TOOLS, put
from tests.said import Cli

TALE = """
from pipeline import Pipeline, step

@step()
def first(ctx):
    return {"text": ctx.params["name"]}

@step()
def last(ctx):
    return {"text": WHAT}

TALE = Pipeline("tale", [first, last])
"""


def tale(folder: Path, what: str = 'ctx.outputs["first"]["text"]') -> str:
    return put(folder, TALE.replace("WHAT", what), "tale.py") + ":TALE"


def test_missing_parameter_is_named_with_the_way_on(cli: Cli, tmp_path: Path) -> None:
    said = cli("run", tale(tmp_path), "--param", "nam=Ann")
    assert said.code == 6
    assert "The run has no parameter 'name'." in said.err
    assert "--param name=VALUE" in said.err
    assert "KeyError" not in said.out + said.err
    (made,) = cli("fork", "latest", "--set", "params.name=Bo", "--json").json()
    assert cli("run", tale(tmp_path), "--resume", made["run"]).code == 0


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ('ctx.outputs["frist"]["text"]', "No step 'frist' has completed"),
        ('ctx.outputs["first"]["txt"]', "Step 'first' has no output 'txt'. Known: text."),
        ('ctx.context["where"]', "The context has no key 'where'."),
        ('ctx.settings["tone"]', "The run has no setting 'tone'."),
    ],
)
def test_missing_values_of_every_kind_are_named(cli: Cli, tmp_path: Path, what: str, named: str) -> None:
    said = cli("run", tale(tmp_path, what), "--param", "name=Ann")
    assert said.code == 6
    assert named in said.err


def test_missing_value_is_a_key_error_to_code() -> None:
    error = MissingValue("There is none.")
    assert isinstance(error, KeyError)
    assert str(error) == "There is none."


def test_parameter_that_no_step_reads_is_told(cli: Cli, tmp_path: Path) -> None:
    said = cli("run", tale(tmp_path), "--param", "name=Ann", "--param", "nmae=Bo")
    assert said.code == 0
    assert "No step has read the parameter 'nmae'; did you mean name?" in said.out


def test_parameter_that_a_graph_does_not_name_is_told_before_it_runs(cli: Cli, tmp_path: Path) -> None:
    told = "Nothing in the graph names the parameter 'raeder'; did you mean reader?"
    lines = cli("run", put(tmp_path, SHIP), "--simulate", "--param", "raeder=Ann").out.splitlines()
    assert lines.index(told) < lines.index("Step 1/4: START")
    assert "Nothing in the graph" not in cli("run", put(tmp_path, SHIP), "--simulate", "--param", "reader=Ann").out


def test_names_of_conditions_and_commands_are_named(cli: Cli, tmp_path: Path) -> None:
    said = cli("run", put(tmp_path, TOOLS), "--simulate", "--allow-tools", "--param", "reader=Ann",
               "--param", "tool.last_line=x")  # fmt: skip
    assert "Nothing in the graph" not in said.out


@pytest.mark.parametrize(
    ("given", "meant"),
    [("params.nmae=Bo", "did you mean params.name?"), ("name=Bo", "did you mean params.name?"), ("xyz=1", "by then.")],
)
def test_fork_tells_of_a_name_that_nobody_knows(cli: Cli, tmp_path: Path, given: str, meant: str) -> None:
    assert cli("run", tale(tmp_path), "--param", "name=Ann").code == 0
    said = cli("fork", "latest", "--set", given)
    assert "Warning:   nobody had read or set" in said.out
    assert meant in said.out
    assert "Warning" not in cli("fork", "latest", "--set", "params.name=Bo").out


def test_fork_knows_the_names_of_its_graph(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", put(tmp_path, SHIP), "--simulate").code == 0
    run = str(cli("list", "--json").json()[0]["run_id"])
    assert "Warning" not in cli("fork", run, "--at", "start", "--set", "params.reader=Ann").out
    (made,) = cli("fork", run, "--at", "plan", "--set", "raeder=Ann", "--json").json()
    assert made["unknown"] == {"context.raeder": []}
