"""Databases that let nobody in, or not far enough: the cause is said, and what to type."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.errors import PipelineError, StoreError, WriteFailed
from pipeline.store.sql import file as lite
from pipeline.store.sql.address import parse_address
from pipeline.store.sql.refusals import refusal, sentence
from pipeline.store.sql.store import open_sql
from tests.journals import AT, started
from tests.servers.postgres import Postgres, name_of

ADDRESS = parse_address("postgresql://o%27neil@db.example.org:5433/my%20runs")
FATAL = 'connection failed: connection to server at "10.0.0.1", port 5433 failed: FATAL: '


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("connection failed: connection to server failed: fe_sendauth: no password supplied", "Set PGPASSWORD"),
        (f'{FATAL}password authentication failed for user "o\'neil"', "Set PGPASSWORD to the password of o'neil, or"),
        (
            f'{FATAL}database "my runs" does not exist',
            """Make it: createdb -h db.example.org -p 5433 -U 'o'"'"'neil' 'my runs'""",
        ),
        (f'{FATAL}role "o\'neil" does not exist', "Name a user that the server has"),
        (f'{FATAL}no pg_hba.conf entry for host "10.0.0.2", no encryption', "pg_hba.conf let this user in"),
    ],
)
def test_server_that_lets_nobody_in_is_told_apart_by_what_it_lacks(words: str, hint: str) -> None:
    said = refusal("", words, ADDRESS)
    assert said.lasting
    assert hint in said.hint


def test_server_that_may_let_in_later_is_asked_again() -> None:
    for words in (f"{FATAL}the database system is starting up", "connection failed: Connection refused"):
        assert not refusal("", words, ADDRESS).lasting


def test_what_the_driver_adds_is_no_part_of_what_is_said() -> None:
    assert sentence("permission denied for schema public LINE 2: CREATE TABLE alembic_version ( ^") == (
        "permission denied for schema public"
    )
    two = "port 1 failed: Connection refused Is the server running on that host and accepting TCP/IP connections?"
    assert sentence(f"{two} {two}") == "port 1 failed: Connection refused port 1 failed: Connection refused"


def test_database_that_is_not_there_is_said_with_how_to_make_it(postgres: Postgres) -> None:
    with pytest.raises(StoreError, match='database "no_such" does not exist') as caught:
        list(open_sql(postgres.url("no_such"), SystemClock()).heads())
    assert caught.value.hint == f"Make it: createdb -h 127.0.0.1 -p {postgres.port} -U tests no_such"


def test_rights_that_are_missing_are_named_and_once_given_enough(postgres: Postgres, postgresql: str) -> None:
    name = name_of(postgresql)
    user = f"weak_{name}"
    postgres.execute(name, f"CREATE ROLE {user} LOGIN")
    url = postgresql.replace("tests@", f"{user}@")
    for first, told in ((True, "USAGE, CREATE ON SCHEMA"), (False, "UPDATE, DELETE ON ALL TABLES IN SCHEMA")):
        if not first:
            open_sql(postgresql, SystemClock()).upgrade()
        with pytest.raises(PipelineError, match="permission denied for") as caught:
            open_sql(url, SystemClock()).create(started(), [], at=AT)
        assert told in caught.value.hint
        assert "LINE" not in caught.value.message
    for grant in caught.value.hint.split("type: ")[1].split(";")[:2]:
        postgres.execute(name, grant)
    open_sql(url, SystemClock()).create(started(), [], at=AT)[1].close()
    postgres.execute(name, f"DROP OWNED BY {user}")
    postgres.execute(name, f"DROP ROLE {user}")


def test_file_that_another_program_holds_is_said_to_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lite, "WAIT_SECONDS", 0.01)
    file = tmp_path / "my runs.db"
    store = open_sql(f"sqlite:{file}", SystemClock())
    store.upgrade()
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(WriteFailed) as caught:
            store.create(started(), [], at=AT)
    assert caught.value.message == f"The database {file} was held by another program for 0.01 s."
    assert f"fuser '{file}'" in caught.value.hint
