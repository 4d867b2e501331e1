"""Prefect with its own server: a flow whose tasks keep their results under keys; a resume is the flow again."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.sorting import FlowRunSort
from prefect.task_runners import ThreadPoolTaskRunner

from tests.benchmarks.peers.workloads import Body, Peer, free_port, server


def settings(home: Path) -> dict[str, str]:
    """What makes Prefect keep to one folder and to this machine."""
    return {
        "PREFECT_HOME": str(home / "prefect"),
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "results"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "true",
    }


class Adapter(Peer):
    """One flow run is one run."""

    PACKAGES = ("prefect",)
    DURABILITY = (
        "results in files without a sync; the server's SQLite in WAL mode, synchronous=NORMAL: survives a kill, "
        "not a power cut"
    )

    @classmethod
    @contextmanager
    def served(cls, home: Path) -> Iterator[None]:
        port = free_port()
        os.environ |= settings(home) | {"PREFECT_API_URL": f"http://127.0.0.1:{port}/api"}
        command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
        with server([*command, "--no-ui"], home, port):
            yield

    def chain(self, count: int, body: Body) -> None:
        @task(cache_key_fn=lambda context, given: f"chain-{given['number']}")
        def work(number: int, state: dict[str, Any]) -> dict[str, Any]:
            return body(number)

        @flow
        def chained() -> None:
            state: dict[str, Any] = {}
            for number in range(count):
                state |= work(number, state)

        chained()

    def resume(self, count: int, body: Body) -> None:
        self.chain(count, body)

    def fan(self, count: int, at_once: int, body: Body) -> None:
        work = task(body, name="work", cache_key_fn=lambda context, given: f"fan-{count}-{given['number']}")

        @flow(task_runner=ThreadPoolTaskRunner(max_workers=at_once))
        def fanned() -> None:
            work.map(list(range(count))).result()

        fanned()

    def fill(self, runs: int) -> None:
        self.chain(1, lambda number: {})
        with sqlite3.connect(self.home / "prefect" / "prefect.db", timeout=60) as connection:
            table = connection.execute("PRAGMA table_xinfo(flow_run)").fetchall()
            copied = ", ".join(column[1] for column in table if column[6] == 0)
            renamed = copied.replace("id,", "printf('00000000-0000-0000-0000-%012d', value),", 1)
            connection.execute(
                "WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ?)"
                f" INSERT INTO flow_run ({copied}) SELECT {renamed} FROM n, flow_run",
                (runs - 1,),
            )

    def newest(self, count: int) -> int:
        return len(self._client.read_flow_runs(limit=count, sort=FlowRunSort.START_TIME_DESC))

    @cached_property
    def _client(self) -> SyncPrefectClient:
        return get_client(sync_client=True)
