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
from pipeline.files import open_regular
from pipeline.records.lines import LineDamaged, check_line, line_seq
from pipeline.store.backend import Backend, Gone, Held, Refused, Tail, Tip, Unsure
from pipeline.store.disk import FOLDER_MODE, NO_SPACE, Disk, Reserve, read_file, write_all, write_file
from pipeline.store.head import HEAD
from pipeline.store.lock import OwnerLock, acquire, brief_lock, try_lock
from pipeline.store.names import BUILDING, JOURNAL, PARTS, REMOVING, is_id, is_minted, newest_first, part_folder, split
from pipeline.store.owner import LOCK, is_owned

BLOBS = "blobs"
#: The journal of a run that is being made; and the one that takes the place of another.
NEW, _ASIDE = ".journal.new", ".journal.aside"
_STORE_LOCK = ".lock"
_RETRIES = 3
#: Held for a run itself, and for each paid call that may be in flight.
_BASE, _PER_CALL = 1 << 20, 256 << 10
_BLOCK = 1 << 20
#: The first window of a bisection step; grows where lines are longer.
_WINDOW = 1 << 13


class FolderTail(Tail):
    """The end of a journal file, and the lock beside it."""

    def __init__(self, backend: FolderBackend, name: str, folder: Path, lock: OwnerLock) -> None:
        """Open what is there; a run that is being made has no journal yet.

        Raises:
            OSError: It cannot be opened, or there is no room for the reserve.
        """
        self._backend = backend
        self._disk = backend.disk
        self._lock = lock
        self._folder = folder
        #: As text, which takes a third of the time to look at: it is done at each append.
        self._home, self._path = str(folder), str(folder / JOURNAL)
        self._fd = -1
        self._size = 0
        self._file = (0, 0)
        #: The last append, so that the same again is known.
        self._last: tuple[int, bytes] = (0, b"")
        #: Something was appended since the last sync.
        self._loose = False
        #: A sync failed: a second one would lie.
        self._broken = False
        self._reserve = Reserve(self._disk, folder, backend.reserve)
        try:
            if os.path.lexists(self._path):
                self._open()
        except OSError:
            self._reserve.free()
            raise

    @property
    def strained(self) -> bool:
        """See Tail.strained."""
        return self._reserve.released

    def append(self, seq: int, lines: Sequence[bytes], sync: bool) -> None:
        """See Tail.append."""
        data = lines[0] if len(lines) == 1 else b"".join(lines)
        if self._fd < 0:
            if self._broken:
                raise Unsure("A sync of the journal has failed.")
            self._create(data)
            return
        if seq == self._last[0] and data == self._last[1]:
            return
        if not self._lock.is_in(self._home):
            raise Gone(self._home, self._stored)
        try:
            if data and self._disk.write(self._fd, data) != len(data):
                raise OSError(errno.ENOSPC, "only part of it fitted")
        except OSError as error:
            self._write_again(data, error)
        self._size += len(data)
        self._last = seq, data
        if not sync:
            self._loose = True
            return
        self._sync()
        # The lock was looked at before the write; it is again before the next one.
        if not self._is_found(self._size):
            raise Gone(self._home, self._stored, written=True)

    def head(self, data: bytes, sync: bool) -> None:
        """See Tail.head."""
        if self._fd < 0 or not (self._is_found(self._size) and self._lock.is_in(self._home)):
            raise Gone(self._home, self._stored)
        aside = self._folder / ".checkpoint.new"
        write_file(self._disk, aside, data, sync=sync, replace=True)
        self._disk.replace(aside, self._folder / HEAD)
        if sync:
            self._disk.sync_folder(self._folder)

    def put(self, key: str, data: bytes) -> None:
        """See Tail.put."""
        # Another thread may be writing records: how long the journal is cannot be compared here.
        if self._fd >= 0 and not (self._is_found() and self._lock.is_in(self._home)):
            raise Gone(self._home, self._stored)
        path = self._backend.path(key)
        with contextlib.suppress(OSError):
            if read_file(path) == data:
                return
        try:
            self._backend.put_file(path, data)
        except OSError as error:
            if error.errno not in NO_SPACE or not self._reserve.free():
                raise
            self._backend.put_file(path, data)

    def rewrite(self, lines: Sequence[bytes]) -> None:
        """See Tail.rewrite. Where only the end is to go, the file is cut, which needs no space."""
        text = b"".join(lines)
        if self._fd >= 0 and lines and os.pread(self._fd, self._size, 0).startswith(text[:-1]):
            self._disk.truncate(self._fd, len(text) - 1)
            write_all(self._disk, self._fd, b"\n")
            self._disk.sync(self._fd)
            self._size = len(text)
            return
        aside = self._folder / _ASIDE
        write_file(self._disk, aside, text, replace=True)
        self._disk.replace(aside, self._folder / JOURNAL)
        self._disk.sync_folder(self._folder)
        self._close()
        self._open()

    def left(self) -> str:
        """See Tail.left."""
        if self._fd < 0:
            return ""
        info = os.fstat(self._fd)
        return _stamp(info) if info.st_size == self._size else ""

    def release(self) -> None:
        """See Tail.release."""
        if self._loose and self._fd >= 0 and not self._broken:
            with contextlib.suppress(OSError):
                self._disk.sync(self._fd)
        self.drop()
        self._lock.release()

    def drop(self) -> None:
        """See Tail.drop."""
        self._close()
        self._reserve.close()

    def _open(self) -> None:
        self._fd = self._disk.open(self._folder / JOURNAL, os.O_RDWR | os.O_APPEND)
        found = os.fstat(self._fd)
        self._size, self._file = found.st_size, (found.st_ino, found.st_dev)
        self.found = _stamp(found)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _create(self, data: bytes) -> None:
        """Give the run its journal, whole and durable: from now on it exists.

        Raises:
            OSError: It does not.
        """
        fd = self._disk.open(self._folder / NEW, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(self._disk, fd, data)
            self._disk.sync(fd)
        finally:
            os.close(fd)
        self._disk.replace(self._folder / NEW, self._folder / JOURNAL)
        self._disk.sync_folder(self._folder)
        self._disk.sync_folder(self._folder.parent)
        self._open()

    def _write_again(self, data: bytes, error: OSError) -> None:
        """Write after a refusal, from a clean end of file; frees the reserve where space ran out.

        Raises:
            Refused: Again and again; the journal is as before.
        """
        for _ in range(_RETRIES):
            try:
                self._disk.truncate(self._fd, self._size)
                if error.errno in NO_SPACE:
                    self._reserve.free()
                if self._disk.write(self._fd, data) == len(data):
                    return
            except OSError as again:
                error = again
        with contextlib.suppress(OSError):
            self._disk.truncate(self._fd, self._size)
        hint = "Free space on the disk, then resume the run."
        raise Refused(f"The disk refused a write ({error.strerror}).", hint) from error

    def _sync(self) -> None:
        try:
            self._disk.sync(self._fd)
        except OSError as error:
            # What the file holds is not known, and a second sync would lie: it is left for good.
            self._broken = True
            self._close()
            hint = "Free space on the disk, then resume the run."
            raise Unsure(f"The disk could not make a record durable ({error.strerror}).", hint) from error
        self._loose = False

    def _is_found(self, size: int | None = None) -> bool:
        """Return whether the journal in the run's folder is the one that is written here, of that many bytes."""
        try:
            found = os.stat(self._path)
        except PermissionError:
            return True
        except OSError:
            return False
        return (found.st_ino, found.st_dev) == self._file and (size is None or found.st_size == size)

    def _stored(self) -> bytes | None:
        """Return the whole journal; None where it was cut short, or is another's too by now."""
        try:
            stored = os.pread(self._fd, self._size + 1, 0)
        except OSError:
            return None
        return stored if len(stored) == self._size else None


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
        """See Tail.release."""
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
        """See Backend.own."""
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
            return FolderTail(self, name, folder, lock)
        except BaseException:
            lock.release()
            raise

    def read(self, name: str, after: int = 0) -> Iterator[list[bytes]]:
        """See Backend.read."""
        path = self._folder(name) / JOURNAL
        if not os.path.lexists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return _read(path, name, after)

    def put_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        """See Backend.put_if."""
        path = self.path(key)
        if etag is None:
            self.put_file(path, data)
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
                self.put_file(path, data)
        return _etag(data)

    def get(self, key: str) -> tuple[bytes, str] | None:
        """See Backend.get."""
        data = read_file(self.path(key))
        return None if data is None else (data, _etag(data))

    def list(self, prefix: str) -> Iterator[str]:
        """See Backend.list."""
        folder = self.path(f"{prefix}?").parent
        found = folder.parent.glob("*/*") if prefix.endswith(f"/{BLOBS}/") else folder.glob("*")
        return iter(sorted(f"{prefix}{path.name}" for path in found if not path.name.startswith(".")))

    def delete(self, prefix: str) -> None:
        """See Backend.delete."""
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

    def tips(self, claim: str = "") -> Iterator[Tip]:
        """See Backend.tips."""
        names = entries(self.root)
        for name in newest_first([name for name in names if is_id(name)]):
            if tip := self.tip(f"{self.root}/{name}", name):
                yield tip
        for name in sorted(names):
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
            return Tip(name, problem="Its journal is no file.", owned=owned)
        first = partial(first_line, f"{folder}/{JOURNAL}")
        return Tip(name, raw, size=journal.st_size, touched=touched, first=first, owned=owned)

    def parts(self, run: str) -> Sequence[str]:
        """See Backend.parts."""
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
        """See Backend.ended."""
        fd = open_regular(self._folder(name) / JOURNAL, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            size = os.fstat(fd).st_size
            return size == 0 or os.pread(fd, 1, size - 1) == b"\n"
        finally:
            os.close(fd)

    def place_of(self, run: str) -> str:
        """See Backend.place_of: the same whichever way the run was opened."""
        return os.path.realpath(self.home(split(run)[0]))

    def home(self, run_id: str) -> Path:
        """Return the folder of a run of that id, whether it is there or not."""
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

    def put_file(self, path: Path, data: bytes) -> None:
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
            text = f"Run {name} is a link or no folder, so it is not touched."
            raise StoreError(text, run=name, code="not_a_folder")
        if info.st_uid != os.geteuid():
            text = f"Run {name} belongs to another user ({info.st_uid}), so it is not touched."
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
            return FolderTail(self, name, home, lock)
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


def first_line(path: str) -> bytes:
    """Return a file's first line, without its newline."""
    fd = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        size = 1 << 12
        while True:
            data = os.pread(fd, size, 0)
            line, newline, _ = data.partition(b"\n")
            if newline or len(data) < size:
                return line
            size *= 8
    finally:
        os.close(fd)


def file_blocks(fd: int, offset: int = 0) -> Iterator[list[bytes]]:
    """Return the lines of a file from `offset` on, a few hundred at a time, empty ones among them."""
    rest: list[bytes] = []
    # Small at first: who seeks wants one line.
    size = _WINDOW
    while block := os.pread(fd, size, offset):
        offset += len(block)
        size = min(size * 4, _BLOCK)
        parts = block.split(b"\n")
        if len(parts) == 1:
            rest.append(block)
            continue
        parts[0] = b"".join([*rest, parts[0]])
        rest = [parts.pop()]
        yield parts
    if last := b"".join(rest):
        yield [last]


def _read(path: Path, name: str, after: int) -> Iterator[list[bytes]]:
    try:
        fd = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        text = f"The journal of run {name} cannot be read: {error.strerror}."
        raise StoreError(text, run=name, code="journal_unreadable") from error
    try:
        yield from file_blocks(fd, _place(fd, os.fstat(fd).st_size, after) if after else 0)
    finally:
        os.close(fd)


def _place(fd: int, size: int, after: int) -> int:
    """Return an offset at or before the first line with seq > after, near it: a bisection over the file."""
    low, high = 0, size
    while high - low > _WINDOW:
        middle = (low + high) // 2
        found = _line_behind(fd, middle, high)
        if found is None or found[0] > after:
            high = middle
        else:
            low = found[1]
            if found[0] == after:
                break
    return low


def _line_behind(fd: int, offset: int, limit: int) -> tuple[int, int] | None:
    """Return seq and offset of the first whole line that begins after `offset` and before `limit`."""
    window = _WINDOW
    while True:
        data = os.pread(fd, window, offset)
        begin = data.find(b"\n") + 1
        while begin and begin < len(data) and offset + begin < limit:
            end = data.find(b"\n", begin)
            if end < 0:
                break
            try:
                return line_seq(check_line(data[begin:end])), offset + begin
            except (LineDamaged, ValueError):
                begin = end + 1
        if len(data) < window or offset + (begin or len(data)) >= limit:
            return None
        window *= 4


def _without_files(folder: str, name: str, touched: float) -> Tip | None:
    """Return what a folder with neither journal nor head is: half made, a run that lost both, or another's (None)."""
    names = os.listdir(folder)
    if NEW in names or (not names and is_minted(name)):
        return Tip(name, leftover=True, touched=touched)
    return Tip(name, problem="Its journal is missing.") if {LOCK, BLOBS} & set(names) else None


def _instead_of_a_folder(path: str, name: str, mode: int) -> str:
    """Return what is in the place of a run's folder, a sentence; "" for what was never a run."""
    if not stat.S_ISLNK(mode):
        return "It is no folder." if is_minted(name) else ""
    target = os.path.realpath(path)
    if os.path.dirname(target) == os.path.realpath(os.path.dirname(path)) and os.path.isdir(target):
        # Another name for a run that is listed anyway.
        return ""
    files = (os.path.lexists(f"{target}/{part}") for part in (JOURNAL, HEAD))
    if is_minted(name) or not os.path.lexists(target) or any(files):
        return "It is a link, which is not followed; put the folder itself there."
    return ""


def _stamp(info: os.stat_result) -> str:
    return f"{info.st_ino}:{info.st_size}:{info.st_mtime_ns}"


def _etag(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()
