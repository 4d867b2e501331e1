"""The first connections to a file that nobody has made yet meet each other: each waits, and succeeds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pipeline.clock import SystemClock
from pipeline.store.address import parse_store_url
from pipeline.store.runs import RunStore
from pipeline.store.sql.backend import SqlBackend
from pipeline.store.sql.sqlite import SqliteDatabase
from tests.journals import AT, started
from tests.stores import ids

AT_ONCE = 4
BEGIN = """
import sys
from pipeline.clock import SystemClock
from pipeline.store.url import open_store
from tests.journals import AT, started
store = open_store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
store.create(started(), [], at=AT)[1].close()
"""


def store_at(file: Path) -> RunStore:
    """A store as another process has it: with connections of its own."""
    return RunStore(SqlBackend(SqliteDatabase(parse_store_url(f"sqlite:{file}"))), SystemClock())


def at_once(act: Callable[[RunStore], object], file: Path) -> None:
    together = threading.Barrier(AT_ONCE)

    def begin(store: RunStore) -> None:
        together.wait()
        act(store)

    stores = [store_at(file) for _ in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(begin, store) for store in stores]:
            done.result()
    for store in stores:
        store.backend.database.close()  # type: ignore[attr-defined]


def test_threads_that_begin_a_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    for number in range(20):
        file = tmp_path / f"{number}.db"
        at_once(lambda store: store.create(started(), [], at=AT)[1].close(), file)
        store = store_at(file)
        assert len(ids(store)) == AT_ONCE
        store.backend.database.close()  # type: ignore[attr-defined]


def test_threads_that_open_a_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    at_once(lambda store: store.create(started(), [], at=AT)[1].close(), file)
    for _ in range(20):
        at_once(lambda store: ids(store), file)


def test_processes_that_begin_a_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    for number in range(2):
        url = f"sqlite:{tmp_path}/{number}.db"
        command = [sys.executable, "-c", BEGIN, url]
        environ = {**os.environ, "PYTHONPATH": "."}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        all_of_them = [subprocess.Popen(command, env=environ, **pipes) for _ in range(AT_ONCE)]  # type: ignore[call-overload]
        for one in all_of_them:
            assert one.stdout.readline() == b"ready\n"
        for one in all_of_them:
            one.stdin.write(b"\n")
            one.stdin.flush()
        for one in all_of_them:
            one.communicate()
            assert one.returncode == 0
        store = store_at(tmp_path / f"{number}.db")
        assert len(ids(store)) == AT_ONCE
        store.backend.database.close()  # type: ignore[attr-defined]
