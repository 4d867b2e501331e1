"""From a store's URL to the store: `files:DIR`, `sqlite:FILE`, `postgresql://…`, `s3://BUCKET/PREFIX` or `memory:`."""

from __future__ import annotations

from pipeline.clock import Clock, SystemClock
from pipeline.store.address import parse_store_url
from pipeline.store.base import Account, Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.run_folder import RunFolder, has_run
from pipeline.store.runs import RunStore


def open_store(url: str, clock: Clock | None = None, *, concurrency: int = 4) -> Store:
    """Return the store at `files:DIR` (a folder of runs, or of one run; relative to the caller), or another kind.

    Args:
        concurrency: Calls that may be in flight: as much disk is held back to record them; 0: none is.

    Raises:
        ConfigError: The URL names no store this program knows.
    """
    return _opened(url, clock or SystemClock(), concurrency)


def open_account(url: str, clock: Clock | None = None) -> Account:
    """Return the account of the store at `url`."""
    return _opened(url, clock or SystemClock(), 0).account()


def _opened(url: str, clock: Clock, concurrency: int) -> RunStore:
    named = parse_store_url(url)
    # What few stores need is loaded for those alone.
    if named.scheme == "s3":
        from pipeline.store.objects.backend import open_objects

        return RunStore(open_objects(url), clock)
    if named.scheme in ("sqlite", "postgresql"):
        from pipeline.store.sql.backend import open_sql

        return open_sql(url, clock)
    if named.folder is None:
        return MemoryStore(clock)
    if has_run(named.folder):
        return RunFolder(named.folder, clock, concurrency=concurrency)
    return FileStore(named.folder, clock, concurrency=concurrency)
