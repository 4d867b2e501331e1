"""From a store's URL to the store: `files:DIR`, `sqlite:FILE`, `postgresql://…`, `s3://BUCKET/PREFIX` or `memory:`."""

from __future__ import annotations

from pipeline.clock import Clock, SystemClock
from pipeline.store.account import FileAccount
from pipeline.store.base import Account, Store
from pipeline.store.files import FileStore
from pipeline.store.ledger import BackendAccount
from pipeline.store.memory import MemoryAccount, MemoryStore
from pipeline.store.objects.address import is_objects
from pipeline.store.objects.backend import open_objects
from pipeline.store.place import folder_of
from pipeline.store.run_folder import RunFolder, has_run
from pipeline.store.runs import RunStore
from pipeline.store.sql.address import is_sql
from pipeline.store.sql.backend import open_sql


def open_store(url: str, clock: Clock | None = None, *, concurrency: int = 4) -> Store:
    """The store at `files:DIR` (a folder of runs, or of one run; relative to the caller), or in what else it names.

    Args:
        concurrency: Calls that may be in flight: as much disk is held back to record them; 0: none is.

    Raises:
        ConfigError: The URL names no store this program knows.
    """
    if is_objects(url):
        return RunStore(open_objects(url), clock or SystemClock())
    if is_sql(url):
        return open_sql(url, clock or SystemClock())
    folder = folder_of(url)
    if folder is None:
        return MemoryStore(clock or SystemClock())
    if has_run(folder):
        return RunFolder(folder, clock or SystemClock(), concurrency=concurrency)
    return FileStore(folder, clock or SystemClock(), concurrency=concurrency)


def open_account(url: str, clock: Clock | None = None) -> Account:
    """The account of the store at `url`."""
    if is_objects(url):
        return BackendAccount(open_objects(url), clock or SystemClock())
    if is_sql(url):
        return open_sql(url, clock or SystemClock()).account()
    folder = folder_of(url)
    return MemoryAccount(clock or SystemClock()) if folder is None else FileAccount(folder, clock or SystemClock())
