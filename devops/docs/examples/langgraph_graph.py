"""A LangGraph graph whose checkpoints are kept in our store: it goes on where it was, also after a kill -9."""

import asyncio
import operator
import sys
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from pipeline import LangGraphSaver


class Letter(TypedDict):
    """What the nodes read and write."""

    topic: str
    lines: Annotated[list[str], operator.add]


def draft(state: Letter) -> dict:
    """Write the letter."""
    return {"lines": [f"Dear reader, {state['topic']} matter."]}


def review(state: Letter) -> dict:
    """Ask a person; the graph stops here until it is resumed with an answer."""
    answer = interrupt({"letter": state["lines"][-1]})
    return {"lines": [f"P.S. {answer}"]}


def graph(saver: LangGraphSaver):
    """The compiled graph."""
    made = StateGraph(Letter).add_node(draft).add_node(review)
    made.add_edge(START, "draft").add_edge("draft", "review").add_edge("review", END)
    return made.compile(checkpointer=saver)


async def main(folder: str) -> None:
    """Run it to the question, answer it, look back, and take another way from there."""
    letters = graph(LangGraphSaver(f"files:{folder}"))
    thread = {"configurable": {"thread_id": "letter-1"}}
    stopped = await letters.ainvoke({"topic": "tides", "lines": []}, thread)
    print(stopped["__interrupt__"][0].value)

    # A new process would do the same: all that it needs is in the store.
    letters = graph(LangGraphSaver(f"files:{folder}"))
    done = await letters.ainvoke(Command(resume="Mind the moon."), thread)
    print(done["lines"])

    history = [state async for state in letters.aget_state_history(thread)]
    print([state.next for state in history])

    at_question = next(state for state in history if state.next == ("review",))
    forked = await letters.aupdate_state(at_question.config, {"lines": ["Dear reader, start again."]}, as_node="draft")
    await letters.ainvoke(None, forked)
    other = await letters.ainvoke(Command(resume="Mind the wind."), thread)
    print(other["lines"][1:])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "devops/checkpoints"))
