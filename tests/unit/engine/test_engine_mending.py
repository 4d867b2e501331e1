"""A run whose journal was damaged: the mending is recorded and said, also where nothing is left to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline import Pipeline, StepContext, step
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter, Event
from pipeline.engine.setup import Setup
from pipeline.records.kinds import Gap
from pipeline.store.files import FileStore
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock


@step()
def only(ctx: StepContext) -> dict[str, Any]:
    return {"done": True}


@pytest.fixture
def heard() -> list[Event]:
    return []


@pytest.fixture
def engine(tmp_path: Path, heard: list[Event]) -> Engine:
    clock = FakeClock()
    store = FileStore(tmp_path, clock)
    return Engine(Pipeline("tale", [only]).definition, Setup(store, clock, Emitter(clock, [heard.append]), {}))


def test_torn_end_of_a_completed_run_is_recorded_and_said_once(
    engine: Engine, heard: list[Event], tmp_path: Path
) -> None:
    run = engine.start({}, identity={}, pins={}).run_id
    with (tmp_path / run / "journal.jsonl").open("ab") as out:
        out.write(b"junk")
    heard.clear()
    for _ in range(2):
        assert engine.resume(run).status == "completed"
    notes = [event.data["text"] for event in heard if event.type == "note"]
    assert notes == [
        "The journal was repaired: the last write was not finished, or was damaged (4 bytes kept in journal.torn-1)."
    ]
    store = FileStore(tmp_path, FakeClock())
    gaps = [record.fact for record in records(store, run) if isinstance(record.fact, Gap)]
    assert [(gap.bytes, gap.kept) for gap in gaps] == [(4, "journal.torn-1")]
    assert load(store, run).status == "completed"
