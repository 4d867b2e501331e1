"""Which lines of a journal are whole, and which bytes of it are damaged. Reads; never repairs.

A journal comes as blocks of raw lines (`Backend.read`); places in it are counted in bytes, with a newline a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from pipeline.records.codec import decode_line
from pipeline.records.kinds import Gap
from pipeline.records.lines import TAIL, LineDamaged, check_line, line_seq

_END = re.compile(rb',"crc":"[0-9a-f]{8}"\}')
_START = b'{"seq":'

Blocks = Iterable[list[bytes]]
#: A stretch of a journal: seq (0: damaged bytes; else a whole line), offset, and the bytes without a newline.
#: A plain tuple, because a journal may hold 100,000 of them.
Piece = tuple[int, int, bytes]


class Damage(NamedTuple):
    """A damaged stretch."""

    offset: int
    bytes: int
    #: Seq of the whole line before it, and of the one after it (0: none follows).
    before: int
    after: int


@dataclass
class Survey:
    """What a journal holds."""

    #: The line with seq 1, which must open the journal; None: the run is corrupt.
    first: bytes | None = None
    last_seq: int = 0
    #: How many lines are whole.
    count: int = 0
    #: Bytes of it all.
    size: int = 0
    middle: list[Damage] = field(default_factory=list)
    #: What follows the last whole line.
    tail: Damage | None = None
    #: All of a journal that is not sound from its beginning to its end; else b"".
    text: bytes = b""


def survey(read: Callable[[], Blocks], *, ended: bool = True) -> Survey:
    """Verify every line of a journal.

    Args:
        read: Gives the blocks of the journal; called again where it is damaged.
        ended: Its last line has its newline.
    """
    found = _sound(read())
    if found is not None:
        found.size -= not ended and found.size > 0
        return found
    raw = [line for block in read() for line in block]
    text = b"\n".join(raw) + (b"\n" if ended and raw else b"")
    found = Survey(size=len(text), text=text)
    end = 0
    for damage, (seq, offset, data) in walk(pieces([raw])):
        if not found.count:
            found.first = data if seq == 1 and offset == 0 else None
        if damage is not None:
            found.middle.append(damage)
        found.last_seq, end = seq, offset + len(data) + 1
        found.count += 1
    if found.size > end:
        found.tail = Damage(end, found.size - end, found.last_seq, 0)
    return found


def _sound(blocks: Blocks) -> Survey | None:
    """Return the survey of a journal that is all that it should be, whole lines with seq 1, 2, 3, …; else None."""
    first, last, at, end = b"", 0, 0, 0
    # Every resume looks at every line so: no call for each, no generator around them.
    for block in blocks:
        for raw in block:
            if raw:
                whole = raw[-TAIL:] == b',"crc":"%08x"}' % crc32(raw[:-TAIL])
                if not (whole and raw.startswith(b'{"seq":%d,' % (last + 1))) or at > last == 0:
                    return None
                last += 1
                first = first or raw
                end = at + len(raw) + 1
            at += len(raw) + 1
    return Survey(first or None, last, last, at) if at == end else None


def pieces(blocks: Blocks, after: int = 0) -> Iterator[Piece]:
    """Return whole lines with growing seq > after, and every damaged stretch between them.

    A whole line whose seq does not grow is where it cannot belong: it counts as damaged.
    """
    last, at = after, 0
    for block in blocks:
        for raw in block:
            start, at = at, at + len(raw) + 1
            if raw.startswith(b'{"seq":%d,' % (last + 1)) and raw[-TAIL:] == b',"crc":"%08x"}' % crc32(raw[:-TAIL]):
                last += 1
                yield last, start, raw
                continue
            if not raw:
                continue
            try:
                seq = line_seq(check_line(raw))
            except (LineDamaged, ValueError):
                for piece in _salvaged(start, raw):
                    if piece[0] == 0 or piece[0] > last:
                        last = piece[0] or last
                        yield piece
                continue
            if seq > last:
                last = seq
                yield seq, start, raw
            elif seq > after:
                yield 0, start, raw


def whole_lines(blocks: Blocks, after: int = 0, *, known: int = 0) -> Iterator[bytes]:
    """Return the whole lines with seq > after, in order.

    Args:
        known: So many lines, from the first on, are known to be whole and wanted.
    """
    stream = iter(blocks)
    while known > 0 and (block := next(stream, None)) is not None:
        lines = list(filter(None, block))
        yield from lines[:known]
        after = line_seq(lines[:known][-1]) if lines else after
        if len(lines) > known:
            stream = chain([lines[known:]], stream)
        known -= len(lines)
    for seq, _, data in pieces(stream, after):
        if seq:
            yield data


def walk(stream: Iterable[Piece]) -> Iterator[tuple[Damage | None, Piece]]:
    """Return each whole line with the damage before it: bad bytes, a lost newline, or records that are not there."""
    last, end, line = 0, -1, b""
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
    """Return whether the line before is a gap that covers the missing numbers."""
    if b'"kind":"gap"' not in line:
        return False
    try:
        fact = decode_line(line).fact
    except LineDamaged:
        return False
    return isinstance(fact, Gap) and fact.last == seq - 1


def _salvaged(start: int, raw: bytes) -> Iterator[Piece]:
    """Return whole lines inside a damaged stretch: what is there if a newline was lost, or junk before a line."""
    at = 0
    while (begin := raw.find(_START, at)) >= 0:
        line = _line_from(raw, begin)
        if line is None:
            following = raw.find(_START, begin + 1)
            if following < 0:
                break
            yield 0, start + at, raw[at:following]
            at = following
            continue
        if begin > at:
            yield 0, start + at, raw[at:begin]
        yield line_seq(line), start + begin, line
        at = begin + len(line)
    if at < len(raw):
        yield 0, start + at, raw[at:]


def _line_from(raw: bytes, begin: int) -> bytes | None:
    for end in _END.finditer(raw, begin):
        line = raw[begin : end.end()]
        try:
            line_seq(check_line(line))
        except (LineDamaged, ValueError):
            continue
        return line
    return None
