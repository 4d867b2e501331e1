"""Forks: whole with their creation, safe from what makes no sense, and told what cannot be changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeline
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import Outcome, StepContext, step
from pipeline.errors import CheckpointCorrupt, ConfigError, RunNotFound
from pipeline.records.fold import fold
from pipeline.records.kinds import RunStarted, Snapshot
from pipeline.records.run import RunState
from pipeline.records.snapshots import INHERITED, document_shape, inherited_shape
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryJournal, MemoryStore
from pipeline.store.reader import load, records
from pipeline.store.runs import RunStore
from pipeline.testing import FakeClock
from pipeline.travel.fork import fork, fork_run
from tests.faulty_disk import LazyDisk
from tests.tape import Tape

LONG = "z" * 40_000


@step()
def one(ctx: StepContext) -> Outcome:
    ctx.save("kept", [LONG])
    values = ctx.map("item", [1, 2], lambda c, i: "y" * 2000 if i == 1 else LONG, key=str)
    return Outcome({"long": LONG, "n": len(values)}, context={"k": 1, "long": LONG})


@step()
def two(ctx: StepContext) -> dict[str, Any]:
    return {"n": len(ctx.load("kept")[0]) + len(ctx.context["long"]) + len(ctx.outputs["one"]["long"])}


CHAIN = Pipeline("chain", [one, two])


def test_a_fork_in_a_folder_holds_its_long_values_itself(tmp_path: Path) -> None:
    store = FileStore(tmp_path, FakeClock(), disk=LazyDisk())
    run = CHAIN.run(store=store, clock=FakeClock()).run_id
    child = fork_run(store, run, at="one", clock=FakeClock())
    store.delete(run)
    result = CHAIN.resume(child, store=store, clock=FakeClock())
    assert result.outputs["two"] == {"n": 120_000}


def test_a_fork_that_dies_while_it_is_made_is_whole_or_not_there(store: MemoryStore) -> None:
    run = CHAIN.run(store=store, clock=FakeClock()).run_id

    class Killed(BaseException):
        pass

    class Dying(MemoryStore):
        def create(self, *given: Any, **more: Any) -> tuple[str, MemoryJournal]:
            made, journal = super().create(*given, **more)

            def dead(*_: Any, **__: Any) -> None:
                raise Killed

            journal.append = dead  # type: ignore[method-assign]
            return made, journal

    into = Dying(FakeClock())
    with pytest.raises(Killed):
        fork_run(store, run, at="one", into=into, clock=FakeClock())
    (head,) = into.heads()
    plain = RunStore(into.backend, FakeClock())
    assert CHAIN.resume(head.run_id, store=plain, clock=FakeClock()).outputs["two"] == {"n": 120_000}


def test_a_fork_remembers_its_parent_and_where(store: MemoryStore) -> None:
    run = CHAIN.run({"p": 1}, store=store, clock=FakeClock()).run_id
    made = fork(store, run, at="one", clock=FakeClock())
    first, second, *_ = records(store, made.run_id)
    assert isinstance(first.fact, RunStarted)
    assert isinstance(second.fact, Snapshot)
    assert first.fact.parent == {"run": run, "seq": made.seq}
    assert (first.fact.params, first.fact.claim, second.fact.source) == ({"p": 1}, None, "fork")
    state = load(store, made.run_id)
    assert (state.inherited, state.reported, state.imported) == (2, {}, {})
    assert state.tasks["one#1"].keys() == {"item/1", "item/2"}


def test_a_fork_of_a_fork_goes_on_from_what_both_did(store: MemoryStore) -> None:
    run = CHAIN.run(store=store, clock=FakeClock()).run_id
    child = fork_run(store, run, at="one", clock=FakeClock())
    grandchild = fork_run(store, child, clock=FakeClock())
    assert CHAIN.resume(grandchild, store=store, clock=FakeClock()).outputs["two"] == {"n": 120_000}
    assert load(store, grandchild).parent == {"run": child, "seq": 3}


def test_a_fork_of_what_is_damaged_is_refused(store: MemoryStore) -> None:
    run = CHAIN.run(store=store, clock=FakeClock()).run_id
    for blob in store.blobs(run):
        store.backend.delete(f"runs/{run}/blobs/{blob}")
    with pytest.raises(CheckpointCorrupt):
        fork_run(store, run, at="one", clock=FakeClock())
    with pytest.raises(RunNotFound):
        fork_run(store, "20200101_000000")


def test_changes_are_given_in_python_as_values(store: MemoryStore) -> None:
    run = CHAIN.run(store=store, clock=FakeClock()).run_id
    assert pipeline.fork_run is fork_run
    made = fork(store, run, changes={"outputs.one.long": {"deep": [1, LONG]}, "context.new": None}, clock=FakeClock())
    assert [void.paths for void in made.void] == [["two#1"], []]
    state = load(store, made.run_id)
    assert state.context["new"] is None
    both = fork_run(store, run, changes={"outputs.one.long": "s", "outputs.one.n": 7}, clock=FakeClock())
    assert load(store, both).steps["one#1"].outputs == {"long": "s", "n": 7}
    with pytest.raises(ConfigError, match="is given twice"):
        fork_run(store, run, changes={"k": 1, "context.k": 2})
    with pytest.raises(ConfigError, match=r"outputs\.one\.long"):
        fork(store, run, changes={"outputs.one.long": object()}, clock=FakeClock())


def _document(store: MemoryStore) -> dict[str, Any]:
    run = CHAIN.run(store=store, clock=FakeClock()).run_id
    child = fork_run(store, run, clock=FakeClock())
    facts = [record.fact for record in records(store, child)]
    (snapshot,) = [fact for fact in facts if isinstance(fact, Snapshot)]
    return dict(snapshot.document)


@given(data=st.data())
def test_what_a_fork_inherits_is_refused_as_a_whole_where_it_makes_no_sense(data: st.DataObject) -> None:
    document = _document(MemoryStore(FakeClock()))
    assert document_shape(document) == ""
    inherited = document[INHERITED]
    part = data.draw(st.sampled_from(sorted(inherited)))
    wrong: Any = data.draw(st.sampled_from([None, 1, "x", [1], [[1]], [{}], {"a": "b"}, [{"path": 1}]]))
    broken = {**document, INHERITED: {**inherited, part: wrong}}
    said = inherited_shape(broken)
    state = RunState()
    if said:
        assert "is inconsistent" in said
    else:
        tape = Tape()
        tape.put(Snapshot(broken, "fork"))
        state = fold("r", tape.records)
        assert state.inherited == 2
