"""Databases that let nobody in, or not far enough: the cause is said, and what to type."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.errors import PipelineError, StoreError, WriteFailed
from pipeline.store.address import parse_store_url
from pipeline.store.runs import RunStore
from pipeline.store.sql import sqlite as lite
from pipeline.store.sql.backend import open_sql
from pipeline.store.sql.connections import Link, close_all
from pipeline.store.sql.postgres import refusal
from tests.contract import harm
from tests.journals import AT, started
from tests.servers.postgres import Postgres, name_of


@pytest.fixture
def role(postgres: Postgres, postgresql: str) -> Iterator[str]:
    """A role that owns all there is, and may be held back."""
    name = f"held_{name_of(postgresql)}"
    postgres.execute("postgres", f"CREATE ROLE {name} LOGIN IN ROLE tests")
    yield name
    close_all()
    postgres.execute("postgres", f"DROP ROLE {name}")


ADDRESS = parse_store_url("postgresql://o%27neil@db.example.org:5433/my%20runs")
FATAL = 'connection failed: connection to server at "10.0.0.1", port 5433 failed: FATAL: '


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("connection failed: connection to server failed: fe_sendauth: no password supplied", "Set PGPASSWORD"),
        (f'{FATAL}password authentication failed for user "o\'neil"', "Set PGPASSWORD to the password of o'neil, or"),
        (
            f'{FATAL}database "my runs" does not exist',
            """Create it: createdb -h db.example.org -p 5433 -U 'o'"'"'neil' 'my runs'""",
        ),
        (f'{FATAL}role "o\'neil" does not exist', "Name a user that the server has"),
        (f'{FATAL}no pg_hba.conf entry for host "10.0.0.2", no encryption', "add ?sslmode=require to --store; else"),
        (
            f"{FATAL}no pg_hba.conf entry for h, SSL encryption {FATAL}no pg_hba.conf entry for h, no encryption",
            "The server's pg_hba.conf must let this user in",
        ),
        (f"{FATAL}SSL error: certificate verify failed", "?sslmode=verify-full&sslrootcert=FILE"),
        ('connection failed: root certificate file "/r.crt" does not exist Either provide', "sslrootcert=FILE"),
    ],
)
def test_server_that_lets_nobody_in_is_told_apart_by_what_it_lacks(words: str, hint: str) -> None:
    said = refusal("", words, ADDRESS)
    assert not said.again
    assert hint in said.hint


def test_server_that_may_let_in_later_is_asked_again() -> None:
    for words in (f"{FATAL}the database system is starting up", "connection failed: Connection refused"):
        assert refusal("", words, ADDRESS).again


def test_what_the_driver_adds_is_no_part_of_what_is_said() -> None:
    said = refusal("42501", "permission denied for schema public LINE 2: CREATE TABLE pipeline_meta ( ^", ADDRESS)
    assert said.text.endswith("refused: permission denied for schema public.")
    two = "port 1 failed: Connection refused Is the server running on that host and accepting TCP/IP connections?"
    said = refusal("", f"{two} {two}", ADDRESS)
    assert said.text.endswith("refused: port 1 failed: Connection refused port 1 failed: Connection refused.")


def test_database_that_is_not_there_is_said_with_how_to_make_it(postgres: Postgres) -> None:
    with pytest.raises(StoreError, match='database "no_such" does not exist') as caught:
        list(open_sql(postgres.url("no_such"), SystemClock()).heads())
    assert caught.value.hint == f"Create it: createdb -h 127.0.0.1 -p {postgres.port} -U tests no_such"


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
    for grant in caught.value.hint.split("to run: ")[1].split(";")[:2]:
        postgres.execute(name, grant)
    open_sql(url, SystemClock()).create(started(), [], at=AT)[1].close()
    postgres.execute(name, f"DROP OWNED BY {user}")
    postgres.execute(name, f"DROP ROLE {user}")


def test_file_that_another_program_holds_is_said_to_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lite, "WAIT_SECONDS", 0.01)
    file = tmp_path / "my runs.db"
    store = open_sql(f"sqlite:{file}", SystemClock())
    store.create(started(), [], at=AT)[1].close()
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(WriteFailed) as caught:
            store.create(started(), [], at=AT)
    assert caught.value.message == f"The database {file} was held by another program for 0.01 s."
    assert f"fuser '{file}'" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "words", "hint"),
    [
        ("NOLOGIN", "is not permitted to log in", "ALTER ROLE {role} LOGIN;"),
        ("CONNECTION LIMIT 0", "too many connections for role", "ALTER ROLE {role} CONNECTION LIMIT -1;"),
        ("SET statement_timeout = 1", "due to statement timeout", "ALTER ROLE {role} SET statement_timeout = 0;"),
        ("SET default_transaction_read_only = on", "in a read-only transaction", "Name a server and a user that may"),
    ],
)
def test_role_that_is_held_back_is_told_what_to_type(
    postgres: Postgres, postgresql: str, role: str, change: str, words: str, hint: str
) -> None:
    store = open_sql(postgresql.replace("tests@", f"{role}@"), SystemClock())
    open_sql(postgresql, SystemClock()).upgrade()
    postgres.execute("postgres", f"ALTER ROLE {role} {change}")
    with pytest.raises(PipelineError, match=words) as caught:
        slow(store)
    assert hint.format(role=role) in caught.value.hint
    if "statement" in change:
        slow(open_sql(f"{store.url}?options=-cstatement_timeout=0", SystemClock()))


def slow(store: RunStore) -> None:
    """A transaction that changes something, and takes a while."""

    def change(link: Link) -> None:
        link.execute("DELETE FROM charges_kept")
        link.execute("SELECT pg_sleep(0.05)")

    harm.database(store).write(change)


# How the driver speaks of a connection that the server has closed depends on which of its packets came last.
@pytest.mark.parametrize(
    ("state", "limit"),
    [
        ("25P03", "idle_in_transaction_session_timeout"),
        ("25P04", "transaction_timeout"),
        ("55P03", "lock_timeout"),
        ("57014", "statement_timeout"),
    ],
)
def test_limit_of_time_is_tried_again_and_said_with_how_to_lift_it(state: str, limit: str) -> None:
    said = refusal(state, "terminating connection due to a timeout", ADDRESS)
    assert said.again
    assert f"""ALTER ROLE "o'neil" SET {limit} = 0; or add ?options=-c{limit}=0 to --store.""" in said.hint
    assert "ALTER ROLE" not in refusal("57014", "canceling statement due to user request", ADDRESS).hint


def test_transaction_that_waits_for_a_lock_too_long_is_said_with_the_limit(
    postgres: Postgres, postgresql: str, role: str
) -> None:
    first = open_sql(postgresql, SystemClock())
    first.upgrade()
    postgres.execute("postgres", f"ALTER ROLE {role} SET lock_timeout = 1")
    second = open_sql(postgresql.replace("tests@", f"{role}@"), SystemClock())

    def hold(link: Link) -> None:
        link.execute("LOCK TABLE charges_kept")
        with pytest.raises(WriteFailed, match="due to lock timeout") as caught:
            slow(second)
        hints.append(caught.value.hint)

    hints: list[str] = []
    harm.database(first).write(hold)
    assert f"ALTER ROLE {role} SET lock_timeout = 0;" in hints[0]


def test_server_without_ssl_and_a_user_that_must_have_it_are_told_apart(
    postgres: Postgres, postgresql: str, role: str
) -> None:
    with pytest.raises(StoreError, match="SSL was required") as caught:
        list(open_sql(f"{postgresql}?sslmode=require", SystemClock()).heads())
    assert "set ssl = on; or, on a trusted network, remove sslmode from --store." in caught.value.hint
    rules = postgres.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"hostssl all {role} all trust\nhost all {role} all reject\n{before}")
    postgres.execute("postgres", "SELECT pg_reload_conf()")
    try:
        while not (problem := refused(postgresql.replace("tests@", f"{role}@"))):
            close_all()
    finally:
        rules.write_text(before)
        postgres.execute("postgres", "SELECT pg_reload_conf()")
    assert "If the server requires SSL, add ?sslmode=require to --store" in problem


def refused(url: str) -> str:
    """What the hint of a server is that lets nobody in; "" where it does."""
    try:
        list(open_sql(url, SystemClock()).heads())
    except StoreError as error:
        return error.hint
    return ""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("made", ["TABLE records (x int)", "TABLE runs (x int)", "VIEW costs_by_day AS SELECT 1 AS x"])
def test_table_of_another_program_is_named_and_left_with_another_place_to_go(
    kind: str, made: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = request.getfixturevalue("postgresql") if kind == "postgresql" else f"sqlite:{tmp_path}/theirs.db"
    store = open_sql(url, SystemClock())
    harm.change(store, f"CREATE {made}")
    with pytest.raises(WriteFailed, match=f"{made.split()[1]}.* already exists") as caught:
        store.create(started(), [], at=AT)
    assert "that no other program uses" in caught.value.hint
    harm.rows(store, f"SELECT * FROM {made.split()[1]}")
    assert not store.is_there()
    if kind == "postgresql":
        harm.change(store, "CREATE SCHEMA pipeline")
        assert "CREATE SCHEMA pipeline; then add ?options=-csearch_path=pipeline" in caught.value.hint
        own = open_sql(f"{url}?options=-csearch_path=pipeline", SystemClock())
        own.create(started(), [], at=AT)[1].close()
        assert len(list(own.heads())) == 1


def test_rights_that_are_missing_are_those_of_the_schema_that_the_url_names() -> None:
    address = parse_store_url("postgresql://me@h/runs?options=-csearch_path=ours")
    assert "SCHEMA ours TO me;" in refusal("42501", "permission denied for schema ours", address).hint
    assert "ON ALL TABLES IN SCHEMA ours TO me;" in refusal("42501", "permission denied for table x", address).hint


def test_schema_that_is_not_there_is_said_with_how_to_make_it(postgresql: str) -> None:
    store = open_sql(f"{postgresql}?options=-csearch_path=none", SystemClock())
    with pytest.raises(WriteFailed, match="no schema has been selected") as caught:
        store.create(started(), [], at=AT)
    assert "CREATE SCHEMA" in caught.value.hint
