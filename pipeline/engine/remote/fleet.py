"""What an application gives a run whose maps go to an executor; which stores other processes can share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from pipeline.engine.remote.tools import packed
from pipeline.engine.setup import Definition, Setup
from pipeline.errors import ConfigError

#: Executors whose workers are this process or its children.
_NEAR = (ThreadPoolExecutor, ProcessPoolExecutor)
#: Where workers find the functions that open a store and its account; the engine itself knows protocols only.
_OPENER = {"module": "pipeline.store.url"}
_SHARED_HINT = "Take --store sqlite:FILE (workers on this host), postgresql://… or s3://… (anywhere)."


@dataclass(frozen=True, slots=True)
class Fleet:
    """An executor and what each of its workers is told."""

    executor: Executor
    spec: Mapping[str, Any]


def fleet_of(executor: Executor, store_url: str, definition: Definition, setup: Setup, *, near: bool = False) -> Fleet:
    """The fleet of a run.

    Args:
        near: The workers run on this host, whatever the executor is.

    Raises:
        ConfigError: The workers cannot share the store, or cannot be sent what the tasks need.
    """
    check_store(store_url, near=near or isinstance(executor, _NEAR))
    spec = {
        "store": plain_url(store_url),
        "opener": _OPENER,
        "account": setup.account is not None,
        "tools": packed(definition, setup),
    }
    return Fleet(executor, spec)


def plain_url(url: str) -> str:
    """A store's URL as workers are told it: without a password, and the same in any folder."""
    scheme, _, rest = url.partition(":")
    if scheme in ("files", "sqlite"):
        return f"{scheme}:{os.path.abspath(os.path.expanduser(rest))}"
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=user.partition(":")[0] + at + host)) if at else url


def own_url(url: str) -> str:
    """The URL of a store as this worker knows it: its own PIPELINE_STORE, if that is the same store."""
    own = os.environ.get("PIPELINE_STORE", "")
    return own if own and plain_url(own) == url else url


def check_store(url: str, *, near: bool) -> None:
    """Refuse a store that workers cannot share.

    Args:
        near: The workers are processes that this one has begun.

    Raises:
        ConfigError: Says why, and which stores can be shared.
    """
    scheme = url.partition(":")[0]
    if ("single", "1") in parse_qsl(url.partition("?")[2]):
        raise ConfigError("A store with ?single=1 serves one process; workers cannot share it.", hint=_SHARED_HINT)
    if not url or scheme == "memory":
        raise ConfigError("A memory: store is this process's own; workers cannot share it.", hint=_SHARED_HINT)
    if scheme == "files" and not near:
        raise ConfigError(
            "A file store belongs to processes of one host: its locks are the kernel's, and say nothing to workers "
            "that an executor may have anywhere.",
            hint=_SHARED_HINT,
        )
