"""Runs as objects of a bucket: create, open, read, list, delete. The rules stand in the files it calls."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import CheckpointCorrupt, PipelineError, RunNotFound, StoreError, WriteFailed
from pipeline.records.lines import line_seq
from pipeline.store.base import Claim, Head
from pipeline.store.head import whole_head
from pipeline.store.heads import refuse_if_held
from pipeline.store.lock import locked
from pipeline.store.names import is_id, minted, split
from pipeline.store.objects import claiming, inside, keys, late
from pipeline.store.objects.account import ObjectAccount
from pipeline.store.objects.address import parse_address
from pipeline.store.objects.blobs import Blobs
from pipeline.store.objects.bucket import Bucket
from pipeline.store.objects.heads import Heads
from pipeline.store.objects.journal import End, ObjectJournal
from pipeline.store.objects.lease import FREE_BYTES, Lease, acquire, again, begin
from pipeline.store.objects.lines import entries, exists, lines
from pipeline.store.objects.proof import prove
from pipeline.store.objects.taking import take_over
from pipeline.store.recovery import took_in

_TRIES = 20
_AT_ONCE = 16
#: Of so many runs it is remembered how they were left.
_MOST_LEFT = 64


class ObjectStore:
    """A prefix of a bucket; see store.base.Store."""

    def __init__(self, bucket: Bucket, clock: Clock) -> None:
        self.url = bucket.address.url
        self.bucket = bucket
        self._clock = clock
        self._heads = Heads(bucket)
        self._proven = False
        #: The last id that was given here: most collisions are with runs of this process.
        self._newest = ""
        #: Journals as this store left them: the lease that was given up, where they end, the etag of the head.
        self._left: dict[str, tuple[Lease, End, str]] = {}

    def create(
        self, first: bytes, blobs: Sequence[bytes], *, at: datetime, claim: Claim | None = None
    ) -> tuple[str, ObjectJournal]:
        """See store.base.Store.create."""
        self.prove()
        for number in range(_TRIES):
            intent = claiming.Intent(self.bucket, claim) if claim is not None else None
            if claim is not None:
                names = claiming.holders(self.bucket, claim)
                refuse_if_held(lambda match, names=names: self._heads.of(names, match), claim, at)  # type: ignore[misc]
            run, journal = self._make(first, blobs, self._free_names(at), at, pending=intent is not None)
            if intent is None or intent.stands():
                claiming.mark(self.bucket, run, first, proven=True)
                return run, journal
            # Somebody meant to make one at the same time, and may not have seen this one.
            journal.close()
            self.delete(run)
            claiming.pause(number)
        raise WriteFailed("No run could be made: others begin the same course all the time.", fatal=False)

    def create_named(self, run: str, first: bytes, blobs: Iterable[bytes] = (), *, at: datetime) -> ObjectJournal:
        """See store.base.Movable.create_named."""
        self.prove()
        if split(run)[1]:
            raise StoreError(f"A run named {run} cannot be made: it is the name of a sub-journal.", run=run)
        if self.bucket.get(keys.lease(run)) is not None and not self._lives(run):
            self._clear(run)
        try:
            return self._make(first, blobs, iter([run]), at, pending=False)[1]
        except StoreError as error:
            if isinstance(error, WriteFailed) or self._lives(run):
                raise
            # Whoever has the name is not done with it.
            raise locked(run, {}) from None

    def parts(self, run: str) -> list[str]:
        """See store.base.Movable.parts."""
        self._check(run)
        return inside.parts(self.bucket, run)

    def blobs(self, run: str) -> list[str]:
        """See store.base.Movable.blobs."""
        self._check(run)
        return inside.blobs(self.bucket, run)

    def flaws(self, run: str) -> Iterator[str]:
        """See store.base.Movable.flaws."""
        return inside.flaws(self.bucket, run)

    def leftovers(self) -> list[str]:
        """See store.base.Movable.leftovers."""
        dead = (run_id for run_id in self._names() if not self._lives(run_id))
        # What a folder marker of another program names, or a server goes on naming, is nothing.
        return [run_id for run_id in dead if next(self.bucket.under(keys.home(run_id)), None) is not None]

    def unlisted(self) -> list[str]:
        """See store.base.Movable.unlisted."""
        listed = {keys.head_id(entry.key) for entry in self.bucket.under(keys.HEADS, keys.first(keys.HEADS))}
        return [run for run in self._names() if run not in listed and self._lives(run)]

    def is_there(self) -> bool:
        """See store.base.Movable.is_there: whether there is an object of one."""
        return any(
            next(self.bucket.under(key, keys.first(key)), None)
            for key in (keys.HEADS, keys.RUNS, keys.ACCOUNT, keys.KEPT)
        )

    def open(self, run: str) -> ObjectJournal:
        """See store.base.Store.open."""
        if (journal := self._again(run)) is not None:
            return took_in(self, journal, self.bucket.address.place)
        # A sub-journal begins with its first owner.
        self._check(split(run)[0])
        self.prove()
        lease = acquire(self.bucket, keys.lease(run), run, self._clock.now())
        try:
            end, head_etag, repairs = take_over(self.bucket, run, lease)
            journal = self._journal(run, lease, end, head_etag, repairs)
            for name in late.waiting(self.bucket, run):
                late.take_in(self.bucket, journal, name)
        except BaseException:
            lease.release()
            raise
        return took_in(self, journal, self.bucket.address.place)

    def read(self, run: str, after: int = 0) -> Iterator[bytes]:
        """See store.base.Store.read."""
        split(run)
        if not after:
            self._check(run)
        listed = entries(self.bucket, run, after)
        if after and not any(listed):
            self._check(run)
        return lines(self.bucket, run, listed, after)

    def written_head(self, run: str) -> Mapping[str, Any]:
        """See store.base.Store.written_head."""
        found = self.bucket.get(keys.head(split(run)[0])) if "/" not in run else None
        return whole_head(found.data if found else None)

    def get_blob(self, run: str, blob: str) -> bytes:
        """See store.base.Store.get_blob."""
        split(run)
        try:
            return Blobs(self.bucket, run).get(blob)
        except CheckpointCorrupt:
            self._check(split(run)[0])
            raise

    def heads(self, match: Callable[[Mapping[str, Any]], bool] | None = None) -> Iterator[Head]:
        """See store.base.Listable.heads."""
        return self._heads.all(match)

    def delete(self, run: str) -> None:
        """See store.base.Store.delete. The run is gone once its head is; what a crash leaves is swept."""
        if not exists(self.bucket, run):
            self._check(run)
        bucket, part = self.bucket, "/" in run
        held = [acquire(bucket, keys.lease(run), run, self._clock.now())]
        try:
            under = list(bucket.under(keys.home(run)))
            for entry in under:
                if not part and entry.key.endswith("/lease") and "/parts/" in entry.key and entry.size > FREE_BYTES:
                    held.append(acquire(bucket, entry.key, run, self._clock.now()))
            if not part:
                first = bucket.get(keys.journal(run, 1))
                bucket.put(keys.deleted(run), b"")
                bucket.delete([keys.head(run)])
                claiming.unmark(bucket, run, first.data if first is not None else b"")
            bucket.delete(entry.key for entry in under if entry.key != keys.lease(run))
            bucket.delete([keys.lease(run), keys.deleted(run)])
        finally:
            for lease in held:
                lease.release()

    def sweep(self, before: datetime) -> list[str]:
        """See store.base.Store.sweep. A run that has lost its head gets one again."""
        done = []
        for run_id in self.leftovers():
            under = list(self.bucket.under(keys.home(run_id)))
            if max(entry.modified for entry in under) < before:
                self.bucket.delete([keys.head(run_id), *(entry.key for entry in under)])
                done.append(run_id)
        for run_id in self.unlisted():
            self.bucket.put_new(keys.head(run_id), b"{}")
        return done

    def account(self) -> ObjectAccount:
        """The account of the same bucket."""
        return ObjectAccount(self.bucket, self._clock, self.prove)

    def prove(self) -> None:
        """Make sure, once, that the server honours conditional puts; nothing is written before.

        Raises:
            StoreError: It does not.
        """
        if not self._proven:
            prove(self.bucket)
            self._proven = True

    def _names(self) -> list[str]:
        """What lies below `runs`; what others put there is never touched."""
        return list(filter(is_id, self.bucket.names(keys.RUNS, keys.first(keys.RUNS))))

    def _lives(self, run_id: str) -> bool:
        """Whether a run has records and is not being removed."""
        # Only blobs stand before these two.
        after = f"{keys.home(run_id)}/c"
        for entry in self.bucket.under(keys.home(run_id), after):
            if keys.is_append(entry.key):
                return True
            if entry.key in (keys.deleted(run_id), keys.lease(run_id)):
                return False
        return False

    def _clear(self, run: str) -> None:
        """Take away what a process left that died while it made a run of this name, or removed it.

        Raises:
            RunLocked: It is alive.
        """
        lease = acquire(self.bucket, keys.lease(run), run, self._clock.now())
        try:
            if not self._lives(run):
                under = [entry.key for entry in self.bucket.under(keys.home(run)) if entry.key != keys.lease(run)]
                self.bucket.delete([keys.head(run), *under])
                self.bucket.delete([keys.lease(run)])
        finally:
            lease.release()

    def _check(self, run: str) -> None:
        if not (exists(self.bucket, run) if "/" in run else self._lives(run)):
            raise RunNotFound(f"There is no run {run}.", hint="`list` shows the runs there are.", run=run)

    def _free_names(self, at: datetime) -> Iterator[str]:
        """Ids that nobody has, as far as is known: behind the newest of the same second."""
        base = next(minted(at))
        if not self._newest.startswith(base):
            yield base
            newest = next(self.bucket.under(keys.HEADS, f"{keys.HEADS}/{keys.stem(base)}"), None)
            self._newest = keys.head_id(newest.key) if newest is not None else ""
        taken = re.fullmatch(base + r"(?:_(\d{1,6}))?", self._newest)
        yield from islice(minted(at), int(taken[1] or 1) if taken else 1, None)

    def _make(
        self, first: bytes, blobs: Iterable[bytes], names: Iterator[str], at: datetime, *, pending: bool
    ) -> tuple[str, ObjectJournal]:
        """Make a run under the first name that is free; it is there once its first append is."""
        run, lease = self._claim_name(names, at)
        bucket = self.bucket
        try:
            store = Blobs(bucket, run)
            waiting = iter(blobs)
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                # A few at a time: all values of a long run need not fit into memory.
                while some := list(islice(waiting, _AT_ONCE)):
                    list(pool.map(store.put, some))
            head_etag = bucket.put_new(keys.head(run), b"{}") or ""
            claiming.mark(bucket, run, first, proven=not pending)
            if bucket.put_new(keys.journal(run, 1), first) is None:
                raise WriteFailed(f"Run {run} appeared while it was made.", fatal=False, run=run)
        except BaseException:
            lease.release()
            with contextlib.suppress(PipelineError):
                claiming.unmark(bucket, run, first)
                bucket.delete([keys.head(run), *(entry.key for entry in bucket.under(keys.home(run)))])
            raise
        end = End(line_seq(first.rstrip(b"\n").rpartition(b"\n")[2]), len(first), 1, [first])
        return run, self._journal(run, lease, end, head_etag, ())

    def _claim_name(self, names: Iterator[str], at: datetime) -> tuple[str, Lease]:
        for run in names:
            lease = begin(self.bucket, keys.lease(run), at)
            if lease is not None:
                self._newest = run
                return run, lease
        raise StoreError("A run of that name cannot be made: the name is taken.")

    def _again(self, run: str) -> ObjectJournal | None:
        """A journal that this store left itself and nobody has owned since: all of it is known."""
        lease, end, head_etag = self._left.pop(run, (None, None, ""))
        if lease is None or end is None:
            return None
        held = again(self.bucket, keys.lease(run), lease, self._clock.now())
        if held is None:
            return None
        return ObjectJournal(self.bucket, run, held, end, head_etag=head_etag, closed=self._note)

    def _journal(
        self, run: str, lease: Lease, end: End, head_etag: str, repairs: Sequence[Sequence[Any]]
    ) -> ObjectJournal:
        def deliver(journal: ObjectJournal) -> None:
            # Only who was fenced out leaves something, and there was nobody before the first.
            if lease.epoch == 1:
                return
            if late.waiting(self.bucket, run):
                self.open(run).close()
            else:
                self._note(journal)

        return ObjectJournal(self.bucket, run, lease, end, head_etag=head_etag, repairs=repairs, closed=deliver)

    def _note(self, journal: ObjectJournal) -> None:
        """Remember how a journal was left."""
        if (left := journal.left()) is not None:
            self._left[journal.run_id] = left
            while len(self._left) > _MOST_LEFT:
                self._left.pop(next(iter(self._left)), None)


def open_objects(url: str, clock: Clock) -> ObjectStore:
    """The store at `s3://BUCKET/PREFIX`; the server is asked when it is first used.

    Raises:
        ConfigError: The URL or the environment is wrong, or the extra is not installed.
    """
    return ObjectStore(Bucket(parse_address(url)), clock)
