"""What a run's folder needs before its journal can be appended to: a journal, whole, of a format we know."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from pathlib import Path

from pipeline.errors import CheckpointCorrupt, RunNotFound
from pipeline.store.blobs import BLOBS
from pipeline.store.disk import Disk, read_file, write_file
from pipeline.store.head import HEAD, parse_head, scan_int, sealed
from pipeline.store.importing import import_lines
from pipeline.store.names import JOURNAL
from pipeline.store.repair import Repair, lost_since, mend, survey
from pipeline.store.view import first_problem


def ready_journal(disk: Disk, folder: Path, run: str, now: datetime) -> tuple[int, list[Repair]]:
    """Import or mend as needed; the caller holds the owner's lock. Returns the last seq, and what was lost.

    Raises:
        RunNotFound: There is neither journal nor checkpoint.json.
        CheckpointCorrupt, SchemaTooNew: The run cannot be resumed; nothing was changed.
        OSError: The disk refused.
    """
    path = folder / JOURNAL
    part = "/" in run
    if part and not os.path.lexists(path):
        write_file(disk, path, b"")
        disk.sync_folder(folder)
    if not os.path.lexists(path):
        return _import(disk, folder, run, now), []
    fd = disk.open(path, os.O_RDONLY)
    try:
        found = survey(fd)
    finally:
        os.close(fd)
    problem = None if part else first_problem(found.first)
    if problem:
        problem.args = (f"Run {run} cannot be opened. {problem.message}",)
        raise problem
    said: list[Repair] = [*mend(disk, path, found)]
    raw = None
    # A head is a view: what stands in its place is replaced by one that is made afresh.
    with contextlib.suppress(OSError):
        raw = read_file(folder / HEAD)
    seen = scan_int(raw, "seq") if raw and sealed(raw) else 0
    return found.last_seq, [*said, *lost_since(found.last_seq, seen, HEAD)]


def document_lines(folder: Path, run: str, now: datetime) -> list[bytes]:
    """The records that a folder's checkpoint.json stands for while it has no journal.

    Raises:
        RunNotFound: It has neither.
        CheckpointCorrupt: The document cannot be a run's, or the run has lost its journal.
    """
    try:
        raw = read_file(folder / HEAD)
    except OSError as error:
        raise CheckpointCorrupt(
            f"Run {run} has no journal, and its checkpoint.json cannot be read: {error.strerror}.", run=run
        ) from error
    if raw is None:
        if os.path.lexists(folder / BLOBS):
            raise CheckpointCorrupt(f"Run {run} cannot be read. Its journal is missing.", run=run)
        raise RunNotFound(f"There is no run {run}.", hint="`list` shows the runs there are.", run=run)
    document = parse_head(raw)
    if document is None:
        raise CheckpointCorrupt(f"Run {run} has no journal, and its checkpoint.json is no JSON object.", run=run)
    return import_lines(document, now)


def _import(disk: Disk, folder: Path, run: str, now: datetime) -> int:
    lines = document_lines(folder, run, now)
    aside = folder / ".journal.new"
    write_file(disk, aside, b"".join(lines), replace=True)
    disk.replace(aside, folder / JOURNAL)
    disk.sync_folder(folder)
    return len(lines)
