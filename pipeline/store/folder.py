"""The backend of a folder of runs: a folder each, a flock that the kernel frees at death, files that sync and rename.

A run's folder holds its lock, `journal.jsonl`, the head `checkpoint.json`, `blobs/` and `parts/`, which hold the same.
A creation that was cut off leaves `.journal.new` and no journal.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from pipeline.clock import Clock
from pipeline.errors import StoreError
from pipeline.store.backend import Backend, Held, Tail, Tip
from pipeline.store.disk import FOLDER_MODE, Disk, read_file, write_file
from pipeline.store.head import HEAD
from pipeline.store.journal_file import NEW, FileTail, first_line, is_ended, read_blocks
from pipeline.store.lock import OwnerLock, acquire, brief_lock, try_lock
from pipeline.store.names import (
    BUILDING,
    JOURNAL,
    PARTS,
    REMOVING,
    is_id,
    is_minted,
    newest_first,
    older,
    part_folder,
    split,
)
from pipeline.store.owner import LOCK, is_owned, owner

BLOBS = "blobs"
_STORE_LOCK = ".lock"
#: Held for a run itself, and for each paid call that may be in flight.
_BASE, _PER_CALL = 1 << 20, 256 << 10


class StoreLock(Tail):
    """The lock of a whole folder of runs, for the moment in which a run with a claim is made."""

    def __init__(self, backend: FolderBackend, fd: int) -> None:
        self._backend = backend
        self._fd = fd

    def append(self, seq: int, lines: Sequence[bytes], sync: bool) -> None:
        """See Tail.append; a lock cannot be lost, so there is nothing to prove."""

    def head(self, data: bytes, sync: bool) -> None:
        """See Tail.head."""

    def put(self, key: str, data: bytes) -> None:
        """See Tail.put."""

    def rewrite(self, lines: Sequence[bytes]) -> None:
        """See Tail.rewrite."""

    def release(self) -> None:
        if self._fd >= 0:
            self._backend.claiming = 0
            os.close(self._fd)
            self._fd = -1


class FolderBackend(Backend):
    """A folder of runs."""

    head_name, journal_name = HEAD, JOURNAL

    def __init__(self, root: Path | str, clock: Clock, *, concurrency: int = 0, disk: Disk | None = None) -> None:
        """Name the folder, which need not be there.

        Args:
            concurrency: Calls that may be in flight: as much disk is held back to record them; 0: none is.
        """
        self.url = f"files:{root}"
        #: Absolute, so that a later change of folder does not move the store.
        self.root = Path(os.path.abspath(root))
        self.place = str(self.root)
        self.disk = disk or Disk()
        #: Bytes held back for what may be in flight when the disk is full.
        self.reserve = _BASE + _PER_CALL * concurrency if concurrency else 0
        #: The thread that has the lock of the whole folder; 0: none of this process.
        self.claiming = 0
        self._clock = clock

    def own(self, name: str, since: datetime, *, new: bool = False) -> Tail | None:
        if new:
            return self._begin(name, since)
        if name.startswith(".claims/"):
            return self._own_all()
        try:
            folder = self._folder(name)
            if "/" in name:
                folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            lock = acquire(self.disk, folder, since)
        except FileNotFoundError:
            return None
        try:
            if "/" in name and not os.path.lexists(folder / JOURNAL):
                write_file(self.disk, folder / JOURNAL, b"")
                self.disk.sync_folder(folder)
            return self.tail(folder, lock)
        except BaseException:
            lock.release()
            raise

    def read(self, name: str, after: int = 0) -> Iterator[list[bytes]]:
        path = self._folder(name) / JOURNAL
        if not os.path.lexists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return read_blocks(path, name, after)

    def put_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        path = self.path(key)
        if etag is None:
            self._put_file(path, data)
        elif not etag:
            self._need(path.parent)
            try:
                write_file(self.disk, path, data)
            except FileExistsError:
                return None
            self.disk.sync_folder(path.parent)
        else:
            with brief_lock(self.disk, self.root / _STORE_LOCK):
                found = self.get(key)
                if found is None or found[1] != etag:
                    return None
                self._put_file(path, data)
        return _etag(data)

    def get(self, key: str) -> tuple[bytes, str] | None:
        data = read_file(self.path(key))
        return None if data is None else (data, _etag(data))

    def list(self, prefix: str) -> Iterator[str]:
        folder = self.path(f"{prefix}?").parent
        found = folder.parent.glob("*/*") if prefix.endswith(f"/{BLOBS}/") else folder.glob("*")
        return iter(sorted(f"{prefix}{path.name}" for path in found if not path.name.startswith(".")))

    def delete(self, prefix: str) -> None:
        path = self.path(prefix)
        if path.name.startswith((BUILDING, REMOVING)):
            shutil.rmtree(path)
        elif path.is_dir() and not path.is_symlink():
            # An id never begins with a dot, so a part is out of the way as well while it goes.
            gone = self.root / f"{REMOVING}{path.name}-{os.urandom(4).hex()}"
            self.disk.replace(path, gone)
            self.disk.sync_folder(path.parent)
            shutil.rmtree(gone)
        else:
            path.unlink(missing_ok=True)

    def tips(self, claim: str = "", start: str = "") -> Iterator[Tip]:
        # Before the folder is listed: a caller that wants one run reads no further.
        if is_id(start) and (tip := self.tip(f"{self.root}/{start}", start)):
            yield tip
        names = entries(self.root)
        # Names are looked at as far as the list is read: most callers want the newest few.
        for name in older(names, start) if start else newest_first(names):
            if is_id(name) and (tip := self.tip(f"{self.root}/{name}", name)):
                yield tip
        for name in () if start else sorted(names):
            if name.startswith((BUILDING, REMOVING)):
                with contextlib.suppress(OSError):
                    info = os.lstat(self.root / name)
                    yield Tip(name, leftover=True, touched=info.st_mtime if stat.S_ISDIR(info.st_mode) else 1e18)

    def tip(self, folder: str, name: str) -> Tip | None:
        """Return the run of that name in that folder; None: it is none."""
        try:
            info = os.lstat(folder)
        except OSError:
            return None
        if not stat.S_ISDIR(info.st_mode):
            why = _instead_of_a_folder(folder, name, info.st_mode)
            return Tip(name, problem=why) if why else None
        if info.st_uid != os.geteuid():
            return Tip(name, problem=f"It belongs to another user ({info.st_uid}).")
        raw, unread = None, ""
        try:
            raw = read_file(f"{folder}/{HEAD}")
        except OSError as error:
            unread = error.strerror or str(error)
        try:
            journal = os.lstat(f"{folder}/{JOURNAL}")
        except FileNotFoundError:
            if unread:
                return Tip(name, problem=f"It has no journal, and checkpoint.json cannot be read: {unread}.")
            if raw is None:
                return _without_files(folder, name, info.st_mtime)
            return Tip(name, raw, size=0, journal=False, owned=partial(is_owned, folder, 0, self._clock))
        except OSError as error:
            return Tip(name, problem=f"It cannot be read: {error.strerror}.")
        touched = journal.st_mtime
        owned = partial(is_owned, folder, touched, self._clock)
        if not stat.S_ISREG(journal.st_mode):
            return Tip(name, problem="Its journal is not a file.", owned=owned)
        first = partial(first_line, f"{folder}/{JOURNAL}")
        holder = partial(owner, folder)
        return Tip(name, raw, size=journal.st_size, touched=touched, first=first, owned=owned, holder=holder)

    def parts(self, run: str, beginning: str = "") -> Sequence[str]:
        found = self.home(run).glob(f"{PARTS}/*")
        return sorted(unquote(path.name) for path in found if os.path.lexists(path / JOURNAL))

    def is_there(self) -> bool:
        """See Backend.is_there. What hides the folder is said when it is read."""
        try:
            self.root.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def ended(self, name: str) -> bool:
        return is_ended(self._folder(name) / JOURNAL, name)

    def place_of(self, run: str) -> str:
        """See Backend.place_of: the same whichever way the run was opened."""
        return os.path.realpath(self.home(split(run)[0]))

    def tail(self, folder: Path, lock: OwnerLock) -> Tail:
        return FileTail(self.disk, folder, lock, reserve=self.reserve, put=self._put_new)

    def home(self, run_id: str) -> Path:
        return self.root / run_id

    def path(self, key: str) -> Path:
        """Return where an object lies, or a run or part."""
        kind, _, rest = key.partition("/")
        if kind != "runs":
            return self.root / f".{kind}" / rest
        run_id, *frames = rest.split("/")
        home = self.home(run_id)
        if frames[:1] == [PARTS]:
            home, frames = home / PARTS / frames[1], frames[2:]
        if not frames:
            return home
        if frames[0] == "head":
            return home / HEAD
        if frames[0] == "x":
            return home / frames[1]
        return home / BLOBS / frames[1][:2] / frames[1] if frames[0] == BLOBS else home.joinpath(*frames)

    def _put_new(self, key: str, data: bytes) -> None:
        """Put an object where it is not there already."""
        path = self.path(key)
        with contextlib.suppress(OSError):
            if read_file(path) == data:
                return
        self._put_file(path, data)

    def _put_file(self, path: Path, data: bytes) -> None:
        """Put a file in its place as a whole, durable on return.

        Raises:
            OSError, StoreError: What was there is there still.
        """
        self._need(path.parent)
        # Parts of a run share its values: another of their workers may be writing the same one now.
        aside = path.with_name(f".new-{path.name}-{os.getpid()}-{threading.get_ident()}")
        write_file(self.disk, aside, data, replace=True)
        self.disk.replace(aside, path)
        self.disk.sync_folder(path.parent)

    def _need(self, folder: Path) -> None:
        """Make sure of a folder below one that is there.

        Raises:
            StoreError: Something else is in its place.
        """
        try:
            mode = os.lstat(folder).st_mode
        except FileNotFoundError:
            if folder.parent != self.root:
                self._need(folder.parent)
            self.root.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self.disk.make_folder(folder)
            self.disk.sync_folder(folder.parent)
        else:
            if not stat.S_ISDIR(mode):
                raise StoreError(f"{folder.name} is not a folder of this run.", path=str(folder), code="not_a_folder")

    def _folder(self, name: str) -> Path:
        """Return where a run or part lies.

        Raises:
            FileNotFoundError: Its run is not there.
            StoreError: It is a link, or belongs to another user.
        """
        run, _, path = name.partition("/")
        home = self.home(run)
        info = os.lstat(home)
        if not stat.S_ISDIR(info.st_mode):
            text = f"Run {name} is a link or not a folder, so it is left alone."
            raise StoreError(text, run=name, code="not_a_folder")
        if info.st_uid != os.geteuid():
            text = f"Run {name} belongs to another user ({info.st_uid}), so it is left alone."
            raise StoreError(text, run=name, code="another_user")
        return part_folder(home, path) if path else home

    def _begin(self, name: str, since: datetime) -> Tail | None:
        """Make the folder of a run, owned; None: the name is taken."""
        self.root.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        mine = self.claiming == threading.get_ident()
        # An older version renames a folder onto an empty one, under this lock.
        with contextlib.nullcontext() if mine else brief_lock(self.disk, self.root / _STORE_LOCK):
            home = self.root / name
            try:
                self.disk.make_folder(home)
            except FileExistsError:
                return None
            return self._begun(name, home, since)

    def _begun(self, name: str, home: Path, since: datetime) -> Tail:
        lock = None
        try:
            os.close(self.disk.open(home / NEW, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
            lock = acquire(self.disk, home, since)
            return self.tail(home, lock)
        except BaseException:
            with contextlib.suppress(OSError):
                self.delete(f"runs/{name}")
            if lock is not None:
                lock.release()
            raise

    def _own_all(self) -> Tail:
        self.root.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        fd = try_lock(self.disk, self.root / _STORE_LOCK)
        if fd < 0:
            raise Held({})
        self.claiming = threading.get_ident()
        return StoreLock(self, fd)


def entries(root: str | Path) -> list[str]:
    """Return what is in the folder of a store; nothing where there is none yet.

    Raises:
        StoreError: It cannot be read.
    """
    try:
        return os.listdir(root)
    except FileNotFoundError:
        return []
    except OSError as error:
        text = f"The store {root} cannot be read: {error.strerror}."
        raise StoreError(text, hint="--store files:DIR names a folder of runs.", code="store_unreadable") from error


def _without_files(folder: str, name: str, touched: float) -> Tip | None:
    """Return what a folder with neither journal nor head is: half made, a run that lost both, or another's (None)."""
    names = os.listdir(folder)
    if NEW in names or (not names and is_minted(name)):
        return Tip(name, leftover=True, touched=touched)
    return Tip(name, problem="Its journal is missing.") if {LOCK, BLOBS} & set(names) else None


def _instead_of_a_folder(path: str, name: str, mode: int) -> str:
    """Return what is in the place of a run's folder, a sentence; "" for what was never a run."""
    if not stat.S_ISLNK(mode):
        return "It is not a folder." if is_minted(name) else ""
    target = os.path.realpath(path)
    if os.path.dirname(target) == os.path.realpath(os.path.dirname(path)) and os.path.isdir(target):
        # Another name for a run that is listed anyway.
        return ""
    files = (os.path.lexists(f"{target}/{part}") for part in (JOURNAL, HEAD))
    if is_minted(name) or not os.path.lexists(target) or any(files):
        return "It is a link, which is not followed; put the folder itself there."
    return ""


def _etag(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()
