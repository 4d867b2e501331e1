"""What all runs of a store spend: reservations of the daily limit, and the sums of runs that were deleted."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pipeline.clock import Clock, iso
from pipeline.errors import StoreError, WriteFailed
from pipeline.files import open_regular
from pipeline.records.budgets import Limit, LimitStanding, SpendTally, Tallies, ordered, standing
from pipeline.records.charge import amount
from pipeline.records.lines import check_line, encode_line, line_body, line_seq
from pipeline.records.structure import REMOVED, fields, problem, text
from pipeline.store.disk import FOLDER_MODE, Disk, write_all, write_file
from pipeline.store.journal_file import file_blocks
from pipeline.store.ledger import SENSELESS, check_amount, unknown_slice, utc_day
from pipeline.store.names import is_id
from pipeline.store.survey import whole_lines

ACCOUNT = "account.jsonl"
#: The same once more: what removed runs cost is known nowhere else.
COPY = ".account.jsonl"
Fact = dict[str, Any]

_FACTS = {
    "reserved": fields(("slice", "day", "usd"), slice=text, day=text, usd=text, labels=text),
    "settled": fields(("slice", "usd"), slice=text, usd=text),
    "limit_removed": fields(("labels", "per"), labels=text, per=text),
    "kept": fields(
        ("run", "sums"), run=lambda run: "" if isinstance(run, str) and is_id(run) else " is not a run", sums=REMOVED
    ),
}


class Sums:
    """The account so far, as its facts say; no I/O."""

    def __init__(self) -> None:
        #: Slice → (UTC day, labels, reserved or settled amount, whether it is settled).
        self.slices: dict[str, tuple[str, str, Decimal, bool]] = {}
        #: Open slice → whom it is reserved for.
        self.owners: dict[str, str] = {}
        #: UTC day → labels → their sum.
        self.tallies: dict[str, dict[str, SpendTally]] = {}
        self.limits: dict[tuple[str, str], Limit] = {}
        self.kept: dict[str, Mapping[str, Any]] = {}

    def apply(self, fact: Mapping[str, Any]) -> None:
        """Take a fact in. An open slice counts in full, also when its owner is dead: it may have been spent.

        Raises:
            KeyError, TypeError, ValueError, …: It makes no sense (SENSELESS); nothing of it was taken in.
        """
        kind = fact.get("kind")
        if (check := _FACTS.get(str(kind))) and (found := problem(fact, check)):
            raise ValueError(found)
        if kind == "reserved":
            self._set(fact["slice"], fact["day"], fact.get("labels", ""), amount(fact["usd"]), settled=False)
            self.owners[fact["slice"]] = str(fact.get("owner", ""))
        elif kind == "settled" and fact["slice"] in self.slices:
            day, labels, *_ = self.slices[fact["slice"]]
            self._set(fact["slice"], day, labels, amount(fact["usd"]), settled=True)
            self.owners.pop(fact["slice"], None)
        elif kind == "limit_set":
            limit = Limit.from_json(fact)
            self.limits[limit.key] = limit
        elif kind == "limit_removed":
            self.limits.pop((fact["labels"], fact["per"]), None)
        elif kind == "kept":
            self.kept[fact["run"]] = fact["sums"]

    def total(self, day: str) -> Decimal:
        return sum((tally.total for tally in self.tallies.get(day, {}).values()), Decimal(0))

    def standings(self, day: str, labels: str | None) -> list[LimitStanding]:
        found = (limit for limit in self.limits.values() if labels is None or limit.fits(labels))
        return [standing(limit, day, self.tallies) for limit in ordered(found)]

    def _set(self, name: str, day: str, labels: str, usd: Decimal, *, settled: bool) -> None:
        sums = self.tallies.setdefault(day, {})
        if (before := self.slices.get(name)) is not None:
            sums[labels].add(-before[2], settled=before[3])
        self.slices[name] = (day, labels, usd, settled)
        sums.setdefault(labels, SpendTally()).add(usd, settled=settled)


class FileAccount:
    """account.jsonl beside the runs; each change is made under its flock and durable on return."""

    def __init__(self, root: Path | str, clock: Clock, *, disk: Disk | None = None) -> None:
        self._path = Path(os.path.abspath(root)) / ACCOUNT
        self._copy = self._path.with_name(COPY)
        self._clock = clock
        self._disk = disk or Disk()
        self._sums = Sums()
        self._seq = 0
        #: Bytes of the file and of its copy that were read.
        self._size = self._other = 0
        #: The two differ, or something is wrong with one; and then all facts, as lines.
        self._parted = False
        #: So many facts only the copy has.
        self._lacking = 0
        self._lines: list[bytes] = []
        #: Facts that are missing between others, or make no sense; and the seq of the first reservation among these.
        self._lost = 0
        self._senseless = 0

    def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal | None, labels: str = "") -> str | None:
        check_amount(usd)
        name, day = self._clock.new_id(), utc_day(at)
        fact = {"kind": "reserved", "slice": name, "owner": owner, "day": day, "usd": str(usd)}
        with self._locked() as fd:
            self._refuse_senseless()
            if limit is not None and self._sums.total(day) + usd > limit:
                return None
            if limit is not None and any(each.left < usd for each in self._sums.standings(day, labels)):
                return None
            self._append(fd, fact | ({"labels": labels} if labels else {}))
        return name

    def settle(self, slice_id: str, usd: Decimal) -> None:
        with self._locked() as fd:
            if slice_id not in self._sums.slices:
                raise unknown_slice(slice_id)
            self._append(fd, {"kind": "settled", "slice": slice_id, "usd": str(usd)})

    def open_slices(self, since: str = "") -> Mapping[str, str]:
        self._look()
        self._refuse_senseless()
        return {name: owner for name, owner in self._sums.owners.items() if self._sums.slices[name][0] >= since}

    def total(self, day: date) -> Decimal:
        self._look()
        self._refuse_senseless()
        return self._sums.total(day.isoformat())

    def set_limit(self, limit: Limit) -> None:
        with self._locked() as fd:
            self._append(fd, {"kind": "limit_set", **limit.to_json()})

    def remove_limit(self, labels: str, per: str) -> bool:
        with self._locked() as fd:
            if known := (labels, per) in self._sums.limits:
                self._append(fd, {"kind": "limit_removed", "labels": labels, "per": per})
        return known

    def limits(self) -> Sequence[Limit]:
        self._look()
        self._refuse_senseless()
        return ordered(self._sums.limits.values())

    def standings(self, at: datetime, labels: str | None = None) -> Sequence[LimitStanding]:
        self._look()
        self._refuse_senseless()
        return self._sums.standings(utc_day(at), labels)

    def days(self) -> Tallies:
        self._look()
        self._refuse_senseless()
        return dict(self._sums.tallies)

    def keep(self, run: str, sums: Mapping[str, Any]) -> None:
        with self._locked() as fd:
            if self._sums.kept.get(run) != sums:
                self._append(fd, {"kind": "kept", "run": run, "sums": dict(sums)})

    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        self._look()
        return dict(self._sums.kept)

    def flaws(self) -> Iterator[str]:
        """See store.base.Account.flaws: how many facts of the file are lost."""
        self._look()
        if text := self.lost():
            yield text
        elif self._lacking > 0:
            yield (
                f"The account {self._path} is missing {self._lacking} of its records. Its copy {self._copy.name} has "
                "them, so nothing is lost; the next run restores them."
            )

    def lost(self) -> str:
        self._look()
        if not (self._lost or ((self._size or self._other) and not self._seq)):
            return ""
        return (
            f"The account {self._path} has lost {self._lost or 'all'} of its records to damage: a day's total may be "
            "too low, or the cost of a deleted run is gone. Restore the file from a copy."
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Lock the file, take in what others appended, and put back what one of the two copies lacks.

        Raises:
            WriteFailed: It cannot be written.
        """
        fd = -1
        try:
            new = not self._path.exists()
            if new and self._size and not self._copy.exists():
                # It was there: the runs went with it, or it will come back.
                raise FileNotFoundError(errno.ENOENT, "it was removed while runs were running", str(self._path))
            self._path.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            while True:
                fd = self._disk.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
                fcntl.flock(fd, fcntl.LOCK_EX)
                # While it was waited for it may have been removed, and made again.
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(fd), os.stat(self._path)):
                        break
                os.close(fd)
            if new:
                self._disk.sync_folder(self._path.parent)
            self._take_in(fd)
            if self._parted:
                self._join(fd)
            yield fd
        except OSError as error:
            raise self._failed(error) from error
        finally:
            if fd >= 0:
                os.close(fd)

    def _look(self) -> None:
        """Take in what was appended; an unfinished last line is left for later."""
        fd = -1
        try:
            with contextlib.suppress(FileNotFoundError):
                fd = open_regular(self._path, os.O_RDONLY | os.O_NOFOLLOW)
                fcntl.flock(fd, fcntl.LOCK_SH)
            self._take_in(fd)
        except OSError as error:
            raise self._failed(error) from error
        finally:
            if fd >= 0:
                os.close(fd)

    def _take_in(self, fd: int) -> None:
        """Read on where both copies have grown alike; else, and at first, read both, each for what the other lacks."""
        size = os.fstat(fd).st_size if fd >= 0 else 0
        other = _size(self._copy)
        if (size, other) == (self._size, self._other):
            return
        grown = size == other and size >= self._size == self._other > 0
        if not (grown and self._read_on(fd)):
            self._read_both(fd)
        self._size, self._other = size, other

    def _read_on(self, fd: int) -> bool:
        """Take in the facts behind what was read; False where one of them is missing, or makes no sense."""
        for line in whole_lines(file_blocks(fd, self._size), self._seq):
            if line_seq(line) != self._seq + 1 or not _sensible(self._sums, line):
                return False
            self._seq += 1
        return True

    def _read_both(self, fd: int) -> None:
        """Read all facts anew, from either copy."""
        first = dict[int, bytes]((line_seq(line), line) for line in whole_lines(file_blocks(fd))) if fd >= 0 else {}
        second = dict[int, bytes]((line_seq(line), line) for line in self._copied())
        self._sums, self._seq, self._lost, self._senseless = Sums(), 0, 0, 0
        self._lines = []
        for seq in sorted(first.keys() | second.keys()):
            self._lost += seq - self._seq - 1
            self._seq = seq
            found = list(dict.fromkeys(each[seq] for each in (second, first) if seq in each))
            sensible = [line for line in found if _sensible(self._sums, line)]
            self._lines += sensible or found[-1:]
            if not sensible:
                self._lost += 1
                if b'"kind":"kept"' not in found[-1]:
                    self._senseless = self._senseless or seq
        self._lacking = len(self._lines) - len(first)
        alike = list(first.values()) == list(second.values()) == self._lines
        sizes = {sum(len(line) + 1 for line in self._lines), os.fstat(fd).st_size if fd >= 0 else 0, _size(self._copy)}
        self._parted = not alike or len(sizes) > 1

    def _copied(self) -> list[bytes]:
        try:
            fd = open_regular(self._copy, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return []
        try:
            return list(whole_lines(file_blocks(fd)))
        finally:
            os.close(fd)

    def _join(self, fd: int) -> None:
        """Make both copies hold all facts again; what cannot be read of the first is kept aside."""
        seqs = [line_seq(line) for line in self._lines]
        if len(set(seqs)) < len(seqs):
            # Two facts under one number: an older program went on in a file that had been emptied.
            bodies = [line_body(line) for line in self._lines]
            stamp = iso(self._clock.now())
            self._lines = [encode_line(seq, stamp, 0, body).rstrip(b"\n") for seq, body in enumerate(bodies, 1)]
            self._seq = len(self._lines)
        text = b"".join(line + b"\n" for line in self._lines)
        stored = os.pread(fd, os.fstat(fd).st_size, 0)
        if not text.startswith(stored):
            write_file(self._disk, self._path.with_name(f"account.damaged-{self._clock.new_id()[:8]}"), stored)
        # The copy first: whenever this is cut off, one of the two holds all.
        aside = self._path.with_name(".account.new")
        write_file(self._disk, aside, text, replace=True)
        self._disk.replace(aside, self._copy)
        self._disk.sync_folder(self._path.parent)
        if stored != text:
            self._disk.truncate(fd, 0)
            write_all(self._disk, fd, text)
            self._disk.sync(fd)
        self._size = self._other = len(text)
        self._parted, self._lacking, self._lines = False, 0, []

    def _refuse_senseless(self) -> None:
        """Let no day's limit count too little.

        Raises:
            StoreError: A reservation makes no sense.
        """
        if self._senseless:
            raise StoreError(
                f"The account {self._path} is damaged: record {self._senseless} is invalid.",
                hint="Restore the file from a copy.",
                code="account_damaged",
            )

    def _append(self, fd: int, fact: Fact) -> None:
        line = encode_line(self._seq + 1, iso(self._clock.now()), 0, json.dumps(fact, separators=(",", ":")).encode())
        try:
            write_all(self._disk, fd, line)
            self._disk.sync(fd)
        except OSError:
            with contextlib.suppress(OSError):
                self._disk.truncate(fd, self._size)
            raise
        self._size += len(line)
        self._seq += 1
        self._sums.apply(fact)
        # Where the copy takes nothing the next change writes it anew.
        with contextlib.suppress(OSError):
            copy = self._disk.open(self._copy, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                write_all(self._disk, copy, line)
                self._disk.sync(copy)
            finally:
                os.close(copy)
            self._other += len(line)

    def _failed(self, error: OSError) -> WriteFailed:
        text = f"The account {self._path} cannot be used: {error.strerror}."
        return WriteFailed(text, code="account_refused", fatal=False)


#: How a line begins.
_ENVELOPE = re.compile(rb'\{"seq":\d+,"at":"[^"]*","owner":\d+,"')


def _sensible(sums: Sums, line: bytes) -> bool:
    """Take a fact in; whether it made sense."""
    if _ENVELOPE.match(line) is None:
        return False
    try:
        sums.apply(json.loads(check_line(line)))
    except SENSELESS:
        return False
    return True


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
