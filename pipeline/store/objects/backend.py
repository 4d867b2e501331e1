"""Runs as objects of a bucket: the backend that the store writes through. Every rule rests on conditional puts."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache, partial
from itertools import islice
from typing import Any
from urllib.parse import unquote

from pipeline.errors import StoreError
from pipeline.store.backend import Backend, Held, Tip
from pipeline.store.lease import holder, is_held, parse
from pipeline.store.names import is_id
from pipeline.store.objects import keys
from pipeline.store.objects.address import parse_address
from pipeline.store.objects.bucket import Bucket, Entry
from pipeline.store.objects.segments import (
    FENCE,
    Listing,
    appends,
    behind_segment,
    blocks,
    is_sound,
    listing,
    numbers,
    raw_lines,
)
from pipeline.store.objects.tail import Left, ObjectTail, claim_hash, claim_key, encode, head_data
from pipeline.store.owner import alive
from pipeline.store.values import is_hash

#: A lease that is free is this small, so that a listing shows it; one that is held names its owner.
_FREE_BYTES = 40
#: Runs that are looked at together: one for `latest`, more once more are wanted; and requests at once.
_FIRST, _MOST, _AT_ONCE = 1, 64, 16
#: Of so many journals it is remembered how they were left.
_MOST_LEFT = 64
#: The ids of the leases that this process took.
_own_ids: set[str] = set()

Now = Callable[[], datetime | None]


class ObjectBackend(Backend):
    """A prefix of a bucket."""

    leased = True
    at_once = _AT_ONCE

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.url = bucket.address.url
        self.place = bucket.address.place
        self._proven = False
        self._left: dict[str, Left] = {}
        self._tails: weakref.WeakSet[ObjectTail] = weakref.WeakSet()
        self._changing = threading.Lock()

    def own(self, name: str, since: datetime, *, new: bool = False) -> ObjectTail | None:
        self._prove()
        text = holder(since, id=os.urandom(8).hex(), beat=0)
        _own_ids.add(text["id"])
        if new:
            return self._taken(name, {**text, "epoch": 1}, "")
        left = self._left.pop(name, None)
        if left is not None and (tail := self._taken(name, {**text, "epoch": left.epoch + 1}, left.etag)):
            tail.resume(left)
            return tail
        found = self.bucket.get(keys.lease(name))
        if found is None and not keys.is_claim(name) and not self._exists(name):
            return None
        before = parse(found.data) if found else {}
        if found and self._is_held(name, before, found.modified):
            raise Held(before)
        epoch = before["epoch"] + 1 if isinstance(before.get("epoch"), int) else 1
        # Who did not give it up is dead or silent, and may still write.
        head = self.bucket.get(keys.head(name)) if "pid" in before and keys.is_run(name) else None
        tail = self._taken(name, {**text, "epoch": epoch}, found.etag if found else "")
        if tail is None:
            winner = self.bucket.get(keys.lease(name))
            raise Held(parse(winner.data) if winner else {})
        try:
            if not keys.is_claim(name):
                tail.take_over(head)
        except BaseException:
            with contextlib.suppress(StoreError):
                tail.release()
            raise
        return tail

    def read(self, name: str, after: int = 0) -> Iterator[list[bytes]]:
        found = listing(self.bucket, name, after)
        if found is None:
            raise FileNotFoundError(name)
        return blocks(self.bucket, name, found)

    def put_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        self._prove()
        return self.bucket.put(keys.object_key(key), data, etag)

    def get(self, key: str) -> tuple[bytes, str] | None:
        found = self.bucket.get(keys.object_key(key))
        if found is None:
            return None
        data = head_data(found) if key.endswith("/head") else found.data
        return None if data is None else (data, found.etag)

    def list(self, prefix: str) -> Iterator[str]:
        """See Backend.list. What other programs put there is left out."""
        folder = keys.object_key(prefix.rstrip("/"))
        names = (entry.key.removeprefix(f"{folder}/") for entry in self.bucket.listed(folder))
        ours = is_hash if prefix.endswith("/blobs/") else is_id
        return (f"{prefix}{name}" for name in names if ours(name))

    def delete(self, prefix: str) -> None:
        name = _journal_of(prefix)
        if not name:
            self.bucket.delete([keys.object_key(prefix)])
            return
        marks = [keys.lease(name)]
        if keys.is_run(name):
            marks = [keys.deleted(name), *marks]
            self.bucket.delete([keys.head(name)])
            claimed = claim_key(name, self._first(name))
            self.bucket.put(keys.deleted(name), b"")
            self.bucket.delete(claimed)
        under = [entry.key for entry in self.bucket.under(keys.home(name))]
        self.bucket.delete(key for key in under if key not in marks)
        for mark in marks:
            self.bucket.delete([mark])
        self._left.pop(name, None)
        with self._changing:
            tails = list(self._tails)
        for tail in tails:
            tail.gone = tail.gone or f"{tail.name}/".startswith(f"{name}/")

    def tips(self, claim: str = "", start: str = "") -> Iterator[Tip]:
        """See Backend.tips. Leftovers come last."""
        if start:
            yield from self._looked(self._with_heads(set(), start))
            return
        if claim:
            folder = keys.claim(claim_hash(claim), "").rstrip("/")
            names = [entry.key.removeprefix(f"{folder}/") for entry in self.bucket.listed(folder)]
            yield from self._looked(sorted(filter(is_id, names), key=keys.head))
            return
        seen = set[str]()
        yield from self._looked(self._with_heads(seen))
        yield from (tip for tip in self._looked(self._without_heads(seen)) if tip.leftover)

    def parts(self, run: str, beginning: str = "") -> Sequence[str]:
        folder = f"{keys.home(run)}/parts"
        paths = (keys.part_path(f"/parts/{name}/") for name in self.bucket.names(folder))
        paths = (path for path in paths if path.rpartition("/")[2].startswith(beginning))
        # Some servers go on naming a folder for a while whose objects are gone.
        return sorted(path for path in paths if path and self._has_objects(f"{run}/{path}"))

    def is_there(self) -> bool:
        folders = (keys.HEADS, keys.RUNS, keys.ACCOUNT, keys.KEPT)
        return any(next(self.bucket.under(folder, keys.first(folder)), None) for folder in folders)

    def unlisted(self) -> Sequence[str]:
        seen = set(self._with_heads(set()))
        return [tip.run for tip in self._looked(self._without_heads(seen)) if not tip.leftover]

    def relist(self, run: str) -> None:
        self.bucket.put(keys.head(run), b"{}", "")

    def flaws(self, name: str) -> Iterator[str]:
        """See Backend.flaws. Every append is read, also those that a segment holds."""
        bucket, there = self.bucket, listing(self.bucket, name) or Listing()
        # What a repair has replaced is read no more.
        replaced = max((keys.span(each.key)[1] for each in there.segments if keys.is_rewritten(each.key)), default=0)
        found = list(appends(bucket, name, replaced))
        if not replaced and (not found or keys.seq(found[0].key) != 1):
            yield "Its first append is missing."
        for entry, data in zip(found, bucket.fetch_all(found), strict=True):
            if not data:
                yield f"{entry.key} is empty."
            elif keys.seq(entry.key) <= there.covered and (bad := _damaged(data)):
                yield f"{entry.key}: {bad} bytes are not a record."
        yield from self._flawed_segments(name, replaced)
        lease = bucket.get(keys.lease(name))
        if lease is not None and not parse(lease.data):
            yield "Its lease is damaged; the next owner rewrites it."
        if keys.is_run(name) and bucket.get(keys.head(name)) is None:
            yield "Its head is missing, so it is not listed; the next `cleanup` makes it again."

    def _flawed_segments(self, name: str, replaced: int) -> Iterator[str]:
        for entry in self.bucket.listed(f"{keys.home(name)}/s"):
            if not keys.is_segment(entry.key) or keys.is_rewritten(entry.key) or keys.span(entry.key)[1] <= replaced:
                continue
            data = self.bucket.fetch(entry)
            if not is_sound(data, *keys.span(entry.key)):
                yield f"{entry.key} is damaged; its appends are read instead."
            elif b"".join(self.bucket.fetch_all(behind_segment(self.bucket, name, entry))) != data:
                yield f"{entry.key} differs from its appends; the segment is read."

    def note(self, name: str, left: Left) -> None:
        self._left[name] = left
        while len(self._left) > _MOST_LEFT:
            self._left.pop(next(iter(self._left)), None)

    def _taken(self, name: str, text: Mapping[str, Any], etag: str) -> ObjectTail | None:
        """Take the lease that has this etag; None: another was faster."""
        taken = self.bucket.put(keys.lease(name), encode(text), etag)
        if taken is None:
            return None
        tail = ObjectTail(self, name, text, taken)
        with self._changing:
            self._tails.add(tail)
        return tail

    def _with_heads(self, seen: set[str], start: str = "") -> Iterator[str]:
        """Yield the runs that have a head, newest first, from `start` on; each is added to `seen`."""
        # The key of no other run lies between a key and what it begins with but for its last character.
        for entry in self.bucket.under(keys.HEADS, keys.head(start)[:-1] if start else keys.first(keys.HEADS)):
            # Anyone who can write there may have put anything there.
            if run := keys.head_id(entry.key):
                seen.add(run)
                yield run

    def _without_heads(self, seen: Collection[str]) -> Iterator[str]:
        """Yield the names below which there is something, but for those in `seen`."""
        there = self.bucket.names(keys.RUNS, keys.first(keys.RUNS))
        return (run for run in there if is_id(run) and run not in seen)

    def _exists(self, name: str) -> bool:
        """Return whether there is anything of a run, even a leftover; of a part: whether its run has records."""
        if keys.is_run(name):
            return self._has_objects(name)
        return listing(self.bucket, name.partition("/")[0]) is not None

    def _has_objects(self, name: str) -> bool:
        return next(self.bucket.under(keys.home(name)), None) is not None

    def _is_held(self, name: str, text: Mapping[str, Any], renewed: datetime, now: Now | None = None) -> bool:
        """Return whether the owner that a lease names is alive."""
        silent = None
        if alive(text, otherwise=True) and not alive(text, otherwise=False):
            time = (now or self.bucket.server_now)()
            silent = (time - renewed).total_seconds() if time else None
        # Epochs begin anew where a run of the same name is made again.
        epoch = text.get("epoch") if text.get("id") in _own_ids else None
        return "pid" in text and is_held(self.place, name, epoch if isinstance(epoch, int) else -1, text, silent)

    def _first(self, run: str) -> bytes:
        """Return the first line of a run; b"" if there is none."""
        found = self.bucket.get(keys.journal(run, 1))
        line = found.data.partition(b"\n")[0] if found else b""
        if next(numbers(line), 0) == 1:
            return line
        found_lines = listing(self.bucket, run)
        return (
            next((one for block in blocks(self.bucket, run, found_lines) for one in block), b"") if found_lines else b""
        )

    def _looked(self, names: Iterable[str]) -> Iterator[Tip]:
        """Yield what these runs look like, in this order, several looked at together."""
        now = cache(self.bucket.server_now)
        waiting, size = iter(names), _FIRST
        with ThreadPoolExecutor(_AT_ONCE, "tips") as pool:
            while some := list(islice(waiting, size)):
                size = min(size * 4, _MOST)
                yield from filter(None, pool.map(partial(self._tip, now=now), some))

    def _tip(self, run: str, now: Now) -> Tip | None:
        """Return a run as it is there; None: there is nothing of it."""
        try:
            return self._look(run, now)
        except StoreError as error:
            # A key within it that the client cannot tell must not hide the other runs.
            if not error.data["foreign"]:
                raise
            return Tip(run, problem=f"{error.message} {error.hint}")

    def _look(self, run: str, now: Now) -> Tip | None:
        head, home, lease = self.bucket.get(keys.head(run)), keys.home(run), None
        noted, told = (_number(head.notes.get(name, "")) if head else 0 for name in ("append", "seq"))
        found, more, removed = False, list[Entry](), False
        # Values stand before the appends, the lease behind them. Where a listing is to begin behind a folder's name, a
        # server that keeps files leaves out all that is in it.
        for entry in self.bucket.under(home, keys.journal(run, noted - 1) if noted > 1 else f"{home}/c"):
            if entry.key >= keys.lease(run):
                lease = entry if entry.key == keys.lease(run) and entry.size > _FREE_BYTES else None
                break
            removed = removed or entry.key == keys.deleted(run)
            if keys.is_append(entry.key):
                found = found or keys.seq(entry.key) == noted
                if keys.seq(entry.key) > noted:
                    more.append(entry)
        last = self._last(more) or (told if found else max(noted - 1, 0))
        if not last or removed:
            under = [entry.modified for entry in self.bucket.under(home)] + ([head.modified] if head else [])
            return Tip(run, leftover=True, touched=max(under).timestamp()) if under else None
        return Tip(
            run,
            head_data(head) if head else None,
            last=last,
            sealed=True,
            first=partial(self._first, run),
            owned=partial(self._is_owned, run, lease, now),
            holder=partial(self._holder, lease),
        )

    def _last(self, found: Sequence[Entry]) -> int:
        """Return the number of the last whole line in these appends; 0: they only keep places."""
        for entry in reversed(found):
            data = self.bucket.fetch(entry)
            if not data.startswith(FENCE):
                return max((*numbers(data), keys.seq(entry.key)))
        return 0

    def _holder(self, lease: Entry | None) -> Mapping[str, Any]:
        found = self.bucket.get(lease.key) if lease else None
        return parse(found.data) if found else {}

    def _is_owned(self, run: str, lease: Entry | None, now: Now) -> bool:
        found = self.bucket.get(lease.key) if lease else None
        return found is not None and self._is_held(run, parse(found.data), found.modified, now)

    def _prove(self) -> None:
        """Make sure, once, that the server honours conditional puts; nothing is written before.

        Raises:
            StoreError: It does not.
        """
        if self._proven:
            return
        bucket, key = self.bucket, f"{keys.PROOF}/{os.urandom(8).hex()}"
        bucket.put(key, b"first", "")
        try:
            if bucket.put(key, b"second", "") is not None:
                raise _unconditional("writes an object over an existing one though it was told to only create it")
            if bucket.put(key, b"third", '"00000000000000000000000000000000"') is not None:
                raise _unconditional("changes an object though it is not the one that was read")
        finally:
            bucket.delete([key])
        self._proven = True


def open_objects(url: str) -> ObjectBackend:
    """Return the backend at `s3://BUCKET/PREFIX`; the server is asked when it is first used.

    Raises:
        ConfigError: The URL or the environment is wrong, or the extra is not installed.
    """
    return ObjectBackend(Bucket(parse_address(url)))


def _journal_of(prefix: str) -> str:
    """Return the name of the journal that a key of the seam is the folder of; "": of none."""
    frames = prefix.split("/")
    if frames[0] != keys.RUNS or len(frames) not in (2, 4) or frames[2:3] not in ([], ["parts"]):
        return ""
    return frames[1] if len(frames) == 2 else f"{frames[1]}/{unquote(frames[3])}"


def _damaged(data: bytes) -> int:
    """Return how many bytes of an append are not a record."""
    if data.startswith(FENCE):
        return 0
    return sum(len(raw) for raw in raw_lines(data) if not next(numbers(raw), 1))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _unconditional(what: str) -> StoreError:
    hint = (
        "Two owners of one run could overwrite each other's records there. Take a server with conditional writes "
        "(AWS S3, SeaweedFS, MinIO, Ceph, R2; not `rclone serve s3`), or another --store."
    )
    text = f"The object server {what} (it ignores conditional puts)."
    return StoreError(text, hint=hint, code="unsupported_server")
