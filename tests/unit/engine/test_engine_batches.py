"""Batches: half the price, one batch a round, found again after any end of the process, never handed in twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from pipeline import AnthropicModel, Event, Message, Pipeline, Request, Segment, StepContext, step
from pipeline.engine.result import RunResult
from pipeline.errors import ConfigError
from pipeline.records.fold import spent
from pipeline.records.kinds import BatchIntended, BatchSubmitted, CallStarted
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock
from tests.servers.billing import BillingServer

KEY = "sk-ant-api03-not-a-real-key-0123456789"


@pytest.fixture
def model(server: BillingServer) -> Iterator[AnthropicModel]:
    made = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=server.url, deadline_seconds=20)
    yield made
    made.close()


def ask(ctx: StepContext, text: str, **more: Any) -> str:
    return ctx.ask(Request("claude-sonnet-5-5", [Message("user", text)], max_tokens=200, **more)).text


def two_rounds(ctx: StepContext, item: Any) -> Any:
    return ask(ctx, f"second {ask(ctx, f'first {item}')}")


def work(count: int) -> Any:
    @step("work")
    def body(ctx: StepContext) -> Any:
        return {"texts": list(ctx.map("items", range(count), two_rounds, key=str))}

    return body


def pipeline(count: int = 5) -> Pipeline:
    return Pipeline("batched", [step("plan")(lambda ctx: {"plan": ask(ctx, "plan")}), work(count)])


def go(store: MemoryStore, model: AnthropicModel, what: Pipeline, *, resume: str = "", **options: Any) -> RunResult:
    given = {"batch": True, "max_cost_usd": 5, **options}
    if resume:
        return what.resume(resume, store=store, model=model, options=given, clock=FakeClock())
    return what.run(store=store, model=model, options=given, clock=FakeClock())


def test_batches_answer_every_ask_at_half_price_and_equal_the_bill(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    result = go(store, model, pipeline(20))
    assert (result.status, result.outputs["work"]["texts"][3]) == ("completed", "second first 3")
    # One for the plan, then one for each of the two asks of all items together.
    assert [len(held.requests) for held in server.batches.held.values()] == [1, 20, 20]
    assert not server.seen
    assert result.spent.usd == server.bill.usd > 0
    plain = go(MemoryStore(FakeClock()), model, pipeline(20), batch=False)
    assert plain.outputs == result.outputs
    assert plain.spent.usd > result.spent.usd


def test_no_thread_waits_for_a_single_answer(store: MemoryStore, server: BillingServer, model: AnthropicModel) -> None:
    most: list[int] = []

    def listen(event: Event) -> None:
        most.append(threading.active_count())

    before = threading.active_count()
    given = {"batch": True, "max_cost_usd": 5, "concurrency": 2}
    pipeline(50).run(store=store, model=model, options=given, clock=FakeClock(), listener=listen)
    # The loop, one worker beside it, and the server's own threads.
    assert max(most) < before + 12


def test_a_batch_is_in_the_journal_before_it_is_created_with_all_its_calls(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    run = go(store, model, pipeline(3)).run_id
    facts = [record for record in records(store, run)]
    for place, record in enumerate(facts):
        if isinstance(record.fact, BatchIntended):
            started = {r.seq: r.fact for r in facts[:place] if isinstance(r.fact, CallStarted)}
            assert all(started[row["call"]].batch == record.fact.nonce for row in record.fact.calls)
            assert all(row["id"].startswith(record.fact.nonce) and len(row["id"]) <= 64 for row in record.fact.calls)
            assert isinstance(facts[place + 1].fact, BatchSubmitted)


def test_no_wait_hands_in_and_leaves_and_a_resume_fetches(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    first = go(store, model, pipeline(3), no_wait=True)
    assert (first.status, first.detail, first.exit_code) == ("in_progress", "waiting_for_batch", 75)
    # Also without --batch, what is out is waited for and not asked again.
    second = go(store, model, pipeline(3), resume=first.run_id, batch=False)
    assert second.status == "completed"
    assert [len(held.requests) for held in server.batches.held.values()] == [1]
    assert len(server.seen) == 6
    assert second.spent.usd == server.bill.usd


def test_what_errored_or_expired_goes_again_alone_and_what_is_wrong_fails_its_item(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.batches.ends = {1: "errored", 2: "expired"}

    @step("work")
    def body(ctx: StepContext) -> Any:
        return {"texts": list(ctx.map("items", range(5), lambda c, i: ask(c, f"item {i}"), key=str))}

    server.batches.looks = 0
    one = Pipeline("one", [body])
    server.batches.creations = [""]
    result = go(store, model, one)
    sizes = [len(held.requests) for held in server.batches.held.values()]
    assert (result.status, sizes[:2]) == ("completed", [5, 2])
    assert result.spent.usd == server.bill.usd
    server.batches.ends = {0: "invalid"}
    other = go(store, model, one)
    assert other.status == "failed"
    assert len(load(store, other.run_id).tasks["work#1"]) == 5


@pytest.mark.parametrize("created", [True, False])
def test_an_intent_without_a_submission_is_looked_for_and_never_handed_in_twice(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, created: bool
) -> None:
    server.batches.creations = ["drop" if created else "lose"]
    result = go(store, model, pipeline(2))
    assert result.status == "completed"
    assert [len(held.requests) for held in server.batches.held.values()] == [1, 2, 2]
    assert result.spent.usd == server.bill.usd
    assert result.spent.high == 0


def test_another_run_s_batch_of_the_same_size_is_not_taken_for_ours(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    from pipeline.llm.base import Request as Asked

    foreign = Asked("claude-sonnet-5-5", [Message("user", "foreign")], max_tokens=100)
    model.batches.submit([("somebody-elses", foreign)])
    server.batches.creations = ["lose"]
    result = go(store, model, pipeline(2))
    assert result.status == "completed"
    assert result.outputs["plan"] == {"plan": "plan"}


def test_resubmit_does_not_wait_and_says_what_may_be_paid_twice(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    first = go(store, model, pipeline(2), no_wait=True)
    server.batches.held.clear()
    gone = go(store, model, pipeline(2), resume=first.run_id, no_wait=True)
    assert (gone.detail, gone.exit_code) == ("waiting_for_batch", 75)
    assert "--resubmit" in str(gone.error.hint if gone.error else "")
    done = go(store, model, pipeline(2), resume=first.run_id, resubmit=True)
    assert done.status == "completed"
    assert done.spent.low == 0
    assert done.spent.high > 0


def test_a_batch_holds_only_what_the_ceiling_has_room_for(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    @step("work")
    def body(ctx: StepContext) -> Any:
        return {"texts": list(ctx.map("items", range(30), lambda c, i: ask(c, f"item {i}"), key=str))}

    result = go(store, model, Pipeline("tight", [body]), max_cost_usd="0.03")
    sizes = [len(held.requests) for held in server.batches.held.values()]
    assert result.status == "completed"
    assert len(sizes) > 1
    assert sum(sizes) == 30
    assert spent(load(store, result.run_id)).usd <= Decimal("0.03")
    poor = go(store, model, Pipeline("tight", [body]), max_cost_usd="0.001")
    assert (poor.detail, poor.exit_code) == ("paused_budget", 5)


def test_fewer_than_batch_min_go_as_ordinary_calls(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    result = go(store, model, pipeline(3), batch_min=2)
    assert result.status == "completed"
    assert [len(held.requests) for held in server.batches.held.values()] == [3, 3]
    assert len(server.seen) == 1
    assert result.spent.usd == server.bill.usd


def test_a_wrong_kind_of_request_is_found_before_the_batch_goes_out(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    bad = {"effort": "enormous"}

    @step("work")
    def body(ctx: StepContext) -> Any:
        return {"texts": list(ctx.map("items", range(3), lambda c, i: ask(c, f"item {i}", **bad), key=str))}

    result = go(store, model, Pipeline("bad", [body]))
    assert result.status == "failed"
    assert not server.batches.held
    assert result.spent.usd == 0


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("cap", [0, -5, 128_001, 10**9, 100.5, "100", True])
def test_a_token_limit_that_the_model_does_not_take_is_refused_before_anything_is_sent(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, cap: Any, batch: bool
) -> None:
    @step("work")
    def body(ctx: StepContext) -> Any:
        asked = Request("claude-sonnet-5-5", [Message("user", "x")], max_tokens=cap)
        return {"texts": list(ctx.map("items", range(2), lambda c, i: c.ask(asked).text, key=str))}

    result = go(store, model, Pipeline("capped", [body]), batch=batch)
    assert (result.status, result.exit_code, result.spent.calls) == ("failed", 6, 0)
    assert "max_tokens" in str(result.error)
    assert not server.seen
    assert not server.batches.held
    most = Request("claude-sonnet-5-5", [Message("user", "x")], max_tokens=128_000)
    allowed = step("one")(lambda ctx: {"text": ctx.ask(most).text})
    assert go(store, model, Pipeline("allowed", [allowed]), batch=batch).status == "completed"


def test_a_truncated_answer_goes_again_with_a_higher_cap(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    @step("work")
    def body(ctx: StepContext) -> Any:
        reply = ctx.ask(Request("claude-sonnet-5-5", [Message("user", "x" * 1000)], max_tokens=150))
        return {"size": len(reply.text)}

    result = go(store, model, Pipeline("long", [body]))
    assert (result.status, result.outputs["work"]) == ("completed", {"size": 1000})
    assert [held.requests[0]["params"]["max_tokens"] for held in server.batches.held.values()] == [150, 300]
    assert result.spent.usd == server.bill.usd


def test_a_model_without_batches_says_so_before_anything_is_bought(store: MemoryStore) -> None:
    from pipeline import ScriptedModel

    one = Pipeline("one", [step("a")(lambda ctx: {"text": ask(ctx, "x")})])
    with pytest.raises(ConfigError, match="does not support batches"):
        one.run(store=store, model=ScriptedModel(), options={"batch": True}, clock=FakeClock())
    assert not list(store.heads())


def test_branches_share_a_batch(store: MemoryStore, server: BillingServer, model: AnthropicModel) -> None:
    def asking(name: str) -> Any:
        return step(name)(lambda ctx: {"text": ask(ctx, name)})

    steps = [step("fan")(lambda ctx: {}), asking("left"), asking("right"), step("join")(lambda ctx: {})]
    edges = [("fan", "left"), ("fan", "right"), ("left", "join"), ("right", "join")]
    result = go(store, model, Pipeline("wide", steps, edges=edges, joins={"join": "all"}))
    assert result.status == "completed"
    assert [len(held.requests) for held in server.batches.held.values()] == [2]


def test_a_worst_case_by_the_provider_s_count_is_smaller_and_still_a_bound(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    what = Pipeline("one", [step("a")(lambda ctx: {"text": ask(ctx, "word " * 4000)})])
    worst = []
    for budget in ("worst", "estimate"):
        result = go(store, model, what, batch=False, budget=budget)
        started = [r.fact for r in records(store, result.run_id) if isinstance(r.fact, CallStarted)]
        worst.append(sum((Decimal(str(fact.worst)) for fact in started), Decimal(0)))
        assert result.spent.usd <= worst[-1]
    assert worst[1] < worst[0] * Decimal("0.7")


def test_shared_prefixes_in_a_batch_live_an_hour(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    system = [Segment("Rules. " * 2000, cache=True)]

    @step("work")
    def body(ctx: StepContext) -> Any:
        return {"texts": list(ctx.map("items", range(4), lambda c, i: ask(c, f"item {i}", system=system), key=str))}

    result = go(store, model, Pipeline("cached", [body]))
    assert result.spent.tokens["cache_write_1h"] > 0
    assert result.spent.tokens["cache_read"] == 3 * result.spent.tokens["cache_write_1h"]
    assert result.spent.usd == server.bill.usd


@pytest.mark.parametrize(("words", "why"), [(10, "shorter than what this model caches"), (3000, "")])
def test_a_prefix_that_is_never_read_is_said_once(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, words: int, why: str
) -> None:
    notes: list[str] = []
    system = [Segment("Rules. " * words, cache=True)]

    @step("work")
    def body(ctx: StepContext) -> Any:
        return {"texts": [ask(ctx, f"item {item}", system=system) for item in range(7)]}

    def listen(event: Event) -> None:
        if event.type == "note":
            notes.append(event.data["text"])

    Pipeline("cached", [body]).run(store=store, model=model, clock=FakeClock(), listener=listen)
    assert [text for text in notes if "never read" in text and why in text] == (notes if why else [])
    assert len(notes) == bool(why)
