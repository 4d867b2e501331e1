"""One connection in turns: who waits, who does not, and what is said of servers that let nobody in."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest

from pipeline.errors import ConfigError, StoreError
from pipeline.store.sql.address import parse_address
from pipeline.store.sql.single import Turns, connected, refuse_one_by_one, way_in

URL = "postgresql://postgres@127.0.0.1:5432/postgres"


class Lender:
    """Lends numbered things, and notes which are given back."""

    def __init__(self) -> None:
        self.lent = 0
        self.back: list[int] = []

    @contextlib.contextmanager
    def lend(self) -> Iterator[int]:
        self.lent += 1
        number = self.lent
        try:
            yield number
        finally:
            self.back.append(number)


def test_what_a_thread_has_in_hand_it_is_lent_again() -> None:
    turns, lender = Turns(URL), Lender()
    with turns.turn(lender.lend) as outer:
        with turns.turn(lender.lend) as inner:
            assert inner == outer == 1
        assert lender.back == []
    assert lender.back == [1]
    with turns.turn(lender.lend) as later:
        assert later == 2


def test_turn_that_ends_in_an_error_is_over() -> None:
    turns, lender = Turns(URL), Lender()
    with pytest.raises(KeyError), turns.turn(lender.lend), turns.turn(lender.lend):
        raise KeyError
    with turns.turn(lender.lend) as later:
        assert (later, lender.back) == (2, [1])


def elsewhere(turns: Turns, lender: Lender) -> object:
    """What another thread is lent, or the error that it gets."""
    found: list[object] = []

    def other() -> None:
        try:
            with turns.turn(lender.lend) as lent:
                found.append(lent)
        except StoreError as error:
            found.append(error.message)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    return found[0]


def test_turn_that_never_comes_is_an_error_and_no_hang() -> None:
    turns, lender = Turns(URL, seconds=0), Lender()
    with turns.turn(lender.lend):
        assert "was not free within 0 s" in str(elsewhere(turns, lender))
        assert lender.lent == 1
    assert elsewhere(turns, lender) == 2


def test_forked_child_does_not_wait_for_a_turn_of_its_parent() -> None:
    turns, lender = Turns(URL, seconds=0), Lender()
    with turns.turn(lender.lend):
        turns.drop()
        assert elsewhere(turns, lender) == 2


def test_server_that_has_not_noticed_that_its_client_died_is_asked_again() -> None:
    answers: list[object] = [
        ConnectionError("server closed the connection unexpectedly"),
        ConnectionError("busy"),
        "in",
    ]

    def connect() -> object:
        answer = answers.pop(0)
        if isinstance(answer, ConnectionError):
            raise answer
        return answer

    assert connected(connect, (ConnectionError,)) == "in"


def test_port_where_nobody_listens_is_asked_once() -> None:
    asked = []

    def connect() -> object:
        asked.append(1)
        raise ConnectionError("connection failed: Connection refused")

    with pytest.raises(ConnectionError):
        connected(connect, (ConnectionError,))
    assert asked == [1]


@pytest.mark.parametrize(
    ("words", "single", "hint"),
    [
        ("connection failed: server closed the connection unexpectedly", False, "add ?single=1"),
        ("connection timeout expired", False, "add ?single=1"),
        ("connection failed: server closed the connection unexpectedly", True, "it serves one at a time"),
        ("connection failed: Connection refused", True, "Check that the server runs"),
        ("permission denied for table runs", False, "Check that the server runs"),
    ],
)
def test_way_in_depends_on_what_the_server_did(words: str, single: bool, hint: str) -> None:
    assert hint in way_in(words, single)


def test_pglite_is_known_by_its_version_and_others_are_let_be() -> None:
    refuse_one_by_one(URL, "PostgreSQL 18.0 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit")
    with pytest.raises(ConfigError, match="PGlite") as caught:
        refuse_one_by_one(URL, "PostgreSQL 18.6 (PGlite 0.5.14) on wasm32-unknown-emscripten, 32-bit")
    assert "?single=1&unsafe=1" in caught.value.hint


@pytest.mark.parametrize(
    ("query", "single", "unsafe"),
    [("", False, False), ("?single=1", True, False), ("?single=0", False, False), ("?unsafe=1&single=1", True, True)],
)
def test_settings_of_ours_are_not_the_drivers(query: str, single: bool, unsafe: bool) -> None:
    address = parse_address(URL + query)
    assert (address.single, address.unsafe) == (single, unsafe)
    assert address.url == URL + query
    assert "single" not in address.dsn
    assert "unsafe" not in address.dsn
