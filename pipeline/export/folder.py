"""Exported files in a folder: each is written whole, and none over what a person changed.

OUT/docx/01-working-with-surds-core-worksheet.docx   files, below the folder of their format
OUT/.exported.json                                   hashes of what was written, by which changes are known
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import PublishError
from pipeline.files import held, parse_json, read_regular, replace_file
from pipeline.publish.folder import writing
from pipeline.records.structure import items, problem, table, text
from pipeline.records.values import digest

RECORD = ".exported.json"
#: path → hashes of the versions that may stand there: the last, and while a command writes the one before it.
_SHAPE = table(items(text))
#: What files.replace_file writes aside.
_BEGUN = re.compile(r"\.(.+)\.[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Written:
    """Tell what became of an export."""

    #: Files that are new or replaced; the others were there already, byte for byte.
    new: frozenset[str]
    #: Files that a person changed since they were exported, and that were left as they are.
    kept: tuple[str, ...]
    #: Those that were replaced all the same.
    lost: tuple[str, ...]
    #: Files of earlier exports that are not in this one and still there.
    left: tuple[str, ...]


def write(root: Path, files: Mapping[str, bytes], *, overwrite: bool = False) -> Written:
    """Write files below a folder; the same files again change nothing.

    Args:
        overwrite: Also over files that a person changed.

    Raises:
        PublishError: The folder cannot be written; names what is in the way.
    """
    with writing(root), held(_lock(root)):
        record = _read(root)
        hashes = {name: digest(data) for name, data in files.items()}
        there = {name: found for name in files if (found := _hash(root / name)) is not None}
        changed = tuple(name for name, found in there.items() if found not in (hashes[name], *record.get(name, ())))
        kept = () if overwrite else changed
        wanted = {name: [hashes[name]] for name in files if name not in kept}
        new = frozenset(name for name in wanted if there.get(name) != hashes[name])
        left = tuple(sorted(name for name in record if name not in files and os.path.lexists(root / name)))
        end = {**{name: record[name] for name in left}, **wanted}
        if new or record != end:
            # First what may come to stand there, so that a command that is killed half-way leaves no unknown file.
            _save(root, {**record, **{name: [*record.get(name, ()), *hash_] for name, hash_ in wanted.items()}})
            _sweep(root, {*files, RECORD})
            for name in sorted(new):
                _check_inside(root, name)
                replace_file(root / name, files[name])
            _save(root, end)
        return Written(new, kept, changed if overwrite else (), left)


def _lock(root: Path) -> int:
    """Make the folder and open it, so that other exports into it can be held off."""
    root.mkdir(parents=True, exist_ok=True)
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY)


def _check_inside(root: Path, name: str) -> None:
    """Make the folder of a file; refuse one that is a link to elsewhere."""
    folder = (root / name).parent
    folder.mkdir(parents=True, exist_ok=True)
    if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root)):
        raise PublishError(f"{folder} leads out of the export folder.", code="link_leads_out", hint="Remove that link.")


def _sweep(root: Path, names: set[str]) -> None:
    """Remove what a command that was killed had begun to write in place of these files."""
    for folder in {(root / name).parent for name in names}:
        for path in folder.glob(".*") if folder.is_dir() else ():
            begun = _BEGUN.fullmatch(path.name)
            if begun and (folder / begun[1]).relative_to(root).as_posix() in names:
                path.unlink()


def _hash(path: Path) -> str | None:
    """Return the hash of what stands there; None where nothing does."""
    return digest(read_regular(path)) if os.path.lexists(path) else None


def _read(root: Path) -> dict[str, list[str]]:
    """Return the record of earlier exports; {} where there is none that can be read."""
    try:
        found = parse_json(read_regular(root / RECORD))
    except (OSError, ValueError):
        return {}
    return {} if problem(found, _SHAPE) else found


def _save(root: Path, record: Mapping[str, list[str]]) -> None:
    replace_file(root / RECORD, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode("ascii"))
