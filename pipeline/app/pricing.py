"""What calls will cost before they are made: an estimate of a course priced four ways, or what history says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pipeline.app.expect import History, usage
from pipeline.app.work import Piece, Work
from pipeline.clock import SystemClock
from pipeline.settings import OFFLINE

if TYPE_CHECKING:
    from pipeline.engine.limits import Prices
    from pipeline.lessons.course import Course
    from pipeline.lessons.estimate import Estimate, Row
    from pipeline.lessons.schemas import Entry

#: How a course can be bought: in a batch or not, with a shared prefix cached or not.
WAYS = ("sync", "sync_uncached", "batch", "batch_uncached")
#: Which step makes which kind of call.
LABELS = {"sow": ("outline", "entry"), "lessons": ("lesson", "critic")}
#: How the source of an expectation is called.
COUNTED = "prompts, counted"


@dataclass(frozen=True, slots=True)
class Line:
    """One kind of call, priced."""

    step: str
    label: str
    calls: float
    most_calls: int
    #: Tokens of all calls together, as they usually come.
    input_tokens: int
    output_tokens: int
    #: None: the model has no known price.
    expected_usd: Decimal | None
    worst_usd: Decimal | None
    #: Expected USD of all of the course's calls of this kind, by way (WAYS).
    ways: Mapping[str, Decimal | None]
    #: Where the expectation comes from.
    source: str


@dataclass(frozen=True, slots=True)
class Item:
    """One step or lesson: made or reused, and why."""

    name: str
    #: run, reuse or skip.
    action: str
    why: str
    #: Expected calls and tokens, expected and worst cost of what is made; None: no known price.
    calls: float
    tokens: int
    expected_usd: Decimal | None
    worst_usd: Decimal | None


def priced(
    asked: Estimate, prices: Prices, model: str, at: datetime, *, batch: bool = False, history: History | None = None
) -> list[Line]:
    """Each kind of call with its price; where earlier courses tell what a kind takes, they are believed."""
    step_of = {label: step for step, labels in LABELS.items() for label in labels}
    lessons = _lessons(asked)
    rows: list[Line] = []
    for row in asked.rows:
        learned = history.kinds.get(row.label) if history is not None else None
        calls, tokens, source = row.calls, _tokens(row), COUNTED
        if learned is not None and history is not None:
            share = row.calls / sum(other.calls for other in asked.rows if other.label == row.label)
            calls = learned.calls * share * (1 if row.label == "outline" else lessons)
            tokens, source = [dict(learned.tokens)], f"{history.runs} earlier course{'' if history.runs == 1 else 's'}"
        ways = {way: _expected(calls, tokens, way, prices, model, at) for way in WAYS}
        worst = _worst(row, prices, model, at, batch=batch)
        whole = [sum(count for kind, count in each.items() if kind != "output") for each in tokens]
        rows.append(Line(
            step_of[row.label], row.label, round(calls, 1), row.most_calls, round(calls * whole[-1]),
            round(calls * tokens[-1]["output"]), ways["batch" if batch else "sync"], worst, ways, source,
        ))  # fmt: skip
    return rows


def to_pay(pieces: Iterable[Piece], lines: Sequence[Line]) -> list[Item]:
    """Each piece of a start with its calls, tokens and cost."""
    found = []
    for piece in pieces:
        parts = [_part(line, piece.shares[line.label]) for line in lines if line.label in piece.shares]
        found.append(Item(
            piece.name, piece.action, piece.why, round(sum(part.calls for part in parts), 1),
            sum(part.input_tokens + part.output_tokens for part in parts),
            total_usd(part.expected_usd for part in parts), total_usd(part.worst_usd for part in parts),
        ))  # fmt: skip
    return found


def of_start(pieces: Iterable[Piece], lines: Sequence[Line]) -> list[Line]:
    """The kinds of call that a start makes, each as far as its pieces ask for it."""
    shares: dict[str, Fraction] = {}
    for piece in pieces:
        for label, share in piece.shares.items():
            shares[label] = shares.get(label, Fraction(0)) + share
    return [_part(line, share) for line in lines if (share := shares.get(line.label, Fraction(0)))]


def _part(line: Line, share: Fraction) -> Line:
    """So much of a kind of call; what it would cost by another way stays that of the whole course."""

    def of(usd: Decimal | None) -> Decimal | None:
        return None if usd is None else usd * share.numerator / share.denominator

    return replace(
        line, calls=round(line.calls * float(share), 2), most_calls=math.ceil(line.most_calls * share),
        input_tokens=round(line.input_tokens * share), output_tokens=round(line.output_tokens * share),
        expected_usd=of(line.expected_usd), worst_usd=of(line.worst_usd),
    )  # fmt: skip


def remaining(
    course: Course,
    prompts: Mapping[str, str],
    identity: Mapping[str, Any],
    prices: Prices,
    work: Work,
    scheme: Sequence[Entry] | None = None,
    *,
    batch: bool = False,
    history: History | None = None,
) -> tuple[Decimal | None, Decimal | None]:
    """(expected, worst) USD of what a start makes; `scheme`: the course's, where there is one."""
    from pipeline.lessons.asks import Asks
    from pipeline.lessons.estimate import estimate

    asks = Asks(course, prompts, str(identity["model"]), identity.get("effort"))
    now = SystemClock().now()
    lines = priced(estimate(asks, work.total, scheme), prices, asks.model, now, batch=batch, history=history)
    items = to_pay(work.pieces(), lines)
    return total_usd(item.expected_usd for item in items), total_usd(item.worst_usd for item in items)


def total_usd(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum; None where one is unknown."""
    total = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


def _lessons(asked: Estimate) -> int:
    """How many lessons an estimate is of: each is asked for at most as often."""
    lessons = [row.most_calls for row in asked.rows if row.label == "entry"]
    once = [row.most_calls for row in asked.rows if row.label == "outline"]
    return lessons[0] // once[0] if lessons and once else 1


def _tokens(row: Row) -> list[dict[str, float]]:
    """Tokens of the first call, which writes the shared prefix to the cache, and of each later one, which reads it."""
    own: dict[str, float] = {"input": row.input_tokens, "output": row.output_tokens}
    return [{**own, "cache_write_5m": row.cached_tokens}, {**own, "cache_read": row.cached_tokens}]


def _expected(
    calls: float, tokens: Sequence[Mapping[str, float]], way: str, prices: Prices, model: str, at: datetime
) -> Decimal | None:
    if model == OFFLINE:
        return Decimal(0)
    kind, _, uncached = way.partition("_")
    tier = "batch" if kind == "batch" else None
    costs = [prices.charge(usage(each, cached=not uncached), model=model, at=at, tier=tier) for each in tokens]
    if any(cost.state != "exact" for cost in costs):
        return None
    if len(costs) == 1:
        return costs[0].low * Decimal(str(calls))
    return costs[0].low + costs[1].low * Decimal(str(max(calls - 1, 0)))


def _worst(row: Row, prices: Prices, model: str, at: datetime, *, batch: bool) -> Decimal | None:
    if model == OFFLINE:
        return Decimal(0)
    # An answer that is cut off is asked for once more with twice the cap.
    caps = (row.max_tokens, 2 * row.max_tokens)
    worst = total_usd(
        prices.worst(row.most_bytes, cap, model=model, at=at, batch=batch, added=row.added, marked=row.marked)
        for cap in caps
    )
    return None if worst is None else worst * row.most_calls
