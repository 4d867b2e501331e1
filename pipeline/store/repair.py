"""What opening a journal finds damaged and how it is set right, under the owner's lock. Nothing is thrown away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pipeline.records.codec import Record, decode_line, encode_fact
from pipeline.records.kinds import Gap
from pipeline.records.lines import LineDamaged, encode_line
from pipeline.store.disk import Disk, write_all, write_file
from pipeline.store.scan import Piece, pieces, sound

_TORN = "the last write was not finished, or was damaged"


class Repair(NamedTuple):
    """What was lost: the fields of a `gap` record."""

    #: Seq range that is missing (inclusive); last < first where no record is.
    first: int
    last: int
    #: Damaged bytes, and the file that keeps them.
    bytes: int
    kept: str
    reason: str

    @property
    def recorded(self) -> bool:
        """Whether the journal says so already; else its new owner appends it, before run_resumed."""
        return False

    @property
    def torn(self) -> bool:
        """Whether a write was never finished: it lost nothing that anybody had acted on."""
        return False


class TornRepair(Repair):
    """A write that was never finished."""

    @property
    def torn(self) -> bool:
        return True


class RecordedRepair(Repair):
    """A repair whose `gap` stands in the journal where the records are missing, or that lost no record."""

    @property
    def recorded(self) -> bool:
        return True


class Damage(NamedTuple):
    """A damaged stretch, between two whole lines."""

    offset: int
    bytes: int
    #: Seq of the whole line before it, and of the one after it (0: none follows).
    before: int
    after: int


@dataclass
class Survey:
    """What a journal file holds."""

    #: The line with seq 1, which must open the file; None: the run is corrupt.
    first: bytes | None = None
    last_seq: int = 0
    #: Where the last whole line ends, its newline not counted, and whether that newline is there.
    end: int = 0
    closed: bool = True
    size: int = 0
    middle: list[Damage] = field(default_factory=list)
    tail: Damage | None = None


def survey(fd: int) -> Survey:
    """Read a whole journal file; verifies every line."""
    found = Survey(size=os.fstat(fd).st_size)
    # Nearly every journal is sound to its end.
    first, last = sound(fd)
    found.last_seq, found.end, line = last
    found.first = first or None
    after = found.end + len(line) + 1 if line else 0
    for damage, (seq, offset, data) in _walk(pieces(fd, after, last=found.last_seq), last):
        if not line:
            found.first = data if seq == 1 and offset == 0 else None
        if damage is not None:
            found.middle.append(damage)
        found.last_seq, found.end, line = seq, offset, data
    if line:
        found.end += len(line)
        found.closed = os.pread(fd, 1, found.end) == b"\n"
    begin = found.end + (found.closed and found.size > 0)
    if found.size > begin:
        found.tail = Damage(begin, found.size - begin, found.last_seq, 0)
    return found


def _walk(stream: Iterator[Piece], before: Piece = (0, -1, b"")) -> Iterator[tuple[Damage | None, Piece]]:
    """Each whole line with the damage before it, if any: bad bytes, a lost newline, or records that are not there.

    Args:
        before: The whole line in front of the stream, if there is one.
    """
    last, end, line = before[0], before[1] + len(before[2]), before[2]
    bad: list[Piece] = []
    for piece in stream:
        seq, offset, data = piece
        if seq == 0:
            bad.append(piece)
            continue
        damage = None
        if bad or offset == end or (seq != last + 1 and not explained(line, seq)):
            damage = Damage(bad[0][1] if bad else offset, sum(len(one[2]) for one in bad), last, seq)
            bad = []
        last, end, line = seq, offset + len(data), data
        yield damage, piece


def explained(line: bytes, seq: int) -> bool:
    """Whether the line before is a gap that covers the missing numbers."""
    if b'"kind":"gap"' not in line:
        return False
    try:
        fact = decode_line(line).fact
    except LineDamaged:
        return False
    return isinstance(fact, Gap) and fact.last == seq - 1


def mend(disk: Disk, path: Path, found: Survey) -> list[RecordedRepair | Repair]:
    """Make the journal whole again; says what was lost. The file must be locked by the caller.

    Raises:
        OSError: It could not be; the file is as it was.
    """
    if found.middle:
        return _rewrite(disk, path, found)
    if found.tail or (not found.closed and found.last_seq):
        return _cut(disk, path, found)
    return []


def _cut(disk: Disk, path: Path, found: Survey) -> list[RecordedRepair | Repair]:
    """Move what follows the last whole line to a file of its own."""
    said: list[RecordedRepair | Repair] = []
    fd = disk.open(path, os.O_RDWR)
    try:
        if found.tail:
            torn = os.pread(fd, found.tail.bytes, found.tail.offset)
            kept = _free_name(path, "torn")
            write_file(disk, kept, torn)
            disk.sync_folder(path.parent)
            lost = found.last_seq + 1
            # A whole line that is damaged had been finished.
            kind = Repair if b"\n" in torn else TornRepair
            said.append(kind(lost, lost, len(torn), kept.name, _TORN))
        disk.truncate(fd, found.end)
        os.lseek(fd, 0, os.SEEK_END)
        write_all(disk, fd, b"\n")
        disk.sync(fd)
    finally:
        os.close(fd)
    return said


def _rewrite(disk: Disk, path: Path, found: Survey) -> list[RecordedRepair | Repair]:
    """Write the whole lines anew, each hole marked by a gap; the damaged file is kept under another name."""
    kept = _free_name(path, "damaged")
    aside = path.with_name(".journal.new")
    said: list[RecordedRepair | Repair] = []
    source = disk.open(path, os.O_RDONLY)
    aside.unlink(missing_ok=True)
    target = disk.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        last = b""
        for damage, (seq, _, data) in _walk(pieces(source)):
            if damage is not None:
                row = RecordedRepair(
                    damage.before + 1, seq - 1, damage.bytes, kept.name, "records in the middle were damaged"
                )
                said.append(row)
                if row.first <= row.last:
                    write_all(disk, target, gap_line(last or data, row))
            write_all(disk, target, data + b"\n")
            last = data
        disk.sync(target)
    finally:
        os.close(source)
        os.close(target)
    os.link(path, kept, follow_symlinks=False)
    disk.replace(aside, path)
    disk.sync_folder(path.parent)
    if found.tail:
        lost = found.last_seq + 1
        said.append(Repair(lost, lost, found.tail.bytes, kept.name, _TORN))
    return said


def gap_line(beside: bytes, row: Repair) -> bytes:
    """The record of a repair, under the first number that is missing; `beside`: a whole line near it."""
    record = decode_line(beside)
    return encode_line(row.first, record.at, record.owner, encode_fact(Gap(*row)))


def lost_since(last_seq: int, seen: int, teller: str) -> list[Repair]:
    """What a head knew and the journal lacks: it is written after its records are durable, so they were lost later."""
    if seen <= last_seq:
        return []
    return [Repair(last_seq + 1, seen, 0, "", f"the journal is shorter than {teller} says: records were lost")]


def _free_name(path: Path, what: str) -> Path:
    number = 1
    while os.path.lexists(name := path.with_name(f"journal.{what}-{number}")):
        number += 1
    return name


def missing_before(last: Record | None, record: Record) -> Gap | None:
    """The gap a reader must know of between two records that stand side by side; None if nothing is missing."""
    before = last.seq if last else 0
    if record.seq == before + 1:
        return None
    if last is not None and isinstance(last.fact, Gap) and last.fact.last == record.seq - 1:
        return None
    return Gap(before + 1, record.seq - 1, reason="records in the middle cannot be read")
