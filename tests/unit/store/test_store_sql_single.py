"""One connection in turns: who waits, who does not, and what is said of servers that let nobody in."""

from __future__ import annotations

import pytest

from pipeline.store.address import parse_store_url
from pipeline.store.sql.postgres import connected, refusal

URL = "postgresql://postgres@127.0.0.1:5432/postgres"


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
        ("no answer came", False, "Check that the server runs"),
    ],
)
def test_what_to_do_depends_on_what_the_server_did(words: str, single: bool, hint: str) -> None:
    assert hint in refusal("", words, parse_store_url(URL + "?single=1" * single)).hint


@pytest.mark.parametrize(
    ("query", "single", "unsafe"),
    [("", False, False), ("?single=1", True, False), ("?single=0", False, False), ("?unsafe=1&single=1", True, True)],
)
def test_settings_of_ours_are_not_the_drivers(query: str, single: bool, unsafe: bool) -> None:
    address = parse_store_url(URL + query)
    assert (address.single, address.unsafe) == (single, unsafe)
    assert address.url == URL + query
    assert "single" not in address.dsn
    assert "unsafe" not in address.dsn
