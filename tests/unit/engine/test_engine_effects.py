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


class Watched(Disk):
    """Remembers whether anything was written since the last sync of a file."""

    loose = False

    def write(self, fd: int, data: bytes) -> int:
        self.loose = True
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self.loose = False


@pytest.mark.parametrize(("effect", "loose"), [("write", False), ("external", False), ("read", True)])
def test_start_of_a_step_that_acts_outside_is_synced_before_its_body(tmp_path: Path, effect: str, loose: bool) -> None:
    disk = Watched()
    seen: list[bool] = []

    def act(ctx: StepContext) -> Mapping[str, Any]:
        seen.append(disk.loose)
        return {}

    pipeline = Pipeline("acts", [step("before")(lambda ctx: {}), step("act", effect=effect)(act)])
    assert pipeline.run(store=FileStore(tmp_path / "s", SystemClock(), disk=disk)).status == "completed"
    assert seen == [loose]
