"""CheckpointManager: the original system's interface, alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.clock import iso
from pipeline.errors import CheckpointCorrupt, InvalidValue, RunLocked, RunNotFound, StoreError
from pipeline.records.documents import PipelineState, StepState
from pipeline.records.kinds import RunEnded, RunResumed, StepCompleted, StepStarted
from pipeline.store.files import FileStore
from pipeline.store.manager import CheckpointManager
from pipeline.store.reader import load
from tests.journals import AT, StillClock, line, small_run

NAMES = [
    "run_id", "pipeline", "subject", "level", "course_id", "status", "started_at", "updated_at", "completed_steps",
    "last_completed_step", "next_step", "total_cost_usd", "total_tokens", "error",
]  # fmt: skip


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


def manager(base: Path, clock: StillClock, run: str = "20260109_143022") -> CheckpointManager:
    return CheckpointManager(run, base, clock=clock)


def sow() -> StepState:
    return StepState(
        "sow", started_at="2026-01-09T14:30:25Z", completed_at="2026-01-09T14:35:12Z", duration_seconds=287,
        outputs={"lesson_count": 18}, metrics={"input_tokens": 15420, "output_tokens": 8234, "cost_usd": 1.85},
    )  # fmt: skip


def test_names_and_places_are_those_of_the_original(tmp_path: Path) -> None:
    one = CheckpointManager("20260109_143022", tmp_path)
    assert (one.run_id, one.base_path) == ("20260109_143022", tmp_path)
    assert one.checkpoint_file == tmp_path / "20260109_143022" / "checkpoint.json"
    assert CheckpointManager("x").base_path == Path("devops/checkpoints")


def test_new_run_is_pending_and_exists(tmp_path: Path, clock: StillClock) -> None:
    state = manager(tmp_path, clock).load_or_create("mathematics", "national_5")
    assert (state.run_id, state.subject, state.level, state.status) == (
        "20260109_143022", "mathematics", "national_5", "pending"
    )  # fmt: skip
    assert state.started_at == iso(AT)
    document = json.loads((tmp_path / "20260109_143022" / "checkpoint.json").read_text())
    assert list(document)[: len(NAMES)] == NAMES
    (listed,) = CheckpointManager.list_runs(tmp_path)
    assert (listed["status"], listed["subject"]) == ("pending", "mathematics")


def test_saved_state_comes_back_whole(tmp_path: Path, clock: StillClock) -> None:
    one = manager(tmp_path, clock)
    state = one.load_or_create("mathematics", "national_5")
    clock.at += timedelta(minutes=5)
    state.completed_steps.append(sow())
    state.status, state.next_step, state.last_completed_step = "failed", "lessons", "sow"
    state.total_cost_usd, state.total_tokens, state.error = 1.85, 23654, "rate limit \ud800\0"
    state.extra["a newer key"] = {"kept": [1, None]}
    state.completed_steps[0].extra["workspace_path"] = "x"
    one.save(state)
    assert state.updated_at == iso(AT + timedelta(minutes=5))
    again = manager(tmp_path, clock)
    assert again.load_or_create() == state
    again.save(state)
    one.save(state)
    assert manager(tmp_path, clock).load_or_create() == state
    document = json.loads(one.checkpoint_file.read_text())
    assert (document["completed_steps"][0]["metrics"]["cost_usd"], document["error"]) == (1.85, state.error)
    assert document["a newer key"] == {"kept": [1, None]}


def test_state_survives_the_loss_of_checkpoint_json(tmp_path: Path, clock: StillClock) -> None:
    one = manager(tmp_path, clock)
    state = one.load_or_create("mathematics", "national_5")
    state.completed_steps.append(sow())
    state.last_completed_step, state.next_step, state.status = "sow", "lessons", "in_progress"
    one.save(state)
    one.checkpoint_file.unlink()
    assert manager(tmp_path, clock).load_or_create() == state
    (listed,) = CheckpointManager.list_runs(tmp_path)
    assert {name: listed[name] for name in ("status", "next_step", "last_completed_step")} == {
        "status": "in_progress", "next_step": "lessons", "last_completed_step": "sow"
    }  # fmt: skip


def test_saving_a_run_that_is_not_there_makes_it(tmp_path: Path, clock: StillClock) -> None:
    state = PipelineState("by-hand", subject="physics", status="in_progress")
    one = manager(tmp_path, clock, "by-hand")
    one.save(state)
    assert one.load_or_create() == state


def test_state_that_is_no_json_is_refused_and_the_last_one_stands(tmp_path: Path, clock: StillClock) -> None:
    one = manager(tmp_path, clock)
    state = one.load_or_create("mathematics", "national_5")
    before = replace(state)
    for bad in (math.nan, b"bytes", {1}):
        state.extra["odd"] = bad
        with pytest.raises(InvalidValue, match="odd"):
            one.save(state)
    assert state.updated_at == before.updated_at
    del state.extra["odd"]
    assert one.load_or_create() == state
    with pytest.raises(StoreError):
        one.save(PipelineState("another"))


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".new-1"])
def test_names_do_not_lead_out_of_the_folder(tmp_path: Path, clock: StillClock, name: str) -> None:
    base = tmp_path / "runs"
    with pytest.raises(StoreError):
        manager(base, clock, name).load_or_create("mathematics", "national_5")
    with pytest.raises(StoreError):
        manager(base, clock, name).save(PipelineState(name))
    assert not (tmp_path / "x").exists()


def test_original_document_is_loaded_as_it_stands(tmp_path: Path, clock: StillClock) -> None:
    folder = tmp_path / "20260109_143022"
    folder.mkdir()
    text = json.dumps({**PipelineState("20260109_143022", completed_steps=[sow()]).to_json(), "from a tool": 1,
                       "completed_steps": [sow().to_json()]})  # fmt: skip
    (folder / "checkpoint.json").write_text(text)
    state = manager(tmp_path, clock).load_or_create()
    assert (state.completed_steps, state.extra) == ([sow()], {"from a tool": 1})
    assert not (folder / "journal.jsonl").exists()
    state.status = "completed"
    manager(tmp_path, clock).save(state)
    assert manager(tmp_path, clock).load_or_create() == state


def test_run_of_the_engine_can_be_loaded_and_changed(tmp_path: Path, clock: StillClock) -> None:
    store = FileStore(tmp_path, clock)
    run, journal = store.create(small_run()[0], [], at=AT)
    journal.append(2, small_run()[1:])
    journal.append(8, [line(8, RunResumed({}), owner=8), line(9, RunEnded("failed"), owner=8)])
    one = manager(tmp_path, clock, run)
    with pytest.raises(RunLocked):
        one.save(one.load_or_create())
    journal.close()
    state = one.load_or_create()
    assert [step.step for step in state.completed_steps] == ["seed", "sow"]
    assert state.total_cost_usd == 1.85
    state.completed_steps.pop()
    state.status = "in_progress"
    one.save(state)
    assert [step.step for step in one.load_or_create().completed_steps] == ["seed"]
    folded = load(store, run)
    assert (folded.status, list(folded.steps), str(folded.total.usd)) == ("in_progress", ["seed#1"], "1.85")


def test_steps_run_after_a_save_are_part_of_the_state(tmp_path: Path, clock: StillClock) -> None:
    one = manager(tmp_path, clock)
    one.load_or_create("mathematics", "national_5")
    journal = FileStore(tmp_path, clock).open(one.run_id)
    facts = [RunResumed({}), StepStarted("seed#1"), StepCompleted("seed#1", {"course_id": "c"}, "1" * 32)]
    journal.append(3, [line(seq, fact, owner=3) for seq, fact in enumerate(facts, 3)])
    journal.close()
    state = one.load_or_create()
    assert ([step.step for step in state.completed_steps], state.course_id) == (["seed"], "c")


def test_save_after_a_repair_is_what_counts(tmp_path: Path, clock: StillClock) -> None:
    one = manager(tmp_path, clock)
    state = one.load_or_create("mathematics", "national_5")
    for status in ("in_progress", "failed"):
        state.status = status
        one.save(state)
    path = one.checkpoint_file.with_name("journal.jsonl")
    data = path.read_bytes().splitlines(True)
    path.write_bytes(b"".join([*data[:2], b"damaged\n", data[3]]))
    state.status = "completed"
    one.save(state)
    assert one.load_or_create() == state
    assert load(FileStore(tmp_path, clock), one.run_id).status == "completed"


def test_run_that_cannot_be_read_says_so(tmp_path: Path, clock: StillClock) -> None:
    one = manager(tmp_path, clock)
    one.load_or_create("mathematics", "national_5")
    path = one.checkpoint_file.with_name("journal.jsonl")
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(CheckpointCorrupt):
        one.load_or_create()
    (listed,) = CheckpointManager.list_runs(tmp_path)
    assert (listed["run_id"], listed["status"]) == (one.run_id, "corrupt")


def test_empty_folder_is_no_run(tmp_path: Path, clock: StillClock) -> None:
    (tmp_path / "20260109_143022").mkdir()
    with pytest.raises(RunNotFound):
        manager(tmp_path, clock).load_or_create("mathematics", "national_5")
    assert CheckpointManager.list_runs(tmp_path) == []


def test_old_finished_runs_are_removed(tmp_path: Path) -> None:
    for number, status in enumerate(["completed", "completed", "failed", "completed"], 1):
        one = CheckpointManager(f"2024010{number}_000000", tmp_path, clock=StillClock(AT - timedelta(days=700)))
        state = one.load_or_create("mathematics", "national_5")
        state.status = status
        one.save(state)
    assert CheckpointManager.cleanup_old_runs(30, 50, tmp_path) == ["20240101_000000", "20240102_000000"]
    assert [run["run_id"] for run in CheckpointManager.list_runs(tmp_path)] == ["20240104_000000", "20240103_000000"]
    assert CheckpointManager.cleanup_old_runs(max_age_days=30, max_runs=50, base_path=tmp_path) == []
