"""What every store promises over many runs: claims, names for people, removal; the same tests over files and memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.errors import RunExists, RunLocked, RunNotFound, WriteFailed
from pipeline.records.kinds import Snapshot, StepStarted
from pipeline.records.values import digest
from pipeline.store.base import Claim, Store
from pipeline.store.memory import MemoryAccount
from pipeline.store.reader import kept_spend, resolve
from pipeline.store.retention import cleanup, removable, removal, remove
from pipeline.store.runs import RunStore
from tests.journals import AT, CLAIM, OFFLINE, StillClock, ended, line, small_run, started
from tests.stores import ids, write

# --- claims ---------------------------------------------------------------------------------------


def test_unfinished_run_holds_its_claim(store: Store) -> None:
    run = write(store, [started(CLAIM), line(2, StepStarted("seed#1"))], claim=CLAIM)
    with pytest.raises(RunExists) as caught:
        store.create(started(CLAIM), [], at=AT, claim=CLAIM)
    assert caught.value.data["run"] == run
    assert run in caught.value.hint
    assert ids(store) == [run]


def test_newest_of_several_holders_is_named(store: Store) -> None:
    for _ in range(2):
        newest = write(store, [started(CLAIM)])
    with pytest.raises(RunExists, match=newest):
        store.create(started(CLAIM), [], at=AT, claim=CLAIM)


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_completed_run_frees_its_claim_and_a_failed_one_keeps_it(store: Store, status: str) -> None:
    write(store, [started(CLAIM), ended(2, status)])
    if status == "failed":
        with pytest.raises(RunExists):
            store.create(started(CLAIM), [], at=AT, claim=CLAIM)
    else:
        assert store.create(started(CLAIM), [], at=AT, claim=CLAIM)[0] == "20260109_143022_02"


@pytest.mark.parametrize(("days", "held"), [(6.9, True), (7.1, False)])
def test_run_untouched_for_a_week_holds_no_claim(store: Store, days: float, held: bool) -> None:
    write(store, [started(CLAIM, at=AT - timedelta(days=days))], days=days)
    if held:
        with pytest.raises(RunExists):
            store.create(started(CLAIM), [], at=AT, claim=CLAIM)
    else:
        store.create(started(CLAIM), [], at=AT, claim=CLAIM)


def test_claims_of_other_authors_and_courses_do_not_meet(store: Store) -> None:
    write(store, [started(CLAIM)])
    for other in (OFFLINE, Claim("lessons", "physics", "higher", "model")):
        store.create(started(other), [], at=AT, claim=other)
    store.create(started(CLAIM), [], at=AT)
    assert len(ids(store)) == 4


# --- creations that were cut off -------------------------------------------------------------------


def begun(store: RunStore) -> str:
    """A run whose creation was cut off before its first record."""
    tail = store.backend.own("20260109_143022", AT, new=True)
    assert tail is not None
    tail.put("runs/20260109_143022/blobs/" + "a" * 64, b"value")
    tail.release()
    return "20260109_143022"


def test_creation_that_was_cut_off_is_no_run_and_goes_once_it_is_old(store: RunStore) -> None:
    run = begun(store)
    assert (ids(store), store.leftovers()) == ([], [run])
    for verb in (store.open, store.read, store.delete):
        with pytest.raises(RunNotFound):
            verb(run)
    assert write(store, small_run()) == f"{run}_02"
    now = SystemClock().now()
    assert store.sweep(now - timedelta(days=1)) == []
    assert store.sweep(now + timedelta(days=1)) == [run]
    assert (ids(store), store.leftovers()) == ([f"{run}_02"], [])


def test_name_of_a_creation_that_was_cut_off_is_free_for_a_copy(store: RunStore) -> None:
    run = begun(store)
    store.create_named(run, small_run()[0], [b"graph"], at=AT).close()
    assert (ids(store), store.leftovers(), store.blobs(run)) == ([run], [], [digest(b"graph")])


def test_name_that_is_being_made_is_refused(store: RunStore) -> None:
    tail = store.backend.own("20260109_143022", AT, new=True)
    assert tail is not None
    with pytest.raises(RunLocked):
        store.create_named("20260109_143022", small_run()[0], at=AT)
    tail.append(1, small_run()[:1], True)
    tail.release()
    assert ids(store) == ["20260109_143022"]


# --- reading --------------------------------------------------------------------------------------


def test_exact_name_beats_a_prefix(store: Store) -> None:
    for _ in range(2):
        store.create(started(), [], at=AT)
    assert resolve(store, "20260109_143022") == "20260109_143022"
    assert resolve(store, "latest") == "20260109_143022_02"


def test_unique_prefix_is_enough_and_an_ambiguous_one_names_the_candidates(store: Store) -> None:
    for at in (AT, AT + timedelta(days=1)):
        store.create(started(), [], at=at)
    assert resolve(store, "20260110") == "20260110_143022"
    with pytest.raises(RunNotFound, match="20260110_143022, 20260109_143022"):
        resolve(store, "2026")


@pytest.mark.parametrize("text", ["", "2025", "nothing", "../"])
def test_text_that_means_no_run_is_not_found(store: Store, text: str) -> None:
    store.create(started(), [], at=AT)
    with pytest.raises(RunNotFound):
        resolve(store, text)


# --- retention ------------------------------------------------------------------------------------


@pytest.fixture
def account(clock: StillClock) -> MemoryAccount:
    return MemoryAccount(clock)


def aged(store: Store, days: float, status: str = "completed", claim: Claim = CLAIM) -> str:
    at = AT - timedelta(days=days)
    return write(store, [started(claim, at=at), *small_run()[1:], ended(8, status, at=at)], days=days)


def test_old_finished_runs_go_and_their_cost_stays(store: Store, account: MemoryAccount) -> None:
    old, older = aged(store, 40), aged(store, 50)
    new = aged(store, 1)
    assert cleanup(store, account, max_age_days=30, max_runs=50, now=AT) == [older, old]
    assert ids(store) == [new]
    assert set(account.kept()) == {old, older}
    sums = account.kept()[old]
    assert (sums["usd"], sums["calls"], sums["days"]["2026-01-09"]["usd"]) == ("1.85", 1, "1.85")
    assert sums["claim"] == CLAIM.to_json()


def test_runs_beyond_the_newest_so_many_go(store: Store, account: MemoryAccount) -> None:
    runs = [aged(store, days) for days in (1, 2, 3, 4)]
    assert cleanup(store, account, max_age_days=30, max_runs=2, now=AT) == [runs[3], runs[2]]


def test_unfinished_owned_and_newest_completed_runs_stay(store: Store, account: MemoryAccount) -> None:
    physics = Claim("lessons", "physics", "higher", "model")
    kept = [aged(store, 400, claim=physics), aged(store, 400, claim=OFFLINE), aged(store, 400)]
    kept += [aged(store, 500, "failed"), aged(store, 501, "in_progress")]
    owned = aged(store, 600)
    journal = store.open(owned)
    assert cleanup(store, account, max_age_days=0, max_runs=0, now=AT) == []
    assert set(ids(store)) == {*kept, owned}
    journal.close()


def test_unfinished_runs_go_only_where_that_is_asked(store: Store, account: MemoryAccount) -> None:
    failed, stopped, completed = aged(store, 40, "failed"), aged(store, 41, "in_progress"), aged(store, 42)
    new = aged(store, 1, "failed")
    assert removable(store.heads(), max_age_days=30, max_runs=50, now=AT) == []
    found = removable(store.heads(), max_age_days=30, max_runs=50, now=AT, unfinished=True)
    assert found == [stopped, failed]
    for run in found:
        going = removal(store, run)
        assert going.records == len(list(store.read(run)))
        assert going.bytes == sum(map(len, store.read(run)))
        remove(store, account, going)
    assert set(ids(store)) == {completed, new}
    assert [account.kept()[run]["usd"] for run in found] == ["1.85", "1.85"]


def test_run_stays_while_the_account_does_not_take_what_it_cost(store: Store, clock: StillClock) -> None:
    class Full(MemoryAccount):
        def keep(self, run: str, sums: Mapping[str, Any]) -> None:
            raise WriteFailed("The account is full.", code="account_refused")

    for days in (40, 1):
        aged(store, days)
    with pytest.raises(WriteFailed):
        cleanup(store, Full(clock), max_age_days=30, max_runs=50, now=AT)
    assert len(ids(store)) == 2


def test_dry_run_of_a_cleanup_only_says(store: Store, account: MemoryAccount) -> None:
    aged(store, 1)
    old = aged(store, 40)
    assert cleanup(store, account, max_age_days=30, max_runs=50, now=AT, dry_run=True) == [old]
    assert len(ids(store)) == 2
    assert account.kept() == {}


def test_a_row_of_the_account_counts_only_while_its_run_is_gone(store: Store, account: MemoryAccount) -> None:
    run = aged(store, 40)
    account.keep(run, {"usd": "1"})
    account.keep("20200101_000000", {"usd": "2"})
    assert kept_spend(store, account) == {"20200101_000000": {"usd": "2"}}


def test_snapshot_of_unknown_shape_does_not_stop_a_listing(store: Store) -> None:
    run = write(store, [started(), line(2, Snapshot({"completed_steps": [], "total_cost_usd": 2.5}))], head=False)
    (head,) = store.heads()
    assert (head.run_id, head.document["total_cost_usd"]) == (run, 2.5)
