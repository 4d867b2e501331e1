"""Signals are obeyed whichever thread the system hands them to."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from types import FrameType

from pipeline.engine.stop import run_with_signals


def _main_frame() -> FrameType:
    ident = threading.main_thread().ident
    assert ident is not None
    return sys._current_frames()[ident]


def _until_main_thread_waits() -> None:
    """Return when the main thread stood twice in a row at the same place of `threading`."""
    seen: tuple[object, int] | None = None
    while True:
        frame = _main_frame()
        now = (frame.f_code, frame.f_lasti)
        if now == seen and "join" in (frame.f_code.co_name, frame.f_back and frame.f_back.f_code.co_name):
            return
        seen = now
        threading.Event().wait(0.01)


def test_signal_that_another_thread_received_is_obeyed_while_the_work_goes_on() -> None:
    obeyed = threading.Event()
    heard: list[str] = []
    in_time: list[bool] = []

    def first(name: str) -> None:
        heard.append(name)
        obeyed.set()

    def work() -> None:
        _until_main_thread_waits()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        in_time.append(obeyed.wait(5))

    run_with_signals(work, first, lambda: None)
    assert (heard, in_time) == (["SIGTERM"], [True])


def _rest() -> None:
    threading.Event().wait(60)


def _pid(_: int) -> int:
    return os.getpid()


def test_child_that_a_step_forks_handles_signals_as_if_there_was_no_run() -> None:
    fork = multiprocessing.get_context("fork")
    codes: list[int | None] = []
    pids: list[int] = []

    def work() -> None:
        for _ in range(5):
            child = fork.Process(target=_rest)
            child.start()
            # At once: the signal may be there before the child is.
            child.terminate()
            child.join(20)
            codes.append(child.exitcode)
            child.kill()
        with fork.Pool(2) as pool:
            pids.extend(pool.map(_pid, range(4)))

    before = signal.getsignal(signal.SIGTERM)
    heard: list[str] = []
    run_with_signals(work, heard.append, lambda: None)
    assert (codes, len(pids), heard) == ([-signal.SIGTERM] * 5, 4, [])
    assert signal.getsignal(signal.SIGTERM) == before
