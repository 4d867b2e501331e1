"""From a store's URL to the store: `files:DIR` or `memory:`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pipeline.clock import Clock, SystemClock
from pipeline.errors import ConfigError
from pipeline.store.account import FileAccount
from pipeline.store.base import Account, Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryAccount, MemoryStore

_HINT = "Stores are files:DIR (a folder) and memory: (gone at the end)."


def open_store(url: str, clock: Clock | None = None, *, concurrency: int = 4) -> Store:
    """The store at `files:DIR` (a relative DIR is the caller's) or a new `memory:` one.

    Args:
        concurrency: Calls that may be in flight: as much disk is held back to record them.

    Raises:
        ConfigError: The URL names no store this program knows.
    """
    scheme, rest = _split(url)
    if scheme == "memory":
        return MemoryStore(clock or SystemClock())
    return FileStore(Path(rest).expanduser().absolute(), clock or SystemClock(), concurrency=concurrency)


def open_account(url: str, clock: Clock | None = None) -> Account:
    """The account of the store at `url`."""
    scheme, rest = _split(url)
    if scheme == "memory":
        return MemoryAccount(clock or SystemClock())
    return FileAccount(Path(rest).expanduser().absolute(), clock or SystemClock())


def _split(url: str) -> tuple[str, str]:
    scheme, colon, rest = url.partition(":")
    if scheme == "memory" and colon:
        return scheme, ""
    if scheme == "files" and rest:
        return scheme, rest
    # Never echo what may be a password.
    shown = f"{urlsplit(url).scheme}:…" if "://" in url else url
    raise ConfigError(f"--store is {shown!r}, which names no store.", hint=_HINT)
