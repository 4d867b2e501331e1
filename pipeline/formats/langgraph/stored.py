"""How a serialized value stands in a record: short ones in the record itself, others out of line under their hash."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipeline.records.values import digest

#: Values of more bytes than this stand out of line.
INLINE_BYTES = 2048
#: A value as LangGraph's serializers give it: the name of its encoding, and its bytes.
Typed = tuple[str, bytes]
#: Gives the bytes of a hash; CheckpointCorrupt where they are missing or damaged.
GetBlob = Callable[[str], bytes]


class Stored(NamedTuple):
    """A serialized value: its bytes, or the hash that they are stored under."""

    #: The name of its encoding, as the serializer gave it.
    encoding: str
    #: The bytes; b"" where `blob` names them.
    data: bytes = b""
    #: The hash; "": the bytes stand here.
    blob: str = ""

    def typed(self, get: GetBlob) -> Typed:
        """The value as it was given."""
        return self.encoding, get(self.blob) if self.blob else self.data

    def to_json(self) -> list[str]:
        """What stands in the record."""
        return [self.encoding, base64.b64encode(self.data).decode("ascii"), *([self.blob] if self.blob else ())]

    @classmethod
    def from_json(cls, row: Any) -> Stored:
        """The value of a record.

        Raises:
            ValueError, TypeError: It makes no sense.
        """
        encoding, data, *blob = row
        return cls(str(encoding), base64.b64decode(data, validate=True), *map(str, blob))


class Gathered:
    """Notes what is to be stored out of line."""

    def __init__(self) -> None:
        #: Hash → bytes.
        self.blobs: dict[str, bytes] = {}

    def put(self, typed: Typed) -> Stored:
        """What stands for a value in the record."""
        encoding, data = typed
        if len(data) <= INLINE_BYTES:
            return Stored(encoding, bytes(data))
        blob = digest(data)
        self.blobs[blob] = bytes(data)
        return Stored(encoding, blob=blob)


def stored_values(values: Mapping[str, tuple[Any, Stored]]) -> dict[str, list[Any]]:
    """Channels as they stand in the record: name → [version, *value]."""
    return {name: [version, *value.to_json()] for name, (version, value) in values.items()}
