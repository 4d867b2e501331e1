"""Facts ↔ journal lines: how the body of each kind is written and read back. The line around it: lines.py.

msgspec does both. It refuses what JSON text of ours may hold in rare cases (half a surrogate pair, an amount beyond
any float) and writes what we never do (NaN as null, text that is not ASCII): those go through the json module.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Union

import msgspec
from msgspec.structs import force_setattr

from pipeline.records.charge import amount
from pipeline.records.kinds import KINDS, Fact, UnknownFact
from pipeline.records.lines import TAIL, LineDamaged, check_line, encode_line
from pipeline.records.snapshots import document_shape
from pipeline.records.values import decode_value, encode_plain

#: The kind is named behind the envelope, within so many bytes.
_KIND, _ENVELOPE_BYTES = b'"kind":"', 100


class Envelope(msgspec.Struct, gc=False):
    """What a journal says of each of its facts."""

    #: Strictly increasing per journal; the only order.
    seq: int
    #: When it was appended; ISO-8601 UTC. Never an order.
    at: str
    #: seq of the run_started or run_resumed of its owner.
    owner: int


class Record(Envelope, gc=False):
    """A fact in its envelope."""

    fact: Fact


@lru_cache(maxsize=4096)
def is_path(path: str) -> bool:
    """Return whether a text is a step's path: its last frame says which visit."""
    node, mark, visit = path.rpartition("#")
    return bool(mark and node and node[-1] != "/" and visit.isdecimal() and visit.isascii() and len(visit) <= 9)


def _is_amount(usd: Any) -> bool:
    try:
        amount(usd)
    except ValueError:
        return False
    return True


#: What must hold of a field of this name, beyond its type.
_RULES: Mapping[str, Callable[[Any], bool]] = {
    "path": is_path,
    "usd": lambda usd: usd is None or _is_amount(usd),
    "document": lambda document: not document_shape(document),
}
_WRITTEN = {word: cls for word, cls in KINDS.items() if cls is not UnknownFact}
_CHECKS = {
    cls: tuple((name, _RULES[name]) for name in cls.__struct_fields__ if name in _RULES) for cls in _WRITTEN.values()
}
#: Kinds with values of any kind in them, in which NaN might hide.
_OPEN = frozenset(cls for cls in _WRITTEN.values() if any("Any" in str(kind) for kind in cls.__annotations__.values()))
_encode = msgspec.json.Encoder().encode
_envelope = msgspec.json.Decoder(Envelope).decode
_fact = msgspec.json.Decoder(Union[tuple(_WRITTEN.values())]).decode  # noqa: UP007


def encode_fact(fact: Fact, outputs: bytes | None = None) -> bytes:
    """Return the fact's body: a JSON object in ASCII; fields at their default are left out.

    Values in it must already be JSON (see values.encode_value).

    Args:
        outputs: JSON text of the fact's outputs, where it is known already; it is written in their place.
    """
    cls = type(fact)
    if cls.text:
        text = getattr(fact, cls.text)
        body = _encoded(_without(fact, cls.text))
        return body if text is None else b'%b,"%b":%b}' % (body[:-1], cls.text.encode(), text)
    if outputs is not None:
        return b'%b,"outputs":%b}' % (_encoded(_without(fact, "outputs"))[:-1], outputs)
    if isinstance(fact, UnknownFact):
        return encode_plain({"kind": fact.name, **fact.data}).encode("ascii")
    return _encoded(fact)


def lines_of(facts: Iterable[Fact], at: str, first: int = 1, owner: int = 1) -> list[bytes]:
    """Return facts as lines of a journal, from the record number `first` on."""
    return [encode_line(seq, at, owner, encode_fact(fact)) for seq, fact in enumerate(facts, first)]


def _without(fact: Any, name: str) -> Fact:
    copy: Fact = fact.__copy__()
    force_setattr(copy, name, msgspec.UNSET)
    return copy


def _encoded(fact: Fact) -> bytes:
    try:
        body = _encode(fact)
    except (TypeError, ValueError):
        body = b""
    if body.isascii() and body and not (type(fact) in _OPEN and b"null" in body):
        return body
    return encode_plain(msgspec.to_builtins(fact)).encode("ascii")


def understood(fact: Fact) -> bool:
    """Return whether this version knows what the fact says, or that it is of a kind that came later."""
    return not isinstance(fact, UnknownFact) or fact.name not in KINDS


def decode_fact(body: dict[str, Any]) -> Fact:
    """Return the fact of a body; a kind that came later, or a shape that makes no sense, becomes UnknownFact.

    Fields that this version does not know are left out. JSON text in it is bytes.
    """
    name = body.pop("kind", "")
    cls = _WRITTEN.get(name)
    if cls is None:
        return UnknownFact(name, body)
    known = {**body, cls.text: msgspec.Raw(body[cls.text])} if cls.text in body else body
    with contextlib.suppress(msgspec.ValidationError, TypeError):
        fact = msgspec.convert(known, cls)
        if _is_sound(fact):
            return fact
    return UnknownFact(name, body)


def decode_line(line: bytes, *, whole: bool = False) -> Record:
    """Return the record of one line (with or without its newline).

    Args:
        whole: A store has checked it already, and it has no newline.

    Raises:
        LineDamaged: Torn, flipped or not of this format.
    """
    if not whole:
        line = check_line(line)
    try:
        if line.isascii():
            fact = _fact(line)
            envelope = _envelope(line)
            if _is_sound(fact):
                return Record(envelope.seq, envelope.at, envelope.owner, fact)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _decode_rare(line)
    return _decode_rare(line)


def _is_sound(fact: Fact) -> bool:
    """Return whether every field holds what it can mean, and make bytes of the fact's JSON text."""
    cls = type(fact)
    for name, fits in _CHECKS[cls]:
        if not fits(getattr(fact, name)):
            return False
    if cls.text and (text := getattr(fact, cls.text)) is not None:
        force_setattr(fact, cls.text, bytes(text))
    return True


def _decode_rare(line: bytes) -> Record:
    """Return the record of any whole line; its text field is cut off before the rest is parsed."""
    begin = line.find(_KIND, 0, _ENVELOPE_BYTES) + len(_KIND)
    cls = _WRITTEN.get(line[begin : line.find(b'"', begin)].decode("ascii", "replace"))
    mark = b',"%b":' % cls.text.encode() if cls is not None and cls.text else b""
    at = line.find(mark, begin) if mark else -1
    try:
        data = decode_value(line if at < 0 else line[:at] + b"}")
        data.pop("crc", None)
        if cls is not None and at > 0 and (text := line[at + len(mark) : -TAIL]):
            data[cls.text] = text
        seq, moment, owner = data.pop("seq"), data.pop("at"), data.pop("owner")
        if not (type(seq) is type(owner) is int and type(moment) is str and type(data.get("kind")) is str):
            raise LineDamaged("no envelope around it")
        return Record(seq, moment, owner, decode_fact(data))
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        raise LineDamaged(str(error)) from None
