"""What a worker does with a task: own its part, run its body, and record the end there before it answers."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.clock import Clock, SystemClock
from pipeline.engine import tasks
from pipeline.engine.contexts import Contexts
from pipeline.engine.entries import Scope
from pipeline.engine.events import Emitter
from pipeline.engine.left import settle_left
from pipeline.engine.lineage import Lineage
from pipeline.engine.recorder import Recorder
from pipeline.engine.remote import paces
from pipeline.engine.remote.answers import CLOSED, ENDED, NEEDS, Answer, paused, refused
from pipeline.engine.remote.base import part_of, state_at
from pipeline.engine.remote.fleet import own_url
from pipeline.engine.remote.notices import LOOK_SECONDS, HeardStop, Notices, SharedCoolDown
from pipeline.engine.remote.references import resolve
from pipeline.engine.remote.tools import Tools, unpacked
from pipeline.engine.running import Running
from pipeline.engine.setup import Setup, host
from pipeline.engine.sources import Sources
from pipeline.engine.spender import caller
from pipeline.engine.step import StepContext
from pipeline.engine.stop import Stop
from pipeline.engine.takeover import record_repairs
from pipeline.errors import BudgetExceeded, ConfigError, Pause, PipelineError, RunLocked
from pipeline.graph.model import Graph
from pipeline.records.fold import Builder
from pipeline.records.kinds import FORMAT, RunEnded, TaskTaken
from pipeline.records.run import RunState
from pipeline.store.base import Journal, Store
from pipeline.store.parts import part_records

_lock = threading.Lock()
_stores: dict[str, Store] = {}
_CLOCK = SystemClock()


class PartRecorder(Recorder):
    """A recorder of a part: it has no head of its own."""

    def _write_head(self, *, durable: bool) -> None:
        self._head_due = math.inf


def run_task(spec: Mapping[str, Any]) -> Answer:
    """Bring one task to a recorded end in its part, or say why not; see answers.py.

    Whoever works on the same task elsewhere is waited for; what it recorded is used.

    Args:
        spec: As pool.py makes it.
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
            "The worker runs another version of this program than whoever started the run.",
            hint="Install the same version on every worker.",
        )
    store = _store(spec, clock)
    stop = HeardStop(clock, Notices(store, spec["run"], spec["owner"], clock))
    journal = _own(store, f"{spec['run']}/{spec['part']}", stop)
    try:
        return _Errand(spec, store, journal, clock, stop).run()
    finally:
        journal.close()


def _store(spec: Mapping[str, Any], clock: Clock) -> Store:
    """The store at the URL of a spec; a process opens each once."""
    url = spec["store"]
    with _lock:
        if url not in _stores:
            _stores[url] = resolve({**spec["opener"], "name": "open_store"})(own_url(url), clock)
        return _stores[url]


def _own(store: Store, part: str, stop: Stop) -> Journal:
    """Own a part, after whoever owns it now.

    Raises:
        Pause: The run is stopping.
    """
    while True:
        stop.check()
        try:
            return store.open(part)
        except RunLocked:
            stop.rest(LOOK_SECONDS)


class _Errand:
    """One go at one task, its part owned."""

    def __init__(self, spec: Mapping[str, Any], store: Store, journal: Journal, clock: Clock, stop: HeardStop) -> None:
        self._spec = spec
        self._store = store
        self._journal = journal
        self._clock = clock
        self._stop = stop
        self._tools: Tools = unpacked(spec["tools"])

    def run(self) -> Answer:
        """Do what is missing."""
        spec, store = self._spec, self._store
        path, task = spec["path"], spec["task"]
        base = state_at(store, spec["store"], spec["run"], spec["base"])
        builder = part_of(base, store, path, task, spec["attempt"])
        for record in part_records(store, spec["run"], spec["part"]):
            builder.apply(record)
            if isinstance(record.fact, RunEnded):
                return {"how": CLOSED}
        if task in builder.state.tasks[path]:
            return {"how": ENDED}
        running = self._running(builder)
        try:
            tasks.run(running, Scope(path, None, spec["step_attempt"]), spec["seen"], self._work(running, base))
        except Pause as pause:
            return _needs(pause) if spec["usd"] is not None and _lacks_room(pause) else paused(pause)
        finally:
            if running.caller is not None and running.caller.entries.ceiling.daily is not None:
                running.caller.entries.ceiling.daily.leave()
        return {"how": ENDED}

    def _running(self, builder: Builder) -> Running:
        """What the body works with; the part says from here on who works on it."""
        spec, tools, clock, stop = self._spec, self._tools, self._clock, self._stop
        emit = Emitter(clock)
        recorder = PartRecorder(self._journal, builder, clock, owner=0, nodes=(), warn=lambda text: None)
        record_repairs(self._journal, recorder)
        left = dict(builder.state.slices)
        recorder.owner = recorder.append(TaskTaken(spec["path"], spec["task"], spec["attempt"], host()))
        options = {**spec["options"], "max_cost_usd": spec["usd"]}
        setup = Setup(
            self._store, clock, emit, options, tools.model, tools.info, tools.prices, services=tools.services,
            policy=tools.policy,
        )  # fmt: skip
        if spec["account"]:
            setup.account = resolve({**spec["opener"], "name": "open_account"})(own_url(spec["store"]), clock)
            # What workers that died over this task had reserved of the day, and did not use.
            settle_left(self._store, setup.account, self._journal.run_id, left)
        sources = Sources(recorder, self._store)
        running = Running(recorder, sources, clock, emit, stop, options, services=tools.services)
        made = caller(setup, recorder, sources.values, stop, paces.known(spec["store"], spec["run"]))
        if made is not None:
            paces.keep(spec["store"], spec["run"], made.pace)
            shared = SharedCoolDown(clock, stop, emit, stop.notices)
            stop.pass_to(shared.hear)
            running.caller = replace(made, cool_down=shared)
        return running

    def _work(self, running: Running, base: RunState) -> tasks.Work:
        spec = self._spec
        graph = Graph.from_json(json.loads(self._journal.get_blob(base.pins["graph"])))
        contexts = Contexts(graph, base, self._tools.reducers)
        lineage = Lineage(graph, contexts, spec["node"], spec["visit"], spec["consumed"])

        def context(scope: Scope) -> StepContext:
            return StepContext(running, scope, spec["seen"], lineage)

        body = resolve(spec["body"])
        return tasks.Work(spec["map"], [spec["item"]], body, [spec["key"]], context, spec["version"], skip_failed=True)


def _lacks_room(pause: Pause) -> bool:
    """Whether it paused because what was granted to the task is used up, not because the day's limit is."""
    return (
        pause.detail == "paused_budget"
        and isinstance(pause.cause, BudgetExceeded)
        and "worst" in pause.cause.data
        and "daily" not in pause.cause.data
    )


def _needs(pause: Pause) -> Answer:
    """What the task's calls have cost at worst, and what its next one may; None: nobody knows."""
    data = pause.cause.data
    known = "None" not in (data["spent"], data["worst"])
    return {"how": NEEDS, "spent": data["spent"] if known else None, "worst": data["worst"] if known else None}
