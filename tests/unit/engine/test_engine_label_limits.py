"""Limits by label and over windows: held over runs, processes, deaths, batches and late settlements of a store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import Event, RunResult
from pipeline.app.removals import removals, remove
from pipeline.engine.store_limits import StoreLimits, Ticket, settle_dead, settle_slices
from pipeline.errors import BudgetExceeded, WriteFailed
from pipeline.records.budgets import Limit, LimitStanding
from pipeline.records.charge import Charge
from pipeline.records.kinds import CallEnded, CallStarted, DayReserved
from pipeline.store.base import Account, Movable
from pipeline.store.copies import copy
from pipeline.store.memory import MemoryAccount, MemoryStore
from pipeline.store.reader import load
from pipeline.store.url import open_account, open_store
from pipeline.testing import FakeClock, ScriptedModel
from tests.journals import line, started
from tests.stores import write
from tests.unit.engine.saying import MODEL, notes
from tests.unit.engine.test_engine_batches import ONE, World
from tests.unit.engine.test_engine_batches import world as world
from tests.unit.engine.test_engine_store_limits import CLOCK, WORST, Died, answering, items, taken_by_processes

MATHS, PHYSICS = "team=maths", "team=physics"


def run(store: MemoryStore, count: int, labels: str = MATHS, resume: str = "", **more: Any) -> RunResult:
    options = {"concurrency": 3, **({} if resume else {"labels": labels}), **more.pop("options", {})}
    more = {"store": store, "model": answering(), "options": options, "clock": FakeClock(), **more}
    return items(count).resume(resume, **more) if resume else items(count).run(**more)


def limited(usd: Decimal, per: str = "month", labels: str = MATHS) -> MemoryStore:
    store = MemoryStore(FakeClock())
    store.account().set_limit(Limit(labels, per, usd))
    return store


def standing(account: Account) -> LimitStanding:
    (one,) = account.standings(CLOCK.now())
    return one


def test_labelled_runs_stop_at_their_limit_others_do_not_and_a_raised_one_lets_them_end() -> None:
    limit = WORST * 4
    store = limited(limit)
    first = run(store, 3)
    assert first.status == "completed"
    stopped = run(store, 12)
    error = stopped.error
    assert isinstance(error, BudgetExceeded)
    assert (stopped.detail, error.code, stopped.exit_code) == ("paused_budget", "limit_reached", 5)
    assert f"the limit of {Limit(MATHS, 'month', limit).words}" in error.message
    assert error.data["left"] in str(standing(store.account()).left)
    assert "budget set --label team=maths --per month --usd USD" in error.hint
    assert first.spent.usd + stopped.spent.usd == standing(store.account()).tally.spent <= limit
    assert standing(store.account()).tally.reserved == 0
    assert run(store, 12, PHYSICS).status == "completed"
    # A resume keeps its run's labels.
    assert run(store, 12, resume=stopped.run_id).detail == "paused_budget"
    store.account().set_limit(Limit(MATHS, "month", WORST * 40))
    ended = run(store, 12, resume=stopped.run_id)
    assert ended.status == "completed"
    assert standing(store.account()).tally.spent == first.spent.usd + ended.spent.usd


def test_labels_of_a_run_are_recorded_and_can_be_given_as_a_mapping() -> None:
    store = limited(Decimal(1))
    made = run(store, 1, options={"labels": {"team": "maths", "exam": "n5"}})
    assert load(store, made.run_id).labels == "exam=n5,team=maths"
    assert {key.labels for key in load(store, made.run_id).spend} == {"exam=n5,team=maths"}
    assert standing(store.account()).tally.spent == made.spent.usd > 0


def test_a_run_without_a_label_counts_for_the_limit_of_the_store_and_a_window_ends() -> None:
    store = limited(WORST * Decimal("1.1"), "week", "")
    while run(store, 1, "").status == "completed":
        pass
    monday = CLOCK.now() + timedelta(days=7 - CLOCK.now().weekday())
    assert run(store, 1, "", clock=FakeClock(monday)).status == "completed"


def test_limit_that_is_set_while_a_run_goes_on_stops_it_and_what_it_spent_before_counts() -> None:
    store = MemoryStore(FakeClock())

    def limit_it(event: Event) -> None:
        if event.type == "call_started" and not store.account().limits():
            store.account().set_limit(Limit("", "day", WORST * 3))

    stopped = run(store, 200, "", listener=limit_it, options={"concurrency": 1})
    assert (stopped.detail, getattr(stopped.error, "code", "")) == ("paused_budget", "limit_reached")
    assert standing(store.account()).tally.spent == stopped.spent.usd
    # Also of what it had reserved by then, $1, it may use no more than that.
    assert 0 < stopped.spent.usd <= WORST * 3


def test_run_of_a_free_model_leaves_the_account_alone() -> None:
    store = MemoryStore(FakeClock())
    run(store, 3, model=ScriptedModel(lambda request: "x"))
    assert not store.account().days()


def test_near_a_limit_there_is_one_warning() -> None:
    events: list[Event] = []
    store = limited(WORST * 5)
    run(store, 9, options={"concurrency": 1}, listener=events.append)
    assert len([text for text in notes(events) if "80 % of the limit of" in text and "team=maths" in text]) == 1


def test_a_call_without_a_price_fits_under_no_limit() -> None:
    limits = StoreLimits(limited(Decimal(5)).account(), None, CLOCK, "h:1:x", labels=MATHS)
    assert limits.limits()
    error = limits.refusal(None)
    assert error is not None
    assert "--prices" in error.hint


@settings(max_examples=40, deadline=None)
@given(
    costs=st.lists(
        st.tuples(st.integers(1, 40), st.integers(0, 100), st.booleans(), st.integers(0, 2)), min_size=1, max_size=60
    ),
    month=st.integers(20, 400),
    week=st.integers(20, 400),
)
def test_admitted_never_passes_a_limit_over_owners_days_and_deaths(
    costs: Sequence[tuple[int, int, bool, int]], month: int, week: int
) -> None:
    """Each cost: worst case in cents, the share of it that is spent, whether its owner dies after, days passed."""
    account, clock = MemoryAccount(FakeClock()), FakeClock(datetime(2026, 4, 1, tzinfo=UTC))
    account.set_limit(Limit(MATHS, "month", Decimal(month) / 100))
    account.set_limit(Limit("", "week", Decimal(week) / 100))
    labels = (MATHS, PHYSICS, "")
    owners = [StoreLimits(account, None, clock, f"host:{n}:x", labels=labels[n]) for n in range(3)]
    out: list[list[tuple[Ticket, Decimal]]] = [[], [], []]
    for place, (cents, share, dies, days) in enumerate(costs):
        owner, high = place % 3, Decimal(cents) / 100
        clock.advance(days * 86400)
        if (ticket := owners[owner].take(high)) is not None:
            out[owner].append((ticket, high * share / 100))
        if dies:
            out[owner].clear()
            owners[owner] = StoreLimits(account, None, clock, f"host:{owner}:later", labels=labels[owner])
        elif len(out[owner]) > 2:
            owners[owner].give_back(*out[owner].pop(0))
        assert all(each.left >= 0 for each in account.standings(clock.now()))


@pytest.mark.parametrize("scheme", ["files", "sqlite"])
def test_processes_at_once_never_pass_a_limit_and_a_dead_one_s_slices_count(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}:{tmp_path}/runs"
    open_account(url).set_limit(Limit(MATHS, "total", Decimal(1)))
    taken = taken_by_processes(url, labels=("level=higher,team=maths", MATHS))
    (one,) = open_account(url).standings(CLOCK.now())
    assert taken * Decimal("0.01") <= one.tally.total <= Decimal(1)
    assert taken >= 60


def test_batch_that_is_answered_later_counts_at_what_it_cost(world: World) -> None:
    """Its worst case is held while it is out, also when the process has left; then what it cost."""
    assert isinstance(world.store, MemoryStore)
    account = world.store.account()
    account.set_limit(Limit(MATHS, "month", Decimal(5)))
    first = world.go(no_wait=True, labels=MATHS)
    assert first.spent.high > 0
    assert standing(account).tally.total == first.spent.high
    world.paid_once(done := world.go(ONE, first.run_id))
    assert standing(account).tally.total == done.spent.usd < first.spent.high


def test_batch_is_refused_where_a_limit_has_no_room_for_it(world: World) -> None:
    assert isinstance(world.store, MemoryStore)
    world.store.account().set_limit(Limit("", "total", Decimal("0.000001")))
    stopped = world.go()
    assert isinstance(stopped.error, BudgetExceeded)
    assert (stopped.error.code, world.sizes) == ("limit_reached", [])


def test_who_needs_room_days_later_settles_what_a_dead_process_left_open(tmp_path: Path) -> None:
    died = Died(tmp_path)
    known = died.state.total.usd + died.state.total.high
    account = open_account(died.url)
    account.set_limit(Limit("", "total", known + WORST * 4))
    assert account.standings(CLOCK.now())[0].tally.reserved == 1
    result = died.go(days=12, concurrency=1)
    assert result.status == "completed", result.error
    assert account.standings(CLOCK.now())[0].tally.total == known + result.spent.usd


def test_deleting_a_run_whose_process_died_gives_back_what_it_had_not_spent(tmp_path: Path) -> None:
    died = Died(tmp_path)
    store, account = open_store(died.url), open_account(died.url)
    account.set_limit(Limit("", "total", Decimal(5)))
    (going,) = removals(store, [died.run])
    remove(store, account, going)
    (one,) = account.standings(CLOCK.now())
    assert (one.tally.spent, one.tally.reserved) == (died.state.total.usd + died.state.total.high, Decimal(0))


def test_slices_that_a_copied_run_brings_keep_no_other_from_being_settled(tmp_path: Path) -> None:
    """They are of the account it comes from: the copy has none of that name."""
    died = Died(tmp_path / "one")
    store, account = open_store(url := f"files:{tmp_path / 'two'}"), open_account(f"files:{tmp_path / 'two'}")
    list(copy(cast(Movable, open_store(died.url)), cast(Movable, store), CLOCK, died.run, account=account))
    known = died.state.total.usd + died.state.total.high
    at = datetime.combine(died.day, datetime.min.time(), UTC)
    name = str(account.reserve("h:1:x", Decimal(1), at, None))
    assert account.total(died.day) == known + 1
    settle_slices(store, account, died.run, {**died.state.slices, name: (at.date().isoformat(), 99)})
    assert account.total(died.day) == known
    (going,) = removals(store, [died.run])
    remove(store, account, going)
    assert account.total(died.day) == known
    assert died.run in open_account(url).kept()


def test_call_that_leaves_at_midnight_counts_out_of_the_slice_that_it_was_admitted_to() -> None:
    store, account = MemoryStore(FakeClock()), MemoryAccount(FakeClock())
    evening = datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)
    name, after = str(account.reserve("h:1:x", Decimal(1), evening, None)), evening + timedelta(seconds=2)
    charge = Charge("exact", Decimal("0.25"), Decimal("0.25"), tokens={"input": 10, "output": 5})
    lines = [
        started(), line(2, DayReserved(name, "2026-01-31", "1"), at=evening),
        line(3, CallStarted("go#1", "key", MODEL, "request", worst="0.5"), at=after),
        line(4, CallEnded(3, b"{}", charge.to_json(), stop_reason="end_turn"), at=after),
    ]  # fmt: skip
    dead = write(store, lines)
    settle_slices(store, account, dead, load(store, dead).slices)
    assert account.total(evening.date()) == Decimal("0.25")


def test_slice_that_could_not_be_closed_at_the_end_of_its_run_is_closed_later_with_what_it_cost() -> None:
    class Stuck(MemoryAccount):
        def settle(self, slice_id: str, usd: Decimal) -> None:
            raise WriteFailed("disk full")

    store = limited(Decimal(5), "total")
    result = run(store, 3, account=Stuck(FakeClock(), store.memory))
    assert (result.status, standing(store.account()).tally.spent) == ("completed", Decimal(0))
    settle_dead(store, store.account(), "")
    after = standing(store.account()).tally
    assert (after.reserved, after.spent) == (Decimal(0), result.spent.usd)


def test_call_of_a_clock_that_was_set_back_over_midnight_counts_out_of_the_slice_of_the_later_day() -> None:
    store, account = MemoryStore(FakeClock()), MemoryAccount(FakeClock())
    morning = datetime(2026, 2, 1, 0, 0, 1, tzinfo=UTC)
    name, back = str(account.reserve("h:1:x", Decimal(1), morning, None)), morning - timedelta(hours=1)
    charge = Charge("exact", Decimal("0.25"), Decimal("0.25"), tokens={"input": 10, "output": 5})
    lines = [
        started(), line(2, DayReserved(name, "2026-02-01", "1"), at=morning),
        line(3, CallStarted("go#1", "key", MODEL, "request", worst="0.5"), at=back),
        line(4, CallEnded(3, b"{}", charge.to_json(), stop_reason="end_turn"), at=back),
    ]  # fmt: skip
    dead = write(store, lines)
    settle_slices(store, account, dead, load(store, dead).slices)
    assert account.total(morning.date()) == Decimal("0.25")
