"""What a pipeline is (Definition), what a run of it is given (Setup), and what its threads share (ActiveRun)."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_VARARGS
from types import CoroutineType, FunctionType
from typing import TYPE_CHECKING, Any

from pipeline.clock import Clock
from pipeline.engine.ceiling import Prices, Room
from pipeline.engine.contexts import Reducer
from pipeline.engine.events import Emitter
from pipeline.engine.recorder import HeadView, Recorder, StepEndHook
from pipeline.engine.retry import RetryPolicy
from pipeline.engine.routing import Router
from pipeline.engine.sources import Sources
from pipeline.engine.stop import Stop
from pipeline.errors import ConfigError
from pipeline.graph.model import Graph
from pipeline.llm.base import Model, ModelInfo
from pipeline.records.run import bare
from pipeline.store.base import Account, Store

if TYPE_CHECKING:
    from pipeline.engine.calls import Caller
    from pipeline.engine.map_runner import MapRunner
    from pipeline.engine.step import StepContext

StepFunction = Callable[["StepContext"], Any]
#: Effect classes: what work does outside the run.
EFFECTS = ("pure", "read", "write", "external", "human")
#: What people want of an async body.
_AT_ONCE = "Several calls at once are the items of a ctx.map(…)."
_ASYNC = CO_COROUTINE | CO_ASYNC_GENERATOR
#: Effects that act outside the run: never blindly repeated, and durable before they begin.
UNSAFE = frozenset({"write", "external"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step decided beside its outputs."""

    outputs: Mapping[str, Any]
    #: Chooses the outgoing edges: those with this label, else those without one.
    label: str = "success"
    #: Context keys this step sets for the nodes after it.
    context: Mapping[str, Any] = field(default_factory=dict)
    #: {"type", "message", …}: the step failed by its content; what it set is recorded all the same.
    error: Mapping[str, Any] | None = None
    #: What a router may go by (preferred_label, suggested_next_ids); not recorded.
    hints: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepSpec:
    """A step function with what the engine must know of it."""

    name: str
    run: StepFunction
    #: Raise it when the step's code gives other results for the same inputs.
    version: int = 1
    #: pure, read, write, external or human: what it does outside the run.
    effect: str = "read"
    #: May write/external work whose end is unknown be done again?
    repeatable: bool = False
    #: Names of the artifacts it saves whenever it completes.
    saves: Sequence[str] = ()


def step(
    name: str | None = None,
    *,
    version: int = 1,
    effect: str = "read",
    repeatable: bool = False,
    saves: Sequence[str] = (),
) -> Callable[[StepFunction], StepSpec]:
    """Make a function `(ctx) -> mapping` a step; the name defaults to the function's.

    Raises:
        ConfigError: It stands without brackets, an argument cannot be what it is, or the function is no step's.
    """
    if not (name is None or isinstance(name, str)):
        shown = getattr(name, "__name__", name)
        raise ConfigError(f"@step needs brackets: write @step() above {shown}.", code="bare_step")
    check_version(version)
    check_effect(effect)

    def wrap(function: StepFunction) -> StepSpec:
        check_body(function, f"step {name!r}" if name else "a step", "ctx")
        return StepSpec(name or function.__name__, function, version, effect, repeatable, tuple(saves))

    return wrap


def check_version(version: int) -> None:
    """Refuse a version that is not a whole number.

    Raises:
        ConfigError: It is not.
    """
    if type(version) is not int:
        raise ConfigError(
            f"version={version!r}: a version is a whole number, raised when results change.", code="invalid_version"
        )


def check_effect(effect: str) -> None:
    """Refuse an effect class that there is not.

    Raises:
        ConfigError: Names the nearest one.
    """
    if effect not in EFFECTS:
        near = get_close_matches(str(effect), EFFECTS, 1)
        text = f"effect={effect!r} is none of {', '.join(EFFECTS)}."
        raise ConfigError(text, code="invalid_effect", hint=f"Did you mean {near[0]!r}?" if near else "")


def check_body(body: Any, what: str, *arguments: str) -> None:
    """Refuse what cannot be a function that is called with these arguments, before it is called.

    Args:
        what: What it is the code of.

    Raises:
        ConfigError: It is no function of so many arguments, or an async one.
    """
    called = f"({', '.join(arguments)})"
    if not callable(body):
        text = f"The code of {what} must be a function of {called}, not {body!r:.60}."
        raise ConfigError(text, code="invalid_body")
    function = getattr(body, "__func__", body)
    if not isinstance(function, FunctionType):
        return
    code, count = function.__code__, len(arguments) + (function is not body)
    if code.co_flags & _ASYNC:
        raise async_body(f"{function.__name__}()", _AT_ONCE if "ctx" in arguments else "")
    least = code.co_argcount - len(function.__defaults__ or ())
    if not (least <= count and (count <= code.co_argcount or code.co_flags & CO_VARARGS)):
        text = f"{function.__name__}() is the code of {what}, which is called with {called}; it takes other arguments."
        raise ConfigError(text, code="invalid_body", hint=f"Write def NAME{called}: …")


def async_body(what: str, hint: str = _AT_ONCE) -> ConfigError:
    """Return the error of a function of the user's that is a coroutine."""
    text = f"{what} is async; it must be a plain function: write `def`, and asyncio.run(…) around what is awaited."
    return ConfigError(text, code="async_body", hint=hint)


def settled(result: Any, what: str) -> Any:
    """Return what a body returned, unless that is a coroutine.

    Raises:
        ConfigError: It is one.
    """
    if isinstance(result, CoroutineType):
        result.close()
        raise async_body(what)
    return result


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
    #: Spend over all runs of the store, so that a limit counts all of them; None: the store's own.
    account: Account | None = None
    services: Mapping[str, Any] = field(default_factory=dict)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    product: str = ""
    #: Makes what takes the items of maps to an executor; None: they are done here.
    map_runner: Callable[[ActiveRun], MapRunner] | None = None
    #: What a format adds to checkpoint.json; None: nothing.
    view: HeadView | None = None
    #: Called after each recorded end of a visit.
    hook: StepEndHook | None = None
    #: The command that resumes a run, for people.
    command: Callable[[str], str] = lambda run: f"./pipeline.sh lessons --resume {run}"
    #: The command that cancels a run's batches at the provider, for people.
    cancel: Callable[[str], str] = lambda run: f"./pipeline.sh cancel {run}"
    #: How to have finished or failed work done again, for people: (run, path, task); None: that command with --from.
    anew: Callable[[str, str, str | None], str] | None = None
    #: Options that the resuming command needs again: shown to people, never recorded.
    again: str = ""
    #: Asks a person to confirm a question; None: no person can be asked.
    confirm: Callable[[str], bool] | None = None
    yes: bool = False

    def __post_init__(self) -> None:
        """Take the account of the store where none is given."""
        if self.account is None:
            self.account = self.store.account()


@dataclass(slots=True)
class ActiveRun:
    """What the threads of one start or resume of a run share."""

    recorder: Recorder
    sources: Sources
    clock: Clock
    emit: Emitter
    stop: Stop
    options: Mapping[str, Any]
    store: Store
    caller: Caller | None = None
    services: Mapping[str, Any] = field(default_factory=dict)
    #: How many worker threads there may be beside the one that waits (0: everything runs inline), and which are free.
    workers: int = 0
    spare: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    #: Work with an unknown outcome that acts outside may be repeated (--yes).
    repeat_unknown: bool = False
    hook: StepEndHook | None = None
    #: Room under the ceiling that is held for tasks an earlier owner handed out: (path, task).
    held: dict[tuple[str, str], Room] = field(default_factory=dict)
    #: Where the items of maps are done; None until the run is put together.
    maps: MapRunner = field(init=False)
    #: Maps (step path, name) that a person was told were made by other code.
    told: set[tuple[str, str]] = field(default_factory=set)
    #: How to have the work of a visit (or of a task in it) done again, for people: (path, task).
    anew: Callable[[str, str | None], str] = lambda path, task: f"resume with --from {bare(path)}"


def host() -> dict[str, Any]:
    """Return who owns a run, as recorded with run_started and run_resumed."""
    return {"host": socket.gethostname(), "pid": os.getpid()}


#: Options that permit one act: given each time, never recorded.
_PERMITS = frozenset({"allow_tools", "auto_approve", "resubmit", "no_wait"})


def recorded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return execution settings as recorded: JSON values only, no objects, no permissions."""
    return {
        key: value
        for key, value in options.items()
        if key not in _PERMITS and (value is None or isinstance(value, (str, int, float, bool)))
    }
