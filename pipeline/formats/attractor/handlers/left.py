"""The folder in which a visit leaves its outcome.json, and what lies there after it.

A visit alone has the folder that was named; branches that run at once have one each in it, for one's outcome is never
taken for another's.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.engine.step import StepContext
from pipeline.files import read_regular
from pipeline.formats.attractor.outcome import NodeOutcome, failure, from_json
from pipeline.records.run import bare

#: Option: folder in which commands and agents of run_dot leave their outcome; else each visit has one of its own.
LEFT_IN = "stage_dir"
_MOST_DOCUMENT = 1024 * 1024
_DOCUMENTS = ("outcome.json", "status.json")


@contextmanager
def node_folder(ctx: StepContext) -> Iterator[Path]:
    """The folder in which a visit leaves its outcome: fresh, so that no earlier one is taken for it."""
    given = ctx.options.get(LEFT_IN)
    if not given:
        with tempfile.TemporaryDirectory(prefix="pipeline-", ignore_cleanup_errors=True) as made:
            yield Path(made)
        return
    folder = Path(str(given)).absolute()
    if name := own_name(ctx):
        folder /= name
    cleared(folder)
    yield folder


def own_name(ctx: StepContext) -> str:
    """What a visit's own part of the named folder is called; "": it has the folder itself, nothing runs beside it."""
    return bare(ctx.path).replace("/", "_") if ctx.node.attributes.get("fan") else ""


def cleared(folder: Path) -> None:
    """Make the folder, and take away what an earlier visit has left."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _DOCUMENTS:
        (folder / name).unlink(missing_ok=True)


def read_outcome(folder: Path) -> NodeOutcome | None:
    """The outcome left in a visit's folder; None: none is."""
    for name in _DOCUMENTS:
        path = folder / name
        if path.is_symlink() or not path.is_file():
            continue
        with suppress(OSError):
            data = read_regular(path, _MOST_DOCUMENT)
            if len(data) > _MOST_DOCUMENT:
                return failure(f"{name} is larger than {_MOST_DOCUMENT} bytes.", "validation")
            try:
                return from_json(json.loads(data), name)
            except (ValueError, RecursionError):
                return failure(f"{name} is no JSON.", "validation")
    return None


def marks(folder: Path) -> tuple[tuple[int, int] | None, ...]:
    """How the documents of a folder stand: each one's inode and time; None: it is not there."""
    found: list[tuple[int, int] | None] = []
    for name in _DOCUMENTS:
        try:
            there = (folder / name).stat()
            found.append((there.st_ino, there.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)


def astray(shared: Path, own: Path, before: tuple[tuple[int, int] | None, ...]) -> NodeOutcome | None:
    """The failure of a branch beside which an outcome was left where it may be any branch's; None: none was.

    Args:
        shared: The folder of all branches.
        own: The branch's.
        before: `marks` of the shared folder at the visit's begin.
    """
    if shared == own or marks(shared) == before:
        return None
    return failure(
        f"An outcome was left in {shared}, where it may be any branch's; branches that run at once leave theirs in "
        "$ATTRACTOR_STAGE_DIR, which is another folder for each.",
        "config",
    )
