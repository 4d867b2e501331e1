"""Facts ↔ journal lines: how the body of each kind is written and read back. The line around it: lines.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any, NamedTuple

from pipeline.records import kinds
from pipeline.records.kinds import Fact, UnknownFact
from pipeline.records.lines import TAIL, LineDamaged, check_line
from pipeline.records.values import compact_encoder, decode_value

_encode = compact_encoder(json.JSONEncoder().default)
#: The kind stands behind the envelope, within so many bytes.
_KIND, _ENVELOPE = b'"kind":"', 100


class Record(NamedTuple):
    """A fact in its envelope."""

    #: Strictly increasing per journal; the only order.
    seq: int
    #: When it was appended; ISO-8601 UTC. Never an order.
    at: str
    #: seq of the run_started or run_resumed of its owner.
    owner: int
    fact: Fact


class _Shape:
    """A kind's fields, their defaults, and a fast way to all their values."""

    def __init__(self, cls: type[Fact]) -> None:
        self.names = tuple(item.name for item in fields(cls))
        self.defaults = tuple(
            item.default_factory() if item.default_factory is not MISSING else item.default for item in fields(cls)
        )
        self._values: Callable[[Fact], tuple[Any, ...]] = attrgetter("kind", *self.names)
        self._rows = (("kind", MISSING), *zip(self.names, self.defaults, strict=True))
        # A frozen dataclass's own constructor is slow; these set its slots directly.
        self._cls = cls
        self._setters = tuple(
            (name, default, cls.__dict__[name].__set__) for name, default in zip(self.names, self.defaults, strict=True)
        )

    def body(self, fact: Fact) -> dict[str, Any]:
        """The fields that differ from their defaults, the kind first."""
        return {
            name: value
            for (name, default), value in zip(self._rows, self._values(fact), strict=False)
            if value is not default and value != default
        }

    def make(self, body: Mapping[str, Any]) -> Fact:
        """The fact of a body; KeyError where a field without a default is missing. Unknown keys are left out."""
        fact = self._cls.__new__(self._cls)
        for name, default, put in self._setters:
            put(fact, body[name] if default is MISSING else body.get(name, default))
        return fact


_KINDS: dict[str, type[Fact]] = {
    cls.kind: cls for cls in vars(kinds).values() if isinstance(cls, type) and issubclass(cls, Fact) and cls.kind
}
_SHAPES = {cls: _Shape(cls) for cls in _KINDS.values()}
#: Kinds with a field that is kept as text: the field, and what stands before it. Text cannot hold that mark: its
#: quotes are escaped there.
_TEXTS = {cls.kind.encode(): (cls.text, b',"%s":' % cls.text.encode()) for cls in _KINDS.values() if cls.text}


def encode_fact(fact: Fact, **encoded: bytes) -> bytes:
    """The fact's body: a JSON object in ASCII; fields at their default are left out.

    Values in it must already be JSON (see values.encode_value).

    Args:
        encoded: JSON text of fields that is known already; it stands for their values.
    """
    if isinstance(fact, UnknownFact):
        return _encode({"kind": fact.name, **fact.data}).encode("ascii")
    if fact.text and (text := getattr(fact, fact.text)) is not None:
        encoded[fact.text] = text
    body = _SHAPES[type(fact)].body(fact)
    if not encoded:
        return _encode(body).encode("ascii")
    for name in encoded:
        body.pop(name, None)
    tail = b"".join(b',"%s":%s' % (name.encode("ascii"), known) for name, known in encoded.items())
    return _encode(body).encode("ascii")[:-1] + tail + b"}"


def decode_fact(body: dict[str, Any]) -> Fact:
    """The fact of a body; a kind or a shape from a newer version becomes UnknownFact."""
    name = body.pop("kind", "")
    cls = _KINDS.get(name)
    if cls is None or cls is UnknownFact:
        return UnknownFact(name, body)
    try:
        return _SHAPES[cls].make(body)
    except KeyError:
        return UnknownFact(name, body)


def decode_line(line: bytes, *, whole: bool = False) -> Record:
    """The record of one line (with or without its newline).

    Args:
        whole: A store has checked it already, and it has no newline.

    Raises:
        LineDamaged: Torn, flipped or not of this format.
    """
    line, name, text = _cut(line if whole else check_line(line))
    try:
        data = decode_value(line)
        data.pop("crc", None)
        if text:
            data[name] = text
        return Record(data.pop("seq"), data.pop("at"), data.pop("owner"), decode_fact(data))
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise LineDamaged(str(error)) from None


def _cut(line: bytes) -> tuple[bytes, str, bytes]:
    """A whole line without its text field, and that field's name and text; as it is where it has none."""
    begin = line.find(_KIND, 0, _ENVELOPE) + len(_KIND)
    name, mark = _TEXTS.get(line[begin : line.find(b'"', begin)], ("", b""))
    at = line.find(mark, begin) if name else -1
    return (line[:at] + b"}", name, line[at + len(mark) : -TAIL]) if at > 0 else (line, "", b"")
