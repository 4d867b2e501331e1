"""Batches: half the price, one batch a round, found again after any end of the process, never submitted twice.

One that the provider does not show, or not whole, is waited for by the provider's own clock.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline import AnthropicModel, Event, Pipeline, ScriptedModel, Segment, StepContext, step
from pipeline.engine.result import RunResult
from pipeline.errors import BatchLost, ConfigError, ModelUnavailable, WaitingForBatch
from pipeline.llm.base import Batch
from pipeline.records.kinds import BatchAbandoned, BatchIntended, BatchSubmitted, CallStarted
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock
from tests.servers.billing import BillingServer
from tests.servers.models import MODELS
from tests.unit.engine.saying import MODEL, facts, notes
from tests.unit.engine.saying import ask as asking

NOTHING = Decimal(0)
#: Of the searches: where this machine's clock ends them.
LONGEST = "pipeline.engine.batch_ledger._LONGEST"


def ask(ctx: StepContext, text: Any, **more: Any) -> str:
    return ctx.ask(asking(str(text), MODEL, **{"max_tokens": 200, **more})).text


def items(count: int, body: Callable[[StepContext, Any], Any] = ask, **more: Any) -> Pipeline:
    """One step that maps so many items."""
    one = partial(body, **more) if more else body
    return Pipeline("items", [step("work")(lambda ctx: {"texts": list(ctx.map("i", range(count), one, key=str))})])


def rounds(count: int) -> Pipeline:
    """A step that asks, and one whose items ask twice, one after the other."""
    twice = items(count, lambda ctx, item: ask(ctx, f"second {ask(ctx, f'first {item}')}"))
    return Pipeline("rounds", [step("plan")(lambda ctx: {"plan": ask(ctx, "plan")}), *twice.definition.steps.values()])


ONE = items(4)


class Heard:
    """Keeps the events of a run, and does something at the n-th of a kind."""

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
        return "\n".join(notes(self.events))


class World:
    """A server that bills, a model that asks it, and a store."""

    def __init__(self, server: BillingServer, claude: AnthropicModel) -> None:
        self.server, self.claude = server, claude
        self.store: Store = MemoryStore(FakeClock())

    @property
    def batches(self) -> Any:
        return self.server.batches

    def other(self, key: str = "sk-ant-api03-of-another-workspace-0123456789", url: str = "") -> AnthropicModel:
        return AnthropicModel(MODEL, api_key=key, base_url=url or self.server.url)

    def go(
        self, what: Pipeline = ONE, resume: str = "", *, model: Any = None, clock: FakeClock | None = None,
        listener: Callable[[Event], None] | None = None, **options: Any,
    ) -> RunResult:  # fmt: skip
        more: Any = {
            "store": self.store, "model": model or self.claude, "clock": clock or FakeClock(), "listener": listener,
            "options": {"batch": True, "max_cost_usd": 5, **options},
        }  # fmt: skip
        return what.resume(resume, **more) if resume else what.run(**more)

    @property
    def sizes(self) -> list[int]:
        return [len(held.requests) for held in self.batches.held.values()]

    def paid_once(self, result: RunResult, *sizes: int) -> None:
        """The run is completed by batches of these sizes, and its ledger is the bill."""
        assert (result.status, self.sizes) == ("completed", list(sizes or (4,))), result.error
        assert (result.spent.usd, result.spent.high) == (self.server.bill.usd, NOTHING)

    def bounded(self, result: RunResult) -> None:
        """The bill is not in the ledger, but in what it takes to be possibly spent."""
        assert result.spent.usd < self.server.bill.usd <= result.spent.usd + result.spent.high


@pytest.fixture
def world(server: BillingServer, claude: AnthropicModel) -> World:
    return World(server, claude)


def test_batches_answer_every_ask_at_half_price_and_equal_the_bill(world: World) -> None:
    result = world.go(rounds(20))
    # One for the plan, then one for each of the two asks of all items together.
    world.paid_once(result, 1, 20, 20)
    assert result.outputs["work"]["texts"][3] == "second first 3"
    assert not world.server.seen
    plain = world.go(rounds(20), batch=False)
    assert plain.outputs == result.outputs
    assert plain.spent.usd > result.spent.usd


def test_a_batch_is_in_the_journal_before_it_is_created_with_all_its_calls(world: World) -> None:
    run = world.go(rounds(3)).run_id
    found = list(records(world.store, run))
    for place, record in enumerate(found):
        if isinstance(intended := record.fact, BatchIntended):
            started = {each.seq: each.fact for each in found[:place]}
            for row in intended.calls:
                call = started[row["call"]]
                assert isinstance(call, CallStarted)
                assert call.batch == intended.nonce
                assert row["id"].startswith(intended.nonce)
                assert len(row["id"]) <= 64
            submitted = found[place + 1].fact
            assert isinstance(submitted, BatchSubmitted)
            assert intended.provider_at.endswith("Z")
            assert intended.provider_at[:10] <= submitted.created_at[:10]


def test_no_wait_submits_and_leaves_and_a_resume_fetches(world: World) -> None:
    first = world.go(rounds(3), no_wait=True)
    assert (first.status, first.detail, first.exit_code) == ("in_progress", "waiting_for_batch", 75)
    # Also without --batch, what is out is waited for and not asked again.
    world.paid_once(world.go(rounds(3), first.run_id, batch=False), 1)
    assert len(world.server.seen) == 6


def test_no_wait_looks_once_takes_in_what_there_is_and_submits_the_next_round(world: World) -> None:
    what = items(3, lambda ctx, item: ask(ctx, ask(ctx, ask(ctx, item))))
    world.batches.looks = 1
    result, looked = world.go(what, no_wait=True), [1]
    while result.status != "completed" and len(looked) < 10:
        clock = FakeClock()
        result = world.go(what, result.run_id, no_wait=True, clock=clock)
        assert clock.waits == []
        looked.append(len(world.batches.held))
    # Of each batch the first look finds it out, the second one ended; then the next round goes out.
    assert looked == [1, 1, 2, 2, 3, 3, 3]
    world.paid_once(result, 3, 3, 3)


def test_what_errored_or_expired_goes_again_alone_and_what_is_wrong_fails_its_item(world: World) -> None:
    world.batches.ends, world.batches.looks, world.batches.creations = {1: "errored", 2: "expired"}, 0, [""]
    result = world.go(items(5))
    assert (result.status, world.sizes[:2]) == ("completed", [5, 2])
    assert result.spent.usd == world.server.bill.usd
    world.batches.ends = {0: "invalid"}
    other = world.go(items(5))
    assert other.status == "failed"
    assert len(load(world.store, other.run_id).tasks["work#1"]) == 5


def test_requests_without_a_result_are_free_where_all_answers_came(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.batches.ends, world.batches.looks, read = {1: "expired"}, 0, world.batches.read
    monkeypatch.setattr(world.batches, "read", lambda held: [row for row in read(held) if "message" in row["result"]])
    result = world.go()
    assert (world.sizes[:2], result.spent.usd, result.spent.high) == ([4, 1], world.server.bill.usd, NOTHING)


def test_a_batch_holds_only_what_the_ceiling_has_room_for(world: World) -> None:
    result = world.go(items(30), max_cost_usd="0.03")
    assert (result.status, sum(world.sizes)) == ("completed", 30)
    assert len(world.sizes) > 1
    assert result.spent.usd <= Decimal("0.03")
    poor = world.go(items(30), max_cost_usd="0.001")
    assert (poor.detail, poor.exit_code) == ("paused_budget", 5)


def test_fewer_than_batch_min_go_as_ordinary_calls(world: World) -> None:
    world.paid_once(world.go(rounds(3), batch_min=2), 3, 3)
    assert len(world.server.seen) == 1


def test_a_wrong_kind_of_request_is_found_before_the_batch_goes_out(world: World) -> None:
    result = world.go(items(3, effort="enormous"))
    assert (result.status, world.sizes, result.spent.usd) == ("failed", [], NOTHING)


@pytest.mark.parametrize("batch", [True, False])
def test_a_token_limit_that_the_model_does_not_take_is_refused_before_anything_is_sent(
    world: World, batch: bool
) -> None:
    caps: list[Any] = [0, -5, 128_001, 100.5, "100", True]
    for cap in caps:
        result = world.go(items(2, max_tokens=cap), batch=batch)
        assert (result.status, result.exit_code, result.spent.calls) == ("failed", 6, 0), cap
    assert (world.server.seen, world.sizes) == ([], [])
    assert world.go(items(2, max_tokens=128_000), batch=batch).status == "completed"


def test_a_truncated_answer_goes_again_with_a_higher_cap(world: World) -> None:
    result = world.go(items(1, lambda ctx, item: len(ask(ctx, "x" * 1000, max_tokens=150))))
    assert result.outputs["work"] == {"texts": [1000]}
    assert [held.requests[0]["params"]["max_tokens"] for held in world.batches.held.values()] == [150, 300]
    world.paid_once(result, 1, 1)


def test_a_model_without_batches_is_refused_before_anything_is_bought(world: World) -> None:
    with pytest.raises(ConfigError) as caught:
        world.go(model=ScriptedModel())
    assert (caught.value.code, list(world.store.heads())) == ("batches_unsupported", [])


def test_branches_share_a_batch(world: World) -> None:
    steps = [step("fan")(lambda ctx: {}), step("left")(lambda ctx: {"text": ask(ctx, "left")}),
             step("right")(lambda ctx: {"text": ask(ctx, "right")}), step("join")(lambda ctx: {})]  # fmt: skip
    edges = [("fan", "left"), ("fan", "right"), ("left", "join"), ("right", "join")]
    world.paid_once(world.go(Pipeline("wide", steps, edges=edges, joins={"join": "all"})), 2)


def test_a_worst_case_by_the_provider_s_count_is_smaller_and_still_a_bound(world: World) -> None:
    worst = []
    for budget in ("worst", "estimate"):
        result = world.go(items(1, lambda ctx, item: ask(ctx, "word " * 4000)), batch=False, budget=budget)
        worst.append(sum(Decimal(str(call.worst)) for call in facts(world.store, result.run_id, CallStarted)))
        assert result.spent.usd <= worst[-1]
    assert worst[1] < worst[0] * Decimal("0.7")


def test_shared_prefixes_in_a_batch_live_an_hour(world: World) -> None:
    result = world.go(items(4, system=[Segment("Rules. " * 2000, cache=True)]))
    assert result.spent.tokens["cache_write_1h"] > 0
    assert result.spent.tokens["cache_read"] == 3 * result.spent.tokens["cache_write_1h"]
    world.paid_once(result)


@pytest.mark.parametrize(("words", "told"), [(10, 1), (3000, 0)])
def test_a_prefix_that_is_never_read_is_said_once(world: World, words: int, told: int) -> None:
    system, heard = [Segment("Rules. " * words, cache=True)], Heard()
    world.go(items(7, system=system), batch=False, concurrency=1, listener=heard)
    assert len(notes(heard.events)) == told


@pytest.mark.parametrize(
    "trouble",
    [
        {"creations": ["drop"]}, {"creations": ["lose"]}, {"creations": ["drop"], "unlisted": 4},
        {"creations": ["page"], "unlisted": 4}, {"creations": ["odd"], "unlisted": 4}, {"unseen": 3}, {"unread": 3},
        {"halves": 1}, {"halves": 3},
    ],
)  # fmt: skip
def test_young_batch_s_404_is_an_outage(world: World, trouble: dict[str, Any]) -> None:
    for resubmit in (False, True):
        world.server.reset()
        vars(world.batches).update(copy.deepcopy(trouble))
        world.paid_once(world.go(resubmit=resubmit))


def test_another_run_s_batch_of_the_same_size_is_not_taken_for_ours(world: World) -> None:
    world.claude.batches.submit([("somebody-elses", asking("foreign", MODEL, max_tokens=100))])
    world.batches.creations = ["lose"]
    result = world.go(rounds(2))
    assert (result.status, result.outputs["plan"]) == ("completed", {"plan": "plan"})


def test_batch_created_after_its_connection_was_cut_is_found_and_paid_once(world: World) -> None:
    world.batches.creations = ["late"]
    heard = Heard("waiting", 3, lambda: world.batches.appear(MODELS))
    world.paid_once(world.go(listener=heard))
    assert "--resubmit" in heard.notes


@pytest.mark.parametrize("looks", [0, 2])
def test_several_unclear_batches_of_one_size_are_told_apart(world: World, looks: int) -> None:
    world.claude.batches.most_requests = 1
    world.batches.creations, world.batches.looks = ["odd", "late", "drop", "drop"], looks
    world.paid_once(world.go(listener=Heard("waiting", 1, lambda: world.batches.appear(MODELS))), 1, 1, 1, 1)


@pytest.mark.parametrize("wrong", [timedelta(minutes=20), timedelta(days=400), timedelta(days=-400)])
def test_clock_of_this_machine_is_no_proof(world: World, wrong: timedelta) -> None:
    clock = FakeClock(world.claude.batches.time() + wrong)
    world.batches.creations, world.batches.looks = ["drop"], 100
    first = world.go(clock=clock, no_wait=True)
    assert (first.exit_code, first.spent.usd) == (75, NOTHING)
    assert first.spent.high > 0
    for held in world.batches.held.values():
        held.looks = 0
    world.paid_once(world.go(ONE, first.run_id, clock=clock))


def test_another_key_is_no_proof_and_the_right_one_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LONGEST, timedelta(hours=2))
    world.batches.creations = ["drop"]
    first = world.go(no_wait=True)
    # It is looked for for a day, and then left as it is: nothing is submitted again, nothing is booked as free.
    second = world.go(ONE, first.run_id, model=world.other())
    assert isinstance(second.error, BatchLost)
    assert (second.exit_code, world.sizes, second.spent.high) == (75, [4], first.spent.high)
    assert "--resubmit" in second.error.hint
    world.paid_once(world.go(ONE, first.run_id))


def test_batch_with_its_id_recorded_is_waited_for_with_another_key_too(world: World) -> None:
    first = world.go(no_wait=True)
    second = world.go(ONE, first.run_id, model=world.other(), no_wait=True)
    assert (second.exit_code, type(second.error), world.sizes) == (75, WaitingForBatch, [4])
    assert [name for name, _ in world.batches.strangers] == ["msgbatch_000001"]
    world.paid_once(world.go(ONE, first.run_id))


def test_resubmit_does_not_wait_for_a_batch_that_is_gone(world: World) -> None:
    first = world.go(rounds(2), no_wait=True)
    world.batches.held.clear()
    gone = world.go(rounds(2), first.run_id, no_wait=True)
    assert (gone.detail, gone.exit_code) == ("waiting_for_batch", 75)
    done = world.go(rounds(2), first.run_id, resubmit=True)
    assert (done.status, done.spent.low) == ("completed", NOTHING)
    assert done.spent.high > 0


def test_search_goes_on_for_a_day_by_the_provider_s_clock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LONGEST, timedelta(hours=25))
    world.batches.creations = ["late"]
    clock = FakeClock()
    lost = world.go(clock=clock)
    assert isinstance(lost.error, BatchLost)
    assert sum(clock.waits) >= 24 * 3600
    assert len(clock.waits) < 300
    # A day later by the provider's clock one look is enough; the calls are still open at their worst case.
    monkeypatch.setattr("pipeline.engine.batch_ledger._LOOKING", timedelta(0))
    again = world.go(ONE, lost.run_id, clock=(clock := FakeClock()))
    assert (again.exit_code, again.spent.usd, clock.waits) == (75, NOTHING, [])
    assert again.spent.high == lost.spent.high > 0


def test_resubmit_keeps_the_first_batch_as_possibly_spent(world: World) -> None:
    world.batches.creations = ["late"]
    first = world.go(no_wait=True)
    done = world.go(ONE, first.run_id, resubmit=True)
    assert (done.status, done.spent.usd) == ("completed", world.server.bill.usd)
    assert done.spent.high == first.spent.high > 0
    (given_up,) = facts(world.store, done.run_id, BatchAbandoned)
    assert (given_up.batch, given_up.requests) == ("", 4)
    # What was possibly spent is spent after all: the bill stays inside the ledger.
    world.batches.appear(MODELS)
    for held in list(world.batches.held.values()):
        world.batches.look(held, lambda _: {})
    assert done.spent.usd <= world.server.bill.usd <= done.spent.usd + done.spent.high


def test_results_that_are_archived_are_not_waited_for(world: World) -> None:
    first = world.go(no_wait=True)
    world.batches.archived, world.batches.held["msgbatch_000001"].looks = True, 0
    gone = world.go(ONE, first.run_id, clock=(clock := FakeClock()))
    assert (type(gone.error), gone.exit_code, clock.waits) == (BatchLost, 75, [])


def test_answers_that_never_come_stay_possibly_spent_and_are_bought_again_only_on_request(world: World) -> None:
    world.batches.halves = 10**6
    first = world.go()
    assert (type(first.error), first.exit_code, world.sizes) == (BatchLost, 75, [4])
    world.bounded(first)
    world.batches.halves = 0
    world.paid_once(world.go(ONE, first.run_id))
    world.server.reset()
    world.batches.halves = 6
    done = world.go(resubmit=True)
    assert (done.status, world.sizes) == ("completed", [4, 2])
    world.bounded(done)


def test_resubmit_asks_each_question_again_once_a_start(world: World) -> None:
    world.batches.halves = 10**6
    first = world.go(resubmit=True)
    assert (first.exit_code, world.sizes) == (75, [4, 2])
    world.bounded(first)
    second = world.go(ONE, first.run_id, resubmit=True)
    assert (second.exit_code, world.sizes) == (75, [4, 2, 1])


def test_rows_that_are_no_answer_to_a_request_count_for_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_odd_row(read: Callable[[Any], Any], odds: list[dict[str, Any]], held: Any) -> Any:
        """The results with their last row altered, once."""
        rows = read(held)
        odd = odds.pop() if odds else rows[-1]
        return [*rows[:-1], {**rows[-1], **odd} if odd else {}]

    for odd in ({}, {"custom_id": "another"}, {"result": {"type": "succeeded"}}, {"result": {"type": "paused"}}):
        world.server.reset()
        monkeypatch.setattr(world.batches, "read", partial(with_odd_row, world.batches.read, [odd]))
        world.paid_once(world.go())


def test_look_that_is_to_wait_for_hours_leaves_the_batch_instead(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(_: str) -> Batch:
        raise ModelUnavailable("Busy.", status=429, retry_after=86_400.0)

    first = world.go(no_wait=True)
    with monkeypatch.context() as patch:
        patch.setattr(world.claude.batches, "look", busy)
        left = world.go(ONE, first.run_id, clock=(clock := FakeClock()))
    assert (left.exit_code, clock.waits) == (75, [])
    world.paid_once(world.go(ONE, first.run_id))


def test_no_wait_with_resubmit_leaves_a_young_batch_to_the_next_look(world: World) -> None:
    world.batches.creations, world.batches.unlisted = ["drop"], 3
    run = world.go(no_wait=True, resubmit=True)
    for _ in range(6):
        if run.status != "completed":
            assert run.exit_code == 75
            run = world.go(ONE, run.run_id, no_wait=True, resubmit=True)
    world.paid_once(run)


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


def test_what_certainly_never_left_goes_again_at_once(world: World) -> None:
    own = world.claude.batches
    for url in ("http://127.0.0.1:1", "http://name.invalid", world.server.url.replace("http:", "https:")):
        world.server.reset()
        world.claude.batches = Unreachable(own, [world.other(url=url)])
        world.paid_once(world.go(clock=(clock := FakeClock())))
        assert clock.waits[:1] in ([], [5.0]), url


def test_refused_batches_wait_as_asked_and_a_resume_tries_again(world: World) -> None:
    world.batches.creations = ["refuse"] * 8
    first = world.go()
    assert (first.detail, world.sizes) == ("paused_rate_limit", [])
    world.paid_once(world.go(ONE, first.run_id))


def test_late_batch_is_said_by_the_provider_s_clock(world: World) -> None:
    first, early, late = world.go(no_wait=True), Heard(), Heard()
    held = world.batches.held["msgbatch_000001"]
    held.created_at, held.looks = held.created_at - timedelta(hours=24, minutes=50), 2
    assert world.go(ONE, first.run_id, no_wait=True, listener=early).exit_code == 75
    held.created_at -= timedelta(minutes=20)
    world.paid_once(world.go(ONE, first.run_id, listener=late))
    assert ("msgbatch_000001" in early.notes, late.notes.count("msgbatch_000001")) == (False, 1)


@pytest.mark.parametrize("lost", [b"batch_intended", b"batch_submitted"])
def test_batch_whose_lines_were_damaged_is_looked_for_and_not_booked_as_free(
    world: World, tmp_path: Path, lost: bytes
) -> None:
    world.store = FileStore(tmp_path, FakeClock())
    first = world.go(no_wait=True)
    journal = tmp_path / first.run_id / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert sum(lost in line for line in lines) == 1
    journal.write_bytes(b"".join(line.replace(b"batch", b"bXtch") if lost in line else line for line in lines))
    for held in world.batches.held.values():
        held.looks = 0
    world.paid_once(world.go(ONE, first.run_id, no_wait=True))
