"""Names that people give values: what is missing is named, and what nobody asks for is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import MissingValue, Pipeline, step
from pipeline.clock import SystemClock
from pipeline.engine.pipeline import load_pipeline
from pipeline.errors import RunNotFound
from pipeline.store.files import FileStore
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


def test_missing_values_of_every_kind_are_named_with_the_way_on(cli: Cli, tmp_path: Path) -> None:
    said = cli("run", tale(tmp_path), "--param", "nam=Ann")
    assert said.code == 6
    assert "The run has no parameter 'name'." in said.err
    assert "--param name=VALUE" in said.err
    assert "KeyError" not in said.out + said.err
    (made,) = cli("fork", "latest", "--set", "params.name=Bo", "--json").json()
    assert cli("run", tale(tmp_path), "--resume", made["run"]).code == 0
    for what, named in (
        ('ctx.outputs["frist"]["text"]', "Step 'frist' has not completed"),
        ('ctx.outputs["first"]["txt"]', "Step 'first' has no output 'txt'. Known: text."),
        ('ctx.context["where"]', "The context has no key 'where'."),
        ('ctx.settings["tone"]', "The run has no setting 'tone'."),
    ):
        said = cli("run", tale(tmp_path, what), "--param", "name=Ann")
        assert (said.code, named in said.err) == (6, True), said.err
    # To code it is a KeyError.
    error = MissingValue("There is none.")
    assert (isinstance(error, KeyError), str(error)) == (True, "There is none.")


def test_parameter_that_nothing_reads_is_told(cli: Cli, tmp_path: Path) -> None:
    said = cli("run", tale(tmp_path), "--param", "name=Ann", "--param", "nmae=Bo")
    assert said.code == 0
    assert "No step has read the parameter 'nmae'; did you mean name?" in said.out
    # A graph says what it names before it runs; names of conditions and commands are among them.
    told = "Nothing in the graph uses the parameter 'raeder'; did you mean reader?"
    lines = cli("run", put(tmp_path, SHIP), "--simulate", "--param", "raeder=Ann").out.splitlines()
    assert lines.index(told) < lines.index("Step 1/4: START")
    for graph, options in (
        (SHIP, ["--param", "reader=Ann"]),
        (TOOLS, ["--allow-tools", "--param", "reader=Ann", "--param", "tool.last_line=x"]),
    ):
        assert "Nothing in the graph" not in cli("run", put(tmp_path, graph), "--simulate", *options).out


def test_fork_tells_of_a_name_that_nobody_knows(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", tale(tmp_path), "--param", "name=Ann").code == 0
    tales = str(cli("list", "--json").json()[0]["run_id"])
    for given, meant in (
        ("params.nmae=Bo", "did you mean params.name?"),
        ("name=Bo", "did you mean params.name?"),
        ("xyz=1", "by that point"),
    ):
        said = cli("fork", tales, "--set", given)
        assert "Warning:   nothing had read or set" in said.out
        assert meant in said.out
    assert "Warning" not in cli("fork", tales, "--set", "params.name=Bo").out
    # The names of a graph are known too.
    assert cli("run", put(tmp_path, SHIP), "--simulate").code == 0
    run = str(cli("list", "--json").json()[0]["run_id"])
    assert "Warning" not in cli("fork", run, "--at", "start", "--set", "params.reader=Ann").out
    (made,) = cli("fork", run, "--at", "plan", "--set", "raeder=Ann", "--json").json()
    assert made["unknown"] == {"context.raeder": []}


def test_missing_parameter_can_be_given_with_the_resume(cli: Cli, tmp_path: Path) -> None:
    target = tale(tmp_path)
    said = cli("run", target)
    command = said.err.splitlines()[-1]
    assert command.endswith(" --param name=VALUE"), said.err
    for words in (("status", "latest"), ("list",)):
        assert cli(*words).out.splitlines()[-1].endswith(" --param name=VALUE")
    (before,) = cli("list", "--json").json()
    again = cli("run", target, "--resume", "latest", "--param", "name=Ann")
    assert again.code == 0, again.err
    assert [row["run_id"] for row in cli("list", "--json").json()] == [before["run_id"]]
    assert cli("status", "latest", "--json").json()[0]["params"] == {"name": "Ann"}
    # What finished work has read stays as it is; the same value again is no change.
    assert cli("run", target, "--resume", "latest", "--param", "name=Ann").code == 0
    said = cli("run", target, "--resume", "latest", "--param", "name=Bo")
    assert (said.code, "fork" in said.err) == (2, True)


def test_latest_is_the_newest_run_of_the_pipeline_that_is_meant(cli: Cli, root: Path, tmp_path: Path) -> None:
    course = [
        "lessons",
        "--subject",
        "maths",
        "--level",
        "n5",
        "--lessons",
        "2",
        "--model",
        "offline",
        "--until",
        "seed",
    ]
    target = tale(tmp_path)
    assert cli("lessons", "--resume", "latest").code == 3
    assert cli(*course).code == 0
    assert cli("run", target).code == 6
    said = cli("lessons", "--resume", "latest", "--until", "sow")
    assert said.code == 0, said.err
    assert cli("run", target, "--resume", "latest", "--param", "name=Ann").code == 0
    store = FileStore(root, SystemClock())
    pipeline, _ = load_pipeline(target)
    assert pipeline.resume("latest", store=store).status == "completed"
    with pytest.raises(RunNotFound):
        Pipeline("other", [step("go")(lambda ctx: {})]).resume("latest", store=store)


def test_python_file_without_a_name_is_its_only_pipeline_or_told_them(cli: Cli, tmp_path: Path) -> None:
    file = tale(tmp_path).removesuffix(":TALE")
    for target in (file, f"{file}:"):
        said = cli("run", target)
        assert (said.code, f"run {file}:TALE --resume" in said.err) == (6, True), said.err
    text = Path(file).read_text()
    more = put(tmp_path, f"{text}\nSAME = TALE\nOTHER = Pipeline('other', [first])\n", "more.py")
    said = cli("run", more)
    assert (said.code, f"{more}:TALE" in said.err, "TALE, SAME, OTHER" in said.err) == (2, True, True), said.err
    said = cli("run", put(tmp_path, "x = 1\n", "none.py"))
    assert (said.code, "has no pipeline" in said.err) == (2, True)
    said = cli("run", str(tmp_path / "nowhere.py"))
    assert (said.code, "nowhere.py" in said.err) == (2, True)


def test_file_with_the_name_of_this_program_runs_and_a_clash_is_named(cli: Cli, tmp_path: Path) -> None:
    own = put(tmp_path, TALE.replace("WHAT", "'done'"), "pipeline.py")
    said = cli("run", own, "--param", "name=Ann")
    assert said.code == 0, said.err
    assert cli("list").code == 0
    more = put(tmp_path, "from pipeline import helper\n" + TALE, "mine.py")
    said = cli("run", more)
    assert (said.code, "not the pipeline.py beside mine.py" in said.err) == (2, True), said.err
    (tmp_path / "folder" / "pipeline").mkdir(parents=True)
    inside = put(tmp_path / "folder", TALE.replace("WHAT", "'done'"), "mine.py")
    assert cli("run", inside, "--param", "name=Ann").code == 0
