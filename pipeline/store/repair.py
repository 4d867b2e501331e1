"""What opening a journal finds damaged and how it is set right, under its owner. Nothing is thrown away."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pipeline.records.codec import Record, decode_line, encode_fact
from pipeline.records.kinds import Gap
from pipeline.records.lines import encode_line
from pipeline.store.survey import Survey, pieces, walk
from pipeline.store.survey import explained as explained

_TORN = "the last write was not finished, or was damaged"
_MIDDLE = "records in the middle were damaged"


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
        """Return whether the journal says so already; else its new owner appends it, before run_resumed."""
        return False

    @property
    def torn(self) -> bool:
        """Return whether a write was never finished: nothing had been done because of it."""
        return False


class TornRepair(Repair):
    """A write that was never finished."""

    @property
    def torn(self) -> bool:
        return True


class RecordedRepair(Repair):
    """A repair whose `gap` is in the journal where the records are missing, or that lost no record."""

    @property
    def recorded(self) -> bool:
        return True


def mend(found: Survey, keep: Callable[[str, bytes], str]) -> tuple[list[bytes], list[Repair]]:
    """Return the lines that a damaged journal is to have, and what was lost of it.

    Args:
        keep: Stores damaged bytes under a new name of this kind ("torn", "damaged") and returns the name.
    """
    raw = [found.text.split(b"\n")]
    if found.tail is None and not found.middle:
        return [data + b"\n" for seq, _, data in pieces(raw) if seq], []
    torn = b"" if found.tail is None else found.text[found.tail.offset :]
    kept = keep("damaged", found.text) if found.middle else keep("torn", torn)
    lines: list[bytes] = []
    said: list[Repair] = []
    for damage, (seq, _, data) in walk(pieces(raw)):
        if damage is not None:
            row = RecordedRepair(damage.before + 1, seq - 1, damage.bytes, kept, _MIDDLE)
            said.append(row)
            if row.first <= row.last:
                lines.append(gap_line(lines[-1] if lines else data, row))
        lines.append(data + b"\n")
    if found.tail is not None:
        lost = found.last_seq + 1
        # A whole line that is damaged had been finished.
        kind = Repair if found.middle or b"\n" in torn else TornRepair
        said.append(kind(lost, lost, len(torn), kept, _TORN))
    return lines, said


def gap_line(beside: bytes, row: Repair) -> bytes:
    """Return the record of a repair, under the first number that is missing; `beside`: a whole line near it."""
    record = decode_line(beside)
    return encode_line(row.first, record.at, record.owner, encode_fact(Gap(*row)))


def lost_since(last_seq: int, seen: int, teller: str) -> list[Repair]:
    """Return what a head knew and the journal lacks: it is written after its records are durable, so they were lost."""
    if seen <= last_seq:
        return []
    return [Repair(last_seq + 1, seen, 0, "", f"the journal is shorter than {teller} says: records were lost")]


def missing_before(last: Record | None, record: Record) -> Gap | None:
    """Return the gap a reader must know of between two neighbouring records; None if nothing is missing."""
    before = last.seq if last else 0
    if record.seq == before + 1:
        return None
    if last is not None and isinstance(last.fact, Gap) and last.fact.last == record.seq - 1:
        return None
    return Gap(before + 1, record.seq - 1, reason="records in the middle cannot be read")
