"""Leaving at once: signals are obeyed, and what ended while the store does not answer is kept elsewhere.

Also what is told of a store that does not answer.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline import Event
from pipeline.clock import SystemClock
from pipeline.engine import watches
from pipeline.engine.events import Emitter
from pipeline.engine.recorder import Recorder
from pipeline.engine.stop import run_with_signals
from pipeline.engine.watches import watching_store
from pipeline.errors import Pause
from pipeline.records.charge import Charge
from pipeline.records.fold import Builder
from pipeline.records.kinds import CallEnded, CallStarted, Fact
from pipeline.store import availability
from pipeline.store.availability import Availability
from pipeline.store.files import FileStore
from pipeline.store.journal import RunJournal
from pipeline.store.reader import load
from tests.journals import AT, StillClock, started

PAID = Charge("exact", Decimal(1), Decimal(1)).to_json()
Threads = Callable[..., Future[int]]


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
        assert self.answers.wait(120)


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
    for key in "kl":
        made.append(CallStarted("s#1", key, "m", "r", worst="2"))
        frozen.asked.acquire()
    return made


@pytest.fixture
def threads(frozen: Frozen) -> Iterator[Threads]:
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit
        frozen.answers.set()


def end(call: int, text: bytes = b'{"text":"x"}') -> Fact:
    return CallEnded(call, text, PAID, stop_reason="end_turn")


def taken_over(store: FileStore, frozen: Frozen) -> tuple[Decimal, Decimal, int]:
    """What the next owner finds spent, once the process and its locks are gone."""
    frozen._journal.close()
    store.open(frozen._journal.run_id).close()
    state = load(store, frozen._journal.run_id)
    return state.total.usd, state.total.high, len(state.open_calls)


def test_ends_that_wait_for_a_frozen_store_are_kept_and_stand_in_the_run_afterwards(
    store: FileStore, frozen: Frozen, recorder: Recorder, threads: Threads
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
    assert taken_over(store, frozen) == (Decimal(2), Decimal(0), 0)
    assert not Path(kept).exists()
    frozen.answers.set()
    for one in (first, second):
        with pytest.raises(Pause):
            one.result()


def test_long_reply_that_is_just_being_stored_is_kept_whole(
    store: FileStore, frozen: Frozen, recorder: Recorder, threads: Threads
) -> None:
    frozen.answers.clear()
    text = "x" * 100_000
    threads(recorder.fit_reply, {"text": text}, lambda data: end(2, data))
    frozen.asked.acquire()
    assert text in Path(recorder.leave_behind(0)).read_text()
    assert taken_over(store, frozen)[0] == 1


def test_call_whose_record_is_written_after_all_is_not_sent(
    frozen: Frozen, recorder: Recorder, threads: Threads
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


def _until_main_thread_waits() -> None:
    """Return when the main thread stood twice in a row at the same place of `threading`."""
    seen: tuple[object, int] | None = None
    while True:
        frame = sys._current_frames()[threading.main_thread().ident or 0]
        now = (frame.f_code, frame.f_lasti)
        if now == seen and "join" in (frame.f_code.co_name, frame.f_back and frame.f_back.f_code.co_name):
            return
        seen = now
        threading.Event().wait(0.01)


def test_signal_that_another_thread_received_is_obeyed_while_the_work_goes_on() -> None:
    obeyed, heard, in_time = threading.Event(), list[str](), list[bool]()

    def first(name: str) -> None:
        heard.append(name)
        obeyed.set()

    def work() -> None:
        _until_main_thread_waits()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        in_time.append(obeyed.wait(120))

    run_with_signals(work, first, lambda: None)
    assert (heard, in_time) == (["SIGTERM"], [True])


def _rest() -> None:
    threading.Event().wait(300)


def _pid(_: int) -> int:
    return os.getpid()


def test_child_that_a_step_forks_handles_signals_as_if_there_was_no_run() -> None:
    fork = multiprocessing.get_context("fork")
    codes, pids, heard = list[int | None](), list[int](), list[str]()

    def work() -> None:
        for _ in range(5):
            child = fork.Process(target=_rest)
            child.start()
            # At once: the signal may be there before the child is.
            child.terminate()
            child.join(120)
            codes.append(child.exitcode)
            child.kill()
        with fork.Pool(2) as pool:
            pids.extend(pool.map(_pid, range(4)))

    before = signal.getsignal(signal.SIGTERM)
    run_with_signals(work, heard.append, lambda: None)
    assert (codes, len(pids), heard) == ([-signal.SIGTERM] * 5, 4, [])
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> queue.Queue[Event]:
    # Stores of other tests may be silent still.
    monkeypatch.setattr(availability, "_all", weakref.WeakSet())
    monkeypatch.setattr(watches, "_SAID_AFTER", 0.05)
    monkeypatch.setattr(watches, "_LOOK_SECONDS", 0.01)
    return queue.Queue()


def test_silent_store_is_told_of_once_and_that_it_answers_again_unless_it_was_given_up(
    told: queue.Queue[Event],
) -> None:
    server = Availability()
    with watching_store(Emitter(SystemClock(), [told.put])):
        with server.asked():
            first = told.get(timeout=120)
        second = told.get(timeout=120)
        with server.asked():
            third = told.get(timeout=120)
            server.give_up()
        with server.asked():
            fourth = told.get(timeout=120)
    server.answered()
    assert [first.type, second.type, third.type, fourth.type] == ["waiting", "note", "waiting", "waiting"]
    assert 0 < first.data["seconds"] <= 45
    assert datetime.fromisoformat(first.data["until"]) > datetime.fromisoformat(first.at)
    assert told.empty()


class _Looks(threading.Event):
    """Set once it was waited for this often."""

    def __init__(self, many: int) -> None:
        super().__init__()
        self._left = many

    def wait(self, timeout: float | None = None) -> bool:
        self._left -= 1
        return self._left < 0


def test_silence_that_grows_as_long_as_the_last_one_between_two_looks_is_told_of(
    told: queue.Queue[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, kinds = iter([1.0, 2.0]), list[str]()
    monkeypatch.setattr(availability, "since", lambda: next(begun, 0.0))
    watches._watch(Emitter(SystemClock(), [lambda event: kinds.append(event.type)]), _Looks(3))
    assert kinds == ["waiting", "note", "waiting", "note"]
