"""The desk: which store it looks at, its open runs, and who sits at it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request

from pipeline import environment
from pipeline.app.run_index import RunIndex, RunNow, Watches
from pipeline.app.stores import head_of, open_store
from pipeline.clock import SystemClock
from pipeline.records.run import RunState
from pipeline.store.address import store_words
from pipeline.store.base import Head, Store

#: The cookie that keeps the name of who decides here.
NAME_COOKIE = "desk-name"
MOST_NAME = 80
#: The same form again within so many seconds is the same click.
_SAME_CLICK = 30.0


@dataclass(slots=True)
class Click:
    """A form that was sent, once or several times within a moment."""

    #: When it was sent last, seconds.
    at: float
    #: What it came to; None: nothing yet, or it was refused.
    made: Any = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Desk:
    """What all pages share; any number of threads."""

    def __init__(self, store_url: str | None = None) -> None:
        """Look at a store.

        Args:
            store_url: As --store names it; None: the default one.
        """
        self.store_url = store_url
        self.clock = SystemClock()
        self._store = open_store(store_url or environment.default_store(), concurrency=0)
        self._watches = Watches(self._store, self.clock)
        #: Rows of all runs, for filters and counts.
        self.runs = RunIndex(self._store, self.clock)
        self._clicks: dict[Hashable, Click] = {}
        self._clicking = threading.Lock()
        #: Set when the server stops: streams end at once.
        self.stopping = asyncio.Event()

    def store(self) -> Store:
        """Return the store; its readers may be any number of threads."""
        return self._store

    def store_words(self) -> str:
        """Return ` --store URL` for commands to copy, without a password; "" for the default store."""
        return store_words(self.store_url) if self.store_url else ""

    def heads(self) -> Iterator[Head]:
        """Return all runs, newest first."""
        return self._store.heads()

    def head(self, run: str) -> Head:
        """Return the head of a run, by its exact id.

        Raises:
            RunNotFound: No such run.
        """
        return head_of(self._store, run)

    def watched(self, run: str) -> RunNow:
        """Return a run as it is now: its state is folded on from where it was looked at last.

        Raises:
            RunNotFound: No such run.
        """
        return self._watches.now(run)

    def state(self, run: str) -> RunState:
        """Return what the records of a run say by now; nothing changes it later."""
        return self.watched(run).state

    def owned(self, run: str) -> bool:
        """Return whether a living process owns the run."""
        return self.watched(run).owned

    @contextmanager
    def click(self, form: Hashable) -> Iterator[Click]:
        """Hold what a form came to when it was sent a moment ago: the second click of two waits for the first."""
        with self._clicking:
            now = self.clock.monotonic()
            self._clicks = {key: each for key, each in self._clicks.items() if now - each.at < _SAME_CLICK}
            click = self._clicks.setdefault(form, Click(now))
            click.at = now
        with click.lock:
            yield click

    def name(self, request: Request) -> str:
        """Return who is at the desk, as typed in one of its forms; "" where no name was given."""
        return unquote(request.cookies.get(NAME_COOKIE, ""))[:MOST_NAME]
