"""A whole run on a disk that refuses: what was paid for is kept and asked for once, and the way on is said."""

from __future__ import annotations

import errno
import tempfile
import threading
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.pipeline import Pipeline
from pipeline.engine.result import RunResult
from pipeline.engine.step import StepContext, step
from pipeline.llm.base import Message, Request
from pipeline.records.fold import spent
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from pipeline.store.recovery import recover
from pipeline.testing import FakeClock, ScriptedModel
from tests.faulty_disk import FaultyDisk

MODEL = "claude-sonnet-5-5"
ITEMS = 8
AT_ONCE = 4
#: How often a journal tries to write something.
TRIES = 4


class RefusingDisk(FaultyDisk):
    """A faulty disk that may also refuse for good."""

    def __init__(self) -> None:
        super().__init__()
        #: errno of every write or sync of a file from now on; 0: none.
        self.writes = 0
        self.every_sync = 0
        self.refusals = 0
        #: Set once a write was refused as often as it is tried, or a sync once.
        self.refused = threading.Event()

    def write(self, fd: int, data: bytes) -> int:
        if self.writes:
            self.write_errors = [self.writes]
            self.refusals += 1
            if self.refusals >= TRIES:
                self.refused.set()
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        if self.every_sync:
            self.sync_errors = [self.every_sync]
        if self.sync_errors:
            self.refused.set()
        super().sync(fd)


class Bench:
    """One run of eight paid items, four at a time; something happens while the first four are in flight."""

    def __init__(self, folder: Path, size: int) -> None:
        self.disk = RefusingDisk()
        self.clock = FakeClock()
        self.store = FileStore(folder / "runs", self.clock, disk=self.disk)
        self.asked: list[str] = []
        self._size = size
        self._together = threading.Barrier(AT_ONCE, self._act)
        self.happens: Any = None
        #: All replies but the first come only after the disk has refused something.
        self.one_by_one = False
        self.pipeline = Pipeline("eight", [step("make")(self._make), step("sum")(_sum)])

    def _act(self) -> None:
        if self.happens is not None:
            self.happens()

    def _make(self, ctx: StepContext) -> Mapping[str, Any]:
        def one(ctx: StepContext, item: int) -> int:
            request = Request(MODEL, [Message("user", f"item {item}")], max_tokens=30_000)
            return len(ctx.ask(request).text)

        return {"lengths": list(ctx.map("item", range(ITEMS), one, key=str))}

    def _answer(self, request: Request) -> str:
        self.asked.append(request.messages[0].text)
        if self.happens is not None:
            arrived = self._together.wait(100)
            if self.one_by_one and arrived:
                self.disk.refused.wait(100)
        return "x" * self._size

    def go(self, run: str | None = None) -> RunResult:
        model = ScriptedModel(self._answer, model_id=MODEL, paid=True)
        options = {"concurrency": AT_ONCE}
        if run is None:
            return self.pipeline.run(store=self.store, model=model, options=options, clock=self.clock)
        return self.pipeline.resume(run, store=self.store, model=model, options=options, clock=self.clock)

    def mended(self) -> None:
        """The disk is fine again."""
        self.disk.room, self.disk.writes, self.disk.every_sync = None, 0, 0
        self.disk.write_errors, self.disk.sync_errors = [], []
        self.happens = None

    def finish(self, run: str) -> None:
        """Resume to the end; nothing was asked twice, and the ledger is exact."""
        result = self.go(run)
        assert result.status == "completed", result.error
        assert result.outputs["sum"] == {"length": ITEMS * self._size}
        assert sorted(self.asked) == [f"item {item}" for item in range(ITEMS)]
        total = spent(load(self.store, run))
        assert (total.calls, total.low, total.high) == (ITEMS, Decimal(0), Decimal(0))


def _sum(ctx: StepContext) -> Mapping[str, Any]:
    return {"length": sum(ctx.outputs["make"]["lengths"])}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.fixture(params=[10, 60_000], ids=["short", "long"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """Replies that fit into a record, and such as go into a blob."""
    return Bench(tmp_path, request.param)


def emergency(result: RunResult) -> Path:
    """Where the error says that it kept what the disk refused."""
    assert result.error is not None
    file = Path(result.error.data["emergency"])
    assert f"recover {result.run_id} {file}" in result.error.hint
    return file


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_write_refused_once_is_not_noticed(bench: Bench, code: int) -> None:
    def refuse_once() -> None:
        bench.disk.write_errors = [code]
        bench.happens = None

    bench.happens = refuse_once
    result = bench.go()
    bench.mended()
    if result.status != "completed":
        # Space ran out for a moment: the reserve took what was in flight, so nothing more was started.
        assert code == errno.ENOSPC
        assert result.exit_code == 3
    bench.finish(result.run_id)


def test_full_disk_records_what_is_in_flight_from_the_reserve(bench: Bench) -> None:
    bench.disk.room = 4 << 20
    bench.happens = lambda: setattr(bench.disk, "room", 0)
    result = bench.go()
    assert (result.status, result.exit_code) == ("in_progress", 3)
    assert "disk is full" in str(result.error)
    assert len(bench.asked) == AT_ONCE, "nothing more was started"
    bench.mended()
    assert not load(bench.store, result.run_id).open_calls
    bench.finish(result.run_id)


@pytest.mark.parametrize("one_by_one", [False, True], ids=["together", "one by one"])
@pytest.mark.parametrize(
    ("refused", "code"), [("writes", errno.ENOSPC), ("writes", errno.EIO), ("every_sync", errno.EIO)]
)
def test_writes_and_syncs_refused_for_good_keep_every_reply_in_the_emergency_file(
    bench: Bench, refused: str, code: int, one_by_one: bool
) -> None:
    bench.one_by_one = one_by_one
    bench.happens = lambda: setattr(bench.disk, refused, code)
    result = bench.go()
    assert (result.status, result.exit_code) == ("in_progress", 3)
    assert len(bench.asked) == AT_ONCE
    bench.mended()
    if refused == "writes":
        assert len(load(bench.store, result.run_id).open_calls) == AT_ONCE
    file = emergency(result)
    taken = recover(bench.store, result.run_id, file)
    assert taken >= AT_ONCE or refused == "every_sync"
    assert not file.exists()
    assert not load(bench.store, result.run_id).open_calls
    bench.finish(result.run_id)


def test_one_failed_sync_ends_the_run_and_loses_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 10)
    bench.happens = lambda: bench.disk.sync_errors.append(errno.EIO)
    result = bench.go()
    assert (result.status, result.exit_code) == ("in_progress", 3)
    bench.mended()
    recover(bench.store, result.run_id, emergency(result))
    bench.finish(result.run_id)


def test_reply_that_takes_no_file_of_its_own_stands_in_its_record(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 60_000)

    def refuse_once() -> None:
        bench.disk.sync_errors = [errno.EIO]
        bench.happens = None

    bench.happens = refuse_once
    assert bench.go().status == "completed"
    assert len(bench.asked) == ITEMS
