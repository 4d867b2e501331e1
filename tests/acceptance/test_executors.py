"""The real command line on a real cluster: kill -9 of a worker, of the scheduler, of the coordinator.

The provider's own bill says whether anything was paid twice.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipeline import AnthropicModel
from pipeline.app import executors
from pipeline.clock import SystemClock
from pipeline.errors import ExecutorLost
from pipeline.records.kinds import TaskSubmitted, TaskTaken
from pipeline.store.parts import part_records
from pipeline.store.reader import records
from pipeline.store.url import open_store
from tests.acceptance.fleet import FORKS, Fleet
from tests.acceptance.fleet import fleet as fleet
from tests.acceptance.fleet import forks as forks
from tests.acceptance.fleet_course import FRAGILE, ITEMS, MODEL
from tests.acceptance.fleet_member import work_for
from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.objects import moto as moto
from tests.servers.objects import objects as objects
from tests.servers.postgres import postgres as postgres
from tests.servers.postgres import postgresql as postgresql

CALLS = 2 * ITEMS


@pytest.fixture(autouse=True)
def _ready(request: pytest.FixtureRequest) -> None:
    if "fleet" in request.fixturenames:
        fleet: Fleet = request.getfixturevalue("fleet")
        fleet.server.reset(latency=0.1)
        fleet.heal()


@pytest.fixture
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store that workers can share."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'runs.db'}"
    return str(request.getfixturevalue(request.param))


def repeated(fleet: Fleet) -> int:
    """How often something was asked that had been asked before."""
    return sum(count - 1 for count in Counter(entry.body_hash for entry in fleet.server.bill.entries()).values())


def distinct(fleet: Fleet) -> int:
    return len({entry.body_hash for entry in fleet.server.bill.entries()})


def owners(url: str, run: str) -> set[int]:
    """Processes that worked on the parts of a run."""
    store = open_store(url, SystemClock())
    found = set()
    for record in records(store, run):
        if isinstance(record.fact, TaskSubmitted) and not record.fact.part:
            part = part_records(store, run, f"task-{record.seq}")
            found |= {each.fact.host["pid"] for each in part if isinstance(each.fact, TaskTaken)}
    return found


# With the tests that name their store, workers and coordinators die over all three; each more would take seconds.
@pytest.mark.parametrize("shared", ["objects", "postgresql"], indirect=True)
def test_worker_killed_in_a_call_costs_that_call_at_most(fleet: Fleet, shared: str) -> None:
    coordinator = fleet.begin(shared, "--param", "name=worker")
    coordinator.until(lambda: fleet.server.bill.requests >= 5)
    fleet.kill("one")
    result = coordinator.ended()
    assert (result["status"], result["exit_code"]) == ("completed", 0)
    assert distinct(fleet) == CALLS
    assert repeated(fleet) <= 1
    assert result["cost_usd_at_most"] >= float(fleet.server.bill.usd) * 0.999


@pytest.mark.parametrize("shared", ["objects", "sqlite"], indirect=True)
def test_coordinator_killed_is_taken_over_and_nothing_is_paid_again(fleet: Fleet, shared: str) -> None:
    coordinator = fleet.begin(shared, "--param", "name=coordinator")
    coordinator.until(lambda: fleet.server.bill.requests >= 5)
    coordinator.kill()
    result = fleet.run(shared, "--resume", "latest")
    assert (result["status"], result["exit_code"]) == ("completed", 0)
    # The workers went on with the tasks they had; whoever came after them waited, and found their end.
    assert (distinct(fleet), repeated(fleet)) == (CALLS, 0)
    assert result["cost_usd"] == pytest.approx(float(fleet.server.bill.usd))
    assert owners(shared, result["run"]) == {fleet.members["one"].pid, fleet.members["two"].pid}


def test_coordinator_killed_is_taken_over_from_another_host_once_its_lease_has_run_out(
    fleet: Fleet, postgresql: str
) -> None:
    coordinator = fleet.begin(postgresql, "--param", "name=host", host="one")
    coordinator.until(lambda: fleet.server.bill.requests >= 5)
    coordinator.kill()
    while (result := fleet.run(postgresql, "--resume", "latest", host="other"))["type"] == "error":
        # Whether it lives cannot be seen from here.
        assert result["error"]["type"] == "RunLocked"
        assert " on one since " in result["error"]["message"]
        assert "If that host is gone" in result["error"]["hint"]
    assert (result["status"], result["exit_code"]) == ("completed", 0)
    assert (distinct(fleet), repeated(fleet)) == (CALLS, 0)


def test_ceiling_holds_where_workers_are_killed_and_where_all_are(fleet: Fleet, tmp_path: Path) -> None:
    # Answers as long as they may be: what was in flight when a worker died is billed nearly at its worst case.
    fleet.server.reset(latency=0.3, responder=lambda body, kind: "word " * 2_900)
    store, limit = f"sqlite:{tmp_path / 'runs.db'}", 0.16
    coordinator = fleet.begin(store, "--param", "name=poor", "--param", "cap=3000", "--max-cost-usd", str(limit))
    for name in ("one", "two", "one"):
        coordinator.until_asked(fleet.server)
        fleet.kill(name)
        fleet.heal()
    assert coordinator.ended()["cost_usd_at_most"] <= limit
    for _ in range(2):
        coordinator = fleet.begin(store, "--resume", "latest")
        coordinator.until_asked(fleet.server)
        coordinator.kill()
        fleet.stop()
        fleet.heal()
    ended = fleet.run(store, "--resume", "latest")
    assert (ended["status_detail"], ended["exit_code"]) == ("paused_budget", 5)
    assert float(fleet.server.bill.usd) <= ended["cost_usd_at_most"] <= limit


def test_task_that_kills_its_workers_is_named_and_what_is_saved_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    store, mark = f"sqlite:{tmp_path / 'runs.db'}", tmp_path / "mark"
    mark.touch()
    result = fleet.run(store, "--param", f"deadly={mark}", "--param", "name=deadly")
    assert (result["status"], result["status_detail"], result["exit_code"]) == ("in_progress", "interrupted", 9)
    assert result["error"]["message"] == "made/1 has killed every worker that ran it (2 so far)."
    # Its own replies too were recorded before they were used.
    paid = fleet.server.bill.requests
    assert result["cost_usd"] == pytest.approx(float(fleet.server.bill.usd))
    mark.unlink()
    fleet.heal()
    result = fleet.run(store, "--resume", "latest")
    assert (result["status"], result["exit_code"]) == ("completed", 0)
    assert (distinct(fleet), repeated(fleet)) == (CALLS, 0)
    assert 2 <= paid < CALLS


@pytest.mark.parametrize("shared", ["postgresql"], indirect=True)
def test_scheduler_killed_leaves_the_run_resumable(fleet: Fleet, shared: str) -> None:
    coordinator = fleet.begin(shared, "--param", "name=scheduler")
    coordinator.until(lambda: fleet.server.bill.requests >= 5)
    fleet.kill("scheduler")
    result = coordinator.ended()
    assert (result["status"], result["status_detail"], result["exit_code"]) == ("in_progress", "interrupted", 9)
    assert result["resume_command"].endswith(f" --executor {fleet.address}")
    fleet.heal()
    result = fleet.run(shared, "--resume", "latest")
    assert (result["status"], result["exit_code"]) == ("completed", 0)
    assert distinct(fleet) == CALLS
    # At most what each worker had in flight.
    assert repeated(fleet) <= 2


def test_pool_whose_process_is_killed_stops_the_run_and_nothing_is_paid_again(
    forks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(f"sqlite:{tmp_path / 'runs.db'}", SystemClock())
    with BillingServer() as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-of-nobody"}
        for name, value in env.items():
            monkeypatch.setenv(name, value)

        def pool() -> ProcessPoolExecutor:
            return ProcessPoolExecutor(1, mp_context=FORKS, initializer=work_for, initargs=(env,))

        model, options = AnthropicModel(MODEL), {"concurrency": 1}
        with pool() as executor:
            first = FRAGILE.run(
                {"mark": str(tmp_path / "mark")}, store=store, model=model, executor=executor, options=options
            )
        assert (first.detail, first.exit_code) == ("interrupted", 9)
        assert isinstance(first.error, ExecutorLost)
        assert server.bill.requests == 2
        with pool() as executor:
            second = FRAGILE.resume(first.run_id, store=store, model=model, executor=executor, options=options)
        assert second.status == "completed", second.error
        assert second.outputs["broken"]["rows"] == [f"fragile {item}" for item in range(3)]
        assert server.bill.requests == 3
        assert second.spent.usd == server.bill.usd
        model.close()


def test_scheduler_that_is_not_there_is_said(cli: Cli, objects: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 0.3)
    said = cli("run", f"{os.path.dirname(__file__)}/fleet_course.py:PIPELINE", "--param", "name=x", "--store", objects,
               "--executor", "dask://127.0.0.1:9", "--model", "offline")  # fmt: skip
    assert said.code == 9
    assert "No scheduler answers at 127.0.0.1:9." in said.err
    assert "`PYTHONPATH=$PWD .venv/bin/dask scheduler --port 9`" in said.err


def test_local_cluster_takes_a_port_of_its_own(tmp_path: Path) -> None:
    with socket.socket() as other:
        with contextlib.suppress(OSError):
            # Unless another program has it already.
            other.bind(("127.0.0.1", 8787))
            other.listen()
        # A warning would be an error here.
        with executors._cluster(0, 1, str(tmp_path), {}) as cluster:
            assert cluster.scheduler.http_server.address == "127.0.0.1"


def test_workers_of_python_3_11_are_not_profiled(fleet: Fleet, tmp_path: Path) -> None:
    # There the profiler can make a worker hang for ever.
    import distributed

    fleet.run(f"sqlite:{tmp_path / 'runs.db'}")
    client: Any = distributed.Client(fleet.address.replace("dask:", "tcp:"))  # type: ignore[no-untyped-call]

    def profiled() -> set[bool]:
        return set(client.run(lambda dask_worker: "profile" in dask_worker.periodic_callbacks).values())

    try:
        assert profiled() == {sys.version_info[:2] != (3, 11)}
        fleet.kill("one")
        fleet.heal()
        # Nor those that come later.
        assert profiled() == {sys.version_info[:2] != (3, 11)}
    finally:
        client.close()


def test_executor_that_does_not_go_with_store_or_work_is_refused_with_the_reason(cli: Cli, tmp_path: Path) -> None:
    course = ["lessons", "--subject", "mathematics", "--level", "n5", "--executor"]
    for name in ("dask:local", "dask://127.0.0.1:8786"):
        said = cli(*course, name)
        assert said.code == 2
        assert "locks are the kernel's" in said.err
        assert "postgresql://" in said.err
    assert not list(open_store(os.environ["PIPELINE_STORE"]).heads())
    for name in ("dask", "dask://", "dask://here", "http://here:1", "dask://user:pw@here:1", "local"):
        said = cli(*course, name)
        assert said.code == 2
        assert {"dask://HOST:PORT", "dask:local"} <= set(re.findall(r"dask:[\w/:]+", said.err))
        assert "pw" not in said.err
        assert "user:" not in said.err
    said = cli("run", "graph.dot", "--store", f"sqlite:{tmp_path}/runs.db", "--executor", "dask:local")
    assert (said.code, "DOT graph" in said.err) == (2, True)
