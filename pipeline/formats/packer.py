"""Values of a document as a record holds them: long ones are stored out of line, once each, under their hashes.

Lists grow at their ends, so they are cut from the beginning into pieces: those of an earlier document are those of a
later one, and are stored once.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pipeline.errors import CheckpointCorrupt
from pipeline.records.values import INLINE_LIMIT, decode_value, digest, encode_value, reference

#: Returns the bytes of a hash; CheckpointCorrupt where they are missing or damaged.
Get = Callable[[str], bytes]

_BLOB, _PIECES, _TAIL = "$blob", "$pieces", "tail"


class Gathered(dict[str, bytes]):
    """What is to be stored out of line, by hash."""

    def put(self, data: bytes) -> str:
        blob = digest(data)
        self[blob] = data
        return blob


# One value, and a state whose lists are cut: at most one level below a field is looked at.


def packed_value(value: Any, where: str, put: Callable[[bytes], str]) -> Any:
    """Return the value itself, or a reference where it is long or looks like one."""
    text = encode_value(value, where)
    return reference(put(text), len(text)) if len(text) > INLINE_LIMIT or _looks_packed(value) else value


def packed_text(text: bytes, put: Callable[[bytes], str], *, whole: bool = False) -> bytes:
    """Return the JSON text itself, or that of a reference where it is long, or where it must (`whole`)."""
    return encode_value(reference(put(text), len(text))) if whole or len(text) > INLINE_LIMIT else text


def unpacked_value(value: Any, get: Get) -> Any:
    """Return the value that `packed_value` put away."""
    return json.loads(get(str(value[_BLOB]))) if isinstance(value, Mapping) and _BLOB in value else value


def _looks_packed(value: Any) -> bool:
    return isinstance(value, dict) and (_BLOB in value or _PIECES in value)


class _ListPiece(NamedTuple):
    """A piece of a list as it was packed."""

    items: int
    #: What it was made of, to see whether it still is; None: that cannot be seen.
    image: bytes | None
    row: dict[str, Any]
    blobs: Gathered


class StatePacker:
    """Packs the states of one workflow; pieces that have not changed since the last one are not encoded again."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[_ListPiece]] = {}

    def packed(self, state: Mapping[str, Any], blobs: Gathered) -> dict[str, Any]:
        """Return a state's document as a record holds it; `blobs` takes what is stored out of line."""
        out: dict[str, Any] = {}
        for name, value in state.items():
            if isinstance(value, list):
                out[name] = self._list(value, name, blobs)
            elif isinstance(value, Mapping):
                out[name] = {key: packed_value(item, f"{name}.{key}", blobs.put) for key, item in value.items()}
            else:
                out[name] = value
        return out

    def _list(self, items: list[Any], name: str, blobs: Gathered) -> Any:
        pieces: list[_ListPiece] = []
        begun = 0
        for piece in self._pieces.get(name, ()):
            if piece.image is None or _image(items[begun : begun + piece.items]) != piece.image:
                break
            pieces.append(piece)
            begun += piece.items
        texts: list[bytes] = []
        held = Gathered()
        size = 0
        for index in range(begun, len(items)):
            text = encode_value(items[index], f"{name}[{index}]")
            texts.append(packed_text(text, held.put, whole=_looks_packed(items[index])))
            size += len(texts[-1])
            if size >= INLINE_LIMIT:
                row = {_BLOB: held.put(b"[" + b",".join(texts) + b"]"), "items": len(texts)}
                pieces.append(_ListPiece(len(texts), _image(items[begun : index + 1]), row, held))
                begun, texts, held, size = index + 1, [], Gathered(), 0
        self._pieces[name] = pieces
        for out_of_line in (*(piece.blobs for piece in pieces), held):
            blobs.update(out_of_line)
        tail = json.loads(b"[" + b",".join(texts) + b"]")
        return {_PIECES: [piece.row for piece in pieces], _TAIL: tail} if pieces else tail


def _image(items: list[Any]) -> bytes | None:
    """Return bytes that tell values apart, also 1, 1.0 and True, in a fifth of the time that JSON takes."""
    try:
        return marshal.dumps(items, 2)
    except ValueError:
        return None


def unpacked_state(stored: Any, get: Get) -> dict[str, Any]:
    """Return the document that a StatePacker put away; CheckpointCorrupt where a part is damaged or makes no sense."""
    if not isinstance(stored, Mapping):
        raise CheckpointCorrupt("The state is not an object.")
    out: dict[str, Any] = {}
    for name, value in stored.items():
        items = _joined(value, name, get) if isinstance(value, Mapping) and _PIECES in value else value
        if isinstance(items, list):
            out[name] = [unpacked_value(item, get) for item in items]
        elif isinstance(items, Mapping):
            out[name] = {key: unpacked_value(item, get) for key, item in items.items()}
        else:
            out[name] = items
    return out


def _joined(stored: Mapping[str, Any], name: str, get: Get) -> list[Any]:
    items: list[Any] = []
    for piece in stored[_PIECES]:
        part = json.loads(get(str(piece[_BLOB])))
        if not isinstance(part, list) or len(part) != piece["items"]:
            raise CheckpointCorrupt(f"A piece of {name} holds something else.")
        items += part
    return [*items, *stored[_TAIL]]


def largest(document: Mapping[str, Any], most: int = 3) -> list[str]:
    """Return the largest parts of a record with a state, largest first: `state.context.notes (210 kB)`."""
    sizes: dict[str, int] = {}

    def measure(name: str, value: Any, deep: int) -> None:
        if deep and isinstance(value, Mapping) and value and _PIECES not in value:
            for key, item in value.items():
                measure(f"{name}.{key}", item, deep - 1)
        else:
            sizes[name] = len(encode_value(value))

    for name, value in document.items():
        measure(name, value, 2 if name == "state" else 0)
    return [f"{name} ({sizes[name] // 1000} kB)" for name in sorted(sizes, key=lambda name: -sizes[name])[:most]]


# A whole document, looked through to any depth.

_LIST, _OBJECT = "$list", "$object"
_MARKS = frozenset({_BLOB, _LIST, _OBJECT})
#: Values of more bytes than this are stored out of line; a piece has at least so many.
INLINE_BYTES = 16 * 1024


def packed(value: Any, blobs: Gathered) -> Any:
    """Return a JSON value as a record holds it; `blobs` takes what is long, at any depth."""
    text = encode_value(value)
    short = len(text) <= INLINE_BYTES
    if short and not _has_mark(text):
        return value
    if isinstance(value, dict) and short:
        return {_OBJECT: [], _TAIL: [[key, {_BLOB: blobs.put(encode_value(item))}] for key, item in value.items()]}
    if isinstance(value, dict):
        return _cut(_OBJECT, ([key, packed(item, blobs)] for key, item in value.items()), blobs)
    if isinstance(value, list):
        return _cut(_LIST, (packed(item, blobs) for item in value), blobs)
    return value if short else {_BLOB: blobs.put(text)}


def _cut(kind: str, items: Iterable[Any], blobs: Gathered) -> dict[str, Any]:
    *pieces, tail = (b"[" + b",".join(piece) + b"]" for piece in _pieces(items))
    return {kind: [blobs.put(piece) for piece in pieces], _TAIL: decode_value(tail)}


def _pieces(items: Iterable[Any]) -> Iterator[list[bytes]]:
    """Yield texts of the items in pieces of at least INLINE_BYTES, from the beginning; the last one is what is left."""
    piece: list[bytes] = []
    size = 0
    for item in items:
        piece.append(encode_value(item))
        size += len(piece[-1])
        if size >= INLINE_BYTES:
            yield piece
            piece, size = [], 0
    yield piece


def unpacked_document(text: bytes, get: Get) -> Any:
    """Return the value of a record's JSON text; CheckpointCorrupt where a part is damaged or makes no sense."""
    stored = json.loads(text)
    return _unpacked(stored, get) if _has_mark(text) else stored


def _unpacked(stored: Any, get: Get) -> Any:
    if not isinstance(stored, Mapping):
        return [_unpacked(item, get) for item in stored] if isinstance(stored, list) else stored
    if _MARKS.isdisjoint(stored):
        return {key: _unpacked(item, get) for key, item in stored.items()}
    if _BLOB in stored:
        return json.loads(get(str(stored[_BLOB])))
    kind = _OBJECT if _OBJECT in stored else _LIST
    try:
        items = [item for piece in stored[kind] for item in json.loads(get(str(piece)))] + stored[_TAIL]
        if kind == _OBJECT:
            return {str(key): _unpacked(item, get) for key, item in items}
    except (TypeError, ValueError, KeyError) as error:
        raise CheckpointCorrupt(f"A stored part of it is invalid: {error}.") from error
    return [_unpacked(item, get) for item in items]


def _has_mark(text: bytes) -> bool:
    """Return whether a text may hold what looks like one of our references."""
    return any(b'"%s":' % mark.encode("ascii") in text for mark in _MARKS)
