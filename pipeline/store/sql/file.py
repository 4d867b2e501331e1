"""The file of a SQLite database: made, written to, or only read where that is all one may do. Knows no tables."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeline.errors import PipelineError, StoreError
from pipeline.store.disk import FOLDER_MODE

#: Only the owner reads what runs hold.
_FILE_MODE = 0o600
#: How long a program that has the database to itself is waited for.
WAIT_SECONDS = 30


#: Somebody has the database open, or died with all that others need to go on; or with less than that.
IN_USE, UNFINISHED = "in use", "unfinished"
_MAY_NOT = "Go on as the user whose file it is, or let that user allow it: chmod a+r on the file, a+x on its folders."
#: How a file was: its inode, size, and when it was changed.
State = tuple[int, ...]


@functools.cache
def _frozen() -> Any:
    """Connections to files that nobody has open, without locks, each good for one look."""
    import sqlite3

    class Frozen(sqlite3.Connection):
        #: How the file was when it was opened.
        seen: State

    return Frozen


def frozen(connection: Any) -> State | None:
    """How the file was when a connection without locks was opened; None: it has locks."""
    return getattr(connection, "seen", None)


def is_as(file: Path, seen: State) -> bool:
    """Whether nobody can have written since: who writes makes a -wal first, and changes the file in the end."""
    return not _beside(file) and _state(file) == seen


def is_there(file: Path) -> bool:
    """Whether there is such a file, as far as one may look: what hides it is said when it is opened."""
    try:
        file.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True


class Held:
    """The file that open journals of this process are in: it must stay the same, and is never made anew."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        #: As text, which takes a third of the time to look at: it is done at each append.
        self._path = str(file)
        self._journals = self._inode = 0
        self._gone = False

    def begin(self) -> None:
        """A journal in it is open."""
        if self._file is not None and not self._journals:
            self._inode = _inode(self._path)
        self._journals += 1

    def end(self) -> None:
        """A journal in it is closed."""
        self._journals = max(self._journals - 1, 0)

    def check(self, kind: type[PipelineError], drop: Callable[[], None]) -> None:
        """Nothing is written into a file that is gone, nor is a new one made in its place.

        Args:
            drop: Closes connections to the one that is gone.

        Raises:
            PipelineError: Of this kind: it is gone, or another one stands there.
        """
        if self._file is None or not (self._journals or self._gone) or (now := _inode(self._path)) == self._inode:
            return
        if now and not self._journals:
            # Somebody has brought it back.
            self._gone = False
            return
        self._gone = True
        drop()
        raise kind(
            f"The database {self._file} is gone: it was removed or replaced while a run was going on in it. "
            "Its runs can only come back with a copy of the file.",
            hint="Bring the file back from a copy, then go on with the run.", again=False,
            gone="Bring the file back from a copy",
        )  # fmt: skip


def _inode(file: str) -> int:
    """Which file it is; 0: none."""
    try:
        return os.stat(file).st_ino
    except OSError:
        return 0


def make(file: Path) -> None:
    """The file, empty, if it is not there.

    Raises:
        StoreError: It cannot be made or opened.
    """
    if is_there(file):
        return
    try:
        file.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE))
    except OSError as error:
        raise StoreError(
            f"The database {file} cannot be made: {error.strerror}.",
            hint="Name a file in a folder that you may write to: --store sqlite:FILE",
        ) from error


def connect(file: Path) -> Any:
    """A connection that commits durably; or one that only reads, where the file or its folder cannot be written to.

    Raises:
        StoreError: The file cannot even be read.
        sqlite3.Error: It cannot be opened.
    """
    make(file)
    if not _may(file, os.R_OK):
        raise StoreError(f"The database {file} cannot be read: Permission denied.", hint=_MAY_NOT)
    beside = _beside(file)
    if _may(file, os.W_OK) and (_may(file.parent, os.W_OK) or beside == IN_USE):
        return _ready(_open(file, "rw"))
    if beside == IN_USE:
        if hidden := [path.name for path in _shared(file) if not _may(path, os.R_OK)]:
            raise StoreError(
                f"The database {file} is open elsewhere, and {hidden[0]} beside it cannot be read: Permission denied.",
                hint="Try again once nobody has it open, or have its user allow it: chmod a+r on that file too.",
            )
        return _ready(_open(file, "ro"), writes=False)
    if beside == UNFINISHED:
        raise StoreError(
            f"The database {file} was left by a process that died while it wrote.",
            hint=f"Have a user who may write there put that right: list --store sqlite:{file}",
        )
    # Whatever SQLite made beside the file to lock it would be ours, and keep out who may write; often we could not
    # even make it. So it is read without locks, as if it could not change, which is true as long as nobody has it
    # open: that is looked for before each look and after it.
    seen = _state(file)
    connection = _open(file, "ro&immutable=1", _frozen())
    connection.seen = seen
    return _ready(connection, writes=False)


def hint(code: str, file: Path) -> str:
    """What to do where SQLite says no, by the name of its error."""
    if code.startswith("SQLITE_BUSY"):
        return f"Find it (fuser {shlex.quote(str(file))}) and have it commit or end, then the same command again."
    if code == "SQLITE_FULL":
        return "Free space on the disk, then go on."
    if code.startswith("SQLITE_READONLY"):
        return f"Go on as a user who may write to {file} and its folder; reading it works as you are."
    if code.startswith("SQLITE_CORRUPT"):
        return "Bring the file back from a copy. What is damaged lies between its rows, where no resume mends it."
    if code == "SQLITE_NOTADB":
        return "It is no database: name another file, or bring it back from a copy."
    return "Check the file and its folder."


def _open(file: Path, mode: str, kind: Any = None) -> Any:
    # Not before a database is asked: who lists a folder of runs need not wait for it.
    import sqlite3

    return sqlite3.connect(
        f"file:{quote(str(file))}?mode={mode}",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=kind or sqlite3.Connection,
    )


def _ready(connection: Any, *, writes: bool = True) -> Any:
    # Somebody may have put any bytes anywhere.
    connection.text_factory = _text
    for pragma in ("journal_mode = WAL", "synchronous = FULL") if writes else ():
        connection.execute(f"PRAGMA {pragma}").close()
    return connection


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _may(path: Path, how: int) -> bool:
    return os.access(path, how, effective_ids=os.access in os.supports_effective_ids)


def _beside(file: Path) -> str:
    """What the files that SQLite keeps beside an open database say of it: IN_USE, UNFINISHED or nothing."""
    wal, shared = _shared(file)
    if not wal.exists():
        return ""
    if shared.exists():
        return IN_USE
    return UNFINISHED if wal.stat().st_size else ""


def _shared(file: Path) -> tuple[Path, Path]:
    return file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")


def _state(file: Path) -> State:
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
