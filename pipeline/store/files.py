"""Runs as folders of files: create, open, read, list, delete. The rules stand in the files it calls."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import PipelineError, RunNotFound, StoreError, WriteFailed
from pipeline.files import open_regular
from pipeline.records.lines import line_seq
from pipeline.store import inside
from pipeline.store.base import Claim, Head
from pipeline.store.blobs import BLOBS, BlobFolder
from pipeline.store.building import build
from pipeline.store.claims import refuse_if_held
from pipeline.store.disk import FOLDER_MODE, Disk, read_file, write_file
from pipeline.store.head import HEAD, whole_head
from pipeline.store.journal import FileJournal
from pipeline.store.listing import Listing, entries
from pipeline.store.lock import OwnerLock, acquire, brief_lock
from pipeline.store.names import BUILDING, JOURNAL, PARTS, REMOVING, minted, part_folder, split
from pipeline.store.readying import document_lines, ready_journal
from pipeline.store.recovery import kept_whole, took_in
from pipeline.store.repair import Repair
from pipeline.store.rereading import reread
from pipeline.store.reserve import BASE, PER_CALL
from pipeline.store.scan import lines, place

_STORE_LOCK = ".lock"
#: Inode, bytes and time of change of a file: the same file, unchanged.
_Seen = tuple[int, int, int]
#: Longer journals are not surveyed again where this store left them and they are unchanged since. Shorter ones cost
#: nothing, and a file may change twice within one tick of its times.
_SURVEYED_BYTES = 1 << 16
#: Of so many runs it is remembered how they were left.
_MOST_LEFT = 1024


class FileStore:
    """A folder of runs; see store.base.Store."""

    def __init__(self, root: Path | str, clock: Clock, *, concurrency: int = 4, disk: Disk | None = None) -> None:
        self.url = f"files:{root}"
        #: Absolute, so that a later change of folder does not move the store.
        self.root = Path(os.path.abspath(root))
        self._clock = clock
        self._disk = disk or Disk()
        self._listing = Listing(self.root, reread, clock)
        #: Journals that `open` has just checked, until they are read.
        self._checked: dict[str, _Seen] = {}
        #: Journals as this store left them, whole to their end, and their last seq.
        self._left: dict[str, tuple[_Seen, int]] = {}
        #: Bytes held back for what may be in flight when the disk is full; where nobody calls there is nothing.
        self._reserve = BASE + PER_CALL * concurrency if concurrency else 0

    def create(
        self, first: bytes, blobs: Sequence[bytes], *, at: datetime, claim: Claim | None = None
    ) -> tuple[str, FileJournal]:
        """See store.base.Store.create."""
        return self._create(first, blobs, minted(at), at, claim)

    def create_named(self, run: str, first: bytes, blobs: Iterable[bytes] = (), *, at: datetime) -> FileJournal:
        """See store.base.Movable.create_named."""
        run_id, path = split(run)
        taken = StoreError(f"A run named {run} cannot be made: the name is taken.", run=run)
        if path or os.path.lexists(self.root / run_id):
            raise taken
        try:
            return self._create(first, blobs, iter([run_id]), at, None)[1]
        except StopIteration:
            # Another process was as fast, and first.
            raise taken from None

    def open(self, run: str, *, reserve: bool = True) -> FileJournal:
        """See store.base.Store.open; without `reserve` no disk space is held back."""
        home = self._folder(run)
        try:
            if "/" in run:
                home.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            lock = acquire(self._disk, home, run, self._clock.now())
        except OSError as error:
            raise self._refused(f"Run {run} cannot be written to", error) from error
        try:
            last_seq, repairs = self._ready(home, run)
            # Owned, and just surveyed: the new owner reads it next, and need not check it once more.
            self._checked[run] = _seen((home / JOURNAL).stat())
            journal = FileJournal(
                run,
                home,
                lock,
                disk=self._disk,
                blobs=self._blobs(run),
                last_seq=last_seq,
                reserve=self._reserve if reserve else 0,
                repairs=repairs,
                named=self._named(run),
                place=self._place(run),
                closed=lambda info, last_seq: self._note(run, info, last_seq),
            )
        except OSError as error:
            lock.release()
            raise self._refused(f"Run {run} cannot be written to", error) from error
        except BaseException:
            lock.release()
            raise
        return took_in(self, journal, self._place(run))

    def read(self, run: str, after: int = 0) -> Iterator[bytes]:
        """See store.base.Store.read."""
        home = self._folder(run)
        if not os.path.lexists(home / JOURNAL):
            lines = document_lines(home, run, self._clock.now())[after:]
            return (line.removesuffix(b"\n") for line in lines)
        return _read(home / JOURNAL, run, after, self._checked.pop(run, None))

    def written_head(self, run: str) -> Mapping[str, Any]:
        """See store.base.Store.written_head."""
        home = self._folder(run)
        # Without a journal the document itself is the run: it is taken over, and nothing is known beside it.
        return whole_head(read_file(home / HEAD)) if os.path.lexists(home / JOURNAL) else {}

    def get_blob(self, run: str, blob: str) -> bytes:
        """See store.base.Store.get_blob."""
        self._folder(run)
        return self._blobs(run).get(blob)

    def heads(self, match: Callable[[Mapping[str, Any]], bool] | None = None) -> Iterator[Head]:
        """See store.base.Listable.heads."""
        return self._listing.heads(match)

    def delete(self, run: str) -> None:
        """See store.base.Store.delete."""
        home = self._folder(run)
        try:
            lock = acquire(self._disk, home, run, self._clock.now())
            try:
                for part in home.glob(f"{PARTS}/*"):
                    acquire(self._disk, part, run, self._clock.now()).release()
                self._remove(home)
            finally:
                lock.release()
        except OSError as error:
            raise self._refused(f"Run {run} cannot be removed", error) from error

    def _place(self, run: str) -> str:
        """How an emergency file names where the run is, whichever way it was opened."""
        return os.path.realpath(self._home(split(run)[0]))

    def _remove(self, home: Path) -> None:
        """Take away a run that nobody owns."""
        gone = self.root / f"{REMOVING}{home.name}-{os.urandom(4).hex()}"
        self._disk.replace(home, gone)
        self._disk.sync_folder(self.root)
        shutil.rmtree(gone)

    def sweep(self, before: datetime) -> list[str]:
        """Remove folders that were half built or half removed, last touched before `before`; their names."""
        done = []
        for name in sorted(entries(self.root)):
            path = self.root / name
            if not name.startswith((BUILDING, REMOVING)) or not _old(path, before.timestamp()):
                continue
            with contextlib.suppress(OSError, PipelineError):
                acquire(self._disk, path, name, self._clock.now()).release()
                shutil.rmtree(path)
                done.append(name)
        return done

    def parts(self, run: str) -> list[str]:
        """See store.base.Movable.parts."""
        return inside.parts(self._folder(run))

    def blobs(self, run: str) -> list[str]:
        """See store.base.Movable.blobs."""
        return inside.blobs(self._folder(run))

    def flaws(self, run: str) -> Iterator[str]:
        """See store.base.Movable.flaws."""
        return inside.flaws(self._folder(run))

    def leftovers(self) -> list[str]:
        """See store.base.Movable.leftovers."""
        return [name for name in sorted(entries(self.root)) if name.startswith((BUILDING, REMOVING))]

    def unlisted(self) -> list[str]:
        """See store.base.Movable.unlisted."""
        return []

    def is_there(self) -> bool:
        """See store.base.Movable.is_there. What hides the folder is said when it is read."""
        try:
            self.root.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def _create(
        self, first: bytes, blobs: Iterable[bytes], names: Iterator[str], at: datetime, claim: Claim | None
    ) -> tuple[str, FileJournal]:
        try:
            self.root.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            run, lock = self._begin(first, blobs, names, at, claim)
            try:
                return run, FileJournal(
                    run,
                    self._home(run),
                    lock,
                    disk=self._disk,
                    blobs=self._blobs(run),
                    last_seq=line_seq(first.rstrip(b"\n").rpartition(b"\n")[2]),
                    reserve=self._reserve,
                    named=self._named(run),
                    place=self._place(run),
                    closed=lambda info, last_seq: self._note(run, info, last_seq),
                )
            except OSError:
                lock.release()
                with contextlib.suppress(StoreError):
                    self.delete(run)
                raise
        except OSError as error:
            raise self._refused("No run could be made", error) from error

    def _begin(
        self, first: bytes, blobs: Iterable[bytes], names: Iterator[str], at: datetime, claim: Claim | None
    ) -> tuple[str, OwnerLock]:
        """Make the run's folder, whole or not at all; its name and the owner's lock."""
        with brief_lock(self._disk, self.root / _STORE_LOCK):
            if claim is not None:
                refuse_if_held(self.heads, claim, at)
            return build(self._disk, self.root, first, blobs, names, at)

    def _ready(self, home: Path, run: str) -> tuple[int, Sequence[Repair]]:
        """The last seq of a journal that is owned, and what had to be mended."""
        left = self._left.pop(run, None)
        if left is not None:
            with contextlib.suppress(OSError):
                if _seen(os.lstat(home / JOURNAL)) == left[0]:
                    return left[1], ()
        if not os.path.lexists(home / JOURNAL) and (lost := kept_whole(run, self._place(run))):
            # It was taken away while the run was going on.
            aside = home / ".journal.new"
            write_file(self._disk, aside, lost, replace=True)
            self._disk.replace(aside, home / JOURNAL)
            self._disk.sync_folder(home)
        return ready_journal(self._disk, home, run, self._clock.now())

    def _note(self, run: str, info: os.stat_result, last_seq: int) -> None:
        """Remember how an owner left a journal."""
        if info.st_size > _SURVEYED_BYTES:
            self._left[run] = (_seen(info), last_seq)
            while len(self._left) > _MOST_LEFT:
                self._left.pop(next(iter(self._left)), None)

    def _home(self, run_id: str) -> Path:
        """The folder of a run of that id, whether it is there or not."""
        return self.root / run_id

    def _named(self, run: str) -> str:
        """How people name a run in commands."""
        return run

    def _folder(self, run: str) -> Path:
        """Where a run lies.

        Raises:
            RunNotFound: It is not there, or its name is none.
            StoreError: It is a link, or belongs to another user.
        """
        run_id, path = split(run)
        home = self._home(run_id)
        try:
            info = os.lstat(home)
        except OSError:
            raise RunNotFound(f"There is no run {run}.", hint="`list` shows the runs there are.", run=run) from None
        if os.path.islink(home) or not home.is_dir():
            raise StoreError(f"Run {run} is a link or no folder, so it is not touched.", run=run)
        if info.st_uid != os.geteuid():
            raise StoreError(f"Run {run} belongs to another user ({info.st_uid}), so it is not touched.", run=run)
        return part_folder(home, path) if path else home

    def _blobs(self, run: str) -> BlobFolder:
        return BlobFolder(self._home(split(run)[0]) / BLOBS, self._disk)

    def _refused(self, what: str, error: OSError) -> WriteFailed:
        return WriteFailed(f"{what}: {error.strerror or error}.", hint="Check the folder and its disk.", fatal=False)


def _seen(info: os.stat_result) -> _Seen:
    return info.st_ino, info.st_size, info.st_mtime_ns


def _read(path: Path, run: str, after: int, checked: _Seen | None) -> Iterator[bytes]:
    try:
        fd = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise StoreError(f"The journal of run {run} cannot be read: {error.strerror}.", run=run) from error
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise StoreError(f"The journal of run {run} is no file.", run=run)
        if after:
            yield from lines(fd, place(fd, info.st_size, after), after)
        else:
            yield from lines(fd, checked=info.st_size if _seen(info) == checked else 0)
    finally:
        os.close(fd)


def _old(path: Path, before: float) -> bool:
    try:
        return not path.is_symlink() and path.is_dir() and os.lstat(path).st_mtime < before
    except OSError:
        return False
