"""A cluster: whether its processes can do our tasks, and what is said while it has no worker."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import __version__
from pipeline.app import executors
from pipeline.engine.events import Emitter
from pipeline.engine.remote.messages import why_lost
from pipeline.errors import PipelineError
from pipeline.settings import Execution
from pipeline.testing import FakeClock

ADDRESS = "10.0.0.5:8786"


class Cluster:
    """A client: how many workers it has, what is out, and what they answer."""

    def __init__(self, answer: Any = None) -> None:
        self.answer, self.workers = answer, 1
        self.futures = {name: SimpleNamespace(status="pending") for name in "ab"}

    def scheduler_info(self, *, n_workers: int) -> dict[str, Any]:
        return {"n_workers": self.workers, "workers": {}}

    def submit(self, asked: object, *, pure: bool) -> Future[str]:
        made: Future[str] = Future()
        if isinstance(self.answer, BaseException):
            made.set_exception(self.answer)
        elif self.answer is not None:
            made.set_result(self.answer)
        return made


def not_found(module: str) -> RuntimeError:
    """What dask says where a process lacks a module."""
    error = RuntimeError("Error during deserialization of the task graph.")
    error.__cause__ = ModuleNotFoundError(f"No module named {module!r}", name=module)
    return error


@pytest.mark.parametrize(
    ("answer", "code"),
    [(not_found("pipeline"), "program_not_found"), ("0.0.9", "other_version"), (OSError(), "executor_lost")],
)
def test_cluster_that_cannot_do_our_tasks_is_refused(answer: Any, code: str) -> None:
    with pytest.raises(PipelineError) as caught:
        executors._check_program(Cluster(answer), ADDRESS)
    assert caught.value.code == code


def test_cluster_that_can_or_is_busy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    executors._check_program(Cluster(__version__), ADDRESS)
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 0)
    executors._check_program(Cluster(None), ADDRESS)


def test_task_whose_own_module_a_worker_lacks_names_it() -> None:
    lost = why_lost("lessons/7", not_found("my_course"))
    assert lost.code == "worker_module_missing"
    assert "module my_course that lessons/7 needs" in lost.message


@pytest.mark.parametrize(
    "name", ["dask://ada:pa@ss@host:1", "ada:pa@ss", "dask://host:1?token=ada", "dask://host:1/#ada", "dask://host:1?"]
)
def test_secrets_and_settings_in_the_name_of_an_executor_are_refused_unseen(name: str) -> None:
    with pytest.raises(PipelineError) as caught:
        executors.check_executor(Execution(store="sqlite:/srv/runs.db", executor=name))
    assert caught.value.code == "invalid_executor"
    assert not any(word in f"{caught.value.message} {caught.value.hint}" for word in ("ada", "ss@"))


class Seen:
    """A watch over a cluster, and what it said."""

    def __init__(self, address: str = ADDRESS) -> None:
        self.cluster, self.clock, self.said = Cluster(), FakeClock(), list[str]()
        emit = Emitter(self.clock, [lambda event: self.said.append(event.data["text"])])
        self.watch = executors.WorkerWatch(self.cluster, address, emit, self.clock)

    def look_for(self, seconds: int, workers: int) -> list[str]:
        """What is said while it is looked once a second and there are so many workers."""
        self.said.clear()
        self.cluster.workers = workers
        for _ in range(seconds):
            self.watch.look()
            self.clock.advance(1)
        return list(self.said)


def test_last_worker_that_is_gone_is_said_once_with_what_to_type() -> None:
    seen = Seen()
    for _ in range(5):
        # One that is started anew at once is not talked of.
        assert seen.look_for(4, 0) == seen.look_for(2, 1) == []
    assert seen.look_for(60, 0) == [
        f"No worker is at {ADDRESS}, and 2 tasks wait for one. Start one in the folder of this program: "
        f"`PYTHONPATH=$PWD .venv/bin/dask worker {ADDRESS}`. The run then continues by itself."
    ]
    assert seen.look_for(9, 1) == ["A worker has connected; the run continues."]
    assert len(seen.look_for(9, 0)) == 1


def test_cluster_without_workers_where_no_task_waits_is_no_news() -> None:
    seen = Seen()
    seen.cluster.futures = {"c": SimpleNamespace(status="finished")}
    assert seen.look_for(30, 0) == []
    seen.cluster.futures["d"] = SimpleNamespace(status="pending")
    assert "1 task waits for one" in seen.look_for(30, 0)[0]


def test_begin_without_workers_is_said_at_once_and_not_again() -> None:
    seen = Seen()
    seen.cluster.workers = 0
    assert not seen.watch.begin()
    assert "no worker yet" in seen.said[0]
    assert seen.look_for(30, 0) == []
    assert seen.look_for(2, 2) == ["A worker has connected; the run continues."]
    assert "A new one is being started" in Seen("").look_for(30, 0)[0]
