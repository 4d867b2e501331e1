"""Heads of a folder of runs, newest first, as cheap as a file can be read. Never writes.

A head is trusted while its seal is whole and its journal begins well and is as long as it says. Any other run is
given to `reread`, which comes from outside: what folds records need not be loaded before there is such a run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import StoreError
from pipeline.files import open_regular
from pipeline.records.lines import LineDamaged, check_line
from pipeline.store.base import Head
from pipeline.store.disk import read_file
from pipeline.store.head import HEAD, HeadText, scan_int, sealed, whole_head
from pipeline.store.names import JOURNAL, is_id, is_minted, newest_first
from pipeline.store.owner import is_owned, seen_now

Match = Callable[[Mapping[str, Any]], bool]
#: (folder, name, bytes of checkpoint.json or None) → the head as all records say, whoever owns the run; None: no run.
Reread = Callable[[str, str, bytes | None], Head | None]


class Listing:
    """The runs in a folder; see store.base.Listable."""

    def __init__(self, root: Path | str, reread: Reread, clock: Clock) -> None:
        self._root = str(root)
        self._reread = reread
        self._clock = clock

    def heads(self, match: Match | None = None) -> Iterator[Head]:
        """See store.base.Listable.heads."""
        for name in newest_first(entries(self._root)):
            if is_id(name) and (head := self.head(f"{self._root}/{name}", name, match)):
                yield head

    def head(self, folder: str, name: str, match: Match | None) -> Head | None:
        """The run of that name in that folder; None: there is none, or `match` drops it."""
        try:
            info = os.lstat(folder)
        except OSError:
            return None
        if not stat.S_ISDIR(info.st_mode):
            why = _instead_of_a_folder(folder, name, info.st_mode)
            return Head(name, {}, corrupt=why) if why else None
        if info.st_uid != os.geteuid():
            return Head(name, {}, corrupt=f"It belongs to another user ({info.st_uid}).")
        try:
            return self._head(folder, name, match)
        except FileNotFoundError:
            # Removed while we looked.
            return None
        except OSError as error:
            return Head(name, {}, corrupt=f"It cannot be read: {error.strerror}.")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # Whole records that make no sense to this version: one such run must not hide the others.
            return Head(name, {}, corrupt=f"Its records make no sense ({type(error).__name__}: {error}).")

    def _head(self, folder: str, name: str, match: Match | None) -> Head | None:
        raw, unread = _read_head(folder)
        try:
            journal = os.lstat(f"{folder}/{JOURNAL}")
        except FileNotFoundError:
            if unread:
                return Head(name, {}, corrupt=f"It has no journal, and checkpoint.json cannot be read: {unread}.")
            return self._afresh(folder, name, raw, match, 0)
        if not stat.S_ISREG(journal.st_mode):
            return Head(name, {}, corrupt="Its journal is no file.")
        touched = journal.st_mtime
        if raw is None or not sealed(raw) or scan_int(raw, "journal_bytes") != journal.st_size:
            return self._afresh(folder, name, raw, match, touched)
        document, owned = HeadText(raw, {}), None
        try:
            if document.get("status_detail") == "running":
                owned = is_owned(folder, touched, self._clock)
                document = HeadText(raw, seen_now(document, owned))
            if not document.wanted(match):
                return None
        except ValueError:
            return self._afresh(folder, name, raw, match, touched)
        if not _begins_well(f"{folder}/{JOURNAL}"):
            return self._afresh(folder, name, raw, match, touched)
        return Head(name, document, owned=is_owned(folder, touched, self._clock) if owned is None else owned)

    def _afresh(self, folder: str, name: str, raw: bytes | None, match: Match | None, touched: float) -> Head | None:
        found = self._reread(folder, name, raw)
        if found is None:
            return None
        owned = is_owned(folder, touched, self._clock)
        if found.corrupt:
            return Head(name, {}, corrupt=found.corrupt, owned=owned, known=whole_head(raw))
        document = {**found.document, **seen_now(found.document, owned)}
        return Head(name, document, owned=owned) if match is None or match(document) else None


def _instead_of_a_folder(path: str, name: str, mode: int) -> str:
    """What stands where a run's folder was, or is meant to be; "" for what was never a run."""
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


def _read_head(folder: str) -> tuple[bytes | None, str]:
    """The bytes of checkpoint.json, or why it cannot be read."""
    try:
        return read_file(f"{folder}/{HEAD}"), ""
    except OSError as error:
        return None, error.strerror or str(error)


def entries(root: str | Path) -> list[str]:
    """Return what stands in the folder of a store; nothing where there is none yet.

    Raises:
        StoreError: It cannot be read.
    """
    try:
        return os.listdir(root)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(
            f"The store {root} cannot be read: {error.strerror}.", hint="--store files:DIR names a folder of runs."
        ) from error


def _begins_well(path: str) -> bool:
    """Whether a journal's first line is a whole run_started of the first format, which names no format."""
    fd = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        line = check_line(first_line(fd))
    except LineDamaged:
        return False
    finally:
        os.close(fd)
    return line.startswith(b'{"seq":1,') and b'"kind":"run_started"' in line and b'"format"' not in line


def first_line(fd: int) -> bytes:
    """A file's first line, without its newline."""
    size = 1 << 12
    while True:
        data = os.pread(fd, size, 0)
        line, newline, _ = data.partition(b"\n")
        if newline or len(data) < size:
            return line
        size *= 8
