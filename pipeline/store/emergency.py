"""The last resort: records that their journal refused, kept in a file elsewhere until a resume or `recover` has them.

It decides where such files lie, what they are called, and which of them are a run's.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import RunLocked, StoreError
from pipeline.files import open_regular, parse_json, read_regular
from pipeline.records.codec import decode_line
from pipeline.records.lines import LineDamaged, check_line, line_seq
from pipeline.store.owner import process

_FOLDER_MODE = 0o700


def folders() -> list[Path]:
    """Return where they are kept, best first: what survives a restart of this machine, then its temporary folder.

    Source: XDG Base Directory Specification 0.8, XDG_STATE_HOME.
    """
    found = []
    state = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):
        found.append(Path(state, "pipeline", "kept"))
    else:
        with contextlib.suppress(RuntimeError):
            found.append(Path.home() / ".local" / "state" / "pipeline" / "kept")
    return [*found, Path(tempfile.gettempdir(), f"pipeline-kept-{os.geteuid()}")]


class EmergencyFile:
    """A file of journal lines outside the store; made when first written to, locked until it is closed."""

    def __init__(self, run: str, place: str) -> None:
        """Name the run; the file is made when first written to.

        Args:
            place: Which store the run is in; never shown. "": one that ends with the process, so nothing is kept.
        """
        self._run = run
        self._place = place
        self._fd = -1
        #: Up to which record what is kept was durable before.
        self._sent = 0
        #: All that was to be kept, for a second place where the first one fills up.
        self._kept: list[bytes] = []
        #: Where it is; "" while there is none, or where nothing could be written anywhere.
        self.path = ""

    def add(self, data: bytes, sent: int = 0) -> None:
        """Keep whole lines, synced. Never raises: there is nowhere left to go.

        Args:
            sent: Up to which record these lines had been durable: what they begin was begun indeed.
        """
        if not data or not self._place:
            return
        self._sent = self._sent or sent
        self._kept.append(data)
        if self._fd < 0 or not self._write(data):
            self._make()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes) -> bool:
        try:
            done = os.write(self._fd, data) == len(data)
            os.fsync(self._fd)
        except OSError:
            return False
        return done

    def _make(self) -> None:
        """Begin a new file with all of it: the one before is full, or was closed and may be taken in by now."""
        full = self.path if self._fd >= 0 else ""
        self.close()
        head = {"emergency": self._run, "store": self._place, "by": process(), "sent": self._sent}
        text = json.dumps(head).encode() + b"\n" + b"".join(self._kept)
        for folder in folders():
            path = ""
            try:
                if not own_folder(folder, make=True):
                    continue
                self._fd, path = tempfile.mkstemp(".jsonl", f"{_stem(self._run)}-", folder)
                # While it is held it is not taken in: more may come.
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                whole = self._write(text)
                _sync_folder(folder)
            except OSError:
                whole = False
            if whole:
                self.path = path
                _remove(full)
                return
            self.close()
            _remove(path)


def own_folder(folder: Path, *, make: bool = False) -> bool:
    """Return whether it is there and no other user can put anything into it."""
    if make:
        with contextlib.suppress(FileExistsError):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(_FOLDER_MODE)
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def advice(run: str, file: str) -> str:
    """Return what to do about a file of a run; a command in it begins with its verb."""
    return f"Resuming on this machine adds what was kept; on another one, first: recover {run} {file}"


def find(run: str, place: str) -> list[tuple[Path, str]]:
    """Return the files kept here of a run and its parts in that store, each with whose it is; oldest first."""
    found = []
    for folder in folders() if place else ():
        if not own_folder(folder):
            continue
        for path in sorted(folder.glob(f"{_stem(run)}[-_]*.jsonl"), key=_age):
            head = _head(path)
            owner = str(head.get("emergency"))
            if head.get("store") == place and (owner == run or owner.startswith(f"{run}/")):
                found.append((path, owner))
    return found


def of_lost_runs(root: str, url: str, known: Collection[str]) -> dict[str, tuple[Path, bool]]:
    """Return the runs that a store has lost: the file kept here that holds records of each, and whether it has all.

    Args:
        root: The folder of a store of files; "": it is of another kind.
        url: The store's URL.
        known: The runs that are there.
    """
    found: dict[str, tuple[Path, bool]] = {}
    for folder in folders():
        for path in sorted(folder.glob("*.jsonl"), key=_age) if own_folder(folder) else ():
            head = _head(path)
            run, place = str(head.get("emergency") or ""), str(head.get("store") or "")
            if "/" in run or run in known:
                continue
            if root and head.get("sent") and os.path.dirname(place) == root and not os.path.lexists(place):
                found[run] = path, True
            elif not root and place == url:
                found[run] = path, False
    return found


def owner_of(file: Path) -> str:
    """Return the run or sub-journal whose records a file holds; "" where it says none."""
    return str(_head(file).get("emergency") or "")


def is_kept(file: Path) -> bool:
    """Return whether it lies where this program keeps such files."""
    return file.resolve().parent in [folder.resolve() for folder in folders()]


class KeptRecords(NamedTuple):
    """What an emergency file holds."""

    #: Its whole lines.
    lines: list[bytes]
    #: Up to this seq they had been durable in the journal; 0: none was.
    sent: int
    #: Lines that cannot be read.
    damaged: int = 0

    @property
    def whole(self) -> list[bytes]:
        """Return the journal from its first record on, where the file holds it; else nothing."""
        found: list[bytes] = []
        for line in self.lines:
            if line_seq(line) > self.sent or line_seq(line) <= (line_seq(found[-1]) if found else 0):
                break
            found.append(line)
        return found if found and line_seq(found[0]) == 1 else []


@contextlib.contextmanager
def claimed(file: Path, run: str) -> Iterator[KeptRecords]:
    """Lend what a file holds; no other process writes it or takes it in meanwhile.

    Raises:
        StoreError: It cannot be read, or belongs to another run.
        RunLocked: Who writes it is alive and not done.
    """
    try:
        fd = open_regular(file)
    except OSError as error:
        raise StoreError(f"{file} is not an emergency file.", code="no_emergency_file", file=str(file)) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(run, file) from None
        except OSError:
            # A file system without locks: who wrote it is taken to be gone.
            pass
        yield _lines(file, run)
    finally:
        os.close(fd)


def _busy(run: str, file: Path) -> RunLocked:
    holder = _head(file).get("by")
    who = f"Process {holder.get('pid')}" if isinstance(holder, dict) else "Another process"
    return RunLocked(
        f"{who} is closing run {run} and still writing {file}.",
        hint="Wait for it to end, or stop it.",
        run=run,
    )


def _lines(file: Path, run: str) -> KeptRecords:
    try:
        first, *lines = read_regular(file).split(b"\n")
        head = parse_json(first)
        owner, sent = head["emergency"], head.get("sent")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} is not an emergency file.", code="no_emergency_file", file=str(file)) from error
    if owner != run:
        raise StoreError(
            f"{file} holds records of run {owner}, not of {run}.", code="file_of_another_run", file=str(file), run=owner
        )
    whole, damaged = [], 0
    # The very same line again is the same record: it was refused twice.
    for line in dict.fromkeys(filter(None, lines)):
        try:
            decode_line(line)
            whole.append(check_line(line))
        except LineDamaged:
            damaged += 1
    return KeptRecords(whole, sent if isinstance(sent, int) else 0, damaged)


def dispose(file: Path, kept: KeptRecords) -> None:
    """Remove a file whose records are in the run; one with lines that cannot be read is put aside."""
    if kept.damaged:
        file.rename(aside(file))
    else:
        file.unlink(missing_ok=True)


def aside(file: Path) -> Path:
    """Return where a file is put whose records are in the run as far as they can be read."""
    return file.with_name(f"{file.name}.damaged")


def _head(path: Path) -> Mapping[str, Any]:
    try:
        head = parse_json(read_regular(path, 1 << 16).partition(b"\n")[0])
    except (OSError, ValueError):
        return {}
    return head if isinstance(head, dict) else {}


def _stem(run: str) -> str:
    return run.replace("/", "_")


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _remove(path: str) -> None:
    if path:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
