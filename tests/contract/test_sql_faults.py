"""Databases that go away, fill up, lose answers or say no: what was told stays, what was not is kept elsewhere."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest

from pipeline.clock import SystemClock
from pipeline.errors import ConfigError, PipelineError, RunLocked, StoreError, WriteFailed
from pipeline.records.kinds import CallStarted, StepStarted
from pipeline.store import availability
from pipeline.store.address import parse_store_url
from pipeline.store.base import Journal, Movable, Store
from pipeline.store.recovery import recover
from pipeline.store.sql import postgres as postgres_store
from pipeline.store.url import open_account, open_store
from tests.contract import harm
from tests.journals import AT, StillClock, line, started
from tests.servers.postgres import Cable, Postgres, name_of
from tests.servers.postgres import cable as cable
from tests.stores import seqs

WRITER = """
import sys
from pipeline.clock import SystemClock
from pipeline.store.url import open_account, open_store
from pipeline.records.kinds import CallStarted, StepStarted
from tests.journals import line
journal = open_store(sys.argv[1]).open(sys.argv[2])
for seq in range(journal.last_seq + 1, 100_000):
    journal.append(seq, [line(seq, StepStarted(f"s{seq}#1"))])
    print(seq, flush=True)
"""


def step(seq: int) -> bytes:
    return line(seq, StepStarted(f"s{seq}#1"))


@pytest.fixture
def cut_off(cable: Cable, postgres: Postgres, postgresql: str) -> Iterator[Store]:
    """A store behind a cable that can be cut."""
    yield open_store(postgres.url(name_of(postgresql), cable.port), StillClock())
    harm.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("count", [1, 2])
def test_append_whose_connection_is_cut_is_there_once(cut_off: Store, cable: Cable, when: str, count: int) -> None:
    run, journal = cut_off.create(started(), [], at=AT)
    cuts = harm.cut_commit(cable, when)
    begun = line(2, CallStarted("s#1", "key", "model", "blob"))
    journal.append(2, [begun if count > 1 else step(2), *map(step, range(3, 2 + count))])
    assert cuts == [when]
    journal.append(2 + count, [step(2 + count)])
    assert seqs(cut_off, run) == list(range(1, 3 + count))


def test_server_that_stays_away_leaves_the_records_in_a_file(cut_off: Store, cable: Cable) -> None:
    run, journal = cut_off.create(started(), [], at=AT)
    journal.append(2, [step(2)])
    cable.cut = lambda data: "before"
    with pytest.raises(WriteFailed) as caught:
        journal.append(3, [step(3)])
    assert caught.value.data["fatal"]
    cable.cut = lambda data: ""
    path = Path(caught.value.data["emergency"])
    assert seqs(cut_off, run) == [1, 2]
    journal.close()
    recover(cast(Movable, cut_off), run, path)
    assert seqs(cut_off, run) == [1, 2, 3]
    assert not path.exists()


def test_restarted_server_costs_a_wait_only(postgres: Postgres, postgresql: str) -> None:
    store = open_store(postgresql, SystemClock())
    run, journal = store.create(started(), [], at=AT)
    postgres.stop("fast")
    postgres.start()
    journal.append(2, [step(2)])
    journal.close()
    assert seqs(store, run) == [1, 2]


def test_values_wait_for_a_restarted_server(postgres: Postgres, postgresql: str) -> None:
    journal = open_store(postgresql, SystemClock()).create(started(), [], at=AT)[1]
    with ThreadPoolExecutor(1) as pool:
        postgres.stop("fast")
        again = pool.submit(postgres.start)
        blob = journal.put_blob(b"value")
        again.result()
        postgres.stop("fast")
        again = pool.submit(postgres.start)
        assert journal.get_blob(blob) == b"value"
        again.result()
    journal.close()


def test_account_and_runs_wait_for_a_restarted_server(postgres: Postgres, postgresql: str) -> None:
    store = open_store(postgresql, SystemClock())
    account = open_account(store.url, SystemClock())
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    assert account.total(AT.date()) == 0
    slices: list[str] = []

    def reserve() -> None:
        slices.append(str(account.reserve("me", Decimal(3), AT, Decimal(5))))

    looks: list[Callable[[], object]] = [
        reserve,
        lambda: account.settle(slices[0], Decimal(2)),
        lambda: account.total(AT.date()),
        lambda: store.open(run).close(),
        lambda: seqs(store, run),
    ]
    with ThreadPoolExecutor(1) as pool:
        for look in looks:
            postgres.stop("fast")
            again = pool.submit(postgres.start)
            look()
            again.result()
    assert account.total(AT.date()) == 2
    assert seqs(store, run) == [1]


@pytest.mark.parametrize("when", ["before", "after"])
def test_reservation_whose_connection_is_cut_is_made_once(cut_off: Store, cable: Cable, when: str) -> None:
    account = open_account(cut_off.url, SystemClock())
    assert account.reserve("me", Decimal(1), AT, Decimal(5))
    cuts = harm.cut_commit(cable, when)
    name = account.reserve("me", Decimal(3), AT, Decimal(5))
    assert cuts == [when]
    assert account.total(AT.date()) == 4
    assert name
    account.settle(name, Decimal(2))
    assert account.total(AT.date()) == 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_run_whose_owner_is_cut_off_as_it_takes_it_is_owned_once(cut_off: Store, cable: Cable, when: str) -> None:
    run, journal = cut_off.create(started(), [], at=AT)
    journal.close()
    cuts = harm.cut_commit(cable, when)
    journal = cut_off.open(run)
    assert cuts == [when]
    with pytest.raises(RunLocked):
        cut_off.open(run)
    journal.append(2, [step(2)])
    journal.close()
    assert seqs(cut_off, run) == [1, 2]
    assert harm.epoch(cut_off, run) == 2


def test_server_that_was_never_there_is_not_waited_for(postgres: Postgres) -> None:
    clock = Counting()
    with pytest.raises(StoreError, match="does not exist"):
        list(open_store(postgres.url("no_such"), clock).read("20260109_143022"))
    with pytest.raises(StoreError, match="refused"):
        open_store("postgresql://tests@127.0.0.1:1/none", clock).open("20260109_143022")
    assert clock.waited == 0


class Counting(StillClock):
    """Counts how often it was waited for."""

    waited = 0

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.waited += 1
        return event.is_set()


def fill(journal: Journal) -> None:
    for seq in range(2, 1000):
        journal.append(seq, [line(seq, StepStarted("s" * 5000 + "#1"))])


def test_full_disk_loses_nothing_that_was_told(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path}/runs.db", StillClock())
    run, journal = store.create(started(), [], at=AT)
    with harm.full(store, 2):
        with pytest.raises(WriteFailed, match="full") as caught:
            fill(journal)
        path, told = Path(caught.value.data["emergency"]), journal.last_seq
        assert seqs(store, run) == list(range(1, told + 1))
        journal.close()
    recover(cast(Movable, store), run, path)
    assert seqs(store, run) == list(range(1, told + 2))


def test_servers_default_of_serializable_changes_nothing(postgres: Postgres, postgresql: str) -> None:
    name = name_of(postgresql)
    postgres.execute("postgres", f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    store = open_store(postgresql, SystemClock())
    account = open_account(store.url, SystemClock())
    journals = [store.create(started(), [], at=AT)[1] for _ in range(4)]

    def work(number: int) -> bool:
        for seq in range(2, 6):
            journals[number].append(seq, [step(seq)])
        return sum(bool(account.reserve("me", Decimal("0.7"), AT, Decimal(10))) for _ in range(5)) >= 0

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))
    assert account.total(AT.date()) == Decimal("9.8")
    assert [journal.last_seq for journal in journals] == [5, 5, 5, 5]


def test_server_that_forgets_at_power_loss_is_refused_unless_asked_for(postgres: Postgres, postgresql: str) -> None:
    name = name_of(postgresql)
    postgres.execute("postgres", "ALTER SYSTEM SET fsync = off")
    try:
        postgres.execute("postgres", "SELECT pg_reload_conf()")
        while postgres.execute(name, "SHOW fsync") != [("off",)]:
            pass
        with pytest.raises(ConfigError, match="fsync=off") as caught:
            list(open_store(postgresql, StillClock()).heads())
        assert "unsafe=1" in caught.value.hint
        assert list(open_store(postgresql + "?unsafe=1", StillClock()).heads()) == []
    finally:
        postgres.execute("postgres", "ALTER SYSTEM RESET fsync")
        postgres.execute("postgres", "SELECT pg_reload_conf()")
        while postgres.execute(name, "SHOW fsync") != [("on",)]:
            pass


def test_commits_are_durable_also_where_the_database_says_otherwise(postgres: Postgres, postgresql: str) -> None:
    postgres.execute("postgres", f"ALTER DATABASE {name_of(postgresql)} SET synchronous_commit = off")
    assert harm.ask(open_store(postgresql, StillClock()), "SHOW synchronous_commit") == ("on",)


def test_password_is_in_no_message(postgres: Postgres) -> None:
    url = f"postgresql://nobody:hunter2@127.0.0.1:{postgres.port}/no_such"
    store = open_store(url, StillClock())
    assert store.url == f"postgresql://nobody@127.0.0.1:{postgres.port}/no_such"
    with pytest.raises(PipelineError) as caught:
        list(store.heads())
    for text in (str(caught.value), caught.value.hint, repr(caught.value.data), repr(parse_store_url(url))):
        assert "hunter2" not in text
    assert "hunter2" not in repr(replace(parse_store_url(url), url=""))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_record_without_a_sync_is_seen_by_others_at_the_next_tick(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("postgresql") if kind == "postgresql" else f"sqlite:{tmp_path}/runs.db"
    store = open_store(url, SystemClock())
    run, journal = store.create(started(), [], at=AT)
    journal.append(2, [step(2)], sync=False)
    with harm.another(store) as other:
        for _ in range(3000):
            if seqs(other, run) == [1, 2]:
                break
            SystemClock().wait(threading.Event(), 0.02)
        assert seqs(other, run) == [1, 2]
        journal.append(3, [step(3)], sync=False)
        assert seqs(store, run) == [1, 2, 3]
        journal.append(4, [step(4)], sync=False)
        journal.close()
        assert seqs(other, run) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@[/x",
        "postgresql://u:hunter2@h",
        "postgresql://h/d?password=hunter2",
        "sqlite:",
        "sqlite:/",
    ],
)
def test_url_that_names_no_database_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url, StillClock())
    assert "hunter2" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_was_told_survives_a_kill_and_nothing_owns_the_run(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("postgresql") if kind == "postgresql" else f"sqlite:{tmp_path}/runs.db"
    store = open_store(url, SystemClock())
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    for lines in (1, 7, 40):
        told = kill_after(url, run, lines)
        there = seqs(store, run)
        assert there == list(range(1, len(there) + 1))
        assert told <= there[-1] <= told + 1
    assert not next(store.heads()).owned
    store.open(run).close()


def kill_after(url: str, run: str, lines: int) -> int:
    """Kill a writer once it has told of so many appends; the last one that it told of."""
    command = [sys.executable, "-c", WRITER, url, run]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}) as writer:
        assert writer.stdout
        told = [writer.stdout.readline() for _ in range(lines)]
        writer.send_signal(signal.SIGKILL)
        return int([*told, *writer.stdout.read().split()][-1])


def test_forked_child_leaves_the_connections_to_its_parent(postgresql: str) -> None:
    store = open_store(postgresql, StillClock())
    run, journal = store.create(started(), [], at=AT)
    child = os.fork()
    if child == 0:
        failed = 1
        try:
            journal.append(2, [step(2)])
        except WriteFailed:
            failed = 0
        os._exit(failed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    journal.append(2, [step(2)])
    assert seqs(store, run) == [1, 2]


STEPS = [line(seq, StepStarted(f"s{seq}#1")) for seq in range(2, 9)]


@pytest.fixture
def hanging(cable: Cable) -> threading.Event:
    """Set: the server is sent what the client sends, once it is cleared."""
    answers = threading.Event()
    answers.set()

    def wait(data: bytes) -> str:
        assert answers.wait(60)
        return ""

    cable.cut = wait
    return answers


@pytest.fixture
def store(
    cable: Cable, hanging: threading.Event, postgres: Postgres, postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    harm.impatient(monkeypatch)
    yield open_store(postgres.url(name_of(postgresql), cable.port), SystemClock())
    hanging.set()
    harm.close()


def test_append_that_is_never_answered_ends_and_is_kept(store: Store, hanging: threading.Event) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.append(2, STEPS[:1])
    hanging.clear()
    with pytest.raises(WriteFailed, match="does not answer") as caught:
        journal.append(3, STEPS[1:2])
    with pytest.raises(WriteFailed):
        journal.append(4, STEPS[2:3])
    kept = Path(caught.value.data["emergency"])
    assert STEPS[1] in kept.read_bytes()
    with pytest.raises(StoreError, match="does not answer"):
        list(store.heads())
    hanging.set()
    journal.close()
    harm.answered(store)
    store.open(run).close()
    assert [one.split(b",")[0] for one in store.read(run)] == [b'{"seq":%d' % seq for seq in range(1, 5)]


def test_value_that_is_never_answered_ends(store: Store, hanging: threading.Event) -> None:
    journal = store.create(started(), [], at=AT)[1]
    hanging.clear()
    with pytest.raises(StoreError, match="does not answer"):
        journal.put_blob(b"value")


def test_statement_that_takes_long_is_left_alone(store: Store) -> None:
    assert harm.ask(store, "SELECT pg_sleep(3), 7")[1] == 7


def test_statement_that_the_server_knows_nothing_of_is_made_again(
    cut_off: Store, cable: Cable, postgres: Postgres, postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As where its machine was started again, and nobody has told the client.
    assert harm.ask(cut_off, "SELECT 7") == (7,)
    monkeypatch.setattr(postgres_store, "ANSWER_SECONDS", 0.5)
    name = name_of(postgresql)
    waits = f"FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = '{name}'"
    with postgres.connect(name) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("SELECT pg_advisory_lock(7)")
        asked = pool.submit(harm.ask, cut_off, "SELECT pg_advisory_lock(7), 7")
        while not postgres.execute("postgres", f"SELECT pid {waits}"):
            assert not asked.done()
        cable.hush()
        postgres.execute("postgres", f"SELECT pg_terminate_backend(pid) {waits}")
        holder.execute("SELECT pg_advisory_unlock(7)")
        assert asked.result()[1] == 7


def _silent_for() -> float:
    since = availability.since()
    return SystemClock().monotonic() - since if since else 0.0


def test_silence_is_known_while_it_lasts(store: Store, hanging: threading.Event) -> None:
    journal = store.create(started(), [], at=AT)[1]
    hanging.clear()

    def store_value() -> None:
        with contextlib.suppress(StoreError):
            journal.put_blob(b"value")

    failing = threading.Thread(target=store_value)
    failing.start()
    while _silent_for() < 0.3:
        assert failing.is_alive()
    failing.join()
    hanging.set()
