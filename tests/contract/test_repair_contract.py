"""Records that are damaged or gone: every store mends its journal for the next owner and says the same of it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.cost.report import Origin, of_records
from pipeline.errors import CheckpointCorrupt
from pipeline.records.codec import decode_line
from pipeline.records.kinds import CallEnded, Gap, StepStarted
from pipeline.store.base import Journal, Movable
from pipeline.store.copies import copy
from pipeline.store.files import FileStore
from pipeline.store.integrity import check
from pipeline.store.memory import MemoryAccount
from pipeline.store.reader import all_records, load
from tests.contract import harm
from tests.journals import AT, StillClock, line, small_run
from tests.stores import seqs, write

LINES = small_run()


@pytest.fixture(params=["files", "objects", "sqlite", "postgresql"])
def mendable(request: pytest.FixtureRequest, make_store: Callable[[str], Movable]) -> Movable:
    """The stores whose bytes somebody else can change."""
    return make_store(request.param)


def written(store: Movable, *, head: bool = True) -> str:
    """The small run, each record an append."""
    if head:
        return write(store, LINES)
    run, journal = store.create(LINES[0], [], at=AT)
    for seq, one in enumerate(LINES[1:], 2):
        journal.append(seq, [one])
    journal.close()
    return run


def opened(store: Movable, run: str) -> tuple[Journal, list[tuple[int, int, int, bool]]]:
    """The journal, and what was mended: first, last, bytes, whether the journal says so."""
    journal = store.open(run)
    return journal, [(row[0], row[1], row[2], row.recorded) for row in journal.repairs]  # type: ignore[attr-defined]


def goes_on(store: Movable, run: str, journal: Journal) -> None:
    """It is appended to, and found whole by the next owner."""
    seq = journal.last_seq + 1
    journal.append(seq, [line(seq, StepStarted("lessons#1"), owner=seq)])
    journal.close()
    assert seqs(store, run) == list(range(1, seq + 1))
    again = store.open(run)
    assert list(again.repairs) == []
    assert (again.last_seq, again.size) == (seq, sum(len(one) + 1 for one in store.read(run)))
    again.close()


def test_several_damaged_stretches_are_each_said(mendable: Movable) -> None:
    run = written(mendable)
    for seq in (2, 4, 7):
        harm.record(mendable, run, seq, b"junk")
    journal, said = opened(mendable, run)
    assert [(first, last, recorded) for first, last, _, recorded in said] == [
        (2, 2, True),
        (4, 4, True),
        (7, 7, False),
        (7, 7, False),
    ]
    journal.append(7, [line(7, Gap(*journal.repairs[2]))])
    goes_on(mendable, run, journal)


@pytest.mark.parametrize("head", [True, False])
def test_damaged_record_in_the_middle_becomes_a_gap_and_is_kept(mendable: Movable, head: bool) -> None:
    run, bad = written(mendable, head=head), LINES[3].rstrip(b"\n").replace(b"sow", b"sew")
    harm.record(mendable, run, 4, bad)
    assert seqs(mendable, run) == [1, 2, 3, 5, 6, 7]
    journal, said = opened(mendable, run)
    assert said == [(4, 4, len(bad), True)]
    gap = decode_line(list(mendable.read(run))[3]).fact
    assert isinstance(gap, Gap)
    assert list(journal.repairs[0]) == [gap.first, gap.last, gap.bytes, gap.kept, gap.reason]
    assert gap.reason == "records in the middle were damaged"
    assert bad in harm.kept(mendable, run, gap.kept)
    goes_on(mendable, run, journal)


def test_records_that_are_gone_from_the_middle_become_a_gap(mendable: Movable) -> None:
    run = written(mendable)
    for seq in (3, 4):
        harm.record(mendable, run, seq, None)
    journal, said = opened(mendable, run)
    assert said == [(3, 4, 0, True)]
    # What one record stood for is said under its number, and readers know that two are missing.
    assert seqs(mendable, run) == [1, 2, 3, 5, 6, 7]
    assert not [problem for problem in check(mendable, MemoryAccount(StillClock())) if problem.serious]
    assert next(mendable.heads()).document["status"] == "in_progress"
    journal.close()
    assert opened(mendable, run)[1] == []


def test_damaged_last_record_is_kept_and_its_number_used_again(mendable: Movable) -> None:
    run, bad = written(mendable, head=False), LINES[6][:40]
    harm.record(mendable, run, 7, bad)
    journal, said = opened(mendable, run)
    assert [(first, last, recorded) for first, last, _, recorded in said] == [(7, 7, False)]
    assert journal.last_seq == 6
    assert bad in harm.kept(mendable, run, journal.repairs[0][3])
    goes_on(mendable, run, journal)


def test_last_records_that_a_head_knew_are_missed(mendable: Movable) -> None:
    run = written(mendable)
    for seq in (7, 6):
        harm.record(mendable, run, seq, None)
    journal, said = opened(mendable, run)
    assert said == [(6, 7, 0, False)]
    assert "shorter than" in journal.repairs[0][4]
    journal.close()


def test_money_behind_a_hole_counts(mendable: Movable) -> None:
    run = written(mendable)
    harm.record(mendable, run, 2, b"junk")
    journal, said = opened(mendable, run)
    assert said == [(2, 2, 4, True)]
    assert sum(isinstance(decode_line(one).fact, CallEnded) for one in mendable.read(run)) == 1
    assert next(mendable.heads()).document["total_cost_usd"] == 1.85
    goes_on(mendable, run, journal)


def test_run_whose_first_record_is_damaged_is_left_as_it_is(mendable: Movable) -> None:
    run = written(mendable)
    harm.record(mendable, run, 1, b"junk")
    with pytest.raises(CheckpointCorrupt, match=f"Run {run} cannot be opened. Its first record is damaged."):
        mendable.open(run)
    assert seqs(mendable, run) == [2, 3, 4, 5, 6, 7]
    with pytest.raises(CheckpointCorrupt):
        mendable.open(run)


def test_sub_journal_is_mended_as_well(mendable: Movable) -> None:
    run = written(mendable)
    part = mendable.open(f"{run}/branch")
    for seq in (1, 2, 3):
        part.append(seq, [line(seq, StepStarted(f"s{seq}#1"))])
    part.close()
    harm.record(mendable, f"{run}/branch", 2, b"junk")
    journal, said = opened(mendable, f"{run}/branch")
    assert said == [(2, 2, 4, True)]
    goes_on(mendable, f"{run}/branch", journal)


@pytest.mark.parametrize("lost", [[5, 6], [6], [5, 6, 7], [1, 5, 6]])
def test_what_the_head_knew_of_lost_calls_is_counted(mendable: Movable, lost: list[int]) -> None:
    run = written(mendable)
    knew = next(mendable.heads()).document["total_cost_usd"]
    assert knew
    for seq in lost:
        harm.record(mendable, run, seq, None)
    state = load(mendable, run)
    assert state.total.usd + state.total.low == Decimal(str(knew))
    assert state.lost.unbounded == 1
    (head,) = mendable.heads()
    told = head.known if head.corrupt else head.document
    assert told["total_cost_usd"] == knew


@pytest.mark.parametrize("lost", [[5, 6, 7], [2, 3, 4, 5, 6, 7]])
def test_what_the_head_knew_of_lost_calls_goes_with_a_copy(
    mendable: Movable, lost: list[int], tmp_path: Path, clock: StillClock
) -> None:
    run = written(mendable)
    knew = Decimal(str(next(mendable.heads()).document["total_cost_usd"]))
    for seq in lost:
        harm.record(mendable, run, seq, None)
    other = FileStore(tmp_path / "other", clock)
    list(copy(mendable, other, clock))
    (head,) = other.heads()
    assert Decimal(str(head.document["total_cost_usd"])) == knew
    state = load(other, run)
    assert (state.total.usd + state.total.low, state.lost.unbounded) == (knew, 1)
    charges = [posting.spend for posting in of_records(all_records(other, run), Origin(run))]
    assert sum(spend.usd + spend.low for spend in charges) == knew, "as the ledger of the copy tells it"
