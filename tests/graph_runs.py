"""Graph runs for the cases of checkpoints: small pipelines that note what ran, and documents of another system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline import GraphCheckpoint, Outcome, Pipeline, StepContext, step
from pipeline.engine.step import StepSpec

Document = dict[str, Any]


def document(id: str = "cp-1", run: str = "their-run", graph: str = "theirs", node: str = "a", **more: Any) -> Document:
    """A document as its own system writes it, with keys that ours does not know."""
    return {
        "id": id, "graphId": graph, "runId": run, "nodeId": node, "timestamp": 1767969022000,
        "state": {
            "input": {"topic": "tides", "big": 2**70}, "scratch": {"step": 1, "kept": ["é", None]},
            "artifacts": {}, "diagnostics": {"totalTokensUsed": 12, "theirs": True},
        },
        "nodeResults": {node: {"effectClass": "external", "output": {"n": 1.5}, "durationMs": 12, "theirs": []}},
        "visitedNodes": [node], "pendingEdges": [f"{node}->b"], "theirs": {"deep": [1, {"x": None}]}, **more,
    }  # fmt: skip


def found(checkpoint: GraphCheckpoint | None) -> GraphCheckpoint:
    """The checkpoint that is there."""
    assert checkpoint is not None
    return checkpoint


class Noted:
    """Steps that note that they ran; `bad` fail, `act` does more."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.bad: set[str] = set()
        self.act: Mapping[str, Callable[[StepContext], Any]] = {}

    def step(self, name: str, effect: str = "read") -> StepSpec:
        def body(ctx: StepContext) -> Any:
            self.ran.append(name)
            if name in self.bad:
                raise ValueError(f"{name} cannot")
            return self.act[name](ctx) if name in self.act else Outcome({"made": name}, context={name: name.upper()})

        return step(name, effect=effect)(body)

    def chain(self, names: str = "abc", pipeline: str = "letters") -> Pipeline:
        return Pipeline(pipeline, [self.step(name) for name in names])


def loop(noted: Noted, times: int) -> Pipeline:
    """x again and again, `times` visits in all, then end."""
    noted.act = {**noted.act, "x": noted.act.get("x") or (lambda ctx: Outcome({}, _more(ctx.visit, times)))}
    return Pipeline("loop", [noted.step("x"), noted.step("end")], edges=[("x", "x", "more"), ("x", "end", "enough")])


def _more(visit: int, times: int) -> str:
    return "more" if visit < times else "enough"
