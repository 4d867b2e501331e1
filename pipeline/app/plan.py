"""What a start or a fork would do and cost, and why: every step and lesson, run or reused; shown by --dry-run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any

from pipeline.app.cost_estimate import (
    COUNTED,
    WAYS,
    CallEstimate,
    PlanItem,
    expectations,
    learn,
    of_start,
    priced,
    to_pay,
    total_usd,
)
from pipeline.app.course import rest_of_run, work_of
from pipeline.app.course_identity import (
    changed_settings,
    identity_of,
    pinned,
    scheme_of,
    todays_prompts,
    unwritten_note,
)
from pipeline.app.course_work import CourseWork
from pipeline.app.executors import check_executor
from pipeline.app.limits import ShortLimit, short_limits
from pipeline.app.model_choice import (
    author_kind,
    check_able,
    check_asked_model,
    default_model,
    has_credential,
    prices_for,
    provider_in,
    with_own,
)
from pipeline.app.start import settings_now
from pipeline.app.stores import open_store
from pipeline.app.travel import changes_of, meant
from pipeline.clock import SystemClock
from pipeline.engine.missing_values import find as find_lost
from pipeline.export.base import checked, listed
from pipeline.lessons.asks import Asks
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.estimate import estimate, prompts_of
from pipeline.lessons.prompts import load_prompts
from pipeline.lessons.run_selection import choose_run
from pipeline.lessons.schemas import Entry
from pipeline.llm.base import Request
from pipeline.providers import ANTHROPIC, takes_batches
from pipeline.records.charge import BATCH
from pipeline.records.run import RunState, bare
from pipeline.settings import DEFAULT_MODEL, OFFLINE, Execution, Identity
from pipeline.store.base import Claim, Store
from pipeline.store.reader import load
from pipeline.travel.fork import Forked
from pipeline.travel.fork import plan_fork as planned_fork
from pipeline.travel.values import usd_by_step


@dataclass(frozen=True, slots=True)
class CoursePlan:
    """What a start would do."""

    title: str
    model: str
    author: str
    lessons: int
    ceiling_usd: Decimal | None
    #: Kinds of call of the whole course.
    rows: Sequence[CallEstimate]
    requests: Sequence[Request] = ()
    #: Models it was also priced for: id → expected USD.
    others: Mapping[str, Decimal | None] = field(default_factory=dict)
    items: Sequence[PlanItem] = ()
    #: The run that the plain command would resume; "" for a new one.
    run: str = ""
    #: What the prompts are made from; `scheme` None: there is none yet.
    asks: Asks | None = None
    scheme: Sequence[Entry] | None = None
    #: Kinds of call that this start makes.
    made: Sequence[CallEstimate] = ()
    #: What a person should know of what will not be written; "" if nothing.
    note: str = ""
    #: Whom the model is asked of.
    provider: str = ANTHROPIC
    #: Limits of the store that have less left than is expected.
    short: Sequence[ShortLimit] = ()

    @property
    def expected_usd(self) -> Decimal | None:
        """Return what is left usually costs; None where a price is missing."""
        return total_usd(item.expected_usd for item in self.items)

    @property
    def worst_usd(self) -> Decimal | None:
        """Return the upper bound, every revision, retry and token counted; None where a price is missing."""
        return total_usd(item.worst_usd for item in self.items)

    @property
    def ways(self) -> dict[str, Decimal | None]:
        """Return what the whole course usually costs by way (WAYS); None where the provider has no such way."""
        there = [way for way in WAYS if takes_batches(self.provider) or not way.startswith(BATCH)]
        return {way: total_usd(row.ways.get(way) for row in self.rows) if way in there else None for way in WAYS}

    @property
    def source(self) -> str:
        """Return where the expectations come from."""
        return " and ".join(dict.fromkeys(row.source for row in self.rows)) or COUNTED

    def to_json(self) -> dict[str, Any]:
        """Return the object of --dry-run --json."""
        return {
            "estimated": True, "course": self.title, "model": self.model, "provider": self.provider,
            "author": self.author,
            "lessons": self.lessons, "run": self.run or None, "ceiling_usd": self.ceiling_usd,
            "expected_usd": self.expected_usd, "worst_usd": self.worst_usd, "source": self.source, "ways": self.ways,
            "note": self.note, "short_limits": [each.to_json() for each in self.short],
            "items": list(map(asdict, self.items)), "calls": list(map(asdict, self.made)),
            "prompts": [request.to_json() for request in self.requests],
        }  # fmt: skip

    def prompts(self) -> Iterator[tuple[str, str]]:
        """Yield (name, text) of every call's first prompt, and of one correction, for people."""
        assert self.asks is not None
        for prompt in prompts_of(self.asks, self.lessons, self.scheme):
            lines = [f"── prompt: {prompt.name}{' (estimated)' if prompt.estimated else ''} " + "─" * 40]
            lines += [part.text for part in prompt.request.system]
            for turn in prompt.request.messages:
                lines += [f"── {turn.role} " + "─" * 40, turn.text]
            yield prompt.name, "\n".join(lines)


def plan(asked: Identity, execution: Execution) -> CoursePlan:
    """Return what the lessons command would do with these settings; needs no credential and changes nothing.

    Raises:
        ConfigError: Unknown course, a model that its provider has not, or a setting out of range.
    """
    check_executor(execution)
    course = Catalogue(asked.catalogue).course(asked.subject, asked.level)
    asked, _ = with_own(asked)
    now = SystemClock().now()
    model = asked.model or (default_model(asked.provider) if asked.provider or has_credential() else OFFLINE)
    provider = asked.provider or ANTHROPIC
    store, prompts, scheme, state = open_store(execution.store_url), load_prompts(course.to_json()), None, None
    if not execution.force:
        claim = Claim("lessons", course.subject, course.level, author_kind(model))
        choice = choose_run(store.heads(), claim, identity_of(asked, model, course)[0], now)
        state = load(store, choice.run) if choice.kind != "new" else None
    how = settings_now(execution, state.execution if state else {})
    checked(listed(how["downloads"]))
    identity: Mapping[str, Any] = {"effort": asked.effort, "lessons": asked.lessons, "blind_solve": asked.blind_solve}
    changed: Mapping[str, Any] = {}
    if state is not None and state.pins:
        changed, pins = changed_settings(store, asked, state, accept=execution.accept_changes)
        pins |= todays_prompts(store, state, pins)
        identity = {**state.identity, **changed}
        model, provider = str(identity.get("model") or model), provider_in(identity)
        course, prompts = pinned(store, state, pins)
        scheme = None if changed else scheme_of(store, state)
    check_asked_model(model, provider, how["base_url"])
    if state is not None:
        find_lost(store, state).forget(state)
    lessons = int(identity.get("lessons") or asked.lessons)
    asks = Asks(course, prompts, model, identity.get("effort"), identity.get("blind_solve") is not False)
    calls = estimate(asks, lessons, scheme)
    if model != OFFLINE:
        check_able(provider, how)
    prices = prices_for(how, provider)
    history = expectations(execution.store_url, model, course.subject)
    rows = priced(calls, prices, model, now, batch=bool(how["batch"]), history=history)
    pieces = list(work_of(execution, lessons, state, changed).pieces())
    others = {}
    if model == OFFLINE:
        # Another author's course: what this one has made is none of its work.
        others = {DEFAULT_MODEL: plan(replace(asked, model=DEFAULT_MODEL), execution).expected_usd}
    ceiling = None if how["max_cost_usd"] is None else Decimal(str(how["max_cost_usd"]))
    items = to_pay(pieces, rows)
    expected, worst = total_usd(item.expected_usd for item in items), total_usd(item.worst_usd for item in items)
    short = short_limits(execution.store_url, how, expected, worst)
    return CoursePlan(
        course.title, model, author_kind(model), lessons, ceiling, rows, calls.requests, others,
        items, state.run_id if state else "", asks, scheme, of_start(pieces, rows),
        unwritten_note(asked, model, course), OFFLINE if model == OFFLINE else provider, short,
    )  # fmt: skip


def expected_of(store: Store, state: RunState) -> Decimal | None:
    """Return what all of a run's course usually costs (USD); None: it is of no course, or its model has no price.

    Raises:
        CheckpointCorrupt: The course that it is pinned to cannot be read.
    """
    how, identity = state.execution, state.identity
    if state.pipeline != "lessons" or identity.get("author") == OFFLINE or "catalogue" not in state.pins:
        return None
    work = CourseWork(int(identity.get("lessons") or 1), None, how.get("until"), how.get("sample"))
    return rest_of_run(store, state, how, work, {})[0]


# --- a fork --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """Describe a fork before it is made, and what resuming it would cost."""

    forked: Forked
    #: USD; None: not known.
    expected_usd: Decimal | None
    worst_usd: Decimal | None
    #: Where the expectation comes from.
    source: str

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        usd = {"expected_usd": self.expected_usd, "worst_usd": self.worst_usd, "source": self.source}
        return {**self.forked.to_json(), **usd}


def plan_fork(store: Store, run: str, *, at: str, assignments: Sequence[str]) -> ForkPlan:
    """Return what `fork` would make of a run, priced; nothing is written and no model is called.

    Raises:
        ConfigError, RunNotFound, SecretRefused, CheckpointCorrupt: As `fork`.
    """
    changes = changes_of(load(store, run), assignments)
    planned, child, last = planned_fork(store, run, at=at, changes=changes)
    planned = meant(store, planned)
    if child.pipeline == "lessons" and child.pins:
        return ForkPlan(planned, *_course_price(store, child))
    void = {*planned.followed, *(path for each in planned.void for path in each.paths)}
    kept = {bare(path) for path in planned.inherited if path not in void}
    spent = sum((usd for step, usd in usd_by_step(last).items() if step not in kept), Decimal(0))
    return ForkPlan(planned, spent, None, f"what run {run} paid for the same steps")


def _course_price(store: Store, child: RunState) -> tuple[Decimal | None, Decimal | None, str]:
    """Return (expected, worst) USD of the rest of a course, and where the expectation comes from."""
    pins = todays_prompts(store, child, {})
    how, work = settings_now(Execution(), child.execution), CourseWork(int(child.identity.get("lessons") or 1), child)
    history = learn(store.heads(), str(child.identity.get("model")), pinned(store, child, pins)[0].subject)
    return *rest_of_run(store, child, how, work, pins, history=history), history.source
