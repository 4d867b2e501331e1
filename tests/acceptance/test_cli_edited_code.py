"""A pipeline's file edited between two starts: what other code made is kept, and told with the way to make it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.store.reader import load
from pipeline.store.url import open_store
from tests.said import Cli, Said
from tests.servers.billing import BillingServer
from tests.servers.replies import Responder, echo

OWN = """
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


@pytest.fixture
def responder() -> Responder:
    return echo


def notes(said: Said) -> list[str]:
    return [event["text"] for event in said.json() if event["type"] == "note" and "code has changed" in event["text"]]


def outputs(root: Path, run: str, step: str) -> dict[str, Any]:
    state = load(open_store(f"files:{root}"), run)
    return dict(state.steps[f"{step}#1"].outputs)


def test_prompt_edited_between_two_starts_is_told(cli: Cli, root: Path, server: BillingServer, tmp_path: Path) -> None:
    path, mark = tmp_path / "own.py", tmp_path / "mark"
    target = f"{path}:BOOK"
    path.write_text(OWN)
    first = cli("run", target, "--param", f"mark={mark}", "--json", "--concurrency", "1")
    run = first.json()[-1]["run"]
    mark.touch()
    assert notes(cli("run", target, "--resume", run, "--json", "--param", f"mark={mark}")) == []
    # Another run, edited in the middle.
    mark.unlink()
    run = cli("run", target, "--param", f"mark={mark}", "--json", "--concurrency", "1").json()[-1]["run"]
    mark.touch()
    path.write_text(OWN.replace('"Draft"', '"Sketch"').replace('"Plan"', '"Schedule"'))
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
