"""Which lines of a journal file are whole, and which bytes are damaged. Reads; never repairs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from zlib import crc32

from pipeline.records.lines import TAIL, LineDamaged, check_line, line_seq

_BLOCK = 1 << 20
#: The first window of a bisection step; grows where lines are longer.
_WINDOW = 1 << 13
_NO_END = 1 << 62
_END = re.compile(rb',"crc":"[0-9a-f]{8}"\}')
_START = b'{"seq":'


#: A stretch of the file: seq (0: damaged bytes; else a whole line), offset, and the bytes without a newline.
#: A plain tuple, because a journal may hold 100,000 of them.
Piece = tuple[int, int, bytes]


def pieces(fd: int, offset: int = 0, after: int = 0, last: int = 0) -> Iterator[Piece]:
    """The file from `offset` on: whole lines with growing seq > after, and every damaged stretch between them.

    A whole line whose seq does not grow stands where it cannot belong: it counts as damaged.

    Args:
        last: Seq of the whole line in front of `offset`.
    """
    last = max(after, last)
    for start, raw in _raw_lines(fd, offset):
        try:
            seq = line_seq(check_line(raw))
        except (LineDamaged, ValueError):
            found = _salvage(start, raw)
        else:
            if seq > last:
                last = seq
                yield seq, start, raw
            elif seq > after:
                yield 0, start, raw
            continue
        for piece in found:
            if piece[0] == 0 or piece[0] > last:
                last = piece[0] or last
                yield piece


def lines(fd: int, offset: int = 0, after: int = 0, checked: int = 0) -> Iterator[bytes]:
    """The whole lines with seq > after, in order.

    Args:
        checked: So far, from `offset` on, every line is known to be whole and wanted.
    """
    if offset < checked:
        last = b""
        for _, parts in _blocks(fd, offset, checked):
            yield from filter(None, parts)
            last = parts[-1] or last
        offset, after = checked, line_seq(last) if last else 0
    for seq, _, data in pieces(fd, offset, after):
        if seq:
            yield data


def sound(fd: int) -> tuple[bytes, Piece]:
    """How far a file is all that it should be, whole lines with seq 1, 2, 3, …: the first and the last of them.

    Seq 0: none is.
    """
    first, last, place, line = b"", 0, 0, b""
    # Every resume looks at every line so: no call for each, no generator around them.
    for at, parts in _blocks(fd, 0, _NO_END):
        for raw in parts:
            if raw:
                whole = raw[-TAIL:] == b',"crc":"%08x"}' % crc32(raw[:-TAIL])
                if not (whole and raw.startswith(b'{"seq":%d,' % (last + 1))) or at > last == 0:
                    return first, (last, place, line)
                last, place, line = last + 1, at, raw
                first = first or raw
            at += len(raw) + 1
    return first, (last, place, line)


def _raw_lines(fd: int, offset: int) -> Iterator[tuple[int, bytes]]:
    for at, parts in _blocks(fd, offset, _NO_END):
        for part in parts:
            if part:
                yield at, part
            at += len(part) + 1


def _blocks(fd: int, offset: int, end: int) -> Iterator[tuple[int, list[bytes]]]:
    """The file up to `end`, a few hundred lines at a time, and where they begin; empty lines among them."""
    rest: list[bytes] = []
    at = offset
    # Small at first: whoever seeks wants one line.
    size = _WINDOW
    while block := os.pread(fd, min(size, end - offset), offset):
        offset += len(block)
        size = min(size * 4, _BLOCK)
        parts = block.split(b"\n")
        if len(parts) == 1:
            rest.append(block)
            continue
        parts[0] = b"".join([*rest, parts[0]])
        rest = [parts.pop()]
        yield at, parts
        at = offset - len(rest[0])
    if last := b"".join(rest):
        yield at, [last]


def _salvage(start: int, raw: bytes) -> Iterator[Piece]:
    """Whole lines inside a damaged stretch: what stands there if a newline was lost, or junk before a line."""
    at = 0
    while (begin := raw.find(_START, at)) >= 0:
        line = _line_from(raw, begin)
        if line is None:
            nxt = raw.find(_START, begin + 1)
            if nxt < 0:
                break
            yield 0, start + at, raw[at:nxt]
            at = nxt
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


def place(fd: int, size: int, after: int) -> int:
    """An offset at or before the first line with seq > after, near it: a bisection over the file."""
    low, high = 0, size
    while high - low > _WINDOW:
        middle = (low + high) // 2
        found = _first_line(fd, middle, high)
        if found is None or found[0] > after:
            high = middle
        else:
            low = found[1]
            if found[0] == after:
                break
    return low


def _first_line(fd: int, offset: int, limit: int) -> tuple[int, int] | None:
    """Seq and offset of the first whole line that begins after `offset` and before `limit`."""
    window = _WINDOW
    while True:
        data = os.pread(fd, window, offset)
        begin = data.find(b"\n") + 1
        while begin and begin < len(data) and offset + begin < limit:
            end = data.find(b"\n", begin)
            if end < 0:
                break
            try:
                line = check_line(data[begin:end])
                return line_seq(line), offset + begin
            except (LineDamaged, ValueError):
                begin = end + 1
        if len(data) < window or offset + (begin or len(data)) >= limit:
            return None
        window *= 4
