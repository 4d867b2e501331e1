"""A cluster without a worker: it is said, with what to type, and that the run goes on once one has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pipeline.app.executors import WorkerWatch
from pipeline.engine.events import Emitter, Event
from pipeline.testing import FakeClock


@dataclass
class Task:
    """A future as a client knows it."""

    status: str


@dataclass
class Cluster:
    """A client that counts workers and knows what is out."""

    workers: int = 1
    futures: dict[str, Task] = field(default_factory=dict)

    def scheduler_info(self, *, n_workers: int) -> dict[str, Any]:
        return {"n_workers": self.workers, "workers": {}}


class Seen:
    """A watch over a cluster, and what it said."""

    def __init__(self, address: str = "10.0.0.5:8786") -> None:
        self.cluster = Cluster(futures={"a": Task("pending"), "b": Task("pending"), "c": Task("finished")})
        self.clock = FakeClock()
        self.said: list[str] = []
        self.watch = WorkerWatch(self.cluster, address, Emitter(self.clock, [self._hear]), self.clock)

    def _hear(self, event: Event) -> None:
        self.said.append(event.data["text"])

    def look_for(self, seconds: int) -> list[str]:
        """What is said while it is looked once a second."""
        self.said.clear()
        for _ in range(seconds):
            self.watch.look()
            self.clock.advance(1)
        return list(self.said)


def test_last_worker_that_is_gone_is_said_once_with_what_to_type() -> None:
    seen = Seen()
    assert seen.look_for(9) == []
    seen.cluster.workers = 0
    assert seen.look_for(4) == []
    assert seen.look_for(60) == [
        "No worker is at 10.0.0.5:8786, and 2 tasks wait for one. Start one in the folder of this program: "
        "`PYTHONPATH=$PWD .venv/bin/dask worker 10.0.0.5:8786`. The run then continues by itself."
    ]
    seen.cluster.workers = 1
    assert seen.look_for(9) == ["A worker has connected; the run continues."]
    seen.cluster.workers = 0
    assert len(seen.look_for(9)) == 1


def test_worker_that_is_started_anew_at_once_is_not_talked_of() -> None:
    seen = Seen()
    for _ in range(5):
        seen.cluster.workers = 0
        assert seen.look_for(4) == []
        seen.cluster.workers = 1
        assert seen.look_for(2) == []


def test_cluster_without_workers_where_no_task_waits_is_no_news() -> None:
    seen = Seen()
    seen.cluster.workers = 0
    seen.cluster.futures = {"c": Task("finished")}
    assert seen.look_for(30) == []
    seen.cluster.futures["d"] = Task("pending")
    assert "1 task waits for one" in seen.look_for(30)[0]


def test_begin_without_workers_is_said_at_once_and_not_again() -> None:
    seen = Seen()
    seen.cluster.workers = 0
    assert not seen.watch.begin()
    assert "no worker yet" in seen.said[0]
    assert "dask worker 10.0.0.5:8786" in seen.said[0]
    assert seen.look_for(30) == []
    seen.cluster.workers = 2
    assert seen.look_for(2) == ["A worker has connected; the run continues."]


def test_workers_of_the_command_itself_are_started_by_it() -> None:
    seen = Seen("")
    seen.cluster.workers = 0
    assert seen.look_for(30) == [
        "No worker is there, and 2 tasks wait for one. A new one is being started; the run continues by itself once it "
        "is there."
    ]
