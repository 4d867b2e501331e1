"""A backend whose answer failed is asked anew by the next attempt; one that was cut off is not asked twice."""

from __future__ import annotations

from typing import Any

from pipeline import NodeOutcome, compile_graph, parse_dot, run_compiled_graph

GRAPH = 'digraph g { start [shape=Mdiamond]; a [prompt="A", max_retries=2]; end [shape=Msquare]; start -> a -> end }'


class Backend:
    """Fails so often, then is content."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked = 0

    def run(self, node: Any, prompt: str, context: Any) -> Any:
        self.asked += 1
        if self.asked <= self.failures:
            return NodeOutcome("fail", failure_reason=f"no sources {self.asked}")
        return "fine"


def test_backend_is_asked_anew_by_each_attempt() -> None:
    backend = Backend(2)
    result = run_compiled_graph(compile_graph(parse_dot(GRAPH)), services={"backend": backend})
    assert (result.status, backend.asked) == ("completed", 3)
