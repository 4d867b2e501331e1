"""What all runs of a store spend: reservations of the daily limit, and the sums of runs that were deleted."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pipeline.clock import Clock, iso
from pipeline.errors import StoreError, WriteFailed
from pipeline.files import open_regular
from pipeline.records.charge import amount
from pipeline.records.lines import check_line, encode_line, line_seq
from pipeline.records.structure import REMOVED, fields, problem, text
from pipeline.store.disk import FOLDER_MODE, Disk, write_all
from pipeline.store.names import is_id
from pipeline.store.scan import lines

ACCOUNT = "account.jsonl"
Fact = dict[str, Any]


def _run_id(value: Any) -> str:
    return "" if isinstance(value, str) and is_id(value) else " is no run"


_FACTS = {
    "reserved": fields(("slice", "day", "usd"), slice=text, day=text, usd=text),
    "settled": fields(("slice", "usd"), slice=text, usd=text),
    "kept": fields(
        ("run", "sums"), run=lambda run: "" if isinstance(run, str) and is_id(run) else " is no run", sums=REMOVED
    ),
}


class Sums:
    """The account so far, as its facts say; no I/O."""

    def __init__(self) -> None:
        #: Slice → (UTC day, reserved or settled amount).
        self.slices: dict[str, tuple[str, Decimal]] = {}
        self.days: dict[str, Decimal] = {}
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
            self._set(fact["slice"], fact["day"], amount(fact["usd"]))
        elif kind == "settled" and fact["slice"] in self.slices:
            self._set(fact["slice"], self.slices[fact["slice"]][0], amount(fact["usd"]))
        elif kind == "kept":
            self.kept[fact["run"]] = fact["sums"]

    def total(self, day: str) -> Decimal:
        return self.days.get(day, Decimal(0))

    def fits(self, day: str, usd: Decimal, limit: Decimal) -> bool:
        """Whether a day's total stays within its limit with `usd` more."""
        return self.total(day) + usd <= limit

    def _set(self, name: str, day: str, usd: Decimal) -> None:
        before = self.slices.get(name, (day, Decimal(0)))[1]
        self.slices[name] = (day, usd)
        self.days[day] = self.total(day) - before + usd


def utc_day(moment: datetime) -> str:
    """The day a limit is of."""
    return moment.astimezone(UTC).date().isoformat()


def reserved(name: str, owner: str, day: str, usd: Decimal) -> Fact:
    """The fact of a reservation.

    Raises:
        StoreError: The amount is negative or no number.
    """
    if not usd.is_finite() or usd < 0:
        raise StoreError(f"{usd} cannot be reserved.")
    return {"kind": "reserved", "slice": name, "owner": owner, "day": day, "usd": str(usd)}


def settled(sums: Sums, name: str, usd: Decimal) -> Fact:
    """The fact that closes a slice.

    Raises:
        StoreError: There is no such slice.
    """
    if name not in sums.slices:
        raise StoreError(f"There is no reservation {name}.")
    return {"kind": "settled", "slice": name, "usd": str(usd)}


#: What reading a fact or sums may raise where they make no sense.
SENSELESS = (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError)


def amount_of(text: Any, what: str, hint: str) -> Decimal:
    """An amount as it is kept, in USD.

    Args:
        what: What is damaged if it is none, and how it comes back.

    Raises:
        StoreError: It is no amount.
    """
    try:
        return amount(text)
    except ValueError:
        raise StoreError(f"{what} is damaged: {str(text)[:40]!r} is no amount of dollars.", hint=hint) from None


def sums_of(text: Any, what: str, hint: str) -> Mapping[str, Any]:
    """What is kept of a deleted run.

    Raises:
        StoreError: It is damaged; `what` and `hint` as for an amount.
    """
    try:
        sums = json.loads(text)
    except SENSELESS:
        sums = None
    if problem(sums, REMOVED):
        raise StoreError(f"{what} are damaged.", hint=hint)
    return dict(sums)


class FileAccount:
    """account.jsonl beside the runs; each change is made under its flock and durable on return."""

    def __init__(self, root: Path | str, clock: Clock, *, disk: Disk | None = None) -> None:
        self._path = Path(os.path.abspath(root)) / ACCOUNT
        self._clock = clock
        self._disk = disk or Disk()
        self._sums = Sums()
        self._seq = 0
        self._read = 0
        #: Facts that are missing between others, or make no sense; and the seq of the first reservation among these.
        self._lost = 0
        self._senseless = 0

    def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal) -> str | None:
        """See store.base.Account.reserve."""
        name, day = self._clock.new_id(), utc_day(at)
        fact = reserved(name, owner, day, usd)
        with self._locked() as fd:
            self._refuse_senseless()
            if not self._sums.fits(day, usd, limit):
                return None
            self._append(fd, fact)
        return name

    def settle(self, slice_id: str, usd: Decimal) -> None:
        """See store.base.Account.settle."""
        with self._locked() as fd:
            self._append(fd, settled(self._sums, slice_id, usd))

    def total(self, day: date) -> Decimal:
        """See store.base.Account.total."""
        self._look()
        self._refuse_senseless()
        return self._sums.total(day.isoformat())

    def keep(self, run: str, sums: Mapping[str, Any]) -> None:
        """See store.base.Account.keep."""
        with self._locked() as fd:
            if self._sums.kept.get(run) != sums:
                self._append(fd, {"kind": "kept", "run": run, "sums": dict(sums)})

    def kept(self) -> Mapping[str, Mapping[str, Any]]:
        """See store.base.Account.kept."""
        self._look()
        return dict(self._sums.kept)

    def flaws(self) -> Iterator[str]:
        """See store.base.Account.flaws: how many facts of the file are lost."""
        self._look()
        if self._lost or (self._read and not self._seq):
            yield (
                f"The account {self._path} has lost {self._lost or 'all'} of its facts to damage: a day counts too "
                "little, or what a deleted run cost is gone. Bring the file back from a copy."
            )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, flocked, with all that others appended taken in.

        Raises:
            WriteFailed: It cannot be written.
        """
        try:
            new = not self._path.exists()
            if new and self._read:
                # It was there: whoever took it away took the runs too, or will bring it back.
                raise FileNotFoundError(errno.ENOENT, "it was removed while runs were going on", str(self._path))
            self._path.parent.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            fd = self._disk.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise self._failed(error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if new:
                self._disk.sync_folder(self._path.parent)
            self._take_in(fd)
            yield fd
        except OSError as error:
            raise self._failed(error) from error
        finally:
            os.close(fd)

    def _look(self) -> None:
        """Take in what was appended; an unfinished last line is left for later."""
        try:
            fd = open_regular(self._path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed(error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            self._take_in(fd)
        finally:
            os.close(fd)

    def _take_in(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        if size < self._read:
            self._sums, self._seq, self._read, self._lost, self._senseless = Sums(), 0, 0, 0, 0
        if size == self._read:
            return
        for line in lines(fd, self._read, self._seq):
            seq = line_seq(line)
            self._lost += seq - self._seq - 1
            self._seq = seq
            try:
                self._sums.apply(json.loads(check_line(line)))
            except SENSELESS:
                self._lost += 1
                if b'"kind":"kept"' not in line:
                    self._senseless = self._senseless or seq
        self._read = size

    def _refuse_senseless(self) -> None:
        """Let no day's limit count too little.

        Raises:
            StoreError: A reservation makes no sense.
        """
        if self._senseless:
            raise StoreError(
                f"The account {self._path} is damaged: fact {self._senseless} makes no sense.",
                hint="Bring the file back from a copy.",
            )

    def _append(self, fd: int, fact: Fact) -> None:
        line = encode_line(self._seq + 1, iso(self._clock.now()), 0, json.dumps(fact, separators=(",", ":")).encode())
        if self._read and os.pread(fd, 1, self._read - 1) != b"\n":
            # A writer died in the middle of a line: close it, so that only that one is lost.
            line = b"\n" + line
        try:
            write_all(self._disk, fd, line)
            self._disk.sync(fd)
        except OSError:
            with contextlib.suppress(OSError):
                self._disk.truncate(fd, self._read)
            raise
        self._read += len(line)
        self._seq += 1
        self._sums.apply(fact)

    def _failed(self, error: OSError) -> WriteFailed:
        return WriteFailed(f"The account {self._path} cannot be used: {error.strerror}.", fatal=False)
