"""Acceptance cases of layered DAGs: what is kept, and how much it takes (38 to 41, 48 to 50)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline import LayerCheckpoints, WorkflowState
from pipeline.clock import SystemClock
from pipeline.errors import WriteFailed
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.records.values import encode_value
from pipeline.store.files import FileStore
from pipeline.testing import FakeClock
from tests.faulty_disk import FaultyDisk, LazyDisk
from tests.layered import THREE, Layered, chain, dag, done, failing, ids, state
from tests.said import Cli


@pytest.mark.parametrize("name", ["wf", 'it\'s; DROP TABLE workflow_checkpoint; -- "x" % \\ ü'])
def test_case_38_pruning_leaves_the_newest_on_the_list(layered: Layered, name: str) -> None:
    still = FakeClock()
    checkpoints = LayerCheckpoints(layered.store, clock=still)
    saved = []
    for number in range(8):
        # Neither a standing clock nor one that is set back decides the order.
        still.step(-1 if number % 3 == 2 else 0)
        saved.append(checkpoints.save_checkpoint(state(name), THREE, 0).id)
        checkpoints.save_checkpoint(state("other"), THREE, 0)
    before = checkpoints.listed("other")
    assert checkpoints.prune_old_checkpoints(name, keep_count=5) == 3
    assert [row["id"] for row in checkpoints.listed(name)] == saved[:2:-1]
    assert checkpoints.listed("other") == before
    assert checkpoints.prune_old_checkpoints(name, keep_count=5) == 0
    latest = checkpoints.latest(name)
    assert latest is not None
    assert (latest.id, latest.workflow_id) == (saved[-1], name)
    assert checkpoints.load(saved[0]).id == saved[0]
    assert LayerCheckpoints(layered.store).prune_old_checkpoints(name, 1) == 4


def test_case_39_auto_pruning_costs_a_save_nothing_and_cannot_fail_it(tmp_path: Path) -> None:
    def writes(auto_prune: bool) -> tuple[int, list[str], list[int]]:
        disk = FaultyDisk()
        store = FileStore(tmp_path / str(auto_prune), SystemClock(), disk=disk)
        checkpoints = LayerCheckpoints(store, auto_prune=auto_prune)
        saved, sizes = [], []
        for _ in range(8):
            saved.append(checkpoints.save_checkpoint(state(), THREE, 0).id)
            sizes.append(len(checkpoints.listed("wf")))
        # The newest always stays, and older records stay too.
        assert checkpoints.listed("wf")[0]["id"] == saved[-1]
        assert checkpoints.load(saved[0]).id == saved[0]
        return disk.syncs, saved, sizes

    plain, pruned = writes(False), writes(True)
    assert (plain[2], pruned[2]) == ([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 5, 5, 5])
    assert plain[0] == pruned[0]


def test_case_39_a_pruning_that_failed_is_made_up_for_by_the_next_save(tmp_path: Path) -> None:
    layered, disk = failing(tmp_path)
    checkpoints = LayerCheckpoints(layered.store, auto_prune=True, keep_count=2)
    saved = [checkpoints.save_checkpoint(state(), THREE, 0).id for _ in range(4)]
    disk.write_errors = [5] * 10_000
    with pytest.raises(WriteFailed):
        checkpoints.prune_old_checkpoints("wf", 1)
    disk.write_errors = []
    assert [row["id"] for row in checkpoints.listed("wf")] == saved[:1:-1]
    newest = checkpoints.save_checkpoint(state(), THREE, 0).id
    assert [row["id"] for row in checkpoints.listed("wf")] == [newest, saved[-1]]


def test_case_40_cleanup_leaves_unfinished_runs_and_the_books(cli: Cli, root: Path) -> None:
    model = ScriptedModel(lambda request: "x", model_id="claude-sonnet-5-5", paid=True)
    old = FakeClock()
    old.advance(-90 * 86_400)
    layered = Layered(FileStore(root, old), old)
    layered.meanwhile = lambda call: call.ask(Request("claude-sonnet-5-5", [Message("user", "x")], max_tokens=10))
    first = layered.execute(chain(1), model=model)
    old.advance(1)
    layered.bad = {"t1": "crash"}
    unfinished = layered.execute(chain(1), model=model)
    layered.bad = {}
    old.advance(1)
    newest = layered.execute(chain(1), model=model)
    total = cli("cost", "--json").json()[-1]["cost_usd"]
    assert total > 0
    dry = cli("cleanup", "--dry-run")
    assert first.run_id in dry.out
    assert cli("cleanup", "--yes").code == 0
    left = [head.run_id for head in FileStore(root, SystemClock()).heads()]
    assert left == [newest.run_id, unfinished.run_id]
    assert not any(run in dry.out for run in left)
    *rows, left_over = cli("cost", "--json").json()
    removed = sum(row["cost_usd"] for row in rows if row["type"] == "removed")
    assert 0 < removed < total
    # What was removed stays in the sum.
    assert left_over["cost_usd"] == pytest.approx(total)


def test_case_41_only_what_has_ended_is_in_a_checkpoint(layered: Layered) -> None:
    rows = [
        *done("a"),
        {"taskId": "b", "status": "pending", "result": None},
        {"taskId": "c", "status": "running", "result": None},
        {"taskId": "d", "result": 1, "speculative": True},
        {"taskId": "e", "result": 2, "speculative": True, "confirmed": True},
        {"taskId": "f", "status": "failed_safe", "result": None},
        {"taskId": "g", "status": "error", "error": "no"},
    ]
    saved = layered.checkpoints.save_checkpoint(state(tasks=rows), dag("a:", "b:", "c:", "d:", "e:", "f:", "g:"), 0)
    assert ids(layered.checkpoints.load(saved.id).state.tasks) == ["a", "e", "f", "g"]
    # What failed is told, and made again.
    result = layered.resume(saved.id)
    assert sorted(layered.ran) == ["b", "c", "d", "g"]
    assert result.status == "completed"


def typical() -> tuple[Any, WorkflowState]:
    """10 layers of 3 tasks, 1 KB of outputs each."""
    rows = [f"t{layer}{n}: {' '.join(f't{layer - 1}{m}' for m in range(3)) if layer else ''}"
            for layer in range(10) for n in range(3)]  # fmt: skip
    names = [row.partition(":")[0] for row in rows]
    return dag(*rows), state(tasks=[{**row, "result": {"text": "r" * 1000}} for row in done(*names)])


def test_case_48_a_typical_checkpoint_is_small(tmp_path: Path) -> None:
    plan, given = typical()
    layered = Layered(FileStore(tmp_path, SystemClock(), disk=LazyDisk()))
    saved = layered.checkpoints.save_checkpoint(given, plan, 10)
    assert 30_000 < saved.size < 100_000
    assert layered.checkpoints.load(saved.id).size == saved.size
    result = layered.execute(plan)
    assert [layered.checkpoints.load(each).size < 1000 for each in layered.saved()] == [True] * 10
    assert result.status == "completed"


def test_case_49_a_long_value_is_stored_once(tmp_path: Path) -> None:
    layered = Layered(FileStore(tmp_path, SystemClock()))
    rows = [{"n": n, "text": "abc" * 10} for n in range(4000)]
    assert len(encode_value(rows)) > 200_000
    given = state(context={"rows": rows})
    saved = layered.checkpoints.save_checkpoint(given, THREE, 0)
    files = {path: path.stat() for path in (tmp_path / saved.run_id / "blobs").glob("*/*")}
    sizes = sorted(stat.st_size for stat in files.values())
    assert sizes[-1] < 50_000
    for number in range(5):
        given = given.updated(tasks=done(f"x{number}"), messages=["m"])
        # A new process knows of nothing that is there.
        latest = LayerCheckpoints(layered.store).save_checkpoint(given, THREE, 0)
    after = {path: path.stat() for path in (tmp_path / saved.run_id / "blobs").glob("*/*")}
    assert {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in after.items()} == {
        path: (stat.st_ino, stat.st_mtime_ns) for path, stat in files.items()
    }
    assert saved.size < 2000
    assert LayerCheckpoints(layered.store).load(latest.id).state.context == {"rows": rows}


def test_case_49_a_growing_list_does_not_rewrite_its_beginning(tmp_path: Path) -> None:
    layered = Layered(FileStore(tmp_path, SystemClock(), disk=LazyDisk()))
    given = state()
    written = []
    for number in range(100):
        given = given.updated(messages=[f"{number} {'m' * 2000}"])
        saved = layered.checkpoints.save_checkpoint(given, THREE, 0)
        written.append(len(list((tmp_path / saved.run_id / "blobs").glob("*/*"))))
    # The graph, and one more piece for every 17 messages, which are 32 KiB.
    assert written[-1] == 1 + 100 // 17
    assert LayerCheckpoints(layered.store).load(saved.id).state.messages == given.messages


@pytest.mark.parametrize(("keys", "warned"), [(17, False), (25, True)])
def test_case_50_above_500_kb_one_warning_names_the_largest(tmp_path: Path, keys: int, warned: bool) -> None:
    told: list[str] = []
    store = FileStore(tmp_path, SystemClock(), disk=LazyDisk())
    checkpoints = LayerCheckpoints(store, warn=told.append)
    context = {f"key{n:02}": "x" * (29_900 - 500 * n) for n in range(keys)}
    saved = checkpoints.save_checkpoint(state(context=context), THREE, 0)
    assert (saved.size > 500_000) is warned
    checkpoints.save_checkpoint(state(context=context), THREE, 0)
    assert LayerCheckpoints(store).load(saved.id).state.context == context
    assert len(told) == warned
    for text in told:
        assert f"{saved.size:,} bytes" in text
        assert "state.context.key00 (29 kB), state.context.key01 (29 kB), state.context.key02 (28 kB)." in text
