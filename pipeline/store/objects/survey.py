"""What opening a journal of objects finds damaged, and how it is set right by its owner. Nothing is thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.errors import StoreError
from pipeline.records.codec import decode_line, encode_fact
from pipeline.records.kinds import Gap
from pipeline.records.lines import LineDamaged, check_line, encode_line, line_seq
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket
from pipeline.store.objects.journal import End
from pipeline.store.objects.lines import Piece, entries, pieces, whole
from pipeline.store.repair import RecordedRepair, Repair

_TORN = "the last write was not finished, or was damaged"
_MIDDLE = "records in the middle were damaged"


@dataclass
class Survey:
    """What the objects of a journal hold."""

    end: End = field(default_factory=End)
    #: The line with seq 1; None: the run is corrupt.
    first: bytes | None = None
    #: Damaged stretches between whole lines, in order.
    middle: list[Hole] = field(default_factory=list)
    #: Objects with damaged bytes behind the last whole line.
    torn: list[Piece] = field(default_factory=list)


@dataclass
class Hole:
    """What is missing in front of a whole line."""

    #: Missing seqs, inclusive; last < first where no record is.
    first: int
    last: int
    #: The object that the whole line behind it stands in, and those with damaged bytes.
    piece: Piece
    bad: list[Piece]
    #: Whole lines beside it, which say when and of whom.
    beside: bytes

    @property
    def bytes(self) -> int:
        return sum(len(raw) for piece in self.bad for seq, raw in whole(piece.data) if not seq)


def survey(bucket: Bucket, run: str) -> Survey:
    """Read a whole journal; verifies every line."""
    found = Survey()
    end = found.end
    line, bad = b"", list[Piece]()
    for piece in pieces(bucket, run, entries(bucket, run)):
        if piece.fence:
            end.fence = piece.entry.etag
            continue
        end.fence = ""
        if not piece.segment:
            end.last_append = piece.first
            end.tail.append(piece.data)
        else:
            # Its last append ends with it; where that begins is not needed to find it.
            end.last_append = 0
        if not piece.data:
            bad.append(piece)
        for seq, raw in whole(piece.data):
            if seq <= end.last_seq:
                if piece not in bad:
                    bad.append(piece)
                continue
            if bad or (seq != end.last_seq + 1 and not _explained(line, seq)):
                found.middle.append(Hole(end.last_seq + 1, seq - 1, piece, bad, line or raw))
                bad = []
            if not line:
                found.first = raw if seq == 1 else None
            end.last_seq, line = seq, raw
            end.size += len(raw) + 1
    found.torn = bad
    return found


def mend(bucket: Bucket, run: str, found: Survey) -> list[Repair]:
    """Make the journal whole again; says what was lost. The caller owns the lease and has fenced others out.

    Raises:
        WriteFailed: It could not be; what was not mended is as it was.
    """
    said: list[Repair] = []
    for hole in found.middle:
        kept = [_keep(bucket, run, piece, "damaged") for piece in hole.bad]
        row = RecordedRepair(hole.first, hole.last, hole.bytes, ", ".join(kept), _MIDDLE)
        said.append(row)
        _fill(bucket, run, hole, row)
    for piece in found.torn:
        name = _keep(bucket, run, piece, "torn")
        lost = found.end.last_seq + 1
        count = sum(len(raw) for seq, raw in whole(piece.data) if not seq)
        said.append(Repair(lost, lost, count, name, _TORN))
        _replace(bucket, piece, _sound_lines(piece))
    return said


def _fill(bucket: Bucket, run: str, hole: Hole, row: Repair) -> None:
    """Say in the journal what is missing, where it is missing."""
    gap = b""
    if hole.first <= hole.last:
        record = decode_line(hole.beside)
        gap = encode_line(hole.first, record.at, record.owner, encode_fact(Gap(*row)))
    for piece in hole.bad:
        inside = gap if piece.first <= hole.first and gap else b""
        if inside:
            gap = b""
        _replace(bucket, piece, _with(_sound_lines(piece), inside))
    if gap and bucket.put_new(keys.journal(run, hole.first), gap) is None:
        _replace(bucket, hole.piece, _with(_sound_lines(hole.piece), gap))


def _sound_lines(piece: Piece) -> bytes:
    return b"".join(raw + b"\n" for seq, raw in whole(piece.data) if seq)


def _with(data: bytes, gap: bytes) -> bytes:
    """Lines with one more, where its seq belongs."""
    rows: list[bytes] = [*data.splitlines(keepends=True), *([gap] if gap else [])]
    rows.sort(key=line_seq)
    return b"".join(rows)


def _replace(bucket: Bucket, piece: Piece, data: bytes) -> None:
    if not data:
        bucket.delete([piece.entry.key])
    elif bucket.put_over(piece.entry.key, data, piece.entry.etag) is None:
        raise StoreError("The journal changed while it was mended.", hint="Try again.")


def _keep(bucket: Bucket, run: str, piece: Piece, what: str) -> str:
    """Copy an object beside the journal before it is changed; the name of the copy."""
    for number in _numbers():
        name = f"journal.{what}-{number}"
        if bucket.put_new(f"{keys.home(run)}/x/{name}", piece.data) is not None:
            return name
    return ""


def _numbers() -> Iterator[int]:
    number = 1
    while True:
        yield number
        number += 1


def _explained(line: bytes, seq: int) -> bool:
    """Whether the line before is a gap that covers the missing numbers."""
    if b'"kind":"gap"' not in line:
        return False
    try:
        fact = decode_line(check_line(line)).fact
    except LineDamaged:
        return False
    return isinstance(fact, Gap) and fact.last == seq - 1
