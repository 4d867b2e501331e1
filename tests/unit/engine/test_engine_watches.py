"""A store that does not answer is told of, until when it is asked again, and that it answers."""

from __future__ import annotations

import queue
import threading
import weakref
from datetime import datetime

import pytest

from pipeline.clock import SystemClock
from pipeline.engine import watches
from pipeline.engine.events import Emitter, Event
from pipeline.engine.watches import watching_store
from pipeline.store import availability
from pipeline.store.availability import Availability


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> queue.Queue[Event]:
    # Stores of other tests may be silent still.
    monkeypatch.setattr(availability, "_all", weakref.WeakSet())
    monkeypatch.setattr(watches, "_SAID_AFTER", 0.05)
    monkeypatch.setattr(watches, "_LOOK_SECONDS", 0.01)
    return queue.Queue()


def test_silent_store_is_told_of_once_and_that_it_answers_again(told: queue.Queue[Event]) -> None:
    server = Availability()
    with watching_store(Emitter(SystemClock(), [told.put])):
        with server.asked():
            first = told.get(timeout=30)
        second = told.get(timeout=30)
    assert first.type == "waiting"
    assert first.data["reason"] == "the store does not answer; trying again"
    assert 0 < first.data["seconds"] <= 45
    assert datetime.fromisoformat(first.data["until"]) > datetime.fromisoformat(first.at)
    assert second.type == "note"
    assert "answers again" in second.data["text"]


def test_store_that_was_given_up_does_not_answer_again(told: queue.Queue[Event]) -> None:
    server = Availability()
    with watching_store(Emitter(SystemClock(), [told.put])):
        with server.asked():
            told.get(timeout=30)
            server.give_up()
        with server.asked():
            assert told.get(timeout=30).type == "waiting"
    server.answered()
    assert told.empty()


def test_silence_that_grows_as_long_as_the_last_one_between_two_looks_is_told_of(
    told: queue.Queue[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = iter([1.0, 2.0])
    monkeypatch.setattr(availability, "since", lambda: next(begun, 0.0))
    kinds: list[str] = []
    watches._watch(Emitter(SystemClock(), [lambda event: kinds.append(event.type)]), _Looks(3))
    assert kinds == ["waiting", "note", "waiting", "note"]


class _Looks(threading.Event):
    """Set once it was waited for this often."""

    def __init__(self, many: int) -> None:
        super().__init__()
        self._left = many

    def wait(self, timeout: float | None = None) -> bool:
        self._left -= 1
        return self._left < 0
