"""What lies in the folder of a run, and what of it is damaged. Never writes."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from pipeline.files import open_regular
from pipeline.store.blobs import BLOBS
from pipeline.store.disk import read_file
from pipeline.store.head import HEAD, sealed
from pipeline.store.names import JOURNAL, PARTS
from pipeline.store.repair import survey

_HASH = re.compile(r"[0-9a-f]{64}")


def parts(home: Path) -> list[str]:
    """See store.base.Movable.parts."""
    return sorted(unquote(path.name) for path in home.glob(f"{PARTS}/*") if os.path.lexists(path / JOURNAL))


def blobs(home: Path) -> list[str]:
    """See store.base.Movable.blobs."""
    return sorted(path.name for path in home.glob(f"{BLOBS}/*/*") if _HASH.fullmatch(path.name))


def flaws(home: Path) -> Iterator[str]:
    """See store.base.Movable.flaws."""
    path = home / JOURNAL
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        if not os.path.lexists(home / HEAD):
            yield "Its journal is missing."
        return
    if not stat.S_ISREG(info.st_mode):
        yield "Its journal is no file."
        return
    yield from _journal(path)
    try:
        raw = read_file(home / HEAD)
    except OSError as error:
        yield f"{HEAD} cannot be read: {error.strerror}; it is made afresh from the records."
        return
    if raw is not None and not sealed(raw):
        yield f"{HEAD} is damaged, or was changed by hand; it is made afresh from the records."


def _journal(path: Path) -> Iterator[str]:
    fd = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        found = survey(fd)
    finally:
        os.close(fd)
    for damage in found.middle:
        where = f"{JOURNAL}, byte {damage.offset}"
        if damage.bytes:
            yield f"{where}: {damage.bytes} bytes between records {damage.before} and {damage.after} are no record."
        elif damage.after == damage.before + 1:
            yield f"{where}: the newline between records {damage.before} and {damage.after} is lost."
    if found.tail is not None:
        yield f"{JOURNAL}, byte {found.tail.offset}: the last {found.tail.bytes} bytes are no whole record."
