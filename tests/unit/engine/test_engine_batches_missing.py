"""Batches that the provider does not show, or not whole: waited for by its own clock, never paid twice by silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline import AnthropicModel, Event, Message, Pipeline, Request, StepContext, step
from pipeline.engine.result import RunResult
from pipeline.errors import BatchLost, ModelUnavailable, WaitingForBatch
from pipeline.llm.base import Batch
from pipeline.records.fold import spent
from pipeline.records.kinds import BatchAbandoned, BatchIntended, BatchSubmitted
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock
from tests.servers.billing import BillingServer
from tests.servers.models import MODELS

KEY = "sk-ant-api03-not-a-real-key-0123456789"
NOTHING = Decimal(0)
#: Of the searches: where this machine's clock ends them.
LONGEST = "pipeline.engine.batch_ledger._LONGEST"
Listener = Callable[[Event], None]


def made(server: BillingServer, key: str = KEY, url: str = "") -> AnthropicModel:
    return AnthropicModel("claude-sonnet-5-5", api_key=key, base_url=url or server.url, deadline_seconds=20)


@pytest.fixture
def model(server: BillingServer) -> Iterator[AnthropicModel]:
    one = made(server)
    yield one
    one.close()


def ask(ctx: StepContext, item: Any) -> str:
    return ctx.ask(Request("claude-sonnet-5-5", [Message("user", f"item {item}")], max_tokens=200)).text


@step("work")
def body(ctx: StepContext) -> Any:
    return {"texts": list(ctx.map("items", range(4), ask, key=str))}


ONE = Pipeline("one", [body])


def go(
    store: MemoryStore, model: AnthropicModel, *, resume: str = "", clock: FakeClock | None = None,
    listener: Listener | None = None, **options: Any,
) -> RunResult:  # fmt: skip
    given = {"batch": True, "max_cost_usd": 5, **options}
    more: Any = {"store": store, "model": model, "options": given, "clock": clock or FakeClock(), "listener": listener}
    return ONE.resume(resume, **more) if resume else ONE.run(**more)


def sizes(server: BillingServer) -> list[int]:
    return [len(held.requests) for held in server.batches.held.values()]


def assert_paid_once(result: RunResult, server: BillingServer, batches: int = 1) -> None:
    assert (result.status, sizes(server)) == ("completed", [4] * batches)
    assert (result.spent.usd, result.spent.high) == (server.bill.usd, NOTHING)


class Heard:
    """Notes the events of a run, and does something at the n-th of a kind."""

    def __init__(self, kind: str = "", number: int = 0, act: Callable[[], object] = int) -> None:
        self.events: list[Event] = []
        self._at = (kind, number)
        self._act = act

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if self._at == (event.type, sum(each.type == event.type for each in self.events)):
            self._act()

    @property
    def notes(self) -> str:
        return "\n".join(str(event.data["text"]) for event in self.events if event.type == "note")


def test_batch_created_after_its_connection_was_cut_is_found_and_paid_once(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.batches.creations = ["late"]
    heard = Heard("waiting", 3, lambda: server.batches.appear(MODELS))
    assert_paid_once(go(store, model, listener=heard), server)
    assert "--resubmit" in heard.notes


@pytest.mark.parametrize("answer", ["drop", "page", "odd"])
def test_batch_that_the_list_shows_late_is_found_whatever_was_answered(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, answer: str
) -> None:
    server.batches.creations, server.batches.unlisted = [answer], 4
    assert_paid_once(go(store, model), server)


@pytest.mark.parametrize("looks", [0, 2])
def test_several_unclear_batches_of_one_size_are_told_apart(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, looks: int
) -> None:
    model.batches.most_requests = 1
    server.batches.creations, server.batches.looks = ["odd", "late", "drop", "drop"], looks
    result = go(store, model, listener=Heard("waiting", 1, lambda: server.batches.appear(MODELS)))
    assert (result.status, sizes(server)) == ("completed", [1, 1, 1, 1])
    assert (result.spent.usd, result.spent.high) == (server.bill.usd, NOTHING)


@pytest.mark.parametrize("wrong", [timedelta(minutes=20), timedelta(days=400), timedelta(days=-400)])
def test_clock_of_this_machine_is_no_proof(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, wrong: timedelta
) -> None:
    clock = FakeClock(model.batches.time() + wrong)
    server.batches.creations, server.batches.looks = ["drop"], 100
    first = go(store, model, clock=clock, no_wait=True)
    assert (first.detail, first.exit_code, first.spent.usd) == ("waiting_for_batch", 75, NOTHING)
    assert first.spent.high > 0
    for held in server.batches.held.values():
        held.looks = 0
    assert_paid_once(go(store, model, resume=first.run_id, clock=clock), server)


def test_another_key_is_no_proof_and_the_right_one_goes_on(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LONGEST, timedelta(hours=2))
    server.batches.creations = ["drop"]
    first = go(store, model, no_wait=True)
    other = made(server, "sk-ant-api03-of-another-workspace-0123456789")
    # It is looked for for a day, and then left as it is: nothing is handed in again, nothing is booked as free.
    second = go(store, other, resume=first.run_id)
    assert isinstance(second.error, BatchLost)
    assert (second.exit_code, sizes(server), second.spent.high) == (75, [4], first.spent.high)
    assert "--resubmit" in second.error.hint
    assert_paid_once(go(store, model, resume=first.run_id), server)


def test_batch_with_its_id_recorded_is_waited_for_with_another_key_too(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    first = go(store, model, no_wait=True)
    other = made(server, "sk-ant-api03-of-another-workspace-0123456789")
    second = go(store, other, resume=first.run_id, no_wait=True)
    assert (second.exit_code, sizes(server)) == (75, [4])
    assert server.batches.strangers == [("msgbatch_000001", "sk-ant-api03-of-another-workspace-0123456789")]
    assert isinstance(second.error, WaitingForBatch)
    assert "--resubmit" in second.error.hint
    assert_paid_once(go(store, model, resume=first.run_id), server)


def test_search_goes_on_for_a_day_by_the_provider_s_clock(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LONGEST, timedelta(hours=25))
    server.batches.creations = ["late"]
    waits = FakeClock()
    lost = go(store, model, clock=waits)
    assert isinstance(lost.error, BatchLost)
    assert sum(waits.waits) >= 24 * 3600
    assert len(waits.waits) < 300
    # A day later by the provider's clock one look is enough; the calls are still open at their worst case.
    one = Heard()
    monkeypatch.setattr("pipeline.engine.batch_ledger._LOOKING", timedelta(0))
    again = go(store, model, resume=lost.run_id, listener=one)
    assert (again.exit_code, again.spent.usd) == (75, NOTHING)
    assert again.spent.high == lost.spent.high > 0
    assert not [event for event in one.events if event.type == "waiting"]


def test_resubmit_keeps_the_first_batch_as_possibly_spent(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.batches.creations = ["late"]
    first = go(store, model, no_wait=True)
    assert first.exit_code == 75
    done = go(store, model, resume=first.run_id, resubmit=True)
    assert (done.status, done.spent.usd) == ("completed", server.bill.usd)
    assert done.spent.high == first.spent.high > 0
    (given_up,) = [r.fact for r in records(store, done.run_id) if isinstance(r.fact, BatchAbandoned)]
    assert (given_up.batch, given_up.requests) == ("", 4)
    # What was possibly spent is spent after all: the bill stays inside the ledger.
    server.batches.appear(MODELS)
    for held in list(server.batches.held.values()):
        server.batches.look(held, lambda _: {})
    assert done.spent.usd <= server.bill.usd <= done.spent.usd + done.spent.high


@pytest.mark.parametrize("unseen", ["unseen", "unread", "unlisted"])
@pytest.mark.parametrize("resubmit", [False, True])
def test_young_batch_s_404_is_an_outage(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, unseen: str, resubmit: bool
) -> None:
    setattr(server.batches, unseen, 3)
    server.batches.creations = ["drop" if unseen == "unlisted" else ""]
    assert_paid_once(go(store, model, resubmit=resubmit), server)


def test_results_that_are_archived_are_not_waited_for(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    first = go(store, model, no_wait=True)
    server.batches.archived, server.batches.held["msgbatch_000001"].looks = True, 0
    clock = FakeClock()
    gone = go(store, model, resume=first.run_id, clock=clock)
    assert isinstance(gone.error, BatchLost)
    assert (gone.exit_code, clock.waits) == (75, [])


@pytest.mark.parametrize("halves", [1, 3])
def test_results_that_end_after_half_of_their_lines_are_fetched_again(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, halves: int
) -> None:
    server.batches.halves = halves
    assert_paid_once(go(store, model), server)


def test_answers_that_never_come_stay_possibly_spent_and_are_bought_again_only_on_request(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.batches.halves = 10**6
    first = go(store, model)
    assert isinstance(first.error, BatchLost)
    assert (first.exit_code, sizes(server)) == (75, [4])
    assert first.spent.usd < server.bill.usd <= first.spent.usd + first.spent.high
    server.batches.halves = 0
    assert_paid_once(go(store, model, resume=first.run_id), server)
    server.reset()
    server.batches.halves = 6
    done = go(store, model, resubmit=True)
    assert (done.status, sizes(server)) == ("completed", [4, 2])
    assert done.spent.usd < server.bill.usd <= done.spent.usd + done.spent.high


def with_odd_row(read: Callable[[Any], Any], odds: list[dict[str, Any]], held: Any) -> Any:
    """Return the results with their last row altered, once."""
    rows = read(held)
    if not odds:
        return rows
    odd = odds.pop()
    return [*rows[:-1], {**rows[-1], **odd} if odd else {}]


def test_rows_that_are_no_answer_to_a_request_count_for_none(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for odd in ({}, {"custom_id": "another"}, {"result": {"type": "succeeded"}}, {"result": {"type": "paused"}}):
        server.reset()
        monkeypatch.setattr(server.batches, "read", partial(with_odd_row, server.batches.read, [odd]))
        assert_paid_once(go(store, model), server)


def test_resubmit_asks_each_question_again_once_a_start(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.batches.halves = 10**6
    first = go(store, model, resubmit=True)
    assert (first.exit_code, sizes(server)) == (75, [4, 2])
    assert first.spent.usd < server.bill.usd <= first.spent.usd + first.spent.high
    second = go(store, model, resume=first.run_id, resubmit=True)
    assert (second.exit_code, sizes(server)) == (75, [4, 2, 1])


def test_look_that_is_to_wait_for_hours_leaves_the_batch_instead(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = go(store, model, no_wait=True)
    clock = FakeClock()
    monkeypatch.setattr(model.batches, "look", busy_for_a_day)
    left = go(store, model, resume=first.run_id, clock=clock)
    assert (left.exit_code, clock.waits) == (75, [])
    monkeypatch.undo()
    assert_paid_once(go(store, model, resume=first.run_id), server)


def busy_for_a_day(_: str) -> Batch:
    raise ModelUnavailable("Busy.", status=429, retry_after=86_400.0)


def test_no_wait_with_resubmit_leaves_a_young_batch_to_the_next_look(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.batches.creations, server.batches.unlisted = ["drop"], 3
    run = go(store, model, no_wait=True, resubmit=True)
    for _ in range(6):
        if run.status != "completed":
            assert run.exit_code == 75
            run = go(store, model, resume=run.run_id, no_wait=True, resubmit=True)
    assert_paid_once(run, server)


def test_requests_without_a_result_are_free_where_all_answers_came(
    store: MemoryStore, server: BillingServer, model: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.batches.ends = {1: "expired"}
    server.batches.looks = 0
    read = server.batches.read
    monkeypatch.setattr(server.batches, "read", lambda held: [r for r in read(held) if "message" in r["result"]])
    result = go(store, model)
    assert (sizes(server)[:2], result.spent.usd, result.spent.high) == ([4, 1], server.bill.usd, NOTHING)


class Unreachable:
    """A provider whose first submissions meet another address."""

    def __init__(self, batches: Any, elsewhere: Sequence[AnthropicModel]) -> None:
        self._batches = batches
        self._elsewhere = list(elsewhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

    def submit(self, requests: Any) -> Batch:
        target = self._elsewhere.pop(0).batches if self._elsewhere else self._batches
        batch: Batch = target.submit(requests)
        return batch


def test_what_certainly_never_left_goes_again_at_once(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    for url in ("http://127.0.0.1:1", "http://name.invalid", server.url.replace("http:", "https:")):
        server.reset()
        clock = FakeClock()
        model.batches = Unreachable(made(server).batches, [made(server, url=url)])
        assert_paid_once(go(store, model, clock=clock), server)
        assert clock.waits[:1] in ([], [5.0]), url


def test_refused_batches_wait_as_asked_and_a_resume_tries_again(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    server.batches.creations = ["refuse"] * 8
    clock = FakeClock()
    first = go(store, model, clock=clock)
    assert (first.detail, sizes(server)) == ("paused_rate_limit", [])
    assert_paid_once(go(store, model, resume=first.run_id), server)


def test_no_wait_looks_once_takes_in_what_there_is_and_hands_in_the_next_round(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    @step("rounds")
    def rounds(ctx: StepContext) -> Any:
        return {"texts": list(ctx.map("items", range(3), lambda c, i: ask(c, ask(c, ask(c, i))), key=str))}

    what = Pipeline("rounds", [rounds])
    given = {"batch": True, "max_cost_usd": 5, "no_wait": True}
    server.batches.looks = 1
    result = what.run(store=store, model=model, options=given, clock=FakeClock())
    looked: list[int] = [len(server.batches.held)]
    while result.status != "completed" and len(looked) < 10:
        clock = FakeClock()
        result = what.resume(result.run_id, store=store, model=model, options=given, clock=clock)
        assert clock.waits == []
        looked.append(len(server.batches.held))
    # Of each batch the first look finds it out, the second one ended; then the next round goes out.
    assert looked == [1, 1, 2, 2, 3, 3, 3]
    assert result.spent.usd == server.bill.usd


def test_intent_holds_the_provider_s_time_and_the_submission_its_date(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    run = go(store, model).run_id
    facts = [record.fact for record in records(store, run)]
    (intended,) = [fact for fact in facts if isinstance(fact, BatchIntended)]
    (submitted,) = [fact for fact in facts if isinstance(fact, BatchSubmitted)]
    assert intended.provider_at.endswith("Z")
    assert intended.provider_at[:10] <= submitted.created_at[:10]
    assert spent(load(store, run)).usd == server.bill.usd


def test_late_batch_is_said_by_the_provider_s_clock(
    store: MemoryStore, server: BillingServer, model: AnthropicModel
) -> None:
    first = go(store, model, no_wait=True)
    held = server.batches.held["msgbatch_000001"]
    held.created_at -= timedelta(hours=24, minutes=50)
    held.looks = 2
    early = Heard()
    assert go(store, model, resume=first.run_id, no_wait=True, listener=early).exit_code == 75
    held.created_at -= timedelta(minutes=20)
    late = Heard()
    assert_paid_once(go(store, model, resume=first.run_id, listener=late), server)
    assert ("msgbatch_000001" in early.notes, late.notes.count("msgbatch_000001")) == (False, 1)


@pytest.mark.parametrize("lost", [b"batch_intended", b"batch_submitted"])
def test_batch_whose_lines_were_damaged_is_looked_for_and_not_booked_as_free(
    tmp_path: Path, server: BillingServer, model: AnthropicModel, lost: bytes
) -> None:
    more: Any = {"model": model, "clock": FakeClock(), "options": {"batch": True, "max_cost_usd": 5, "no_wait": True}}
    first = ONE.run(store=FileStore(tmp_path, more["clock"]), **more)
    journal = tmp_path / first.run_id / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert sum(lost in line for line in lines) == 1
    journal.write_bytes(b"".join(line.replace(b"batch", b"bXtch") if lost in line else line for line in lines))
    for held in server.batches.held.values():
        held.looks = 0
    done = ONE.resume(first.run_id, store=FileStore(tmp_path, more["clock"]), **more)
    assert_paid_once(done, server)
