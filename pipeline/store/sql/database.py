"""A database as this store uses it: connections, transactions, and what its errors mean. Knows no runs."""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from pipeline.clock import SystemClock
from pipeline.errors import ConfigError, PipelineError, StoreError, WriteFailed
from pipeline.extras import not_installed
from pipeline.store.lock import drop_in_children
from pipeline.store.silence import Never, Silence
from pipeline.store.sql import file as lite
from pipeline.store.sql.address import Address
from pipeline.store.sql.guard import Guard
from pipeline.store.sql.link import Link
from pipeline.store.sql.refusals import is_taken, own_place, refusal, sentence
from pipeline.store.sql.single import Turns, connected, refuse_one_by_one

#: One process at a time makes a run, or the tables: the keys of advisory locks.
CREATING, UPGRADING, SPENDING = 7_201, 7_202, 7_203
#: The database's clock, in seconds since 1970.
LITE_NOW = "((julianday('now') - 2440587.5) * 86400.0)"
POSTGRES_NOW = "extract(epoch from clock_timestamp())::double precision"
_AT_ONCE = 5
#: How long a server may take to let somebody in.
_CONNECT_SECONDS = 10
#: A connection that was used so short a time ago is taken to be there still, in seconds.
_FRESH_SECONDS = 0.5
_CLOCK = SystemClock()


class Waiting(Protocol):
    """What holds something back."""

    def flush(self) -> None: ...


class Database:
    """One database; connections are kept and used again by all threads."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.lite = address.file is not None
        self.now = LITE_NOW if self.lite else POSTGRES_NOW
        #: Open journals that hold lines back until their next sync.
        self.waiting: set[Waiting] = set()
        self._engine: Any = None
        #: Connections that nobody has; the last one given back is lent first. SQLAlchemy's own pool takes as long
        #: as a statement.
        self._idle: list[Link] = []
        self.held = lite.Held(address.file)
        self._closed = False
        self._lock = threading.Lock()
        self._turns = Turns(address.url) if address.single else None
        #: Whether the server answers.
        self.silence = Never() if self.lite else Silence()
        self._guard = None if self.lite else Guard(self._connected, self.silence, single=address.single)
        self._errors: tuple[type[BaseException], ...] = ()
        drop_in_children(self)

    @property
    def exists(self) -> bool:
        """Whether there can be anything in it: a file that is not there holds no run."""
        return self.address.file is None or lite.is_there(self.address.file)

    @contextlib.contextmanager
    def read(self) -> Iterator[Link]:
        """A connection for queries, each for itself.

        Raises:
            StoreError: The database cannot be asked.
        """
        with self._lent(StoreError, fresh=True) as link:
            yield link
            file = self.address.file
            if file is not None and link.outdated(file):
                raise StoreError(f"The database {file} was changed while it was read.", hint="Try again.")

    @contextlib.contextmanager
    def write(self, *, sync: bool = True, lock: int = 0, fresh: bool = True) -> Iterator[Link]:
        """A transaction, durable on return if `sync`, else with the next that is.

        Args:
            lock: Wait for this one lock of the whole database first.
            fresh: Make sure that the server is there still; else the caller tries again.

        Raises:
            WriteFailed: Nothing was changed; or nobody knows, if the connection was cut in COMMIT.
        """
        with self._lent(WriteFailed, fresh=fresh) as link:
            try:
                self._begin(link, sync, lock)
                yield link
                link.run("COMMIT")
            except BaseException:
                with contextlib.suppress(*self._errors):
                    link.run("ROLLBACK")
                raise
            finally:
                if self.lite and not sync:
                    with contextlib.suppress(*self._errors):
                        link.run("PRAGMA synchronous = FULL")

    def statement(self) -> contextlib.AbstractContextManager[Link]:
        """A connection for one statement that is a transaction by itself.

        Raises:
            WriteFailed: As `write`.
        """
        return self._lent(WriteFailed, fresh=False)

    def core(self, link: Link) -> Any:
        """The connection of a link as SQLAlchemy's."""
        from sqlalchemy.engine import Connection

        return Connection(self._engine, connection=link.connection)

    def flush(self) -> None:
        """Have this process see what its own journals hold back."""
        for one in list(self.waiting):
            one.flush()

    def close(self) -> None:
        """Close all connections, for good: a heartbeat that comes later opens none."""
        self._closed = True
        self._close_idle()

    def drop(self) -> None:
        """In a forked child: the connections are the parent's."""
        self.waiting = set()
        self._lock = threading.Lock()
        _parents.extend(self._idle)
        self._idle = []

    def _begin(self, link: Link, sync: bool, lock: int) -> None:
        if self.lite:
            if not sync:
                # The next commit with a sync makes both durable.
                link.run("PRAGMA synchronous = NORMAL")
            link.run("BEGIN IMMEDIATE")
            return
        # Whatever the server's default: a snapshot from before a lock was waited for would be stale.
        link.run("BEGIN ISOLATION LEVEL READ COMMITTED")
        if not sync:
            link.run("SET LOCAL synchronous_commit = off")
        if lock:
            link.row("SELECT pg_advisory_xact_lock(?)", lock)

    def _lent(self, kind: type[PipelineError], *, fresh: bool) -> contextlib.AbstractContextManager[Link]:
        if self._turns:
            return self._turns.turn(lambda: self._taken(kind, fresh))
        return self._taken(kind, fresh)

    @contextlib.contextmanager
    def _taken(self, kind: type[PipelineError], fresh: bool) -> Iterator[Link]:
        self._start()
        self.held.check(kind, self._close_idle)
        if self.silence.rests:
            raise self.unanswered(kind)
        with self.silence.asked():
            try:
                if fresh and not self.lite:
                    self._look()
                link = self._borrow()
                try:
                    yield link
                    self.silence.answered()
                finally:
                    self._give_back(link)
            except self._errors as error:
                raise self._said(kind, error) from error

    def _borrow(self) -> Link:
        try:
            return self._idle.pop()
        except IndexError:
            connection = connected(self._connected, self._errors) if self._turns else self._connected()
            connection.detach()
            return Link(connection, self.lite, self._guard)

    def _connected(self) -> Any:
        return self._engine.raw_connection()

    def _give_back(self, link: Link) -> None:
        if link.broken:
            # Where one connection is cut the others are as well.
            self._close_idle()
        if link.broken or self._closed or len(self._idle) >= _AT_ONCE:
            link.connection.close()
        else:
            link.used = _CLOCK.monotonic()
            self._idle.append(link)

    def _close_idle(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().connection.close()

    def _look(self) -> None:
        """Connections that a restarted server has left behind are found before they are used."""
        link = self._borrow()
        try:
            if _CLOCK.monotonic() - link.used > _FRESH_SECONDS:
                link.row("SELECT 1")
        except self._errors:
            pass
        finally:
            self._give_back(link)

    def unanswered(self, kind: type[PipelineError]) -> PipelineError:
        """The error of a server that was waited for long enough; nothing is asked for a while."""
        self.silence.give_up()
        data: dict[str, Any] = {"fatal": False} if kind is WriteFailed else {}
        return kind(
            f"The database of {self.address.url} does not answer.",
            hint="Check that the server runs.",
            again=False,
            **data,
        )

    def _said(self, kind: type[PipelineError], error: Any) -> PipelineError:
        """What went wrong in a sentence; the driver's own words may hold the server's address, never a password."""
        cause = getattr(error, "orig", None) or error
        words = sentence(" ".join(str(cause).split()))[:300].rstrip(".")
        state = getattr(cause, "sqlstate", None) or ""
        data: dict[str, Any] = {"fatal": False} if kind is WriteFailed else {}
        file = self.address.file
        if file is not None:
            return self._file_said(kind, file, getattr(cause, "sqlite_errorname", ""), words, data)
        found = refusal(state, words, self.address)
        text = f"The database of {self.address.url} refused: {words}."
        return kind(text, hint=found.hint, again=found.again, state=state, **data)

    def _file_said(
        self, kind: type[PipelineError], file: Path, code: str, words: str, data: dict[str, Any]
    ) -> PipelineError:
        busy = code.startswith("SQLITE_BUSY")
        text = f"The database of {self.address.url} refused: {words}."
        if busy:
            text = f"The database {file} was held by another program for {lite.WAIT_SECONDS} s."
        hint = own_place(self.address) if is_taken(words) else lite.hint(code, file)
        return kind(text, hint=hint, again=code == "SQLITE_BUSY", **data)

    def _start(self) -> None:
        if self._closed:
            raise StoreError(f"The database of {self.address.url} is closed.")
        if self._engine is None:
            with self._lock:
                if self._engine is None:
                    self._engine = self._made()

    def _made(self) -> Any:
        # Not before a database is asked: who lists a folder of runs need not wait for these.
        import sqlite3

        try:
            import sqlalchemy
            from sqlalchemy import exc
        except ImportError:
            raise _not_installed() from None
        self._errors = (exc.DBAPIError, exc.TimeoutError, sqlite3.Error)
        if self.lite:
            return self._open_file(sqlalchemy)
        engine = self._open_server(sqlalchemy)
        self._errors = (*self._errors, engine.dialect.dbapi.Error)
        return engine

    def _open_file(self, sqlalchemy: Any) -> Any:
        file = self.address.file
        assert file is not None
        return sqlalchemy.create_engine(
            "sqlite://",
            creator=lambda: lite.connect(file),
            isolation_level="AUTOCOMMIT",
            poolclass=sqlalchemy.NullPool,
            pool_reset_on_return=None,
        )

    def _open_server(self, sqlalchemy: Any) -> Any:
        asked = {"connect_timeout": _CONNECT_SECONDS, "application_name": "pipeline", "tcp_user_timeout": 30_000}
        # What was prepared over the one connection stays prepared for the next.
        more = {"prepare_threshold": None} if self.address.single else {}
        try:
            engine = sqlalchemy.create_engine(
                self.address.dsn,
                isolation_level="AUTOCOMMIT",
                connect_args={**asked, **more},
                poolclass=sqlalchemy.NullPool,
                pool_reset_on_return=None,
            )
        except ImportError:
            raise _not_installed() from None
        except (ValueError, sqlalchemy.exc.ArgumentError):
            raise ConfigError("--store postgresql://… cannot be read.") from None
        sqlalchemy.event.listen(engine, "connect", self._ready_server)
        return engine

    def _ready_server(self, connection: Any, _: Any) -> None:
        """A server that forgets at power loss is refused; this connection's commits are durable on return."""
        cursor = connection.cursor()
        was, connection.autocommit = connection.autocommit, True
        cursor.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit'), version()")
        fsync, commit, version = cursor.fetchone()
        if not self.address.single:
            refuse_one_by_one(self.address.url, version)
        if not self.address.unsafe and fsync == "off":
            connection.close()
            raise ConfigError(
                f"The server of {self.address.url} runs with fsync=off: a power loss may take records with it.",
                hint="Set fsync=on there; or add ?unsafe=1 to --store where nothing matters.",
            )
        if commit in ("off", "local"):
            cursor.execute("SET synchronous_commit = on")
        cursor.close()
        connection.autocommit = was


def _not_installed() -> ConfigError:
    return not_installed("sql", "A store in a database")


#: In a forked child: connections of its parent, which end with the process and never before.
_parents: list[Link] = []

_open: dict[Address, Database] = {}


def database(address: Address) -> Database:
    """The database at an address: one of each in a process."""
    return _open.setdefault(address, Database(address))


def close_all() -> None:
    """Close the connections of all databases of this process; who opens one again gets new ones."""
    while _open:
        _open.popitem()[1].close()


atexit.register(close_all)
