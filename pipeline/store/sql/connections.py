"""A database as this store asks it: connections, statements by name, transactions, patience. Knows no runs."""

from __future__ import annotations

import atexit
import contextlib
import functools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from pipeline.clock import SystemClock
from pipeline.errors import PipelineError, StoreError, WriteFailed
from pipeline.store.address import StoreUrl
from pipeline.store.availability import Availability
from pipeline.store.lock import drop_in_children

T = TypeVar("T")

#: Seconds between tries while a server is away.
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.2)
#: Connections that are kept for later.
_AT_ONCE = 5
#: How long a thread waits for the only connection, in seconds: as long as for a locked SQLite file.
TURN_SECONDS = 30.0
_CLOCK = SystemClock()
#: What words in braces stand for in queries.sql.
_WORDS = {
    "sqlite": {
        "now": "((julianday('now') - 2440587.5) * 86400.0)", "bytes": "BLOB", "update": "", "share": "",
        "encoded": "CAST(sums AS BLOB)",
    },
    "postgresql": {
        "now": "extract(epoch FROM clock_timestamp())::DOUBLE PRECISION", "bytes": "BYTEA",
        "update": " FOR UPDATE", "share": " FOR SHARE", "encoded": "convert_to(sums, 'UTF8')",
    },
}  # fmt: skip
_NAMED = re.compile(r"^-- name: (\w+)(?: \((\w+)\))?\n(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)


class Refusal(NamedTuple):
    """What an error of a driver means."""

    #: A sentence; the driver's own words may be in it, never a password.
    text: str
    hint: str
    code: str
    #: The same again may come to something else.
    again: bool = False
    #: SQLSTATE, where the server itself has answered.
    state: str = ""
    #: What brings a database back that is gone, for people.
    gone: str = ""


@functools.cache
def queries(dialect: str) -> dict[str, str]:
    """Return the statements of queries.sql for a dialect as its driver takes them, by name."""
    found = dict[str, str]()
    for name, only, sql in _NAMED.findall(Path(__file__).with_name("queries.sql").read_text("utf-8")):
        if only in ("", dialect):
            for word, text in _WORDS[dialect].items():
                sql = sql.replace(f"{{{word}}}", text)
            found[name] = sql.strip() if dialect == "sqlite" else sql.strip().replace("?", "%s")
    return found


class Link:
    """A connection that is lent to one thread."""

    dialect: ClassVar[str]
    #: What the driver raises where a row of this key is there already.
    taken: type[Exception]

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._sql = queries(self.dialect)

    @property
    def broken(self) -> bool:
        """Return whether it is of no more use."""
        return False

    def rows(self, name: str, *values: Any) -> Sequence[Any]:
        """Return all rows of a query."""
        return self.connection.execute(self._sql[name], values).fetchall()  # type: ignore[no-any-return]

    def row(self, name: str, *values: Any) -> Any:
        """Return the first row of a query; None if there is none."""
        return self.connection.execute(self._sql[name], values).fetchone()

    def run(self, name: str, *values: Any) -> int:
        """Execute a statement; how many rows were changed."""
        return self.connection.execute(self._sql[name], values).rowcount  # type: ignore[no-any-return]

    def many(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute a statement once for each row of values."""
        self.connection.cursor().executemany(self._sql[name], rows)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Execute SQL of this dialect; the driver's cursor."""
        return self.connection.execute(sql, values)

    def script(self, sql: str) -> None:
        """Execute several statements within the transaction that is open."""
        raise NotImplementedError

    def append(self, journal: int, epoch: int, rows: Sequence[tuple[int, bytes, str | None]], sync: bool) -> int:
        """Enter records where the journal has this epoch, as one transaction; how many were entered."""
        raise NotImplementedError

    def transaction(self, *, sync: bool = True) -> contextlib.AbstractContextManager[None]:
        """Commit what is done within, durable if `sync`, else with the next that is; or roll it back."""
        raise NotImplementedError


class Database:
    """One database; connections are kept, and used again by all threads."""

    #: What the driver raises; known once it was imported.
    errors: tuple[type[BaseException], ...] = ()

    def __init__(self, address: StoreUrl, silence: Availability) -> None:
        self.address = address
        #: Whether the server answers.
        self.silence = silence
        #: It has answered this process before, so that it is waited for.
        self.met = False
        self._idle: list[Link] = []
        self._closed = False
        #: Where one connection is all that there is.
        self._turn: threading.Lock | None = threading.Lock() if address.single else None
        drop_in_children(self)

    @property
    def own_place(self) -> str:
        """Return what to do where another program's tables stand in the way."""
        raise NotImplementedError

    @property
    def exists(self) -> bool:
        """Return whether there can be anything in it."""
        return True

    def ask(self, do: Callable[[Link], T], kind: type[StoreError] = StoreError) -> T:
        """Return what `do` comes to. It is done again where the server is away, so it must bear to be done twice.

        Raises:
            StoreError: Of this kind: the database refuses, or stays away.
        """
        with self.silence.asked():
            for pause in (*_PAUSES, None):
                self.check(kind)
                if self.silence.rests:
                    raise self._silent(kind)
                try:
                    with self._lent(kind) as link:
                        found = do(link)
                    self.silence.answered()
                    self.met = True
                    return found
                except self.errors as error:
                    refusal = self.explain(error)
                    again = refusal.again and self.met and pause is not None
                    if again and not refusal.state and self.silence.is_over():
                        raise self._silent(kind) from error
                    if not again or self.silence.is_over():
                        raise self.error(kind, refusal) from error
                _CLOCK.wait(threading.Event(), pause or 0)
        raise AssertionError

    def write(self, do: Callable[[Link], T], *, sync: bool = True) -> T:
        """Return what `do` comes to as a transaction; see `ask`."""

        def within(link: Link) -> T:
            with link.transaction(sync=sync):
                return do(link)

        return self.ask(within, WriteFailed)

    def begin(self) -> None:
        """Note that a journal in it is open."""

    def end(self) -> None:
        """Note that a journal in it is closed."""

    def check(self, kind: type[StoreError]) -> None:
        """Make sure that it may be asked.

        Raises:
            StoreError: Of this kind: it was closed, or is gone.
        """
        if self._closed:
            raise kind(f"The database of {self.address.url} is closed.", code="database_closed")

    def connect(self) -> Link:
        """Return a new connection."""
        raise NotImplementedError

    def explain(self, error: Any) -> Refusal:
        """Return what an error of the driver means."""
        raise NotImplementedError

    def error(self, kind: type[StoreError], refusal: Refusal) -> StoreError:
        """Return the error that says a refusal."""
        data: dict[str, Any] = {"again": refusal.again}
        if kind is WriteFailed:
            data["fatal"] = False
        data.update({name: value for name in ("state", "gone") if (value := getattr(refusal, name))})
        return kind(refusal.text, hint=refusal.hint, code=refusal.code, **data)

    def close(self) -> None:
        """Close all connections, for good: a heartbeat that comes later opens none."""
        self._closed = True
        self.close_idle()

    def close_idle(self) -> None:
        """Close the connections that are not in use."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().connection.close()

    def drop(self) -> None:
        """Forget, in a forked child, the connections of the parent."""
        _parents.extend(self._idle)
        self._idle = []
        self._turn = threading.Lock() if self._turn else None

    @contextlib.contextmanager
    def _lent(self, kind: type[PipelineError]) -> Iterator[Link]:
        if self._turn and not self._turn.acquire(timeout=TURN_SECONDS):
            url = self.address.url
            raise kind(f"The one connection to {url} was not free within {TURN_SECONDS:.0f} s.", code="database_busy")
        try:
            try:
                link = self._idle.pop()
            except IndexError:
                link = self.connect()
            try:
                yield link
            finally:
                if link.broken:
                    # Where one connection is cut the others are as well.
                    self.close_idle()
                if link.broken or self._closed or len(self._idle) >= _AT_ONCE:
                    link.connection.close()
                else:
                    self._idle.append(link)
        finally:
            if self._turn:
                self._turn.release()

    def _silent(self, kind: type[StoreError]) -> StoreError:
        self.silence.give_up()
        text = f"The database of {self.address.url} does not answer."
        return self.error(kind, Refusal(text, "Check that the server runs.", "database_silent"))


#: In a forked child: connections of its parent, which end with the process and never before.
_parents: list[Link] = []
_open: dict[StoreUrl, Database] = {}


def shared(address: StoreUrl, make: Callable[[StoreUrl], Database]) -> Database:
    """Return the database at an address: one of each in a process."""
    return _open.setdefault(address, make(address)) if address not in _open else _open[address]


def close_all() -> None:
    """Close the connections of all databases of this process; who opens one again gets new ones."""
    while _open:
        _open.popitem()[1].close()


atexit.register(close_all)
