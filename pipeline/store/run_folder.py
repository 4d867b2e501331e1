"""A folder that is itself a run (`--run-dir DIR`): the file store's rules, over one run at a place people choose.

The run keeps an ordinary id, told by its first record: the folder may have any name and be moved.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.clock import Clock, parse_iso
from pipeline.errors import RunExists, RunNotFound, StoreError
from pipeline.files import open_regular
from pipeline.records.lines import LineDamaged, check_line
from pipeline.store.base import Claim, Head
from pipeline.store.blobs import BLOBS, BlobFolder
from pipeline.store.disk import Disk, read_file, write_file
from pipeline.store.files import FileStore
from pipeline.store.head import HEAD, parse_head
from pipeline.store.listing import first_line
from pipeline.store.lock import OwnerLock, acquire
from pipeline.store.names import JOURNAL, PARTS, is_id, is_minted, minted
from pipeline.store.owner import LOCK

#: The id of a run that does not say when it began.
_UNDATED = "run"


class RunFolder(FileStore):
    """A store of one run; see store.base.Store. `root` is the run's own folder."""

    def __init__(self, folder: Path | str, clock: Clock, *, concurrency: int = 4, disk: Disk | None = None) -> None:
        # Whoever names a link means the folder behind it.
        super().__init__(os.path.realpath(folder), clock, concurrency=concurrency, disk=disk)
        self.url = f"files:{folder}"
        #: Kept once it was told, so that taking over a document of another name does not rename an open run.
        self._run_id = ""

    @property
    def run_id(self) -> str:
        """The id of the run that lies here.

        Raises:
            RunNotFound: There is none.
        """
        if not has_run(self.root):
            raise RunNotFound(f"There is no run in {self.root}.", hint="--run-dir DIR makes one.", run=str(self.root))
        if not self._run_id:
            self._run_id = _named(self.root.name) or _from_journal(self.root) or _from_document(self.root) or _UNDATED
        return self._run_id

    def heads(self, match: Callable[[Mapping[str, Any]], bool] | None = None) -> Iterator[Head]:
        """See store.base.Listable.heads."""
        if has_run(self.root) and (head := self._listing.head(str(self.root), self.run_id, match)):
            yield head

    def _remove(self, home: Path) -> None:
        """Take away the run's own files; what else lies in the folder stays."""
        for name in (JOURNAL, HEAD):
            (home / name).unlink(missing_ok=True)
        self._disk.sync_folder(home)
        for name in (BLOBS, PARTS):
            shutil.rmtree(home / name, ignore_errors=True)
        (home / LOCK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            home.rmdir()

    def sweep(self, before: datetime) -> list[str]:
        """Nothing half built lies here under a name of its own."""
        return []

    def _begin(
        self, first: bytes, blobs: Iterable[bytes], names: Iterator[str], at: datetime, claim: Claim | None
    ) -> tuple[str, OwnerLock]:
        """Make the run in the folder, which may hold other files: it exists once its journal has its name."""
        name = _named(self.root.name) or _dated(first.partition(b"\n")[0]) or next(names)
        lock = acquire(self._disk, self.root, name, at)
        try:
            self._refuse_taken()
            store = BlobFolder(self.root / BLOBS, self._disk)
            for data in blobs:
                store.put(data)
            aside = self.root / ".journal.new"
            write_file(self._disk, aside, first, replace=True)
            self._disk.replace(aside, self.root / JOURNAL)
            self._disk.sync_folder(self.root)
            self._disk.sync_folder(self.root.parent)
        except BaseException:
            lock.release()
            raise
        self._run_id = name
        return name, lock

    def _refuse_taken(self) -> None:
        if os.path.lexists(self.root / JOURNAL):
            raise RunExists(
                f"{self.root} holds a run already ({self.run_id}).",
                hint=f"Go on with it (--resume {self.root}), or name another folder for the new run.",
                run=self.run_id,
            )
        if has_runs(self.root):
            raise StoreError(
                f"{self.root} is a folder of runs, so it cannot be the folder of one.", hint="Name another folder."
            )

    def _named(self, run: str) -> str:
        return str(self.root)

    def _home(self, run_id: str) -> Path:
        if run_id != self.run_id:
            raise RunNotFound(f"There is no run {run_id} in {self.root}.", run=run_id)
        return self.root


def has_run(folder: Path | str) -> bool:
    """Whether a folder is a run's own: it has a journal, or a checkpoint.json to be taken over and no runs in it."""
    if os.path.lexists(os.path.join(folder, JOURNAL)):
        return True
    return os.path.lexists(os.path.join(folder, HEAD)) and not has_runs(folder)


def has_runs(folder: Path | str) -> bool:
    """Whether a folder is one of runs: a run has its own folder in it."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(is_id(name) and os.path.lexists(os.path.join(folder, name, JOURNAL)) for name in names)


def _named(name: str) -> str:
    # Such a folder lies in a store, or was copied from one: its name is its id.
    return name if is_minted(name) else ""


def _from_journal(folder: Path) -> str:
    try:
        fd = open_regular(folder / JOURNAL, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return ""
    try:
        return _dated(first_line(fd))
    except OSError:
        return ""
    finally:
        os.close(fd)


def _dated(line: bytes) -> str:
    """The id that a first record's time gives; "" where the line is damaged."""
    try:
        # {"seq":1,"at":"2026-…
        return next(minted(parse_iso(check_line(line).split(b'"', 6)[5].decode("ascii"))))
    except (LineDamaged, ValueError, IndexError):
        return ""


def _from_document(folder: Path) -> str:
    document = parse_head(read_file(folder / HEAD) or b"") or {}
    run_id = document.get("run_id")
    return run_id if isinstance(run_id, str) and is_id(run_id) else ""
