"""The file of a SQLite database: made, written to, or only read where that is all one may do. Knows no tables."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pipeline.clock import SystemClock
from pipeline.errors import StoreError
from pipeline.store.address import StoreUrl
from pipeline.store.disk import FOLDER_MODE
from pipeline.store.sql.connections import Database, Link, Refusal

if TYPE_CHECKING:
    import sqlite3

#: Only the owner reads what runs hold.
_FILE_MODE = 0o600
#: How long a program that has the database to itself is waited for, and a pause between tries, in seconds.
WAIT_SECONDS = 30
_PAUSE = 0.01
#: Another process has the database open, or died with all that others need to go on; or with less than that.
_IN_USE, _UNFINISHED = "in use", "unfinished"
_MAY_NOT = "Use the owner's account, or ask the owner to permit it: chmod a+r on the file, a+x on its folders."
_BACK = "Restore the file from a copy"
#: Code and hint by the beginning of an error's name.
_KNOWN = {
    "SQLITE_BUSY": (
        "database_busy",
        "Find it (fuser {quoted}), let it commit or end, then repeat the command.",
    ),
    "SQLITE_FULL": ("disk_full", "Free space on the disk, then resume."),
    "SQLITE_CORRUPT": (
        "database_damaged",
        f"{_BACK}. The damage is in the file's own structure, which no resume can repair.",
    ),
    "SQLITE_NOTADB": ("no_database", "It is not a database: name another file, or restore it from a copy."),
    "SQLITE_READONLY": (
        "database_read_only",
        "Use an account that may write to {file} and its folder; you can still read it.",
    ),
}
#: In the words of SQLite, which has no code for it.
_TAKEN = re.compile(r"(?:table|view|index) .* already exists")
#: How a file was: its inode, size, and when it was changed.
State = tuple[int, ...]


class SqliteLink(Link):
    """A connection to the file."""

    dialect = "sqlite"

    def __init__(self, connection: Any, seen: State | None = None) -> None:
        super().__init__(connection)
        self.taken = connection.IntegrityError
        #: How the file was when it was opened without locks; None: it has locks.
        self.seen = seen

    @property
    def broken(self) -> bool:
        """Return whether it was good for one look only."""
        return self.seen is not None

    def append(self, journal: int, epoch: int, rows: Sequence[tuple[int, bytes, str | None]], sync: bool) -> int:
        if len(rows) == 1:
            with contextlib.nullcontext() if sync else self._loose():
                return self.run("append", *rows[0], journal, epoch)
        with self.transaction(sync=sync):
            if self.row("mine", journal) != (epoch,):
                return 0
            self.many("enter", [(journal, *row) for row in rows])
            return len(rows)

    @contextlib.contextmanager
    def transaction(self, *, sync: bool = True) -> Iterator[None]:
        with contextlib.nullcontext() if sync else self._loose():
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(Exception):
                    self.connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _loose(self) -> Iterator[None]:
        """Let commits become durable with the next one that is synced."""
        self.connection.execute("PRAGMA synchronous = NORMAL")
        try:
            yield
        finally:
            with contextlib.suppress(Exception):
                self.connection.execute("PRAGMA synchronous = FULL")


class SqliteDatabase(Database):
    """A SQLite file."""

    def __init__(self, address: StoreUrl) -> None:
        super().__init__(address)
        assert address.file is not None
        self.file = address.file
        #: As text, which takes a third of the time to look at: it is done at each append.
        self._path = str(address.file)
        #: Open journals in the file: it must stay the same, and is never made anew.
        self._journals = self._inode = 0
        self._gone = False

    @property
    def own_place(self) -> str:
        return "Name a file that no other program uses: --store sqlite:FILE"

    @property
    def exists(self) -> bool:
        """Return whether there is such a file, as far as one may look: what hides it is said when it is opened."""
        return _is_there(self.file)

    def begin(self) -> None:
        if not self._journals:
            self._inode = _inode(self._path)
        self._journals += 1

    def end(self) -> None:
        self._journals = max(self._journals - 1, 0)

    def check(self, kind: type[StoreError]) -> None:
        """See Database.check. Nothing is written into a file that is gone, nor is a new one made in its place."""
        super().check(kind)
        if not self.errors:
            # Not before a database is asked: what lists a folder of runs need not wait for it.
            import sqlite3

            self.errors = (sqlite3.Error,)
        if not (self._journals or self._gone) or (now := _inode(self._path)) == self._inode:
            return
        if now and not self._journals:
            # It was brought back.
            self._gone = False
            return
        self._gone = True
        self.close_idle()
        text = (
            f"The database {self.file} is gone: it was removed or replaced while a run was using it. "
            "Its runs can only come back with a copy of the file."
        )
        raise self.error(kind, Refusal(text, f"{_BACK}, then resume the run.", "database_gone", gone=_BACK))

    def connect(self) -> SqliteLink:
        """Return a connection that commits durably; or one that only reads, where one may not write.

        Raises:
            StoreError: The file cannot even be read.
        """
        file = self.file
        _make(file)
        if not _may(file, os.R_OK):
            raise StoreError(
                f"The database {file} cannot be read: Permission denied.", hint=_MAY_NOT, code="database_denied"
            )
        beside = _beside(file)
        if _may(file, os.W_OK) and (_may(file.parent, os.W_OK) or beside == _IN_USE):
            connection = self._opened("rw")
            self._logged(connection)
            connection.execute("PRAGMA synchronous = FULL")
            return SqliteLink(connection)
        if beside == _IN_USE:
            if hidden := [path.name for path in _shared(file) if not _may(path, os.R_OK)]:
                raise StoreError(
                    f"The database {file} is open elsewhere, and {hidden[0]} beside it cannot be read: "
                    "Permission denied.",
                    hint="Try again once it is closed, or have its user allow it: chmod a+r on that file too.",
                    code="database_denied",
                )
            return SqliteLink(self._opened("ro"))
        if beside == _UNFINISHED:
            raise StoreError(
                f"The database {file} was left by a process that died while it wrote.",
                hint=f"Ask a user who may write there to repair it: list --store sqlite:{file}",
                code="database_unfinished",
            )
        # Files that SQLite made beside it for locks would be ours, and lock out users who may write; often we could not
        # even make them. So it is read without locks, as if it could not change, which is true as long as no process
        # has it open: that is checked before and after each query.
        seen = _state(file)
        return SqliteLink(self._opened("ro&immutable=1"), seen)

    @contextlib.contextmanager
    def _lent(self, kind: type[Any]) -> Iterator[Link]:
        with super()._lent(kind) as link:
            yield link
            assert isinstance(link, SqliteLink)
            # Who writes makes a -wal first, and changes the file in the end.
            if link.seen is not None and (_beside(self.file) or _state(self.file) != link.seen):
                text = f"The database {self.file} was changed while it was read."
                raise StoreError(text, hint="Try again.", code="database_changed")

    def explain(self, error: Any) -> Refusal:
        name = str(getattr(error, "sqlite_errorname", ""))
        kind = "_".join(name.split("_")[:2])
        words = " ".join(str(error).split())[:300].rstrip(".")
        text = f"The database of {self.address.url} refused: {words}."
        code, hint = _KNOWN.get(kind, ("database_refused", "Check the file and its folder."))
        if kind == "SQLITE_BUSY":
            text = f"The database {self.file} was held by another program for {WAIT_SECONDS} s."
        elif _TAKEN.match(words):
            code, hint = "name_taken", self.own_place
        return Refusal(text, hint.format(file=self.file, quoted=shlex.quote(str(self.file))), code)

    def _opened(self, mode: str) -> sqlite3.Connection:
        import sqlite3

        connection = sqlite3.connect(
            f"file:{quote(str(self.file))}?mode={mode}",
            uri=True,
            timeout=WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        # Any bytes may have been put anywhere.
        connection.text_factory = _text
        return connection

    def _logged(self, connection: sqlite3.Connection) -> None:
        """Have it write a log. SQLite itself waits for no other connection that just does so or recovers from it."""
        until = _CLOCK.monotonic() + WAIT_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL").close()
                return
            except connection.OperationalError as error:
                if not error.sqlite_errorname.startswith("SQLITE_BUSY") or _CLOCK.monotonic() > until:
                    connection.close()
                    raise
            _CLOCK.wait(threading.Event(), _PAUSE)


_CLOCK = SystemClock()


def _make(file: Path) -> None:
    """Make the file, empty, if it is not there.

    Raises:
        StoreError: It cannot be made.
    """
    if _is_there(file):
        return
    try:
        file.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE))
    except OSError as error:
        raise StoreError(
            f"The database {file} cannot be created: {error.strerror}.",
            hint="Name a file in a folder that you may write to: --store sqlite:FILE",
            code="database_not_made",
        ) from error


def _is_there(file: Path) -> bool:
    try:
        file.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _inode(file: str) -> int:
    """Return which file it is; 0: none."""
    try:
        return os.stat(file).st_ino
    except OSError:
        return 0


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _may(path: Path, how: int) -> bool:
    return os.access(path, how, effective_ids=os.access in os.supports_effective_ids)


def _beside(file: Path) -> str:
    """Return what the files that SQLite keeps beside an open database say of it; "": nothing."""
    wal, shared = _shared(file)
    if not wal.exists():
        return ""
    if shared.exists():
        return _IN_USE
    return _UNFINISHED if wal.stat().st_size else ""


def _shared(file: Path) -> tuple[Path, Path]:
    return file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")


def _state(file: Path) -> State:
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
