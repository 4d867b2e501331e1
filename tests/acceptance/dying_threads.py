"""Runs a LangGraph graph that is killed at each of its moments in turn, and gone on with in a new process.

Prints a JSON line for each moment: the nodes that each process ran, those whose writes it knew to be kept, and how the
graph ended.
"""

from __future__ import annotations

import asyncio
import json
import operator
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from pipeline import LangGraphSaver
from pipeline.clock import SystemClock
from pipeline.store.files import FileStore
from pipeline.store.journal import RunJournal


class State(TypedDict):
    """What the nodes write."""

    words: Annotated[list[str], operator.add]


CONFIG: Any = {"configurable": {"thread_id": "one"}}


class Deaths:
    """Kills the process at the moment of a number."""

    def __init__(self, at: int) -> None:
        self.left = at

    def moment(self) -> None:
        """One more moment has come."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def graph(home: Path, deaths: Deaths) -> Any:
    """A node and two others at once behind it; each notes that it ran, and may die before and after that."""

    def node(name: str) -> Any:
        def act(state: State) -> dict[str, list[str]]:
            deaths.moment()
            with open(home / "ran", "a") as file:
                file.write(name)
            deaths.moment()
            return {"words": [name]}

        return act

    made = StateGraph(State)
    for name in "abc":
        made.add_node(name, node(name))
    made.add_edge(START, "a")
    for name in "bc":
        made.add_edge("a", name).add_edge(name, END)
    return made.compile(checkpointer=Noting(home))


class Noting(LangGraphSaver):
    """Notes which nodes' writes are kept."""

    def __init__(self, home: Path) -> None:
        super().__init__(FileStore(home / "store", SystemClock()))
        self._kept = home / "kept"

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes, task_id, task_path)
        with open(self._kept, "a") as file:
            file.write(
                "".join(name for channel, words in writes if channel == "words" for name in words if name in "abc")
            )


async def go_on(home: Path, deaths: Deaths) -> None:
    """Run the thread from where it stands."""
    made = graph(home, deaths)
    begun = await made.aget_state(CONFIG)
    done = await made.ainvoke({"words": ["in"]} if begun.metadata is None else None, CONFIG, durability="sync")
    history = [len(state.values.get("words", ())) async for state in made.aget_state_history(CONFIG)]
    (home / "end").write_text(json.dumps({"words": done["words"], "history": history}))


def process(home: Path, at: int) -> int:
    """One process that dies at a moment (0: at none); the signal that ended it, 0 where it came to its end."""
    pid = os.fork()
    if pid == 0:
        deaths = Deaths(at)
        append = RunJournal.append

        def dying(self: RunJournal, *args: Any, **more: Any) -> None:
            deaths.moment()
            append(self, *args, **more)
            deaths.moment()

        RunJournal.append = dying  # type: ignore[method-assign]
        asyncio.run(go_on(home, deaths))
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)


def main(folder: Path) -> None:
    """Every moment in turn, until a process comes to its end by itself."""
    at = ended = 0
    while not at or ended:
        at += 1
        home = folder / str(at)
        home.mkdir()
        ended = process(home, at)
        first, kept = (path.read_text() if path.exists() else "" for path in (home / "ran", home / "kept"))
        last = process(home, 0) if ended else 0
        report = {"signal": ended, "first": first, "kept": kept, "ran": (home / "ran").read_text(), "last": last}
        sys.stdout.write(json.dumps({**report, **json.loads((home / "end").read_text())}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
