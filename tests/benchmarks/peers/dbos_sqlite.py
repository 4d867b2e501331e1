"""DBOS on SQLite: a workflow whose steps are recorded, tasks by asyncio in one workflow."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any, ClassVar

from dbos import DBOS

from tests.benchmarks.peers.workloads import Body, Peer

_bodies: list[Body] = []


@DBOS.step()
def work(number: int, state: dict[str, Any]) -> dict[str, Any]:
    return _bodies[-1](number)


@DBOS.workflow()
def chained(count: int) -> int:
    state: dict[str, Any] = {}
    for number in range(count):
        state |= work(number, state)
    return count


@DBOS.step()
async def task(number: int) -> dict[str, Any]:
    return await asyncio.to_thread(_bodies[-1], number)


@DBOS.workflow()
async def fanned(count: int, at_once: int) -> int:
    for first in range(0, count, at_once):
        await asyncio.gather(*(task(number) for number in range(first, min(first + at_once, count))))
    return count


class Adapter(Peer):
    """One workflow is one run."""

    PACKAGES: ClassVar[tuple[str, ...]] = ("dbos",)
    DURABILITY = "SQLite as DBOS opens it (rollback journal, synchronous=FULL): survives a power cut"

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        DBOS(
            config={
                "name": "bench",
                "system_database_url": self.url(home),
                "application_version": "1",
                "log_level": "ERROR",
            }
        )

    @classmethod
    def url(cls, home: Path) -> str:
        return f"sqlite:///{home}/dbos.db"

    def chain(self, count: int, body: Body) -> None:
        _bodies.append(body)
        DBOS.launch()
        assert chained(count) == count

    def resume(self, count: int, body: Body) -> None:
        _bodies.append(body)
        DBOS.launch()
        (run,) = DBOS.list_workflows()
        DBOS.retrieve_workflow(run.workflow_id).get_result()

    def fan(self, count: int, at_once: int, body: Body) -> None:
        _bodies.append(body)
        DBOS.launch()
        assert asyncio.run(fanned(count, at_once)) == count

    def fill(self, runs: int) -> None:
        self.chain(1, lambda number: {})
        with sqlite3.connect(self.home / "dbos.db") as connection:
            copied = ", ".join(column[1] for column in connection.execute("PRAGMA table_info(workflow_status)"))
            renamed = copied.replace("workflow_uuid", "'w' || value", 1).replace("created_at", "created_at - value", 1)
            connection.executescript(
                "CREATE TEMP TABLE number AS WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n "
                f"WHERE value < {runs - 1}) SELECT value FROM n;"
                "CREATE TEMP TABLE one AS SELECT * FROM workflow_status;"
                f"INSERT INTO workflow_status ({copied}) SELECT {renamed} FROM number, one;"
            )

    def newest(self, count: int) -> int:
        return len(DBOS.list_workflows(limit=count, sort_desc=True, load_input=False, load_output=False))
