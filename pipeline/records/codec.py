"""Facts ↔ journal lines: how the body of each kind is written and read back. The line around it: lines.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any, NamedTuple

from pipeline.records import kinds
from pipeline.records.frequent import WRITERS, finished_task
from pipeline.records.frozen import frozen
from pipeline.records.kinds import Fact, UnknownFact
from pipeline.records.lines import TAIL, LineDamaged, check_line
from pipeline.records.shapes import shapes
from pipeline.records.values import decode_value, encode_plain, quote

#: The kind stands behind the envelope, within so many bytes.
_KIND, _ENVELOPE = b'"kind":"', 100
#: Writers have few forms of a kind; more than these come from no writer of ours.
_MOST_PLANS = 256


@frozen
class Record:
    """A fact in its envelope."""

    #: Strictly increasing per journal; the only order.
    seq: int
    #: When it was appended; ISO-8601 UTC. Never an order.
    at: str
    #: seq of the run_started or run_resumed of its owner.
    owner: int
    fact: Fact


class _Plan(NamedTuple):
    """How a body with these keys and types becomes a fact."""

    #: The fields it names; None: it names nothing else.
    named: tuple[str, ...] | None
    #: What must hold of the values beyond their types.
    checks: tuple[tuple[Callable[[Any], bool], str], ...]


class _Shape:
    """A kind's fields, their defaults, and a fast way to all their values."""

    def __init__(self, cls: type[Fact]) -> None:
        self.names = tuple(item.name for item in fields(cls))
        self.defaults = tuple(
            item.default_factory() if item.default_factory is not MISSING else item.default for item in fields(cls)
        )
        #: What is written of each value that differs from its default: name, default, and the text before it.
        self._rows = tuple(
            (name, default, f',"{name}":')
            for name, default in zip(self.names, self.defaults, strict=True)
            if name != cls.text
        )
        self._values: Callable[[Fact], Any] = attrgetter(*(name for name, _, _ in self._rows), "kind")
        self._begin = f'{{"kind":"{cls.kind}"'
        self._cls = cls
        self._fields = shapes(cls)
        #: The field that is kept as text, and what stands before it. Text cannot hold that mark: its quotes are
        #: escaped there.
        self.text = cls.text
        self.mark = b',"%s":' % cls.text.encode()
        #: By keys and types of a body: a journal repeats a few of them thousands of times.
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    def write(self, fact: Fact, last: str, text: bytes | None) -> bytes:
        """The body: the kind first, then the fields that differ from their defaults, `last` as its text."""
        parts = [self._begin]
        for (name, default, before), value in zip(self._rows, self._values(fact), strict=False):
            if value is not default and value != default and (name != last or text is None):
                parts.append(before)
                parts.append(quote(value) if type(value) is str else encode_plain(value))
        body = "".join(parts).encode("ascii")
        return body + (b"}" if text is None else b',"%s":%s}' % (last.encode(), text))

    def make(self, body: Mapping[str, Any]) -> Fact:
        """The fact of a body; unknown keys are left out.

        Raises:
            KeyError: A field without a default is missing, or a field holds what it cannot mean.
        """
        form = (*body, *map(type, body.values()))
        plan = self._plans.get(form)
        if plan is None:
            plan = self._plan(body)
            if len(self._plans) < _MOST_PLANS:
                self._plans[form] = plan
        named, checks = plan
        for fits, name in checks:
            if not fits(body[name]):
                raise KeyError(name)
        return self._cls(**(body if named is None else {name: body[name] for name in named}))

    def _plan(self, body: Mapping[str, Any]) -> _Plan:
        checks = []
        for (name, shape), default in zip(self._fields.items(), self.defaults, strict=True):
            if name not in body:
                if default is MISSING:
                    raise KeyError(name)
                continue
            if type(body[name]) not in shape.types:
                raise KeyError(name)
            if shape.fits is not None and body[name] is not None:
                checks.append((shape.fits, name))
        named = tuple(name for name in self._fields if name in body)
        return _Plan(named if len(named) < len(body) else None, tuple(checks))


_KINDS: dict[str, type[Fact]] = {
    cls.kind: cls for cls in vars(kinds).values() if isinstance(cls, type) and issubclass(cls, Fact) and cls.kind
}
_SHAPES = {cls: _Shape(cls) for cls in _KINDS.values()}
_BY_NAME = {cls.kind.encode(): shape for cls, shape in _SHAPES.items()}


def encode_fact(fact: Fact, outputs: bytes | None = None) -> bytes:
    """The fact's body: a JSON object in ASCII; fields at their default are left out.

    Values in it must already be JSON (see values.encode_value).

    Args:
        outputs: JSON text of the fact's outputs, where it is known already; it stands for them.
    """
    writer = WRITERS.get(type(fact))
    return _written(fact, outputs) if writer is None else writer(fact, outputs)


def _written(fact: Fact, outputs: bytes | None) -> bytes:
    """The body of any fact."""
    if isinstance(fact, UnknownFact):
        return encode_plain({"kind": fact.name, **fact.data}).encode("ascii")
    last, text = (fact.text, getattr(fact, fact.text)) if fact.text else ("outputs", outputs)
    return _SHAPES[type(fact)].write(fact, last, text)


def understood(fact: Fact) -> bool:
    """Whether this version knows what the fact says, or that it is of a kind that came later."""
    return not isinstance(fact, UnknownFact) or fact.name not in _KINDS


def decode_fact(body: dict[str, Any]) -> Fact:
    """The fact of a body; a kind that came later, or a shape that makes no sense, becomes UnknownFact."""
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
    if not whole:
        line = check_line(line)
    found = finished_task(line)
    return _parsed(line) if found is None else Record(*found)


def _parsed(line: bytes) -> Record:
    """The record of any whole line; its text field is cut off before the rest is parsed."""
    begin = line.find(_KIND, 0, _ENVELOPE) + len(_KIND)
    shape = _BY_NAME.get(line[begin : line.find(b'"', begin)])
    at = line.find(shape.mark, begin) if shape is not None and shape.text else -1
    try:
        data = decode_value(line if at < 0 else line[:at] + b"}")
        data.pop("crc", None)
        if shape is not None and at > 0 and (text := line[at + len(shape.mark) : -TAIL]):
            data[shape.text] = text
        seq, moment, owner = data.pop("seq"), data.pop("at"), data.pop("owner")
        if not (type(seq) is type(owner) is int and type(moment) is str and type(data.get("kind")) is str):
            raise LineDamaged("no envelope around it")
        return Record(seq, moment, owner, decode_fact(data))
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        raise LineDamaged(str(error)) from None
