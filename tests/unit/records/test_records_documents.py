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

ORIGINAL: dict[str, Any] = {
    "run_id": "20260109_143022",
    "pipeline": "lessons",
    "subject": "mathematics",
    "level": "national_5",
    "course_id": "course_c84775",
    "status": "failed",
    "started_at": "2026-01-09T14:30:22Z",
    "updated_at": "2026-01-09T14:45:33Z",
    "completed_steps": [
        {
            "step": "seed",
            "status": "completed",
            "started_at": "2026-01-09T14:30:22Z",
            "completed_at": "2026-01-09T14:30:25Z",
            "duration_seconds": 3,
            "outputs": {"course_id": "course_c84775", "outcomes_created": 42},
        },
        {
            "step": "sow",
            "status": "completed",
            "started_at": "2026-01-09T14:30:25Z",
            "completed_at": "2026-01-09T14:35:12Z",
            "duration_seconds": 287,
            "outputs": {"sow_document_id": "68f1234...", "lesson_count": 18},
            "metrics": {"input_tokens": 15420, "output_tokens": 8234, "cost_usd": 1.85},
            "error": None,
        },
    ],
    "last_completed_step": "sow",
    "next_step": "lessons",
    "total_cost_usd": 1.85,
    "total_tokens": 23654,
    "error": "API rate limit exceeded",
}


def head(tape: Tape) -> dict[str, Any]:
    return head_document(tape.state, 100, NODES)


def seeded() -> Tape:
    tape = Tape(
        params={"subject": "mathematics", "level": "national_5"}, identity={"author": "model", "model": "claude"}
    )
    tape.start("seed#1", (("", ""),))
    tape.complete("seed#1", ["seed->sow"], {"course_id": "course_c84775", "outcomes_created": 42}, seconds=3)
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
    assert document["completed_steps"] == [
        {
            "step": "seed",
            "status": "completed",
            "started_at": "2026-01-09T14:30:22.000Z",
            "completed_at": "2026-01-09T14:30:22.000Z",
            "duration_seconds": 3,
            "outputs": {"course_id": "course_c84775", "outcomes_created": 42},
        }
    ]
    assert (document["course_id"], document["last_completed_step"], document["next_step"]) == (
        "course_c84775",
        "seed",
        "sow",
    )
    assert (document["author"], document["current_step"]) == ("model", None)


def test_head_counts_tokens_of_all_kinds_and_money_of_exact_charges() -> None:
    tape = seeded()
    tape.start("sow#1", [["seed->sow", "seed#1"]])
    tokens = {"input": 1, "cache_write_5m": 2, "cache_write_1h": 4, "cache_read": 8, "output": 16, "web_search": 1}
    charge = {
        "state": "exact",
        "low": "0.1234567",
        "high": "0.1234567",
        "tokens": tokens,
        "parts": {"output": "0.1234567"},
    }
    tape.reply(tape.call("sow#1", "k"), charge=charge)
    tape.call("sow#1", "k", worst="0.5")
    document = head(tape)
    metrics = document["current_step"]["metrics"]
    assert (metrics["input_tokens"], metrics["output_tokens"], metrics["cost_usd"]) == (15, 16, 0.123457)
    assert (metrics["tokens"], metrics["unpriced_calls"], metrics["possibly_spent_usd"]) == (tokens, 0, 0.5)
    assert (document["total_tokens"], document["total_cost_usd"]) == (31, 0.123457)
    assert (document["possibly_spent_usd"], document["unpriced_calls"]) == (0.5, 0)
    assert [(row["step"], row["outcome"], row["calls"]) for row in document["spend"]] == [
        ("sow", "used", 1),
        ("sow", "open", 1),
    ]
    assert document["spend"][0]["usd_by_kind"] == {"output": 0.1234567}
    assert document["spend"][1]["high"] == 0.5


def test_head_counts_calls_without_a_price_beside_the_cost() -> None:
    tape = seeded()
    tape.start("sow#1", [["seed->sow", "seed#1"]])
    tape.reply(tape.call("sow#1"), charge={"state": "unpriced", "tokens": {"output": 7}})
    tape.complete("sow#1")
    document = head(tape)
    assert document["completed_steps"][1]["metrics"]["unpriced_calls"] == 1
    assert (document["unpriced_calls"], document["total_tokens"], document["total_cost_usd"]) == (1, 7, 0)


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


def test_head_error_is_null_after_success() -> None:
    tape = seeded()
    tape.start("sow#1", [["seed->sow", "seed#1"]])
    tape.fail("sow#1")
    tape.put(kinds.RunEnded("failed", None, {"type": "StepFailed", "message": "x"}))
    tape.resume()
    assert head(tape)["error"] == "x"
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


def test_head_next_step_of_a_parallel_edge_is_its_target() -> None:
    tape = Tape()
    tape.start("a#1", (("", ""),))
    tape.complete("a#1", ["a->b#2"])
    assert head(tape)["next_step"] == "b"


def test_head_of_an_empty_graph_has_no_next_step() -> None:
    assert head_document(Tape().state, 0, ())["next_step"] is None


def test_head_names_later_visits() -> None:
    tape = Tape()
    tape.start("write#1", (("", ""),))
    tape.complete("write#1", ["write->write"])
    tape.start("write#2", [["write->write", "write#1"]])
    tape.complete("write#2")
    assert [step["step"] for step in head(tape)["completed_steps"]] == ["write", "write#2"]


def test_head_lists_steps_in_order_of_their_ends() -> None:
    tape = Tape()
    tape.start("a#1", (("", ""),))
    tape.complete("a#1", ["a->b", "a->c"])
    tape.start("b#1", [["a->b", "a#1"]])
    tape.start("c#1", [["a->c", "a#1"]])
    tape.complete("c#1")
    tape.complete("b#1")
    document = head(tape)
    assert [step["step"] for step in document["completed_steps"]] == ["a", "c", "b"]
    assert document["last_completed_step"] == "b"


def test_head_keeps_large_outputs_as_references() -> None:
    tape = Tape()
    tape.start("seed#1", (("", ""),))
    tape.complete("seed#1", [], {"$blob": "ab" * 32, "bytes": 5_000_000})
    assert head(tape)["completed_steps"][0]["outputs"] == {"$blob": "ab" * 32, "bytes": 5_000_000}
    assert head(tape)["course_id"] is None


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


def test_pipeline_state_gives_back_the_original_document() -> None:
    assert PipelineState.from_json(ORIGINAL).to_json() == ORIGINAL


def test_pipeline_state_keeps_unknown_keys() -> None:
    step = {**ORIGINAL["completed_steps"][0], "reviewer": "m"}
    document = {**ORIGINAL, "completed_steps": [step], "from_the_future": {"a": [1]}}
    state = PipelineState.from_json(document)
    assert state.to_json() == document
    assert state.completed_steps[0].extra == {"reviewer": "m"}


def test_pipeline_state_reads_its_own_head() -> None:
    document = head(seeded())
    assert PipelineState.from_json(document).to_json() == document


def test_pipeline_state_is_mutable_and_starts_pending() -> None:
    state = PipelineState("20260109_143022", subject="physics")
    state.completed_steps.append(StepState("seed", outputs={"n": 1}))
    state.total_cost_usd += 1.5
    document = state.to_json()
    assert (document["status"], document["pipeline"], document["total_cost_usd"]) == ("pending", "lessons", 1.5)
    assert document["completed_steps"] == [
        {
            "step": "seed",
            "status": "completed",
            "started_at": None,
            "completed_at": None,
            "duration_seconds": 0,
            "outputs": {"n": 1},
        }
    ]


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
    assert (state.params, state.started_at) == (
        {"subject": "mathematics", "level": "national_5"},
        ORIGINAL["started_at"],
    )
    assert state.reported == {"cost_usd": 1.85, "total_tokens": 23654}
    assert state.total.usd == 0


def test_snapshot_does_not_change_the_parameters_the_run_was_started_with() -> None:
    tape = Tape(params={"subject": "physics", "sample": 2})
    tape.put(kinds.Snapshot(ORIGINAL))
    assert tape.state.params == {"subject": "physics", "level": "national_5", "sample": 2}


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


def test_snapshot_saved_by_a_library_user_carries_its_status() -> None:
    tape = imported(ORIGINAL, "api")
    assert (head(tape)["status"], head(tape)["error"], head(tape)["status_detail"]) == (
        "failed",
        "API rate limit exceeded",
        None,
    )
    tape.put(kinds.Snapshot({**ORIGINAL, "status": "completed", "error": None, "next_step": None}, "api"))
    assert (head(tape)["status"], head(tape)["error"], head(tape)["next_step"]) == ("completed", None, None)


def test_snapshot_of_an_import_leaves_the_run_to_its_owner() -> None:
    assert (head(imported(ORIGINAL))["status"], head(imported(ORIGINAL))["error"]) == ("in_progress", None)
