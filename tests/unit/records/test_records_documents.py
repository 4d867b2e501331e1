"""checkpoint.json: the names of the original schema, and what stands beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.records import kinds
from pipeline.records.documents import LARGE_BYTES, PipelineState, StepState, head_document, large_keys
from pipeline.records.statuses import COMPLETED
from tests.tape import Tape

NODES = ("seed", "sow", "lessons", "publish")
#: The names that the original system's document has at its top level, in its order.
NAMES = (
    "run_id", "pipeline", "subject", "level", "course_id", "status", "started_at", "updated_at", "completed_steps",
    "last_completed_step", "next_step", "total_cost_usd", "total_tokens", "error",
)  # fmt: skip


def _step(name: str, begun: str, ended: str, seconds: int, outputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    times = {"started_at": begun, "completed_at": ended, "duration_seconds": seconds}
    return {"step": name, "status": "completed", **times, "outputs": outputs, **more}


SEEDED = {"course_id": "course_c84775", "outcomes_created": 42}
ORIGINAL: dict[str, Any] = {
    "run_id": "20260109_143022", "pipeline": "lessons", "subject": "mathematics", "level": "national_5",
    "course_id": "course_c84775", "status": "failed",
    "started_at": "2026-01-09T14:30:22Z", "updated_at": "2026-01-09T14:45:33Z",
    "completed_steps": [
        _step("seed", "2026-01-09T14:30:22Z", "2026-01-09T14:30:25Z", 3, SEEDED),
        _step(
            "sow", "2026-01-09T14:30:25Z", "2026-01-09T14:35:12Z", 287,
            {"sow_document_id": "68f1234...", "lesson_count": 18},
            metrics={"input_tokens": 15420, "output_tokens": 8234, "cost_usd": 1.85}, error=None,
        ),
    ],
    "last_completed_step": "sow", "next_step": "lessons", "total_cost_usd": 1.85, "total_tokens": 23654,
    "error": "API rate limit exceeded",
}  # fmt: skip


def head(tape: Tape) -> dict[str, Any]:
    return head_document(tape.state, 100, NODES)


def seeded() -> Tape:
    tape = Tape(
        params={"subject": "mathematics", "level": "national_5"}, identity={"author": "model", "model": "claude"}
    )
    tape.start("seed#1", (("", ""),))
    tape.complete("seed#1", ["seed->sow"], SEEDED, seconds=3)
    return tape


def test_head_has_the_original_names_first_and_in_order() -> None:
    document = head(Tape(params={"subject": "physics", "level": "higher"}))
    assert tuple(document)[: len(NAMES)] == NAMES
    assert (document["subject"], document["level"], document["course_id"]) == ("physics", "higher", None)
    assert (document["completed_steps"], document["last_completed_step"], document["next_step"]) == ([], None, "seed")
    assert (document["status"], document["status_detail"], document["error"]) == ("in_progress", "running", None)
    assert (document["seq"], document["journal_bytes"], document["nodes"]) == (1, 100, list(NODES))
    assert json.loads(json.dumps(document)) == document


def test_head_shows_completed_steps_and_what_comes_next() -> None:
    document = head(seeded())
    when = "2026-01-09T14:30:22.000Z"
    assert document["completed_steps"] == [_step("seed", when, when, 3, SEEDED)]
    assert (document["course_id"], document["author"], document["current_step"]) == ("course_c84775", "model", None)
    assert (document["last_completed_step"], document["next_step"]) == ("seed", "sow")
    assert PipelineState.from_json(document).to_json() == document


def test_head_counts_tokens_of_all_kinds_and_money_of_exact_charges() -> None:
    tape = seeded()
    tape.start("sow#1", [["seed->sow", "seed#1"]])
    tokens = {"input": 1, "cache_write_5m": 2, "cache_write_1h": 4, "cache_read": 8, "output": 16, "web_search": 1}
    usd = "0.1234567"
    charge = {"state": "exact", "low": usd, "high": usd, "tokens": tokens, "parts": {"output": usd}}
    tape.reply(tape.call("sow#1", "k"), charge=charge)
    tape.call("sow#1", "k", worst="0.5")
    document = head(tape)
    metrics = document["current_step"]["metrics"]
    assert (metrics["input_tokens"], metrics["output_tokens"], metrics["cost_usd"]) == (15, 16, 0.123457)
    assert (metrics["tokens"], metrics["unpriced_calls"], metrics["possibly_spent_usd"]) == (tokens, 0, 0.5)
    assert (document["total_tokens"], document["total_cost_usd"]) == (31, 0.123457)
    assert (document["possibly_spent_usd"], document["unpriced_calls"]) == (0.5, 0)
    used, running = document["spend"]
    assert [(row["step"], row["outcome"], row["calls"]) for row in (used, running)] == [
        ("sow", "used", 1), ("sow", "open", 1),
    ]  # fmt: skip
    assert (used["usd_by_kind"], running["high"]) == ({"output": 0.1234567}, 0.5)
    tape.reply(tape.call("sow#1"), charge={"state": "unpriced", "tokens": {"output": 7}})
    tape.complete("sow#1")
    document = head(tape)
    assert document["completed_steps"][1]["metrics"]["unpriced_calls"] == 1
    assert (document["unpriced_calls"], document["total_tokens"], document["total_cost_usd"]) == (1, 38, 0.123457)


def test_head_keeps_a_running_or_failed_step_out_of_the_completed_ones() -> None:
    tape = seeded()
    tape.start("sow#1", [["seed->sow", "seed#1"]])
    document = head(tape)
    assert (document["current_step"]["step"], document["current_step"]["status"]) == ("sow", "in_progress")
    assert (document["current_step"]["completed_at"], document["next_step"]) == (None, "sow")
    tape.fail("sow#1", message="too short")
    tape.put(kinds.RunEnded("failed", None, {"type": "StepFailed", "message": "sow: too short"}))
    document = head(tape)
    assert (document["current_step"]["status"], document["current_step"]["error"]) == ("failed", "too short")
    assert [step["step"] for step in document["completed_steps"]] == ["seed"]
    assert (document["error"], document["status"], document["status_detail"]) == ("sow: too short", "failed", None)
    assert (document["last_completed_step"], document["next_step"]) == ("seed", "sow")
    tape.resume()
    assert head(tape)["error"] == "sow: too short"
    tape.start("sow#1", [["seed->sow", "seed#1"]], attempt=2)
    tape.complete("sow#1", attempt=2)
    assert head(tape)["error"] is None
    assert "error" not in head(tape)["completed_steps"][1]


def test_head_of_a_completed_run_has_no_next_step_and_shows_what_was_skipped() -> None:
    tape = seeded()
    tape.put(kinds.RunEnded("completed"))
    document = head(tape)
    assert document["next_step"] is None
    assert [(step["step"], step["status"]) for step in document["completed_steps"]] == [
        ("seed", "completed"),
        ("sow", "skipped"),
        ("lessons", "skipped"),
        ("publish", "skipped"),
    ]


def test_head_lists_steps_in_order_of_their_ends() -> None:
    tape = Tape()
    tape.start("a#1", (("", ""),))
    tape.complete("a#1", ["a->b", "a->c"])
    tape.start("b#1", [["a->b", "a#1"]])
    tape.start("c#1", [["a->c", "a#1"]])
    tape.complete("c#1")
    tape.complete("b#1", ["b->d#2"], {"$blob": "ab" * 32, "bytes": 5_000_000})
    document = head(tape)
    assert [step["step"] for step in document["completed_steps"]] == ["a", "c", "b"]
    assert (document["last_completed_step"], document["next_step"], document["course_id"]) == ("b", "d", None)
    assert document["completed_steps"][2]["outputs"] == {"$blob": "ab" * 32, "bytes": 5_000_000}


def test_head_of_a_course_of_eighteen_lessons_is_small() -> None:
    tape = seeded()
    tape.start("sow#1", [["seed->sow", "seed#1"]])
    tape.complete("sow#1", ["sow->lessons"])
    tape.start("lessons#1", [["sow->lessons", "sow#1"]])
    for number in range(18):
        for label in ("lesson", "critic", "lesson"):
            tape.reply(tape.call("lessons#1", f"lesson/{number}", label=label))
        tape.done("lessons#1", f"lesson/{number}", {"$blob": "0" * 64, "bytes": 40_000})
    assert len(json.dumps(head(tape), indent=2)) < 100_000


def test_large_keys_names_the_largest_parts_of_a_large_document() -> None:
    tape = Tape()
    tape.start("seed#1", (("", ""),))
    tape.complete("seed#1", [], {"small": 1, "text": "x" * LARGE_BYTES})
    document = head_document(tape.state, LARGE_BYTES, NODES)
    assert large_keys(document) == ["seed.outputs.text (500 kB)"]
    assert large_keys(head(seeded())) == []
    assert large_keys(head_document(seeded().state, LARGE_BYTES, NODES)) == []


def test_pipeline_state_gives_back_the_document_and_keys_it_does_not_know() -> None:
    assert PipelineState.from_json(ORIGINAL).to_json() == ORIGINAL
    step = {**ORIGINAL["completed_steps"][0], "reviewer": "m"}
    document = {**ORIGINAL, "completed_steps": [step], "from_the_future": {"a": [1]}}
    state = PipelineState.from_json(document)
    assert state.to_json() == document
    assert state.completed_steps[0].extra == {"reviewer": "m"}
    state = PipelineState("20260109_143022", subject="physics")
    state.completed_steps.append(StepState("seed", outputs={"n": 1}))
    state.total_cost_usd += 1.5
    made = state.to_json()
    assert (made["status"], made["pipeline"], made["total_cost_usd"]) == ("pending", "lessons", 1.5)
    (row,) = made["completed_steps"]
    assert (row["step"], row["status"], row["started_at"], row["outputs"]) == ("seed", "completed", None, {"n": 1})


def imported(document: dict[str, Any], source: str = "import") -> Tape:
    tape = Tape(params={})
    tape.put(kinds.Snapshot(document, source))
    return tape


def test_snapshot_stands_behind_the_documents_last_step() -> None:
    tape = imported(ORIGINAL)
    state = tape.state
    assert [(token.edge, token.source) for token in state.tokens] == [("sow->lessons", "sow#1")]
    assert {path: step.status for path, step in state.steps.items()} == {"seed#1": COMPLETED, "sow#1": COMPLETED}
    assert state.steps["sow#1"].consumed == (("seed->sow", "seed#1"),)
    assert state.steps["sow#1"].outputs == {"sow_document_id": "68f1234...", "lesson_count": 18}
    assert state.params == {"subject": "mathematics", "level": "national_5"}
    assert state.started_at == ORIGINAL["started_at"]
    assert state.reported == {"cost_usd": 1.85, "total_tokens": 23654}
    assert state.total.usd == 0
    assert (head(tape)["status"], head(tape)["error"]) == ("in_progress", None), "its owner says how it stands"
    tape = Tape(params={"subject": "physics", "sample": 2})
    tape.put(kinds.Snapshot(ORIGINAL))
    assert tape.state.params == {"subject": "physics", "level": "national_5", "sample": 2}


def test_snapshot_saved_by_a_library_user_carries_its_status() -> None:
    tape = imported(ORIGINAL, "api")
    document = head(tape)
    assert (document["status"], document["status_detail"]) == ("failed", None)
    assert document["error"] == "API rate limit exceeded"
    tape.put(kinds.Snapshot({**ORIGINAL, "status": "completed", "error": None, "next_step": None}, "api"))
    assert (head(tape)["status"], head(tape)["error"], head(tape)["next_step"]) == ("completed", None, None)


def test_snapshot_head_shows_the_imported_cost_and_steps_as_they_came() -> None:
    tape = imported({**ORIGINAL, "from_the_future": 7})
    tape.start("lessons#1", [["sow->lessons", "sow#1"]])
    tape.reply(tape.call("lessons#1"), "0.25")
    document = head(tape)
    assert document["completed_steps"] == ORIGINAL["completed_steps"]
    assert (document["last_completed_step"], document["next_step"]) == ("sow", "lessons")
    assert (document["total_cost_usd"], document["imported_cost"], document["total_tokens"]) == (2.1, 1.85, 23669)
    assert (document["course_id"], document["from_the_future"]) == ("course_c84775", 7)


def test_snapshot_step_that_is_made_again_shows_its_new_self() -> None:
    tape = imported(ORIGINAL)
    tape.put(kinds.Invalidated("missing", ["sow#1"]))
    assert [(token.edge, token.source) for token in tape.state.tokens] == [("seed->sow", "seed#1")]
    tape.start("sow#1", [["seed->sow", "seed#1"]], attempt=2)
    tape.complete("sow#1", ["sow->lessons"], {"lesson_count": 20}, attempt=2)
    assert head(tape)["completed_steps"][1]["outputs"] == {"lesson_count": 20}


@pytest.mark.parametrize(
    ("change", "tokens"),
    [
        ({"completed_steps": [], "next_step": "seed"}, [("", "")]),
        ({"status": "completed", "next_step": None}, []),
    ],
)
def test_snapshot_position_follows_the_document(change: dict[str, Any], tokens: list[tuple[str, str]]) -> None:
    tape = imported({**ORIGINAL, **change})
    assert [(token.edge, token.source) for token in tape.state.tokens] == tokens


def test_snapshot_of_an_own_document_finds_later_visits_again() -> None:
    tape = Tape()
    tape.start("write#1", (("", ""),))
    tape.complete("write#1", ["write->write"])
    tape.start("write#2", [["write->write", "write#1"]])
    tape.complete("write#2", ["write->write"])
    tape.start("write#3", [["write->write", "write#2"]])
    document = head(tape)
    assert document["next_step"] == "write#3"
    state = imported(document).state
    assert list(state.steps) == ["write#1", "write#2"]
    assert [(token.edge, token.source) for token in state.tokens] == [("write->write", "write#2")]
    assert [step["step"] for step in head(imported(document))["completed_steps"]] == ["write", "write#2"]
