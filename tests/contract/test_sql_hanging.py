"""A database that takes what it is sent and says nothing: the run ends in bounded time, and what it told stays."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.errors import StoreError, WriteFailed
from pipeline.records.kinds import StepStarted
from pipeline.store import availability
from pipeline.store.base import Store
from pipeline.store.url import open_store
from tests.contract import harm
from tests.journals import AT, line, started
from tests.servers.postgres import Cable, Postgres, name_of
from tests.servers.postgres import cable as cable

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
    assert harm.ask(store, "SELECT pg_sleep(1.5), 7")[1] == 7


def _silent_for() -> float:
    since = availability.since()
    return SystemClock().monotonic() - since if since else 0.0


def test_silence_is_known_while_it_lasts(store: Store, hanging: threading.Event) -> None:
    journal = store.create(started(), [], at=AT)[1]
    assert _silent_for() < 0.2
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
