"""The ledger of whole runs against the bill that a real server keeps for itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest

from pipeline.app.settlement import settle
from pipeline.cost.ledger import LedgerRow, rows
from pipeline.cost.prices import PriceBook
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.result import RunResult
from pipeline.engine.step import StepContext, step
from pipeline.errors import BudgetExceeded, ModelUnavailable, SpendLimit
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock
from tests.servers.bill import PRICES as PRICES_OF_THE_BILL
from tests.servers.billing import BillingServer
from tests.servers.mishaps import Mishap, Plan
from tests.unit.engine.saying import worst_of

MODEL = "claude-sonnet-5-5"
PRICES = PriceBook()
PAGE = "<html><body>504 Gateway Time-out</body></html>"


@pytest.fixture(scope="module")
def model(_running: BillingServer) -> Iterator[AnthropicModel]:
    made = AnthropicModel(MODEL, api_key="sk-ant-api03-not-a-real-key", base_url=_running.url, deadline_seconds=20)
    yield made
    made.close()


def asking(text: str, **more: Any) -> Request:
    return Request(MODEL, [Message("user", text)], **{"max_tokens": 1000, **more})


@step()
def go(ctx: StepContext) -> Mapping[str, Any]:
    return {"all": list(ctx.map("item", range(6), lambda c, i: c.ask(asking(f"item {i}")).text, key=str))}


MANY = Pipeline("many", [go])


def given(model: AnthropicModel, **options: Any) -> dict[str, Any]:
    return {"model": model, "prices": PRICES, "clock": FakeClock(), "options": {"concurrency": 1, **options}}


def ledger(store: MemoryStore, result: RunResult) -> list[LedgerRow]:
    return rows(records(store, result.run_id))


def both_ends(store: MemoryStore, result: RunResult) -> tuple[Decimal, Decimal]:
    total = load(store, result.run_id).total
    assert total.unpriced == total.unbounded == 0
    return total.usd + total.low, total.usd + total.high


def test_bill_of_an_outage_behind_a_gateway_lies_within_the_ledger(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    for status in (504, 524, 408, 502, 503):
        server.plan.queue(Mishap("unavailable", status=status, page=PAGE, billed=True), None)
    result = MANY.run(store=store, **given(model))
    assert result.status == "completed"
    low, high = both_ends(store, result)
    assert low < server.bill.usd <= high


def test_outage_that_filled_the_ceiling_is_settled_and_the_run_goes_on(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    worst = worst_of(asking("item 0"), FakeClock().now())
    limit = str(worst * 4)
    server.plan.queue(*[Mishap("unavailable", status=504, page=PAGE, billed=True)] * 4)
    result = MANY.run(store=store, **given(model, max_cost_usd=limit))
    assert isinstance(result.error, BudgetExceeded)
    assert "pipeline.sh settle`" in result.error.hint
    assert "pipeline.sh cost --reconcile`" in result.error.hint
    assert Decimal(result.error.data["possibly"]) == worst * 4
    assert server.bill.usd <= Decimal(limit)
    for entry, row in zip(server.bill.entries(), ledger(store, result), strict=True):
        settle(store, result.run_id, row.seq, entry.usd)
    again = MANY.resume(result.run_id, store=store, **given(model, max_cost_usd=limit))
    assert again.status == "completed"
    assert both_ends(store, again) == (server.bill.usd, server.bill.usd)


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


def test_storm_is_left_without_a_try_more_than_it_takes(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    for mishap in (Mishap("rate_limit", retry_after="1"), Mishap("overloaded")):
        server.reset(Storm(mishap))
        result = MANY.run(store=store, **given(model, concurrency=4))
        assert (result.status, server.bill.requests, len(ledger(store, result))) == ("completed", 18, 18)
        assert both_ends(store, result) == (server.bill.usd, server.bill.usd)


DEAR = "claude-opus-5-5"
UNKNOWN = "claude-unheard-of-9"


def test_reply_by_another_model_is_in_the_ledger_as_on_the_bill(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    told: list[str] = []
    server.substitute = DEAR
    server.plan.queue(Mishap("cut", after=0))
    result = MANY.run(store=store, listener=lambda event: told.append(str(event.data.get("text"))), **given(model))
    assert result.status == "completed"
    low, high = both_ends(store, result)
    assert low <= server.bill.usd <= high
    assert {row.model for row in ledger(store, result)} == {DEAR}
    assert sum(row.low for row in ledger(store, result)[1:]) == sum(each.usd for each in server.bill.entries()[1:])
    assert len([text for text in told if DEAR in text]) == 1, "said once"


def test_ceiling_holds_where_a_dearer_model_answers(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.substitute = DEAR
    worst = worst_of(asking("item 0"), FakeClock().now())
    limit = worst * 2
    # Answers as long as they may be: the second call would pass the ceiling at the price of the model that answers.
    server.responder = lambda body, fault: "x" * 4000
    options = given(model, max_cost_usd=str(limit))
    result = MANY.run(store=store, **options)
    for _ in range(3):
        assert isinstance(result.error, BudgetExceeded)
        assert both_ends(store, result) == (server.bill.usd, server.bill.usd)
        assert server.bill.usd <= limit
        result = MANY.resume(result.run_id, store=store, **options)


def test_reply_by_a_model_without_a_price_is_bounded(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PRICES_OF_THE_BILL, UNKNOWN, ("12", "60", "1", "15", "24"))
    server.substitute = UNKNOWN
    result = MANY.run(store=store, **given(model, max_cost_usd="5"))
    assert result.status == "completed"
    low, high = both_ends(store, result)
    assert low == 0 < server.bill.usd <= high < Decimal("0.1")


def test_page_in_the_place_of_a_reply_stops_the_run_after_one_repeat(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.plan.queue(*[Mishap("unavailable", status=200, page="<html>Log in.</html>")] * 20)
    result = MANY.run(store=store, **given(model))
    assert (result.status, result.exit_code, server.bill.requests) == ("in_progress", 4, 2)
    assert all(part in str(result.error) for part in ("127.0.0.1", "text/html"))
    low, high = both_ends(store, result)
    assert low == 0 < high
    server.plan = Plan()
    assert MANY.resume(result.run_id, store=store, **given(model)).status == "completed"


def test_replies_of_a_server_that_does_not_stream_are_in_the_ledger_as_on_the_bill(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.streams = False
    result = MANY.run(store=store, **given(model))
    assert (result.status, server.bill.requests) == ("completed", 6)
    assert both_ends(store, result) == (server.bill.usd, server.bill.usd)


def test_look_up_before_a_run_is_as_patient_as_a_call(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    trouble = [Mishap("rate_limit", retry_after="3"), Mishap("error500"), Mishap("overloaded"), Mishap("timeout")]
    server.free_mishaps.extend(trouble)
    clock = FakeClock()
    result = MANY.run(store=store, **{**given(model), "clock": clock})
    assert result.status == "completed"
    assert clock.waits[0] == 3.0
    server.free_mishaps.extend([Mishap("overloaded")] * 8 + [Mishap("spend_limit")])
    with pytest.raises(ModelUnavailable, match="8 tries failed") as caught:
        MANY.run(store=store, **given(model))
    assert caught.value.data["status"] == 529
    with pytest.raises(SpendLimit):
        MANY.run(store=store, **given(model))
    server.free_mishaps.extend([Mishap("unavailable", status=200, page="<html>Log in.</html>")] * 3)
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1 answers with text/html.*2 tries failed"):
        MANY.run(store=store, **given(model))
    assert len(server.free_mishaps) == 1
    assert len(list(store.heads())) == 1
