"""A run's stored graph run again in memory on its recorded replies alone, and the first thing that comes out otherwise.

Steps that act outside, and people's gates, are not run: they give what is recorded. After a difference the replay goes
on as recorded, so that the next one is not only its consequence.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pipeline.clock import SystemClock, iso
from pipeline.cost.prices import PriceBook
from pipeline.engine.amendment import pinned_graph
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.routing import Route, Settled, by_label
from pipeline.engine.setup import UNSAFE, Definition, Setup
from pipeline.engine.sources import UNCHANGED, Scope
from pipeline.engine.step import Outcome, StepContext, StepSpec
from pipeline.engine.tasks import error_facts, failures
from pipeline.errors import Pause
from pipeline.graph.model import FAILURES, Graph
from pipeline.llm.base import Request
from pipeline.llm.script import ScriptedModel
from pipeline.records.codec import lines_of
from pipeline.records.run import RunState, StepRun, bare
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.records.values import canonical, decode_value, digest, encode_value
from pipeline.store.base import Store
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.travel.differences import first
from pipeline.travel.recorded_run import Recording
from pipeline.travel.stand_ins import AbsentPerson, InstantClock, NotRecorded, ReplayContext, VisitOrder
from pipeline.travel.values import Reader

#: Effects that a replay does not have.
NOT_RUN = UNSAFE | {"human"}
_NOT_KEPT = ("until", "batch", "batch_min", "batch_poll", "no_wait", "max_cost_usd", "day_limit_usd")


class Difference(NamedTuple):
    """One thing that came out otherwise."""

    #: Where: a visit as people name it, or one of its items (`lessons/lessons/7`).
    path: str
    #: Which part of it: `outputs.total`, `context.k`, `edges`, `call lesson: messages[0].text`, …
    key: str
    recorded: Any
    now: Any
    #: seq of the recorded end of the visit: differences are ordered by it.
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a replay went."""

    run_id: str
    #: Up to which record.
    seq: int
    #: Visits that were run again, and those that gave what is recorded.
    again: int
    taken: tuple[str, ...]
    #: Replies that answered.
    replies: int
    differences: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        """Return whether all came out as recorded."""
        return not self.differences


def replay(
    store: Store,
    run_id: str,
    definition: Definition,
    *,
    to: str | int = "end",
    services: Mapping[str, Any] | None = None,
) -> Replayed:
    """Run a run's stored graph on its recorded replies; no model is asked and nothing acts outside.

    Args:
        definition: The code of its steps. The graph is the stored one.
        to: Up to which point: seq, checkpoint id, STEP, "end".
        services: What stands in for services of the run that steps look for.

    Raises:
        RunNotFound: No such run or point.
        CheckpointCorrupt: A recorded value is damaged.
    """
    recording = Recording.of(store, run_id, to)
    # A run taken over from another system's document holds none.
    graph = pinned_graph(store, recording.final) or definition.graph
    return _Replay(recording, graph, definition, services or {}).run()


class _Replay:
    """One replay going on."""

    def __init__(self, recording: Recording, graph: Graph, definition: Definition, lent: Mapping[str, Any]) -> None:
        self._recording = recording
        self._lent = lent
        self._visits = recording.visits
        self._reader = recording.reader
        # How many ran at once decided nothing; here they go one after the other.
        nodes = [dataclasses.replace(node, attributes=_unbounded(node.attributes)) for node in graph.nodes.values()]
        self._graph = Graph.of(nodes, graph.edges, graph.start)
        self._definition = definition
        self._order = VisitOrder(list(self._visits))
        self._found: list[Difference] = []
        #: Visits that go on as recorded, whatever came out; and those that were not run at all.
        self._forced: set[str] = set()
        self._taken: list[str] = []
        self._scopes: list[Scope] = []
        self._store = MemoryStore(SystemClock())
        self._run = ""

    def run(self) -> Replayed:
        final = self._recording.final
        facts, blobs = self._recording.beginning(digest(canonical(self._graph.to_json())))
        now = SystemClock().now()
        blobs = [*blobs, canonical(self._graph.to_json())]
        self._run, journal = self._store.create(b"".join(lines_of(facts, iso(now))), blobs, at=now)
        journal.close()
        steps = {name: self._step(name) for name in self._graph.nodes}
        what = Definition(final.pipeline, self._graph, steps, self._definition.reducers, self._route)
        result = Engine(what, self._setup()).resume(self._run)
        state = load(self._store, self._run)
        if result.detail is not None:
            self._tell("", "end", None, f"{result.detail}: {result.error}")
        self._compare_ways(state)
        answered = sum(call.usable for call in self._recording.tries)
        found = sorted(self._found, key=lambda difference: difference.seq)
        again = len([path for path in self._visits if path not in self._taken])
        return Replayed(final.run_id, self._recording.seq, again, tuple(self._taken), answered, tuple(found))

    def _setup(self) -> Setup:
        final = self._recording.final
        options = {key: value for key, value in final.execution.items() if key not in _NOT_KEPT}
        clock = InstantClock()
        setup = Setup(self._store, clock, Emitter(clock), {**options, "concurrency": 1})
        model, author = str(final.identity.get("model") or ""), str(final.identity.get("author") or "model")
        if model:
            # It is asked only what the records do not answer, costs nothing, and tells.
            setup.model = ScriptedModel(self._unasked, model_id=model, author=author)
            setup.info, setup.prices = setup.model.check(), PriceBook()
        person = AbsentPerson(self._unknown)
        setup.services = {"memory": self._recording.recalled, **self._lent, "interviewer": person}
        setup.hook = self._order
        setup.yes = True
        return setup

    # Steps

    def _step(self, name: str) -> StepSpec:
        return StepSpec(name, partial(self._visit, self._definition.steps.get(name)), self._graph.nodes[name].version)

    def _visit(self, spec: StepSpec | None, ctx: StepContext) -> Any:
        """Return what a visit gives: what its body makes of the record, or what is recorded."""
        path = ctx.path
        visit = self._visits.get(path)
        if visit is None:
            raise NotRecorded(f"{bare(path)} had not ended.")
        self._order.wait(path)
        if spec is None or spec.effect in NOT_RUN or path in self._recording.faults or visit.reason == UNCHANGED:
            self._taken.append(path)
            if spec is None:
                self._tell(path, "code", "a step", None)
            return self._as_recorded(visit)
        before = len(self._found)
        result = self._body(spec, ctx, visit)
        return self._as_recorded(visit) if len(self._found) > before else result

    def _body(self, spec: StepSpec, ctx: StepContext, visit: StepRun) -> Any:
        careful = ReplayContext.around(ctx, self._known_task, self._scopes)
        try:
            result = spec.run(careful)
        except (Pause, KeyboardInterrupt):
            self._order.abandon()
            raise
        except failures() as error:
            if visit.status == FAILED:
                raise
            self._tell(visit.path, "error", None, error_facts(error).get("message"))
            return None
        self._compare_items(visit.path)
        if _raised(visit) and not (isinstance(result, Outcome) and result.error):
            self._tell(visit.path, "error", (visit.error or {}).get("message"), None)
            return None
        self._compare_made(visit, ctx, result.outputs if isinstance(result, Outcome) else result)
        return result

    def _as_recorded(self, visit: StepRun) -> Outcome:
        self._forced.add(visit.path)
        context = {key: self._reader.whole(value) for key, value in visit.context.items()}
        error = visit.error if visit.status == FAILED else None
        return Outcome(self._reader.whole(visit.outputs), visit.outcome, context, error)

    def _known_task(self, path: str, task: str) -> Any:
        done = self._recording.final.tasks.get(path, {}).get(task)
        if done is None or done.status != COMPLETED:
            raise NotRecorded(f"The records hold no value of {bare(path)}/{task}.")
        return self._reader.task(path, task, done)

    # Routes

    def _route(self, settled: Settled) -> Route:
        """Return the recorded way on; the one that is chosen now is compared with it."""
        visit = self._visits.get(settled.path)
        if visit is None:
            return Route(failed=True)
        recorded = Route(visit.edges, visit.outcome, visit.status == FAILED, visit.error, reason=visit.reason)
        if settled.path in self._forced:
            return recorded
        route = (self._definition.router or by_label)(settled)
        self._compare_route(visit, settled, route)
        return dataclasses.replace(recorded, context=route.context)

    # What is compared

    def _compare_made(self, visit: StepRun, ctx: StepContext, outputs: Any) -> None:
        if isinstance(outputs, Mapping) or outputs is None:
            now = decode_value(encode_value(dict(outputs or {})))
            self._compare(visit.path, "outputs", self._reader.whole(visit.outputs), now)
        for name in dict.fromkeys((*visit.artifacts, *ctx.saved)):
            before, after = visit.artifacts.get(name), ctx.saved.get(name)
            if before != after:
                there = None if before is None else self._reader.blob(before)
                here = None if after is None else json.loads(self._store.get_blob(self._run, after))
                self._compare(visit.path, f"artifact {name}", there, here)

    def _compare_items(self, path: str) -> None:
        with self._order.recorder.reading() as state:
            now = dict(state.tasks.get(path, {}))
        recorded = self._recording.final.tasks.get(path, {})
        for key, task in now.items():
            known = recorded.get(key)
            name = f"{path}/{key}"
            if known is None:
                self._tell(path, f"item {key}", None, task.status)
            elif known.status != task.status:
                self._tell(path, f"item {key}", known.status, (task.error or {}).get("message") or task.status)
            elif known.hash != task.hash:
                there = self._reader.task(path, key, known)
                self._compare(path, f"item {key}", there, Reader(self._store, self._run).task(path, key, task), name)

    def _compare_route(self, visit: StepRun, settled: Settled, route: Route) -> None:
        path = visit.path
        outcome = settled.outcome if route.outcome is None else route.outcome
        failed = settled.failed if route.failed is None else route.failed
        context = {key: self._reader.whole(value) for key, value in visit.context.items()}
        self._compare(path, "context", context, {**settled.changes, **decode_value(encode_value(dict(route.context)))})
        self._compare(path, "outcome", visit.outcome, outcome)
        self._compare(path, "status", visit.status, FAILED if failed else COMPLETED)
        if failed and visit.status == FAILED:
            error = route.error or settled.error or {}
            self._compare(path, "error", (visit.error or {}).get("message"), error.get("message"))
        now = ["(tried again)"] if route.retry_seconds is not None else list(route.edges)
        self._compare(path, "edges", list(visit.edges), now)

    def _compare_ways(self, state: RunState) -> None:
        """Note which visits came up, from where, and what was left to do."""
        for path, visit in self._visits.items():
            step = state.steps.get(path)
            if step is None or not step.ended_seq:
                self._tell(path, "visit", "ended", None)
            else:
                self._compare(path, "came from", _pairs(visit), _pairs(step))
        if not self._found:
            ahead = _ahead(self._recording.final, self._visits), _ahead(state, self._visits)
            self._compare("", "edges left", *ahead)

    def _compare(self, path: str, key: str, recorded: Any, now: Any, name: str = "") -> None:
        change = first(recorded, now)
        if change is not None:
            place = change.place if not change.place or change.place.startswith("[") else f".{change.place}"
            self._tell(path, key + place, change.before, change.after)

    def _tell(self, path: str, key: str, recorded: Any, now: Any) -> None:
        visit = self._visits.get(path)
        self._found.append(Difference(bare(path), key, recorded, now, visit.ended_seq if visit else 0))

    def _unknown(self, path: str, task: str | None, key: str, now: Any) -> None:
        self._tell(path, key if task is None else f"item {task}: {key}", None, now)

    def _unasked(self, request: Request) -> str:
        """Tell of a request that is not in the record, in the place of an answer."""
        self._tell_request(request)
        raise NotRecorded("The records hold no reply to this request.")

    def _tell_request(self, request: Request) -> None:
        """Tell where a request differs from the one that is recorded."""
        scope = self._scopes[-1]
        known = self._recording.asked.get((scope.path, scope.task), [])
        alike = [asked for asked in known if asked.label == request.label]
        item = f"item {scope.task}: " if scope.task else ""
        key = f"{item}call {request.label}"
        if not alike:
            self._tell(scope.path, key, None, request.messages[-1].text if request.messages else "")
            return
        now = _seen(request.to_json())
        changes = [first(_seen(self._reader.blob(asked.request)), now) for asked in alike]
        change = next((change for change in changes if change is not None), None)
        place = f".{change.place}" if change is not None and change.place else ""
        self._tell(scope.path, key + place, change and change.before, change and change.after)


def _raised(visit: StepRun) -> bool:
    """Return whether a visit's body had raised an error, instead of returning an outcome that says failure."""
    return visit.status == FAILED and not visit.outputs and visit.outcome in FAILURES


def _seen(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the model sees of a stored request."""
    return {key: request.get(key) for key in ("model", "system", "messages", "schema_id", "schema_version", "effort")}


def _unbounded(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key != "max_parallel"}


def _pairs(step: StepRun) -> list[list[str]]:
    return sorted(list(token) for token in step.consumed)


def _ahead(state: RunState, done: Mapping[str, Any]) -> list[list[str]]:
    """Return edges chosen that no visit which ended has taken."""
    taken = {(edge, source) for path, step in state.steps.items() if path in done for edge, source in step.consumed}
    laid = [(edge, path) for path, step in state.steps.items() if path in done for edge in step.edges]
    return sorted([edge, source] for edge, source in laid if (edge, source) not in taken)
