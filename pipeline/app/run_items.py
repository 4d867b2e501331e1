"""A run's items, money and pace: how each item stands, what was spent, and what it comes to at this rate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipeline.app.run_trail import Trail
from pipeline.app.words import count
from pipeline.clock import parse_iso
from pipeline.records.charge import dollars
from pipeline.records.documents import cost_of, reported_usd
from pipeline.records.run import RunState, bare
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING
from pipeline.records.tasks import TaskTable
from pipeline.store.reader import LESSONS

#: The items of one page.
PAGE = 100
RUNNING, CUT_OFF, REUSED, INTERRUPTED, BEGUN = "running", "cut off", "reused", "interrupted", "begun"
PERSON, BATCH = "waits for a person", "waits for a batch"
#: As counts and bars show them.
ORDER = (COMPLETED, REUSED, FAILED, RUNNING, BATCH, CUT_OFF, INTERRUPTED, BEGUN, PENDING)


@dataclass(frozen=True)
class Items:
    """The items of one visit, in their order."""

    path: str
    names: Sequence[str]
    #: The state of each.
    words: Sequence[str]
    #: So many of the last are not to be made by this start: it makes a sample.
    beyond: int = 0

    @property
    def left(self) -> int:
        """Return how many are still to be made."""
        return sum(word in (PENDING, RUNNING) for word in self.words) - self.beyond

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Return how many are in each state, in the order of the bar."""
        found = Counter(self.words)
        return [(word, found[word]) for word in ORDER if found[word]]


def visits(state: RunState) -> list[str]:
    """Return the visits that have items, in order of their start."""
    begun = {path for path, _ in _begun(state)}
    return [path for path in state.steps if state.tasks.get(path) or path in begun]


def items_of(state: RunState, trail: Trail, path: str, *, owned: bool) -> Items:
    """Return how the items of a visit stand, from the fold alone.

    Args:
        owned: A living process owns the run.
    """
    table = state.tasks.get(path, {})
    ended = table.incomplete() if isinstance(table, TaskTable) else table
    others: dict[str, str] = {name: FAILED for name, task in ended.items() if task.status == FAILED}
    if state.inherited:
        others |= {name: REUSED for name, task in table.items() if task.seq <= state.inherited and name not in others}
    sent = {(call.path, call.task) for call in state.open_calls.values() if call.batch}
    word = open_word(state, owned=owned)
    for place, task in _begun(state):
        if place == path and (task not in table or task in ended):
            others[task] = BATCH if (place, task) in sent and word == RUNNING else word
    total, wanted = _lessons(state) if path == LESSONS else (0, 0)
    to_come = (f"lessons/{number}" for number in range(1, total + 1))
    others |= {name: PENDING for name in to_come if name not in table and name not in others}
    names = trail.orders[path].names([*table, *(name for name in others if name not in table)])
    words = [others.get(name, COMPLETED) for name in names] if others else [COMPLETED] * len(names)
    return Items(path, names, words, total - wanted)


def open_word(state: RunState, *, owned: bool) -> str:
    """Return how work stands that has begun and not ended: it runs only while a living process owns the run."""
    if owned:
        return RUNNING
    if state.status == IN_PROGRESS and state.detail in ("running", "interrupted"):
        return CUT_OFF if state.detail == "running" else INTERRUPTED
    return BEGUN


def _begun(state: RunState) -> Iterable[tuple[str, str]]:
    """Return (path, task) of items that have begun and have no end."""
    heard = {(path, task) for path, task, _ in state.memo if task is not None}
    return heard | state.unknown_tasks | state.submitted.keys()


def _lessons(state: RunState) -> tuple[int, int]:
    """Return how many lessons a course is to have, and how many of them this start makes."""
    sow = state.steps.get("sow#1")
    if state.pipeline != "lessons" or sow is None:
        return 0, 0
    total = int(sow.outputs.get("lesson_count") or 0)
    return total, min(int(state.execution.get("sample") or total), total)


def page(items: Items, word: str, start: int) -> tuple[list[int], int]:
    """Return the places (from 0) of a page of items, and the number (from 1) that the next one begins with; 0: none.

    Args:
        word: Only items in this state; "": all.
        start: The number of the first item.
    """
    places = range(max(start - 1, 0), len(items.names))
    found: list[int] = []
    for place in places:
        if not word or items.words[place] == word:
            if len(found) == PAGE:
                return found, place + 1
            found.append(place)
    return found, 0


# --- money and pace ------------------------------------------------------------------------------


_ZERO = Decimal(0)
#: Fewer ends of items tell no rate.
_LEAST_ENDS = 3


@dataclass(frozen=True)
class Money:
    """Hold the spend of a run and its bounds; USD."""

    spent: Decimal
    #: What may be billed beyond it; None: no upper bound is known.
    possibly: Decimal | None
    expected: Decimal | None
    #: What it comes to at this rate, and the active seconds it then has taken; None: it does not run, or nothing tells.
    at_rate: tuple[Decimal, float] | None
    ceiling: Decimal | None
    #: Calls so far, and those of unknown price among them.
    calls: int = 0
    unpriced: int = 0
    #: Of `spent`, what an imported document reported.
    imported: Decimal = _ZERO

    @property
    def most(self) -> Decimal:
        """Return the most that may have been spent, as far as that is known."""
        return self.spent + (self.possibly or _ZERO)


def seconds_left(trail: Trail, items: Items | None) -> float | None:
    """Return the active seconds that what is left of the items takes at this rate; None: nothing tells."""
    ends = [parse_iso(at).timestamp() for path, at in trail.ends if items is not None and path == items.path]
    left = items.left if items is not None else 0
    if not left or len(ends) < _LEAST_ENDS or ends[-1] <= ends[0]:
        return None
    return (ends[-1] - ends[0]) / (len(ends) - 1) * left


def money_of(
    state: RunState, trail: Trail, items: Items | None, expected: Decimal | None, active: float | None
) -> Money:
    """Return what is known of a run's money.

    Args:
        expected: What all of it was expected to cost.
        active: Seconds that its owners have worked up to now, while it runs; None: it does not.
    """
    cost, ceiling = cost_of(state), state.execution.get("max_cost_usd")
    spent = cost.known
    left, at_rate = seconds_left(trail, items), None
    if items is not None and left is not None and active is not None and spent:
        step = bare(items.path)
        paid = sum((spend.usd + spend.low for key, spend in state.spend.items() if key.step == step), _ZERO)
        made = sum(word in (COMPLETED, FAILED) for word in items.words)
        at_rate = (spent + (paid / made * items.left if made else _ZERO), active + left)
    return Money(
        spent, cost.possibly, expected, at_rate, None if ceiling is None else Decimal(str(ceiling)),
        state.total.calls, cost.unpriced, reported_usd(state),
    )  # fmt: skip


def _calls(money: Money) -> Iterator[str]:
    """Yield what is said beside the sum: of how many calls it is."""
    if money.calls or not money.imported:
        yield count(money.calls, "call")
    if money.unpriced:
        yield f"{money.unpriced:,} of unknown price"
    if money.imported:
        yield f"{dollars(money.imported)} imported"


def figures(money: Money) -> list[dict[str, Any]]:
    """Return the legend: key of its line, word, amount, and what is to be said beside it."""
    more = "no upper bound known" if money.possibly is None else f"to {dollars(money.most)}" if money.possibly else ""
    rows = [
        ("spent", "Spent", money.spent, ", ".join(_calls(money))),
        ("possibly", "Possibly more", money.possibly, more),
        ("expected", "Expected", money.expected, "the whole course" if money.expected else ""),
        ("rate", "At this rate", money.at_rate[0] if money.at_rate else None, ""),
        ("ceiling", "Ceiling", money.ceiling, ""),
    ]
    return [
        {"key": key, "word": word, "usd": None if usd is None else float(usd), "note": note}
        for key, word, usd, note in rows
        if usd or note or key == "spent"
    ]
