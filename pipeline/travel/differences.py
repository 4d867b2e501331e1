"""How two JSON values differ, and what two runs, or two points of runs, differ in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from pipeline.errors import CheckpointCorrupt
from pipeline.records.run import RunState, TaskRun, bare, in_order
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import is_reference
from pipeline.store.base import Store
from pipeline.travel.values import Reader, usd_by_step

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
        """Return the place, the kind, and the values on the sides that have one."""
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

    def to_json(self) -> dict[str, Any]:
        """Return all that are told, and how many more there are."""
        return {"changes": [change.to_json() for change in self.told], "left_out": self.left_out}


def compare(before: Any, after: Any, most: int = MOST) -> Changes:
    """Return all differences of two JSON values, the first `most` of them told."""
    found = _walk(before, after, "")
    told = list(islice(found, most))
    return Changes(told, sum(1 for _ in found))


def first(before: Any, after: Any) -> Change | None:
    """Return the first difference; None where the values are equal."""
    return next(_walk(before, after, ""), None)


def _walk(before: Any, after: Any, place: str) -> Iterator[Change]:
    """Return differences in the order of the values; without recursion, values may be deep."""
    todo: list[tuple[Any, Any, str]] = [(before, after, place)]
    while todo:
        one, two, at = todo.pop()
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            keys = dict.fromkeys((*one, *two))
            inner = [(one.get(key, _NONE), two.get(key, _NONE), f"{at}.{key}" if at else str(key)) for key in keys]
        elif isinstance(one, list) and isinstance(two, list):
            pairs = enumerate(zip_longest(one, two, fillvalue=_NONE))
            inner = [(first, second, f"{at}[{index}]") for index, (first, second) in pairs]
        else:
            if one is _NONE:
                yield Change(at, ADDED, None, two)
            elif two is _NONE:
                yield Change(at, REMOVED, one)
            elif not same(one, two):
                yield Change(at, CHANGED, one, two)
            continue
        todo.extend(reversed(inner))


#: Stands where one side has no value.
_NONE = object()


def same(one: Any, two: Any) -> bool:
    """Return whether two values are equal as JSON: true is not 1, and 1 is not 1.0."""
    return type(one) is type(two) and bool(one == two)


#: Items of one step whose differences are told key by key.
MOST_ITEMS = 3


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: a run at a point."""

    store: Store
    state: RunState

    @property
    def reader(self) -> Reader:
        return Reader(self.store, self.state.run_id)


@dataclass(frozen=True, slots=True)
class StepDifference:
    """How one visit differs."""

    #: As people see it: `write#3`.
    step: str
    #: None: that side has not begun it.
    statuses: tuple[str | None, str | None]
    outcomes: tuple[str, str]
    outputs: Changes
    #: Artifacts that differ, by name; a long one by its keys.
    artifacts: Mapping[str, Changes]
    #: Items made on one side only, or differently: key → added, removed or changed.
    items: Mapping[str, str]
    #: How the first few of the changed items differ.
    inside: Mapping[str, Changes]
    #: USD, exact.
    usd: tuple[Decimal, Decimal]

    @property
    def same(self) -> bool:
        """Return nothing but perhaps the cost differs."""
        if self.statuses[0] != self.statuses[1] or self.outcomes[0] != self.outcomes[1]:
            return False
        return not (self.outputs or self.artifacts or self.items)

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "statuses": list(self.statuses),
            "outcomes": list(self.outcomes),
            "cost_usd": list(self.usd),
            "outputs": self.outputs.to_json(),
            "artifacts": {name: changes.to_json() for name, changes in self.artifacts.items()},
            "items": dict(self.items),
            "inside": {key: changes.to_json() for key, changes in self.inside.items()},
        }


@dataclass(frozen=True, slots=True)
class RunDifference:
    """How two points differ, the first to the second."""

    params: Changes
    settings: Changes
    context: Changes
    statuses: tuple[str, str]
    #: Visits that differ, also only in their cost.
    steps: Sequence[StepDifference]
    usd: tuple[Decimal, Decimal]
    #: Calls whose price is not known.
    unpriced: tuple[int, int]

    @property
    def same(self) -> bool:
        """Return nothing that was made differs; costs may."""
        made = all(step.same for step in self.steps)
        return made and not (self.params or self.settings or self.context) and self.statuses[0] == self.statuses[1]

    def to_json(self) -> dict[str, Any]:
        """Return the object of `diff --json`, but for the names of the two."""
        return {
            "same": self.same,
            "statuses": list(self.statuses),
            "cost_usd": list(self.usd),
            "params": self.params.to_json(),
            "settings": self.settings.to_json(),
            "context": self.context.to_json(),
            "steps": [step.to_json() for step in self.steps],
        }


def difference(one: Side, two: Side) -> RunDifference:
    """Return what differs; of each value the first MOST places are told."""
    first, second = one.state, two.state
    costs = usd_by_step(first), usd_by_step(second)
    names = {path: None for state in (first, second) for path in state.steps}
    steps = [_step(one, two, path, (costs[0].get(bare(path)), costs[1].get(bare(path)))) for path in names]
    return RunDifference(
        compare(dict(first.params), dict(second.params)),
        compare(dict(first.identity), dict(second.identity)),
        _compare(one, first.context, two, second.context),
        (first.detail or first.status, second.detail or second.status),
        [step for step in steps if not step.same or step.usd[0] != step.usd[1]],
        (first.total.usd, second.total.usd),
        (first.total.unpriced, second.total.unpriced),
    )


def _step(one: Side, two: Side, path: str, usd: tuple[Decimal | None, Decimal | None]) -> StepDifference:
    first, second = one.state.steps.get(path), two.state.steps.get(path)
    costs = usd[0] or Decimal(0), usd[1] or Decimal(0)
    if first is None or second is None:
        statuses = (first.status if first else None), (second.status if second else None)
        return StepDifference(bare(path), statuses, ("", ""), Changes([]), {}, {}, {}, costs)
    items = _items(one.state.tasks.get(path, {}), two.state.tasks.get(path, {}))
    changed = [key for key, kind in items.items() if kind == CHANGED][:MOST_ITEMS]
    return StepDifference(
        bare(path),
        (first.status, second.status),
        (first.outcome, second.outcome),
        _compare(one, first.outputs, two, second.outputs),
        _artifacts(one, first.artifacts, two, second.artifacts),
        items,
        {key: compare(_item(one, path, key), _item(two, path, key)) for key in changed},
        costs,
    )


def _compare(one: Side, before: Any, two: Side, after: Any) -> Changes:
    """Return differences of recorded values; those in blobs are read only where their hashes differ."""
    if is_reference(before) and before == after:
        return Changes([])
    return compare(_opened(one, before, after), _opened(two, after, before))


def _opened(side: Side, value: Any, other: Any) -> Any:
    """Return the value with its references read back, but those that the other side has too."""
    if is_reference(value):
        return side.reader.whole(value)
    if not isinstance(value, Mapping):
        return value
    there = other if isinstance(other, Mapping) else {}
    return {key: item if item == there.get(key) else side.reader.whole(item) for key, item in value.items()}


def _artifacts(one: Side, before: Mapping[str, str], two: Side, after: Mapping[str, str]) -> dict[str, Changes]:
    found: dict[str, Changes] = {}
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) == after.get(name):
            continue
        if name not in before or name not in after:
            kind = ADDED if name in after else REMOVED
            found[name] = Changes([Change("", kind)])
        else:
            found[name] = _blobs(one, before[name], two, after[name])
    return found


def _blobs(one: Side, before: str, two: Side, after: str) -> Changes:
    try:
        return compare(one.reader.blob(before), two.reader.blob(after))
    except CheckpointCorrupt:
        return Changes([Change("", CHANGED, before, after)])


def _items(before: Mapping[str, TaskRun], after: Mapping[str, TaskRun]) -> dict[str, str]:
    found = {}
    for key in in_order(dict.fromkeys((*before, *after)), str):
        one, two = before.get(key), after.get(key)
        if one is None or two is None:
            found[key] = ADDED if one is None else REMOVED
        elif (one.status, one.hash) != (two.status, two.hash):
            found[key] = CHANGED
    return found


def _item(side: Side, path: str, key: str) -> Any:
    task = side.state.tasks[path][key]
    return side.reader.task(path, key, task) if task.status == COMPLETED else {"error": dict(task.error or {})}
