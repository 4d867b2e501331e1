"""What people decide while a process owns the run: durable beside it in every store, then in its journal, once."""

from __future__ import annotations

from contextlib import closing

import pytest

from pipeline.engine.amendment import take_in
from pipeline.errors import RunLocked, RunNotFound
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import Decision
from pipeline.records.lines import encode_line
from pipeline.records.run import REVIEW
from pipeline.records.values import digest
from pipeline.store.base import Store
from pipeline.store.copies import copy
from pipeline.store.memory import MemoryStore
from pipeline.store.parts import decisions_beside, own_part
from pipeline.store.reader import all_records, load, records, summary
from pipeline.store.runs import RunStore
from tests.journals import AT, StillClock, started

TASK = ("lessons#1", "lessons/1")


def decide(store: Store, run: str, clock: StillClock, choice: str, edit: bytes = b"") -> None:
    with closing(own_part(store, run, REVIEW, clock)) as part:
        kept = part.put_blob(edit) if edit else ""
        fact = Decision(TASK[0], "h1", choice, "M. Reid", task=TASK[1], edit=kept)
        seq = part.last_seq + 1
        part.append(seq, [encode_line(seq, clock.stamp(), seq, encode_fact(fact))])


def choices(store: Store, run: str) -> list[str]:
    return [each.choice for each in load(store, run).reviews.get(TASK, ())]


def test_decision_beside_an_owned_run_is_seen_by_readers_and_taken_in_once(store: Store, clock: StillClock) -> None:
    run, journal = store.create(started(), [], at=AT)
    decide(store, run, clock, "approve")
    decide(store, run, clock, "edit", b'{"lesson":{}}')
    assert choices(store, run) == ["approve", "edit"]
    assert [each.choice for each in summary(store, run).reviews[TASK]] == ["approve", "edit"]
    assert sum(isinstance(record.fact, Decision) for record in all_records(store, run)) == 2
    with pytest.raises(RunLocked):
        take_in(store, run, clock)
    journal.close()
    clock.at = clock.at.replace(hour=23)
    for _ in range(2):
        take_in(store, run, clock)
        found = [record for record in records(store, run) if isinstance(record.fact, Decision)]
        assert [record.fact.origin for record in found] == ["review:1", "review:2"]  # type: ignore[attr-defined]
        # It was decided when it was decided.
        assert {record.at for record in found} == {"2026-01-09T14:30:22.000Z"}
        assert choices(store, run) == ["approve", "edit"]
    state = load(store, run)
    assert list(decisions_beside(store, state)) == []
    assert store.get_blob(run, state.reviews[TASK][1].edit) == b'{"lesson":{}}'
    decide(store, run, clock, "undo")
    assert choices(store, run) == ["approve", "edit", "undo"]


def test_decisions_and_their_edits_go_with_a_copy_and_leave_with_the_run(store: Store, clock: StillClock) -> None:
    run, journal = store.create(started(), [], at=AT)
    journal.close()
    decide(store, run, clock, "edit", b'{"lesson":{}}')
    assert isinstance(store, RunStore)
    other = MemoryStore(clock)
    assert [each.problem for each in copy(store, other, clock)] == [""]
    assert choices(other, run) == ["edit"]
    assert other.get_blob(run, digest(b'{"lesson":{}}')) == b'{"lesson":{}}'
    store.delete(run)
    with pytest.raises(RunNotFound):
        load(store, run)


def test_who_decides_waits_for_who_is_deciding(store: Store, clock: StillClock) -> None:
    run, journal = store.create(started(), [], at=AT)
    with closing(own_part(store, run, REVIEW, clock)), pytest.raises(RunLocked):
        own_part(store, run, REVIEW, clock)
    decide(store, run, clock, "approve")
    journal.close()
