"""A journal line around a fact's body: {"seq":…,"at":…,"owner":…, <the body>, "crc":"8 hex"}. Knows no kinds.

The CRC-32 is the last key and covers every byte before `,"crc"`.
"""

from __future__ import annotations

import zlib

#: Bytes of a whole line from its CRC on, without the newline.
TAIL = len(b',"crc":"00000000"}')


class LineDamaged(ValueError):
    """The bytes are no valid journal line."""


def encode_line(seq: int, at: str, owner: int, body: bytes) -> bytes:
    """Return one journal line with its newline, from a body of `codec.encode_fact`."""
    head = b'{"seq":%d,"at":"%s","owner":%d,' % (seq, at.encode("ascii"), owner) + body[1:-1]
    return head + b',"crc":"%08x"}\n' % zlib.crc32(head)


def is_whole(line: bytes) -> bool:
    """Return whether a line without its newline ends with the CRC of what stands before that."""
    return line[-TAIL:] == b',"crc":"%08x"}' % zlib.crc32(line[:-TAIL])


def check_line(line: bytes) -> bytes:
    """Return the line without its newline, if it is whole.

    Raises:
        LineDamaged: It is torn or a bit flipped.
    """
    line = line[:-1] if line.endswith(b"\n") else line
    if len(line) <= TAIL or not is_whole(line):
        raise LineDamaged("no CRC at the end, or of something else")
    return line


def line_seq(line: bytes) -> int:
    """Return the seq of a whole line, without decoding the rest."""
    return int(line[7 : line.index(b",", 7)])


def line_body(line: bytes) -> bytes:
    """Return the body of a whole line, byte for byte as given to `encode_line`."""
    line = line[:-1] if line.endswith(b"\n") else line
    start = line.index(b',"owner":')
    start = line.index(b",", start + 1) + 1
    return b"{" + line[start:-TAIL] + b"}"
