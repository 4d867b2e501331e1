"""The numbers a question may be drawn with: ranges and rows, in an order that a key decides, none twice."""

from __future__ import annotations

import hashlib
import math
import re
from fractions import Fraction
from typing import Any, TypeAlias

from pipeline.bank.yaml_text import YamlFault, YamlList, YamlMap, YamlText
from pipeline.content.cast import HARBOURS, PEOPLE, PLACES

#: Most values of one range.
MAX_VALUES = 10_000
_RANGE = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)(?: step (\d+(?:\.\d+)?))?(?: not (-?\d[-\d. ]*))?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?|-?\d+/[1-9]\d*")
_NAME = re.compile(r"[A-Za-zΑ-ω][A-Za-z0-9_]*")
#: Values of the names of one entry, place by place.
Rows: TypeAlias = list[tuple[Fraction | str, ...]]
#: Drawn apart from the numbers: two questions that differ only in these are one.
NAMES = {"person": PEOPLE, "place": PLACES, "harbour": HARBOURS}


def digest(*parts: object) -> int:
    """Return a number of 256 bits that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest(), "big")


def permuted(place: int, size: int, key: str) -> int:
    """Return where a place of range(size) goes in the order of a key: each place once, without a list of them.

    Four rounds of a Feistel network over the next even number of bits; what falls beyond the range walks on.
    """
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    while True:
        left, right = place >> half, place & mask
        for turn in range(4):
            left, right = right, left ^ (digest(key, turn, right) & mask)
        place = left << half | right
        if place < size:
            return place


class Space:
    """The draws of one `let`: what is drawn, what follows from it, and what is only a name."""

    def __init__(self, let: YamlMap) -> None:
        self.axes: list[tuple[list[str], Rows]] = []
        self.formulas: dict[str, YamlText] = {}
        self.people: dict[str, str] = {}
        for key, spec in let.items():
            self._enter(key, [name.strip() for name in key.split(",")], spec)
        self.size = math.prod(len(rows) for _, rows in self.axes)

    def _enter(self, key: YamlText, names: list[str], spec: Any) -> None:
        rows = _listed(spec) if isinstance(spec, YamlList) else _range(key, spec) if isinstance(spec, YamlText) else []
        if bad := [name for name in names if not _NAME.fullmatch(name)]:
            raise YamlFault(key.line, f"'{bad[0]}' is no name; a name has letters, digits and _")
        if rows:
            if uneven := {len(row) for row in rows} - {len(names)}:
                raise YamlFault(key.line, f"'{key}' has {len(names)} names, a row has {uneven.pop()}")
            self.axes.append((names, rows))
        elif isinstance(spec, YamlText) and spec.startswith("="):
            self.formulas[key] = YamlText(spec[1:].strip())
            self.formulas[key].line = spec.line
        elif isinstance(spec, YamlText) and spec in NAMES:
            self.people[key] = spec
        else:
            raise YamlFault(
                key.line, f"'{key}: {spec}' is no range (2..9), list, formula (= a + b) or {', '.join(NAMES)}"
            )

    def drawn(self, place: int) -> dict[str, Any]:
        """Return what is drawn at a place."""
        values: dict[str, Any] = {}
        for names, rows in self.axes:
            place, row = divmod(place, len(rows))
            values.update(zip(names, rows[row], strict=True))
        return values

    def named(self, place: int, key: str) -> dict[str, str]:
        """Return names for people and places of the n-th instance, all different."""
        pools = {name: (NAMES[kind], digest(key, kind) + place) for name, kind in self.people.items()}
        return {name: pool[(at + turn) % len(pool)] for turn, (name, (pool, at)) in enumerate(pools.items())}


def _listed(spec: YamlList) -> Rows:
    rows = [list(row) if isinstance(row, YamlList) else [row] for row in spec]
    if not all(isinstance(cell, YamlText) for row in rows for cell in row):
        return []
    return [tuple(Fraction(cell) if _NUMBER.fullmatch(cell) else str(cell) for cell in row) for row in rows]


def _range(key: YamlText, spec: YamlText) -> Rows:
    if not (match := _RANGE.fullmatch(spec)):
        return []
    low, high, step = Fraction(match[1]), Fraction(match[2]), Fraction(match[3] or 1)
    below = math.lcm(low.denominator, step.denominator)
    tops = range(int(low * below), math.floor(high * below) + 1, int(step * below)) if step else range(0)
    if not 0 < len(tops) <= MAX_VALUES:
        raise YamlFault(key.line, f"'{key}: {spec}' has {len(tops):,} values, wanted 1 to {MAX_VALUES:,}")
    without = {Fraction(number) * below for number in (match[4] or "").split()}
    return [(Fraction(top, below),) for top in tops if top not in without]
