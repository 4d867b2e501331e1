"""What a start would do and cost, and why: every step and lesson, run or reused; shown by --dry-run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.app.course import changed_settings, pinned, scheme_of, work_of
from pipeline.app.executors import check_executor
from pipeline.app.expect import expectations
from pipeline.app.identity import identity_of
from pipeline.app.pricing import COUNTED, WAYS, Line, of_start, priced, to_pay, total_usd
from pipeline.app.pricing import Item as Item
from pipeline.app.start import author_kind, execution, model_name, open_store
from pipeline.clock import SystemClock
from pipeline.records.charge import dollars, in_full
from pipeline.settings import DEFAULT_MODEL, OFFLINE, LessonsOptions

if TYPE_CHECKING:
    from pipeline.lessons.asks import Asks
    from pipeline.lessons.course import Course
    from pipeline.lessons.schemas import Entry
    from pipeline.llm.base import Request
    from pipeline.records.run import RunState
    from pipeline.store.base import Store

_WAYS = {
    "sync": "as it is", "sync_uncached": "without caching", "batch": "with --batch",
    "batch_uncached": "with --batch, without caching",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """What a start would do."""

    title: str
    model: str
    author: str
    lessons: int
    ceiling_usd: Decimal | None
    #: Kinds of call of the whole course.
    rows: Sequence[Line]
    requests: Sequence[Request] = ()
    #: Models it was also priced for: id → expected USD.
    others: Mapping[str, Decimal | None] = field(default_factory=dict)
    items: Sequence[Item] = ()
    #: The run that the plain command would go on with; "" for a new one.
    run: str = ""
    #: What the prompts are made from; `scheme` None: there is none yet.
    asks: Asks | None = None
    scheme: Sequence[Entry] | None = None
    #: Kinds of call that this start makes.
    made: Sequence[Line] = ()

    @property
    def expected_usd(self) -> Decimal | None:
        """What is left usually costs; None where a price is missing."""
        return total_usd(item.expected_usd for item in self.items)

    @property
    def worst_usd(self) -> Decimal | None:
        """No more than this, every revision, retry and token counted; None where a price is missing."""
        return total_usd(item.worst_usd for item in self.items)

    @property
    def ways(self) -> dict[str, Decimal | None]:
        """What the whole course usually costs by way (WAYS)."""
        return {way: total_usd(row.ways.get(way) for row in self.rows) for way in WAYS}

    @property
    def source(self) -> str:
        """Where the expectations come from."""
        found = dict.fromkeys(row.source for row in self.rows)
        return " and ".join(found) or COUNTED

    def to_json(self) -> dict[str, Any]:
        """As --dry-run --json prints it: money as numbers."""
        rows = [{name: _plain(getattr(row, name)) for name in Line.__slots__} for row in self.made]
        items = [{name: _plain(getattr(item, name)) for name in Item.__slots__} for item in self.items]
        return {
            "estimated": True, "course": self.title, "model": self.model, "author": self.author,
            "lessons": self.lessons, "run": self.run or None, "ceiling_usd": _plain(self.ceiling_usd),
            "expected_usd": _plain(self.expected_usd), "worst_usd": _plain(self.worst_usd), "source": self.source,
            "ways": _plain(self.ways), "items": items, "calls": rows,
            "prompts": [request.to_json() for request in self.requests],
        }  # fmt: skip

    def prompts(self) -> Iterator[tuple[str, str]]:
        """(name, text) of every call's first prompt, and of one correction, for people."""
        from pipeline.lessons.estimate import prompts_of

        assert self.asks is not None
        for prompt in prompts_of(self.asks, self.lessons, self.scheme):
            title = f"── prompt: {prompt.name}{' (estimated)' if prompt.estimated else ''} "
            yield prompt.name, "\n".join([title + "─" * 40, *_texts(prompt.request)])

    def costs(self) -> Iterator[str]:
        """What it costs, for people, after the table."""
        yield f"Costs are expected from: {self.source}."
        for row in self.made:
            yield (
                f"  {row.label:<8} {row.calls:6.0f} call{'' if round(row.calls) == 1 else 's'} "
                f"(at most {row.most_calls}), {row.input_tokens:,} tokens in, "
                f"{row.output_tokens:,} out: expected {_usd(row.expected_usd)}, at worst {_usd(row.worst_usd)}"
            )
        if self.model != OFFLINE:
            ways = self.ways
            yield "The whole course: " + "; ".join(f"{text} {_usd(ways[way])}" for way, text in _WAYS.items())
        yield f"Expected cost: {_usd(self.expected_usd)}"
        for model, usd in self.others.items():
            yield f"With --model {model} the expected cost is {_usd(usd)}."
        ceiling = "none" if self.ceiling_usd is None else in_full(self.ceiling_usd)
        yield f"Ceiling: {ceiling} (--max-cost-usd); a run stops, resumably, before it passes it."


def plan(options: LessonsOptions) -> Plan:
    """What the lessons command would do with these options; needs no credential and touches nothing.

    Raises:
        ConfigError: Unknown course, or a setting out of range.
    """
    from pipeline.cost.prices import PriceBook
    from pipeline.engine.missing_values import find as find_lost
    from pipeline.lessons.asks import Asks
    from pipeline.lessons.catalogue import Catalogue
    from pipeline.lessons.estimate import estimate
    from pipeline.lessons.prompts import load_prompts

    check_executor(options)
    course = Catalogue(options.catalogue).course(options.subject, options.level)
    model = options.model or model_name(None)
    store = open_store(options.store_url)
    prompts, scheme, state = load_prompts(), None, _continued(store, options, course, model)
    how = execution(options, state.execution if state else {})
    identity: Mapping[str, Any] = {"effort": options.effort, "lessons": options.lessons}
    changed: Mapping[str, Any] = {}
    if state is not None and state.pins:
        changed, pins = changed_settings(options, state)
        identity = {**state.identity, **changed}
        model = str(identity.get("model") or model)
        course, prompts = pinned(store, state, pins)
        scheme = None if changed else scheme_of(store, state)
    if state is not None:
        find_lost(store, state).forget(state)
    lessons = int(identity.get("lessons") or options.lessons)
    asks = Asks(course, prompts, model, identity.get("effort"))
    asked = estimate(asks, lessons, scheme)
    prices, now = PriceBook(Path(how["prices"]) if how["prices"] else None), SystemClock().now()
    history = expectations(options, model, course.subject)
    rows = priced(asked, prices, model, now, batch=bool(how["batch"]), history=history)
    pieces = list(work_of(options, lessons, state, changed).pieces())
    others = {}
    if model == OFFLINE:
        # Another author's course: what this one has made is none of its work.
        others = {DEFAULT_MODEL: plan(replace(options, model=DEFAULT_MODEL)).expected_usd}
    ceiling = None if how["max_cost_usd"] is None else Decimal(str(how["max_cost_usd"]))
    return Plan(
        course.title, model, author_kind(model), lessons, ceiling, rows, asked.requests, others,
        to_pay(pieces, rows), state.run_id if state else "", asks, scheme, of_start(pieces, rows),
    )  # fmt: skip


def _continued(store: Store, options: LessonsOptions, course: Course, model: str) -> RunState | None:
    """The run that the plain command would go on with, or leave as it is."""
    from pipeline.lessons.again import choose_run
    from pipeline.store.base import Claim
    from pipeline.store.reading import load

    if options.force:
        return None
    claim = Claim("lessons", course.subject, course.level, author_kind(model))
    choice = choose_run(store.heads(), claim, identity_of(options, model, course)[0], SystemClock().now())
    return load(store, choice.run) if choice.kind != "new" else None


def _texts(request: Request) -> Iterator[str]:
    for part in request.system:
        yield part.text
    for turn in request.messages:
        yield f"── {turn.role} " + "─" * 40
        yield turn.text


def _usd(amount: Decimal | None) -> str:
    return "unknown" if amount is None else dollars(amount)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return float(value) if isinstance(value, Decimal) else value
