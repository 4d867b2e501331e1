"""Points of a run: what a text means, and the run as it was then."""

from __future__ import annotations

import pytest

from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import Outcome, StepContext, step
from pipeline.errors import RunNotFound
from pipeline.records import kinds
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import records
from pipeline.testing import FakeClock
from pipeline.travel.points import boundaries, points, points_in, resolve_point
from tests.tape import Tape


@step()
def draft(ctx: StepContext) -> Outcome:
    return Outcome({}, "again" if ctx.visit < 3 else "done", {"n": ctx.visit})


@step()
def end(ctx: StepContext) -> dict[str, int]:
    return {"n": ctx.context["n"]}


LOOP = Pipeline("loop", [draft, end], edges=[("draft", "draft", "again"), ("draft", "end", "done")])


@pytest.fixture
def run(store: MemoryStore) -> str:
    return LOOP.run(store=store, clock=FakeClock()).run_id


def test_points_of_steps_visits_and_records(store: MemoryStore, run: str) -> None:
    known = points(store, run)
    seqs = [mark.seq for mark in known.boundaries]
    assert [mark.path for mark in known.boundaries] == ["draft#1", "draft#2", "draft#3", "end#1"]
    for text, seq in {
        "start": 1, "end": known.end, "draft": seqs[2], "draft#1": seqs[0], "draft#2": seqs[1], "end#1": seqs[3],
        str(seqs[1]): seqs[1], known.boundaries[0].id: seqs[0], known.boundaries[0].id.upper(): seqs[0],
    }.items():  # fmt: skip
        assert resolve_point(known, text) == seq, text


def test_an_unknown_point_names_what_there_is_and_the_beginning_of_two_both(store: MemoryStore, run: str) -> None:
    for text in ("", "nix", "0", "1000", "draft#4", "dra", "zzzz"):
        with pytest.raises(RunNotFound, match="has no point") as told:
            resolve_point(points(store, run), text)
        assert "start (1), draft (3), draft#2 (5)" in told.value.hint
    with pytest.raises(RunNotFound, match="may mean the checkpoints 0000"):
        resolve_point(points(store, run), "0000")


def test_a_step_whose_name_looks_like_a_checkpoint_wins_over_it() -> None:
    tape = Tape()
    for name, mark in (("beef#1", "aaaa" * 8), ("cafe#1", "beef" * 8)):
        tape.start(name, [("", "")])
        tape.put(kinds.StepCompleted(name, {}, mark))
    known = points_in("r", tape.records)
    assert (resolve_point(known, "beef"), resolve_point(known, "beefb")) == (3, 5)


def test_the_latest_completed_end_of_a_step_is_meant_and_where_there_is_none_its_failure() -> None:
    tape = Tape()
    tape.start("a#1")
    tape.fail("a#1")
    assert resolve_point(points_in("r", tape.records), "a") == 3
    tape.resume()
    tape.start("a#1", attempt=2)
    done = tape.complete("a#1", ["a->b"], attempt=2)
    tape.start("b#1", [["a->b", "a#1"]])
    assert resolve_point(points_in("r", tape.records), "a") == done
    with pytest.raises(RunNotFound):
        resolve_point(points_in("r", tape.records), "b")


def test_the_start_of_a_taken_over_run_is_behind_what_it_began_with() -> None:
    tape = Tape()
    tape.put(kinds.Snapshot({"pipeline": "lessons", "completed_steps": [{"step": "seed"}]}))
    tape.resume()
    known = points_in("r", tape.records)
    assert (known.start, known.end) == (2, 3)
    with pytest.raises(RunNotFound, match="inherited seed"):
        resolve_point(known, "seed")


def test_documents_saved_one_after_the_other_are_points_of_their_own() -> None:
    tape = Tape()
    steps = [{"step": "seed", "completed_at": "1"}, {"step": "sow", "completed_at": "2"}]
    for count in (0, 1, 2):
        tape.put(kinds.Snapshot({"status": "in_progress", "completed_steps": steps[:count]}, "api"))
    known = points_in("r", tape.records)
    assert [(mark.path, mark.seq, mark.inherited) for mark in known.boundaries] == [
        ("seed#1", 3, False), ("sow#1", 4, False),
    ]  # fmt: skip
    assert (known.start, resolve_point(known, "seed"), resolve_point(known, "2")) == (1, 3, 2)


def test_what_a_late_record_of_an_older_owner_ends_is_no_boundary() -> None:
    tape = Tape()
    tape.start("a#1")
    tape.resume()
    tape.put(kinds.StepCompleted("a#1", {}, "b" * 32), owner=1)
    assert list(boundaries("r", tape.records)) == []


def test_boundaries_tell_money_reasons_and_both_values_of_a_context_key(store: MemoryStore, run: str) -> None:
    tape = Tape()
    tape.start("a#1")
    call = tape.call("a#1")
    tape.reply(call)
    tape.call("a#1")
    tape.complete("a#1", ["a->b"], context={"k": 1}, reason="weight")
    (mark,) = boundaries("r", tape.records)
    assert (str(mark.usd), str(mark.possibly), mark.reason, mark.changes) == ("0.25", "1", "weight", {})
    graph = LOOP.definition.graph
    changes = [mark.changes for mark in boundaries(run, records(store, run), graph)]
    assert changes == [{"n": (..., 1)}, {"n": (1, 2)}, {"n": (2, 3)}, {}]
