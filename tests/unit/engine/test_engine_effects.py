"""What acts outside a run is durably known to have begun before it acts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.store.disk import Disk
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import records


class Watched(Disk):
    """Remembers whether a record was written since the last sync of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.loose = False
        self.writes = self.syncs = 0

    def write(self, fd: int, data: bytes) -> int:
        # Heads are written too, as time goes.
        if data.startswith(b'{"seq":'):
            self.loose = True
            self.writes += 1
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self.syncs += 1
        self.loose = False


@pytest.mark.parametrize(("effect", "loose"), [("write", False), ("external", False), ("read", True)])
def test_start_of_a_step_that_acts_outside_is_synced_before_its_body(tmp_path: Path, effect: str, loose: bool) -> None:
    disk = Watched()
    seen: list[bool] = []

    def act(ctx: StepContext) -> Mapping[str, Any]:
        seen.append(disk.loose)
        return {}

    pipeline = Pipeline("acts", [step("act", effect=effect)(act)])
    assert pipeline.run(store=FileStore(tmp_path / "s", SystemClock(), disk=disk)).status == "completed"
    assert seen == [loose]


def test_end_of_a_step_and_the_start_it_leads_to_are_one_write_and_one_sync(tmp_path: Path) -> None:
    disk = Watched()
    made: list[tuple[int, int]] = []

    def act(ctx: StepContext) -> Mapping[str, Any]:
        made.append((disk.writes, disk.syncs))
        return {}

    Pipeline("acts", [step(name)(act) for name in "abcd"]).run(store=FileStore(tmp_path, SystemClock(), disk=disk))
    first = made[1]
    assert [(writes - first[0], syncs - first[1]) for writes, syncs in made[1:]] == [(0, 0), (1, 1), (2, 2)]


def test_next_step_is_not_begun_where_the_run_stops_after_this_one(tmp_path: Path) -> None:
    store = MemoryStore(SystemClock())
    run = Pipeline("acts", [step(name)(lambda ctx: {}) for name in "ab"]).run(store=store, options={"until": "a"})
    assert [type(record.fact).__name__ for record in records(store, run.run_id)] == [
        "RunStarted", "StepStarted", "StepCompleted", "RunEnded",
    ]  # fmt: skip
