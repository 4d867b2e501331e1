"""What a pipeline is (Definition) and what an application gives a run of it (Setup)."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.boundary import Boundary
from pipeline.engine.contexts import Reducer
from pipeline.engine.entries import Prices
from pipeline.engine.events import Emitter
from pipeline.engine.head import HeadView
from pipeline.engine.retry import RetryPolicy
from pipeline.engine.routing import Router
from pipeline.engine.running import Crew, Running
from pipeline.engine.step import StepSpec
from pipeline.graph.model import Graph
from pipeline.llm.base import Model, ModelInfo
from pipeline.store.base import Account, Store


@dataclass(frozen=True, slots=True)
class Definition:
    """What a pipeline is: its graph, the code of its nodes, how branches' context keys merge."""

    name: str
    graph: Graph
    steps: Mapping[str, StepSpec]
    reducers: Mapping[str, Reducer] = field(default_factory=dict)
    #: Where a visit's end leads; None: by the outcome's label.
    router: Router | None = None
    #: The graph with only those attributes that decide something, for comparing it with the one a run was started
    #: with; None: all do but `max_parallel`.
    comparable: Callable[[Graph], Graph] | None = None


@dataclass(slots=True)
class Setup:
    """What an application gives a run."""

    store: Store
    clock: Clock
    emit: Emitter
    options: Mapping[str, Any] = field(default_factory=dict)
    model: Model | None = None
    info: ModelInfo | None = None
    prices: Prices | None = None
    #: Spend over all runs of the store; needed where the day has a limit.
    account: Account | None = None
    services: Mapping[str, Any] = field(default_factory=dict)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    product: str = ""
    #: Does the items of maps elsewhere, once a run goes; None: they are done here.
    crew: Callable[[Running], Crew] | None = None
    #: What a format adds to checkpoint.json; None: nothing.
    view: HeadView | None = None
    #: Told of every recorded end of a visit; None: nobody is.
    boundary: Boundary | None = None
    #: The command that resumes a run, for people.
    command: Callable[[str], str] = lambda run: f"./pipeline.sh lessons --resume {run}"
    #: The command that calls a run's batches back from the provider, for people.
    cancel: Callable[[str], str] = lambda run: f"./pipeline.sh cancel {run}"
    #: What has finished or failed work asked anew, for people: (run, path, task); None: that command with --from.
    anew: Callable[[str, str, str | None], str] | None = None
    #: Options that the resuming command needs again: told people, never recorded.
    again: str = ""
    #: A person's yes to a question; None: nobody can be asked.
    confirm: Callable[[str], bool] | None = None
    yes: bool = False


def host() -> dict[str, Any]:
    """Who owns a run: as recorded with run_started and run_resumed."""
    return {"host": socket.gethostname(), "pid": os.getpid()}


#: Options that permit one act: given each time, never recorded.
_PERMITS = frozenset({"allow_tools", "auto_approve", "resubmit", "no_wait"})


def recorded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Execution settings as recorded: JSON values only, no objects, no permissions."""
    return {
        key: value
        for key, value in options.items()
        if key not in _PERMITS and (value is None or isinstance(value, (str, int, float, bool)))
    }
