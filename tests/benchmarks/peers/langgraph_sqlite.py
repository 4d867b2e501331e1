"""LangGraph with its SQLite checkpointer: a node that is visited again and again, its state in channels."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from tests.benchmarks.peers.workloads import Body, Peer


class State(TypedDict, total=False):
    """What the nodes of the chain leave."""

    n: int
    v: str


def last(old: int, new: int) -> int:
    """Keep one of the numbers that tasks wrote at once."""
    return max(old, new)


class Fan(TypedDict, total=False):
    """What the tasks of the fan leave."""

    n: Annotated[int, last]


class Adapter(Peer):
    """One thread is one run."""

    PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite")
    DURABILITY = 'durability="sync"; SQLite in WAL mode, synchronous=FULL: survives a power cut'

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._connection = sqlite3.connect(home / "threads.db", check_same_thread=False)
        self._saver = SqliteSaver(self._connection)
        self._saver.setup()
        assert self._connection.execute("PRAGMA synchronous").fetchone() == (2,)

    def _run(self, count: int, body: Body, given: State | None) -> None:
        graph = StateGraph(State)
        graph.add_node("step", lambda state: body(state["n"] + 1))
        graph.add_edge(START, "step")
        graph.add_conditional_edges("step", lambda state: "step" if state["n"] + 1 < count else END)
        made = graph.compile(checkpointer=self._saver)
        config: Any = {"configurable": {"thread_id": "chain"}, "recursion_limit": count + 10}
        made.invoke(given, config, durability="sync")

    def chain(self, count: int, body: Body) -> None:
        self._run(count, body, {"n": -1})

    def resume(self, count: int, body: Body) -> None:
        self._run(count, body, None)

    def fan(self, count: int, at_once: int, body: Body) -> None:
        graph = StateGraph(Fan)
        graph.add_node("task", lambda state: body(state["n"]))
        graph.add_conditional_edges(START, lambda state: [Send("task", {"n": number}) for number in range(count)])
        config: Any = {"configurable": {"thread_id": f"fan{count}"}, "max_concurrency": at_once}
        graph.compile(checkpointer=self._saver).invoke({"n": 0}, config, durability="sync")

    def fill(self, runs: int) -> None:
        self.chain(1, lambda number: {"n": number})
        copied = ", ".join(column[1] for column in self._connection.execute("PRAGMA table_info(checkpoints)"))
        renamed = copied.replace("thread_id", "'t' || value", 1)
        self._connection.executescript(
            "CREATE TEMP TABLE number AS WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n "
            f"WHERE value < {runs - 1}) SELECT value FROM n;"
            f"INSERT INTO checkpoints ({copied}) SELECT {renamed} FROM number, checkpoints WHERE thread_id = 'chain';"
        )

    def newest(self, count: int) -> int:
        """List the newest checkpoints: there is no list of threads."""
        return len(list(self._saver.list(None, limit=count)))
