"""That a run is new or gone on with is said once that is so: not of a start that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.app.start import DecisionListener
from pipeline.clock import SystemClock
from pipeline.engine.events import Event
from pipeline.store.files import FileStore
from pipeline.store.reader import resolve
from tests.said import Cli

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


@pytest.mark.parametrize("more", [[], ["--force"]])
def test_run_that_cannot_be_made_is_not_said_to_be_new(more: list[str], cli: Cli, out: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = cli(*COURSE, *more, "--store", f"sqlite:{tmp_path}/file/runs.db")
    assert said.code == 3
    assert "cannot be created" in said.err
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
