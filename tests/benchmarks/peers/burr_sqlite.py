"""Burr with its SQLite persister: an action that is visited again and again; tasks as sub-applications."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from burr.core import Application, ApplicationBuilder, ApplicationContext, Condition, State, action, expr
from burr.core.parallelism import MapStates
from burr.core.persistence import SQLitePersister

from tests.benchmarks.peers.workloads import Body, Peer


class Tasks(MapStates):
    """So many tasks of one action."""

    def __init__(self, count: int, body: Body) -> None:
        super().__init__()
        self._count, self._body = count, body

    def action(self, state: State, inputs: dict[str, Any]) -> Any:
        @action(reads=["n"], writes=["n"])
        def task(state: State) -> State:
            return state.update(**self._body(state["n"]))

        return task.action_function.with_name("task")

    def states(self, state: State, context: ApplicationContext, inputs: dict[str, Any]) -> Generator[State, None, None]:
        for number in range(self._count):
            yield state.update(n=number)

    def reduce(self, state: State, states: Generator[State, None, None]) -> State:
        return state.update(n=len(list(states)))

    @property
    def reads(self) -> list[str]:
        return ["n"]

    @property
    def writes(self) -> list[str]:
        return ["n"]


class Adapter(Peer):
    """One application id is one run."""

    PACKAGES = ("apache-burr",)
    DURABILITY = "SQLite as Burr opens it (rollback journal, synchronous=FULL): survives a power cut"

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._file = home / "burr.db"
        self._persister = SQLitePersister(str(self._file), connect_kwargs={"check_same_thread": False, "timeout": 60})
        self._persister.initialize()

    def _application(self, count: int, body: Body) -> Application[Any]:
        @action(reads=["n"], writes=["n", "v"])
        def work(state: State) -> State:
            return state.update(**body(state["n"] + 1))

        builder = (
            ApplicationBuilder()
            .with_actions(work)
            .with_transitions(("work", "work", expr(f"n + 1 < {count}")))
            .initialize_from(
                self._persister, resume_at_next_action=True, default_state={"n": -1, "v": ""}, default_entrypoint="work"
            )
            .with_identifiers(app_id="chain")
            .with_state_persister(self._persister)
        )
        return builder.build()

    def chain(self, count: int, body: Body) -> None:
        self._application(count, body).run(halt_after=[], halt_before=[])

    def resume(self, count: int, body: Body) -> None:
        self.chain(count, body)

    def fan(self, count: int, at_once: int, body: Body) -> None:
        builder = (
            ApplicationBuilder()
            .with_actions(tasks=Tasks(count, body))
            .with_transitions(("tasks", "tasks", Condition.expr("False")))
            .with_entrypoint("tasks")
            .with_state(n=0)
            .with_identifiers(app_id=f"fan{count}")
            .with_state_persister(self._persister)
            .with_parallel_executor(lambda: ThreadPoolExecutor(at_once))
        )
        builder.build().run(halt_after=["tasks"])

    def fill(self, runs: int) -> None:
        self.chain(1, lambda number: {"n": number, "v": ""})
        with sqlite3.connect(self._file) as connection:
            connection.execute(
                "INSERT INTO burr_state (partition_key, app_id, sequence_id, position, state, status, created_at)"
                " WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ?)"
                " SELECT partition_key, 'a' || value, sequence_id, position, state, status, created_at"
                " FROM n, burr_state",
                (runs - 1,),
            )

    def newest(self, count: int) -> int:
        """List the ids of all: there is no limit."""
        return len(self._persister.list_app_ids(None)[:count])
