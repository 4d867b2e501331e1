"""The store that a command looks at, and one run in it. Loads a backend only when one is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import environment
from pipeline.clock import SystemClock
from pipeline.errors import RunNotFound

if TYPE_CHECKING:
    from pipeline.records.run import RunState
    from pipeline.store.backend import Backend, Tip
    from pipeline.store.base import Account, Head, Listable, Store

#: A path that says nothing else: no user, no settings, no home.
_PLAIN_PATH = re.compile(r"[\w./ -]+")


def open_store(url: str | None, *, concurrency: int = 4) -> Store:
    """Return the store at a URL, or the default one; see store.url."""
    from pipeline.store import url as backends

    return backends.open_store(url or environment.default_store(), concurrency=concurrency)


def open_account(url: str | None) -> Account:
    """Return the spending account of the same store."""
    from pipeline.store import url as backends

    return backends.open_account(url or environment.default_store())


def open_list(url: str | None) -> Listable:
    """Return the runs of the same store for listing; what reads records is loaded when a run needs it."""
    scheme, _, path = (url or environment.default_store()).partition(":")
    if scheme == "files" and _PLAIN_PATH.fullmatch(path) and not os.path.lexists(path):
        return _NoRuns()
    from pipeline.store.folder import FolderBackend
    from pipeline.store.heads import Listing
    from pipeline.store.names import JOURNAL

    folder = _folder_of(url)
    if folder is None or os.path.lexists(folder / JOURNAL):
        return open_store(url)
    return Listing(FolderBackend(folder, SystemClock()), _rebuild)


class _NoRuns:
    """A folder of runs before its first run: nothing needs to be loaded to list it."""

    def heads(self, match: Callable[[Mapping[str, Any]], bool] | None = None, start: str = "") -> Iterator[Head]:
        return iter(())


def _folder_of(url: str | None) -> Path | None:
    from pipeline.store.address import folder_of

    return folder_of(url or environment.default_store())


def _rebuild(backend: Backend, tip: Tip) -> Head | None:
    from pipeline.store import head_rebuild

    return head_rebuild.rebuild(backend, tip)


def missing_store(url: str | None) -> str:
    """Return the URL of a store that was never made; "" where there is one."""
    folder = _folder_of(url)
    if folder is not None:
        return "" if folder.exists() else f"files:{folder}"
    place = open_store(url)
    return "" if place.is_there() else place.url


def words_of(url: str | None) -> str:
    """Return ` --store URL`, without a password, of another store than the default one; "" for that."""
    from pipeline.store.address import anchored, store_words

    return "" if not url or anchored(url) == environment.default_store() else store_words(url)


def run_folder(run: str, store: str | None) -> Path | None:
    """Return the folder of a run that a text names; None: it names a run of the store, or nothing."""
    from pipeline.store.head import HEAD
    from pipeline.store.names import JOURNAL

    path = Path(os.path.expanduser(run))
    if os.sep not in run and not run.startswith((".", "~")):
        root = _folder_of(store)
        # A name alone is first one of the store's.
        if not run or (root is not None and os.path.lexists(root / run)):
            return None
    return path.absolute() if any(os.path.lexists(path / name) for name in (JOURNAL, HEAD)) else None


def place_of(run: str, store: str | None) -> tuple[str, str | None]:
    """Return a run and its store as they were named; for a folder, the id of its run and the folder's URL."""
    folder = run_folder(run, store)
    if folder is None:
        return run, store
    from pipeline.store.run_folder import RunFolder

    return RunFolder(folder, SystemClock()).run_id, f"files:{folder}"


def head_of(store: Store, run: str) -> Head:
    """Return the head of a run, by its exact id.

    Raises:
        RunNotFound: No such run.
    """
    head = next(store.heads(start=run), None)
    if head is not None and head.run_id == run:
        return head
    raise RunNotFound(f"There is no run {run!r}.", hint="`./pipeline.sh list` shows the runs there are.", run=run)


def state_of(store: Store, head: Head, *, tasks: bool = True) -> RunState:
    """Return what is known of a run, also of one that is only a checkpoint.json so far. Never writes.

    Args:
        tasks: With every finished task; else only how many there are.
    """
    from pipeline.records.codec import decode_line
    from pipeline.records.fold import fold
    from pipeline.store.imports import import_lines
    from pipeline.store.reader import load, summary

    if head.document.get("imported"):
        return fold(head.run_id, map(decode_line, import_lines(head.document, SystemClock().now())))
    return load(store, head.run_id) if tasks else summary(store, head.run_id)
