"""A run of every kind that a screen has to show."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from pipeline.records.charge import Charge
from pipeline.records.kinds import TaskCompleted, TaskFailed
from pipeline.records.values import encode_value
from tests.runs import BEGIN, Script

LESSON = Charge(
    "exact", Decimal("0.05"), Decimal("0.05"), tokens={"input": 1000, "output": 500},
    parts={"input": Decimal("0.01"), "output": Decimal("0.04")},
)  # fmt: skip
SCHEME = {
    "course_id": "course_c84775", "catalogue": "h", "lesson_count": 1, "partial": True, "not_covered": ["num.surds"],
    "entries": [{"order": 1, "lesson_type": "teach", "block": "Algebra", "label": "Expanding pairs of brackets",
                 "outcome_refs": ["alg.expand", "alg.factor"]}],
}  # fmt: skip
#: The document of the original system, as its users have it on disk.
ORIGINAL = {
    "run_id": "20260108_161230", "pipeline": "lessons", "subject": "mathematics", "level": "national_5",
    "course_id": "course_c84775", "status": "in_progress",
    "started_at": "2026-01-08T16:12:30Z", "updated_at": "2026-01-08T16:27:33Z",
    "completed_steps": [
        {"step": "seed", "status": "completed", "duration_seconds": 3, "outputs": {"course_id": "course_c84775"}},
        {"step": "sow", "status": "completed", "duration_seconds": 287, "outputs": {"lesson_count": 18},
         "metrics": {"input_tokens": 15420, "output_tokens": 8234, "cost_usd": 1.85}},
    ],
    "last_completed_step": "sow", "next_step": "lessons", "total_cost_usd": 1.85, "total_tokens": 23654, "error": None,
}  # fmt: skip


def failed_run(root: Path) -> str:
    script = Script(root)
    script.begin("seed").complete("seed", {"course_id": "course_c84775", "outcomes_created": 46})
    script.begin("sow").call("sow", None, LESSON)
    script.complete("sow", {"sow_document_id": "a" * 64, "lesson_count": 3}, seconds=287, scheme=SCHEME)
    script.begin("lessons").call("lessons", "lessons/1", LESSON).task("lessons", "lessons/1", {"title": "One"})
    script.call("lessons", "lessons/2", LESSON, error="overloaded").call("lessons", "lessons/2", None)
    script.fail("lessons", "1 of 3 lessons failed: 2")
    return script.end("failed", message="1 of 3 lessons failed: 2")


def completed_run(root: Path, day: int = 1) -> str:
    script = Script(root, at=BEGIN + timedelta(days=day), subject="physics", level="higher")
    for step in ("seed", "sow", "lessons", "publish"):
        script.begin(step).complete(step, {"step": step})
    return script.end("completed")


def dead_run(root: Path, day: int = 2) -> str:
    script = Script(root, at=BEGIN + timedelta(days=day), subject="physics", level="higher")
    return script.begin("seed").complete("seed", {}).leave()


def original_run(root: Path) -> str:
    folder = root / "20260108_161230"
    folder.mkdir(parents=True)
    (folder / "checkpoint.json").write_text(json.dumps(ORIGINAL))
    return folder.name


def corrupt_run(root: Path) -> str:
    folder = root / "20260107_161230"
    folder.mkdir(parents=True)
    (folder / "checkpoint.json").write_text('{"run_id": ')
    return folder.name


def large_run(root: Path, items: int) -> str:
    """A run of so many items, every 500th of them failed; its process is gone."""
    script = Script(root).begin("seed").complete("seed", {}).begin("sow").complete("sow", {}).begin("lessons")
    error = {"type": "TaskRejected", "message": "the reply is no JSON"}
    for number in range(1, items + 1):
        done = TaskCompleted("lessons#1", f"parts/{number}", encode_value(number), hash="0" * 16, item="0" * 16)
        script.add(done if number % 500 else TaskFailed(done.path, done.task, error), after=0.1)
    return script.leave()
