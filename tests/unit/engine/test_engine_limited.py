"""Whole runs against a provider that lets so many calls pass a minute: they end, and are hardly ever refused."""

from __future__ import annotations

import pytest

from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext, step
from pipeline.errors import ModelUnavailable
from pipeline.llm.base import Message, ModelInfo, Reply, Request
from pipeline.llm.faults import limits
from pipeline.store.memory import MemoryStore
from pipeline.testing import FakeClock
from tests.servers.rate_limits import RateLimits

CALLS = 400


class Limited:
    """A model behind rate limits that answers at once."""

    def __init__(self, clock: FakeClock, *, requests: int, told: bool) -> None:
        self.limits = RateLimits(requests=requests, clock=clock)
        self._told = told

    def check(self) -> ModelInfo:
        return ModelInfo("limited", paid=False)

    def complete(self, request: Request) -> Reply:
        answer = self.limits.take(1)
        said = limits(answer.headers) if self._told else {}
        if answer.let_in:
            return Reply("yes", "end_turn", limits=said)
        raise ModelUnavailable(
            "The provider limits the rate (429)",
            billed="no", status=429, retry_after=float(answer.headers["retry-after"]), limits=said,
        )  # fmt: skip

    def close(self) -> None:
        return


@pytest.mark.parametrize("concurrency", ["auto", 32, 1])
@pytest.mark.parametrize("told", [True, False])
def test_limited_run_ends_and_is_hardly_ever_refused(concurrency: int | str, told: bool) -> None:
    clock = FakeClock()
    model = Limited(clock, requests=60, told=told)

    @step("calls")
    def body(ctx: StepContext) -> dict[str, int]:
        def ask(task: StepContext, number: int) -> str:
            return task.ask(Request("limited", [Message("user", str(number))], max_tokens=100)).text

        return {"answered": len(ctx.map("call", range(CALLS), ask, key=str))}

    result = Pipeline("limited", [body]).run(
        store=MemoryStore(clock), model=model, clock=clock, options={"concurrency": concurrency}
    )
    assert result.error is None
    assert sum(let_in for _, let_in in model.limits.log) == CALLS
    if told:
        later = [let_in for at, let_in in model.limits.log if at >= 60]
        assert later.count(False) <= 0.02 * len(later)
    # No limit is passed, and little of it is left unused.
    assert clock.monotonic() <= (CALLS - 60) * 60 / 60 * 1.1 + 5
