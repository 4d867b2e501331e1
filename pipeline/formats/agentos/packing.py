"""How a document goes into a record: what is long stands out of line, under its hash.

A long list or object is cut from its beginning into pieces: documents of one run grow at their ends, so that the
pieces of an earlier one are those of a later one, and are stored once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pipeline.errors import CheckpointCorrupt
from pipeline.records.values import decode_value, digest, encode_value

#: Values of more bytes than this stand out of line; a piece has at least so many.
INLINE_BYTES = 16 * 1024
#: Gives the bytes of a hash; CheckpointCorrupt where they are missing or damaged.
Get = Callable[[str], bytes]
_BLOB, _LIST, _OBJECT, _TAIL = "$blob", "$list", "$object", "tail"
_MARKS = frozenset({_BLOB, _LIST, _OBJECT})


class Packer:
    """Packs one document; `blobs` is what stands out of line."""

    def __init__(self) -> None:
        #: Hash → bytes.
        self.blobs: dict[str, bytes] = {}

    def pack(self, value: Any) -> Any:
        """What stands for a JSON value in the record."""
        text = encode_value(value)
        if len(text) <= INLINE_BYTES and not _has_mark(text):
            return value
        if isinstance(value, dict):
            if len(text) <= INLINE_BYTES:
                return {_OBJECT: [], _TAIL: [[key, self._whole(encode_value(item))] for key, item in value.items()]}
            return self._cut(_OBJECT, ([key, self.pack(item)] for key, item in value.items()))
        if isinstance(value, list):
            return self._cut(_LIST, (self.pack(item) for item in value))
        return self._whole(text) if len(text) > INLINE_BYTES else value

    def _cut(self, kind: str, items: Iterable[Any]) -> dict[str, Any]:
        pieces = list(_pieces(items))
        return {kind: [self._put(b"[" + b",".join(piece) + b"]") for piece in pieces[:-1]],
                _TAIL: decode_value(b"[" + b",".join(pieces[-1]) + b"]")}  # fmt: skip

    def _whole(self, text: bytes) -> dict[str, str]:
        return {_BLOB: self._put(text)}

    def _put(self, data: bytes) -> str:
        blob = digest(data)
        self.blobs[blob] = data
        return blob


def unpacked(stored: Any, get: Get) -> Any:
    """The value that `pack` put away.

    Raises:
        CheckpointCorrupt: A part is missing or damaged, or what is stored makes no sense.
    """
    if not isinstance(stored, Mapping):
        return [unpacked(item, get) for item in stored] if isinstance(stored, list) else stored
    if _MARKS.isdisjoint(stored):
        return {key: unpacked(item, get) for key, item in stored.items()}
    if _BLOB in stored:
        return json.loads(get(str(stored[_BLOB])))
    kind = _OBJECT if _OBJECT in stored else _LIST
    try:
        items = [item for piece in stored[kind] for item in json.loads(get(str(piece)))] + stored[_TAIL]
        if kind == _OBJECT:
            return {str(key): unpacked(item, get) for key, item in items}
    except (TypeError, ValueError, KeyError) as error:
        raise CheckpointCorrupt(f"A stored part of it makes no sense: {error}.") from error
    return [unpacked(item, get) for item in items]


def unpacked_text(text: bytes, get: Get) -> Any:
    """The value of a record's JSON text, its parts put back; raises as `unpacked`."""
    stored = json.loads(text)
    return unpacked(stored, get) if _has_mark(text) else stored


def _has_mark(text: bytes) -> bool:
    """Whether a text may hold what looks like one of our references."""
    return any(b'"%s":' % mark.encode("ascii") in text for mark in _MARKS)


def _pieces(items: Iterable[Any]) -> Iterator[list[bytes]]:
    """Texts of the items in pieces of at least INLINE_BYTES, from the beginning; the last one is what is left."""
    piece: list[bytes] = []
    size = 0
    for item in items:
        text = encode_value(item)
        piece.append(text)
        size += len(text)
        if size >= INLINE_BYTES:
            yield piece
            piece, size = [], 0
    yield piece
