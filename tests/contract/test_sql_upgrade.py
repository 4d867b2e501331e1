"""Databases with the tables of the version before: `store upgrade` brings all of it along, in one transaction."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import tarfile
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import StoreError, WriteFailed
from pipeline.records.charge import Charge
from pipeline.records.kinds import CallEnded, DocumentKept
from pipeline.records.values import digest
from pipeline.store.integrity import check
from pipeline.store.runs import RunStore
from pipeline.store.sql.backend import open_sql
from pipeline.store.values import packed
from tests.contract import harm
from tests.golden import books
from tests.journals import AT, StillClock, line, small_run
from tests.servers.postgres import Postgres

ARCHIVE = Path(books.__file__).parent / "stores-2.tar.xz"
GONE, KEPT = "20260101_000000", "20260102_000000"
PAID = line(1, CallEnded(26, b'{"text":"late"}', Charge("exact", Decimal("0.5"), Decimal("0.5")).to_json()))
DOCUMENT = {
    "type": "checkpoint", "id": "c1", "workflow_id": "w", "timestamp": "2026-01-09T14:30:22.000Z", "layer_index": 3,
    "state": {"a": 1}, "dag": {"tasks": []}, "config": {"keepCount": 2},
}  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> RunStore:
    """A half-done book as the version before left it, and rows of each kind that it does not have."""
    name = f"book_{request.param}"
    with tarfile.open(ARCHIVE) as file:
        members = [member for member in file if member.name.partition("/")[0] == name]
        file.extractall(tmp_path, members, filter="data")
    if request.param == "sqlite":
        store = open_sql(f"sqlite:{tmp_path}/{name}/runs.db", StillClock())
    else:
        server: Postgres = request.getfixturevalue("postgres")
        store = open_sql(server.database(), StillClock())
        words = ["-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(server.port), "-U", "tests"]
        dump = ["-f", str(tmp_path / name / "dump.sql"), "-d", store.url.rpartition("/")[2]]
        subprocess.run([server._bin / "psql", *words, *dump], check=True, stdout=subprocess.DEVNULL)
    _fill(store)
    return store


def _fill(store: RunStore) -> None:
    ((run,),) = harm.rows(store, "SELECT run FROM journals")
    sums = {"spend": [{"day": "2026-01-02", "model": "m", "calls": 2, "usd": "0.36", "outcome": "used"}]}
    harm.change(store, "INSERT INTO kept (run_id, sums) VALUES (?, ?)", KEPT, json.dumps(sums))
    harm.change(store, "INSERT INTO slices VALUES ('s', '2026-01-09', 'me', '1.5', 0)")
    charge = "'2026-01-01T00:00:00.000Z', '2026-01-01', 'm', 'call', 'exact', 4, 4"
    harm.change(store, f"INSERT INTO charges VALUES (77, 2, ?, ?, {charge})", GONE, GONE)
    harm.change(
        store,
        "INSERT INTO journals (run, run_id, path, stem, width, claim) VALUES (?, ?, 'late-1', ?, 15, '')",
        f"{run}/late-1",
        run,
        run,
    )
    document = line(28, DocumentKept(json.dumps(DOCUMENT).encode(), "casys"))
    for name, row, seq in ((f"{run}/late-1", PAID, 1), (run, document, 28)):
        harm.more(store, name, seq, row.rstrip(b"\n"))
    kept = digest(b"damaged")
    harm.change(store, "INSERT INTO blobs VALUES (?, ?, ?)", run, kept, packed(b"damaged"))


def everything(store: RunStore) -> dict[str, list[tuple[Any, ...]]]:
    """What an old database holds, by table."""
    tables = ("journals", "leases", "records", "blobs", "slices", "kept", "charges")
    return {table: sorted(harm.rows(store, f"SELECT * FROM {table}"), key=str) for table in tables}


def test_all_that_an_older_database_holds_is_there_after_the_upgrade(old: RunStore) -> None:
    before = everything(old)
    with pytest.raises(StoreError) as caught:
        list(old.heads())
    assert caught.value.code == "schema_too_old"
    assert old.upgrade() == ("0005", "0006")
    assert old.upgrade() == ("0006", "0006")
    (run,) = [head.run_id for head in old.heads()]
    lines = [(row[0], row[1], bytes(row[2])) for row in before["records"]]
    rows = harm.rows(old, "SELECT journal, seq, line FROM records")
    assert sorted((number, seq, bytes(data)) for number, seq, data in rows) == sorted(lines)
    assert {old.get_blob(run, str(row[1])) for row in before["blobs"]} > {b"damaged"}
    ((_, day, owner, usd, _),) = [row for row in before["slices"] if row[0] != "s"]
    assert (owner, old.account().total(AT.date())) == (owner, Decimal("1.5"))
    old.account().settle("s", Decimal(1))
    assert old.account().total(AT.date()) == 1
    assert usd in str(old.backend.get(f"account/{day}"))
    assert old.account().kept()[KEPT]["spend"][0]["usd"] == "0.36"
    assert old.written_head(run)["run_id"] == run
    assert list(old.account().flaws()) == []


def test_what_people_query_says_the_same_after_the_upgrade(old: RunStore) -> None:
    said = (
        "SELECT run, call, model, label, state, CAST(low AS REAL), CAST(high AS REAL) FROM charges ORDER BY run, call"
    )
    costs = "SELECT day, model, calls, CAST(low_usd AS REAL), open_calls FROM costs_by_day ORDER BY 1, 2"
    runs = "SELECT run_id, pipeline, status, started_at, updated_at, total_cost_usd, owned FROM runs"
    before = [harm.rows(old, sql) for sql in (said, costs, runs)]
    old.upgrade()
    assert harm.rows(old, said) == before[0]
    kept = [row for row in harm.rows(old, costs) if str(row[0]) == "2026-01-02"]
    assert [row[2:] for row in kept] == [(2, pytest.approx(0.36), 0)]
    assert [row for row in harm.rows(old, costs) if row not in kept] == before[1]
    assert harm.rows(old, runs) == before[2]
    ((name, index, state),) = harm.rows(old, "SELECT id, layer_index, state FROM workflow_checkpoints")
    assert (name, index) == ("c1", 3)
    assert (json.loads(state) if isinstance(state, str) else state) == {"a": 1}


def test_what_an_old_owner_left_is_taken_in_by_the_next(old: RunStore) -> None:
    old.upgrade()
    (run,) = [head.run_id for head in old.heads()]
    old.open(run).close()
    assert old.parts(run) == []
    assert sum(b'"late"' in one for one in old.read(run)) == 1


def test_upgrade_that_is_refused_changes_nothing(old: RunStore) -> None:
    harm.change(old, "CREATE TABLE objects (x int)")
    before = everything(old)
    with pytest.raises(WriteFailed) as caught:
        old.upgrade()
    assert caught.value.code == "name_taken"
    assert everything(old) == before
    harm.change(old, "DROP TABLE objects")
    old.upgrade()
    assert not [problem for problem in check(old, old.account()) if problem.serious]


def test_run_that_begins_after_the_upgrade_gets_a_number_that_none_had(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as file:
        file.extract("book_sqlite/runs.db", tmp_path, filter="data")
    path = tmp_path / "book_sqlite" / "runs.db"
    with closing(sqlite3.connect(path)) as link, link:
        link.execute("UPDATE sqlite_sequence SET seq = 40 WHERE name = 'journals'")
    store = open_sql(f"sqlite:{path}", StillClock())
    store.upgrade()
    run = store.create(small_run()[0], [], at=AT)[0]
    assert harm.rows(store, f"SELECT journal FROM journals WHERE run = '{run}'") == [(41,)]
