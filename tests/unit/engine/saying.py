"""Short ways to say things in the engine's tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from pipeline import Event, Message, Pipeline, Request
from pipeline.cost.prices import PriceBook
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.step import StepSpec
from pipeline.graph.model import Edge, Graph, Node
from pipeline.llm.script import ScriptedModel
from pipeline.store.base import Store
from pipeline.store.reader import records
from pipeline.testing import FakeClock

MODEL = "claude-sonnet-5-5"
PRICES = PriceBook()


def ask(text: str, model: str = "scripted", **more: Any) -> Request:
    return Request(model, [Message("user", text)], **more)


def fine(model: str = MODEL) -> ScriptedModel:
    """A model that is paid for and answers always alike."""
    return ScriptedModel(lambda request: "fine", model_id=model, paid=True)


def facts(store: Store, run: str, kind: type) -> list[Any]:
    return [record.fact for record in records(store, run) if isinstance(record.fact, kind)]


def notes(events: Iterable[Event]) -> list[str]:
    return [str(event.data["text"]) for event in events if event.type == "note"]


def worst_of(request: Request, at: datetime, *, batch: bool = False) -> Decimal:
    """What a call is admitted at."""
    found = PRICES.worst(
        request.size(), request.max_tokens, model=request.model, at=at, batch=batch, added=request.added(),
        marked=request.marked(),
    )  # fmt: skip
    assert found is not None
    return found


def definition(
    nodes: Sequence[Node], edges: Sequence[Edge], bodies: Mapping[str, Any], router: Any = None
) -> Definition:
    """A graph of nodes, with what each of them runs; where they are not named, one body for all."""
    graph = Graph.of(nodes, edges, nodes[0].id)
    return Definition("shape", graph, {name: StepSpec(name, body) for name, body in bodies.items()}, {}, router)


def engine(what: Pipeline | Definition, store: Store, clock: FakeClock | None = None, **setup: Any) -> Engine:
    clock = clock or FakeClock()
    heard = setup.pop("listener", None)
    emit = Emitter(clock, [heard] if heard else [])
    return Engine(what.definition if isinstance(what, Pipeline) else what, Setup(store, clock, emit, **setup))


def go(
    what: Pipeline | Definition, store: Store, run: str = "", *, clock: FakeClock | None = None,
    setup: Mapping[str, Any] | None = None, **wish: Any,
) -> RunResult:  # fmt: skip
    """Start a run, or resume one as wished."""
    made = engine(what, store, clock, **(setup or {}))
    return made.resume(run, **wish) if run else made.start({}, identity={}, pins={}, **wish)
