"""The day's limit: held over runs, threads and processes of a store, whatever crashes; a warning before it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import (
    Event,
    Message,
    Pipeline,
    Reply,
    Request,
    ScriptedModel,
    StepContext,
    open_account,
    open_store,
    step,
)
from pipeline.engine.daily import Daily, Ticket
from pipeline.engine.result import RunResult
from pipeline.errors import BudgetExceeded, ConfigError, StoreError, WriteFailed
from pipeline.records.charge import in_full
from pipeline.store.account import FileAccount
from pipeline.store.integrity import check
from pipeline.store.memory import MemoryAccount, MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from tests.unit.engine.saying import worst_of

MODEL = "claude-sonnet-5-5"


def asking(item: int) -> Request:
    return Request(MODEL, [Message("user", f"item {item}")], max_tokens=1000)


def worst() -> Decimal:
    return worst_of(asking(1), FakeClock().now())


def items(count: int) -> Pipeline:
    @step("go")
    def go(ctx: StepContext) -> Any:
        return {"all": list(ctx.map("item", range(count), lambda c, i: c.ask(asking(i)).text, key=str))}

    return Pipeline("daily", [go])


def run(
    count: int,
    account: Any,
    limit: Decimal | None,
    listener: Any = None,
    clock: FakeClock | None = None,
    store: MemoryStore | None = None,
) -> RunResult:
    reply = Reply("x", "end_turn", {"input_tokens": 10, "output_tokens": 900}, MODEL)
    model = ScriptedModel(lambda request: reply, model_id=MODEL, paid=True)
    options = {"daily_budget_usd": None if limit is None else str(limit), "concurrency": 3}
    store = store or MemoryStore(FakeClock())
    return items(count).run(
        store=store, model=model, options=options, account=account, listener=listener, clock=clock or FakeClock()
    )


def test_runs_of_one_store_share_the_day_and_what_was_not_used_is_given_back() -> None:
    account, clock = MemoryAccount(FakeClock()), FakeClock()
    limit = worst() * 4
    first = run(3, account, limit)
    assert first.status == "completed"
    assert account.total(clock.now().date()) == first.spent.usd
    results = [run(6, account, limit) for _ in range(6)]
    assert results[-1].detail == "paused_budget"
    error = results[-1].error
    assert isinstance(error, BudgetExceeded)
    assert "--daily-budget-usd" in error.hint
    total = first.spent.usd + sum((result.spent.usd for result in results), Decimal(0))
    assert total == account.total(clock.now().date()) <= limit


def test_day_s_limit_counts_what_the_runs_spent_where_the_account_was_lost() -> None:
    store, limit = MemoryStore(FakeClock()), worst() * 4
    first = run(3, kept := MemoryAccount(FakeClock()), limit, store=store)
    assert not list(check(store, kept))
    lost = MemoryAccount(FakeClock())
    (told,) = check(store, lost)
    assert (told.run, told.serious) == ("", False)
    second = run(6, lost, limit, store=store)
    assert second.detail == "paused_budget"
    assert lost.total(FakeClock().now().date()) == first.spent.usd + second.spent.usd <= limit


def test_another_day_begins_at_midnight_utc() -> None:
    account, clock = MemoryAccount(FakeClock()), FakeClock()
    limit = worst() * Decimal("1.1")
    while run(1, account, limit, clock=clock).status == "completed":
        pass
    tomorrow = FakeClock(datetime.combine(clock.now().date() + timedelta(days=1), datetime.min.time(), UTC))
    assert run(1, account, limit, clock=tomorrow).status == "completed"


def test_near_the_day_s_limit_there_is_one_warning() -> None:
    events: list[Event] = []
    account = MemoryAccount(FakeClock())
    while run(1, account, worst() * 2, events.append).status == "completed":
        pass
    notes = [event.data["text"] for event in events if event.type == "note"]
    assert any("80 % of the day's limit" in text for text in notes)


def test_near_the_ceiling_there_is_one_warning() -> None:
    events: list[Event] = []
    model = ScriptedModel(lambda request: Reply("x", "end_turn", {"input_tokens": 1, "output_tokens": 1000}, MODEL),
                          model_id=MODEL, paid=True)  # fmt: skip
    options = {"max_cost_usd": str(worst() * 5), "concurrency": 1}
    items(9).run(store=MemoryStore(FakeClock()), model=model, options=options, listener=events.append)
    notes = [event.data["text"] for event in events if event.type == "note"]
    assert [text for text in notes if "80 %" in text] == [
        f"80 % of the ceiling of {in_full(worst() * 5)} is spent or in flight."
    ]


def test_a_day_s_limit_without_an_account_is_refused() -> None:
    with pytest.raises(ConfigError, match="account"):
        run(1, None, Decimal(1))


def test_an_account_that_cannot_be_written_pauses_the_run_and_fails_no_item() -> None:
    class Broken(MemoryAccount):
        def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal) -> str | None:
            raise WriteFailed("The account cannot be used: disk full.")

    result = run(2, Broken(FakeClock()), Decimal(1))
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "interrupted", 3)


@pytest.mark.parametrize("limit", [None, Decimal(1)])
def test_a_damaged_account_pauses_the_run_before_any_call(limit: Decimal | None) -> None:
    class Damaged(MemoryAccount):
        def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal) -> str | None:
            raise StoreError("The account is damaged.", hint="Bring it back.")

    result = run(2, Damaged(FakeClock()), limit)
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "interrupted", 3)
    assert isinstance(result.error, StoreError)
    assert result.error.hint == "Bring it back."
    assert result.spent.calls == 0


@settings(max_examples=40, deadline=None)
@given(
    costs=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 100), st.booleans()), min_size=1, max_size=60),
    limit=st.integers(20, 400),
    owners=st.integers(1, 4),
)
def test_admitted_never_passes_the_day_s_limit_over_owners_and_deaths(
    costs: Sequence[tuple[int, int, bool]], limit: int, owners: int
) -> None:
    """Each cost: worst case in cents, the share of it that is spent, and whether its owner dies right after."""
    account, clock = MemoryAccount(FakeClock()), FakeClock()
    cap = Decimal(limit) / 100
    open_: list[list[tuple[Ticket, Decimal]]] = [[] for _ in range(owners)]
    days = [Daily(account, cap, clock, f"host:{n}:x") for n in range(owners)]
    spent = Decimal(0)
    for place, (cents, share, dies) in enumerate(costs):
        owner = place % owners
        high = Decimal(cents) / 100
        ticket = days[owner].take(high)
        if ticket is not None:
            open_[owner].append((ticket, high * share / 100))
            spent += high * share / 100
        if dies:
            # What was out may have been spent in full, and nobody will say.
            open_[owner].clear()
            days[owner] = Daily(account, cap, clock, f"host:{owner}:later")
        elif len(open_[owner]) > 2:
            days[owner].give_back(*open_[owner].pop(0))
        assert account.total(clock.now().date()) <= cap
    for owner, day in enumerate(days):
        for ticket, cost in open_[owner]:
            day.give_back(ticket, cost)
        day.leave()
    assert spent <= account.total(clock.now().date()) <= cap


_CHILD = """
import sys
from decimal import Decimal
from pathlib import Path
from pipeline.clock import SystemClock
from pipeline.engine.daily import Daily
from pipeline.store.account import FileAccount
root, number, dies = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "dies"
daily = Daily(FileAccount(root, SystemClock()), Decimal("1.00"), SystemClock(), f"host:{number}:x")
taken = 0
for _ in range(60):
    ticket = daily.take(Decimal("0.02"))
    if ticket is None:
        break
    taken += 1
    daily.give_back(ticket, Decimal("0.01"))
print(taken)
sys.stdout.flush()
if dies:
    import os
    os._exit(9)
daily.leave()
"""


def test_processes_at_once_never_pass_the_day_s_limit_and_a_dead_one_s_slices_count(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(tmp_path), str(number), "dies" if number == 2 else "lives"],
            stdout=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    taken = [int(child.communicate(timeout=60)[0]) for child in children]
    account = FileAccount(tmp_path, FakeClock())
    day = datetime.fromisoformat(_reserved_day(tmp_path)).date()
    assert sum(taken) * Decimal("0.01") <= account.total(day) <= Decimal("1.00")
    assert sum(taken) >= 60


def _reserved_day(root: Path) -> str:
    import json

    return str(json.loads((root / "account.jsonl").read_text().splitlines()[0])["day"])


def test_threads_at_once_never_pass_the_limit() -> None:
    account, clock = MemoryAccount(FakeClock()), FakeClock()
    daily = Daily(account, Decimal("0.50"), clock, "host:1:x")
    taken: list[Ticket] = []

    def work() -> None:
        for _ in range(40):
            if (ticket := daily.take(Decimal("0.02"))) is not None:
                taken.append(ticket)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 25


def test_the_library_opens_the_account_of_a_store(tmp_path: Path) -> None:
    url = f"files:{tmp_path}"
    model = ScriptedModel(lambda request: "fine", model_id=MODEL, paid=True)
    result = items(2).run(
        store=open_store(url), model=model, options={"daily_budget_usd": "1"}, account=open_account(url)
    )
    assert result.status == "completed"
    assert (tmp_path / "account.jsonl").exists()


def test_a_run_without_a_limit_counts_for_the_limit_of_another() -> None:
    account = MemoryAccount(FakeClock())
    first = run(4, account, None)
    assert first.status == "completed"
    assert first.spent.usd > 0
    assert account.total(FakeClock().now().date()) == first.spent.usd
    second = run(1, account, first.spent.usd + worst() * Decimal("0.9"))
    assert second.detail == "paused_budget"
    assert isinstance(second.error, BudgetExceeded)
    assert f"${first.spent.usd:.4f} spent or reserved today by the runs of this store" in second.error.message


def test_a_run_without_a_limit_is_stopped_by_no_account() -> None:
    class Broken(MemoryAccount):
        def reserve(self, owner: str, usd: Decimal, at: datetime, limit: Decimal) -> str | None:
            raise WriteFailed("The account cannot be used: disk full.")

    assert run(2, Broken(FakeClock()), None).status == "completed"


def test_many_calls_at_once_without_a_limit_are_few_slices() -> None:
    account, taken = MemoryAccount(FakeClock()), []
    daily = Daily(account, None, FakeClock(), "h:1:x", note=lambda name, day, usd: taken.append(usd))
    tickets = [daily.take(Decimal("0.5")) for _ in range(64)]
    assert None not in tickets
    assert len(taken) < 10
    daily.leave()
    assert account.total(FakeClock().now().date()) == 32


_DYING = """
import os, sys
from decimal import Decimal
from pipeline import Message, Pipeline, Reply, Request, ScriptedModel, open_account, open_store, step
calls = []
def answer(request):
    calls.append(request)
    if len(calls) == 3:
        os._exit(9)
    return Reply("x", "end_turn", {"input_tokens": 10, "output_tokens": 900}, "claude-sonnet-5-5")
@step("go")
def go(ctx):
    ask = lambda c, i: c.ask(Request("claude-sonnet-5-5", [Message("user", f"item {i}")], max_tokens=1000)).text
    return {"all": list(ctx.map("item", range(4), ask, key=str))}
url = sys.argv[1]
model = ScriptedModel(answer, model_id="claude-sonnet-5-5", paid=True)
Pipeline("daily", [go]).run(store=open_store(url), model=model, account=open_account(url),
                            options={"daily_budget_usd": "100", "concurrency": 1})
"""


@pytest.fixture
def died(tmp_path: Path) -> str:
    """The URL of a store with a run whose owner was killed in its third call, its slice open."""
    url = f"files:{tmp_path}"
    assert subprocess.run([sys.executable, "-c", _DYING, url], check=False, timeout=60).returncode == 9
    assert open_account(url).total(_day(url)) == 1
    return url


def _day(url: str) -> date:
    return datetime.fromisoformat(_reserved_day(Path(url.removeprefix("files:")))).date()


def _go_on(url: str, options: dict[str, Any], resume: str = "") -> RunResult:
    reply = Reply("x", "end_turn", {"input_tokens": 10, "output_tokens": 900}, MODEL)
    model = ScriptedModel(lambda request: reply, model_id=MODEL, paid=True)
    clock = FakeClock(datetime.combine(_day(url), datetime.max.time(), UTC) - timedelta(hours=1))
    more = {"store": open_store(url, clock), "account": open_account(url, clock), "clock": clock, "model": model}
    pipeline = items(4)
    return pipeline.resume(resume, options=options, **more) if resume else pipeline.run(options=options, **more)


def test_a_resume_settles_what_its_dead_owner_left_open(died: str) -> None:
    (head,) = open_store(died).heads()
    before = load(open_store(died), head.run_id)
    result = _go_on(died, {}, head.run_id)
    assert result.status == "completed"
    # The call in which it died may have been billed; it counts at its worst.
    assert result.spent.high > 0
    assert open_account(died).total(_day(died)) == result.spent.usd + result.spent.high
    assert before.slices
    assert not load(open_store(died), head.run_id).slices


def test_who_needs_the_room_settles_what_a_dead_process_left_open(died: str) -> None:
    (head,) = open_store(died).heads()
    total = load(open_store(died), head.run_id).total
    known = total.usd + total.high
    assert known < Decimal("0.2")
    result = _go_on(died, {"daily_budget_usd": str(known + worst() * 4), "concurrency": 1})
    assert result.status == "completed", result.error
    assert open_account(died).total(_day(died)) == known + result.spent.usd


def test_slices_of_a_living_process_are_left_alone(died: str) -> None:
    (head,) = open_store(died).heads()
    journal = open_store(died).open(head.run_id)
    try:
        result = _go_on(died, {"daily_budget_usd": "0.9", "concurrency": 1})
    finally:
        journal.close()
    assert result.detail == "paused_budget"
    assert open_account(died).total(_day(died)) == 1
