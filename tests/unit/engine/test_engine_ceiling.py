"""The ceiling: never passed at worst case, whatever runs at once; what a call is admitted at; unknown prices."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import AnthropicModel, Message, Pipeline, Reply, Request, RunResult, Segment, StepContext
from pipeline.engine.ceiling import Ceiling, Room, more_room
from pipeline.engine.events import Emitter
from pipeline.engine.recorder import Reading
from pipeline.engine.step import step
from pipeline.engine.stop import Stop
from pipeline.errors import BudgetExceeded, StepFailed
from pipeline.llm.script import ScriptedModel
from pipeline.llm.wire import parameters
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled, RunResumed, TaskTaken
from pipeline.store.memory import MemoryJournal, MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from tests.servers.bill import LONG_CONTEXT, Counted, cost
from tests.servers.bill import PRICES as BILLED
from tests.servers.billing import BillingServer
from tests.tape import Tape
from tests.unit.engine.saying import MODEL, PRICES, ask, facts, fine, worst_of

UNPRICED = "claude-mythos-5"
CLOCK = FakeClock()
AT = CLOCK.now()


def asking(item: int, max_tokens: int = 1000, model: str = MODEL) -> Request:
    return ask(f"item {item}", model, max_tokens=max_tokens)


WORST = worst_of(asking(1), AT)


class Provider:
    """Keeps its own bill: what was charged, and what is being answered at its worst case."""

    def __init__(self, output_tokens: Sequence[int]) -> None:
        self.limit = Decimal(0)
        self.passed: list[Decimal] = []
        self._output = output_tokens
        self._bill = self._running = Decimal(0)
        self._lock = threading.Lock()
        #: Never set: waiting for it lets calls that are admitted together run together.
        self._never = threading.Event()

    def answer(self, request: Request) -> Reply:
        item = int(request.messages[0].text.split()[1])
        usage = {"input_tokens": 10, "output_tokens": min(self._output[item], request.max_tokens)}
        charge = PRICES.charge(usage, model=request.model, at=AT)
        with self._lock:
            self._running += worst_of(request, AT)
            if self._bill + self._running > self.limit:
                self.passed.append(self._bill + self._running)
        self._never.wait(0.002)
        with self._lock:
            self._running -= worst_of(request, AT)
            self._bill += charge.low
        return Reply("x", "end_turn", usage, request.model)


class SlowStore(MemoryStore):
    """Its journals take their time, so that a call that is admitted is not yet recorded when others ask."""

    def create(self, *given: Any, **more: Any) -> tuple[str, MemoryJournal]:
        run, journal = super().create(*given, **more)
        return run, self._slow(journal)

    def open(self, run: str) -> MemoryJournal:
        return self._slow(super().open(run))

    def _slow(self, journal: MemoryJournal) -> MemoryJournal:
        append, never = journal.append, threading.Event()

        def slowly(first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
            never.wait(0.001)
            append(first_seq, lines, sync)

        journal.append = slowly  # type: ignore[method-assign]
        return journal


@settings(max_examples=20)
@given(
    caps=st.lists(st.integers(1, 3000), min_size=1, max_size=8),
    used=st.lists(st.integers(1, 3000), min_size=8, max_size=8),
    share=st.integers(20, 130),
    concurrency=st.integers(1, 5),
)
def test_what_is_admitted_never_passes_the_ceiling_and_pauses_only_where_it_could(
    caps: list[int], used: list[int], share: int, concurrency: int
) -> None:
    requests = [asking(item, cap) for item, cap in enumerate(caps)]
    whole = sum((worst_of(request, AT) for request in requests), Decimal(0))
    provider, store = Provider(used), SlowStore(CLOCK)
    model = ScriptedModel(provider.answer, model_id=MODEL, paid=True)

    @step()
    def go(ctx: StepContext) -> Mapping[str, Any]:
        return {"all": list(ctx.map("item", range(len(requests)), lambda c, i: c.ask(requests[i]).text, key=str))}

    pipeline = Pipeline("bounded", [go])
    provider.limit = whole * share / 100
    result: RunResult | None = None
    while result is None or result.status != "completed":
        options = {"max_cost_usd": str(provider.limit), "concurrency": concurrency}
        more: Any = {"store": store, "model": model, "options": options, "clock": FakeClock()}
        result = pipeline.run(**more) if result is None else pipeline.resume(result.run_id, **more)
        assert not provider.passed
        assert result.spent.usd + result.spent.high <= provider.limit
        if result.status != "completed":
            assert isinstance(result.error, BudgetExceeded)
            assert (result.detail, result.exit_code) == ("paused_budget", 5)
            assert result.spent.usd + Decimal(result.error.data["worst"]) > provider.limit
            provider.limit += whole / 4
    assert len(model.requests) == len(requests), "nothing was asked twice"


def two_steps(model: str = MODEL) -> Pipeline:
    return Pipeline("two", [
        step("first")(lambda ctx: {"v": ctx.ask(asking(1, model=model)).text}),
        step("second")(lambda ctx: {"v": ctx.ask(asking(2, model=model)).text}),
    ])  # fmt: skip


def test_ceiling_reached_in_the_middle_pauses_and_a_higher_one_goes_on(store: MemoryStore) -> None:
    model, one = fine(), {"max_cost_usd": str(WORST)}
    result = two_steps().run(store=store, model=model, options=one)
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "paused_budget", 5)
    assert list(result.outputs) == ["first"]
    same = two_steps().resume(result.run_id, store=store, model=model, options=one)
    assert (same.detail, model.calls) == ("paused_budget", 1)
    state = load(store, result.run_id)
    assert (state.status, state.detail) == ("in_progress", "paused_budget")
    more = two_steps().resume(result.run_id, store=store, model=model, options={"max_cost_usd": "1"})
    assert (more.status, model.calls) == ("completed", 2)


def test_model_without_a_price_is_refused_under_a_ceiling_before_any_step(store: MemoryStore) -> None:
    model = fine(UNPRICED)
    with pytest.raises(BudgetExceeded) as caught:
        two_steps(UNPRICED).run(store=store, model=model, options={"max_cost_usd": "50"})
    assert (caught.value.code, model.calls, list(store.heads())) == ("unknown_price", 0, [])


def test_one_request_to_a_model_without_a_price_is_not_sent_under_a_ceiling(store: MemoryStore) -> None:
    model = fine()
    result = two_steps(UNPRICED).run(store=store, model=model, options={"max_cost_usd": "50"})
    assert (result.detail, result.exit_code, model.calls) == ("paused_budget", 5, 0)
    assert not facts(store, result.run_id, CallStarted)


def test_model_without_a_price_runs_without_a_ceiling_and_costs_are_unknown_not_nothing(store: MemoryStore) -> None:
    model = fine(UNPRICED)
    result = two_steps(UNPRICED).run(store=store, model=model, options={"max_cost_usd": None})
    assert (result.status, result.spent.unpriced, result.spent.usd) == ("completed", 2, Decimal(0))
    assert [end.charge["state"] for end in facts(store, result.run_id, CallEnded)] == ["unpriced"] * 2


def test_ceiling_is_not_kept_over_spend_that_nobody_can_price(store: MemoryStore) -> None:
    options = {"until": "first", "max_cost_usd": None}
    run = two_steps(UNPRICED).run(store=store, model=fine(UNPRICED), options=options).run_id
    result = two_steps().resume(run, store=store, model=(priced := fine()), options={"max_cost_usd": "50"})
    assert (result.detail, priced.calls) == ("paused_budget", 0)


def test_bill_above_its_worst_case_stops_the_run_and_is_kept(store: MemoryStore) -> None:
    usage = {"input_tokens": 10, "output_tokens": 90_000}
    model = ScriptedModel(lambda request: Reply("long", "end_turn", usage, MODEL), model_id=MODEL, paid=True)
    result = two_steps().run(store=store, model=model, options={"max_cost_usd": "50"})
    assert (result.detail, result.exit_code, model.calls) == ("paused_budget", 5, 1)
    assert result.error is not None
    assert result.error.code == "above_worst_case"
    assert result.spent.usd > WORST
    again = two_steps().resume(result.run_id, store=store, model=model, options={"max_cost_usd": "50"})
    assert again.outputs["first"] == {"v": "long"}
    assert model.calls == 2, "the reply that was paid for is used"


def test_call_that_ended_by_a_fault_of_its_adapter_may_have_cost_its_worst_case(store: MemoryStore) -> None:
    class Odd(ScriptedModel):
        def complete(self, request: Request) -> Reply:
            if self.calls == 0:
                super().complete(request)
                raise ZeroDivisionError("a fault of the adapter")
            return super().complete(request)

    model = Odd(lambda request: "fine", model_id=MODEL, paid=True)
    tight = {"max_cost_usd": str(WORST * Decimal("1.5")), "concurrency": 1}
    result = two_steps().run(store=store, model=model, options=tight)
    assert (result.status, result.exit_code) == ("failed", 6)
    assert (result.spent.usd, result.spent.high) == (Decimal(0), WORST)
    assert not load(store, result.run_id).open_calls
    assert two_steps().resume(result.run_id, store=store, model=model, options=tight).detail == "paused_budget"


class Owned:
    """A run as its owners leave it: a journal, what the owner of the moment has admitted, and the provider's view."""

    def __init__(self, limit: Decimal) -> None:
        self.tape = Tape()
        #: What each call that left may be billed at most, by its seq.
        self.bill: dict[int, Decimal] = {}
        self._lock = threading.Lock()
        self.owners = [1]
        self.own(limit)

    def reading(self) -> Reading:
        return Reading(self._lock, self.tape.state)

    def own(self, limit: Decimal) -> None:
        """A new owner has its own count of what is out, and its own ceiling."""
        self.limit = limit
        self.ceiling = Ceiling(limit, self, Stop(CLOCK), Emitter(CLOCK))  # type: ignore[arg-type]
        self.rooms: dict[int, Room] = {}

    def started(self, owner: int, worst: Decimal, origin: str = "") -> int:
        fact = CallStarted("a#1", "key", MODEL, "0", worst=str(worst), origin=origin)
        call = self.tape.put(fact, owner=owner)
        self.bill[call] = worst
        return call

    def ended(self, call: int, usd: Decimal, *, known: bool) -> None:
        charge = {"state": "exact" if known else "interval", "low": str(usd if known else 0), "high": str(usd)}
        self.tape.put(CallEnded(call, None, charge))
        self.bill[call] = usd
        if call in self.rooms:
            self.ceiling.leave(self.rooms.pop(call), usd)

    def takes(self, worst: Decimal) -> bool:
        """Whether the ceiling admits a call; one that it admits leaves."""
        found = self.ceiling.enter_if_room(worst, lambda: self.started(self.owners[-1], worst))
        if found is not None:
            self.rooms[found[0]] = found[1]
        return found is not None


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_spent_at_worst_and_reserved_cover_every_call_that_may_be_billed(data: st.DataObject) -> None:
    """Whoever appended a call: this owner, an earlier one late, a worker in its part, a task of an import."""
    run = Owned(Decimal(data.draw(st.integers(1, 30))))
    for _ in range(data.draw(st.integers(1, 25))):
        usd = Decimal(data.draw(st.integers(0, 9)))
        match data.draw(st.sampled_from(["ask", "ask", "copy", "late", "end", "end", "resume", "taken", "settle"])):
            case "ask":
                before = sum(run.bill.values())
                assert not run.takes(usd) or before + usd <= run.limit
            case "copy":
                run.started(run.owners[-1], usd, origin=f"task-1:{len(run.bill)}")
            case "late":
                run.started(data.draw(st.sampled_from(run.owners[:-1] or [0])), usd)
            case "end" if run.tape.state.open_calls:
                call = data.draw(st.sampled_from(list(run.tape.state.open_calls)))
                run.ended(call, min(usd, run.bill[call]), known=data.draw(st.booleans()))
            case "settle" if others := [call for call in run.tape.state.open_calls if call not in run.rooms]:
                call = data.draw(st.sampled_from(others))
                run.bill[call] = min(usd, run.bill[call])
                run.tape.put(ChargeSettled(call, str(run.bill[call])))
            case "resume" | "taken" as how:
                seq = len(run.tape.records) + 1
                fact = RunResumed({}) if how == "resume" else TaskTaken("a#1", "k", 1, {})
                run.tape.owner = run.tape.put(fact, owner=seq)
                run.owners.append(seq)
                run.own(Decimal(data.draw(st.integers(1, 30))))
        # What the ceiling counts: it takes what is left of it, and not a cent more.
        counted = run.limit - sum(run.bill.values())
        assert run.ceiling.hold(counted + Decimal("0.01")) is None


@pytest.mark.parametrize(
    ("limit", "spent", "worst", "option"),
    [
        ("50", "49.9", "0.4", " --max-cost-usd 100.00"), ("0.4", "0.0258", "0.4181", " --max-cost-usd 0.87"),
        ("0.4", "0.1", "3", " --max-cost-usd 6.10"), ("0.4", "None", "3", ""), ("0.4", "0", "unpriced", ""),
    ],
)  # fmt: skip
def test_command_after_a_ceiling_names_one_with_room(limit: str, spent: str, worst: str, option: str) -> None:
    assert more_room(BudgetExceeded("no", limit=limit, spent=spent, worst=worst)) == option
    assert [more_room(error) for error in (None, StepFailed("x"), BudgetExceeded("no price"))] == [""] * 3


#: What a provider adds: to any request, to each block, and in front of the system prompt where a schema is kept.
FRAME, BLOCK, INSTRUCTIONS = 40, 8, 700
US = Decimal("1.1")
LATER = datetime(2026, 11, 1, tzinfo=UTC)

texts = st.text(max_size=60) | st.integers(0, 3000).map(lambda size: "ü" * size)
schemas = st.none() | st.integers(1, 60).map(
    lambda count: {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(count)}}
)
requests = st.builds(
    Request,
    st.sampled_from(sorted(BILLED)),
    st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), texts), min_size=1, max_size=5),
    st.lists(st.builds(Segment, texts, st.booleans()), max_size=6),
    schemas,
    max_tokens=st.integers(1, 20_000),
)


def prompt_of(sent: Mapping[str, Any], density: int) -> tuple[int, int]:
    """(all tokens, those before the last cache mark) of a request as it is sent; so many bytes are a token."""

    def size(text: str) -> int:
        return -(-len(text.encode()) // density) + BLOCK

    total = FRAME
    if (form := (sent.get("output_config") or {}).get("format")) is not None:
        total += INSTRUCTIONS + -(-len(json.dumps(form["schema"], separators=(",", ":")).encode()) // density)
    marked = 0
    for block in sent.get("system") or ():
        total += size(block["text"])
        if "cache_control" in block:
            marked = total
    return total + sum(size(block["text"]) for turn in sent["messages"] for block in turn["content"]), marked


@settings(max_examples=150, deadline=None)
@given(requests, st.integers(1, 6), st.booleans(), st.sampled_from(["cold", "warm", "none"]), st.booleans())
def test_bill_of_a_provider_that_adds_what_it_adds_never_passes_the_worst_case(
    request: Request, density: int, batch: bool, cache: str, us: bool
) -> None:
    total, marked = prompt_of(parameters(request, request.model, lambda schema: schema), density)
    written, read = (marked, 0) if cache == "cold" else (0, marked if cache == "warm" else 0)
    counted = Counted(total - written - read, read, 0 if batch else written, written if batch else 0)
    bill = cost(request.model, counted, request.max_tokens) * (US if us else 1) / (2 if batch else 1)
    assert bill <= worst_of(request, LATER, batch=batch)
    # What cannot be written is not reserved: without a mark and a schema the input is at its plain price.
    if not any(part.cache and part.text for part in request.system) and request.schema is None:
        plain, output = (Decimal(price) for price in BILLED[request.model][:2])
        long = 5 if request.model in LONG_CONTEXT else 1
        most = ((request.size() + request.added()) * plain + request.max_tokens * output) * long
        assert worst_of(request, LATER) <= most * US / 1_000_000


@pytest.mark.parametrize(("budget", "most"), [("worst", Decimal("1.5")), ("estimate", Decimal("1.2"))])
def test_ceiling_is_used_to_its_end(
    store: MemoryStore, claude: AnthropicModel, server: BillingServer, budget: str, most: Decimal
) -> None:
    """A call that costs about a cent reserves little more; so a ceiling is used but for its last call."""

    @step()
    def many(ctx: StepContext) -> Mapping[str, Any]:
        def one(inner: StepContext, item: int) -> str:
            text = f"Write about {item}. " + "Say what there is to be said of it. " * 30
            return inner.ask(ask(text, MODEL, max_tokens=950)).text

        return {"all": list(ctx.map("all", range(60), one, key=str))}

    server.responder = lambda body, kind: "word" * 900
    limit, options = Decimal("0.25"), {"max_cost_usd": "0.25", "budget": budget, "concurrency": 4}
    done = Pipeline("many", [many]).run(store=store, model=claude, clock=FakeClock(), options=options)
    usual = server.bill.usd / server.bill.requests
    assert done.detail == "paused_budget"
    assert done.error is not None
    assert Decimal(done.error.data["worst"]) <= usual * most
    assert limit - usual * most < server.bill.usd == done.spent.usd <= limit
