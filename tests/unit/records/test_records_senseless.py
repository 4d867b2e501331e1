"""Whole lines that say what no program of ours wrote: never an error, never money lost, always said."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from pipeline.records import kinds
from pipeline.records.codec import decode_line, encode_fact
from pipeline.records.documents import head_document
from pipeline.records.fold import fold, spent
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled, RunStarted, StepStarted, TaskCompleted
from pipeline.records.lines import encode_line
from pipeline.records.run import RunState
from pipeline.records.snapshots import document_shape
from pipeline.records.values import encode_value
from tests.tape import AT

CHARGE = {"state": "exact", "low": "0.25", "high": "0.25", "tokens": {"input": 9}, "parts": {"input": "0.25"}}
FACTS = (
    RunStarted("p", {"n": 1}, {"model": "m"}, {}, pins={"graph": "ab"}, claim=["p", "s", "l", "model"]),
    StepStarted("a#1", consumed=[["", ""]]),
    CallStarted("a#1", "key", "m", "blob", task="t", worst="0.5"),
    CallEnded(3, encode_value({"text": "x"}), CHARGE, stop_reason="end_turn"),
    TaskCompleted("a#1", "t", b"1", item="i", hash="h", reads={"params.n": "x"}),
    kinds.StepCompleted("a#1", {"x": 1}, "c" * 32, edges=["a->b"], artifacts={"s": "h"}, seconds=1.5),
    kinds.TaskFailed("b#1", "t", {"type": "X", "message": "no"}),
    kinds.StepFailed("b#1", {"type": "X", "message": "no"}, "d" * 32, seconds=0.5),
    ChargeSettled(3, "0.30"),
    kinds.Invalidated("redo", paths=["a#1"], tasks=[["a#1", "t"]]),
    kinds.Gap(11, 12, 4, "journal.damaged-1", "torn"),
    kinds.RunResumed({}, identity={"model": "n"}, pins={"graph": "cd"}),
    kinds.Snapshot({"status": "in_progress", "completed_steps": [{"step": "a", "outputs": {"x": 1}}]}),
    kinds.RunEnded("failed", None, {"type": "X", "message": "no"}),
)
BODIES = [json.loads(encode_fact(fact)) for fact in FACTS]
JUNK: tuple[Any, ...] = (None, "x", "-1", "NaN", "1e999999", -1, 1.5, True, [], {}, [[]], [3], {"a": 1}, "#", "#" * 9)


def wrong(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The body with each field, and each value in it, replaced by junk or left out."""
    for name in body:
        for junk in JUNK:
            yield {**body, name: junk}
        yield {key: value for key, value in body.items() if key != name}
        for inner in body[name] if isinstance(body[name], dict) else ():
            for junk in JUNK:
                spoilt = copy.deepcopy(body)
                spoilt[name][inner] = junk
                yield spoilt


def state_of(*bodies: dict[str, Any]) -> RunState:
    texts = (json.dumps(body, separators=(",", ":")).encode() for body in bodies)
    lines = [encode_line(seq, AT, 1, text) for seq, text in enumerate(texts, 1)]
    return fold("r", map(decode_line, lines))


@pytest.mark.parametrize("place", range(len(BODIES)), ids=[body["kind"] for body in BODIES])
def test_record_with_junk_in_any_field_is_taken_or_said_and_the_head_can_still_be_written(place: int) -> None:
    for body in wrong(BODIES[place]):
        if not isinstance(body.get("kind"), str):
            continue
        state = state_of(*BODIES[:place], body, *BODIES[place + 1 :])
        assert json.dumps(head_document(state, 0, ["a", "b"]), allow_nan=False)
        assert spent(state).usd >= 0
        assert spent(state).high >= 0


@pytest.mark.parametrize(
    "charge",
    [
        {},
        {"low": "1"},
        {"state": "free"},
        *(
            {"state": "exact", name: junk}
            for name, junk in (("low", "NaN"), ("low", "-4"), ("low", "much"), ("tokens", 3), ("parts", []))
        ),
    ],
)
def test_charge_that_makes_no_sense_is_unpriced(charge: dict[str, Any]) -> None:
    total = spent(state_of(*BODIES[:3], {**BODIES[3], "charge": charge}))
    assert (total.calls, total.unpriced, total.usd) == (1, 1, Decimal(0))


def test_call_whose_end_makes_no_sense_stays_open_at_its_worst_case() -> None:
    state = state_of(*BODIES[:3], {"usable": "perhaps", **BODIES[3]})
    assert spent(state).high == Decimal("0.5")
    assert [gap["reason"] for gap in state.gaps] == ["a call_ended that is inconsistent"]


def test_worst_case_that_makes_no_sense_is_no_bound() -> None:
    assert spent(state_of(*BODIES[:2], {**BODIES[2], "worst": "NaN"})).unbounded == 1


def test_attempt_whose_end_is_lost_is_wasted_when_a_later_one_is_closed() -> None:
    later = {**BODIES[6], "path": "a#1", "attempt": 2}
    state = state_of(*BODIES[:4], later)
    assert [(key.outcome, spend.usd) for key, spend in state.spend.items()] == [("wasted", Decimal("0.25"))]


DOCUMENT = {
    "status": "in_progress", "started_at": "2026-01-09T14:30:22Z", "total_cost_usd": 1.85, "nodes": ["seed", "sow"],
    "current_step": {"step": "sow", "metrics": {"cost_usd": 0.5}},
    "completed_steps": [{"step": "seed", "duration_seconds": 3, "artifacts": {"a": "h"}, "metrics": {"cost_usd": 1}}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "junk", "named"),
    [
        (("started_at",), 5, "started_at is not text"),
        (("total_cost_usd",), "much", "total_cost_usd"),
        (("total_cost_usd",), -1, "total_cost_usd"),
        (("total_cost_usd",), 10**400, "total_cost_usd"),
        (("unpriced_calls",), [1], "unpriced_calls"),
        (("nodes",), [3], "nodes"),
        (("completed_steps",), {"a": 1}, "completed_steps"),
        (("completed_steps", 0), "seed", "completed_steps[0]"),
        (("completed_steps", 0, "step"), "#", "at no node"),
        (("completed_steps", 0, "duration_seconds"), 10**400, "duration_seconds"),
        (("completed_steps", 0, "metrics"), 4, "metrics"),
        (("completed_steps", 0, "metrics", "cost_usd"), "x", "cost_usd"),
        (("completed_steps", 0, "artifacts", "a"), None, "artifacts"),
        (("current_step", "metrics"), "x", "current_step"),
    ],
)
def test_document_of_the_wrong_shape_is_refused_naming_the_field(place: Any, junk: Any, named: str) -> None:
    document: Any = copy.deepcopy(DOCUMENT)
    assert document_shape(document) == ""
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = junk
    assert named in document_shape(document)
