"""How what an emergency file holds comes back into its run: once, and without charging for what was never sent."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pipeline.clock import parse_iso
from pipeline.errors import RunLocked, RunNotFound
from pipeline.records.codec import Record, decode_line, encode_fact
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled, Gap
from pipeline.records.lines import LineDamaged, encode_line, line_body, line_seq
from pipeline.store import emergency
from pipeline.store.base import Journal, Movable, Store, Taken

#: Who settled a call whose start was refused.
_NOT_SENT = "its record was refused, so it was never sent"


Opened = TypeVar("Opened", bound=Journal)


def took_in(store: Store, journal: Opened, place: str) -> Opened:
    """Take what files of this machine hold into the journal of a run that was just opened; they are removed.

    Raises:
        RunLocked: Who writes one of them is alive and not done.
        StoreError, WriteFailed: As Journal.append; the files are still there, and the journal is closed.
    """
    try:
        journal.taken = _take_in(store, journal, place)
    except BaseException:
        journal.close()
        raise
    return journal


def _take_in(store: Store, journal: Journal, place: str) -> list[Taken]:
    done = []
    for file, run in emergency.find(journal.run_id, place):
        if run != journal.run_id:
            # A part that is being worked on takes its own in when it is next opened.
            with contextlib.suppress(RunLocked):
                store.open(run).close()
            continue
        with emergency.claimed(file, run) as kept:
            added = append_missing(store, journal, kept)
            emergency.dispose(file, kept)
            done.append(Taken(emergency.aside(file) if kept.damaged else file, added, kept.damaged))
    return done


def kept_whole(run: str, place: str) -> bytes:
    """Return the journal of a run as a file of this machine holds it from its first record on; b"" where none does.

    Raises:
        RunLocked: Who writes the file is alive and not done.
    """
    for file, name in emergency.find(run, place):
        if name == run:
            with emergency.claimed(file, run) as kept:
                if lines := kept.whole:
                    return text_of(lines)
    return b""


def text_of(lines: Iterable[bytes]) -> bytes:
    """Return lines without their ends as a journal holds them."""
    return b"".join(line + b"\n" for line in lines)


def recover(store: Movable, run: str, file: Path) -> int:
    """Append to a run what an emergency file holds; records the run has already are left alone.

    A record whose number was given to another one since is appended at the end: it still names its
    owner, so its money and values count and its position does not. A call that was never sent costs nothing.
    A run that is gone is made again where the file holds all of its records. A file that lies where this
    program keeps them is removed.

    Returns how many records were appended; they are durable.

    Raises:
        StoreError: The file cannot be read, or belongs to another run.
        RunLocked, RunNotFound, CheckpointCorrupt, WriteFailed: As Store.open and Journal.append.
    """
    with emergency.claimed(file, run) as kept:
        pass
    journal, count = _opened(store, run, kept)
    try:
        # This file may have been among those that opening took in.
        count += sum(taken.records for taken in journal.taken)
        count += append_missing(store, journal, kept)
    finally:
        journal.close()
    if emergency.is_kept(file) and file.exists():
        emergency.dispose(file, kept)
    return count


def _opened(store: Movable, run: str, kept: emergency.KeptRecords) -> tuple[Journal, int]:
    """Open the journal of a run, made again from the file where it is gone; and how many records that gave it."""
    try:
        return store.open(run), 0
    except RunNotFound:
        lines = kept.whole
        if not lines or "/" in run:
            raise
        return store.create_named(run, text_of(lines), at=parse_iso(decode_line(lines[-1]).at)), len(lines)


def append_missing(store: Store, journal: Journal, kept: emergency.KeptRecords) -> int:
    """Append those lines that a journal does not have; how many records were added."""
    lines = kept.lines
    if not lines:
        return 0
    before = journal.last_seq
    try:
        stored = list(store.read(journal.run_id, after=line_seq(lines[0]) - 1))
    except RunNotFound:
        # A part that has no record yet.
        stored = []
    unsent = _unsent(lines, stored, kept.sent)
    present = Counter(map(line_body, stored))
    added = 0
    for line in lines:
        present[line_body(line)] -= 1
        if present[line_body(line)] >= 0:
            continue
        if line_seq(line) in unsent and line_seq(line) <= before:
            # Its number is another record's: nothing else tells of this call, and it cost nothing.
            del unsent[line_seq(line)]
            continue
        _append(journal, line)
        added += 1
    for record in unsent.values():
        fact = ChargeSettled(record.seq, "0", _NOT_SENT)
        seq = journal.last_seq + 1
        journal.append(seq, [encode_line(seq, record.at, record.owner, encode_fact(fact))])
    return added


def _unsent(lines: Iterable[bytes], stored: Iterable[bytes], sent: int) -> dict[int, Record]:
    """Return calls whose start was refused, by seq: a call is sent only once its start is durable."""
    begun = {
        record.seq: record for record in map(decode_line, lines)
        if isinstance(record.fact, CallStarted) and record.seq > sent
    }  # fmt: skip
    if begun:
        for line in (*lines, *stored):
            with contextlib.suppress(LineDamaged):
                fact = decode_line(line).fact
                if isinstance(fact, CallEnded | ChargeSettled):
                    begun.pop(fact.call, None)
    return begun


def _append(journal: Journal, line: bytes) -> None:
    seq, record = line_seq(line), decode_line(line)
    # Numbers are kept where they are free, because records name each other by them.
    for missing in range(journal.last_seq + 1, seq):
        hole = encode_fact(Gap(missing, missing, reason="neither in the journal nor in the emergency file"))
        journal.append(missing, [encode_line(missing, record.at, record.owner, hole)], sync=False)
    if seq <= journal.last_seq:
        seq = journal.last_seq + 1
        line = encode_line(seq, record.at, record.owner, line_body(line))
    journal.append(seq, [line.rstrip(b"\n") + b"\n"])
