"""Heads of a folder of runs, newest first, as cheap as a file can be read. Never writes.

A head is trusted while its seal is whole and its journal as long as it says; else the journal is folded.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pipeline.errors import PipelineError
from pipeline.store.base import Head
from pipeline.store.disk import read_file
from pipeline.store.head import HEAD, HeadText, parse_head, scan_int, sealed
from pipeline.store.importing import document_problem, imported_view
from pipeline.store.journal import JOURNAL
from pipeline.store.lock import alive, owner
from pipeline.store.names import is_id, newest_first
from pipeline.store.scan import lines
from pipeline.store.view import first_problem, fresh_document, seen_now

Match = Callable[[Mapping[str, Any]], bool]
GetBlob = Callable[[str, str], bytes]

#: An owner on another machine cannot be looked at; a run untouched for longer than this has none.
_FOREIGN_SECONDS = 24 * 3600


def run_names(root: str) -> list[str]:
    """Names that may be runs, newest first."""
    try:
        return newest_first(os.listdir(root))
    except FileNotFoundError:
        return []


def heads(root: str, match: Match | None, get_blob: GetBlob, now: Callable[[], float]) -> Iterator[Head]:
    """See store.base.Store.heads."""
    uid = os.geteuid()
    for name in run_names(root):
        folder = f"{root}/{name}"
        try:
            info = os.lstat(folder)
        except OSError:
            continue
        if not stat.S_ISDIR(info.st_mode) or not is_id(name):
            continue
        if info.st_uid != uid:
            yield Head(name, {}, corrupt=f"It belongs to another user ({info.st_uid}).")
            continue
        try:
            head = _head(folder, name, match, get_blob, now)
        except FileNotFoundError:
            # Removed while we looked.
            continue
        except OSError as error:
            head = Head(name, {}, corrupt=f"It cannot be read: {error.strerror}.")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # Whole records that make no sense to this version: one such run must not hide the others.
            head = Head(name, {}, corrupt=f"Its records make no sense ({type(error).__name__}: {error}).")
        if head is not None:
            yield head


def _head(folder: str, name: str, match: Match | None, get_blob: GetBlob, now: Callable[[], float]) -> Head | None:
    raw = read_file(f"{folder}/{HEAD}")
    try:
        info = os.lstat(f"{folder}/{JOURNAL}")
    except FileNotFoundError:
        return _without_journal(folder, name, raw, match)
    if not stat.S_ISREG(info.st_mode):
        return Head(name, {}, corrupt="Its journal is no file.")
    if raw is None or not sealed(raw):
        raw = None
    if raw is not None and scan_int(raw, "journal_bytes") == info.st_size:
        return _trusted(folder, name, raw, match, now, info.st_mtime)
    problem, document = _folded(folder, name, raw, get_blob)
    living = is_owned(folder, now, info.st_mtime)
    if problem is not None:
        return Head(name, {}, corrupt=problem.message, owned=living)
    document.update(seen_now(document, living))
    return Head(name, document, owned=living) if match is None or match(document) else None


def _trusted(
    folder: str, name: str, raw: bytes, match: Match | None, now: Callable[[], float], touched: float
) -> Head | None:
    text = HeadText(raw, {})
    living: bool | None = None
    if text.get("status_detail") == "running":
        living = is_owned(folder, now, touched)
        text = HeadText(raw, seen_now(text, living))
    if match is not None and not match(text):
        return None
    if living is None:
        living = is_owned(folder, now, touched)
    if problem := first_problem(_first_line(f"{folder}/{JOURNAL}")):
        return Head(name, {}, corrupt=problem.message, owned=living)
    return Head(name, text.whole(), owned=living)


def _folded(
    folder: str, name: str, raw: bytes | None, get_blob: GetBlob
) -> tuple[PipelineError | None, dict[str, Any]]:
    fd = os.open(f"{folder}/{JOURNAL}", os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if problem := first_problem(_line_at_start(fd)):
            return problem, {}
        size = os.fstat(fd).st_size
        old = parse_head(raw) if raw else {}
        return None, fresh_document(name, lines(fd), size, old or {}, lambda blob: get_blob(name, blob))
    finally:
        os.close(fd)


def _without_journal(folder: str, name: str, raw: bytes | None, match: Match | None) -> Head | None:
    if raw is None:
        # An empty folder, or one of something else, is no run; one with our files has lost its journal.
        ours = any(os.path.lexists(f"{folder}/{part}") for part in ("lock", "blobs"))
        return Head(name, {}, corrupt="Its journal is missing.") if ours else None
    document = parse_head(raw)
    problem = document_problem(document)
    if document is None or problem:
        return Head(name, {}, corrupt=f"It has no journal, and of checkpoint.json {problem}.")
    view = imported_view(document, name)
    return Head(name, view) if match is None or match(view) else None


def is_owned(folder: str, now: Callable[[], float], touched: float) -> bool:
    """Whether the process that the lock's text names lives."""
    holder = owner(folder)
    return bool(holder) and alive(holder, otherwise=now() - touched < _FOREIGN_SECONDS)


def _first_line(path: str) -> bytes | None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        return _line_at_start(fd)
    finally:
        os.close(fd)


def _line_at_start(fd: int) -> bytes | None:
    size = 1 << 12
    while True:
        data = os.pread(fd, size, 0)
        line, newline, _ = data.partition(b"\n")
        if newline or len(data) < size:
            return line
        size *= 8
