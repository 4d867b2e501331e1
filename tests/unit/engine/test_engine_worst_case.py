"""What a call is admitted at: never below what the provider can bill, and not far above what it does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cost.prices import PriceBook
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request, Segment
from pipeline.llm.wire import parameters
from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock
from tests.servers.bill import LONG_CONTEXT, PRICES, Counted, cost
from tests.servers.billing import BillingServer
from tests.unit.engine.saying import worst_of

AT = datetime(2026, 11, 1, tzinfo=UTC)
#: What this provider adds: to any request, to each block, and in front of the system prompt where a schema is kept.
FRAME, BLOCK, INSTRUCTIONS = 40, 8, 700
US = Decimal("1.1")

texts = st.text(max_size=60) | st.integers(0, 3000).map(lambda size: "ü" * size)
schemas = st.none() | st.integers(1, 60).map(
    lambda count: {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(count)}}
)
requests = st.builds(
    Request,
    st.sampled_from(sorted(PRICES)),
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
    assert bill <= worst_of(request, AT, batch=batch)
    # What cannot be written is not reserved: without a mark and a schema the input is at its plain price.
    if not any(part.cache and part.text for part in request.system) and request.schema is None:
        (
            plain,
            *_,
        ) = (Decimal(price) for price in PRICES[request.model])
        most = (request.size() + request.added()) * plain * (5 if request.model in LONG_CONTEXT else 1)
        output = request.max_tokens * Decimal(PRICES[request.model][1]) * (5 if request.model in LONG_CONTEXT else 1)
        assert worst_of(request, AT) <= (most + output) * US / 1_000_000


def test_forms_that_are_not_known_are_bounded_at_the_dearest_kind() -> None:
    known = PriceBook().worst(1000, 100, model="claude-sonnet-5-5", at=AT, added=2000, marked=1000)
    unknown = PriceBook().worst(1000, 100, model="claude-sonnet-5-5", at=AT)
    assert known is not None
    assert unknown is not None
    assert unknown == (4 * 3000 + 10 * 100) * US / 1_000_000 > known


@pytest.mark.parametrize(("budget", "most"), [("worst", Decimal("1.5")), ("estimate", Decimal("1.2"))])
def test_ceiling_is_used_to_its_end(budget: str, most: Decimal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that costs about a cent reserves little more; so a ceiling is used but for its last call."""

    @step()
    def many(ctx: StepContext) -> Mapping[str, Any]:
        def one(inner: StepContext, item: int) -> str:
            text = f"Write about {item}. " + "Say what there is to be said of it. " * 30
            return inner.ask(Request("claude-sonnet-5-5", [Message("user", text)], max_tokens=950)).text

        return {"all": list(ctx.map("all", range(60), one, key=str))}

    with BillingServer(responder=lambda body, kind: "word" * 900) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-none")
        model = AnthropicModel("claude-sonnet-5-5", base_url=server.url)
        limit = Decimal("0.25")
        done = Pipeline("many", [many]).run(
            store=MemoryStore(FakeClock()), model=model, clock=FakeClock(),
            options={"max_cost_usd": str(limit), "budget": budget, "concurrency": 4},
        )  # fmt: skip
        model.close()
        usual = server.bill.usd / server.bill.requests
    assert done.detail == "paused_budget"
    assert done.error is not None
    assert Decimal(done.error.data["worst"]) <= usual * most
    assert limit - usual * most < server.bill.usd == done.spent.usd <= limit
