"""The lines of a journal that lies in many objects, and which of them are damaged or gone. Never writes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import NamedTuple

from pipeline.records.lines import LineDamaged, check_line, line_seq
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket, Entry

#: What an object begins with that only keeps a place: the next append of a new owner comes over it.
FENCE = b"#fence "
#: Where more appends follow than these their segments are read.
_NEAR = 256


class Piece(NamedTuple):
    """An object of a journal with what it holds."""

    entry: Entry
    #: It stands for many appends.
    segment: bool
    data: bytes

    @property
    def first(self) -> int:
        """The seq that it begins with."""
        return keys.span(self.entry.key)[0] if self.segment else keys.seq(self.entry.key)

    @property
    def fence(self) -> bool:
        return self.data.startswith(FENCE)


def exists(bucket: Bucket, run: str) -> bool:
    """Whether there is such a run or sub-journal: a run has a record, a sub-journal at least had an owner."""
    home = keys.home(run)
    return next(bucket.under(home if "/" in run else f"{home}/j"), None) is not None


def appends(bucket: Bucket, run: str, after: int = 0) -> Iterator[Entry]:
    """The appends that begin behind a seq; what is no append of ours is left out."""
    listed = bucket.under(f"{keys.home(run)}/j", keys.journal(run, after))
    return (entry for entry in listed if keys.is_append(entry.key))


def _segment(entry: Entry) -> bool:
    return keys.is_segment(entry.key)


def entries(bucket: Bucket, run: str, after: int = 0) -> tuple[list[Entry], list[Entry]]:
    """The segments and the later appends that hold all lines with seq > after, as they are listed now."""
    if after:
        # Who reads on from where it was mostly finds the next append at once.
        near = list(islice(appends(bucket, run, after), _NEAR + 1))
        if near and keys.seq(near[0].key) == after + 1 and len(near) <= _NEAR:
            return [], near
    home = keys.home(run)
    segments, covered = [], 0
    for entry in filter(_segment, bucket.under(f"{home}/s", keys.first(f"{home}/s"))):
        first, last = keys.span(entry.key)
        if first != covered + 1:
            # One that was damaged was removed: from there on the appends are read.
            break
        segments.append(entry)
        covered = last
    wanted = [entry for entry in segments if keys.span(entry.key)[1] > after]
    tail = list(appends(bucket, run, covered))
    # An append begins at or before what is wanted where the next one begins behind it.
    begin = 0
    for number, (_, following) in enumerate(pairwise(tail), 1):
        if keys.seq(following.key) <= after + 1:
            begin = number
    return wanted, tail[begin:]


def pieces(bucket: Bucket, run: str, listed: tuple[list[Entry], list[Entry]]) -> Iterator[Piece]:
    """What these objects hold, in order; a segment that is damaged is replaced by its appends."""
    segments, tail = listed
    for entry, data in zip(segments, bucket.fetch_all(segments), strict=True):
        if sound(data, *keys.span(entry.key)):
            yield Piece(entry, True, data)
        else:
            yield from _appends(bucket, parts_of(bucket, run, entry))
    yield from _appends(bucket, tail)


def parts_of(bucket: Bucket, run: str, segment: Entry) -> list[Entry]:
    """The appends that a segment stands for."""
    first, last = keys.span(segment.key)
    found = []
    for entry in appends(bucket, run, first - 1):
        if keys.seq(entry.key) > last:
            break
        found.append(entry)
    return found


def whole(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The whole lines of an object, and (0, bytes) for each damaged stretch between them."""
    for raw in data.split(b"\n"):
        if not raw:
            continue
        try:
            yield line_seq(check_line(raw)), raw
        except (LineDamaged, ValueError):
            yield 0, raw


def sound(data: bytes, first: int, last: int) -> bool:
    """Whether an object holds exactly the lines first to last, all whole."""
    return [seq for seq, _ in whole(data)] == list(range(first, last + 1))


def lines(bucket: Bucket, run: str, listed: tuple[list[Entry], list[Entry]], after: int = 0) -> Iterator[bytes]:
    """The whole lines with seq > after, in order."""
    last = after
    for piece in pieces(bucket, run, listed):
        if piece.fence:
            continue
        for seq, line in whole(piece.data):
            if seq > last:
                last = seq
                yield line


def _appends(bucket: Bucket, found: list[Entry]) -> Iterator[Piece]:
    for entry, data in zip(found, bucket.fetch_all(found), strict=True):
        yield Piece(entry, False, data)
