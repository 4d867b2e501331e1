"""The guide to checkpoints names every record kind and field, and every field of checkpoint.json."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from pipeline.records import kinds
from pipeline.records.documents import PipelineState, metrics
from pipeline.records.kinds import Fact, UnknownFact
from pipeline.records.run import Spend
from pipeline.records.values import INLINE_LIMIT
from pipeline.store.manager import CheckpointManager
from tests.documents import codes, fenced, table, tables, text_of
from tests.sample_runs import failed_run

GUIDE = "checkpoints.md"
_KINDS = {
    cls.kind: list(cls.__struct_fields__)
    for cls in vars(kinds).values()
    if isinstance(cls, type) and issubclass(cls, Fact) and cls.kind and cls is not UnknownFact
}


def test_docs_name_every_record_kind_with_its_fields() -> None:
    documented = {codes(row[0])[0]: sorted(codes(row[2])) for row in table(GUIDE, "Kind", "Says", "Fields")}
    assert documented == {kind: sorted(names) for kind, names in _KINDS.items()}


def test_docs_name_every_field_of_checkpoint_json(tmp_path: Path) -> None:
    run = failed_run(tmp_path)
    document = json.loads((tmp_path / run / "checkpoint.json").read_bytes())
    # Of the run, the original system's names first; beside them; of a step.
    own, beside, step = (
        [name for row in rows[1:] for name in codes(row[0])]
        for rows in tables(GUIDE)
        if rows[0] == ["Field", "Type", "Meaning"]
    )
    assert own == [item.name for item in fields(PipelineState) if item.name != "extra"]
    assert own + beside == list(document)
    assert set(step) == {name for entry in (*document["completed_steps"], document["current_step"]) for name in entry}


def test_docs_name_every_metric_and_the_size_of_a_blob() -> None:
    (row,) = [row for row in table(GUIDE, "Field", "Type", "Meaning") if row[0] == "`metrics`"]
    assert codes(row[2]) == list(metrics(Spend(calls=1, unbounded=1)))
    assert f"values above {INLINE_LIMIT // 1024} KiB" in text_of(GUIDE)


def test_docs_example_of_the_manager_runs(tmp_path: Path) -> None:
    (code,) = fenced(GUIDE, "python")
    exec(compile(code.replace('Path("checkpoints")', f"Path({str(tmp_path)!r})"), GUIDE, "exec"), {})
    state = CheckpointManager("20260109_143022", tmp_path).load_or_create()
    assert (state.status, state.last_completed_step, state.next_step) == ("in_progress", "seed", "sow")
    assert state.completed_steps[0].outputs == {"course_id": "course_c84775"}
