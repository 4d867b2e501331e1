"""Journals written by hand: a tape of records with its fold, and a walk that drives a graph over one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.graph.model import FAILURES, Graph, choose
from pipeline.graph.readiness import Activation, Frontier
from pipeline.records import kinds
from pipeline.records.codec import Record
from pipeline.records.fold import Builder
from pipeline.records.run import RunState
from pipeline.records.values import encode_value

AT = "2026-01-09T14:30:22.000Z"


class Tape:
    """Facts appended one by one, as an owner would."""

    def __init__(self, *, params: Mapping[str, Any] | None = None, identity: Mapping[str, Any] | None = None) -> None:
        self.records: list[Record] = []
        self.builder = Builder("20260109_143022")
        self.owner = 1
        self.at = AT
        self.put(kinds.RunStarted("lessons", params or {}, identity or {}, {}))

    @property
    def state(self) -> RunState:
        return self.builder.state

    def put(self, fact: kinds.Fact, owner: int | None = None) -> int:
        """Append a fact; its seq."""
        seq = len(self.records) + 1
        if isinstance(fact, kinds.RunResumed):
            self.owner = seq
        record = Record(seq, self.at, self.owner if owner is None else owner, fact)
        self.records.append(record)
        self.builder.apply(record)
        return seq

    def resume(self, **changes: Any) -> int:
        return self.put(kinds.RunResumed(changes.pop("execution", {}), **changes))

    def start(self, path: str, consumed: Sequence[Sequence[str]] = (), **more: Any) -> int:
        return self.put(kinds.StepStarted(path, consumed, **more))

    def complete(
        self, path: str, edges: Sequence[str] = (), outputs: Mapping[str, Any] | None = None, **more: Any
    ) -> int:
        return self.put(kinds.StepCompleted(path, outputs or {}, f"{len(self.records):032x}", edges, **more))

    def fail(self, path: str, edges: Sequence[str] = (), message: str = "no luck", **more: Any) -> int:
        error = {"type": "StepFailed", "message": message}
        return self.put(kinds.StepFailed(path, error, f"{len(self.records):032x}", edges, **more))

    def call(self, path: str, task: str | None = None, **more: Any) -> int:
        """A call leaves, with a worst case of $1; its seq."""
        return self.put(kinds.CallStarted(path, "key", "claude", "0" * 64, task=task, **{"worst": "1", **more}))

    def reply(self, call: int, usd: str = "0.25", stop: str = "end_turn", **more: Any) -> int:
        """It comes back, at an exact price."""
        charge = {"state": "exact", "low": usd, "high": usd, "tokens": {"input": 10, "output": 5}}
        fact = {"reply": b'{"text":"hello"}', "charge": charge, "stop_reason": stop, **more}
        return self.put(kinds.CallEnded(call, **fact))

    def done(self, path: str, task: str, value: Any = 1, **more: Any) -> int:
        return self.put(kinds.TaskCompleted(path, task, encode_value(value), **more))

    def failed(self, path: str, task: str, cause: str = "content", **more: Any) -> int:
        return self.put(kinds.TaskFailed(path, task, {"type": "TaskRejected", "message": "bad"}, cause, **more))


class Walk:
    """Runs a graph to where it stops: every node ends as `outcome` says, in order of readiness."""

    def __init__(self, graph: Graph, outcome: Callable[[Activation], str] = lambda _: "success") -> None:
        self.graph = graph
        self.tape = Tape()
        self.frontier = Frontier(graph, self.tape.state)
        self.outcome = outcome
        #: Paths in the order in which they ran.
        self.ran: list[str] = []

    def offered(self, *, idle: bool = False) -> list[Activation]:
        """What may start now."""
        return self.frontier.ready(idle=idle)

    def begin(self, activation: Activation) -> None:
        self.tape.start(activation.path, activation.consumed, attempt=activation.attempt)
        self.ran.append(activation.path)

    def end(self, activation: Activation) -> None:
        outcome = self.outcome(activation)
        edges = [edge.id for edge in choose(self.graph, activation.node, outcome)]
        if outcome in FAILURES:
            self.tape.fail(activation.path, edges, attempt=activation.attempt)
        else:
            self.tape.complete(activation.path, edges, outcome=outcome, attempt=activation.attempt)

    def run(self, limit: int = 1000) -> list[str]:
        """Run until nothing is ready; the paths that ran."""
        for _ in range(limit):
            found = self.offered() or self.offered(idle=True)
            if not found:
                return self.ran
            for activation in found:
                self.begin(activation)
            for activation in found:
                self.end(activation)
        raise AssertionError(f"still running after {limit} rounds: {self.ran[-5:]}")

    def resume(self) -> None:
        """A new process takes the run: all it has is the fold."""
        self.tape.resume()
        self.frontier = Frontier(self.graph, self.tape.state)
