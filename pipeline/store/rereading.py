"""A run that its checkpoint.json does not tell well enough, read from its records: slower, and never wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pipeline.errors import PipelineError
from pipeline.files import open_regular
from pipeline.store.base import Head
from pipeline.store.blobs import BLOBS, BlobFolder
from pipeline.store.disk import Disk
from pipeline.store.head import parse_head, whole_head
from pipeline.store.importing import document_problem, imported_view
from pipeline.store.listing import first_line
from pipeline.store.names import JOURNAL
from pipeline.store.owner import LOCK
from pipeline.store.scan import lines
from pipeline.store.view import first_problem, fresh_document


def reread(folder: str, name: str, raw: bytes | None) -> Head | None:
    """See store.listing.Reread."""
    try:
        fd = open_regular(f"{folder}/{JOURNAL}", os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return _without_journal(folder, name, raw)
    try:
        problem, document = _folded(fd, folder, name, raw)
    finally:
        os.close(fd)
    return Head(name, document, corrupt=problem.message if problem else "")


def _folded(fd: int, folder: str, name: str, raw: bytes | None) -> tuple[PipelineError | None, dict[str, Any]]:
    if problem := first_problem(first_line(fd)):
        return problem, {}
    size = os.fstat(fd).st_size
    return None, fresh_document(name, lines(fd), size, whole_head(raw), BlobFolder(Path(folder, BLOBS), Disk()).get)


def _without_journal(folder: str, name: str, raw: bytes | None) -> Head | None:
    if raw is None:
        # An empty folder, or one of something else, is no run; one with our files has lost its journal.
        ours = any(os.path.lexists(f"{folder}/{part}") for part in (LOCK, BLOBS))
        return Head(name, {}, corrupt="Its journal is missing.") if ours else None
    document = parse_head(raw)
    problem = document_problem(document)
    if document is None or problem:
        return Head(name, {}, corrupt=f"It has no journal, and of checkpoint.json {problem}.")
    return Head(name, imported_view(document, name))
