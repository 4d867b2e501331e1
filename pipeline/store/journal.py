"""The one writer of a run's files: appends, syncs, and what it does when the disk refuses. Knows lines, not facts."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pipeline.errors import StoreError, WriteFailed
from pipeline.records.lines import line_body, line_seq
from pipeline.store.base import Taken
from pipeline.store.blobs import BlobFolder
from pipeline.store.disk import NO_SPACE, Disk, write_file
from pipeline.store.emergency import EmergencyFile, advice
from pipeline.store.head import HEAD, head_bytes
from pipeline.store.lock import OwnerLock, drop_in_children
from pipeline.store.names import JOURNAL
from pipeline.store.repair import Repair
from pipeline.store.reserve import Reserve
from pipeline.store.scan import lines as scan_lines
from pipeline.store.scan import place

_RETRIES = 3


class FileJournal:
    """An open journal; see store.base.Journal. One thread at a time."""

    queried = False

    def __init__(
        self,
        run: str,
        folder: Path,
        lock: OwnerLock,
        *,
        disk: Disk,
        blobs: BlobFolder,
        last_seq: int,
        reserve: int,
        repairs: Sequence[Repair] = (),
        named: str = "",
        place: str = "",
        closed: Callable[[os.stat_result, int], None] = lambda info, last_seq: None,
    ) -> None:
        self.run_id = run
        #: How people name the run.
        self._named = named or run
        self.last_seq = last_seq
        self.repairs: Sequence[Sequence[Any]] = repairs
        self._folder = folder
        #: As text, which takes a third of the time to look at: it is done at each append.
        self._home, self._path = str(folder), str(folder / JOURNAL)
        self._lock = lock
        self._disk = disk
        self._blobs = blobs
        self._emergency = EmergencyFile(run, place)
        self.taken: Sequence[Taken] = ()
        #: What was written since the last sync: lost by a power cut, so it goes into an emergency file.
        self._loose: list[bytes] = []
        #: Where the last durable line ends, and its seq.
        self._durable = (0, 0)
        self._fd = -1
        #: Held by the thread that appends; values are stored by others meanwhile.
        self._writing = threading.Lock()
        #: The journal is not where others find it any more: nothing here writes to the folder.
        self._gone = False
        #: The emergency file holds all of it.
        self._whole = False
        #: Told of the file and of its last seq when it is left whole.
        self._closed = closed
        self._reserve = Reserve(disk, folder, reserve)
        try:
            self._fd = disk.open(folder / JOURNAL, os.O_RDWR | os.O_APPEND)
        except OSError:
            self._reserve.free()
            raise
        #: Bytes of the journal so far; what a head that follows records as journal_bytes.
        found = os.stat(self._path)
        self.size, self._file = found.st_size, (found.st_ino, found.st_dev)
        self._durable = (self.size, last_seq)
        drop_in_children(self)

    @property
    def strained(self) -> bool:
        """The disk is full and the reserve is in use: record what is in flight, start nothing."""
        return self._reserve.released

    def append(self, first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
        """See store.base.Journal.append."""
        with self._writing:
            self._append(first_seq, lines, sync)

    def _append(self, first_seq: int, lines: Sequence[bytes], sync: bool) -> None:
        if self._fd < 0:
            self._refuse(b"".join(lines))
        if first_seq != self.last_seq + 1:
            lines = self._unseen(first_seq, lines)
        data = lines[0] if len(lines) == 1 else b"".join(lines)
        if not self._lock.is_in(self._home):
            self._leave_gone(data, written=False)
        try:
            if data and self._disk.write(self._fd, data) != len(data):
                raise OSError(errno.ENOSPC, "only part of it fitted")
        except OSError as error:
            self._write_again(data, error)
        self.last_seq += len(lines)
        self.size += len(data)
        if not sync:
            self._loose.append(data)
            return
        try:
            self._disk.sync(self._fd)
        except OSError as error:
            self._give_up(data, error)
        # The lock was looked at before the write; it is again before the next one.
        if not self._is_found(self.size):
            self._leave_gone(data, written=True)
        self._durable = (self.size, self.last_seq)
        if self._loose:
            self._loose.clear()

    def put_blob(self, data: bytes) -> str:
        """See store.base.Journal.put_blob."""
        # A failed sync is one file's: a reply in flight may still be stored, for its record in the emergency file.
        if self._fd < 0 and (self._gone or not self._saving):
            self._refuse(b"")
        # Another thread may be writing records: how long the journal is cannot be compared here.
        if self._fd >= 0 and not (self._is_found() and self._lock.is_in(self._home)):
            with self._writing:
                if self._fd >= 0:
                    self._leave_gone(b"", written=False)
                self._refuse(b"")
        try:
            return self._blobs.put(data)
        except WriteFailed as error:
            cause = error.__cause__
            if not (isinstance(cause, OSError) and cause.errno in NO_SPACE and self._reserve.free()):
                raise
            return self._blobs.put(data)

    def get_blob(self, blob: str) -> bytes:
        """See store.base.Journal.get_blob."""
        return self._blobs.get(blob)

    def write_head(self, document: Mapping[str, Any], durable: bool) -> None:
        """See store.base.Journal.write_head. On a full disk the space is left to the records."""
        if self._fd < 0 or (self.strained and not durable) or not self._is_there():
            return
        aside = self._folder / ".checkpoint.new"
        with contextlib.suppress(OSError):
            write_file(self._disk, aside, head_bytes(document), sync=durable, replace=True)
            self._disk.replace(aside, self._folder / HEAD)
            if durable:
                self._disk.sync_folder(self._folder)

    def leave_behind(self, lines: Sequence[bytes]) -> str:
        """See store.base.Journal.leave_behind."""
        self._emergency.add(b"".join(lines))
        return self._emergency.path

    def close(self) -> None:
        """Make durable what was written, and give up ownership; idempotent."""
        if self._fd >= 0 and self._loose:
            with contextlib.suppress(OSError):
                self._disk.sync(self._fd)
        if self._fd >= 0 and not self._emergency.path:
            info = os.fstat(self._fd)
            if info.st_size == self.size:
                self._closed(info, self.last_seq)
        self._shut()
        self._emergency.close()
        self._lock.release()

    def drop(self) -> None:
        """In a forked child: the parent owns the run, so nothing here writes any more."""
        self._shut()
        self._emergency.close()

    @property
    def _saving(self) -> bool:
        return bool(self._emergency.path) and self._lock.held

    def _shut(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._reserve.close()

    def _unseen(self, first_seq: int, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Those lines that do not stand in the journal already.

        Raises:
            StoreError: A seq holds another fact, or would leave a hole.
        """
        if first_seq > self.last_seq + 1 and self._saving:
            # The records before these were refused and are kept elsewhere; what follows goes there too.
            self._refuse(b"".join(lines))
        if first_seq > self.last_seq + 1:
            raise StoreError(f"Record {first_seq} cannot follow record {self.last_seq}.", seq=first_seq)
        after, known = first_seq - 1, self.last_seq + 1 - first_seq
        stored = {line_seq(line): line for line in scan_lines(self._fd, place(self._fd, self.size, after), after)}
        for seq, line in enumerate(lines[:known], first_seq):
            if seq not in stored or line_body(stored[seq]) != line_body(line):
                raise StoreError(f"Record {seq} holds another fact.", seq=seq)
        return lines[known:]

    def _write_again(self, data: bytes, error: OSError) -> None:
        """Write after a refusal, from a clean end of file; frees the reserve where space ran out.

        Raises:
            WriteFailed: Refused again and again; the lines are in an emergency file, the journal is as before.
        """
        for _ in range(_RETRIES):
            try:
                self._disk.truncate(self._fd, self.size)
                if error.errno in NO_SPACE:
                    self._reserve.free()
                if self._disk.write(self._fd, data) == len(data):
                    return
            except OSError as again:
                error = again
        with contextlib.suppress(OSError):
            self._disk.truncate(self._fd, self.size)
        self._emergency.add(data)
        raise self._failed(f"The disk refused a write ({error.strerror}).", fatal=False) from error

    def _give_up(self, data: bytes, error: OSError) -> NoReturn:
        """After a failed sync nobody knows what the file holds, and a second sync would lie: leave it for good."""
        self.size, self.last_seq = self._durable
        self._emergency.add(b"".join([*self._loose, data]))
        self._loose.clear()
        self._shut()
        raise self._failed(f"The disk could not make a record durable ({error.strerror}).", fatal=True) from error

    def _is_there(self) -> bool:
        """Return whether others find here what this owner wrote, and the lock that keeps them out."""
        return self._is_found(self.size) and self._lock.is_in(self._home)

    def _is_found(self, size: int | None = None) -> bool:
        """Return whether the journal in the run's folder is the one that is written here, of that many bytes."""
        try:
            found = os.stat(self._path)
        except PermissionError:
            return True
        except OSError:
            return False
        return (found.st_ino, found.st_dev) == self._file and (size is None or found.st_size == size)

    def _leave_gone(self, data: bytes, *, written: bool) -> NoReturn:
        """The run, or its lock, was removed, moved or replaced under its owner: what it writes would be lost, or harm.

        Args:
            written: The journal that is open here has the data already.
        """
        try:
            stored = os.pread(self._fd, self.size + 1, 0)
        except OSError:
            stored = b""
        # All of it, since this may be the last of it; unless it was cut short or belongs to others too by now.
        whole = len(stored) == self.size
        lost = b"" if written else data
        rest = b"".join(self._loose) + data
        self.size, self.last_seq = self._durable
        self._emergency.add(stored + lost if whole else rest, sent=self.last_seq if whole else 0)
        self._loose.clear()
        self._gone, self._whole = True, whole
        self._shut()
        raise self._failed(
            f"Run {self._named} is gone from {self._home}: its journal or its lock was removed, moved or replaced "
            "while the run was going on.",
            fatal=True,
        )

    def _refuse(self, data: bytes) -> NoReturn:
        """Nothing is written any more; after a refusal what is still in flight goes where the rest went."""
        if self._saving:
            self._emergency.add(data)
        raise self._failed("The journal takes nothing more.", fatal=self._fd < 0)

    def _failed(self, what: str, *, fatal: bool) -> WriteFailed:
        path = self._emergency.path
        if self._gone:
            back = f"Bring {self._home} back to its place"
            hint = (
                f"{back}, or make the run again from what was kept: `recover {self._named} {path}`."
                if path
                else f"{back}."
            )
            return WriteFailed(
                what, hint=hint, fatal=fatal, emergency=path, run=self.run_id, gone=back, whole=self._whole
            )
        hint = "Free space on the disk, then resume the run."
        if path:
            hint = advice(self._named, path)
        return WriteFailed(what, hint=hint, fatal=fatal, emergency=path, run=self.run_id)
