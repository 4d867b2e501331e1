"""`store copy` and `store check` over every store: byte for byte there and back, and what is said of damage."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from pipeline.errors import RunNotFound
from pipeline.records.budgets import Limit
from pipeline.records.kinds import Gap, StepStarted
from pipeline.records.values import digest
from pipeline.store.base import Journal, Movable, Store
from pipeline.store.copies import Copied, arriving, copy, copy_account
from pipeline.store.files import FileStore
from pipeline.store.integrity import check
from pipeline.store.memory import MemoryAccount, MemoryJournal, MemoryStore
from tests.faulty_disk import LazyDisk
from tests.journals import AT, StillClock, ended, line, small_run, started
from tests.stores import ids, write

RUN = "20260109_143022"


@pytest.fixture
def place(store: Store) -> Movable:
    return cast(Movable, store)


@pytest.fixture
def other(tmp_path: Path, clock: StillClock) -> FileStore:
    return FileStore(tmp_path / "other", clock, disk=LazyDisk())


def filled(store: Movable) -> None:
    """Two runs, one of them with values, a sub-journal and a head."""
    write(store, [*small_run(), ended(8)])
    run, journal = store.create(started(), [b"graph"], at=AT)
    journal.put_blob(b"lesson" * 1000)
    part = store.open(f"{run}/fan#1/left#2")
    part.append(1, [line(1, StepStarted("write#1"))])
    part.close()
    journal.append(2, [line(2, StepStarted("seed#1"))])
    journal.close()


def grown(store: Movable) -> Journal:
    """Let the second run go on by a step of its own and one of its sub-journal; return its open journal."""
    journal = store.open(f"{RUN}_02")
    journal.append(3, [line(3, StepStarted("sow#1")), ended(4)])
    part = store.open(f"{RUN}_02/fan#1/left#2")
    part.append(2, [line(2, StepStarted("write#2"))])
    part.close()
    journal.put_blob(b"more")
    return journal


def content(store: Movable) -> dict[str, object]:
    """All that a store holds, byte for byte."""
    held: dict[str, object] = {}
    for run in ids(store):
        for name in (run, *(f"{run}/{path}" for path in store.parts(run))):
            held[name] = list(store.read(name))
        held[f"{run} values"] = {name: store.get_blob(run, name) for name in store.blobs(run)}
    return held


def test_runs_come_back_byte_for_byte(place: Movable, other: FileStore, clock: StillClock) -> None:
    filled(other)
    before = content(other)
    done = list(copy(other, place, clock))
    assert done == [Copied(RUN, 8, 0), Copied(f"{RUN}_02", 3, 2)]
    assert content(place) == before
    back = MemoryStore(clock)
    list(copy(place, back, clock))
    assert content(back) == before
    assert [dict(head.document) for head in place.heads()] == [dict(head.document) for head in other.heads()]
    assert list(check(place, MemoryAccount(clock))) == []


def test_copying_again_brings_only_what_is_new(place: Movable, other: FileStore, clock: StillClock) -> None:
    filled(place)
    list(copy(place, other, clock))
    assert [row.records for row in copy(place, other, clock)] == [0, 0]
    journal = grown(place)
    assert list(copy(place, other, clock)) == [Copied(RUN), Copied(f"{RUN}_02", 3, 1, owned=True)]
    journal.close()
    assert content(other) == content(place)
    assert next(other.heads()).document["status"] == "completed"


def test_one_run_is_copied_alone(place: Movable, other: FileStore, clock: StillClock) -> None:
    filled(place)
    assert [row.run for row in copy(place, other, clock, RUN)] == [RUN]
    assert ids(other) == [RUN]
    with pytest.raises(RunNotFound):
        list(copy(place, other, clock, "20200101_000000"))


def test_journal_with_a_gap_stays_as_it_is(place: Movable, other: FileStore, clock: StillClock) -> None:
    lines = small_run()
    lines[2:4] = [line(3, Gap(3, 4, 20, "journal.damaged-1", "records in the middle were damaged"))]
    other.create_named(RUN, b"".join(lines), at=AT).close()
    assert list(copy(other, place, clock)) == [Copied(RUN, 6)]
    assert content(place) == content(other)
    journal = place.open(RUN)
    journal.append(8, [ended(8)])
    journal.close()
    (problem,) = check(place, MemoryAccount(clock), RUN)
    assert (problem.serious, problem.text.partition(":")[0]) == (False, "Records 3 to 4 are lost")


def test_another_run_of_the_same_name_is_left_alone(place: Movable, other: FileStore, clock: StillClock) -> None:
    write(place, small_run())
    write(other, [started(), line(2, StepStarted("other#1"))])
    before = content(other)
    (row,) = copy(place, other, clock)
    assert "record 2 differs" in row.problem
    assert row.parted
    assert content(other) == before


def test_copy_that_has_gone_on_is_left_as_it_is(place: Movable, other: FileStore, clock: StillClock) -> None:
    filled(other)
    list(copy(other, place, clock))
    journal = grown(place)
    journal.close()
    before = content(place)
    assert list(copy(other, place, clock)) == [Copied(RUN), Copied(f"{RUN}_02", further=True)]
    assert content(place) == before
    # Now both went on.
    journal = other.open(f"{RUN}_02")
    journal.append(3, [line(3, StepStarted("other#1"))])
    journal.close()
    (row,) = copy(other, place, clock, f"{RUN}_02")
    assert (row.parted, "record 3 differs; earlier records are the same. Neither" in row.problem) == (True, True)
    assert content(place) == before


def test_copy_that_has_gone_on_gets_back_the_values_it_lost(place: Movable, tmp_path: Path, clock: StillClock) -> None:
    target = FileStore(tmp_path / "target", clock, disk=LazyDisk())
    filled(place)
    list(copy(place, target, clock))
    run = f"{RUN}_02"
    journal = target.open(run)
    journal.append(3, [ended(3)])
    journal.close()
    before = content(target)
    lost, damaged = (target.root / run / "blobs" / name[:2] / name for name in target.blobs(run))
    lost.unlink()
    damaged.write_bytes(b"junk")
    assert list(copy(place, target, clock)) == [Copied(RUN), Copied(run, 0, 1)]
    assert list(copy(place, target, clock, run)) == [Copied(run, 0, 1)]
    assert content(target) == before
    assert next(target.heads()).document["status"] == "completed"


def test_taken_name_is_refused(place: Movable) -> None:
    write(place, small_run())
    with pytest.raises(Exception, match="taken"):
        place.create_named(RUN, started(), at=AT)
    assert len(list(place.read(RUN))) == 7


def test_account_goes_along(clock: StillClock) -> None:
    source, target = MemoryAccount(clock), MemoryAccount(clock)
    source.keep(RUN, {"usd": "1"})
    name = source.reserve("me", Decimal(3), AT, Decimal(10))
    assert name
    source.settle(name, Decimal("2.5"))
    target.reserve("me", Decimal("0.5"), AT, Decimal(10))
    for _ in range(2):
        copy_account(source, target, clock, {})
        assert target.total(AT.date()) == Decimal("2.5")
        assert target.kept() == {RUN: {"usd": "1"}}


def test_spend_of_today_adds_up_where_stores_are_merged(clock: StillClock) -> None:
    both, account, nothing = MemoryStore(clock), MemoryAccount(clock), MemoryStore(clock)
    each = [MemoryStore(clock), MemoryStore(clock)]
    for number, source in enumerate(each):
        write(source, small_run(), days=number / 24)
    spent = sum(arriving(source, nothing, AT.date())[""] for source in each)
    assert spent > arriving(each[0], nothing, AT.date())[""] > 0
    for source in each * 2:
        copy_account(MemoryAccount(clock), account, clock, arriving(source, both, AT.date()))
        list(copy(source, both, clock, account=account))
    assert account.total(AT.date()) == spent


def test_copy_of_one_run_counts_what_it_spent_on_each_day_once(clock: StillClock) -> None:
    """A month's limit counts earlier days, too; a store that has the run knows what it spent."""
    source, target, account = MemoryStore(clock), MemoryStore(clock), MemoryAccount(clock)
    run, cost = write(source, small_run()), Decimal("1.85")
    account.set_limit(Limit("", "month", Decimal(5)))
    clock.at += timedelta(days=3)
    for _ in range(2):
        list(copy(source, target, clock, run, account=account))
        assert (account.total(AT.date()), account.total(clock.at.date())) == (cost, Decimal(0))
        assert [each.left for each in account.standings(clock.at)] == [Decimal(5) - cost]
    assert list(check(target, account)) == []
    # All of them later: what is there is counted no second time.
    known = MemoryAccount(clock)
    assert known.reserve("me", cost, AT, None)
    copy_account(known, account, clock, arriving(source, target, clock.at.date()))
    list(copy(source, target, clock, account=account))
    assert account.total(AT.date()) == cost


def test_run_that_is_refused_is_not_counted(clock: StillClock) -> None:
    source, target, account = MemoryStore(clock), MemoryStore(clock), MemoryAccount(clock)
    write(source, small_run())
    write(target, [started(), line(2, StepStarted("other#1"))])
    (row,) = copy(source, target, clock, account=account)
    assert (row.parted, account.total(AT.date())) == (True, Decimal(0))


def test_copy_that_is_cut_off_counts_the_run_it_was_about_once_more_and_no_other(clock: StillClock) -> None:
    class Dying(MemoryStore):
        """Ends before a run is made, as often as it is told."""

        deaths = 0

        def create_named(self, *given: Any, **more: Any) -> MemoryJournal:
            if self.deaths:
                self.deaths -= 1
                raise KeyboardInterrupt
            return super().create_named(*given, **more)

    source, target, account = MemoryStore(clock), Dying(clock), MemoryAccount(clock)
    for number in range(3):
        write(source, small_run(), days=number / 24)
    spent = arriving(source, target, AT.date())[""]
    one = spent / 3

    def go() -> None:
        copy_account(MemoryAccount(clock), account, clock, arriving(source, target, AT.date()))
        for _ in copy(source, target, clock, account=account):
            # Whatever is there is counted.
            assert account.total(AT.date()) >= spent - arriving(source, target, AT.date()).get("", 0)

    for deaths in range(1, 4):
        target.deaths = 1
        with pytest.raises(KeyboardInterrupt):
            go()
        assert account.total(AT.date()) == one * deaths
        assert list(target.heads()) == []
    go()
    assert account.total(AT.date()) == one * 3 + spent
    go()
    assert account.total(AT.date()) == one * 3 + spent


def test_value_that_the_source_has_lost_is_no_whole_copy_until_it_is_there(
    place: Movable, other: FileStore, clock: StillClock
) -> None:
    scheme = b"scheme" * 1000
    run, journal = other.create(started(pins={"scheme": digest(scheme)}), [scheme], at=AT)
    journal.close()
    (value,) = (path for path in (other.root / run / "blobs").rglob("*") if path.is_file())
    kept = value.read_bytes()
    value.unlink()
    for _ in range(2):
        (row,) = copy(other, place, clock)
        assert row.problem == f"These values are missing, and records refer to them: {digest(scheme)}."
    value.write_bytes(kept)
    assert [row.problem for row in copy(other, place, clock)] == [""]
    value.unlink()
    # The copy has it, so nothing is missing there.
    assert [row.problem for row in copy(other, place, clock)] == [""]


def test_record_that_cannot_be_read_is_said_to_be_left_out(other: FileStore, clock: StillClock) -> None:
    write(other, small_run())
    journal = other.root / RUN / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"seq":3,', b'"seq":9,', 1))
    for _ in range(2):
        (row,) = copy(other, MemoryStore(clock), clock)
        assert row.problem == "Records 3 to 3 cannot be read and were left out."
