"""What a resume is given beside its run: what contradicts the run is refused before anything is recorded or paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.records.kinds import RunResumed
from pipeline.store.reader import records
from pipeline.store.url import open_store
from tests.said import Cli
from tests.servers.billing import BillingServer

OWN = """
from pipeline import Message, Pipeline, Request, step

@step()
def greet(ctx):
    if ctx.options.get("stop") or not ctx.options["target"]:
        return {}
    return {"text": ctx.ask(Request(ctx.settings["model"], [Message("user", "hello")])).text}

@step()
def part(ctx):
    with open(ctx.params["mark"]):
        return {}

HELLO = Pipeline("hello", steps=[greet, part])
"""
DOT = "digraph g { start [shape=Mdiamond] a [prompt=A] exit [shape=Msquare] start -> a -> exit }"


def resumed(root: Path, run: str) -> int:
    return sum(isinstance(record.fact, RunResumed) for record in records(open_store(f"files:{root}"), run))


def error(said: object) -> dict[str, object]:
    found: dict[str, object] = said.json()[-1]["error"]  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("done", [False, True])
def test_resume_of_a_course_under_another_name_is_refused(cli: Cli, root: Path, out: Path, done: bool) -> None:
    start = ("lessons", "--subject", "maths", "--level", "n5", "--lessons", "1", "--model", "offline", "--json")
    run = cli(*start, *(() if done else ("--until", "sow"))).json()[-1]["run"]
    for words in (
        ("--subject", "physics"), ("--level", "higher"), ("--subject", "maths", "--level", "higher"),
        ("--subject", "nonsense"), ("--level", "nonsense"), ("--subject", "physics", "--accept-changes"),
    ):  # fmt: skip
        said = cli("lessons", "--resume", run, *words, "--json")
        assert (said.code, error(said)["type"]) == (ConfigError.exit_code, "SettingsConflict"), words
    assert resumed(root, run) == 0
    for words in (("--subject", "Mathematics"), ("--subject", "maths", "--level", "N5"), ("--level", "national 5")):
        assert cli("lessons", "--resume", run, *words, "--until", "sow", "--json").code == 0, words
    assert cli("lessons", "--resume", run, "--subject", "maths", "--json").code == 0


def test_course_of_the_environment_counts_as_given(cli: Cli, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = cli("lessons", "--subject", "maths", "--level", "n5", "--lessons", "1", "--model", "offline", "--until",
              "sow", "--json").json()[-1]["run"]  # fmt: skip
    monkeypatch.setenv("PIPELINE_SUBJECT", "physics")
    assert error(cli("lessons", "--resume", run, "--json"))["type"] == "SettingsConflict"


def test_resume_of_a_pipeline_by_another_model_is_refused_or_accepted(
    cli: Cli, root: Path, server: BillingServer, tmp_path: Path
) -> None:
    server.responder = lambda body, fault: str(body["model"])
    (tmp_path / "own.py").write_text(OWN)
    target, mark = f"{tmp_path / 'own.py'}:HELLO", tmp_path / "mark"
    run = cli("run", target, "--param", f"mark={mark}", "--json").json()[-1]["run"]
    other = ("run", target, "--resume", run, "--model", "claude-haiku-5-5", "--json")
    assert error(cli(*other))["type"] == "SettingsConflict"
    assert resumed(root, run) == 0
    mark.touch()
    assert cli(*other[:4], "--model", "claude-sonnet-5-5", "--json").code == 0
    assert error(cli(*other))["type"] == "SettingsConflict"
    assert cli(*other, "--accept-changes").code == 0
    assert [body["model"] for _, body in server.seen] == ["claude-sonnet-5-5", "claude-haiku-5-5"]


def test_graph_stays_in_its_folder(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "g.dot"
    path.write_text(DOT)
    run = cli("run", str(path), "--simulate", "--json").json()[-1]["run"]
    own = tmp_path / "own"
    assert cli("run", str(path), "--simulate", "--run-dir", str(own), "--json").code == 0
    for place in (run, str(own)):
        said = cli("run", str(path), "--resume", place, "--run-dir", str(tmp_path / "other"), "--json")
        assert error(said)["type"] == "SettingsConflict"
        assert not (tmp_path / "other").exists()
    assert cli("run", str(path), "--resume", str(own), "--run-dir", str(own), "--json").code == 0
