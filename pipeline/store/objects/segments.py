"""A journal as objects: appends, segments that hold many appends once more, and fences that only take a place.

j/SEQ                   one append: whole lines, the first of them with this number; or a fence
s/FIRST-LAST            the appends with these lines in one object, so that a long run is read in few requests
s/000000000001-LAST-N   the journal up to LAST as a repair wrote it, the Nth time: it replaces all up to there
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pipeline.records.lines import LineDamaged, check_line, line_seq
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket, Entry

#: So many appends are written once more as a segment.
SEGMENT_APPENDS = 256
#: How a fence begins.
FENCE = b"#fence "
#: No fence is larger.
FENCE_BYTES = 200
#: Keys of one answer to a listing.
_PAGE = 1000


@dataclass
class Listing:
    """The objects to read of a journal."""

    #: In order; the first may be one that was written anew.
    segments: list[Entry] = field(default_factory=list)
    #: Those behind the segments.
    appends: list[Entry] = field(default_factory=list)

    @property
    def covered(self) -> int:
        """Return the number of the last line in a segment; 0: there is none."""
        return keys.span(self.segments[-1].key)[1] if self.segments else 0


def listing(bucket: Bucket, name: str, after: int = 0) -> Listing | None:
    """Return the objects that hold all lines with numbers above `after`; None: there is no such journal."""
    home = keys.home(name)
    if after:
        # Who reads on from where it was mostly finds the next append at once.
        near = list(islice(appends(bucket, name, after), SEGMENT_APPENDS + 1))
        if near and keys.seq(near[0].key) == after + 1 and len(near) <= SEGMENT_APPENDS:
            return Listing([], near)
    # Only values stand before c. Nearly every run fits into one answer.
    found = list(islice(bucket.under(home, f"{home}/c" if keys.is_run(name) else ""), _PAGE))
    if any(entry.key == keys.deleted(name) for entry in found) or not found:
        return None
    segments = [entry for entry in found if entry.key.startswith(f"{home}/s/")]
    tail = [entry for entry in found if entry.key.startswith(f"{home}/j/")]
    if len(found) == _PAGE:
        segments = list(bucket.under(f"{home}/s", keys.first(f"{home}/s")))
    made = Listing(_in_order(segments))
    if len(found) == _PAGE:
        tail = list(appends(bucket, name, made.covered))
    made.appends = [entry for entry in tail if keys.is_append(entry.key) and keys.seq(entry.key) > made.covered]
    if keys.is_run(name) and not made.segments and not _has_record(bucket, made.appends):
        return None
    return _behind(made, after)


def appends(bucket: Bucket, name: str, after: int = 0) -> Iterator[Entry]:
    """Yield the appends that begin behind a number, fences among them."""
    listed = bucket.under(f"{keys.home(name)}/j", keys.journal(name, after))
    return (entry for entry in listed if keys.is_append(entry.key))


def blocks(bucket: Bucket, name: str, found: Listing) -> Iterator[list[bytes]]:
    """Yield the raw lines of each object, in order; a damaged segment is replaced by its appends."""
    for entry, data in zip(found.segments, bucket.fetch_all(found.segments), strict=True):
        if keys.is_rewritten(entry.key) or is_sound(data, *keys.span(entry.key)):
            yield raw_lines(data)
        else:
            yield from _read(bucket, behind_segment(bucket, name, entry))
    yield from _read(bucket, found.appends)


def behind_segment(bucket: Bucket, name: str, segment: Entry) -> list[Entry]:
    """Return the appends that a segment holds."""
    first, last = keys.span(segment.key)
    found = []
    for entry in appends(bucket, name, first - 1):
        if keys.seq(entry.key) > last:
            break
        found.append(entry)
    return found


def raw_lines(data: bytes) -> list[bytes]:
    """Return the lines of an object without their newlines."""
    lines = data.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def numbers(data: bytes) -> Iterator[int]:
    """Yield the number of each line of an object; 0: the line is damaged."""
    for raw in filter(None, data.split(b"\n")):
        try:
            yield line_seq(check_line(raw))
        except (LineDamaged, ValueError):
            yield 0


def is_sound(data: bytes, first: int, last: int) -> bool:
    """Return whether an object holds exactly the lines first to last, all whole."""
    return list(numbers(data)) == list(range(first, last + 1))


def _in_order(segments: Sequence[Entry]) -> list[Entry]:
    """Return the segments that follow each other from the first line on."""
    ours = [entry for entry in segments if keys.is_segment(entry.key)]
    made = sorted((entry for entry in ours if keys.is_rewritten(entry.key)), key=lambda entry: entry.key[-6:])[-1:]
    covered = keys.span(made[0].key)[1] if made else 0
    for entry in ours:
        first, last = keys.span(entry.key)
        if first > covered + 1:
            # The one before was damaged and removed: from there on the appends are read.
            break
        if first == covered + 1 and not keys.is_rewritten(entry.key):
            made.append(entry)
            covered = last
    return made


def _behind(found: Listing, after: int) -> Listing:
    """Leave out what holds no line above `after`."""
    found.segments = [entry for entry in found.segments if keys.span(entry.key)[1] > after]
    begin = sum(keys.seq(entry.key) <= after + 1 for entry in found.appends)
    # An append may hold more lines than the one that it is named by.
    found.appends = found.appends[max(begin - 1, 0) :]
    return found


def _has_record(bucket: Bucket, found: Sequence[Entry]) -> bool:
    if len(found) == 1 and found[0].size <= FENCE_BYTES:
        return not bucket.fetch(found[0]).startswith(FENCE)
    return bool(found)


def _read(bucket: Bucket, found: Sequence[Entry]) -> Iterator[list[bytes]]:
    for data in bucket.fetch_all(found):
        if not data.startswith(FENCE):
            yield raw_lines(data)
