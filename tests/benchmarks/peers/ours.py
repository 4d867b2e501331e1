"""This project: a journal in a folder, one fdatasync a step."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline import __version__
from pipeline.clock import SystemClock
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.store.files import FileStore
from tests.benchmarks.peers.workloads import Body, Peer


class Adapter(Peer):
    """A pipeline of as many steps as the chain has."""

    PACKAGES = ()
    DURABILITY = "each step: one fdatasync of its journal before the next begins; survives a power cut"

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._store = FileStore(home / "store", SystemClock())

    @classmethod
    def versions(cls) -> dict[str, str]:
        return {"course-pipeline": __version__}

    def _pipeline(self, count: int, body: Body) -> Pipeline:
        def made(number: int) -> Any:
            return step(f"s{number}")(lambda ctx: body(number))

        return Pipeline("chain", [made(number) for number in range(count)])

    def chain(self, count: int, body: Body) -> None:
        result = self._pipeline(count, body).run(store=self._store)
        assert result.status == "completed", result.error

    def resume(self, count: int, body: Body) -> None:
        (run,) = self._store.heads()
        self._pipeline(count, body).resume(run.run_id, store=self._store)

    def fan(self, count: int, at_once: int, body: Body) -> None:
        def tasks(ctx: StepContext) -> Any:
            return {"done": len(ctx.map("t", range(count), lambda inner, number: body(number), key=str))}

        result = Pipeline("fan", [tasks]).run(store=self._store, options={"concurrency": at_once})
        assert result.status == "completed", result.error

    def fill(self, runs: int) -> None:
        self.chain(1, lambda number: {})
        (run,) = self._store.heads()
        source = self.home / "store" / run.run_id
        for number in range(1, runs):
            day, second = divmod(number, 1000)
            name = f"202601{day + 1:02d}_{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}"
            shutil.copytree(source, source.parent / name)

    def newest(self, count: int) -> int:
        return len(list(islice(self._store.heads(), count)))
