"""A save of a layered run that has 1,000 tasks of real size, over each store: python -m tests.benchmarks.saves."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from pipeline import LayerCheckpoints, WorkflowState
from pipeline.clock import SystemClock
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.sql.backend import open_sql
from pipeline.store.sql.connections import close_all
from tests.benchmarks.measure import folder, say
from tests.servers.postgres import Postgres

_TASKS, _SAVES, _WORDS = 1_000, 60, 330


def output(number: int) -> dict[str, Any]:
    """What a task gave: some 2 kB of words, no two alike."""
    dice = Random(number)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randrange(2, 9))) for _ in range(_WORDS)]
    task = f"t{number}"
    return {
        "taskId": task,
        "result": {"task": task, "text": " ".join(words)},
        "timestamp": "2026-01-09T14:30:22Z",
        "duration": 1234,
        "status": "success",
    }


def saves(store: Store) -> list[float]:
    """Milliseconds of each save of 1,000 outputs and some, one more task each time."""
    shelf = LayerCheckpoints(store, warn=lambda _: None)
    made = [output(number) for number in range(_TASKS + _SAVES)]
    plan = {"tasks": [{"id": one["taskId"], "tool": "write", "arguments": {}, "depends_on": []} for one in made]}
    state = WorkflowState("course", tasks=made[:_TASKS])
    times = []
    for after in range(_SAVES + 1):
        begun = time.perf_counter()
        shelf.save_checkpoint(state, plan, after)
        times.append((time.perf_counter() - begun) * 1000)
        state = state.updated(tasks=made[_TASKS + after : _TASKS + after + 1])
    # The first one brings all 1,000.
    return times[1:]


@contextmanager
def stores() -> Iterator[Iterator[tuple[str, Store]]]:
    """Each store that is measured, with its name."""
    with folder() as home, tempfile.TemporaryDirectory(prefix="pg") as place:
        server = Postgres(Path(place))
        try:
            yield iter(
                [
                    ("files", FileStore(home / "files", SystemClock())),
                    ("sqlite", open_sql(f"sqlite:{home}/runs.db", SystemClock())),
                    ("postgresql", open_sql(server.database(), SystemClock())),
                ]
            )
        finally:
            close_all()
            server.stop()


def main() -> None:
    with stores() as each:
        for name, store in each:
            times = sorted(saves(store))
            say(f"{name}: a save of {_TASKS} tasks, median", median(times), 50, "ms")
            say(f"{name}: a save of {_TASKS} tasks, P95", times[int(_SAVES * 0.95)], 50, "ms")


if __name__ == "__main__":
    main()
