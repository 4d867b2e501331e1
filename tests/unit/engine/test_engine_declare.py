"""A person's word that a cut-off step is done: recorded as its completion, its edges chosen as always."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline import Pipeline, StepContext, step
from pipeline.clock import SystemClock
from pipeline.engine.amendment import amend, declared_done
from pipeline.errors import ConfigError
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load


def cut_off(store: MemoryStore) -> tuple[Pipeline, str]:
    """A run whose step "send" was cut off in the middle."""

    def die(ctx: StepContext) -> Any:
        raise KeyboardInterrupt

    def pipeline(body: Any) -> Pipeline:
        return Pipeline("mail", [
            step("write")(lambda ctx: {}), step("send", effect="external")(body),
            step("note")(lambda ctx: {"id": ctx.outputs["send"]["id"]}),
        ])  # fmt: skip

    run = pipeline(die).run(store=store).run_id
    return pipeline(lambda ctx: pytest.fail("it acted again")), run


def test_declared_done_it_is_not_repeated_and_what_follows_sees_its_outputs(store: MemoryStore) -> None:
    what, run = cut_off(store)
    clock = SystemClock()
    amend(store, run, clock, lambda state: [declared_done(what.definition, state, "send", {"id": 7}, clock)])
    result = what.resume(run, store=store)
    assert (result.status, result.outputs["note"]) == ("completed", {"id": 7})
    assert load(store, run).steps["send#1"].reason == "declared done"


def test_only_a_step_without_an_end_can_be_declared_done(store: MemoryStore) -> None:
    what, run = cut_off(store)
    with pytest.raises(ConfigError, match="write is not an interrupted step") as caught:
        declared_done(what.definition, load(store, run), "write", {}, SystemClock())
    assert "send" in caught.value.hint
