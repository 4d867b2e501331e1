"""What a start would do and cost: the estimate priced; shown before the first call, and by --dry-run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeline.app.start import author_kind, model_name
from pipeline.clock import SystemClock
from pipeline.settings import DEFAULT_MODEL, OFFLINE, LessonsOptions

if TYPE_CHECKING:
    from pipeline.engine.entries import Prices
    from pipeline.lessons.course import Course
    from pipeline.lessons.estimate import Estimate, Row
    from pipeline.llm.base import Request

_STEPS = ("seed", "sow", "lessons", "publish")
#: Which step makes which kind of call.
_LABELS = {"sow": ("outline", "entry"), "lessons": ("lesson", "critic")}
_CENT = Decimal("0.01")


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


@dataclass(frozen=True, slots=True)
class Plan:
    """What a start would do."""

    title: str
    model: str
    author: str
    lessons: int
    ceiling_usd: Decimal | None
    rows: Sequence[Line]
    requests: Sequence[Request] = ()
    #: Models it was also priced for: id → expected USD.
    others: Mapping[str, Decimal | None] = field(default_factory=dict)

    @property
    def expected_usd(self) -> Decimal | None:
        """What it usually costs; None where a price is missing."""
        return _sum(row.expected_usd for row in self.rows)

    @property
    def worst_usd(self) -> Decimal | None:
        """No more than this, every revision, retry and token counted; None where a price is missing."""
        return _sum(row.worst_usd for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """As --dry-run --json prints it: money as numbers."""
        rows = [{name: _plain(getattr(row, name)) for name in Line.__slots__} for row in self.rows]
        return {
            "estimated": True, "course": self.title, "model": self.model, "author": self.author,
            "lessons": self.lessons, "ceiling_usd": _plain(self.ceiling_usd),
            "expected_usd": _plain(self.expected_usd), "worst_usd": _plain(self.worst_usd), "calls": rows,
            "prompts": [request.to_json() for request in self.requests],
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """As --dry-run prints it: the steps, every prompt as it would be sent, then the costs."""
        yield f"{self.title}, {self.lessons} lessons, model {self.model}. Nothing is made and nobody is asked."
        yield ""
        for number, step in enumerate(_STEPS, 1):
            calls = sum(row.calls for row in self.rows if row.step == step)
            note = f"about {calls:.0f} calls" if calls else "no calls"
            yield f"Step {number}/{len(_STEPS)}: {step.upper()} · {note}"
        for request in self.requests:
            yield from _prompt(request)
        yield ""
        yield from self._costs()

    def _costs(self) -> Iterator[str]:
        yield "Costs, estimated (the scheme does not exist yet; the offline author's stands in for it):"
        for row in self.rows:
            yield (
                f"  {row.label:<8} {row.calls:6.0f} calls (at most {row.most_calls}), {row.input_tokens:,} tokens in, "
                f"{row.output_tokens:,} out: expected {_usd(row.expected_usd)}, at worst {_usd(row.worst_usd)}"
            )
        yield f"Expected cost: {_usd(self.expected_usd)}"
        for model, usd in self.others.items():
            yield f"With --model {model} the expected cost is {_usd(usd)}."
        ceiling = "none" if self.ceiling_usd is None else _usd(self.ceiling_usd)
        yield f"Ceiling: {ceiling} (--max-cost-usd); a run stops, resumably, before it passes it."


def _prompt(request: Request) -> Iterator[str]:
    yield ""
    yield f"── prompt: {request.label} (estimated) " + "─" * 40
    for part in request.system:
        yield part.text
    for turn in request.messages:
        yield f"── {turn.role} " + "─" * 40
        yield turn.text


def plan(options: LessonsOptions) -> Plan:
    """What the lessons command would do with these options; needs no credential and touches nothing.

    Raises:
        ConfigError: Unknown course, or a setting out of range.
    """
    from pipeline.cost.prices import PriceBook
    from pipeline.lessons.asks import Asks
    from pipeline.lessons.catalogue import Catalogue
    from pipeline.lessons.estimate import estimate
    from pipeline.lessons.prompts import load_prompts

    course = Catalogue(options.catalogue).course(options.subject, options.level)
    model = options.model or model_name(None)
    prices, now = PriceBook(options.prices), SystemClock().now()
    asked = estimate(Asks(course, load_prompts(), model, options.effort), options.lessons)
    rows = priced(asked, prices, model, now)
    others = {}
    if model == OFFLINE:
        others = {DEFAULT_MODEL: _sum(row.expected_usd for row in priced(asked, prices, DEFAULT_MODEL, now))}
    return Plan(
        course.title, model, author_kind(model), options.lessons, options.max_cost_usd, rows, asked.requests, others
    )


def remaining(
    course: Course,
    prompts: Mapping[str, str],
    identity: Mapping[str, Any],
    prices: Prices,
    *,
    sow_done: bool,
    lessons_done: int,
) -> tuple[Decimal | None, Decimal | None]:
    """(expected, worst) USD of what a run still has to make."""
    from pipeline.lessons.asks import Asks
    from pipeline.lessons.estimate import estimate

    total = int(identity.get("lessons") or 1)
    left = max(total - lessons_done, 0)
    share = {"sow": Decimal(0 if sow_done else 1), "lessons": Decimal(left) / total}
    asks = Asks(course, prompts, str(identity["model"]), identity.get("effort"))
    rows = priced(estimate(asks, total), prices, asks.model, SystemClock().now())
    expected = _sum(None if row.expected_usd is None else row.expected_usd * share[row.step] for row in rows)
    worst = _sum(None if row.worst_usd is None else row.worst_usd * share[row.step] for row in rows)
    return expected, worst


def priced(asked: Estimate, prices: Prices, model: str, at: datetime) -> list[Line]:
    """Each kind of call with its price."""
    step_of = {label: step for step, labels in _LABELS.items() for label in labels}
    return [_line(row, step_of[row.label], prices, model, at) for row in asked.rows]


def _line(row: Row, step: str, prices: Prices, model: str, at: datetime) -> Line:
    tokens = round(row.calls * (row.input_tokens + row.cached_tokens)), round(row.calls * row.output_tokens)
    if model == OFFLINE:
        free = Decimal(0)
        return Line(step, row.label, row.calls, row.most_calls, *tokens, free, free)
    # The first call writes the shared prefix to the cache, the others read it.
    usage = {"input_tokens": row.input_tokens, "output_tokens": row.output_tokens}
    first = prices.charge({**usage, "cache_creation_input_tokens": row.cached_tokens}, model=model, at=at)
    later = prices.charge({**usage, "cache_read_input_tokens": row.cached_tokens}, model=model, at=at)
    expected = None
    if first.state == later.state == "exact":
        expected = first.low + later.low * Decimal(str(max(row.calls - 1, 0)))
    worst = _sum(
        # An answer that is cut off is asked for once more with twice the cap.
        prices.worst(row.most_bytes, cap, model=model, at=at)
        for cap in (row.max_tokens, 2 * row.max_tokens)
    )
    return Line(
        step, row.label, row.calls, row.most_calls, *tokens, expected, None if worst is None else worst * row.most_calls
    )


def _sum(amounts: Any) -> Decimal | None:
    total = Decimal(0)
    for amount in amounts:
        if amount is None:
            return None
        total += amount
    return total


def _usd(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"${amount.quantize(_CENT):,}"


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
