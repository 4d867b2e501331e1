"""How a state goes into a record: long values and long lists out of line, once each, under their hashes.

A list grows at its end, so it is cut from its beginning into pieces of a fixed size: the pieces of an earlier
checkpoint are those of a later one, and are neither written nor encoded again.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipeline.errors import CheckpointCorrupt
from pipeline.records.values import INLINE_LIMIT, digest, encode_value

#: Stores the JSON text of a value; its hash.
Put = Callable[[bytes], str]
#: Gives the bytes of a hash; CheckpointCorrupt where they are missing or damaged.
Get = Callable[[str], bytes]

_BLOB, _PIECES, _TAIL = "$blob", "$pieces", "tail"


class Gathered(dict[str, bytes]):
    """What is to be stored, by hash."""

    def put(self, data: bytes) -> str:
        """Note bytes; their hash."""
        blob = digest(data)
        self[blob] = data
        return blob


class _Piece(NamedTuple):
    """A piece of a list as it was packed."""

    items: int
    #: What it was made of, to see whether it still is; None: that cannot be seen.
    image: bytes | None
    #: What stands for it, and what of it stands out of line.
    row: dict[str, Any]
    blobs: Gathered


class Packer:
    """Packs the states of one workflow. What has not changed since the last is known by its image."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[_Piece]] = {}

    def packed(self, state: Mapping[str, Any], blobs: Gathered) -> dict[str, Any]:
        """A state's document as it stands in a record.

        Args:
            state: WorkflowState.to_json().
            blobs: Takes each value above 32 KiB.
        """
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
        pieces = self._unchanged(items, name)
        begun = sum(piece.items for piece in pieces)
        texts: list[bytes] = []
        held = Gathered()
        size = 0
        for index in range(begun, len(items)):
            texts.append(_packed_text(items[index], f"{name}[{index}]", held.put))
            size += len(texts[-1])
            if size >= INLINE_LIMIT:
                row = {_BLOB: held.put(b"[" + b",".join(texts) + b"]"), "items": len(texts)}
                pieces.append(_Piece(len(texts), _image(items[begun : index + 1]), row, held))
                begun, texts, held, size = index + 1, [], Gathered(), 0
        self._pieces[name] = pieces
        for out_of_line in (*(piece.blobs for piece in pieces), held):
            blobs.update(out_of_line)
        tail = json.loads(b"[" + b",".join(texts) + b"]")
        return {_PIECES: [piece.row for piece in pieces], _TAIL: tail} if pieces else tail

    def _unchanged(self, items: list[Any], name: str) -> list[_Piece]:
        """The pieces that a list begins with as it did the last time."""
        found: list[_Piece] = []
        end = 0
        for piece in self._pieces.get(name, ()):
            begun, end = end, end + piece.items
            if piece.image is None or _image(items[begun:end]) != piece.image:
                break
            found.append(piece)
        return found


def _image(items: list[Any]) -> bytes | None:
    """Bytes that tell values apart, also 1, 1.0 and True; a fifth of the time that JSON takes. Never read back."""
    try:
        return marshal.dumps(items, 2)
    except ValueError:
        return None


def unpacked(stored: Any, get: Get) -> dict[str, Any]:
    """The document that a Packer put away.

    Raises:
        CheckpointCorrupt: A value is missing or damaged, or what is stored makes no sense.
    """
    if not isinstance(stored, Mapping):
        raise CheckpointCorrupt("The state is no object.")
    out: dict[str, Any] = {}
    for name, value in stored.items():
        if isinstance(value, Mapping) and _PIECES in value:
            out[name] = _unpacked_list(value, name, get)
        elif isinstance(value, list):
            out[name] = [unpacked_value(item, get) for item in value]
        elif isinstance(value, Mapping):
            out[name] = {key: unpacked_value(item, get) for key, item in value.items()}
        else:
            out[name] = value
    return out


def packed_value(value: Any, where: str, put: Put) -> Any:
    """The value itself, or {"$blob", "bytes"} where it is long, or looks like that."""
    encoded = encode_value(value, where)
    if len(encoded) <= INLINE_LIMIT and not _looks_packed(value):
        return value
    return {_BLOB: put(encoded), "bytes": len(encoded)}


def packed_text(text: bytes, put: Put) -> Any:
    """As `packed_value`, of the JSON text of a value that looks like no reference."""
    return json.loads(text) if len(text) <= INLINE_LIMIT else {_BLOB: put(text), "bytes": len(text)}


def unpacked_value(value: Any, get: Get) -> Any:
    """The value that `packed_value` put away."""
    if isinstance(value, Mapping) and _BLOB in value:
        return json.loads(get(str(value[_BLOB])))
    return value


def _packed_text(item: Any, where: str, put: Put) -> bytes:
    """JSON text of what stands for an item."""
    text = encode_value(item, where)
    if len(text) <= INLINE_LIMIT and not _looks_packed(item):
        return text
    return encode_value(packed_value(item, where, put))


def _looks_packed(value: Any) -> bool:
    return isinstance(value, dict) and (_BLOB in value or _PIECES in value)


def _unpacked_list(stored: Mapping[str, Any], name: str, get: Get) -> list[Any]:
    items: list[Any] = []
    for piece in stored[_PIECES]:
        part = json.loads(get(str(piece[_BLOB])))
        if not isinstance(part, list) or len(part) != piece["items"]:
            raise CheckpointCorrupt(f"A piece of {name} holds something else.")
        items += part
    return [unpacked_value(item, get) for item in [*items, *stored[_TAIL]]]


def largest(document: Mapping[str, Any], most: int = 3) -> list[str]:
    """The largest parts of a record, largest first: `state.context.notes (210 kB)`."""
    sizes: dict[str, int] = {}
    for name, value in document.items():
        inner = value if name == "state" and isinstance(value, Mapping) else {}
        if not inner:
            sizes[name] = len(encode_value(value))
        for key, item in inner.items():
            if isinstance(item, Mapping) and _PIECES not in item:
                sizes.update({f"state.{key}.{part}": len(encode_value(held)) for part, held in item.items()})
            else:
                sizes[f"state.{key}"] = len(encode_value(item))
    return [f"{name} ({sizes[name] // 1000} kB)" for name in sorted(sizes, key=lambda name: -sizes[name])[:most]]
