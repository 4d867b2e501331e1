"""What the fields of a record may hold: a line can be whole and still say what no program of ours ever wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from pipeline.records.charge import amount
from pipeline.records.kinds import Fact
from pipeline.records.snapshots import document_shape
from pipeline.records.structure import MOST

_VISIT = re.compile(r"(?s).*[^/]#[0-9]{1,9}")


class Shape(NamedTuple):
    """What one field may hold."""

    #: The exact types of JSON values that it may be.
    types: tuple[type, ...]
    #: What must hold of a value that is not None, beyond its type; None: nothing.
    fits: Callable[[Any], bool] | None


def _texts(values: Iterable[Any]) -> bool:
    try:
        "".join(values)
    except TypeError:
        return False
    return True


def _named_texts(values: Mapping[str, Any]) -> bool:
    try:
        "".join(values.values())
    except TypeError:
        return False
    return True


def _pairs(values: list[Any]) -> bool:
    return all(type(pair) is list and len(pair) == 2 for pair in values) and _texts(chain.from_iterable(values))


def _objects(values: list[Any]) -> bool:
    return all(type(value) is dict for value in values)


@lru_cache(maxsize=4096)
def is_path(path: str) -> bool:
    """Whether a text is a step's path: its last frame says which visit."""
    return _VISIT.fullmatch(path) is not None


def _finite(value: float) -> bool:
    return -MOST <= value <= MOST


def _is_amount(value: Any) -> bool:
    try:
        amount(value)
    except ValueError:
        return False
    return True


_TYPES: Mapping[str, Shape] = {
    "str": Shape((str,), None),
    "int": Shape((int,), None),
    "bool": Shape((bool,), None),
    "float": Shape((float, int), _finite),
    "bytes": Shape((bytes,), None),
    "None": Shape((type(None),), None),
    "Mapping[str, Any]": Shape((dict,), None),
    "Mapping[str, str]": Shape((dict,), _named_texts),
    "Sequence[str]": Shape((list,), _texts),
    "Sequence[Sequence[str]]": Shape((list,), _pairs),
    "Sequence[Mapping[str, Any]]": Shape((list,), _objects),
}
_NAMED: Mapping[str, Callable[[Any], bool]] = {
    "path": is_path,
    "usd": _is_amount,
    "document": lambda value: not document_shape(value),
}


def shapes(cls: type[Fact]) -> dict[str, Shape]:
    """What each field of a kind may hold, as its annotation and its name say."""
    return {item.name: _shape(item.name, str(item.type)) for item in fields(cls)}


def _shape(name: str, annotation: str) -> Shape:
    parts = [_TYPES[part] for part in annotation.split(" | ")]
    fits = _NAMED.get(name) or next((part.fits for part in parts if part.fits), None)
    return Shape(tuple(kind for part in parts for kind in part.types), fits)
