"""The server of a PostgreSQL database: connected to, asked with a limit of time, and what its refusals mean."""

from __future__ import annotations

import contextlib
import re
import shlex
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from pipeline.clock import SystemClock
from pipeline.errors import ConfigError
from pipeline.extras import not_installed
from pipeline.store.address import StoreUrl
from pipeline.store.availability import Availability
from pipeline.store.sql.connections import Database, Link, Refusal

#: How long a server may take to let a client in, and to answer before it is asked after, in seconds.
CONNECT_SECONDS = 10
ANSWER_SECONDS = 10.0
#: How long a server that lets one client in is asked again, in seconds between tries: it hears of a process that was
#: killed a moment later than the next one begins.
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
#: What the driver says where no server listens; nothing to wait for.
_NO_SERVER = "Connection refused"
#: Durable on return, and one statement sees what was committed before it, whatever the server's defaults.
_CLOCK = SystemClock()
_ACTIVITY = "SELECT state FROM pg_stat_activity WHERE pid = %s"
_READY = """SELECT current_setting('fsync'), version(),
  set_config('default_transaction_isolation', 'read committed', false),
  CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
    THEN set_config('synchronous_commit', 'on', false) END, pg_backend_pid()"""


class PostgresLink(Link):
    """A connection to the server."""

    dialect = "postgresql"

    def __init__(self, connection: Any) -> None:
        from psycopg.errors import UniqueViolation

        super().__init__(connection)
        self.taken = UniqueViolation

    @property
    def broken(self) -> bool:
        """Return whether the other side is gone."""
        return bool(self.connection.closed)

    def append(self, journal: int, epoch: int, rows: Sequence[tuple[int, bytes, str | None]], sync: bool) -> int:
        columns = map(list, zip(*rows, strict=True))
        return self.run("append" if sync else "append_loose", journal, epoch, *columns)

    @contextlib.contextmanager
    def transaction(self, *, sync: bool = True) -> Iterator[None]:
        import psycopg

        try:
            self.connection.execute("BEGIN")
            if not sync:
                self.connection.execute("SET LOCAL synchronous_commit = off")
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(psycopg.Error):
                self.connection.execute("ROLLBACK")
            raise


class PostgresDatabase(Database):
    """A PostgreSQL server, or one that speaks its protocol."""

    def __init__(self, address: StoreUrl) -> None:
        super().__init__(address, Availability())
        self._connect: Any = None

    @property
    def own_place(self) -> str:
        return _OWN_PLACE

    def check(self, kind: type[Any]) -> None:
        super().check(kind)
        if self._connect is None:
            self._connect, self.errors = _driver(self.address.single)

    def connect(self) -> PostgresLink:
        """Return a connection that commits durably.

        Raises:
            ConfigError: The server forgets at power loss, or serves one connection at a time, and the URL does not
                say so.
        """
        dsn, made = self.address.dsn, self._connect
        if self.address.single:
            # What was prepared over the only connection stays prepared for the next.
            link = PostgresLink(connected(lambda: made(dsn, prepare_threshold=None), self.errors))
        else:
            link = PostgresLink(made(dsn))
        fsync, version, *_, pid = link.execute(_READY).fetchone()
        link.connection.direct = pid == link.connection.pgconn.backend_pid
        url = self.address.url
        try:
            if "(PGlite " in version and not self.address.single:
                raise ConfigError(
                    f"The server of {url} is PGlite: it serves one connection at a time, and syncs nothing to its "
                    "disk.",
                    hint="Add ?single=1&unsafe=1 to --store, and let one process use it at a time.",
                    code="single_needed",
                )
            if fsync == "off" and not self.address.unsafe:
                raise ConfigError(
                    f"The server of {url} runs with fsync=off: a power loss may take records with it.",
                    hint="Set fsync=on there; or add ?unsafe=1 to --store if losing data is acceptable.",
                    code="fsync_off",
                )
        except ConfigError:
            link.connection.close()
            raise
        return link

    def explain(self, error: Any) -> Refusal:
        return refusal(error.sqlstate or "", " ".join(str(error).split()), self.address)


def connected(connect: Callable[[], Any], errors: tuple[type[BaseException], ...]) -> Any:
    """Return a connection to a server that may be about to notice that the one before is gone.

    Raises:
        Whatever `connect` raises of `errors`, once it has been asked for a second and a half.
    """
    for pause in _PAUSES:
        try:
            return connect()
        except errors as error:
            if _NO_SERVER in str(error):
                raise
        _CLOCK.wait(threading.Event(), pause)
    return connect()


def _driver(single: bool) -> tuple[Any, tuple[type[BaseException], ...]]:
    """Return how a connection is made, and what is raised.

    Raises:
        PackageMissing: psycopg is not installed.
    """
    try:
        import psycopg
    except ImportError:
        raise not_installed("postgres", "A store in PostgreSQL") from None

    class Watched(psycopg.Connection[Any]):
        """Gives a server up that hangs: a timeout of the server's own does not help then."""

        #: Connects to ask what the server does; None where that is not possible.
        other: Callable[[], Any] | None = None
        #: Nothing between passes statements on to processes of the server that it knows by other numbers.
        direct = False

        def wait(self, gen: Any, *given: Any, **more: Any) -> Any:
            return super().wait(_watched(self, gen), *given, **more)

    def connect(dsn: str, *, watched: bool = True, **more: Any) -> Any:
        made = Watched.connect(
            dsn, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="pipeline",
            tcp_user_timeout=30_000, **more,
        )  # fmt: skip
        if watched and not single:
            made.other = lambda: connect(dsn, watched=False)
        return made

    return connect, (psycopg.Error,)


def _watched(connection: Any, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Wait for an answer as the driver does, as long as the server works on it."""
    until = _CLOCK.monotonic() + ANSWER_SECONDS
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and _CLOCK.monotonic() > until:
                if not _works(connection):
                    connection.pgconn.finish()
                    raise connection.OperationalError("no answer came")
                until = _CLOCK.monotonic() + ANSWER_SECONDS
            wanted = steps.send(ready)
    except StopIteration as end:
        return end.value


def _works(connection: Any) -> bool:
    """Return whether the server works on a statement, or something between passes it on."""
    if connection.other is None:
        return False
    try:
        with connection.other() as other:
            state = other.execute(_ACTIVITY, (connection.pgconn.backend_pid,)).fetchone()
    except connection.Error:
        return False
    if state is None:
        # A server that was started again knows nothing of it.
        return not connection.direct
    # Idle: its answer was sent, and is lost.
    return not str(state[0]).startswith("idle")


#: SQLSTATEs of what another try may do: serialization failure, deadlock, no room for one more, a limit of time; the
#: server goes down or comes up, a connection is cut.
_AGAIN = ("40001", "40P01", "53300", "57014", "55P03", "25P03", "25P04", "57P", "08")
#: What the driver adds for its own users: an excerpt of our statement, a question.
_ADDED = re.compile(r"\s+(?:LINE \d+: .*|Is the server running [^?]*\?)", re.DOTALL)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
#: The schema that a URL's options name first.
_SCHEMA = re.compile(rf"search_path=({_PLAIN.pattern})")
_MORE_ROOM = (
    "Wait for others to leave, or ask the administrator of the server to allow more: max_connections, "
    "ALTER ROLE {role} CONNECTION LIMIT -1; (if it serves one connection at a time, add ?single=1 to --store.)"
)
_ONE_MORE = "Check that the server lets you in; if it serves one connection at a time, add ?single=1 to --store."
_IN_USE = "Another process may be using it, and it serves one at a time: wait until that one ends."
_RUNS = "Check that the server runs and lets you in."
_OWN_PLACE = (
    "Name a database that no other program uses; or a schema of its own in this one: CREATE SCHEMA pipeline; "
    "then add ?options=-csearch_path=pipeline to --store."
)
_LIMIT = "Run on the server: ALTER ROLE {{role}} SET {0} = 0; or add ?options=-c{0}=0 to --store."
#: SQLSTATE ("" before a connection stands: then the driver has none), what the driver says, code, hint. The first
#: that fits counts.
_KNOWN = (
    ("42501", "for schema", "rights_missing",
     "Ask the owner of the database to run: GRANT USAGE, CREATE ON SCHEMA {schema} TO {role};"),
    ("42501", "", "rights_missing",
     "Ask the owner of the tables to run: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "
     "{schema} TO {role}; "
     "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}; (SELECT alone is enough to read.)"),
    ("42P07", "", "name_taken", _OWN_PLACE),
    ("42710", "", "name_taken", _OWN_PLACE),
    ("42723", "", "name_taken", _OWN_PLACE),
    ("25006", "", "database_read_only",
     "Name a server and a user that may write; reading works as it is. (SHOW default_transaction_read_only;)"),
    ("3F000", "", "schema_missing",
     "Create the schema that --store names, as the owner of the database: CREATE SCHEMA …;"),
    ("53300", "", "database_full", _MORE_ROOM),
    ("57014", "user request", "statement_ended",
     "The statement was cancelled on the server; repeat the command."),
    ("57014", "", "time_limit", _LIMIT.format("statement_timeout")),
    ("55P03", "", "time_limit", _LIMIT.format("lock_timeout")),
    ("25P03", "", "time_limit", _LIMIT.format("idle_in_transaction_session_timeout")),
    ("25P04", "", "time_limit", _LIMIT.format("transaction_timeout")),
    ("", "no password supplied|password authentication failed", "password_refused",
     "Set PGPASSWORD to the password of {name}, or write it into ~/.pgpass."),
    ("", 'database ".*" does not exist$', "database_missing", "Create it: {createdb}"),
    ("", 'role ".*" does not exist$', "user_missing",
     "Name a user that the server has: postgresql://USER@HOST:PORT/DATABASE"),
    ("", "is not permitted to log in", "user_refused",
     "Ask the administrator of the server to run: ALTER ROLE {role} LOGIN;"),
    ("", "too many (?:clients|connections)|connection slots are reserved", "database_full", _MORE_ROOM),
    ("", "does not support SSL", "ssl_missing",
     "Ask the administrator of the server to set ssl = on; or, on a trusted network, remove sslmode from --store."),
    ("", "certificate verify failed|root certificate|does not match host name", "certificate_refused",
     "Name the file of the authority that signed the server's certificate: add "
     "?sslmode=verify-full&sslrootcert=FILE to "
     "--store."),
    ("", "^(?!.*SSL encryption).*pg_hba.conf.*no encryption", "host_refused",
     "If the server requires SSL, add ?sslmode=require to --store; else its pg_hba.conf must let this user in from "
     "this machine."),
    ("", "pg_hba.conf", "host_refused", "The server's pg_hba.conf must let this user in from this machine."),
    ("", _NO_SERVER, "database_refused", _RUNS),
    ("", "^connection ", "database_refused", _ONE_MORE),
)  # fmt: skip


def refusal(state: str, words: str, address: StoreUrl) -> Refusal:
    """Return what a refusal means, and what to type.

    Args:
        state: Its SQLSTATE; "" where the driver has none, as for all that happens before a connection stands.
        words: The driver's; where they are in another language than English, the hint is a general one.
    """
    said = _ADDED.sub("", words)[:300].rstrip(".")
    known = ((code, hint) for when, what, code, hint in _KNOWN if when == state and re.search(what, said))
    code, hint = next(known, ("database_refused", _RUNS))
    again = state.startswith(_AGAIN) if state else hint in (_MORE_ROOM, _ONE_MORE, _RUNS)
    if address.single and not state and hint in (_MORE_ROOM, _ONE_MORE):
        hint = _IN_USE
    return Refusal(f"The database of {address.url} refused: {said}.", _filled(hint, address), code, again, state)


def _filled(hint: str, address: StoreUrl) -> str:
    parts = urlsplit(address.url)
    name = unquote(parts.username or "")
    role = name if _PLAIN.fullmatch(name) else '"{}"'.format(name.replace('"', '""')) if name else "USER"
    given = (("-h", parts.hostname), ("-p", parts.port), ("-U", parts.username))
    words = [f"{option} {shlex.quote(unquote(str(value)))}" for option, value in given if value]
    made = " ".join(["createdb", *words, shlex.quote(unquote(parts.path.strip("/")))])
    found = _SCHEMA.search(unquote(parts.query))
    return hint.format(name=name or "the user", role=role, createdb=made, schema=found[1] if found else "public")
