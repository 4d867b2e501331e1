"""What a start says of the place where its runs are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.app.run_report import finish
from pipeline.app.start import Start, resume_command, store_note, without_model
from pipeline.clock import SystemClock
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.errors import WriteFailed
from pipeline.settings import Execution
from pipeline.store import network
from pipeline.store.memory import MemoryStore


@pytest.mark.parametrize(("kind", "said"), [("nfs4", True), ("ext4", False)])
def test_store_note_warns_of_a_network_file_system(
    kind: str, said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x / {kind} rw 0 0\n", encoding="ascii")
    monkeypatch.setattr(network, "_LINUX", mounts)
    note = store_note(f"files:{tmp_path}")
    assert ("network file system" in note) is said


def test_store_note_has_nothing_to_say_of_memory() -> None:
    assert store_note("memory:") == ""


def test_store_note_says_how_the_commands_get_a_password_that_they_do_not_repeat() -> None:
    url = "postgresql://me:secret@host/runs"
    assert "PGPASSWORD" in store_note(url)
    assert store_note("postgresql://me@host/runs") == ""
    options = Execution(store=url, given=frozenset({"store"}))
    assert resume_command(options, "20260101_120000") == (
        "./pipeline.sh lessons --resume 20260101_120000 --store postgresql://me@host/runs"
    )


def test_resume_command_quotes_a_store_with_a_space() -> None:
    options = Execution(store="files:/my runs", given=frozenset({"store"}))
    assert resume_command(options, "20260101_120000").endswith(" --store 'files:/my runs'")


def test_advice_on_an_emergency_file_is_a_command_that_names_the_store() -> None:
    clock = SystemClock()
    execution = Execution(store="sqlite:/my runs.db", given=frozenset({"store"}))
    start = Start(execution, MemoryStore(clock), clock, Emitter(clock, []), None)
    error = WriteFailed("Full.", emergency="/tmp/kept.jsonl")
    finish(start, without_model(start, {}), RunResult("20260101_120000", "in_progress", "store", error))
    assert error.hint.endswith(
        "first: ./pipeline.sh recover 20260101_120000 /tmp/kept.jsonl --store 'sqlite:/my runs.db'"
    )
