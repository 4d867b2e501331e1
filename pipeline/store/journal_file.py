"""A journal as a file: read in blocks, appended to by its owner, and what that one does where the disk refuses."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pipeline.errors import StoreError
from pipeline.files import open_regular
from pipeline.records.lines import LineDamaged, check_line, line_seq
from pipeline.store.backend import Gone, Refused, Tail, Unsure
from pipeline.store.disk import NO_SPACE, Disk, Reserve, write_all, write_file
from pipeline.store.head import HEAD
from pipeline.store.lock import OwnerLock
from pipeline.store.names import JOURNAL

#: The journal of a run that is being made; and the one that takes the place of another.
NEW, _ASIDE = ".journal.new", ".journal.aside"
_RETRIES = 3
_BLOCK = 1 << 20
#: The first window of a bisection step; grows where lines are longer.
_WINDOW = 1 << 13


class FileTail(Tail):
    """The end of a journal file, and the lock beside it."""

    def __init__(
        self, disk: Disk, folder: Path, lock: OwnerLock, *, reserve: int, put: Callable[[str, bytes], None]
    ) -> None:
        """Open what is there; a run that is being made has no journal yet.

        Args:
            reserve: Bytes to hold back on the disk.
            put: Puts an object of the run, whatever was there.

        Raises:
            OSError: It cannot be opened, or there is no room for the reserve.
        """
        self._disk = disk
        self._put = put
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
        self._reserve = Reserve(disk, folder, reserve)
        try:
            if os.path.lexists(self._path):
                self._open()
        except OSError:
            self._reserve.free()
            raise

    @property
    def strained(self) -> bool:
        return self._reserve.released

    def append(self, seq: int, lines: Sequence[bytes], sync: bool) -> None:
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
        if self._fd < 0 or not (self._is_found(self._size) and self._lock.is_in(self._home)):
            raise Gone(self._home, self._stored)
        aside = self._folder / ".checkpoint.new"
        write_file(self._disk, aside, data, sync=sync, replace=True)
        self._disk.replace(aside, self._folder / HEAD)
        if sync:
            self._disk.sync_folder(self._folder)

    def put(self, key: str, data: bytes) -> None:
        # Another thread may be writing records: how long the journal is cannot be compared here.
        if self._fd >= 0 and not (self._is_found() and self._lock.is_in(self._home)):
            raise Gone(self._home, self._stored)
        try:
            self._put(key, data)
        except OSError as error:
            if error.errno not in NO_SPACE or not self._reserve.free():
                raise
            self._put(key, data)

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
        if self._fd < 0:
            return ""
        info = os.fstat(self._fd)
        return _stamp(info) if info.st_size == self._size else ""

    def release(self) -> None:
        if self._loose and self._fd >= 0 and not self._broken:
            with contextlib.suppress(OSError):
                self._disk.sync(self._fd)
        self.drop()
        self._lock.release()

    def drop(self) -> None:
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


def read_blocks(path: Path, name: str, after: int) -> Iterator[list[bytes]]:
    """Return the lines of a journal from before the first with seq > after; see Backend.read.

    Raises:
        StoreError: It cannot be read.
    """
    fd = _opened(path, name)
    try:
        yield from file_blocks(fd, _place(fd, os.fstat(fd).st_size, after) if after else 0)
    finally:
        os.close(fd)


def is_ended(path: Path, name: str) -> bool:
    """Return whether the last line of a journal has its newline.

    Raises:
        FileNotFoundError: There is no journal.
        StoreError: It cannot be read.
    """
    os.lstat(path)
    fd = _opened(path, name)
    try:
        size = os.fstat(fd).st_size
        return size == 0 or os.pread(fd, 1, size - 1) == b"\n"
    finally:
        os.close(fd)


def _opened(path: Path, name: str) -> int:
    try:
        return open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        text = f"The journal of run {name} cannot be read: {error.strerror}."
        raise StoreError(text, run=name, code="journal_unreadable") from error


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


def _stamp(info: os.stat_result) -> str:
    return f"{info.st_ino}:{info.st_size}:{info.st_mtime_ns}"
