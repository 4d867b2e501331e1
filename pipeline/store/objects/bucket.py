"""The few requests that a store makes of its object server, and what a refusal means. Knows keys, not runs.

A conditional put whose answer was lost is answered by looking: each put carries a mark of its own.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.clock import SystemClock
from pipeline.errors import StoreError, WriteFailed
from pipeline.extras import not_installed
from pipeline.store.availability import Availability
from pipeline.store.objects import keys
from pipeline.store.objects.address import Address, names_credential, refusal

if TYPE_CHECKING:
    from obstore.store import S3Store

#: Requests that are on their way at once where many objects are read, and objects of which the bytes wait.
_AT_ONCE, _WINDOW = 16, 64
#: After how long a request is given up, and after how long nothing is sent again: a silent server is asked twice at
#: most.
_REQUEST_SECONDS, _AGAIN_SECONDS = 20, 15
_CLOCK_SECONDS = 10
#: Bytes of objects that never change, kept so that a value is not fetched twice.
_CACHED = 64 << 20
#: Seconds before a put that was cut off is sent again.
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0
#: The note that tells a put from all others of the same bytes.
_MARK = "put"
#: Real seconds, whatever a run's clock says: the server's answers take them too.
_CLOCK = SystemClock()


class Entry(NamedTuple):
    """An object as a listing shows it."""

    key: str
    size: int
    etag: str
    #: By the server's clock.
    modified: datetime


class Found(NamedTuple):
    """An object as it was read."""

    data: bytes
    etag: str
    #: By the server's clock.
    modified: datetime
    #: What the writer attached to it.
    notes: dict[str, str]


class Bucket:
    """A prefix of a bucket. Any number of threads may use it at once."""

    def __init__(self, address: Address, *, retries: int = 5) -> None:
        self.address = address
        self._store = _connect(address, retries)
        self._retries = retries
        self._cache: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._cached = 0
        self._lock = threading.Lock()
        #: Whether the server answers; where it was given up just now, nothing is asked.
        self.silence = Availability()

    def get(self, key: str) -> Found | None:
        """Return an object; None: there is none.

        Raises:
            StoreError: The server cannot be asked.
        """
        import obstore

        try:
            with self.silence.asked(), self._asking(f"{key} cannot be read", StoreError, FileNotFoundError):
                got = obstore.get(self._store, key)
                data = bytes(got.bytes())
                self.silence.answered()
        except FileNotFoundError:
            return None
        notes = {str(name): str(value) for name, value in got.attributes.items()}
        return Found(data, got.meta["e_tag"] or "", got.meta["last_modified"], notes)

    def fetch(self, entry: Entry) -> bytes:
        """Return the bytes of a listed object, kept for the next time; b"" if it is gone."""
        name = (entry.key, entry.etag)
        with self._lock:
            if name in self._cache:
                self._cache.move_to_end(name)
                return self._cache[name]
        found = self.get(entry.key)
        if found is None:
            return b""
        self.remember(entry.key, found.etag, found.data)
        return found.data

    def fetch_all(self, entries: Iterable[Entry]) -> Iterator[bytes]:
        """Yield the bytes as `fetch`, in order, several requests at a time."""
        waiting = list(entries)
        if len(waiting) < 2:
            yield from map(self.fetch, waiting)
            return
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for begin in range(0, len(waiting), _WINDOW):
                yield from pool.map(self.fetch, waiting[begin : begin + _WINDOW])

    def remember(self, key: str, etag: str, data: bytes) -> None:
        with self._lock:
            before = self._cache.pop((key, etag), b"")
            self._cache[(key, etag)] = data
            self._cached += len(data) - len(before)
            while self._cached > _CACHED:
                self._cached -= len(self._cache.popitem(last=False)[1])

    def put(self, key: str, data: bytes, etag: str | None = None, notes: dict[str, str] | None = None) -> str | None:
        """Put an object over the one with this etag ("": only where there is none; None: over any).

        Returns its etag; None: another one is there.

        Raises:
            WriteFailed: Whether it was put is not known.
        """
        marked = {**(notes or {}), _MARK: os.urandom(8).hex()}
        number, begun = 0, _CLOCK.monotonic()
        with self.silence.asked():
            while True:
                try:
                    written = self._put(key, data, etag, marked)
                    self.silence.answered()
                    return written
                except WriteFailed as error:
                    if not error.data["passing"]:
                        raise
                    # Cut off, perhaps after it was done: looking tells, and only then may it be sent again.
                    found = self._seen(key)
                    if found is not None and found.notes.get(_MARK) == marked[_MARK]:
                        return found.etag
                    number += 1
                    if number > self._retries or _CLOCK.monotonic() - begun > _AGAIN_SECONDS:
                        raise
                    if found is not None and etag is not None and found.etag != etag:
                        return None
                    _CLOCK.wait(threading.Event(), min(_FIRST_WAIT * 2**number, _LONGEST_WAIT))

    def under(self, key: str, after: str = "") -> Iterator[Entry]:
        """Yield the objects below a key, in ascending order, lazily.

        Args:
            after: Only keys behind this one.

        Raises:
            StoreError: The server cannot be asked.
        """
        import obstore

        with self._asking(f"{key} cannot be listed", StoreError):
            pages = obstore.list(self._store, key, offset=after or None, chunk_size=1000)
            rows = (row for page in pages for row in page)
            yield from _no_folders(
                key, (Entry(row["path"], row["size"], row["e_tag"] or "", row["last_modified"]) for row in rows)
            )

    def listed(self, folder: str) -> list[Entry]:
        """Return the objects below a folder; where the client cannot tell one of the keys, those that may be ours.

        Raises:
            StoreError: The server cannot be asked.
        """
        try:
            return list(self.under(folder))
        except StoreError as error:
            if not error.data["foreign"]:
                raise
            return list(self.under(folder, keys.first(folder)))

    def names(self, folder: str, after: str = "") -> list[str]:
        """Return the first frames of all keys below a folder.

        Args:
            after: Where the client cannot tell one of the keys, those behind this one are returned.

        Raises:
            StoreError: The server cannot be asked.
        """
        import obstore

        try:
            with self._asking(f"{folder} cannot be listed", StoreError):
                found = obstore.list_with_delimiter(self._store, folder)
        except StoreError as error:
            if not error.data["foreign"] or not after:
                raise
            there = (entry.key.removeprefix(f"{folder}/") for entry in self.under(folder, after))
            return sorted({key.partition("/")[0] for key in there if "/" in key})
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"])

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; those that are gone already are no error.

        Raises:
            WriteFailed: Some may still be there.
        """
        import obstore

        asking = self._asking("Objects cannot be removed", WriteFailed, FileNotFoundError)
        with contextlib.suppress(FileNotFoundError), asking:
            if there := list(names):
                obstore.delete(self._store, there)

    def server_now(self) -> datetime | None:
        """Return the time by the server's clock, from the Date of any of its answers; None: it does not say."""
        # Asked for in contention only: nothing else waits for the import.
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        try:
            with urlopen(Request(self.address.endpoint, method="HEAD"), timeout=_CLOCK_SECONDS) as answer:
                text = answer.headers.get("Date")
        except HTTPError as refused:
            text = refused.headers.get("Date")
            refused.close()
        except (URLError, OSError, ValueError):
            return None
        try:
            return parsedate_to_datetime(text).astimezone(UTC) if text else None
        except ValueError:
            return None

    def _put(self, key: str, data: bytes, etag: str | None, notes: dict[str, str]) -> str | None:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "overwrite" if etag is None else {"e_tag": etag} if etag else "create"
        what = f"{key} cannot be written"
        try:
            with self._asking(what, WriteFailed, AlreadyExistsError, PreconditionError, FileNotFoundError):
                done = obstore.put(self._store, key, data, mode=mode, use_multipart=False, attributes=notes)
                return done["e_tag"] or ""
        except (AlreadyExistsError, PreconditionError):
            # Also what a repeated request gets whose first answer was lost.
            found = self.get(key)
            if found is not None and found.notes.get(_MARK) == notes[_MARK]:
                return found.etag
            if (found.etag if found is not None else "") == etag:
                # What is there is what was to be there: another request was in the way, and is gone.
                text = f"{what}: other requests keep getting in the way."
                raise WriteFailed(text, hint="Try again.", code="store_busy", fatal=True, passing=True) from None
            return None
        except FileNotFoundError as error:
            if not etag:
                raise self._failed(what, error, WriteFailed) from None
            return None

    def _seen(self, key: str) -> Found | None:
        """Return what is there after a put that was cut off; None also where that cannot be told."""
        try:
            return self.get(key)
        except StoreError as error:
            if error.data["silent"]:
                # A put and the look for it met silence.
                self.silence.give_up()
        return None

    @contextlib.contextmanager
    def _asking(self, what: str, kind: type[StoreError], *known: type[Exception]) -> Iterator[None]:
        """Make one request; the client's errors become ours, but for those that the caller knows."""
        if self.silence.rests:
            raise self._failed(what, TimeoutError("timed out"), kind)
        try:
            yield
        except known:
            raise
        except Exception as error:
            raise self._failed(what, error, kind) from None

    def _failed(self, what: str, error: Exception, kind: type[StoreError]) -> StoreError:
        told = refusal(str(error), self.address, named=names_credential())
        return kind(
            f"{what}: {told.why}.", hint=told.hint, code=told.code, fatal=True, passing=told.passing,
            silent=told.code == "server_silent", foreign=told.code == "foreign_object",
        )  # fmt: skip


def _no_folders(key: str, entries: Iterator[Entry]) -> Iterator[Entry]:
    """Leave out the empty objects that other programs put there as folders: PATH/, listed as PATH."""
    empty = None
    for entry in entries:
        if empty is not None and not entry.key.startswith(f"{empty.key}/"):
            yield empty
        empty = entry if entry.size == 0 and entry.key != key else None
        if entry.size:
            yield entry
    if empty is not None:
        yield empty


def _connect(address: Address, retries: int) -> S3Store:
    try:
        from obstore.store import S3Store
    except ImportError:
        raise not_installed("objects", "--store s3://…") from None
    return S3Store(
        address.bucket,
        prefix=address.prefix or None,
        endpoint=address.endpoint,
        region=address.region,
        client_options={"allow_http": address.plain, "timeout": timedelta(seconds=_REQUEST_SECONDS)},
        retry_config={
            # A put is sent again by its own rule; see Bucket.put.
            "max_retries": min(retries, 3),
            "retry_timeout": timedelta(seconds=_AGAIN_SECONDS),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
        },
    )
