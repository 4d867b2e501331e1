"""Leaving at once while the store does not answer: what ended is kept elsewhere, and nothing is acted on any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.engine.recorder import Recorder
from pipeline.errors import Pause
from pipeline.records.charge import Charge
from pipeline.records.fold import Builder
from pipeline.records.kinds import CallEnded, CallStarted, Fact
from pipeline.store.files import FileStore
from pipeline.store.journal import RunJournal
from pipeline.store.reader import load
from tests.journals import AT, StillClock, started

PAID = Charge("exact", Decimal(1), Decimal(1)).to_json()


class Frozen:
    """A journal whose store stops to answer, and answers again when the test says so."""

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal
        self.answers = threading.Event()
        self.answers.set()
        self.asked = threading.Semaphore(0)

    def __getattr__(self, name: str) -> object:
        return getattr(self._journal, name)

    def append(self, first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
        self._wait()
        self._journal.append(first_seq, lines, sync)

    def put_blob(self, data: bytes) -> str:
        self._wait()
        return self._journal.put_blob(data)

    def _wait(self) -> None:
        self.asked.release()
        assert self.answers.wait(30)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return FileStore(tmp_path / "runs", StillClock())


@pytest.fixture
def frozen(store: FileStore) -> Frozen:
    return Frozen(store.create(started(), [], at=AT)[1])


@pytest.fixture
def recorder(frozen: Frozen) -> Recorder:
    builder = Builder(frozen._journal.run_id)
    made = Recorder(frozen, builder, StillClock(), owner=1, nodes=[], warn=print)  # type: ignore[arg-type]
    made.append(CallStarted("s#1", "k", "m", "r", worst="2"))
    made.append(CallStarted("s#1", "l", "m", "r", worst="2"))
    frozen.asked.acquire()
    frozen.asked.acquire()
    return made


@pytest.fixture
def threads(frozen: Frozen) -> Iterator[Callable[..., Future[int]]]:
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit
        frozen.answers.set()


def end(call: int, text: bytes = b'{"text":"x"}') -> Fact:
    return CallEnded(call, text, PAID, stop_reason="end_turn")


def test_ends_that_wait_for_a_frozen_store_are_kept_and_stand_in_the_run_afterwards(
    store: FileStore, frozen: Frozen, recorder: Recorder, threads: Callable[..., Future[int]]
) -> None:
    frozen.answers.clear()
    first = threads(recorder.append, end(2))
    frozen.asked.acquire()
    second = threads(recorder.append, end(3))
    while not recorder._queue:
        assert not second.done()
    kept = recorder.leave_behind(0)
    assert kept
    assert load(store, frozen._journal.run_id).total.usd == 0
    # The process is gone, and its locks with it.
    frozen._journal.close()
    store.open(frozen._journal.run_id).close()
    state = load(store, frozen._journal.run_id)
    assert (state.total.usd, state.total.high, len(state.open_calls)) == (Decimal(2), Decimal(0), 0)
    assert not Path(kept).exists()
    frozen.answers.set()
    for one in (first, second):
        with pytest.raises(Pause):
            one.result()


def test_long_reply_that_is_just_being_stored_is_kept_whole(
    store: FileStore, frozen: Frozen, recorder: Recorder, threads: Callable[..., Future[int]]
) -> None:
    frozen.answers.clear()
    text = "x" * 100_000
    threads(recorder.fit_reply, {"text": text}, lambda data: end(2, data))
    frozen.asked.acquire()
    kept = recorder.leave_behind(0)
    assert text in Path(kept).read_text()
    frozen._journal.close()
    store.open(frozen._journal.run_id).close()
    assert load(store, frozen._journal.run_id).total.usd == 1


def test_call_whose_record_is_written_after_all_is_not_sent(
    frozen: Frozen, recorder: Recorder, threads: Callable[..., Future[int]]
) -> None:
    frozen.answers.clear()
    begun = threads(recorder.append, CallStarted("s#1", "m", "m", "r", worst="2"))
    frozen.asked.acquire()
    recorder.leave_behind(0)
    frozen.answers.set()
    with pytest.raises(Pause):
        begun.result()


def test_leaving_a_store_that_answers_keeps_nothing_elsewhere(recorder: Recorder) -> None:
    assert recorder.leave_behind(0) == ""
    with pytest.raises(Pause):
        recorder.append(CallStarted("s#1", "m", "m", "r"))
