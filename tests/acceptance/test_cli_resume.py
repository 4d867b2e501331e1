"""A resume: what contradicts its run is refused before anything is paid; edited code is told; its price is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigError
from pipeline.records.kinds import RunResumed
from pipeline.store.reader import load, records
from pipeline.store.url import open_store
from tests.said import Cli, Said
from tests.servers.billing import BillingServer
from tests.servers.replies import echo

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


BOOK = """
from pathlib import Path
from pipeline import Message, Pipeline, Request, step

PROMPT = "Draft"

def ask(ctx, text):
    return ctx.ask(Request("claude-sonnet-5-5", [Message("user", text)], max_tokens=50)).text

@step()
def plan(ctx):
    return {"plan": ask(ctx, "Plan")}

def write(ctx, item):
    text = ask(ctx, f"{PROMPT} {item}")
    if item == 2:
        Path(ctx.params["mark"]).read_text()
    return text

@step()
def parts(ctx):
    return {"parts": list(ctx.map("parts", range(4), write, key=str))}

BOOK = Pipeline("book", [plan, parts])
"""


def notes(said: Said) -> list[str]:
    return [event["text"] for event in said.json() if event["type"] == "note" and "code has changed" in event["text"]]


def outputs(root: Path, run: str, step: str) -> dict[str, Any]:
    state = load(open_store(f"files:{root}"), run)
    return dict(state.steps[f"{step}#1"].outputs)


def test_prompt_edited_between_two_starts_is_told(cli: Cli, root: Path, server: BillingServer, tmp_path: Path) -> None:
    server.responder = echo
    path, mark = tmp_path / "own.py", tmp_path / "mark"
    target = f"{path}:BOOK"
    path.write_text(BOOK)
    first = cli("run", target, "--param", f"mark={mark}", "--json", "--concurrency", "1")
    run = first.json()[-1]["run"]
    mark.touch()
    assert notes(cli("run", target, "--resume", run, "--json", "--param", f"mark={mark}")) == []
    # Another run, edited in the middle.
    mark.unlink()
    run = cli("run", target, "--param", f"mark={mark}", "--json", "--concurrency", "1").json()[-1]["run"]
    mark.touch()
    path.write_text(BOOK.replace('"Draft"', '"Sketch"').replace('"Plan"', '"Schedule"'))
    said = cli("run", target, "--resume", run, "--json", "--concurrency", "1")
    assert said.code == 0, said.err
    told = notes(said)
    assert len(told) == 2
    assert ": plan." in told[0]
    assert f" --resume {run} " in told[0]
    assert told[0].endswith(" --from plan")
    assert "parts/0, parts/1, parts/3." in told[1]
    assert outputs(root, run, "parts") == {"parts": ["Draft 0", "Draft 1", "Sketch 2", "Draft 3"]}
    again = cli("run", target, "--resume", run, "--json")
    assert (again.code, len(notes(again))) == (0, 1)
    asked = server.bill.requests
    # Items that read nothing of the plan are kept until they are asked for, too.
    assert len(notes(cli("run", target, "--resume", run, "--from", "plan", "--json"))) == 1
    done = cli("run", target, "--resume", run, "--from", "parts", "--json")
    assert (done.code, notes(done)) == (0, [])
    assert outputs(root, run, "parts") == {"parts": [f"Sketch {n}" for n in range(4)]}
    assert server.bill.requests == asked + 5
    assert notes(cli("run", target, "--resume", run, "--json")) == []


COURSE = ("lessons", "--subject", "mathematics", "--level", "n5", "--lessons", "6", "--model", "claude-sonnet-5-5")


def planned(cli: Cli, *more: str) -> dict[str, Any]:
    """What --dry-run says."""
    (data,) = cli(*COURSE, "--dry-run", "--json", *more).json()
    assert data["expected_usd"] == pytest.approx(sum(item["expected_usd"] for item in data["items"]))
    assert data["expected_usd"] == pytest.approx(sum(line["expected_usd"] for line in data["calls"]))
    return dict(data)


def started(cli: Cli, *command: str) -> dict[str, Any]:
    """What a start says before its first paid call."""
    said = cli(*command, "--json", "--yes")
    assert said.code == 0, said.err
    return dict(next(event for event in said.json() if event["type"] == "plan"))


def made(data: dict[str, Any]) -> list[str]:
    return [item["name"] for item in data["items"] if item["action"] == "run"]


def test_price_of_a_start_is_that_of_what_it_makes(cli: Cli, server: BillingServer, out: Path) -> None:
    whole = planned(cli)["expected_usd"]
    lessons = [f"lessons/{number}" for number in range(1, 7)]
    # What a start is told, what it makes, and whether that is paid for.
    steps: list[tuple[tuple[str, ...], list[str], bool]] = [
        (("--until", "seed"), ["seed"], False),
        (("--until", "sow"), ["sow"], True),
        # Done already: nothing is bought.
        (("--until", "sow"), [], False),
        (("--sample", "2"), [*lessons[:2], "lessons"], True),
        (("--until", "sow", "--sample", "3"), [], False),
        (("--sample", "2"), ["lessons"], False),
        (("--until", "lessons"), [*lessons[2:], "lessons"], True),
    ]
    for options, names, paid in steps:
        plan, calls = planned(cli, *options), server.bill.requests
        start = started(cli, *COURSE, *options)
        assert made(plan) == names
        assert float(start["expected_usd"]) == pytest.approx(plan["expected_usd"])
        assert float(start["worst_usd"]) == pytest.approx(plan["worst_usd"])
        assert (plan["expected_usd"] > 0, server.bill.requests > calls) == (paid, paid)
        assert plan["expected_usd"] < whole
    assert made(planned(cli)) == ["publish"]


def test_course_that_is_only_to_be_published_asks_for_no_model(
    cli: Cli, server: BillingServer, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(cli, *COURSE, "--until", "lessons")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    # In batches, too: there is nothing to put into one.
    said = cli("lessons", "--resume", "latest", "--batch")
    assert said.code == 0, said.err
    assert (out / "course_c84775" / "index.html").exists()
    assert "Checking the model" not in said.out
    assert cli("lessons", "--resume", "latest", "--from", "publish").code == 0
    (out / "course_c84775").rename(out / "elsewhere")
    assert cli("lessons", "--resume", "latest").code == 0
    assert cli("redo", "latest", "lessons/1").code != 0, "a lesson is to be written"


def test_price_of_a_resume_keeps_what_the_run_was_started_with(cli: Cli, server: BillingServer, out: Path) -> None:
    started(cli, *COURSE, "--until", "sow", "--max-cost-usd", "7")
    plan = planned(cli)
    assert plan["ceiling_usd"] == 7
    start = started(cli, "lessons", "--resume", "latest", "--sample", "1")
    assert start["ceiling_usd"] == 7
    # One of six, but it pays for what all of them share.
    assert plan["expected_usd"] / 6 < float(start["expected_usd"]) < plan["expected_usd"] / 3
    again = started(cli, "redo", "latest", "lessons/1")
    # One lesson again, and the five that are not there yet.
    assert float(again["expected_usd"]) == pytest.approx(plan["expected_usd"])


def test_price_with_claude_is_named_whatever_the_offline_author_has_made(cli: Cli, out: Path) -> None:
    offline = ("lessons", "--subject", "mathematics", "--level", "n5", "--lessons", "4")
    before = cli(*offline, "--dry-run").out
    (named,) = [line for line in before.splitlines() if line.startswith("With --model")]
    assert "$0.00" not in named
    assert cli(*offline).code == 0
    assert named in cli(*offline, "--dry-run").out.splitlines()
