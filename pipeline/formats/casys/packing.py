"""How a state goes into a record: long values and long lists out of line, once each, under their hashes.

A list grows at its end, so it is cut from its beginning into pieces of a fixed size: the pieces of an earlier
checkpoint are those of a later one, and are not written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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


def packed(state: Mapping[str, Any], put: Put) -> dict[str, Any]:
    """A state's document as it stands in a record.

    Args:
        state: WorkflowState.to_json().
        put: Called for each value above 32 KiB.
    """
    out: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, list):
            out[name] = _packed_list(value, name, put)
        elif isinstance(value, Mapping):
            out[name] = {key: packed_value(item, f"{name}.{key}", put) for key, item in value.items()}
        else:
            out[name] = value
    return out


def unpacked(stored: Any, get: Get) -> dict[str, Any]:
    """The document that `packed` put away.

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


def _packed_list(items: Sequence[Any], name: str, put: Put) -> Any:
    encoded = [_packed_text(item, name, index, put) for index, item in enumerate(items)]
    pieces = list(_cut(encoded))
    if len(pieces) == 1:
        return json.loads(b"[" + b",".join(encoded) + b"]")
    rows = [{_BLOB: put(b"[" + b",".join(piece) + b"]"), "items": len(piece)} for piece in pieces[:-1]]
    return {_PIECES: rows, _TAIL: json.loads(b"[" + b",".join(pieces[-1]) + b"]")}


def _packed_text(item: Any, name: str, index: int, put: Put) -> bytes:
    """JSON text of what stands for an item."""
    text = encode_value(item, f"{name}[{index}]")
    if len(text) <= INLINE_LIMIT and not _looks_packed(item):
        return text
    return encode_value(packed_value(item, f"{name}[{index}]", put))


def _looks_packed(value: Any) -> bool:
    return isinstance(value, dict) and (_BLOB in value or _PIECES in value)


def _cut(encoded: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Pieces of at least 32 KiB, from the beginning on; the last one is what is left, maybe nothing."""
    piece: list[bytes] = []
    size = 0
    for text in encoded:
        piece.append(text)
        size += len(text)
        if size >= INLINE_LIMIT:
            yield piece
            piece, size = [], 0
    yield piece


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
