"""The ledger of whole runs against the bill that a real server keeps for itself."""

from __future__ import annotations

import threading
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from pipeline import AnthropicModel, Pipeline, RunResult, StepContext, step
from pipeline.app.settlement import one_call, settle
from pipeline.cost.ledger import LedgerRow, rows
from pipeline.errors import BudgetExceeded, ModelUnavailable, SpendLimit
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock
from tests.servers.bill import PRICES as PRICES_OF_THE_BILL
from tests.servers.billing import BillingServer
from tests.servers.mishaps import Mishap, Plan
from tests.servers.rate_limits import RateLimits
from tests.unit.engine.saying import MODEL, PRICES, ask, worst_of

PAGE = "<html><body>504 Gateway Time-out</body></html>"
LOGIN = Mishap("unavailable", status=200, page="<html>Log in.</html>")
DEAR, UNKNOWN = "claude-opus-5-5", "claude-unheard-of-9"
WORST = worst_of(ask("item 0", MODEL, max_tokens=1000), FakeClock().now())


@step("go")
def six(ctx: StepContext) -> dict[str, Any]:
    def one(ctx: StepContext, item: int) -> str:
        return ctx.ask(ask(f"item {item}", MODEL, max_tokens=1000)).text

    return {"all": list(ctx.map("item", range(6), one, key=str))}


class Bench:
    """A pipeline of six items whose calls are on a bill and in a ledger."""

    def __init__(self, store: MemoryStore, server: BillingServer, claude: AnthropicModel) -> None:
        self.store, self.server, self.claude = store, server, claude
        self.clock = FakeClock()
        self.told: list[str] = []

    def go(self, resume: str = "", **options: Any) -> RunResult:
        self.clock = FakeClock()
        more: Any = {
            "store": self.store, "model": self.claude, "prices": PRICES, "clock": self.clock,
            "options": {"concurrency": 1, **options}, "listener": lambda event: self.told.append(str(event.data)),
        }  # fmt: skip
        pipeline = Pipeline("many", [six])
        return pipeline.resume(resume, **more) if resume else pipeline.run(**more)

    @property
    def bill(self) -> Decimal:
        return self.server.bill.usd

    def ledger(self, result: RunResult) -> list[LedgerRow]:
        return rows(records(self.store, result.run_id))

    def ends(self, result: RunResult) -> tuple[Decimal, Decimal]:
        total = load(self.store, result.run_id).total
        assert total.unpriced == total.unbounded == 0
        return total.usd + total.low, total.usd + total.high


@pytest.fixture
def bench(store: MemoryStore, server: BillingServer, claude: AnthropicModel) -> Bench:
    return Bench(store, server, claude)


def test_bill_of_an_outage_behind_a_gateway_lies_within_the_ledger(bench: Bench) -> None:
    for status in (504, 524, 408, 502, 503):
        bench.server.plan.queue(Mishap("unavailable", status=status, page=PAGE, billed=True), None)
    result = bench.go()
    low, high = bench.ends(result)
    assert result.status == "completed"
    assert low < bench.bill <= high


def test_outage_that_filled_the_ceiling_is_settled_and_the_run_goes_on(bench: Bench) -> None:
    limit = str(WORST * 4)
    bench.server.plan.queue(*[Mishap("unavailable", status=504, page=PAGE, billed=True)] * 4)
    result = bench.go(max_cost_usd=limit)
    assert isinstance(result.error, BudgetExceeded)
    assert all(f"pipeline.sh {command}`" in result.error.hint for command in ("settle", "cost --reconcile"))
    assert Decimal(result.error.data["possibly"]) == WORST * 4
    assert bench.bill <= Decimal(limit)
    for entry, row in zip(bench.server.bill.entries(), bench.ledger(result), strict=True):
        settle(bench.store, result.run_id, one_call(row.seq, entry.usd))
    again = bench.go(result.run_id, max_cost_usd=limit)
    assert (again.status, bench.ends(again)) == ("completed", (bench.bill, bench.bill))


class Storm(Plan):
    """Refuses every question twice."""

    def __init__(self, mishap: Mishap) -> None:
        super().__init__()
        self._mishap = mishap
        self._asked: Counter[str] = Counter()

    def draw(self, number: int, question: str, *_: Any, **__: Any) -> Mishap | None:
        with self._lock:
            self._asked[question] += 1
            return self._mishap if self._asked[question] <= 2 else None


def test_storm_is_left_without_a_try_more_than_it_takes(bench: Bench) -> None:
    for mishap in (Mishap("rate_limit", retry_after="1"), Mishap("overloaded")):
        bench.server.reset(Storm(mishap))
        result = bench.go(concurrency=4)
        assert (result.status, bench.server.bill.requests, len(bench.ledger(result))) == ("completed", 18, 18)
        assert bench.ends(result) == (bench.bill, bench.bill)


def test_reply_by_another_model_is_in_the_ledger_as_on_the_bill(bench: Bench) -> None:
    bench.server.substitute = DEAR
    bench.server.plan.queue(Mishap("cut", after=0))
    result = bench.go()
    low, high = bench.ends(result)
    assert result.status == "completed"
    assert low <= bench.bill <= high
    ledger = bench.ledger(result)
    assert {row.model for row in ledger} == {DEAR}
    assert sum(row.low for row in ledger[1:]) == sum(each.usd for each in bench.server.bill.entries()[1:])
    assert len([text for text in bench.told if DEAR in text]) == 1, "said once"


def test_ceiling_holds_where_a_dearer_model_answers(bench: Bench) -> None:
    bench.server.substitute = DEAR
    # Answers as long as they may be: the second call would pass the ceiling at the price of the model that answers.
    bench.server.responder = lambda body, fault: "x" * 4000
    result = bench.go(max_cost_usd=str(WORST * 2))
    for _ in range(3):
        assert isinstance(result.error, BudgetExceeded)
        assert bench.ends(result) == (bench.bill, bench.bill)
        assert bench.bill <= WORST * 2
        result = bench.go(result.run_id, max_cost_usd=str(WORST * 2))


def test_reply_by_a_model_without_a_price_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRICES_OF_THE_BILL, UNKNOWN, ("12", "60", "1", "15", "24"))
    bench.server.substitute = UNKNOWN
    result = bench.go(max_cost_usd="5")
    low, high = bench.ends(result)
    assert result.status == "completed"
    assert low == 0 < bench.bill <= high < Decimal("0.1")


def test_page_in_the_place_of_a_reply_stops_the_run_after_one_repeat(bench: Bench) -> None:
    bench.server.plan.queue(*[LOGIN] * 20)
    result = bench.go()
    assert (result.status, result.exit_code, bench.server.bill.requests) == ("in_progress", 4, 2)
    low, high = bench.ends(result)
    assert low == 0 < high
    bench.server.plan = Plan()
    assert bench.go(result.run_id).status == "completed"


def test_replies_of_a_server_that_does_not_stream_are_in_the_ledger_as_on_the_bill(bench: Bench) -> None:
    bench.server.streams = False
    result = bench.go()
    assert (result.status, bench.server.bill.requests) == ("completed", 6)
    assert bench.ends(result) == (bench.bill, bench.bill)


def test_look_up_before_a_run_is_as_patient_as_a_call(bench: Bench) -> None:
    mishaps = bench.server.free_mishaps
    mishaps += [Mishap("rate_limit", retry_after="3"), Mishap("error500"), Mishap("overloaded"), Mishap("timeout")]
    assert bench.go().status == "completed"
    assert bench.clock.waits[0] == 3.0
    mishaps += [Mishap("overloaded")] * 8 + [Mishap("spend_limit")]
    with pytest.raises(ModelUnavailable, match="8 tries failed") as caught:
        bench.go()
    assert caught.value.data["status"] == 529
    with pytest.raises(SpendLimit):
        bench.go()
    mishaps += [LOGIN] * 3
    with pytest.raises(ModelUnavailable, match="2 tries failed"):
        bench.go()
    assert (len(mishaps), len(list(bench.store.heads()))) == (1, 1)


def ended(bench: Bench, **options: Any) -> RunResult:
    """Go, in a thread that a hang does not keep the tests from ending."""
    found: list[RunResult] = []
    thread = threading.Thread(target=lambda: found.append(bench.go(**options)), daemon=True)
    thread.start()
    thread.join(300)
    assert found, "the run hangs"
    return found[0]


@pytest.mark.parametrize("figure", [10**4000, float("nan"), float("inf"), -(10**12), 10**13, "12"])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_figures_that_no_answer_can_have_keep_no_call_waiting(bench: Bench, figure: Any, concurrency: int) -> None:
    bench.server.limits = RateLimits(requests=6000, input_tokens=10**6, output_tokens=10**6)
    first = {"input_tokens": 10, "output_tokens": 1}
    bench.server.usages = [(first, {"output_tokens": figure})] * 6
    result = ended(bench, concurrency=concurrency, max_cost_usd=None)
    assert result.status == "completed", result.error
    assert len(bench.ledger(result)) == bench.server.bill.requests == 6
    assert bench.clock.monotonic() < 60
