"""Where layered runs are kept: a store that tolerates refusals, runs that are saved to by hand, ids."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from pipeline import LayerCheckpoints, WorkflowState, open_store
from pipeline.clock import SystemClock, iso
from pipeline.errors import CheckpointCorrupt, InvalidValue, RunNotFound, WriteFailed
from pipeline.formats.casys.tolerant_store import TolerantJournal, TolerantStore
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import CallStarted, Fact, RunStarted, StepStarted
from pipeline.records.lines import encode_line
from pipeline.records.values import digest
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock
from tests.faulty_disk import FaultyDisk
from tests.layered import THREE, Layered, chain, done, failing, state

CLOCK = SystemClock()
IO_ERROR = 5


def line(seq: int, fact: Fact) -> bytes:
    return encode_line(seq, iso(FakeClock().now()), 1, encode_fact(fact))


@pytest.fixture
def opened(tmp_path: Path) -> tuple[TolerantStore, TolerantJournal, FaultyDisk]:
    disk = FaultyDisk()
    store = TolerantStore(FileStore(tmp_path, CLOCK, disk=disk))
    run, _ = store.create(line(1, RunStarted("p", {}, {}, {})), [], at=CLOCK.now())
    return store, store.journals[run], disk


def seqs(store: Store, run: str) -> list[int]:
    return [int(found[7 : found.index(b",")]) for found in store.read(run)]


def test_tolerant_journal_holds_what_is_refused_and_writes_it_later(
    opened: tuple[TolerantStore, TolerantJournal, FaultyDisk],
) -> None:
    store, journal, disk = opened
    run = journal.run_id
    disk.write_errors = [IO_ERROR] * 1000
    journal.append(2, [line(2, StepStarted("a#1"))])
    blob = journal.put_blob(b"long")
    journal.append(3, [line(3, StepStarted("b#1")), line(4, StepStarted("c#1"))])
    assert (journal.last_seq, journal.durable_seq, blob) == (4, 1, digest(b"long"))
    assert isinstance(journal.mend(), WriteFailed)
    # Whoever reads in this process sees all of it, others what is on the disk.
    assert (seqs(store, run), store.get_blob(run, blob), journal.get_blob(blob)) == ([1, 2, 3, 4], b"long", b"long")
    assert (store.blobs(run), store.is_there()) == ([blob], True)
    assert [found[:9] for found in store.read(run, after=3)] == [b'{"seq":4,']
    other = FileStore(Path(store.url.removeprefix("files:")), CLOCK)
    assert seqs(other, run) == [1]
    disk.write_errors = []
    assert journal.mend() is None
    assert (seqs(other, run), other.get_blob(run, blob), journal.durable_seq) == ([1, 2, 3, 4], b"long", 4)
    # What is held is tried once more when it is closed.
    disk.write_errors = [IO_ERROR] * 1000
    journal.append(5, [line(5, StepStarted("d#1"))])
    journal.write_head({"seq": 5}, durable=True)
    disk.write_errors = []
    journal.close()
    assert journal.refused is None
    assert seqs(other, run) == [1, 2, 3, 4, 5]


def test_tolerant_journal_never_holds_the_start_of_a_paid_call(
    opened: tuple[TolerantStore, TolerantJournal, FaultyDisk],
) -> None:
    _, journal, disk = opened
    paid = CallStarted("a#1", "key", "m", "blob")
    disk.write_errors = [IO_ERROR] * 1000
    with pytest.raises(WriteFailed):
        journal.append(2, [line(2, paid)])
    journal.append(2, [line(2, StepStarted("a#1"))])
    with pytest.raises(WriteFailed):
        journal.append(3, [line(3, StepStarted("b#1")), line(4, paid)])
    disk.write_errors = []
    journal.append(3, [line(3, paid)])
    assert (journal.durable_seq, journal.held) == (3, [])
    journal.close()


def test_tolerant_journal_does_not_trust_a_disk_whose_sync_failed(tmp_path: Path) -> None:
    layered, disk = failing(tmp_path)

    def refuse(call: Any) -> None:
        if call.id == "t2":
            disk.sync_errors = [IO_ERROR]

    layered.meanwhile = refuse
    result = layered.execute(chain(4))
    assert (result.status, layered.ran) == ("completed", ["t1", "t2", "t3", "t4"])
    assert len(layered.told("checkpoint_failed")) == 3
    assert result.not_resumable_past
    # What was not durable stands elsewhere, and can be appended.
    assert re.search(r"recover \S+ \S+", result.warnings[-1])


def test_a_run_that_cannot_be_made_is_none(tmp_path: Path) -> None:
    layered, disk = failing(tmp_path)
    disk.write_errors = [IO_ERROR] * 1000
    with pytest.raises(WriteFailed):
        layered.execute(THREE)
    assert (layered.ran, list(layered.store.heads())) == ([], [])


def test_full_disk_ends_no_run(tmp_path: Path) -> None:
    layered, disk = failing(tmp_path)
    layered.meanwhile = lambda call: setattr(disk, "room", 0) if call.id == "t1" else None
    result = layered.execute(chain(3))
    assert (result.status, layered.ran) == ("completed", ["t1", "t2", "t3"])


# --- saving by hand -------------------------------------------------------------------------------


def test_checkpoint_is_found_among_many_runs_and_in_a_renamed_one(tmp_path: Path) -> None:
    layered = Layered(FileStore(tmp_path, CLOCK))
    saved = [layered.checkpoints.save_checkpoint(state(f"wf{n}"), THREE, 0) for n in range(20)]
    assert layered.checkpoints.load(saved[7].id.upper()).workflow_id == "wf7"
    (tmp_path / saved[7].run_id).rename(tmp_path / "copied-by-hand")
    assert LayerCheckpoints(layered.store).load(saved[7].id).run_id == "copied-by-hand"
    with pytest.raises(RunNotFound):
        layered.checkpoints.load(saved[7].id[:-1] + ("1" if saved[7].id[-1] == "0" else "0"))


def test_two_processes_saving_share_one_run(tmp_path: Path) -> None:
    url = f"files:{tmp_path}"
    first, second = LayerCheckpoints(open_store(url)), LayerCheckpoints(open_store(url))
    ids = [
        each.save_checkpoint(state(messages=[n]), THREE, 0).id for n, each in enumerate((first, second, first, second))
    ]
    assert [row["id"] for row in first.listed("wf")] == ids[::-1]
    assert [first.load(each).state.messages for each in ids] == [[0], [1], [2], [3]]
    assert len(list(open_store(url).heads())) == 1


def test_threads_saving_at_once_lose_nothing(tmp_path: Path) -> None:
    checkpoints = LayerCheckpoints(FileStore(tmp_path, CLOCK))
    saved: list[str] = []

    def save(number: int) -> None:
        saved.append(checkpoints.save_checkpoint(state(f"wf{number % 2}"), THREE, 0).id)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(row["id"] for name in ("wf0", "wf1") for row in checkpoints.listed(name)) == sorted(saved)


def test_saving_after_the_run_was_removed_makes_a_new_one(tmp_path: Path) -> None:
    store = FileStore(tmp_path, CLOCK)
    checkpoints = LayerCheckpoints(store)
    store.delete(checkpoints.save_checkpoint(state(), THREE, 0).run_id)
    again = checkpoints.save_checkpoint(state(), THREE, 0)
    assert checkpoints.latest("wf") == again


def test_saving_onto_a_torn_journal_repairs_it(tmp_path: Path) -> None:
    layered = Layered(FileStore(tmp_path, CLOCK))
    first = layered.checkpoints.save_checkpoint(state(tasks=done("a", "b")), THREE, 1)
    journal = tmp_path / first.run_id / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"seq":3,"at')
    second = LayerCheckpoints(layered.store).save_checkpoint(state(tasks=done("a", "b", "c")), THREE, 2)
    assert LayerCheckpoints(layered.store).latest("wf") == second
    assert (layered.resume(second.id).status, layered.ran) == ("completed", ["d"])


def test_a_refused_save_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    layered, disk = failing(tmp_path)
    given = state()
    first = layered.checkpoints.save_checkpoint(given, THREE, 0)
    disk.write_errors = [IO_ERROR] * 1000
    with pytest.raises(WriteFailed):
        layered.checkpoints.save_checkpoint(given, THREE, 0)
    disk.write_errors = []
    assert (given.checkpoint_id, layered.checkpoints.latest("wf")) == (first.id, first)


@pytest.mark.parametrize(
    ("given", "layer", "said"),
    [
        (WorkflowState("wf", context={"when": object()}), 0, "context.when"),
        (WorkflowState("wf", messages=[{"x": float("nan")}]), 0, r"messages\[0\].x"),
        (WorkflowState("wf", tasks=[{"taskId": "a", "result": b""}]), 0, r"tasks\[0\].result"),
        (WorkflowState(""), 0, "workflow_id"),
        (WorkflowState("wf"), -1, "layer_index"),
        (WorkflowState("wf"), True, "layer_index"),
    ],
)
def test_what_cannot_be_saved_is_refused_naming_the_place(given: WorkflowState, layer: int, said: str) -> None:
    store = MemoryStore(CLOCK)
    with pytest.raises(InvalidValue, match=said):
        LayerCheckpoints(store).save_checkpoint(given, THREE, layer)
    assert list(store.heads()) == []


def test_layer_index_is_given_back_and_not_trusted() -> None:
    layered = Layered(MemoryStore(CLOCK))
    saved = layered.checkpoints.save_checkpoint(state(tasks=done("a", "b")), THREE, 3)
    found = layered.checkpoints.load(saved.id)
    assert (found.layer_index, found.layers_done) == (3, 1)
    assert (layered.resume(saved.id).status, layered.ran) == ("completed", ["c", "d"])


def test_a_checkpoint_of_an_executed_run_with_a_lost_result_is_corrupt(tmp_path: Path) -> None:
    layered = Layered(FileStore(tmp_path, CLOCK))
    result = layered.executor(
        [{"id": "a", "run": lambda call: "x" * 40_000}, {"id": "b", "tool": "work", "depends_on": ["a"]}]
    )
    made = result.execute()
    for blob in (tmp_path / made.run_id / "blobs").glob("*/*"):
        if blob.stat().st_size < 200:
            blob.write_bytes(b"")
    with pytest.raises(CheckpointCorrupt, match="missing or damaged"):
        layered.checkpoints.load(layered.saved()[0])
