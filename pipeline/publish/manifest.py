"""The manifest: what was published, file by file, and how to tell that it was changed since."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import InvalidValue
from pipeline.files import parse_json, read_regular
from pipeline.publish.base import Bundle
from pipeline.records.structure import count, fields, problem, table, text
from pipeline.records.values import digest, value_hash

#: Name of the manifest inside a version.
MANIFEST = "manifest.json"
#: Raised when the manifest's own fields change.
FORMAT = 1
_SHAPE = fields(
    ("content_hash", "files"),
    content_hash=text,
    files=table(fields(("sha256", "bytes"), sha256=text, bytes=count)),
)
#: What file managers leave behind is no edit.
_LITTER = frozenset({".DS_Store", "Thumbs.db", "desktop.ini", ".directory"})


def make(bundle: Bundle, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the manifest of files {relative path: bytes}; its content_hash covers every other field."""
    body: dict[str, Any] = {
        "format": FORMAT,
        "course": bundle.name,
        "draft": bundle.draft,
        "about": dict(bundle.about),
        "files": {name: {"sha256": digest(data), "bytes": len(data)} for name, data in sorted(files.items())},
    }
    return {**body, "content_hash": value_hash(body)}


def encode(manifest: Mapping[str, Any]) -> bytes:
    """Return the manifest as it is stored: sorted, indented ASCII JSON."""
    return (json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode("ascii")


def read(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a published folder; None where it is missing, cut or not consistent in itself."""
    try:
        found = parse_json(read_regular(folder / MANIFEST))
        if problem(found, _SHAPE):
            return None
        stated = found.pop("content_hash")
        if value_hash(found) != stated:
            return None
    except (OSError, ValueError, InvalidValue):
        return None
    return {**found, "content_hash": stated}


def edited(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Return the files that differ from the manifest, as "path (changed | missing | added)", sorted."""
    listed = manifest["files"]
    found = []
    for name, entry in listed.items():
        path = folder / name
        if path.is_symlink() or not path.is_file():
            found.append(f"{name} (missing)")
        elif path.stat().st_size != entry["bytes"] or digest(read_regular(path)) != entry["sha256"]:
            found.append(f"{name} (changed)")
    found += [f"{name} (added)" for name in present(folder) if name not in listed and name != MANIFEST]
    return sorted(found)


def present(folder: Path) -> list[str]:
    """Return every file below the folder, as a relative path with /, sorted; litter of file managers left out."""
    found = []
    for where, _, names in os.walk(folder):
        inside = Path(where).relative_to(folder)
        found += [(inside / name).as_posix() for name in names if name not in _LITTER]
    return sorted(found)
