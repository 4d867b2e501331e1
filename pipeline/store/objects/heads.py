"""Heads of the runs in a bucket, newest first: one read and one listing a run, several runs at a time. Never writes.

A head is trusted while the append it was written after is the last one; any other run is read from its records.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

from pipeline.errors import PipelineError, StoreError
from pipeline.store.base import Head
from pipeline.store.head import HeadText, sealed, whole_head
from pipeline.store.objects import keys
from pipeline.store.objects.blobs import Blobs
from pipeline.store.objects.bucket import Bucket, Entry, Found
from pipeline.store.objects.lease import FREE_BYTES, Now, is_held, is_over, parse
from pipeline.store.objects.lines import FENCE, entries, lines
from pipeline.store.owner import seen_now
from pipeline.store.view import first_problem, fresh_document

Match = Callable[[Mapping[str, Any]], bool]
#: Runs that are looked at together: one for `latest`, more once more are wanted.
_FIRST, _MOST = 1, 64
_AT_ONCE = 16
#: An append that is smaller may be one that only keeps a place.
_FENCE_BYTES = 200


class Look(NamedTuple):
    """A run as it lies there."""

    run_id: str
    head: Found | None
    #: The head tells all records.
    current: bool
    #: Its lease, where somebody may hold it.
    lease: Entry | None


class Heads:
    """The runs of a bucket; see store.base.Listable."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def all(self, match: Match | None = None) -> Iterator[Head]:
        """See store.base.Listable.heads."""
        names = (keys.head_id(entry.key) for entry in self._bucket.under(keys.HEADS, keys.first(keys.HEADS)))
        # Whoever can write there may have put anything there.
        return self.of(filter(None, names), match)

    def of(self, names: Iterable[str], match: Match | None = None) -> Iterator[Head]:
        """The runs of these names, in this order; those that are not there are left out."""
        now = functools.cache(self._bucket.server_now)
        waiting, size = iter(names), _FIRST
        with ThreadPoolExecutor(_AT_ONCE, "heads") as pool:
            while some := list(islice(waiting, size)):
                size = min(size * 4, _MOST)
                for look in pool.map(self._looked, some):
                    head = look if isinstance(look, Head) else self._head(look, match, now)
                    if head is not None:
                        yield head

    def _looked(self, run_id: str) -> Look | Head:
        """A run as it lies there; a key within it that the client cannot tell must not hide the others."""
        try:
            return self._look(run_id)
        except StoreError as error:
            if not error.data["foreign"]:
                raise
            return Head(run_id, {}, corrupt=f"{error.message} {error.hint}")

    def _look(self, run_id: str) -> Look:
        head = self._bucket.get(keys.head(run_id))
        append = _number(head.notes.get("append", "")) if head else 0
        lease, found, more = None, False, []
        # Blobs stand before the appends, the lease behind them. Where a listing is to begin behind a folder's name,
        # a server that keeps files leaves out all that is in it.
        for entry in self._bucket.under(
            keys.home(run_id), keys.journal(run_id, append - 1) if append > 1 else f"{keys.home(run_id)}/i"
        ):
            if entry.key == keys.lease(run_id):
                lease = entry if entry.size > FREE_BYTES else None
            if entry.key >= keys.lease(run_id):
                break
            if not keys.is_append(entry.key):
                continue
            found = found or keys.seq(entry.key) == append
            if keys.seq(entry.key) > append:
                more.append(entry)
        return Look(run_id, head, bool(append) and found and not self._grown(more), lease)

    def _grown(self, more: list[Entry]) -> bool:
        """Whether these appends hold records: a single one may only keep a place."""
        if len(more) != 1 or more[0].size > _FENCE_BYTES:
            return bool(more)
        return not self._bucket.fetch(more[0]).startswith(FENCE)

    def _head(self, look: Look, match: Match | None, now: Now) -> Head | None:
        run_id = look.run_id
        owned = look.lease is not None and self._owned(look.lease, now)
        if look.current and look.head is not None and sealed(look.head.data):
            with contextlib.suppress(ValueError):
                known = HeadText(look.head.data, seen_now(HeadText(look.head.data, {}), owned))
                return Head(run_id, known, owned=owned) if known.wanted(match) else None
        try:
            fresh = self._fresh(look)
            if fresh is None:
                return None
            document = {**fresh, **seen_now(fresh, owned)}
        except PipelineError as problem:
            last = whole_head(look.head.data if look.head else None)
            return Head(run_id, {}, corrupt=problem.message, owned=owned, known=last)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # Whole records that make no sense to this version: one such run must not hide the others.
            return Head(run_id, {}, corrupt=f"Its records make no sense ({type(error).__name__}: {error}).")
        return Head(run_id, document, owned=owned) if match is None or match(document) else None

    def _fresh(self, look: Look) -> dict[str, Any] | None:
        run_id, bucket = look.run_id, self._bucket
        listed = entries(bucket, run_id)
        if not any(listed):
            return None
        stored = list(lines(bucket, run_id, listed))
        if problem := first_problem(stored[0] if stored else None):
            raise problem
        old = whole_head(look.head.data if look.head else None)
        size = sum(len(line) + 1 for line in stored)
        return fresh_document(run_id, stored, size, old, Blobs(bucket, run_id).get)

    def _owned(self, entry: Entry, now: Now) -> bool:
        found = self._bucket.get(entry.key)
        text = parse(found.data) if found else {}
        return bool(found) and is_held(text) and not is_over(text, entry.modified, now)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
