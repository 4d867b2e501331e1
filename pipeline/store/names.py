"""Run names: which are allowed, in which order they stand, and where they lie. No name leads out of the store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from urllib.parse import quote

from pipeline.errors import RunNotFound

#: Folders being built, and folders being removed: never runs.
BUILDING, REMOVING = ".new-", ".deleted-"
#: The records of a run, in its folder.
JOURNAL = "journal.jsonl"
#: Where sub-journals lie below their run.
PARTS = "parts"

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MINTED = 15
_MINTED_ID = re.compile(r"[0-9]{8}_[0-9]{6}(_[0-9]{2,})?")


def is_id(name: str) -> bool:
    """Return whether a folder of this name can be a run."""
    return _ID.fullmatch(name) is not None


def is_minted(name: str) -> bool:
    """Return whether a name is as this program makes them for runs."""
    return _MINTED_ID.fullmatch(name) is not None


def is_part(path: str) -> bool:
    """Return whether a sub-journal can have this path."""
    return len(path) <= 200 and not any(frame in ("", ".", "..") or "\0" in frame for frame in path.split("/"))


def split(run: str) -> tuple[str, str]:
    """Return the id and the path ("" for the run itself) of a run name `ID[/PATH]`.

    Raises:
        RunNotFound: It is no possible name of a run.
    """
    run_id, slash, path = run.partition("/")
    if not is_id(run_id) or (slash and not is_part(path)):
        raise RunNotFound(
            f"{run!r} is not the name of a run.", hint="Names are letters, digits, '.', '_' and '-'.", run=run
        )
    return run_id, path


def part_folder(home: Path, path: str) -> Path:
    """Return where a sub-journal lies in the folder of its run."""
    return home / PARTS / quote(path, safe="")


def minted(at: datetime) -> Iterator[str]:
    """Return ids for a run that begins at `at`, in the order to try: YYYYMMDD_HHMMSS, the same with _02, and so on."""
    base = at.astimezone(UTC).strftime("%Y%m%d_%H%M%S")
    yield base
    for number in count(2):
        yield f"{base}_{number:02d}"


def newest_first(names: list[str]) -> list[str]:
    """Return ids in descending order; _100 comes before _99."""
    if max(map(len, names), default=0) <= _MINTED + 3:
        return sorted(names, reverse=True)
    return sorted(names, key=lambda name: (name[:_MINTED], len(name), name), reverse=True)


def older(names: Iterable[str], than: str) -> list[str]:
    """Return those of the ids that `newest_first` puts behind one, in that order."""
    ordered = newest_first(list({*names, than}))
    return ordered[ordered.index(than) + 1 :]
