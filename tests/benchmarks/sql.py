"""Stores in a database against a bare insert in the same one: python -m tests.benchmarks.sql."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import psycopg

from pipeline.clock import SystemClock
from pipeline.records.codec import decode_line
from pipeline.records.documents import head_document
from pipeline.records.fold import fold
from pipeline.records.kinds import StepCompleted, StepStarted, TaskCompleted
from pipeline.store.head import head_bytes
from pipeline.store.reader import load
from pipeline.store.runs import RunStore
from pipeline.store.sql.backend import SqlBackend, open_sql
from pipeline.store.sql.connections import Link, close_all
from tests.benchmarks.measure import folder, say
from tests.journals import AT, line, small_run, started
from tests.servers.postgres import Postgres, name_of

_STEPS, _RUNS, _TASKS = 300, 10_000, 1_000


def timed(act: Callable[[int], object], count: int) -> list[float]:
    """Milliseconds of each."""
    times = []
    for number in range(count):
        begun = time.perf_counter()
        act(number)
        times.append((time.perf_counter() - begun) * 1000)
    return times


def bare_lite(home: Path) -> Callable[[int], object]:
    link = sqlite3.connect(home / "bare.db", isolation_level=None)
    for sql in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE t (a INTEGER PRIMARY KEY, b)"):
        link.execute(sql)

    def act(number: int) -> None:
        link.execute("BEGIN IMMEDIATE")
        link.execute("INSERT INTO t (b) VALUES (?)", (b"x" * 300,))
        link.execute("COMMIT")

    return act


def bare_server(url: str) -> Callable[[int], object]:
    link = psycopg.connect(url, autocommit=True)
    link.execute("CREATE TABLE t (a BIGSERIAL PRIMARY KEY, b BYTEA)")

    def act(number: int) -> None:
        with link.transaction():
            link.execute("INSERT INTO t (b) VALUES (%s)", (b"x" * 300,))

    return act


def steps(store: RunStore) -> Callable[[int], object]:
    """A step: its start, written at once, and its end, synced."""
    _, journal = store.create(started(), [], at=AT)

    def act(number: int) -> None:
        seq = journal.last_seq + 1
        journal.append(seq, [line(seq, StepStarted(f"s{number}#1"))], sync=False)
        done = StepCompleted(f"s{number}#1", {"text": "x" * 200}, f"{number:032x}")
        journal.append(seq + 1, [line(seq + 1, done)])

    return act


def many(store: RunStore) -> None:
    """Runs that are there, not made one by one."""
    lines = [one.rstrip(b"\n") for one in small_run()]
    size = sum(len(one) + 1 for one in lines)
    state = fold("r", map(decode_line, lines))
    base = 1_000_000
    names = [f"2026{number // 1000 + 1:02d}01_{number:06d}" for number in range(_RUNS)]
    heads = [head_bytes({**head_document(state, size, ["seed"]), "run_id": name}) for name in names]
    journals = [(base + n, name, name, name) for n, name in enumerate(names)]
    sql = (
        "INSERT INTO journals (journal, run, run_id, path, stem, width, claim, epoch, holder, beat_at)"
        " VALUES (?, ?, ?, '', ?, 15, '', 1, '', 0)"
    )

    def enter(link: Link) -> None:
        link.connection.cursor().executemany(sql if link.dialect == "sqlite" else sql.replace("?", "%s"), journals)
        link.many("put_any", [(f"runs/{name}/head", "e", head) for name, head in zip(names, heads, strict=True)])
        link.many("enter", [(base + n, seq, one, None) for n in range(_RUNS) for seq, one in enumerate(lines, 1)])

    assert isinstance(store.backend, SqlBackend)
    store.backend.database.write(enter)


def newest(store: RunStore) -> list[float]:
    def act(_: int) -> None:
        heads = store.heads()
        for _ in range(50):
            next(heads).document["status"]

    return timed(act, 20)


def resumed(store: RunStore) -> list[float]:
    run, journal = store.create(started(), [], at=AT)
    facts = [TaskCompleted("write#1", str(number), b'{"text":"%b"}' % (b"y" * 200)) for number in range(_TASKS)]
    journal.append(2, [line(2, StepStarted("write#1"))])
    journal.append(3, [line(seq, fact) for seq, fact in enumerate(facts, 3)])
    journal.close()

    def act(_: int) -> None:
        opened = store.open(run)
        load(store, run)
        opened.close()

    return timed(act, 10)


def measure(name: str, store: RunStore, bare: Callable[[int], object]) -> None:
    step = steps(store)
    timed(bare, 20), timed(step, 20)
    # In turns, so that both meet the same disk.
    pairs = [(timed(bare, 1)[0], timed(step, 1)[0]) for _ in range(_STEPS)]
    say(f"{name}: a step, against a bare commit", median(b for _, b in pairs) / median(a for a, _ in pairs), 1.5, "×")
    say(f"{name}: P95 of a step", sorted(b for _, b in pairs)[int(_STEPS * 0.95)], 50, "ms")
    say(f"{name}: resume of {_TASKS} tasks", min(resumed(store)), 100, "ms")
    many(store)
    say(f"{name}: newest 50 of {_RUNS}", min(newest(store)), 10, "ms")


def main() -> None:
    with folder() as home:
        measure("sqlite", open_sql(f"sqlite:{home}/runs.db", SystemClock()), bare_lite(home))
    with tempfile.TemporaryDirectory(prefix="pg") as place:
        server = Postgres(Path(place))
        try:
            url = server.database()
            measure("postgresql", open_sql(url, SystemClock()), bare_server(server.url(name_of(url))))
        finally:
            close_all()
            server.stop()


if __name__ == "__main__":
    main()
