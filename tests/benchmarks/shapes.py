"""Speed of layered runs and DOT graphs: the timings of the acceptance cases, and graphs of a thousand nodes.

    python tests/benchmarks/shapes.py [NAME ...]

Prints one line a figure, as bench.py does. Cases 39, 46, 47, 51, 52 of the checkpoint systems are measured here.
"""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[2])

from pipeline import ControlledExecutor, LayerCheckpoints, WorkflowState, compile_graph, parse_dot  # noqa: E402
from pipeline.clock import SystemClock  # noqa: E402
from pipeline.dot.rules import check  # noqa: E402
from pipeline.formats.attractor.library import run_compiled_graph  # noqa: E402
from pipeline.store.files import FileStore  # noqa: E402
from pipeline.store.memory import MemoryStore  # noqa: E402
from tests.benchmarks.measure import best, folder, say  # noqa: E402
from tests.layered import chain, dag  # noqa: E402

CLOCK = SystemClock()


def state_of(tasks: int, size: int) -> WorkflowState:
    """A state of so many completed tasks, each with an output of `size` characters."""
    rows = [
        {
            "taskId": f"t{n}",
            "status": "success",
            "result": "x" * size,
            "timestamp": "2026-01-09T14:30:22Z",
            "duration": 1,
        }
        for n in range(tasks)
    ]
    return WorkflowState("bench").updated(tasks=rows)


def saves() -> None:
    """Case 46: saving 1,000 tasks; case 39: with a pruning at each save; case 51: fifty saves of a run of 100 s."""
    for size, goal in ((200, 0.05), (2000, 0.05)):
        with folder() as home:
            kept = LayerCheckpoints(FileStore(home, CLOCK))
            state, plan, times = state_of(1000, size), dag(*(f"t{n}:" for n in range(1000))), []
            for layer in range(40):
                begun = time.perf_counter()
                kept.save_checkpoint(state, plan, layer)
                times.append(time.perf_counter() - begun)
            say(f"case 46: save of 1,000 tasks of {size} B, P95", statistics.quantiles(times, n=20)[18], goal, "s")
    with folder() as home:
        plain = LayerCheckpoints(FileStore(home / "a", CLOCK))
        pruned = LayerCheckpoints(FileStore(home / "b", CLOCK), auto_prune=True)
        state, plan = state_of(30, 1000), chain(10)
        took = {"plain": 0.0, "pruned": 0.0}
        for name, kept in (("plain", plain), ("pruned", pruned)):
            begun = time.perf_counter()
            for layer in range(50):
                kept.save_checkpoint(state, plan, layer)
            took[name] = time.perf_counter() - begun
        say("case 39: saves with pruning / without", took["pruned"] / took["plain"], 1.5, "x")
        say("case 51: fifty saves, of 100 s", took["plain"] / 100, 0.02, "x")
        begun = time.perf_counter()
        plain.prune_old_checkpoints("bench", 5)
        say("case 51: one prune", time.perf_counter() - begun, 0.05, "s")


def resume() -> None:
    """Case 47: from resuming an executed run of 1,000 finished tasks to its first new task."""
    with folder() as home:
        rows = dag(*(f"t{n}:" for n in range(1000)), "last: " + " ".join(f"t{n}" for n in range(1000)))
        begun: list[float] = []
        fails = [True]

        def work(call: Any) -> Any:
            if call["name"] == "last":
                begun.append(time.perf_counter())
                if fails.pop() if fails else False:
                    raise ValueError("not yet")
            return "x" * 200

        first = ControlledExecutor(rows, {"work": work}, store=FileStore(home, CLOCK))
        run = first.execute()
        begun.clear()
        started = time.perf_counter()
        ControlledExecutor(None, {"work": work}, store=FileStore(home, CLOCK)).resume_from_checkpoint(run.workflow_id)
        say("case 47: resume of 1,000 tasks to the first new one", begun[0] - started, 0.1, "s")


def parallel() -> None:
    """Case 52: five tasks of 50 ms beside each other, with checkpoints, against 50 ms."""
    with folder() as home:

        def work(call: Any) -> Any:
            time.sleep(0.05)
            return 1

        rows = dag(*(f"t{n}:" for n in range(5)))
        durable = best(lambda: ControlledExecutor(rows, {"work": work}, store=FileStore(home, CLOCK)).execute(), 5)
        memory = best(lambda: ControlledExecutor(rows, {"work": work}, store=MemoryStore(CLOCK)).execute(), 5)
        say("case 52: five parallel tasks, durable / in memory", durable / memory, 1.1, "x")


def graphs() -> None:
    """A graph of 1,000 nodes: parsed and checked; run with conditions, against the plain chain."""
    names = [f"n{number}" for number in range(998)]
    lines = ["start [shape=Mdiamond]", "exit [shape=Msquare]", *(f'{name} [prompt="p"]' for name in names)]
    nodes = ["start", *names, "exit"]
    plain = [f"{a} -> {b}" for a, b in pairwise(nodes)]
    routed = [f'{a} -> {b} [condition="outcome=success"]' for a, b in pairwise(nodes)]
    text = {"plain": _graph(lines + plain), "routed": _graph(lines + routed)}
    say(
        "parse + check of 1,000 nodes (CPU)",
        best(lambda: check(parse_dot(text["routed"])), 5, time.process_time),
        0.2,
        "s",
    )
    spent = {name: best(partial(_run, source), 3, time.process_time) for name, source in text.items()}
    say("routed run of 1,000 nodes / plain one (CPU)", spent["routed"] / spent["plain"], 1.5, "x")
    say("routed run, a node (CPU)", spent["routed"], 2.0, "ms")


def _graph(lines: list[str]) -> str:
    return "digraph g {\n" + ";\n".join(lines) + "\n}\n"


def _run(source: str) -> None:
    result = run_compiled_graph(compile_graph(parse_dot(source)), simulate=True)
    assert result.status == "completed", result.status


ALL = (saves, resume, parallel, graphs)

if __name__ == "__main__":
    chosen = sys.argv[1:]
    for figure in ALL:
        if not chosen or figure.__name__ in chosen:
            figure()
