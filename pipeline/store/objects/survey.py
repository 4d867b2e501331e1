"""What opening a journal of objects finds damaged, and how it is set right by its owner. Nothing is thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.errors import StoreError
from pipeline.records.lines import line_seq
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket
from pipeline.store.objects.journal import End
from pipeline.store.objects.lines import Piece, entries, pieces, whole
from pipeline.store.repair import RecordedRepair, Repair, explained, gap_line

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
            if bad or (seq != end.last_seq + 1 and not explained(line, seq)):
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
    changes = _Changes(bucket, run)
    for hole in found.middle:
        kept = [changes.drop_damage(piece, "damaged") for piece in hole.bad]
        row = RecordedRepair(hole.first, hole.last, hole.bytes, ", ".join(kept), _MIDDLE)
        said.append(row)
        if hole.first <= hole.last:
            changes.fill(hole, gap_line(hole.beside, row))
    for piece in found.torn:
        name = changes.drop_damage(piece, "torn")
        lost = found.end.last_seq + 1
        count = sum(len(raw) for seq, raw in whole(piece.data) if not seq)
        said.append(Repair(lost, lost, count, name, _TORN))
    changes.make()
    return said


class _Changes:
    """What is to be done to objects, so that each is replaced once however many holes it has."""

    def __init__(self, bucket: Bucket, run: str) -> None:
        self._bucket = bucket
        self._run = run
        #: By key: the object, and what is put into it.
        self._pieces: dict[str, tuple[Piece, list[bytes]]] = {}
        #: By key: the name of its copy.
        self._kept: dict[str, str] = {}

    def drop_damage(self, piece: Piece, what: str) -> str:
        """Take the damaged bytes out of an object; the name of the copy that keeps them."""
        key = piece.entry.key
        if key not in self._kept:
            self._kept[key] = _keep(self._bucket, self._run, piece, what)
            self._pieces.setdefault(key, (piece, []))
        return self._kept[key]

    def fill(self, hole: Hole, gap: bytes) -> None:
        """Say in the journal what is missing, where it is missing."""
        home = next((piece for piece in hole.bad if piece.first <= hole.first), None)
        if home is None:
            inside = hole.piece.first < hole.first
            if not inside and self._bucket.put_new(keys.journal(self._run, hole.first), gap) is not None:
                return
            home = hole.piece
        self._pieces.setdefault(home.entry.key, (home, []))[1].append(gap)

    def make(self) -> None:
        """Replace the objects."""
        for piece, gaps in self._pieces.values():
            rows: list[bytes] = [*_sound_lines(piece), *gaps]
            rows.sort(key=line_seq)
            _replace(self._bucket, piece, b"".join(rows))


def _sound_lines(piece: Piece) -> list[bytes]:
    return [raw + b"\n" for seq, raw in whole(piece.data) if seq]


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
