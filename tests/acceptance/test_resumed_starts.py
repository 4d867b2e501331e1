"""A run that is taken up again: what is said of it is so, and where nothing is left to do, nothing is needed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import run_dot
from pipeline.app.start import DecisionListener
from pipeline.clock import SystemClock
from pipeline.engine.events import Event
from pipeline.store.files import FileStore
from pipeline.store.reader import resolve
from tests.acceptance.dots import SHIP, TOOLS, put
from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.replies import Responder, echo

COURSE = ("lessons", "--subject", "mathematics", "--level", "national_5", "--model", "offline", "--until", "seed")


def test_run_that_is_owned_elsewhere_is_not_said_to_be_gone_on_with(cli: Cli, root: Path, out: Path) -> None:
    said = cli(*COURSE)
    assert "Starting a new run (no unfinished run of this course)\nRun " in said.out
    store = FileStore(root, SystemClock())
    journal = store.open(resolve(store, "latest"))
    for more in ([], ["--json"]):
        refused = cli(*COURSE, *more)
        assert refused.code == 3
        assert "continuing" not in refused.out
    journal.close()
    assert "continuing" in cli(*COURSE, "--until", "sow").out


def test_run_that_cannot_be_made_is_not_said_to_be_new(cli: Cli, out: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for more in ([], ["--force"]):
        said = cli(*COURSE, *more, "--store", f"sqlite:{tmp_path}/file/runs.db")
        assert said.code == 3
        assert "Starting" not in said.out


def test_last_decision_is_told_when_it_is_so_or_asked_about() -> None:
    heard: list[str] = []
    decided = DecisionListener(lambda event: heard.append(event.type))

    def refuse(question: str) -> bool:
        heard.append(question)
        return False

    asked = decided.before(refuse)
    assert asked is not None
    assert decided.before(None) is None
    for kind in ("run_new", "note", "run_continuing", "run_resumed", "run_new"):
        decided(Event(kind, ""))
    assert heard == ["note", "run_continuing", "run_resumed"]
    assert not asked("Go on?")
    assert heard[3:] == ["run_new", "Go on?"]


def test_completed_run_needs_a_permission_only_to_do_more(cli: Cli, tmp_path: Path) -> None:
    file, folder = put(tmp_path, TOOLS), str(tmp_path / "own")
    done = cli("run", file, "--simulate", "--allow-tools", "--param", "reader=Ann", "--run-dir", folder)
    assert done.code == 0, done.err
    for again in (["--resume", folder], [file, "--resume", folder], [file, "--resume-from", folder]):
        said = cli("run", *again)
        assert said.code == 0, said.err
        assert "already completed" in said.out
        assert "Step" not in said.out
    assert run_dot(file, resume=folder).status == "completed"
    said = cli("run", "--resume", folder, "--from", "hello")
    assert said.code == 2
    assert "--allow-tools" in said.err


@pytest.fixture
def responder() -> Responder:
    return echo


def test_completed_run_needs_no_credential(cli: Cli, tmp_path: Path, server: BillingServer) -> None:
    tale = "from pipeline import Pipeline, step\n@step()\ndef one(ctx):\n    return {}\nONE = Pipeline('one', [one])\n"
    target = put(tmp_path, tale, "tale.py") + ":ONE"
    said = cli("run", target, "--max-cost-usd", "3")
    assert "Model: claude-" in said.out
    assert "Ceiling: $3" in said.out
    assert cli("run", put(tmp_path, SHIP), "--run-dir", str(tmp_path / "own")).code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ANTHROPIC_API_KEY")
        for again in ([target, "--resume", "latest"], ["--resume", str(tmp_path / "own")]):
            said = cli("run", *again)
            assert said.code == 0, said.err
            assert "already completed" in said.out
