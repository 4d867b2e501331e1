"""JSON values: the only thing a step may return; encoded once, refused with the key that is wrong."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from numbers import Number
from pathlib import PurePath
from typing import Any

from pipeline.errors import InvalidValue

#: A value whose JSON text is longer than this (bytes) goes into a blob.
INLINE_LIMIT = 32 * 1024
_DEEPEST = 200
_BLOB = "$blob"


class Plain:
    """Base of this program's own objects that stand for a JSON value."""

    __slots__ = ()

    def plain(self) -> Any:
        """Return the value that is recorded for it."""
        raise NotImplementedError


#: Sequences that are no lists of values.
_BYTES = (bytes, bytearray, memoryview)


#: This program's own dataclasses are records or tools; which part of one is meant is for its user to say.
_OURS = "pipeline."


def is_typed(kind: type) -> bool:
    """Return whether a class is a pydantic model or a dataclass of the user's: its values are recorded as mappings."""
    return is_model(kind) or (is_dataclass(kind) and not kind.__module__.startswith(_OURS))


def is_model(kind: type) -> bool:
    """Return whether a class is a pydantic model."""
    return callable(getattr(kind, "model_validate_json", None))


def members(value: Any) -> Mapping[str, Any] | None:
    """Return a pydantic model as its JSON form, a dataclass as its fields; None: it is neither."""
    kind = type(value)
    if is_model(kind):
        found: Mapping[str, Any] = value.model_dump(mode="json", by_alias=True)
        return found
    return {item.name: getattr(value, item.name) for item in fields(value)} if is_typed(kind) else None


def _default(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.plain()
    if (found := members(value)) is not None:
        return found
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, _BYTES):
        return list(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(type(value).__name__)


def compact_encoder(default: Callable[[Any], Any], *, sort_keys: bool = False) -> Callable[[Any], str]:
    """Return a function that gives a value's compact ASCII JSON; NaN and infinity are ValueErrors.

    json.JSONEncoder makes its C encoder anew at each call, which costs as much as encoding a small
    record; this one is made once. A value that contains itself is a RecursionError.
    """
    plain = json.JSONEncoder(separators=(",", ":"), allow_nan=False, sort_keys=sort_keys, default=default)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    quoted = json.encoder.encode_basestring_ascii
    pieces = make(None, default, quoted, None, ":", ",", sort_keys, False, False)
    join = "".join
    return lambda value: join(pieces(value, 0))


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


_scan = json.scanner.make_scanner(json.JSONDecoder(parse_constant=_no_number))  # type: ignore[attr-defined]
_plain = compact_encoder(_default)
_sorted = compact_encoder(_default, sort_keys=True)


#: A JSON value as it stands in a line; what is no JSON is a TypeError or ValueError.
encode_plain = compact_encoder(json.JSONEncoder().default)


def encode_value(value: Any, where: str = "value") -> bytes:
    """Return the value as compact ASCII JSON; decoding it gives what every later reader sees.

    Lone surrogates and NUL in text survive (as escapes); tuples become lists, numbers as keys become text.

    Raises:
        InvalidValue: NaN or infinity, bytes, naive datetimes, other types, or keys
            that are no text or number; names the key path below `where`.
    """
    try:
        text = _plain(value)
    except (TypeError, ValueError, RecursionError):
        raise _explain(value, where) from None
    return text.encode("ascii")


def canonical(value: Any, where: str = "value") -> bytes:
    """Encode as `encode_value`, with sorted keys: equal values give equal bytes."""
    try:
        return _sorted(value).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        raise _explain(value, where) from None


def decode_value(text: bytes) -> Any:
    """Return the value that our own JSON text says: json.loads without what only foreign text needs.

    Raises:
        ValueError, StopIteration: It is no JSON.
    """
    return _scan(text.decode("ascii"), 0)[0]


def read_json(text: str) -> Any:
    """Return the value that foreign JSON text says.

    Raises:
        ValueError: It is no JSON; NaN and infinity are none, nor what is nested without end.
    """
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def reference(name: str, size: int) -> dict[str, Any]:
    """Return what is recorded for a value of `size` bytes that is kept in the blob `name`."""
    return {_BLOB: name, "bytes": size}


def is_reference(value: Any) -> bool:
    """Return whether a recorded value only says which blob holds it."""
    return isinstance(value, Mapping) and len(value) == 2 and _BLOB in value and "bytes" in value


def resolve_value(value: Any, get_blob: Callable[[str], bytes]) -> Any:
    """Return a recorded value, read back from its blob where it is a reference.

    Raises:
        CheckpointCorrupt: The blob is missing or damaged (from `get_blob`).
    """
    return json.loads(get_blob(str(value[_BLOB]))) if is_reference(value) else value


def digest(data: bytes) -> str:
    """Return the content hash used everywhere: sha256 in hex."""
    return hashlib.sha256(data).hexdigest()


def value_hash(value: Any) -> str:
    """Return the hash of a JSON value, independent of key order."""
    return digest(canonical(value))


def _explain(value: Any, where: str) -> InvalidValue:
    path, problem, conversion = _find(value, where, 0) or (where, "is not a JSON value", "")
    kinds = "Use text, numbers, true/false, null, lists and mappings with text keys."
    return InvalidValue(f"{path} {problem}", hint=f"Use {conversion} there." if conversion else kinds, key=path)


#: Where, what is wrong, and what to put in its place ("" where there is nothing in particular).
_Problem = tuple[str, str, str]


def _find(value: Any, path: str, depth: int) -> _Problem | None:
    """Return the first thing in a value that JSON cannot hold."""
    if depth > _DEEPEST:
        return path, f"is nested too deeply (more than {_DEEPEST} levels) or contains itself", ""
    if isinstance(value, Plain):
        value = value.plain()
    try:
        value = value if (held := members(value)) is None else held
    except (TypeError, ValueError, AttributeError) as error:
        return path, f"is a {type(value).__name__} that cannot be written: {error}", ""
    if isinstance(value, Mapping):
        return _find_in_mapping(value, path, depth)
    if isinstance(value, Sequence) and not isinstance(value, (str, *_BYTES)):
        found = (_find(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value))
        return next((problem for problem in found if problem), None)
    return _problem(value, path)


def _find_in_mapping(value: Mapping[Any, Any], path: str, depth: int) -> _Problem | None:
    for key, item in value.items():
        if not (key is None or isinstance(key, (str, int, float))):
            return path, f"has the key {key!r}; keys are text", "str(key) for its keys"
        if found := _find(item, f"{path}.{key}", depth + 1):
            return found
    return None


def _problem(value: Any, path: str) -> _Problem | None:
    if value is None or isinstance(value, (str, bool, int)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else (path, f"is {value}; JSON has no such number", "null or text")
    if isinstance(value, datetime) and value.tzinfo is not None:
        return None
    known = {bytes: "is bytes; decode it to text first", datetime: "is a datetime without a time zone",
             Decimal: "is a Decimal; record it as text, str(value)"}  # fmt: skip
    problem = known.get(type(value), f"is a {type(value).__name__}, not a JSON value")
    return path, problem, next((form for fits, form in _CONVERSIONS if fits(value)), "")


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: all(callable(getattr(value, name, None)) for name in names)


#: What a value is put into a record as: the first line that fits.
_CONVERSIONS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda value: isinstance(value, type) or callable(value), "its result or its name"),
    (lambda value: isinstance(value, _BYTES), "bytes(value).decode() (base64 for anything else)"),
    (lambda value: isinstance(value, datetime), "value.astimezone()"),
    (lambda value: isinstance(value, Enum), "value.value"),
    (lambda value: hasattr(value, "text") and hasattr(value, "stop_reason"), "reply.text"),
    (_has("model_dump"), 'value.model_dump(mode="json")'),
    (is_dataclass, "dataclasses.asdict(value)"),
    (_has("isoformat"), "value.isoformat()"),
    (_has("total_seconds"), "value.total_seconds()"),
    (_has("tolist"), "value.tolist()"),
    (_has("to_dict"), "value.to_dict()"),
    (lambda value: isinstance(value, Set), "sorted(value)"),
    (lambda value: isinstance(value, Iterator), "list(value)"),
    (
        lambda value: isinstance(value, (Decimal, Number, PurePath, BaseException)) or hasattr(value, "urn"),
        "str(value)",
    ),
    (lambda value: isinstance(value, Iterable), "list(value)"),
    (lambda value: hasattr(value, "__dict__"), "vars(value)"),
)
