"""What a step or task body gets (StepContext) and may return (Outcome); reads are tracked, work is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pipeline.engine import people, preflight, tasks
from pipeline.engine.entries import Scope
from pipeline.engine.lineage import Arrival, Lineage
from pipeline.engine.memory import StepMemory
from pipeline.engine.people import Answer
from pipeline.engine.reuse import tries_of
from pipeline.engine.running import Running
from pipeline.engine.sources import Outputs, Tracked
from pipeline.errors import ConfigError, Pause, PipelineError
from pipeline.graph.model import Graph, Node
from pipeline.llm.base import Reply, Request
from pipeline.records.run import StepRun
from pipeline.records.values import canonical, decode_value

StepFunction = Callable[["StepContext"], Any]


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
    """Make a function `(ctx) -> mapping` a step; the name defaults to the function's."""
    _whole_number(version)

    def wrap(function: StepFunction) -> StepSpec:
        return StepSpec(name or function.__name__, function, version, effect, repeatable, tuple(saves))

    return wrap


def _whole_number(version: int) -> None:
    if type(version) is not int:
        raise ConfigError(f"version={version!r}: a version is a whole number, raised when results change.")


@dataclass(slots=True)
class StepContext:
    """A body's window on its run: everything it reads is noted, everything it buys is recorded."""

    _running: Running
    _scope: Scope
    _seen: Mapping[str, Any]
    _lineage: Lineage
    #: Artifacts saved so far: name → hash.
    saved: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """This visit: `node#visit`."""
        return self._scope.path

    @property
    def visit(self) -> int:
        """Which visit of its node this is, from 1."""
        return self._lineage.visit

    @property
    def attempt(self) -> int:
        """Which attempt of the visit (or of the task) this is, from 1."""
        return self._scope.attempt

    @property
    def node(self) -> Node:
        """The node, with its attributes."""
        return self._lineage.graph.nodes[self._lineage.node]

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        return self._lineage.graph

    @property
    def seen(self) -> Mapping[str, Any]:
        """The context as it was when this node was activated, as one value; reading it is noted once."""
        self._note_read("context")
        return self._seen

    @property
    def arrivals(self) -> list[Arrival]:
        """The tokens this visit consumed, in order of their edges' declaration."""
        self._note_read("arrivals")
        return self._lineage.arrivals(self._running)

    def ancestors(self) -> list[StepRun]:
        """The visits this one descends from, oldest first, the same in every process; their values as recorded."""
        self._note_read("ancestors")
        with self._running.recorder.reading():
            return self._lineage.contexts.ancestors(self._lineage.consumed)

    def nearest(self, most: int) -> list[StepRun]:
        """The visits this one descends from, nearest first, at most so many."""
        self._note_read("ancestors")
        with self._running.recorder.reading():
            return self._lineage.contexts.nearest(self._lineage.consumed, most)

    @property
    def consumed(self) -> list[Sequence[str]]:
        """(edge id, path of the visit that chose it) of each token consumed, in order of the edges' declaration."""
        return self._lineage.contexts.ordered(self._lineage.consumed)

    @property
    def resumed_at(self) -> int:
        """What ended at or before this seq was done before the run was last taken up again; 0: it never was."""
        state = self._running.sources.state
        if state.resumes:
            return state.owner
        # A document of another system is the record after the first.
        return state.owner + 1 if state.imported else 0

    @property
    def remark(self) -> tuple[str, Any] | None:
        """What a person said when this task was to be made again, and its former value; None: nobody has."""
        if self._scope.task is None:
            return None
        with self._running.recorder.reading() as state:
            found = state.remarks.get((self._scope.path, self._scope.task))
        if found is None:
            return None
        values = self._running.sources.values
        former = values.at(found.seq) if found.value is None and found.seq else None
        return found.note, former if found.value is None else values.get(decode_value(found.value))

    def recorded(self, value: Any) -> Any:
        """A value of an ancestor, read back where it stands in a blob."""
        return self._running.sources.values.get(value)

    @property
    def params(self) -> Mapping[str, Any]:
        """The run's parameters."""
        return self._tracked(self._running.sources.state.params, "params")

    @property
    def settings(self) -> Mapping[str, Any]:
        """Identity settings (model, effort, author, …)."""
        return self._tracked(self._running.sources.state.identity, "settings")

    @property
    def options(self) -> Mapping[str, Any]:
        """Execution settings; they do not decide what the work is, so reading them is not noted."""
        return self._running.options

    @property
    def context(self) -> Mapping[str, Any]:
        """The run's context as it was when this node was activated."""
        return self._tracked(self._seen, "context")

    @property
    def outputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Outputs of completed steps, by step."""
        return Outputs(self._running.sources, self._scope.reads)

    @property
    def services(self) -> Mapping[str, Any]:
        """What the application lends to its steps (the publisher, …)."""
        return self._running.services

    def prompt(self, name: str) -> str:
        """The text of a pinned prompt template."""
        return str(self._pin(f"prompt:{name}", f"prompt.{name}"))

    def pin(self, name: str) -> Any:
        """A JSON value the run is pinned to (the catalogue, …)."""
        return self._pin(name, f"pin.{name}")

    def load(self, name: str) -> Any:
        """The newest artifact of that name, saved by a completed step."""
        self._note_read(f"artifact.{name}")
        return self._running.sources.load(name)

    def save(self, name: str, value: Any) -> str:
        """Keep a JSON value beside the outputs; the hash of its canonical form."""
        blob = self._running.recorder.put_blob(canonical(value, name))
        self.saved[name] = blob
        return blob

    def ask(self, request: Request) -> Reply:
        """Ask the model; recorded, so free when this body runs again.

        Raises:
            Pause: The run has no model: it stops at once, since each of its asks would fail alike.
            ModelTruncated, ModelRejected: See Caller.ask. Pauses pass through.
        """
        if self._running.caller is None:
            error = preflight.no_model()
            self._running.stop.request("failed", error)
            raise Pause("failed", error)
        with self._leaving():
            return self._running.caller.ask(self._scope, request)

    def answered(self, request: Request) -> bool:
        """Whether this attempt has a recorded reply to a request, or waits for one from a batch: asking is free."""
        n = self._scope.counts.get(request.hash(), 0) + 1
        with self._running.recorder.reading() as state:
            tries = tries_of(state.memo.get(self._scope.slot(state), {}), request, n, self._running.sources.values)
            return any(call.usable or (call.batch and not call.ended) for call in tries)

    def answered_requests(self) -> list[Request]:
        """Return the requests that this attempt has a recorded reply to, as they were sent; asking them is free."""
        running, mine = self._running, (self._scope.path, self._scope.task, self._scope.attempt)
        with running.recorder.reading() as state:
            seqs = [call.seq for tries in state.memo.get(mine, {}).values() for call in tries if call.usable]
        return [found for seq in seqs if (found := running.sources.values.request(seq)) is not None]

    def ask_person(
        self,
        text: str,
        choices: Sequence[str] = (),
        shown: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
        otherwise: str = "",
    ) -> Answer:
        """Ask a person or agent; a recorded answer to exactly this question is used.

        Args:
            choices: What may be answered; none: any text.
            shown: What is shown beside the question; JSON.
            seconds: So long after it was first put, the answer is `otherwise`, by "timeout"; None: never.

        Raises:
            Pause: Nobody can be asked here: the run waits (waiting_for_human) until it is answered.
        """
        with self._leaving():
            return people.ask(self._running, self._scope, text, choices, shown or {}, seconds, otherwise)

    @property
    def memory(self) -> StepMemory:
        """The user's memory (services["memory"]): what is read is recorded, what is written is applied once.

        Raises:
            ConfigError: The run was given none.
        """
        return StepMemory(self._running, self._scope)

    def task(
        self,
        key: str,
        body: Callable[[StepContext, Any], Any],
        item: Any = None,
        *,
        version: int = 1,
        effect: str = "read",
        repeatable: bool = False,
    ) -> Any:
        """Run one durable task, or return what it gave before.

        Args:
            key: Unique within the step.
            effect: "write" or "external" tasks are recorded before they act; one whose end is
                unknown is not repeated unless `repeatable`.

        Raises:
            StepFailed: The task failed; the others are kept.
        """
        _whole_number(version)
        work = tasks.Work(
            key, [item], body, [key], self._child, version, effect=effect, repeatable=repeatable, single=True
        )
        with self._leaving():
            return tasks.run(self._running, self._scope, self._seen, work)[0]

    def map(
        self,
        name: str,
        items: Iterable[Any],
        body: Callable[[StepContext, Any], Any],
        *,
        key: Callable[[Any], Any],
        version: int = 1,
        warm: bool = False,
        skip_failed: bool = False,
    ) -> Sequence[Any]:
        """The body's value for each item, in item order; finished items are not run again.

        Args:
            key: A unique text for an item; checked before the first call.
            warm: Let the first new item get its first reply before the others start, so that a
                shared prompt prefix is cached once.
            skip_failed: Give a TaskFailure in the place of an item that failed, now or before.

        Raises:
            StepFailed: Items failed; the others were finished first.
        """
        _whole_number(version)
        work = tasks.Work(name, list(items), body, [], self._child, version, warm=warm, skip_failed=skip_failed)
        work.lineage = self._lineage
        work.keys.extend(str(key(item)) for item in work.items)
        with self._leaving():
            return tasks.run(self._running, self._scope, self._seen, work)

    def note(self, text: str) -> None:
        """Tell the person something; not recorded."""
        self._running.emit("note", text=text)

    def stop(self, message: str) -> None:
        """Leave the run here, resumable (stopped_as_asked).

        Raises:
            Pause: Always.
        """
        cause = PipelineError(message)
        self._running.stop.request("stopped_as_asked", cause)
        with self._leaving():
            raise Pause("stopped_as_asked", cause)

    @contextmanager
    def _leaving(self) -> Iterator[None]:
        """Keeps a pause for the engine, which a body may swallow."""
        try:
            yield
        except Pause as pause:
            self._scope.paused = self._scope.paused or pause
            raise

    def _child(self, scope: Scope) -> StepContext:
        return StepContext(self._running, scope, self._seen, self._lineage)

    def _tracked(self, data: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
        return Tracked(data, prefix, self._scope.reads)

    def _pin(self, name: str, read: str) -> Any:
        value = self._running.sources.pinned(name)
        self._note_read(read)
        return value

    def _note_read(self, name: str) -> None:
        if name not in self._scope.reads:
            self._scope.reads[name] = self._running.sources.hash(name, self._seen)
