"""However a go at a run ends, it leaves the run free, and says what happened."""

from __future__ import annotations

import pytest

from pipeline.engine import loop
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.llm.base import Reply, Request
from pipeline.llm.script import ScriptedModel
from pipeline.records.kinds import CallEnded, StepFailed
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from tests.unit.engine.saying import ask, facts


def test_resume_of_a_completed_run_leaves_it_free(store: MemoryStore) -> None:
    pipeline = Pipeline("once", [step("only")(lambda ctx: {"n": 1})])
    run = pipeline.run(store=store).run_id
    for _ in range(2):
        assert pipeline.resume(run, store=store).status == "completed"
    assert [head.owned for head in store.heads()] == [False]


def test_fault_of_the_program_is_raised_and_leaves_the_run_free_to_go_on(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = Pipeline("odd", [step("a")(lambda ctx: {"n": 1}), step("b")(lambda ctx: {"n": 2})])
    with monkeypatch.context() as patch:
        patch.setattr(loop.Loop, "_place", lambda self, node: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            pipeline.run(store=store, listener=lambda event: None)
    (head,) = store.heads()
    assert (head.owned, head.document["status_detail"]) == (False, "interrupted")
    assert pipeline.resume(head.run_id, store=store).outputs == {"a": {"n": 1}, "b": {"n": 2}}


def test_error_of_a_failed_step_is_gone_once_it_has_succeeded(store: MemoryStore) -> None:
    broken = [True]

    @step()
    def go(ctx: StepContext) -> dict[str, int]:
        if broken.pop() if broken else False:
            raise RuntimeError("no luck")
        return {"n": 1}

    pipeline = Pipeline("luck", [go])
    run = pipeline.run(store=store).run_id
    assert "no luck" in str(load(store, run).error)
    pipeline.resume(run, store=store)
    assert load(store, run).error is None
    assert any("no luck" in str(fact.error) for fact in facts(store, run, StepFailed)), "kept in the records"


def test_reply_that_is_no_json_is_recorded_without_what_is_none(store: MemoryStore) -> None:
    def odd(request: Request) -> Reply:
        return Reply("text", "end_turn", {"tokens": float("nan")}, extra={"raw": b"bytes"})

    pipeline = Pipeline("odd", [step("go")(lambda ctx: {"v": ctx.ask(ask("x")).text})])
    result = pipeline.run(store=store, model=ScriptedModel(odd))
    assert result.outputs["go"] == {"v": "text"}
    (end,) = facts(store, result.run_id, CallEnded)
    assert b"left_out" in end.reply
