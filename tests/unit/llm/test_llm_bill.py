"""Our charges against the bill that the server keeps for itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from pipeline.cost.prices import PriceBook
from pipeline.errors import ModelError
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Reply, Request, Segment
from pipeline.records.charge import EXACT, FREE, INTERVAL, Charge
from tests.servers.billing import BillingServer, echo
from tests.servers.mishaps import STATUSES, Mishap, Plan

AT = datetime(2026, 12, 1, tzinfo=UTC)
BOOK = PriceBook()
MODELS = ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5")


def requests(count: int) -> Iterator[Request]:
    """Different models, lengths and limits over two shared prefixes."""
    for number in range(count):
        rules = Segment(f"Rules {number % 2}. " + "Explain each step. " * 400, cache=True)
        scheme = Segment("The scheme of this course. " * 300, cache=number % 3 == 0)
        text = f"Lesson {number}. " + "x" * (997 * number % 5003)
        yield Request(
            MODELS[number % 3], [Message("user", text)], (rules, scheme), max_tokens=200 + number * 40, label="lesson"
        )


def charge(model: AnthropicModel, request: Request) -> Charge:
    """What the product records for one try, as engine/calls does."""
    worst = BOOK.worst(request.size(), request.max_tokens, model=request.model, at=AT)
    try:
        reply = model.complete(request)
    except ModelError as error:
        if error.billed == "no":
            return FREE
        usage = error.reply.usage if isinstance(error.reply, Reply) else {}
        return BOOK.partial(usage, model=request.model, at=AT, worst=worst)
    found = BOOK.charge(reply.usage, model=request.model, at=AT)
    assert worst is not None
    assert found.low <= worst
    return found


def test_charges_equal_the_bill_exactly(server: BillingServer, model: AnthropicModel) -> None:
    charges = [charge(model, request) for request in requests(24)]
    assert all(item.state == EXACT for item in charges)
    assert [item.low for item in charges] == [entry.usd for entry in server.bill.entries()]
    assert sum((item.low for item in charges), Decimal(0)) == server.bill.usd > 0
    kinds = {kind for item in charges for kind in item.tokens}
    assert {"input", "output", "cache_write_5m", "cache_read"} <= kinds


def test_refusals_and_truncations_are_charged_like_the_bill(server: BillingServer, model: AnthropicModel) -> None:
    server.plan = Plan("refusal=0.4,truncated=0.4,invalid=0.5", seed=3)
    charges = [charge(model, request) for request in requests(12)]
    assert len({entry.fault for entry in server.bill.entries()}) > 2
    assert sum((item.low for item in charges), Decimal(0)) == server.bill.usd


def test_long_prompts_are_charged_like_the_bill(server: BillingServer, model: AnthropicModel) -> None:
    for size in (390_000, 410_000):
        request = Request("claude-haiku-5-5", [Message("user", "y" * size)], max_tokens=64)
        assert charge(model, request).low == server.bill.entries()[-1].usd


@pytest.mark.parametrize("seed", range(3))
def test_bill_lies_between_both_ends_of_the_ledger_under_faults(
    server: BillingServer, model: AnthropicModel, seed: int
) -> None:
    server.plan = Plan(
        "rate_limit=0.1,overloaded=0.1,drop=0.15,cut=0.15,silent=0.15,malformed=0.1,error_event=0.1", seed
    )
    charges = [charge(model, request) for request in requests(24)]
    assert len({entry.fault for entry in server.bill.entries()}) > 3
    low = sum((item.low for item in charges), Decimal(0))
    high = sum((item.high or Decimal(0) for item in charges), Decimal(0))
    assert low <= server.bill.usd <= high
    for item, entry in zip(charges, server.bill.entries(), strict=True):
        assert item.high is not None
        assert item.low <= entry.usd <= item.high, entry


@pytest.mark.parametrize("kind", sorted(set(STATUSES) - {"timeout"}))
def test_request_that_the_provider_answers_with_an_error_is_on_nobodys_bill(
    server: BillingServer, model: AnthropicModel, kind: str
) -> None:
    server.plan.queue(Mishap(kind))
    assert charge(model, next(requests(1))) == FREE
    assert server.bill.usd == 0


PAGE = "<html><body>The upstream server gave up.</body></html>"
JSON_OF_A_GATEWAY = '{"error": {"type": "timeout", "message": "upstream"}}'


def test_request_that_a_gateway_gave_up_on_may_be_on_the_bill(server: BillingServer, model: AnthropicModel) -> None:
    late = [(status, page) for status in (408, 460, 499, 501, 504, 507, 520, 524, 530, 598) for page in (None, PAGE)]
    late += [(status, page) for status in (502, 503) for page in (PAGE, JSON_OF_A_GATEWAY, "")]
    for status, page in late:
        server.reset()
        server.plan.queue(Mishap("unavailable", status=status, page=page, billed=True))
        found = charge(model, next(requests(1)))
        assert found.state == INTERVAL, (status, page)
        assert found.high is not None
        assert found.low == 0 < server.bill.usd <= found.high, (status, page)


def test_errors_that_the_provider_documents_as_unbilled_are_free(server: BillingServer, model: AnthropicModel) -> None:
    for status, page in ((500, None), (529, None), (500, PAGE), (529, PAGE), (502, None), (503, None), (429, PAGE)):
        server.plan.queue(Mishap("unavailable", status=status, page=page))
        assert charge(model, next(requests(1))) == FREE, (status, page)


def test_parallel_first_calls_all_pay_for_the_prefix(server: BillingServer, model: AnthropicModel) -> None:
    gate = threading.Barrier(4)

    def together(body: Mapping[str, Any], fault: str) -> str:
        gate.wait(timeout=100)
        return "ok"

    server.responder = together
    asked = [Request(MODELS[0], [Message("user", str(n))], (Segment("Rules. " * 1000, cache=True),)) for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(model.complete, asked))
    assert [reply.usage["cache_read_input_tokens"] for reply in replies] == [0] * 4
    server.responder = echo
    assert model.complete(asked[0]).usage["cache_read_input_tokens"] > 0
