"""What a step or task body gets (StepContext): everything it reads is noted, everything it buys is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from pipeline.engine import people, preflight, tasks
from pipeline.engine.answers import check_request, typed_answer
from pipeline.engine.contexts import Arrival, Lineage
from pipeline.engine.memory import StepMemory
from pipeline.engine.people import Answer, Question
from pipeline.engine.setup import ActiveRun, check_body, check_effect, check_version
from pipeline.engine.setup import Outcome as Outcome
from pipeline.engine.setup import StepFunction as StepFunction
from pipeline.engine.setup import StepSpec as StepSpec
from pipeline.engine.setup import step as step
from pipeline.engine.sources import Outputs, Scope, Tracked, tries_of
from pipeline.errors import ConfigError, Pause, PipelineError
from pipeline.graph.model import Graph, Node
from pipeline.llm.base import Reply, Request
from pipeline.records.reviews import ReviewState
from pipeline.records.run import StepRun
from pipeline.records.values import canonical, decode_value

Value = TypeVar("Value")


@dataclass(slots=True)
class StepContext:
    """A body's window on its run: everything it reads is noted, everything it buys is recorded."""

    _running: ActiveRun
    _scope: Scope
    _seen: Mapping[str, Any]
    _lineage: Lineage
    #: Artifacts saved so far: name → hash.
    saved: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Return the path of this visit: `node#visit`."""
        return self._scope.path

    @property
    def visit(self) -> int:
        """Return which visit of its node this is, from 1."""
        return self._lineage.visit

    @property
    def attempt(self) -> int:
        """Return which attempt of the visit (or of the task) this is, from 1."""
        return self._scope.attempt

    @property
    def place(self) -> VisitPlace:
        """Return where this visit is in its graph and what led to it; for handlers of graph formats."""
        return VisitPlace(self)

    @property
    def remark(self) -> tuple[str, Any] | None:
        """Return a person's note on what to change in this task, and its former value; None: it is not made again."""
        if self._scope.task is None:
            return None
        with self._running.recorder.reading() as state:
            found = state.remarks.get((self._scope.path, self._scope.task))
        if found is None:
            return None
        values = self._running.sources.values
        if found.value is not None:
            return found.note, values.get(decode_value(found.value))
        return found.note, values.at(found.seq) if found.seq else None

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the run's parameters."""
        return self._tracked(self._running.sources.state.params, "params")

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return identity settings (model, effort, author, …)."""
        return self._tracked(self._running.sources.state.identity, "settings")

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the execution settings; they do not decide what the work is, so reading them is not noted."""
        return self._running.options

    @property
    def context(self) -> Mapping[str, Any]:
        """Return the run's context as it was when this node was activated."""
        return self._tracked(self._seen, "context")

    @property
    def outputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Return outputs of completed steps, by step."""
        return Outputs(self._running.sources, self._scope.reads)

    @property
    def services(self) -> Mapping[str, Any]:
        """Return what the application lends to its steps (the publisher, …)."""
        return self._running.services

    def prompt(self, name: str) -> str:
        """Return the text of a pinned prompt template."""
        return str(self._pin(f"prompt:{name}", f"prompt.{name}"))

    def pin(self, name: str) -> Any:
        """Return a JSON value the run is pinned to (the catalogue, …)."""
        return self._pin(name, f"pin.{name}")

    def load(self, name: str) -> Any:
        """Return the newest artifact of that name, saved by a completed step."""
        self._note_read(f"artifact.{name}")
        return self._running.sources.load(name)

    def save(self, name: str, value: Any) -> str:
        """Keep a JSON value beside the outputs; return the hash of its canonical form."""
        blob = self._running.recorder.put_blob(canonical(value, name))
        self.saved[name] = blob
        return blob

    @overload
    def ask(self, request: Request, *, instead_of: Request | None = None) -> Reply: ...
    @overload
    def ask(
        self, request: Request, *, returns: type[Value], tries: int = 3, instead_of: Request | None = None
    ) -> Value: ...
    @overload
    def ask(
        self, request: Request, *, returns: Mapping[str, Any], tries: int = 3, instead_of: Request | None = None
    ) -> Any: ...
    def ask(self, request: Request, *, returns: Any = None, tries: int = 3, instead_of: Request | None = None) -> Any:
        """Return the model's reply to a request; recorded, so free when this body runs again.

        Args:
            returns: A pydantic model, a dataclass or a JSON schema: what the answer shall be, and comes back as. It is
                sent as the request's schema; an answer that does not fit is asked for again with what is wrong.
            tries: How often it is asked at most, where the answer has a form.
            instead_of: A request whose newest reply is of no use: once the task is done, its cost counts as rejected.

        Raises:
            Pause: The run has no model: it stops at once, since each of its asks would fail alike.
            ModelTruncated, ModelRejected: See Caller.ask. Pauses pass through.
            ModelRefused, TaskRejected: With `returns`: the model declined, or no answer fits.
        """
        check_request(request)
        if returns is None:
            return self._asked(request, instead_of)
        return typed_answer(self._asked, self._scope, request, returns, tries, instead_of)

    def _asked(self, request: Request, instead_of: Request | None) -> Reply:
        if self._running.caller is None:
            self._running.stop.pause("failed", preflight.no_model())
        if instead_of is not None:
            key = instead_of.hash()
            self._scope.rejected.append((key, str(self._scope.counts.get(key, 1))))
        with self._leaving():
            return self._running.caller.ask(self._scope, request)

    def answered(self, request: Request) -> bool:
        """Return whether this attempt has a recorded reply to a request, or waits for one from a batch: it is free."""
        n = self._scope.counts.get(request.hash(), 0) + 1
        with self._running.recorder.reading() as state:
            tries = tries_of(state.memo.get(self._scope.slot(state), {}), request, n, self._running.sources.values)
            return any(call.usable or (call.batch and not call.ended) for call in tries)

    def ask_person(
        self,
        text: str,
        choices: Sequence[str] = (),
        shown: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
        otherwise: str = "",
    ) -> Answer:
        """Return the answer of a person or agent; a recorded answer to exactly this question is used.

        Args:
            choices: What may be answered; none: any text.
            shown: What is shown beside the question; JSON.
            seconds: So long after it was first asked, the answer is `otherwise`, by "timeout"; None: never.

        Raises:
            Pause: No person can be asked here: the run waits (waiting_for_human) until it is answered.
        """
        run = self._running.recorder.state.run_id
        question = Question(run, self.path, text, list(choices), dict(shown or {}), seconds)
        with self._leaving():
            return people.ask(self._running, question, otherwise)

    @property
    def memory(self) -> StepMemory:
        """Return the user's memory (services["memory"]): what is read is recorded, what is written is applied once.

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
        """Run one durable task and return its value, or the recorded one.

        Args:
            key: Unique within the step.
            effect: "write" or "external" tasks are recorded before they act; one whose end is
                unknown is not repeated unless `repeatable`.

        Raises:
            StepFailed: The task failed; the others are kept.
        """
        work = tasks.Work(key, [item], body, self._child, version, effect=effect, repeatable=repeatable, single=True)
        return self._run(work, [key])[0]

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
        """Return the body's value for each item, in item order; finished items are not run again.

        Args:
            key: A unique text for an item; checked before the first call.
            warm: Let the first new item get its first reply before the others start, so that a
                shared prompt prefix is cached once.
            skip_failed: Give a TaskFailure in the place of an item that failed, now or before.

        Raises:
            StepFailed: Items failed; the others were finished first.
        """
        check_body(key, f"key of map {name!r}", "item")
        if isinstance(items, str) or not isinstance(items, Iterable):
            text = f"The items of map {name!r} are {items!r:.60}; they must be a list, or the like."
            hint = "Write range(n) for n items, text.splitlines() for the lines of a text, list(text) for its letters."
            raise ConfigError(text, code="invalid_items", hint=hint)
        found = items if isinstance(items, (tuple, range)) else list(items)
        work = tasks.Work(name, found, body, self._child, version, warm=warm, skip_failed=skip_failed)
        work.lineage = self._lineage
        return self._run(work, (str(key(item)) for item in found))

    def note(self, text: str) -> None:
        """Tell the person something; not recorded."""
        self._running.emit.note(text)

    def stop(self, message: str) -> None:
        """Leave the run here, resumable (stopped_as_asked).

        Raises:
            Pause: Always.
        """
        with self._leaving():
            self._running.stop.pause("stopped_as_asked", PipelineError(message, code="stopped_as_asked"))

    def _run(self, work: tasks.Work, keys: Iterable[str]) -> Sequence[Any]:
        check_version(work.version)
        check_effect(work.effect)
        if not isinstance(work.name, str):
            text = f"A task or map is named by a text, not by a {type(work.name).__name__}."
            raise ConfigError(text, code="invalid_name", hint="Write ctx.map(NAME, items, body, key=…).")
        check_body(work.body, f"{work.name!r}", "ctx", "item")
        with self._leaving():
            return tasks.run(self._running, self._scope, self._seen, work, keys)

    @contextmanager
    def _leaving(self) -> Iterator[None]:
        """Keep a pause for the engine, in case the body swallows it."""
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


@dataclass(frozen=True, slots=True)
class VisitPlace:
    """Where a visit is in its graph and what led to it; for handlers of graph formats."""

    _ctx: StepContext

    @property
    def node(self) -> Node:
        """Return the node, with its attributes."""
        return self._ctx._lineage.graph.nodes[self._ctx._lineage.node]

    @property
    def graph(self) -> Graph:
        """Return the graph that runs."""
        return self._ctx._lineage.graph

    @property
    def seen(self) -> Mapping[str, Any]:
        """Return the context as it was when this node was activated, as one value; reading it is noted once."""
        self._ctx._note_read("context")
        return self._ctx._seen

    @property
    def arrivals(self) -> list[Arrival]:
        """Return the tokens this visit consumed, in order of their edges' declaration."""
        self._ctx._note_read("arrivals")
        return self._ctx._lineage.arrivals(self._ctx._running.recorder, self._ctx._running.sources.values.get)

    def ancestors(self) -> list[StepRun]:
        """Return the visits this one descends from, oldest first, always in the same order; values as recorded."""
        self._ctx._note_read("ancestors")
        with self._ctx._running.recorder.reading():
            return self._ctx._lineage.contexts.ancestors(self._ctx._lineage.consumed)

    def nearest(self, most: int) -> list[StepRun]:
        """Return the visits this one descends from, nearest first, at most so many."""
        self._ctx._note_read("ancestors")
        with self._ctx._running.recorder.reading():
            return self._ctx._lineage.contexts.nearest(self._ctx._lineage.consumed, most)

    @property
    def consumed(self) -> list[Sequence[str]]:
        """Return (edge id, path of the visit that chose it) of each consumed token, in the edges' order."""
        return self._ctx._lineage.contexts.ordered(self._ctx._lineage.consumed)

    def standings(self, node: str) -> dict[str, ReviewState]:
        """Return how what the tasks of a node's newest visit made stands after all that people decided, by task.

        What they decided so far is recorded first. What was read is not tracked: the records show
        whether more was decided since.
        """
        running = self._ctx._running
        people.take_in(running.recorder, running.store)
        with running.recorder.reading() as state:
            visits = [step.path for step in state.steps.values() if step.node == node]
            return people.standings(state, visits[-1]) if visits else {}

    @property
    def resumed_at(self) -> int:
        """Return the seq up to which work was recorded before the run was last resumed; 0: it never was."""
        state = self._ctx._running.sources.state
        if state.resumes:
            return state.owner
        # A document of another system is the record after the first.
        return state.owner + 1 if state.imported else 0

    def recorded(self, value: Any) -> Any:
        """Return a value of an ancestor, read back where it is a reference to a blob."""
        return self._ctx._running.sources.values.get(value)

    def answered_requests(self) -> list[Request]:
        """Return the requests that this attempt has a recorded reply to, as they were sent; asking them is free."""
        running, scope = self._ctx._running, self._ctx._scope
        mine = (scope.path, scope.task, scope.attempt)
        with running.recorder.reading() as state:
            seqs = [call.seq for tries in state.memo.get(mine, {}).values() for call in tries if call.usable]
        return [found for seq in seqs if (found := running.sources.values.request(seq)) is not None]
