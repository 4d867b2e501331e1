"""What real LangGraph graphs do over a store of ours: the same as over LangGraph's own saver in memory."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from pipeline import LangGraphSaver

Saver = Any
#: A graph's life over a saver → what was seen of it.
Life = Callable[[Saver], list[Any]]


class State(TypedDict):
    """What the nodes write."""

    words: Annotated[list[str], operator.add]


def config(thread: str = "one", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, **more}}


def seen(state: Any) -> Any:
    """A state without what differs each time: ids and times."""
    tasks = [(task.name, [each.value for each in task.interrupts], task.error) for task in state.tasks]
    return state.next, dict(state.values), (state.metadata or {}).get("step"), tasks


def interrupted(saver: Saver) -> list[Any]:
    """Two questions in one node, and two nodes that ask at once."""

    def twice(state: State) -> dict[str, list[str]]:
        return {"words": [interrupt("first?"), interrupt("second?")]}

    def ask(name: str) -> Any:
        return lambda state: {"words": [interrupt(f"{name}?")]}

    made = StateGraph(State).add_node("twice", twice).add_node("a", ask("a")).add_node("b", ask("b"))
    made.add_edge(START, "twice").add_edge("twice", "a").add_edge("twice", "b").add_edge("a", END).add_edge("b", END)
    graph = made.compile(checkpointer=saver)
    found: list[Any] = [graph.invoke({"words": []}, config())["__interrupt__"][0].value]
    found.append(graph.invoke(Command(resume="1"), config())["__interrupt__"][0].value)
    both = graph.invoke(Command(resume="2"), config())["__interrupt__"]
    found += [sorted(each.value for each in both), seen(graph.get_state(config()))]
    done = graph.invoke(Command(resume={each.id: f"to {each.value}" for each in both}), config())
    return [*found, done, [seen(state) for state in graph.get_state_history(config())]]


def nested(saver: Saver) -> list[Any]:
    """A subgraph that remembers between calls, and asks."""

    def count(state: State) -> dict[str, list[str]]:
        return {"words": [f"inner {len(state['words'])}"]}

    def ask(state: State) -> dict[str, list[str]]:
        return {"words": [interrupt("inside?")]}

    inner = StateGraph(State).add_node("count", count).add_node("ask", ask)
    inner.add_edge(START, "count").add_edge("count", "ask").add_edge("ask", END)
    outer = StateGraph(State).add_node("inner", inner.compile(checkpointer=True))
    outer.add_edge(START, "inner").add_edge("inner", END)
    graph = outer.compile(checkpointer=saver)
    found: list[Any] = []
    for number in range(2):
        found.append(graph.invoke({"words": [f"in {number}"]}, config())["__interrupt__"][0].value)
        inside = graph.get_state(config(), subgraphs=True).tasks[0].state
        found.append(seen(inside))
        found.append(graph.invoke(Command(resume=f"answer {number}"), config()))
    return [*found, [seen(state) for state in graph.get_state_history(config())]]


def spread(saver: Saver) -> list[Any]:
    """Branches at once, of which one fails the first time: the others do not run again."""
    ran: list[str] = []

    def branch(state: Any) -> dict[str, list[str]]:
        ran.append(str(state["item"]))
        if state["item"] == 3 and ran.count("3") == 1:
            # A graph that fails does not wait for what its other nodes still write.
            for _ in range(5000):
                if len({task for task, *_ in saver.get_tuple(config(checkpoint_ns="")).pending_writes}) == 4:
                    break
                threading.Event().wait(0.005)
            raise ValueError("not now")
        return {"words": [f"did {state['item']}"]}

    def split(state: State) -> list[Send]:
        return [Send("branch", {"item": item}) for item in range(5)]

    made = StateGraph(State).add_node("branch", branch)
    made.add_conditional_edges(START, split, ["branch"])
    graph = made.add_edge("branch", END).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="not now"):
        graph.invoke({"words": []}, config(), durability="sync")
    found: list[Any] = [sorted(ran), graph.invoke(None, config())["words"]]
    return [*found, sorted(ran), [seen(state) for state in graph.get_state_history(config())]]


def travelled(saver: Saver) -> list[Any]:
    """A graph that is begun again from an older state, as it was and changed."""
    made = StateGraph(State)
    for name in "abc":
        made.add_node(name, lambda state, name=name: {"words": [f"{name}{len(state['words'])}"]})
    for first, second in zip((START, *"abc"), (*"abc", END), strict=True):
        made.add_edge(first, second)
    graph = made.compile(checkpointer=saver)
    found: list[Any] = [graph.invoke({"words": []}, config())]
    before_b = next(state for state in graph.get_state_history(config()) if state.next == ("b",))
    found.append(graph.invoke(None, before_b.config))
    changed = graph.update_state(before_b.config, {"words": ["changed"]})
    found += [graph.invoke(None, changed), seen(graph.get_state(before_b.config))]
    written = graph.update_state(config(), {"words": ["as b"]}, as_node="b")
    found += [seen(graph.get_state(written)), graph.invoke(None, config())]
    some = list(graph.get_state_history(config(), limit=3))
    older = list(graph.get_state_history(config(), before=some[-1].config, filter={"source": "loop"}))
    return [*found, [seen(state) for state in some], [seen(state) for state in older]]


def streamed(saver: Saver) -> list[Any]:
    """Asynchronously, as its parts come."""

    async def slow(state: State) -> dict[str, list[str]]:
        await asyncio.sleep(0)
        return {"words": ["slow"]}

    async def life() -> list[Any]:
        made = StateGraph(State).add_node("slow", slow).add_node("ask", lambda state: {"words": [interrupt("and?")]})
        graph = made.add_edge(START, "slow").add_edge("slow", "ask").add_edge("ask", END).compile(checkpointer=saver)
        found: list[Any] = [part async for part in graph.astream({"words": []}, config(), stream_mode="values")]
        found = [part.get("words") for part in found]
        found += [part async for part in graph.astream(Command(resume="so"), config(), stream_mode="updates")]
        found.append([seen(state) async for state in graph.aget_state_history(config())])
        await saver.adelete_thread("one")
        return [*found, seen(await graph.aget_state(config()))]

    return asyncio.run(life())


@pytest.fixture(params=["files", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> LangGraphSaver:
    return LangGraphSaver(f"{request.param}:{tmp_path / 'store'}")


@pytest.mark.parametrize("life", [interrupted, nested, spread, travelled, streamed])
def test_langgraph_graph_lives_as_over_the_saver_in_memory(life: Life, saver: LangGraphSaver) -> None:
    assert life(saver) == life(InMemorySaver())
