"""The original's list: acceptance criteria and unit tests that no acceptance case of layered DAGs repeats."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import LayerCheckpoints, WorkflowState, open_store
from pipeline.clock import SystemClock
from pipeline.store.files import FileStore
from tests.faulty_disk import FaultyDisk, LazyDisk
from tests.layered import THREE, Layered, dag, done, state

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def layered(tmp_path: Path) -> Layered:
    return Layered(FileStore(tmp_path / "runs", SystemClock(), disk=LazyDisk()))


def test_seed_criterion_1_a_state_is_persisted(tmp_path: Path) -> None:
    saved = LayerCheckpoints(open_store(f"files:{tmp_path}")).saveCheckpoint(state(messages=["m"]), THREE, 0)
    code = "import sys; from pipeline import *; " + (
        "print(LayerCheckpoints(open_store(sys.argv[1])).load(sys.argv[2]).to_json())"
    )
    read = subprocess.run(
        [sys.executable, "-c", code, f"files:{tmp_path}", saved.id],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert read.stdout.strip() == str(saved.to_json())
    assert list(saved.to_json()) == [
        "id", "workflow_id", "timestamp", "layer_index", "state", "dag_structure", "execution_config",
    ]  # fmt: skip


def test_seed_criterion_3_resume_restores_tasks_decisions_and_context(layered: Layered) -> None:
    layered.bad = {"d": "crash"}
    before = layered.execute(THREE, {"theme": "sea"}, hil=lambda question: True)
    layered.bad = {}
    after = layered.resume(before.checkpoint_id or "", hil=lambda question: True).state
    assert after.tasks[:3] == before.state.tasks[:3]
    assert after.decisions[:2] == before.state.decisions
    assert before.state.context.items() - {("last", "c")} <= after.context.items()


def test_seed_criterion_8_a_save_writes_only_what_is_new(tmp_path: Path) -> None:
    class Counting(FaultyDisk):
        written = 0

        def write(self, fd: int, data: bytes) -> int:
            self.written += len(data)
            return super().write(fd, data)

    disk = Counting()
    checkpoints = LayerCheckpoints(FileStore(tmp_path, SystemClock(), disk=disk))
    # Results that do not compress away.
    given = WorkflowState("wf", tasks=[{**done(f"t{n}")[0], "result": random.Random(n).randbytes(1000).hex()}
                                       for n in range(1000)])  # fmt: skip
    checkpoints.save_checkpoint(given, THREE, 0)
    first, disk.written = disk.written, 0
    checkpoints.save_checkpoint(given.updated(messages=["one more"]), THREE, 0)
    assert first > 1_000_000
    assert disk.written < 60_000


def test_seed_criterion_9_a_typical_checkpoint_is_small(layered: Layered) -> None:
    saved = layered.checkpoints.save_checkpoint(
        state(tasks=[{**done(f"t{n}")[0], "result": "x" * 1000} for n in range(30)]), THREE, 0
    )
    assert saved.size < 100_000


def test_seed_unit_test_save_then_resume_matches_exactly(layered: Layered) -> None:
    given = state(tasks=done("a", "b", "c", "d"), messages=["m"], decisions=["d"], context={"x": {"y": None}})
    saved = layered.checkpoints.save_checkpoint(given, THREE, 3)
    result = layered.resume(saved.id)
    assert layered.ran == []
    assert (result.status, {**result.state.to_json(), "checkpoint_id": saved.id}) == ("completed", given.to_json())


def test_seed_unit_test_a_modified_dag_is_handled_gracefully(layered: Layered) -> None:
    saved = layered.checkpoints.save_checkpoint(state(tasks=done("a", "b", "c")), THREE, 2)
    result = layered.resume(saved.id, dag("a:", "b:", "c: a b", "e: c"))
    assert (result.status, layered.ran) == ("completed", ["e"])
    assert {text for text in result.warnings if "d is gone" in text and "e is new" in text}
