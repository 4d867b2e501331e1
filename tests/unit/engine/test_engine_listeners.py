"""Who watches a run never changes it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pipeline.engine.events import Event
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.llm.script import ScriptedModel
from pipeline.store.memory import MemoryStore
from tests.unit.engine.saying import ask


def test_listener_that_fails_costs_no_paid_work_and_is_told_nothing_more(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def broken(event: Event) -> None:
        told.append(event.type)
        if event.type == "call_ended":
            raise ValueError("a fault of the display")

    @step()
    def go(ctx: StepContext) -> dict[str, Any]:
        return {"texts": list(ctx.map("item", [1, 2], lambda c, i: c.ask(ask(str(i))).text, key=str))}

    model = ScriptedModel(lambda request: "fine")
    result = Pipeline("told", [go]).run(store=store, model=model, listener=broken, options={"concurrency": 1})
    assert (result.status, model.calls) == ("completed", 2)
    assert told[-1] == "call_ended"
    assert "a fault of the display" in caplog.text
    assert caplog.records[0].levelno == logging.ERROR


@pytest.mark.parametrize("kind", ["run_started", "task_completed", "step_completed"])
def test_listener_whose_reader_went_away_is_dropped_in_silence(
    store: MemoryStore, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    def broken(event: Event) -> None:
        if event.type == kind:
            raise BrokenPipeError

    @step()
    def go(ctx: StepContext) -> dict[str, Any]:
        return {"v": list(ctx.map("item", [1, 2], lambda c, i: i, key=str))}

    assert Pipeline("told", [go]).run(store=store, listener=broken).status == "completed"
    assert not caplog.records
