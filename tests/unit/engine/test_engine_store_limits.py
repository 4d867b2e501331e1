"""The day's limit: held over runs, threads and processes of a store, whatever crashes; a warning before it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import Event, Pipeline, Reply, RunResult, ScriptedModel, StepContext, open_account, open_store, step
from pipeline.app.settlement import one_call, settle
from pipeline.engine.store_limits import StoreLimits, Ticket
from pipeline.errors import BudgetExceeded, StoreError, WriteFailed
from pipeline.store.account import FileAccount
from pipeline.store.integrity import check
from pipeline.store.memory import MemoryAccount, MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from tests.unit.engine.saying import MODEL, ask, notes, worst_of

CLOCK = FakeClock()
TODAY = CLOCK.now().date()
WORST = worst_of(ask("item 1", MODEL, max_tokens=1000), CLOCK.now())


def items(count: int) -> Pipeline:
    @step("go")
    def go(ctx: StepContext) -> Any:
        def one(ctx: StepContext, item: int) -> str:
            return ctx.ask(ask(f"item {item}", MODEL, max_tokens=1000)).text

        return {"all": list(ctx.map("item", range(count), one, key=str))}

    return Pipeline("daily", [go])


def answering() -> ScriptedModel:
    reply = Reply("x", "end_turn", {"input_tokens": 10, "output_tokens": 900}, MODEL)
    return ScriptedModel(lambda request: reply, model_id=MODEL, paid=True)


def run(count: int, account: Any, limit: Decimal | None, *, store: MemoryStore | None = None, **more: Any) -> RunResult:
    options = {"daily_budget_usd": None if limit is None else str(limit), "concurrency": 3, **more.pop("options", {})}
    more = {"clock": FakeClock(), "account": account, **more}
    return items(count).run(store=store or MemoryStore(FakeClock()), model=answering(), options=options, **more)


def test_runs_of_one_store_share_the_day_and_what_was_not_used_is_given_back() -> None:
    account, limit = MemoryAccount(FakeClock()), WORST * 4
    first = run(3, account, limit)
    assert (first.status, account.total(TODAY)) == ("completed", first.spent.usd)
    results = [first, *(run(6, account, limit) for _ in range(6))]
    error = results[-1].error
    assert isinstance(error, BudgetExceeded)
    assert (results[-1].detail, error.code) == ("paused_budget", "day_limit_reached")
    assert sum(result.spent.usd for result in results) == account.total(TODAY) <= limit


def test_day_s_limit_counts_what_the_runs_spent_where_the_account_was_lost() -> None:
    store, limit = MemoryStore(FakeClock()), WORST * 4
    first = run(3, kept := MemoryAccount(FakeClock()), limit, store=store)
    assert not list(check(store, kept))
    lost = MemoryAccount(FakeClock())
    (told,) = check(store, lost)
    assert (told.run, told.serious) == ("", False)
    second = run(6, lost, limit, store=store)
    assert second.detail == "paused_budget"
    assert lost.total(TODAY) == first.spent.usd + second.spent.usd <= limit


def test_another_day_begins_at_midnight_utc_and_near_the_limit_there_is_one_warning() -> None:
    account, limit, events = MemoryAccount(FakeClock()), WORST * Decimal("1.1"), list[Event]()
    while run(1, account, limit, listener=events.append).status == "completed":
        pass
    assert len([text for text in notes(events) if "80 %" in text]) == 1
    tomorrow = FakeClock(datetime.combine(TODAY + timedelta(days=1), datetime.min.time(), UTC))
    assert run(1, account, limit, clock=tomorrow).status == "completed"


def test_near_the_ceiling_there_is_one_warning() -> None:
    events: list[Event] = []
    options = {"max_cost_usd": str(WORST * 5), "concurrency": 1}
    run(9, None, None, options=options, listener=events.append)
    assert len([text for text in notes(events) if "80 %" in text]) == 1


@pytest.mark.parametrize(
    ("error", "limit", "paused"),
    [
        (WriteFailed("disk full"), Decimal(1), True), (WriteFailed("disk full"), None, False),
        (StoreError("It is damaged."), Decimal(1), True), (StoreError("It is damaged."), None, True),
    ],
)  # fmt: skip
def test_an_account_that_cannot_be_used_pauses_before_any_call_and_fails_no_item(
    error: StoreError, limit: Decimal | None, paused: bool
) -> None:
    """A run without a limit is stopped by none; only where it is damaged, what is spent would not be seen."""

    class Broken(MemoryAccount):
        def reserve(
            self, owner: str, usd: Decimal, at: datetime, limit: Decimal | None, labels: str = ""
        ) -> str | None:
            raise error

    result = run(2, Broken(FakeClock()), limit)
    if not paused:
        assert result.status == "completed"
        return
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "interrupted", 3)
    assert (result.error, result.spent.calls) == (error, 0)


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
    account, cap = MemoryAccount(FakeClock()), Decimal(limit) / 100
    open_: list[list[tuple[Ticket, Decimal]]] = [[] for _ in range(owners)]
    days = [StoreLimits(account, cap, CLOCK, f"host:{n}:x") for n in range(owners)]
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
            days[owner] = StoreLimits(account, cap, CLOCK, f"host:{owner}:later")
        elif len(open_[owner]) > 2:
            days[owner].give_back(*open_[owner].pop(0))
        assert account.total(TODAY) <= cap
    for owner, day in enumerate(days):
        for ticket, cost in open_[owner]:
            day.give_back(ticket, cost)
        day.leave()
    assert spent <= account.total(TODAY) <= cap


_CHILD = """
import os, sys
from decimal import Decimal
from pipeline.clock import SystemClock
from pipeline.engine.store_limits import StoreLimits
from pipeline.store.url import open_account, open_store
url, number, limit, labels = sys.argv[1:]
day = Decimal(limit) if limit else None
limits = StoreLimits(open_account(url), day, SystemClock(), f"host:{number}:x", labels=labels)
taken = 0
while taken < 60 and (ticket := limits.take(Decimal("0.02"))) is not None:
    taken += 1
    limits.give_back(ticket, Decimal("0.01"))
print(taken, flush=True)
if number == "2":
    os._exit(9)
limits.leave()
"""


def taken_by_processes(url: str, limit: str = "", labels: tuple[str, str] = ("", "")) -> int:
    """Let four processes take and give back until nothing fits, one of them dying; how often something was taken."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _CHILD, url, str(number), limit, labels[number % 2]],
            stdout=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    return sum(int(child.communicate(timeout=300)[0]) for child in children)


def _reserved_day(root: Path) -> date:
    return date.fromisoformat(json.loads((root / "account.jsonl").read_text().splitlines()[0])["day"])


def test_processes_at_once_never_pass_the_day_s_limit_and_a_dead_one_s_slices_count(tmp_path: Path) -> None:
    taken = taken_by_processes(f"files:{tmp_path}", "1.00")
    total = FileAccount(tmp_path, FakeClock()).total(_reserved_day(tmp_path))
    assert taken * Decimal("0.01") <= total <= Decimal("1.00")
    assert taken >= 60


def test_a_run_without_a_limit_counts_for_the_limit_of_another() -> None:
    account = MemoryAccount(FakeClock())
    first = run(4, account, None)
    assert account.total(TODAY) == first.spent.usd > 0
    second = run(1, account, first.spent.usd + WORST * Decimal("0.9"))
    assert second.detail == "paused_budget"


def test_many_calls_at_once_without_a_limit_are_few_slices() -> None:
    account, taken = MemoryAccount(FakeClock()), list[Decimal]()
    limits = StoreLimits(account, None, CLOCK, "h:1:x", note=lambda name, day, usd: taken.append(usd))
    assert None not in [limits.take(Decimal("0.5")) for _ in range(64)]
    assert len(taken) < 10
    limits.leave()
    assert account.total(TODAY) == 32


_DYING = """
import os, sys
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


class Died:
    """A store with a run whose owner was killed in its third call, its slice open."""

    def __init__(self, root: Path) -> None:
        self.url = f"files:{root}"
        assert subprocess.run([sys.executable, "-c", _DYING, self.url], check=False, timeout=300).returncode == 9
        self.day = _reserved_day(root)
        (head,) = open_store(self.url).heads()
        self.run = head.run_id
        self.state = load(open_store(self.url), self.run)
        assert self.account == 1

    @property
    def account(self) -> Decimal:
        total: Decimal = open_account(self.url).total(self.day)
        return total

    def go(self, resume: str = "", *, days: int = 0, **options: Any) -> RunResult:
        clock = FakeClock(datetime.combine(self.day, datetime.max.time(), UTC) + timedelta(days=days, hours=-1))
        more: Any = {"store": open_store(self.url, clock), "account": open_account(self.url, clock), "clock": clock,
                     "model": answering(), "options": options}  # fmt: skip
        return items(4).resume(resume, **more) if resume else items(4).run(**more)


def test_a_resume_settles_what_its_dead_owner_left_open(tmp_path: Path) -> None:
    died = Died(tmp_path)
    assert died.state.slices
    result = died.go(died.run)
    assert result.status == "completed"
    # The call in which it died may have been billed; it counts at its worst.
    assert result.spent.high > 0
    assert died.account == result.spent.usd + result.spent.high
    # What it was billed is counted once it is known, whenever that is.
    (lost,) = load(open_store(died.url), died.run).open_calls
    settle(open_store(died.url), died.run, one_call(lost, Decimal("0.01")), account=open_account(died.url))
    assert died.account == result.spent.usd + Decimal("0.01")


def test_who_needs_the_room_settles_what_a_dead_process_left_open_and_none_of_a_living_one(tmp_path: Path) -> None:
    died = Died(tmp_path)
    journal = open_store(died.url).open(died.run)
    assert died.go(daily_budget_usd="0.9", concurrency=1).detail == "paused_budget"
    assert died.account == 1
    journal.close()
    known = died.state.total.usd + died.state.total.high
    assert known < Decimal("0.2")
    result = died.go(daily_budget_usd=str(known + WORST * 4), concurrency=1)
    assert result.status == "completed", result.error
    assert died.account == known + result.spent.usd
