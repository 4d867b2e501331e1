"""pydantic-ai, durable by DBOS on SQLite: a step is an agent's run with one request to a model that is a function."""

from __future__ import annotations

import asyncio
from typing import Any

from dbos import DBOS
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.benchmarks.peers import dbos_sqlite
from tests.benchmarks.peers.workloads import Body

_bodies: list[Body] = []


async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Do the step whose number the prompt is; a large text is the model's answer."""
    prompt = next(part for part in messages[-1].parts if isinstance(part, UserPromptPart))
    number = int(str(prompt.content).partition(" ")[0])
    kept = await asyncio.to_thread(_bodies[-1], number)
    return ModelResponse(parts=[TextPart(str(kept.get("v", number)))])


agent = Agent(FunctionModel(answer), name="bench", capabilities=[DBOSDurability()])


@DBOS.workflow()
async def asked(count: int) -> int:
    state: dict[str, Any] = {}
    for number in range(count):
        text = (await agent.run(f"{number} {state.get('v', '')}")).output
        state |= {"v": text} if len(text) > 10 else {"n": text}
    return count


@DBOS.workflow()
async def asked_at_once(count: int, at_once: int) -> int:
    for first in range(0, count, at_once):
        await asyncio.gather(*(agent.run(str(number)) for number in range(first, min(first + at_once, count))))
    return count


class Adapter(dbos_sqlite.Adapter):
    """One workflow is one run; runs are listed by DBOS."""

    PACKAGES = ("pydantic-ai-slim", "dbos")

    def chain(self, count: int, body: Body) -> None:
        _bodies.append(body)
        DBOS.launch()
        assert asyncio.run(asked(count)) == count

    def resume(self, count: int, body: Body) -> None:
        _bodies.append(body)
        super().resume(count, body)

    def fan(self, count: int, at_once: int, body: Body) -> None:
        _bodies.append(body)
        DBOS.launch()
        assert asyncio.run(asked_at_once(count, at_once)) == count
