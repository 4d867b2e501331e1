"""Servers that let a program in once: `?single=1` never asks for a second connection, and says so where it must."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from pipeline import LayerCheckpoints, WorkflowState
from pipeline.errors import ConfigError, PipelineError, RunExists, StoreError, WriteFailed
from pipeline.records.kinds import CallStarted, StepStarted
from pipeline.store.address import parse_store_url
from pipeline.store.copies import copy
from pipeline.store.memory import MemoryStore
from pipeline.store.runs import RunStore
from pipeline.store.sql.backend import SqlBackend, open_sql
from pipeline.store.sql.connections import close_all
from pipeline.store.sql.postgres import PostgresDatabase
from tests.contract import harm
from tests.journals import AT, CLAIM, StillClock, line, small_run, started
from tests.layered import chain
from tests.servers.pglite import PGlite
from tests.servers.pglite import pglite as pglite
from tests.servers.pglite import pglite_server as pglite_server
from tests.servers.postgres import Postgres, name_of
from tests.stores import ids, seqs, write

_ROLES = count(1)


def step(seq: int) -> bytes:
    return line(seq, StepStarted(f"s{seq}#1"))


def guest(postgres: Postgres, url: str) -> str:
    """The URL of a database of which a user is the owner who may connect once."""
    role = f"once_{next(_ROLES)}"
    postgres.execute("postgres", f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")
    postgres.execute("postgres", f"ALTER DATABASE {name_of(url)} OWNER TO {role}")
    return url.replace("tests@", f"{role}@")


def own_rows(store: RunStore, sql: str) -> list[tuple[Any, ...]]:
    """What a query finds over the only connection."""
    return list(harm.database(store).ask(lambda link: link.execute(sql).fetchall()))


def told(url: str) -> str:
    """How a server that wants other settings says so, once it has noticed that its last client is gone."""
    for _ in range(1000):
        try:
            SqlBackend(harm.database(open_sql(url, StillClock()))).tables.ready(True)
        except ConfigError as error:
            return error.hint
        except StoreError:
            continue
    raise AssertionError("the server never let anybody in")


@pytest.fixture
def once(postgres: Postgres, postgresql: str) -> Iterator[str]:
    yield guest(postgres, postgresql)
    close_all()


@pytest.fixture(params=["limited", "pglite"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "pglite":
        server = request.getfixturevalue("pglite")
        assert isinstance(server, PGlite)
        return server.url
    return f"{request.getfixturevalue('once')}?single=1"


@pytest.fixture
def store(url: str) -> RunStore:
    return open_sql(url, StillClock())


def test_state_of_a_layered_run_is_saved_loaded_found_and_pruned(store: RunStore) -> None:
    """What seeds/003 does with its table in PGlite, through the class that stands for its CheckpointManager."""
    checkpoints = LayerCheckpoints(store)
    state = WorkflowState(
        "w1",
        messages=[{"role": "agent", "content": "zero \0 and ü"}],
        tasks=[{"taskId": "a", "result": {"big": "x" * 50_000}, "timestamp": "2026-01-09T14:30:22Z", "duration": 3.0}],
        decisions=[{"type": "AIL", "outcome": "continue"}],
        context={"exact": 12345678901234567890, "half": 0.1},
    )
    saved = []
    for layer in range(7):
        state.context["layer"] = layer
        saved.append(checkpoints.save_checkpoint(state, chain(3), layer_index=layer).id)
        assert state.checkpoint_id == saved[-1]
    rows = own_rows(store, "SELECT id, layer_index, state #>> '{context,exact}' FROM workflow_checkpoints ORDER BY seq")
    assert [row[:2] for row in rows] == list(zip(saved, range(7), strict=True))[-len(rows) :]
    assert rows[-1][2] == "12345678901234567890"

    close_all()
    later = LayerCheckpoints(open_sql(store.url, StillClock()))
    assert later.load(saved[-1]).state == state
    newest = later.latest("w1")
    assert newest
    assert (newest.id, newest.layer_index) == (saved[-1], 6)
    later.prune_old_checkpoints("w1", keep_count=2)
    assert [kept["id"] for kept in later.listed("w1")] == saved[:-3:-1]
    rows = own_rows(open_sql(store.url, StillClock()), "SELECT id FROM workflow_checkpoints ORDER BY seq DESC")
    assert [row[0] for row in rows] == saved[:-3:-1]


def test_claim_is_looked_for_within_the_transaction_that_makes_the_run(store: RunStore) -> None:
    write(store, [started(CLAIM)], claim=CLAIM)
    with pytest.raises(RunExists):
        store.create(started(CLAIM), [], at=AT, claim=CLAIM)
    assert len(ids(store)) == 1


def test_journal_account_and_values_share_the_connection(store: RunStore) -> None:
    run, journal = store.create(started(), [b"first"], at=AT)
    blob = journal.put_blob(b"second\0")
    journal.append(2, [step(2), line(3, CallStarted("s#1", "key", "model", blob))])
    account = store.account()
    assert account.reserve(run, Decimal("0.7"), AT, Decimal(1))
    assert account.reserve(run, Decimal("0.7"), AT, Decimal(1)) is None
    journal.close()
    again = store.open(run)
    again.append(4, [step(4)], sync=False)
    assert seqs(store, run) == [1, 2, 3, 4]
    assert again.get_blob(blob) == b"second\0"
    again.close()
    other = MemoryStore(StillClock())
    assert [copied.records for copied in copy(store, other, StillClock())] == [4]
    store.delete(run)
    assert [copied.records for copied in copy(other, store, StillClock())] == [4]
    assert list(store.read(run)) == list(other.read(run))


def test_threads_take_turns(store: RunStore) -> None:
    journals = [store.create(started(), [], at=AT)[1] for _ in range(4)]

    def fill(number: int) -> list[str]:
        for seq in range(2, 12):
            journals[number].append(seq, [step(seq)])
            list(store.read(journals[number].run_id))
        return ids(store)

    with ThreadPoolExecutor(4) as threads:
        assert [len(seen) for seen in threads.map(fill, range(4))] == [4] * 4
    for journal in journals:
        journal.close()
        assert len(list(store.read(journal.run_id))) == 11


def test_error_within_a_transaction_leaves_the_connection_usable(store: RunStore) -> None:
    assert store.account().kept() == {}
    store.account().keep("20260109_143022", {"usd": "1"})
    with pytest.raises(WriteFailed):
        harm.database(store).write(lambda link: link.many("enter", [(1, 1, b"", None), (1, 1, b"", None)]))
    assert list(store.account().kept()) == ["20260109_143022"]


def test_second_program_is_told_that_one_is_served_at_a_time(store: RunStore, url: str) -> None:
    journal = store.create(started(), [], at=AT)[1]
    second = PostgresDatabase(parse_store_url(url))
    with pytest.raises(StoreError) as caught:
        second.ask(lambda link: link.row("etag", "none"))
    assert "serves one at a time" in caught.value.hint
    journal.append(2, [step(2)])
    journal.close()
    close_all()
    assert second.ask(lambda link: link.execute("SELECT MAX(seq) FROM records").fetchone())[0] == 2
    second.close()


def test_server_that_lets_in_once_is_said_to_need_the_setting(once: str) -> None:
    database = harm.database(open_sql(once, StillClock()))
    with pytest.raises(PipelineError) as caught:
        database.ask(lambda _: database.ask(lambda link: link.row("etag", "none")))
    assert "?single=1" in caught.value.hint


@pytest.mark.parametrize(
    ("asked", "missing"), [("", "?single=1&unsafe=1"), ("?unsafe=1", "single=1"), ("?single=1", "unsafe=1")]
)
def test_pglite_is_known_and_its_settings_are_asked_for(pglite: PGlite, asked: str, missing: str) -> None:
    assert missing in told(pglite.bare + asked)
    assert pglite.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]


def test_killed_pglite_keeps_what_was_told(pglite: PGlite) -> None:
    store = open_sql(pglite.url, StillClock())
    run = write(store, small_run())
    before = list(store.read(run))
    pglite.kill()
    pglite.start()
    close_all()
    assert list(open_sql(pglite.url, StillClock()).read(run)) == before
