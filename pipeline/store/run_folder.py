"""A folder that is itself a run (`--run-dir DIR`): the file store's rules, over one run at a place people choose.

The run keeps an ordinary id, told by its first record: the folder may have any name and be moved.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from pipeline.clock import Clock, parse_iso
from pipeline.errors import RunExists, RunNotFound, StoreError
from pipeline.records.lines import LineDamaged, check_line
from pipeline.store.account import FileAccount
from pipeline.store.backend import Tail, Tip
from pipeline.store.base import Claim
from pipeline.store.disk import FOLDER_MODE, Disk, read_file
from pipeline.store.folder import BLOBS, FolderBackend
from pipeline.store.head import HEAD, parse_head
from pipeline.store.journal import RunJournal
from pipeline.store.journal_file import NEW, first_line
from pipeline.store.lock import acquire
from pipeline.store.names import JOURNAL, PARTS, is_id, is_minted, minted
from pipeline.store.owner import LOCK
from pipeline.store.runs import RunStore
from pipeline.store.values import unpacked

#: The id of a run that does not say when it began.
_UNDATED = "run"


class RunFolderBackend(FolderBackend):
    """A folder that is one run; every id means it."""

    def __init__(self, folder: Path | str, clock: Clock, *, concurrency: int = 0, disk: Disk | None = None) -> None:
        # Who names a link means the folder behind it.
        super().__init__(os.path.realpath(folder), clock, concurrency=concurrency, disk=disk)
        self.url = f"files:{folder}"
        #: Kept once it was told, so that taking over a document of another name does not rename an open run.
        self.told = ""

    @property
    def run_id(self) -> str:
        """Return the id of the run that lies here.

        Raises:
            RunNotFound: There is none.
        """
        if not has_run(self.root):
            raise RunNotFound(f"There is no run in {self.root}.", hint="--run-dir DIR creates one.", run=str(self.root))
        if not self.told:
            self.told = _minted_name(self.root) or _from_journal(self.root) or _from_document(self.root) or _UNDATED
        return self.told

    def home(self, run_id: str) -> Path:
        if self.told != run_id and run_id != self.run_id:
            raise RunNotFound(f"There is no run {run_id} in {self.root}.", run=run_id)
        return self.root

    def tips(self, claim: str = "", start: str = "") -> Iterator[Tip]:
        if has_run(self.root) and start in ("", self.run_id) and (tip := self.tip(str(self.root), self.run_id)):
            yield tip

    def delete(self, prefix: str) -> None:
        """See Backend.delete: the run's own files; what else lies in the folder stays."""
        path = self.path(prefix)
        if path != self.root:
            super().delete(prefix)
            return
        if os.path.lexists(path / JOURNAL):
            for name in (JOURNAL, HEAD):
                (path / name).unlink(missing_ok=True)
            self.disk.sync_folder(path)
        for name in (BLOBS, PARTS):
            shutil.rmtree(path / name, ignore_errors=True)
        for name in (LOCK, NEW):
            (path / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.rmdir()

    def named(self, run: str) -> str:
        return str(self.root)

    def new_name(self, first: bytes, at: datetime) -> str:
        """Return the id of a run that is to be made here, by its first record and the time."""
        return _minted_name(self.root) or _dated(first.partition(b"\n")[0]) or next(minted(at))

    def _begin(self, name: str, since: datetime) -> Tail | None:
        """Own the folder, which may hold other files: the run exists once its journal has its name."""
        self.root.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        lock = acquire(self.disk, self.root, since)
        try:
            self._refuse_taken()
            self.told = name
            os.close(self.disk.open(self.root / NEW, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
            return self.tail(self.root, lock)
        except BaseException:
            lock.release()
            raise

    def _refuse_taken(self) -> None:
        if os.path.lexists(self.root / JOURNAL):
            raise RunExists(
                f"{self.root} already holds a run ({self.run_id}).",
                hint=f"Resume it (--resume {self.root}), or name another folder for the new run.",
                run=self.run_id,
            )
        if has_runs(self.root):
            text = f"{self.root} is a folder of runs, so it cannot be the folder of one."
            raise StoreError(text, hint="Name another folder.", code="folder_of_runs")


class RunFolder(RunStore):
    """A store of one run; see store.base.Store. `root` is the run's own folder."""

    backend: RunFolderBackend

    def __init__(self, folder: Path | str, clock: Clock, *, concurrency: int = 4, disk: Disk | None = None) -> None:
        """Name the folder, which need not be there; `concurrency` as of FileStore."""
        super().__init__(RunFolderBackend(folder, clock, concurrency=concurrency, disk=disk), clock)
        self.root = self.backend.root

    @property
    def run_id(self) -> str:
        """Return the id of the run that lies here.

        Raises:
            RunNotFound: There is none.
        """
        return self.backend.run_id

    def account(self) -> FileAccount:
        return FileAccount(self.root, self._clock, disk=self.backend.disk)

    def create(
        self, first: bytes, blobs: Sequence[bytes], *, at: datetime, claim: Claim | None = None
    ) -> tuple[str, RunJournal]:
        """See store.base.Store.create; the folder itself is the claim."""
        return self._make(first, blobs, iter([self.backend.new_name(first, at)]), at)


def has_run(folder: Path | str) -> bool:
    """Return whether a folder is a run's own: it has a journal, or a checkpoint.json to be taken over and no runs."""
    if os.path.lexists(os.path.join(folder, JOURNAL)):
        return True
    return os.path.lexists(os.path.join(folder, HEAD)) and not has_runs(folder)


def has_runs(folder: Path | str) -> bool:
    """Return whether a folder is one of runs: a run has its own folder in it."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(is_id(name) and os.path.lexists(os.path.join(folder, name, JOURNAL)) for name in names)


def read_value(folder: Path, name: str) -> bytes:
    """Return a value of the run that lies in a folder, verified.

    Raises:
        CheckpointCorrupt: It is missing or damaged.
    """
    try:
        return unpacked(name, read_file(folder / BLOBS / name[:2] / name))
    except OSError:
        return unpacked(name, None)


def _minted_name(folder: Path) -> str:
    # Such a folder lies in a store, or was copied from one: its name is its id.
    return folder.name if is_minted(folder.name) else ""


def _from_journal(folder: Path) -> str:
    try:
        return _dated(first_line(str(folder / JOURNAL)))
    except OSError:
        return ""


def _dated(line: bytes) -> str:
    """Return the id that a first record's time gives; "" where the line is damaged."""
    try:
        # {"seq":1,"at":"2026-…
        return next(minted(parse_iso(check_line(line).split(b'"', 6)[5].decode("ascii"))))
    except (LineDamaged, ValueError, IndexError):
        return ""


def _from_document(folder: Path) -> str:
    document = parse_head(read_file(folder / HEAD) or b"") or {}
    run_id = document.get("run_id")
    return run_id if isinstance(run_id, str) and is_id(run_id) else ""
