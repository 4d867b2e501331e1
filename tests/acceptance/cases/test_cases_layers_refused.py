"""Acceptance cases of layered DAGs: what a disk refuses or damages (34, 35, 37)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.engine.amendment import amend
from pipeline.errors import CheckpointCorrupt, RunNotFound, WriteFailed
from pipeline.formats.casys.plan import SOURCE
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.records.kinds import DocumentKept
from pipeline.records.values import encode_value
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from tests.layered import THREE, Layered, chain, done, failing, state


def test_case_34_a_refusing_disk_does_not_end_the_run(tmp_path: Path) -> None:
    layered, disk = failing(tmp_path)

    def refuse(call: Any) -> None:
        if call.id == "t2":
            disk.write_errors = [5] * 10_000

    layered.meanwhile = refuse
    result = layered.execute(chain(4))
    assert (result.status, layered.ran) == ("completed", ["t1", "t2", "t3", "t4"])
    assert [list(event) for event in layered.told("checkpoint_failed")] == [["type", "error"]] * 3
    assert len(layered.saved()) == 1
    assert result.checkpoint_id == layered.saved()[0]
    assert result.not_resumable_past
    assert f"not resumable past record {result.not_resumable_past}" in result.warnings[-1]
    disk.write_errors = []
    assert [row["id"] for row in layered.checkpoints.listed(result.run_id)] == layered.saved()
    # What the disk did not take was kept elsewhere on this machine, and is taken in: nothing is done again.
    layered.meanwhile = lambda call: None
    assert (layered.resume(result.run_id).status, layered.ran) == ("completed", [])


def test_case_34_a_paid_call_never_leaves_without_its_record(tmp_path: Path) -> None:
    layered, disk = failing(tmp_path)
    model = ScriptedModel(["one", "two"], model_id="claude-sonnet-5-5", paid=True)

    def ask(call: Any) -> None:
        if call.id == "t2":
            disk.write_errors = [5] * 10_000
        call.ask(Request("claude-sonnet-5-5", [Message("user", call.id)], max_tokens=10))

    layered.meanwhile = ask
    result = layered.execute(chain(3), model=model)
    assert (result.status, layered.ran, model.calls) == ("in_progress", ["t1", "t2"], 1)
    assert isinstance(result.error, WriteFailed)
    assert result.exit_code == 3


def test_case_35_a_passing_refusal_is_no_event(tmp_path: Path) -> None:
    layered, disk = failing(tmp_path)

    def refuse(call: Any) -> None:
        # More refusals than the journal itself tries again.
        disk.write_errors = [5] * 4

    layered.meanwhile = refuse
    result = layered.execute(chain(2))
    assert (result.status, layered.told("checkpoint_failed"), len(layered.saved())) == ("completed", [], 2)
    assert result.not_resumable_past is None
    assert len(load(layered.store, result.run_id).steps) == 3


def test_case_35_what_was_refused_is_saved_with_the_next_checkpoint(tmp_path: Path) -> None:
    layered, disk = failing(tmp_path)

    def refuse(call: Any) -> None:
        disk.write_errors = [5] * 10_000 if call.id == "t1" else []

    layered.meanwhile = refuse
    result = layered.execute(chain(3))
    assert (len(layered.told("checkpoint_failed")), len(layered.saved())) == (1, 2)
    assert (result.status, result.not_resumable_past) == ("completed", None)
    layered.meanwhile = lambda call: None
    assert (layered.resume(result.run_id).status, layered.ran) == ("completed", [])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["state"].pop("context"), "context is missing"),
        (lambda d: d.pop("timestamp"), "timestamp is missing"),
        (lambda d: d["state"].update(messages={}), "messages is not a list"),
        (lambda d: d["state"]["tasks"].append({"result": 1}), "tasks[1].taskId"),
        (lambda d: d.update(layer_index="2"), "layer_index"),
        (lambda d: d.update(workflow_id=""), "workflow_id"),
        (lambda d: d["state"].update(workflow_id=""), "workflow_id"),
        (lambda d: d.update(dag={"tasks": [{"id": "a", "depends_on": ["z"]}]}), "'z'"),
        (lambda d: d["state"].update(tasks={"$pieces": [{"$blob": "0" * 64, "items": 1}], "tail": []}), "0000"),
        (lambda d: d["state"].update(tasks={"$pieces": 3}), "TypeError"),
    ],
)
def test_case_37_a_senseless_checkpoint_is_corrupt_and_names_the_older_one(
    layered: Layered, change: Callable[[dict[str, Any]], Any], said: str
) -> None:
    good = layered.checkpoints.save_checkpoint(state(tasks=done("a")), THREE, 0)
    other = ("e" if good.id[0] == "d" else "d") + good.id[1:]
    document = {"type": "checkpoint", "keep": None, "config": {}, "dag": good.dag.to_json(), "layer_index": 1,
                "id": other, "workflow_id": "wf", "timestamp": good.timestamp,
                "state": state(tasks=done("a")).to_json()}  # fmt: skip
    change(document)
    text = encode_value(document)
    amend(layered.store, good.run_id, SystemClock(), lambda _: [DocumentKept(text, SOURCE)])
    for read in (lambda: layered.checkpoints.load(other), lambda: layered.resume(other)):
        with pytest.raises(CheckpointCorrupt) as refused:
            read()
        assert said in str(refused.value)
        assert good.id in refused.value.hint
    assert layered.ran == []
    assert layered.resume(good.id).status == "completed"


def save_twice(folder: Path) -> tuple[Layered, str, str, Path]:
    layered = Layered(FileStore(folder, SystemClock()))
    first = layered.checkpoints.save_checkpoint(state(tasks=done("a", "b")), THREE, 1)
    second = layered.checkpoints.save_checkpoint(state(tasks=done("a", "b", "c")), THREE, 2)
    return layered, first.id, second.id, folder / first.run_id / "journal.jsonl"


@pytest.mark.parametrize("damage", ["bit flip", "truncated", "gone"])
def test_case_37_a_damaged_record_is_corrupt_and_the_older_one_resumes(tmp_path: Path, damage: str) -> None:
    layered, first, second, journal = save_twice(tmp_path)
    data = journal.read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    flipped = data[: last + 200] + bytes([data[last + 200] ^ 4]) + data[last + 201 :]
    journal.write_bytes({"bit flip": flipped, "truncated": data[:-40], "gone": data[:last]}[damage])
    with pytest.raises(CheckpointCorrupt, match=r"(?i)records? 3 ") as refused:
        layered.resume(second)
    assert first in refused.value.hint
    assert layered.ran == []
    assert (layered.resume(first).status, layered.ran) == ("completed", ["c", "d"])


def test_case_37_a_damaged_blob_is_corrupt(tmp_path: Path) -> None:
    layered = Layered(FileStore(tmp_path, SystemClock()))
    first = layered.checkpoints.save_checkpoint(state(tasks=done("a")), THREE, 0)
    second = layered.checkpoints.save_checkpoint(state(context={"long": "x" * 40_000}), THREE, 0)
    for blob in (tmp_path / first.run_id / "blobs").glob("*/*"):
        if b"x" * 40_000 in zlib.decompress(blob.read_bytes()):
            blob.write_bytes(b"nothing")
    with pytest.raises(CheckpointCorrupt, match="missing or damaged") as refused:
        layered.checkpoints.load(second.id)
    assert first.id in refused.value.hint


def test_case_37_an_unknown_id_is_not_found(layered: Layered) -> None:
    layered.execute(THREE)
    known = layered.saved()[0]
    for name in (known[:-1] + "x", known[:-1] + ("1" if known[-1] == "0" else "0"), "wf", "'; DROP TABLE runs; --", ""):
        with pytest.raises(RunNotFound):
            layered.resume(name)
        with pytest.raises(RunNotFound):
            layered.checkpoints.load(name)
    assert layered.checkpoints.latest("wf") is None
