"""What a worker does with a task: own its part, run its body, and record the end there before it answers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.clock import Clock, SystemClock
from pipeline.engine import tasks
from pipeline.engine.call_setup import caller_of
from pipeline.engine.contexts import Contexts, Lineage
from pipeline.engine.events import Emitter
from pipeline.engine.map_runner import MapRunner, own_part
from pipeline.engine.pace import Pace
from pipeline.engine.recorder import Recorder
from pipeline.engine.remote.messages import (
    CLOSED,
    ENDED,
    NEEDS,
    Answer,
    HeardStop,
    Notices,
    SharedCoolDown,
    paused,
    refused,
)
from pipeline.engine.remote.parcels import ProcessCache, Tools, own_url, resolve, unpacked
from pipeline.engine.setup import ActiveRun, Setup, host
from pipeline.engine.sources import Scope, Sources, fact_at
from pipeline.engine.step import StepContext
from pipeline.engine.store_limits import left_open, settle_slices
from pipeline.engine.takeover import record_repairs
from pipeline.errors import BudgetExceeded, ConfigError, Pause, PipelineError
from pipeline.graph.model import Graph
from pipeline.llm.forms import typed
from pipeline.records import kinds
from pipeline.records.fold import Builder
from pipeline.records.kinds import FORMAT, RunEnded, TaskCompleted, TaskTaken
from pipeline.records.run import RunState, TaskRun, TaskTable
from pipeline.store.base import Journal, Store
from pipeline.store.parts import part_records
from pipeline.store.reader import records

_CLOCK = SystemClock()
#: By URL of the store; by URL, run and seq; what was learnt of the provider's limits, by URL and run (runs of other
#: stores may have the same name).
_stores: ProcessCache[str, Store] = ProcessCache(math.inf)
_states: ProcessCache[tuple[str, str, int], RunState] = ProcessCache()
_paces: ProcessCache[tuple[str, str], Pace] = ProcessCache()

#: What a task can see and nothing in it changes.
_SHARED = (
    "pipeline", "params", "identity", "execution", "pins", "parent", "host", "product", "status", "detail",
    "started_at", "seq", "steps", "visits", "context", "imported", "resumes", "inherited", "decisions",
)  # fmt: skip


class PartRecorder(Recorder):
    """A recorder of a part: it has no head of its own."""

    def _write_head(self, *, durable: bool) -> None:
        self._head_due = math.inf


def run_task(spec: Mapping[str, Any]) -> Answer:
    """Bring one task to a recorded end in its part, or answer why not; see messages.py.

    Another worker on the same task is waited for; what it recorded is used.

    Args:
        spec: As coordinator.py makes it.
    """
    try:
        return _run(spec, _CLOCK)
    except Pause as pause:
        return paused(pause)
    except PipelineError as error:
        return refused(error)


def _run(spec: Mapping[str, Any], clock: Clock) -> Answer:
    if spec.get("format") != FORMAT:
        raise ConfigError(
            "The worker runs another version of this program than the process that started the run.",
            code="version_mismatch", hint="Install the same version on every worker.",
        )  # fmt: skip
    url = spec["store"]
    store = _stores.get(url, lambda: resolve(spec["opener"])(own_url(url), clock))
    stop = HeardStop(clock, Notices(store, spec["run"], spec["owner"], clock))
    journal = own_part(store, f"{spec['run']}/{spec['part']}", stop)
    try:
        return _PartTask(spec, store, journal, clock, stop, unpacked(spec["tools"])).run()
    finally:
        journal.close()


@dataclass(frozen=True, slots=True)
class _PartTask:
    """One task whose part this worker owns."""

    _spec: Mapping[str, Any]
    _store: Store
    _journal: Journal
    _clock: Clock
    _stop: HeardStop
    _tools: Tools

    def run(self) -> Answer:
        """Do what is missing."""
        spec, store = self._spec, self._store
        url, run, path, task, seq = spec["store"], spec["run"], spec["path"], spec["task"], spec["base"]
        base = _states.get((url, run, seq), lambda: state_at(store, run, seq))
        builder = part_of(base, store, path, task, spec["attempt"])
        # Those of now: the base may be older than the resume that changed them. `base` itself is shared.
        builder.state.execution = {**base.execution, "labels": self._spec["labels"]}
        for record in part_records(store, run, spec["part"]):
            builder.apply(record)
            if isinstance(record.fact, RunEnded):
                return {"how": CLOSED}
        if task in builder.state.tasks[path]:
            return {"how": ENDED}
        running = self._running(builder)
        scope = Scope(path, None, spec["step_attempt"])
        try:
            tasks.run(running, scope, spec["seen"], self._work(running, base), [spec["key"]])
        except Pause as pause:
            return _needs(pause) if spec["usd"] is not None and _lacks_room(pause) else paused(pause)
        finally:
            if running.caller is not None:
                running.caller.ledger.ceiling.close()
        return {"how": ENDED}

    def _running(self, builder: Builder) -> ActiveRun:
        """Return what the body works with; from here on the part names this worker as its owner."""
        spec, tools, clock, stop = self._spec, self._tools, self._clock, self._stop
        emit = Emitter(clock)
        recorder = PartRecorder(self._journal, builder, clock, owner=0, nodes=(), warn=lambda text: None)
        record_repairs(self._journal, recorder)
        left = left_open(self._store, self._store.account(), self._journal.run_id, builder.state)
        recorder.owner = recorder.append(TaskTaken(spec["path"], spec["task"], spec["attempt"], host()))
        options = {**spec["options"], "max_cost_usd": spec["usd"]}
        setup = Setup(
            self._store, clock, emit, options, tools.model, tools.info, tools.prices, services=tools.services,
            policy=tools.policy,
        )  # fmt: skip
        # What workers that died over this task had reserved of the store's limits, and did not use.
        settle_slices(self._store, setup.account, self._journal.run_id, left)
        sources = Sources(recorder, self._store)
        running = ActiveRun(recorder, sources, clock, emit, stop, options, self._store, services=tools.services)
        running.maps = MapRunner(running)
        key = (spec["store"], spec["run"])
        made = caller_of(setup, recorder, sources.values, stop, like=_paces.find(key))
        if made is not None:
            _paces.get(key, lambda: made.pace)
            shared = SharedCoolDown(clock, stop, emit, stop.notices)
            stop.pass_to(shared.hear)
            running.caller = replace(made, cool_down=shared)
        return running

    def _work(self, running: ActiveRun, base: RunState) -> tasks.Work:
        spec = self._spec
        graph = Graph.from_json(json.loads(self._journal.get_blob(base.pins["graph"])))
        contexts = Contexts(graph, base, self._tools.reducers)
        lineage = Lineage(graph, contexts, spec["node"], spec["visit"], spec["consumed"])

        def context(scope: Scope) -> StepContext:
            return StepContext(running, scope, spec["seen"], lineage)

        body, item = resolve(spec["body"]), spec["item"]
        if spec["form"] is not None:
            item = typed(item, resolve(spec["form"]))
        return tasks.Work(spec["map"], [item], body, context, spec["version"], skip_failed=True)


def _lacks_room(pause: Pause) -> bool:
    """Return whether it paused because what was granted to the task is used up, not because the store's limits are."""
    cause = pause.cause
    return pause.detail == "paused_budget" and isinstance(cause, BudgetExceeded) and "worst" in cause.data


def _needs(pause: Pause) -> Answer:
    """Return what the task's calls have cost at worst, and what its next one may; None: unknown."""
    data = pause.cause.data
    known = "None" not in (data["spent"], data["worst"])
    return {"how": NEEDS, "spent": data["spent"] if known else None, "worst": data["worst"] if known else None}


def state_at(store: Store, run: str, seq: int) -> RunState:
    """Return a run as it was at that seq, for several tasks to read.

    Raises:
        RunNotFound: There is no such run in this store.
    """
    builder = Builder(run)
    for record in records(store, run):
        if record.seq > seq:
            break
        builder.apply(record)
    return builder.state


def part_of(base: RunState, store: Store, path: str, task: str, attempt: int) -> Builder:
    """Return the fold of a task's part as it begins: what the run knew, except for its money.

    Replies of this attempt that the run recorded answer it for free.
    """
    builder = Builder(base.run_id)
    state = builder.state
    for name in _SHARED:
        setattr(state, name, getattr(base, name))
    inner = f"{task}/"

    def mine(key: tuple[Any, ...]) -> bool:
        return bool(key[0] == path and key[1] is not None and (key[1] == task or str(key[1]).startswith(inner)))

    state.tasks = dict(base.tasks)
    known = base.tasks.get(path, {})
    state.tasks[path] = TaskTable(
        {name: _whole(known[name], base.run_id, store) for name in known if name.startswith(inner)}
    )
    state.attempts = {key: number for key, number in base.attempts.items() if mine(key)}
    state.attempts[path, task] = attempt
    state.heard_from = {key: number for key, number in base.heard_from.items() if mine(key)}
    state.memo = {
        key: {ask: list(tries) for ask, tries in asks.items()} for key, asks in base.memo.items() if mine(key)
    }
    state.recalled = {key: dict(asks) for key, asks in base.recalled.items() if mine(key)}
    state.unknown_tasks = {key for key in base.unknown_tasks if mine(key)}
    state.remarks = {
        key: remark if remark.value is not None or not remark.seq
        else remark._replace(value=_read(store, base.run_id, remark.seq), seq=0)
        for key, remark in base.remarks.items() if mine(key)
    }  # fmt: skip
    return builder


def _whole(run: TaskRun, run_id: str, store: Store) -> TaskRun:
    """Return a finished task with its value in it: its seq means nothing in the part."""
    known = run.value is not None or run.error is not None
    return run if known else kinds.replace(run, value=_read(store, run_id, run.seq))


def _read(store: Store, run_id: str, seq: int) -> bytes | None:
    fact = fact_at(store, run_id, seq)
    return fact.value if isinstance(fact, TaskCompleted) else None
