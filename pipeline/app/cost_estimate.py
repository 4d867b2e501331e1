"""What calls will cost before they are made: an estimate of a course, or what earlier ones took, priced four ways."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

from pipeline.app.course_work import LESSON_CALLS, CourseWork, Piece
from pipeline.app.stores import open_store
from pipeline.clock import SystemClock
from pipeline.content.lesson import LESSON_SCHEMA
from pipeline.engine.ceiling import Prices
from pipeline.lessons.asks import Asks
from pipeline.lessons.course import Course
from pipeline.lessons.estimate import Estimate, Row, estimate
from pipeline.lessons.schemas import Entry
from pipeline.records.charge import TOKEN_KINDS
from pipeline.records.statuses import COMPLETED
from pipeline.records.structure import count
from pipeline.settings import OFFLINE
from pipeline.store.base import Head

#: How a course can be bought: in a batch or not, with a shared prefix cached or not.
WAYS = ("sync", "sync_uncached", "batch", "batch_uncached")
#: Which step makes which kind of call.
_STEPS = {"outline": "sow", "entry": "sow", **dict.fromkeys(LESSON_CALLS, "lessons")}
#: The kind of call that a course may do without.
_CORRECTION = "correction"
#: Kinds of call that begin with what another kind has written to the cache.
_SHARED = {_CORRECTION: "lesson"}
#: The source of an expectation that no earlier course gives.
COUNTED = "prompts, counted"
#: The newest so many completed courses count.
RUNS = 20


@dataclass(frozen=True, slots=True)
class LearnedKind:
    """One kind of call, as it came in earlier courses."""

    #: Calls of a course (outline), or of a lesson (the others), failed and repeated ones included.
    calls: float
    #: Billed tokens of one call by kind.
    tokens: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CourseHistory:
    """Averages over completed courses by one model."""

    runs: int
    kinds: Mapping[str, LearnedKind]

    @property
    def source(self) -> str:
        """Return where expectations from it come from."""
        return f"{self.runs} earlier course{'' if self.runs == 1 else 's'}" if self.runs else COUNTED


@dataclass(frozen=True, slots=True)
class CallEstimate:
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
    #: Of the expectation: what the first call costs more than the others, as it writes to the cache.
    first_usd: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class PlanItem:
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


def expectations(store: str, model: str, subject: str) -> CourseHistory:
    """Return what earlier courses of a store suggest for the next one."""
    return learn(open_store(store).heads(), model, subject)


def learn(heads: Iterable[Head], model: str, subject: str = "") -> CourseHistory:
    """Return what the newest completed courses by a model took, of the same subject where there are any.

    Reads heads only, so it costs the same however long the runs were.
    """
    documents = [head.document for head in islice((head for head in heads if _counts(head, model)), RUNS)]
    chosen = [document for document in documents if document.get("subject") == subject] or documents
    calls: dict[str, int] = {}
    units: dict[str, int] = {}
    tokens: dict[str, dict[str, int]] = {}
    for document in chosen:
        lessons = int((document.get("identity") or {}).get("lessons") or 1)
        for label in {str(row.get("label")) for row in document.get("spend") or ()}:
            # A course has one outline; of the other kinds it has some for each lesson.
            units[label] = units.get(label, 0) + (1 if label == "outline" else lessons)
        for row in document.get("spend") or ():
            label = str(row.get("label"))
            calls[label] = calls.get(label, 0) + int(row.get("calls") or 0)
            table = tokens.setdefault(label, {})
            for kind, number in (row.get("tokens") or {}).items():
                table[kind] = table.get(kind, 0) + int(number)
    kinds = {
        label: LearnedKind(number / units[label], {kind: total / number for kind, total in tokens[label].items()})
        for label, number in calls.items()
        if number and sum(tokens[label].values())
    }
    return CourseHistory(len(chosen), kinds)


def _counts(head: Head, model: str) -> bool:
    document = head.document
    identity = document.get("identity") or {}
    return (
        not head.corrupt
        and document.get("pipeline") == "lessons"
        and document.get("status") == COMPLETED
        and identity.get("model") == model
        # Lessons of another schema have another length.
        and identity.get("lesson_schema") == LESSON_SCHEMA[1]
        and bool(document.get("spend"))
        and not count(identity.get("lessons") or 1)
    )


def usage(tokens: Mapping[str, float], *, cached: bool = True) -> dict[str, Any]:
    """Return tokens by our kinds as a provider's usage object; `cached` False: as if nothing had been cached."""
    counts = {kind: round(tokens.get(kind, 0)) for kind in TOKEN_KINDS}
    if not cached:
        return {"input_tokens": sum(counts.values()) - counts["output"], "output_tokens": counts["output"]}
    return {
        "input_tokens": counts["input"],
        "output_tokens": counts["output"],
        "cache_read_input_tokens": counts["cache_read"],
        "cache_creation_input_tokens": counts["cache_write_5m"] + counts["cache_write_1h"],
        "cache_creation": {
            "ephemeral_5m_input_tokens": counts["cache_write_5m"],
            "ephemeral_1h_input_tokens": counts["cache_write_1h"],
        },
    }


def priced(
    asked: Estimate,
    prices: Prices,
    model: str,
    at: datetime,
    *,
    batch: bool = False,
    history: CourseHistory | None = None,
) -> list[CallEstimate]:
    """Return each kind of call with its price; what earlier courses took counts more than the estimate."""
    most = {row.label: row.most_calls for row in reversed(asked.rows) if row.label in ("entry", "outline")}
    lessons = most["entry"] // most["outline"] if len(most) == 2 else 1
    pricing, found, written = _Pricing(prices, model, at), [], set[str]()
    for row in asked.rows:
        learned = history.kinds.get(row.label) if history is not None else None
        calls, source = row.calls, COUNTED
        own: dict[str, float] = {"input": row.input_tokens, "output": row.output_tokens}
        # The first call writes the shared prefix to the cache, and each later one reads it.
        tokens = [{**own, "cache_write_5m": row.cached_tokens}, {**own, "cache_read": row.cached_tokens}]
        prefix = _SHARED.get(row.label, row.label)
        tokens = tokens[prefix in written :]
        written.add(prefix)
        if learned is not None and history is not None:
            share = row.calls / sum(other.calls for other in asked.rows if other.label == row.label)
            calls = learned.calls * share * (1 if row.label == "outline" else lessons)
            # Lessons of one type are longer than those of another.
            same = [other for other in asked.rows if other.label == row.label]
            usual = sum(other.calls * other.output_tokens for other in same) / sum(other.calls for other in same)
            output = learned.tokens.get("output", 0) * row.output_tokens / usual
            tokens, source = [{**learned.tokens, "output": output}], history.source
        elif history is not None and history.runs and row.label == _CORRECTION:
            # The courses that are known needed none.
            calls = 0.0
        ways = {each: pricing.expected(calls, tokens, each) for each in WAYS}
        way = "batch" if batch else "sync"
        inputs = sum(number for kind, number in tokens[-1].items() if kind != "output")
        found.append(CallEstimate(
            _STEPS[row.label], row.label, round(calls, 1), row.most_calls, round(calls * inputs),
            round(calls * tokens[-1]["output"]), ways[way],
            pricing.worst(row, batch=batch), ways, source, pricing.first(calls, tokens, way),
        ))  # fmt: skip
    return found


@dataclass(frozen=True, slots=True)
class _Pricing:
    """The prices of one model at one moment."""

    prices: Prices
    model: str
    at: datetime

    def first(self, calls: float, tokens: Sequence[Mapping[str, float]], way: str) -> Decimal:
        """Return what the first call costs more than a later one."""
        first, later = (self.expected(min(calls, 1), [each], way) for each in (tokens[0], tokens[-1]))
        return Decimal(0) if first is None or later is None else first - later

    def expected(self, calls: float, tokens: Sequence[Mapping[str, float]], way: str) -> Decimal | None:
        """Return what calls usually cost, the first with the first of `tokens`; None: the model has no known price."""
        if self.model == OFFLINE:
            return Decimal(0)
        kind, _, uncached = way.partition("_")
        tier = "batch" if kind == "batch" else None
        usages = [usage(each, cached=not uncached) for each in tokens]
        costs = [self.prices.charge(each, model=self.model, at=self.at, tier=tier) for each in usages]
        if any(cost.state != "exact" for cost in costs):
            return None
        if len(costs) == 1:
            return costs[0].low * Decimal(str(calls))
        return costs[0].low * Decimal(str(min(calls, 1))) + costs[1].low * Decimal(str(max(calls - 1, 0)))

    def worst(self, row: Row, *, batch: bool) -> Decimal | None:
        """Return the most that all calls of a kind can cost; None: the model has no known price."""
        if self.model == OFFLINE:
            return Decimal(0)
        # An answer that is cut off is asked for once more with twice the cap.
        worst = total_usd(
            self.prices.worst(row.most_bytes, cap, model=self.model, at=self.at, batch=batch, added=row.added,
                              marked=row.marked)
            for cap in (row.max_tokens, 2 * row.max_tokens)
        )  # fmt: skip
        return None if worst is None else worst * row.most_calls


def to_pay(pieces: Iterable[Piece], kinds: Sequence[CallEstimate]) -> list[PlanItem]:
    """Return each piece of a start with its calls, tokens and cost."""
    found, begun = [], set[int]()
    for piece in pieces:
        asked = {place: kind for place, kind in enumerate(kinds) if kind.label in piece.shares}
        # The first piece that asks for a kind of call pays for its prefix.
        parts = [_part(kind, piece.shares[kind.label], first=place not in begun) for place, kind in asked.items()]
        begun |= asked.keys()
        found.append(PlanItem(
            piece.name, piece.action, piece.why, round(sum(part.calls for part in parts), 1),
            sum(part.input_tokens + part.output_tokens for part in parts),
            total_usd(part.expected_usd for part in parts), total_usd(part.worst_usd for part in parts),
        ))  # fmt: skip
    return found


def of_start(pieces: Iterable[Piece], kinds: Sequence[CallEstimate]) -> list[CallEstimate]:
    """Return the kinds of call that a start makes, each as far as its pieces ask for it."""
    shares: dict[str, Fraction] = {}
    for piece in pieces:
        for label, share in piece.shares.items():
            shares[label] = shares.get(label, Fraction(0)) + share
    return [_part(kind, share) for kind in kinds if (share := shares.get(kind.label, Fraction(0)))]


def _part(kind: CallEstimate, share: Fraction, *, first: bool = True) -> CallEstimate:
    """Return so much of a kind of call, the first one in it or not; by other ways its cost stays the whole course's."""

    def of(usd: Decimal | None, once: Decimal = Decimal(0)) -> Decimal | None:
        return None if usd is None else (usd - once) * share.numerator / share.denominator + first * once

    return replace(
        kind, calls=round(kind.calls * float(share), 2), most_calls=math.ceil(kind.most_calls * share),
        input_tokens=round(kind.input_tokens * share), output_tokens=round(kind.output_tokens * share),
        expected_usd=of(kind.expected_usd, kind.first_usd), worst_usd=of(kind.worst_usd),
    )  # fmt: skip


def remaining(
    course: Course,
    prompts: Mapping[str, str],
    identity: Mapping[str, Any],
    prices: Prices,
    work: CourseWork,
    scheme: Sequence[Entry] | None = None,
    *,
    batch: bool = False,
    history: CourseHistory | None = None,
) -> tuple[Decimal | None, Decimal | None]:
    """Return (expected, worst) USD of what a start makes; `scheme`: the course's, where there is one."""
    solved = identity.get("blind_solve") is not False
    asks = Asks(course, prompts, str(identity["model"]), identity.get("effort"), solved)
    asked, now = estimate(asks, work.total, scheme), SystemClock().now()
    items = to_pay(work.pieces(), priced(asked, prices, asks.model, now, batch=batch, history=history))
    return total_usd(item.expected_usd for item in items), total_usd(item.worst_usd for item in items)


def total_usd(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """Return the sum; None where one is unknown."""
    total = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total
