"""Harm done to stores, for tests: damaged bytes, other owners, lost answers. How a store keeps things is known here."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pipeline.clock import Clock, SystemClock
from pipeline.errors import StoreError
from pipeline.store import availability as silence_of
from pipeline.store import lease
from pipeline.store.backend import claim_text, folder_key
from pipeline.store.base import Account, Claim, Store
from pipeline.store.files import FileStore
from pipeline.store.ledger import BackendAccount
from pipeline.store.objects import keys, tail
from pipeline.store.objects.address import parse_address
from pipeline.store.objects.backend import ObjectBackend
from pipeline.store.objects.bucket import Bucket
from pipeline.store.owner import process
from pipeline.store.runs import RunStore
from pipeline.store.sql import postgres
from pipeline.store.sql.backend import SqlBackend
from pipeline.store.sql.connections import Database, close_all
from tests.journals import StillClock
from tests.servers.postgres import Cable

#: An owner on another machine.
_ELSEWHERE = {"host": "elsewhere", "pid": 7, "space": "x", "boot": "y", "started": "z", "since": "then"}
_NOW = {
    True: "((julianday('now') - 2440587.5) * 86400.0)",
    False: "extract(epoch from clock_timestamp())::double precision",
}
#: A store in a bucket.
BucketStore = RunStore
#: After how long an owner on another host that says nothing has lost its run.
TTL_SECONDS = lease.TTL_SECONDS
#: Statements that commit an append or a transaction.
_COMMITS = (b"COMMIT", b"INSERT INTO records", b"UPDATE objects")


# --- Damaged bytes ---


def record(store: Store, run: str, seq: int, data: bytes | None) -> None:
    """Put other bytes in the place of a record, or take it away."""
    if is_sql(store):
        where = f"journal = {_number(store, run)} AND seq = {seq}"
        done = change(store, f"DELETE FROM records WHERE {where}") if data is None else _line(store, where, data)
        assert done == 1
    elif isinstance(store, FileStore):
        path = _folder(store, run) / "journal.jsonl"
        path.write_bytes(_changed(path.read_bytes(), seq, data))
    else:
        bucket = bucket_of(store)
        key = max(key for number in range(1, seq + 1) if bucket.get(key := keys.journal(run, number)))
        left = _changed(bytes_at(store, key), seq, data)
        if left:
            bucket.put(key, left)
        else:
            bucket.delete([key])


def move(store: Store, run: str, seq: int, to: int) -> None:
    """Give a record another number than it says (databases)."""
    assert change(store, f"UPDATE records SET seq = {to} WHERE journal = {_number(store, run)} AND seq = {seq}") == 1


def more(store: Store, run: str, seq: int, data: bytes) -> None:
    """Enter bytes as one more record (databases)."""
    assert (
        change(store, f"INSERT INTO records (journal, seq, line) VALUES ({_number(store, run)}, {seq}, ?)", data) == 1
    )


def head(store: Store, run: str, data: bytes) -> None:
    """Put other bytes in the place of a head."""
    assert change(store, f"UPDATE objects SET data = ? WHERE key = 'runs/{run}/head'", data) == 1


def values(store: Store, run: str, data: bytes | None, *, blob: str = "", longer: int = 0) -> None:
    """Put other bytes in the place of values of a run, or take them away.

    Args:
        blob: This one; else all.
        longer: Only those that are kept in more bytes than that.
    """
    first, behind = f"runs/{run}/blobs/{blob}", f"runs/{run}/blobs/{blob}~"
    where = f"key >= '{first}' AND key < '{behind}' AND LENGTH(data) > {longer}"
    if data is None:
        assert change(store, f"DELETE FROM objects WHERE {where}")
    else:
        assert change(store, f"UPDATE objects SET data = ? WHERE {where}", data)


def kept(store: Store, run: str, name: str) -> bytes:
    """Return what a repair has kept under a name."""
    if is_sql(store):
        ((data,),) = rows(store, f"SELECT data FROM objects WHERE key = '{folder_key(run)}/x/{name}'")
        return bytes(data)
    if isinstance(store, FileStore):
        return (_folder(store, run) / name).read_bytes()
    return bytes_at(store, f"runs/{run}/x/{name}")


# --- Owners ---


def elsewhere(store: Store, heard: float) -> None:
    """Have another machine own every journal, last heard of so many seconds ago by the database's clock."""
    sql = f"UPDATE journals SET holder = ?, beat_at = {_NOW[is_file(store)]} - {heard}"
    assert change(store, sql, json.dumps(_ELSEWHERE))


def beat(journal: Any) -> bool:
    """Have an owner say that it lives; whether it still is the owner."""
    journal._lease.renew()
    return not journal._lease.lost


def from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this thread be on another machine; others stay on this one."""
    here, there = process(), threading.current_thread()

    def named() -> dict[str, object]:
        return {**here, "host": "elsewhere"} if threading.current_thread() is there else here

    monkeypatch.setattr(lease, "process", named)


def tick(journal: Any) -> None:
    """Have an owner write what it holds back, as it does by itself twice a second."""
    journal.flush()


def silence(journal: Any) -> None:
    """Have an owner write nothing by itself any more."""
    journal._lease._tick = None


def epoch(store: Store, run: str) -> int:
    """Return how many owners a journal has had."""
    if not is_sql(store):
        found = bucket_of(store).get(keys.lease(run))
        return int(json.loads(found.data)["epoch"]) if found else 0
    ((number,),) = rows(store, f"SELECT epoch FROM journals WHERE journal = {_number(store, run)}")
    return int(number)


def holder(store: Store, run: str) -> str:
    """Return who owns a journal, as the database has it; "" if nobody does."""
    ((text,),) = rows(store, f"SELECT holder FROM journals WHERE journal = {_number(store, run)}")
    return str(text)


def left(store: Any, run: str) -> int:
    """Return how often former owners left something beside a run."""
    return len(list(store.backend.list(f"{folder_key(run)}/late/")))


def remove(store: Store, run: str) -> None:
    """Remove a run behind the back of its owner."""
    number = _number(store, run)
    for table in ("records", "journals"):
        change(store, f"DELETE FROM {table} WHERE journal = {number}")


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have owners say that they live, or that they left, twice a second."""
    monkeypatch.setattr(lease, "BEAT_SECONDS", 0.5)


# --- Buckets ---


def open_bucket(url: str, clock: Clock, *, retries: int = 5) -> BucketStore:
    """Return the store in a bucket, as another process opens it."""
    return RunStore(ObjectBackend(Bucket(parse_address(url), retries=retries)), clock)


def bucket_of(store: Store) -> Bucket:
    """Return the objects of a store."""
    assert isinstance(store, RunStore)
    assert isinstance(store.backend, ObjectBackend)
    return store.backend.bucket


def bytes_at(store: Store, key: str) -> bytes:
    """Return the bytes of an object, which must be there."""
    found = bucket_of(store).get(key)
    assert found
    return found.data


def account_of(store: Any) -> Account:
    """Return the account of the same place."""
    return BackendAccount(store.backend, StillClock())


def prove(store: Any) -> None:
    """Have a store look now whether its server honours conditional puts."""
    store.backend._prove()


def claimants(store: Store, claim: Claim) -> list[str]:
    """Return the runs that the bucket lists below a claim."""
    assert isinstance(store, RunStore)
    return [tip.run for tip in store.backend.tips(claim_text(claim.to_json())) if not tip.leftover]


def segment_appends(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have so many appends be written once more as a segment."""
    monkeypatch.setattr(tail, "SEGMENT_APPENDS", number)


def confirm_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an owner ask before each record whether it still is the owner."""
    monkeypatch.setattr(tail, "CONFIRM_SECONDS", -1)


# --- Answers ---


def cut_commit(cable: Cable, when: str) -> list[str]:
    """Cut the connection at the next commit: "before" the server has it, or "after", so that its answer is lost."""
    cuts: list[str] = []

    def cut(data: bytes) -> str:
        if not cuts and any(mark in data for mark in _COMMITS):
            cuts.append(when)
            return when
        return ""

    cable.cut = cut
    return cuts


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a server that says nothing be given up within some seconds; a busy one answers sooner."""
    monkeypatch.setattr(postgres, "ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 5)
    monkeypatch.setattr(silence_of, "PATIENCE_SECONDS", 2.0)


def answered(store: Any) -> None:
    """Have a store know that its server answers again."""
    store.backend.database.silence.answered()


@contextlib.contextmanager
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """While no database takes anything."""

    def refuse(self: Database, *_: object, **__: object) -> object:
        raise StoreError("The server does not answer.", code="database_silent")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "ask", refuse)
        yield


@contextlib.contextmanager
def full(store: Any, pages: int) -> Iterator[None]:
    """While a SQLite file may grow by so many pages only."""
    (there,) = ask(store, "PRAGMA page_count")
    ask(store, f"PRAGMA max_page_count = {there + pages}")
    yield
    ask(store, "PRAGMA max_page_count = 100000")


def ask(store: Any, sql: str) -> Any:
    """Return the first row of a query over the store's own connection."""

    return tuple(store.backend.database.ask(lambda link: link.execute(sql).fetchone()))


# --- The same place, seen by others ---


@contextlib.contextmanager
def another(store: Any, clock: Clock | None = None) -> Iterator[RunStore]:
    """The same database as another process sees it."""
    database = type(store.backend.database)(store.backend.database.address)
    yield RunStore(SqlBackend(database), clock or SystemClock())
    database.close()


def database(store: Store) -> Database:
    """Return the database of a store."""
    backend = store.backend if isinstance(store, RunStore) else None
    assert isinstance(backend, SqlBackend)
    return backend.database


def close() -> None:
    """Close all connections of this process."""
    close_all()


def is_sql(store: Store) -> bool:
    return store.url.startswith(("sqlite:", "postgresql:"))


def is_file(store: Store) -> bool:
    """Whether it is a SQLite file."""
    return store.url.startswith("sqlite:")


def rows(store: Store, sql: str, *given: object) -> list[tuple[Any, ...]]:
    """Return what people find who query the database."""
    return _run(store, sql, given)[0]


def change(store: Store, sql: str, *given: object) -> int:
    """Change the database by hand; how many rows."""
    return _run(store, sql, given)[1]


def _run(store: Store, sql: str, given: tuple[object, ...]) -> tuple[list[tuple[Any, ...]], int]:
    if is_file(store):
        with closing(sqlite3.connect(store.url.removeprefix("sqlite:"), timeout=30)) as link, link:
            link.text_factory = lambda data: data.decode(errors="surrogateescape")
            found = link.execute(sql, given)
            return found.fetchall() if found.description else [], found.rowcount
    with psycopg.connect(store.url.partition("?")[0]) as server:
        answer = server.execute(sql.replace("?", "%s").encode(), given)
        return answer.fetchall() if answer.description else [], answer.rowcount


def _line(store: Store, where: str, data: bytes) -> int:
    return change(store, f"UPDATE records SET line = ? WHERE {where}", data)


def _number(store: Store, run: str) -> int:
    ((number,),) = rows(store, f"SELECT journal FROM journals WHERE run = '{run}'")
    return int(number)


def _folder(store: FileStore, run: str) -> Path:
    run_id, _, part = run.partition("/")
    home = Path(store.root, run_id)
    return next(home.rglob(part)) if part else home


def _changed(journal: bytes, seq: int, data: bytes | None) -> bytes:
    lines = journal.splitlines(keepends=True)
    place = next(number for number, one in enumerate(lines) if one.startswith(b'{"seq":%d,' % seq))
    lines[place : place + 1] = [] if data is None else [data + b"\n"]
    return b"".join(lines)
