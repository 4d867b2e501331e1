"""How two JSON values differ: which keys changed, were added or are gone; bounded, pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

CHANGED, ADDED, REMOVED = "changed", "added", "removed"
#: Differences told of one pair of values; the rest is counted.
MOST = 50


class Change(NamedTuple):
    """One place where two values differ."""

    #: Keys and indexes from the top: `sections[2].title`; "" for the value itself.
    place: str
    #: changed, added or removed.
    kind: str
    before: Any = None
    after: Any = None

    def to_json(self) -> dict[str, Any]:
        """The place, the kind, and the values on the sides that have one."""
        out = {"place": self.place, "kind": self.kind, "before": self.before, "after": self.after}
        if self.kind != CHANGED:
            del out["before" if self.kind == ADDED else "after"]
        return out


class Changes(NamedTuple):
    """What differs, and how many differences more there are than are told."""

    told: list[Change]
    left_out: int = 0

    def __bool__(self) -> bool:
        return bool(self.told)


def compare(before: Any, after: Any, most: int = MOST) -> Changes:
    """All differences of two JSON values, the first `most` of them told."""
    found = _walk(before, after, "")
    told = list(islice(found, most))
    return Changes(told, sum(1 for _ in found))


def first(before: Any, after: Any) -> Change | None:
    """The first difference; None where the values are equal."""
    return next(_walk(before, after, ""), None)


def _walk(before: Any, after: Any, place: str) -> Iterator[Change]:
    """Differences in the order of the values; without recursion, values may be deep."""
    todo: list[tuple[Any, Any, str]] = [(before, after, place)]
    while todo:
        one, two, at = todo.pop()
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            inner = [_pair(one, two, key, _key(at, str(key))) for key in dict.fromkeys((*one, *two))]
        elif isinstance(one, list) and isinstance(two, list):
            inner = [_item(one, two, index, f"{at}[{index}]") for index in range(max(len(one), len(two)))]
        else:
            if _missing(one) or _missing(two) or not same(one, two):
                yield _change(one, two, at)
            continue
        todo.extend(reversed(inner))


class _Missing:
    """Stands where one side has no value."""


_NONE = _Missing()


def _missing(value: Any) -> bool:
    return value is _NONE


def _change(one: Any, two: Any, at: str) -> Change:
    if _missing(one):
        return Change(at, ADDED, None, two)
    return Change(at, REMOVED, one) if _missing(two) else Change(at, CHANGED, one, two)


def _pair(one: Mapping[str, Any], two: Mapping[str, Any], key: str, at: str) -> tuple[Any, Any, str]:
    return one.get(key, _NONE), two.get(key, _NONE), at


def _item(one: list[Any], two: list[Any], index: int, at: str) -> tuple[Any, Any, str]:
    return (one[index] if index < len(one) else _NONE), (two[index] if index < len(two) else _NONE), at


def _key(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def same(one: Any, two: Any) -> bool:
    """Equal as JSON: true is not 1, and 1 is not 1.0."""
    return type(one) is type(two) and bool(one == two)
