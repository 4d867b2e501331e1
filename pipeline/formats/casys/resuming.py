"""What stands between a checkpoint and going on from it: which run, which DAG and settings, what is made again."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.amend import amend
from pipeline.engine.changes import Stale
from pipeline.engine.setup import host
from pipeline.errors import CheckpointCorrupt, RunNotFound, SettingsConflict
from pipeline.formats.casys import finding, given, reading
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.finding import Mark
from pipeline.formats.casys.ids import is_checkpoint_id
from pipeline.formats.casys.plan import dag_of, graph_of
from pipeline.formats.casys.views import done_tasks
from pipeline.graph.model import Graph
from pipeline.records.codec import decode_line
from pipeline.records.fold import fold
from pipeline.records.kinds import Fact, RunResumed, RunStarted, Snapshot
from pipeline.records.run import RunState, Spend
from pipeline.records.values import canonical, digest
from pipeline.store.base import Store
from pipeline.store.reading import load, records

_PINNING = (b'"kind":"run_started"', b'"kind":"run_resumed"')
_ENVELOPE = 120


@dataclass(frozen=True, slots=True)
class Ready:
    """A run that can be gone on with."""

    run_id: str
    #: As the run is pinned to them.
    graph: Graph
    config: Mapping[str, Any]
    #: Leading layers done by the newest checkpoint, and its id; None: there is none yet.
    saved: int
    checkpoint: str | None
    #: Tasks that were done after the checkpoint that was asked for: they are made again.
    again: Sequence[str] = ()


def ready(store: Store, clock: Clock, wanted: str, gates: Sequence[str]) -> Ready:
    """Find what a checkpoint id (or a run, or a workflow_id) means, and bring its run to where it stands.

    Of an executed run nothing that was recorded after its newest checkpoint is lost. A state saved by hand becomes
    the run's position.

    Args:
        gates: Kinds of gates for a run that has only been saved to.

    Raises:
        RunNotFound, CheckpointCorrupt, SchemaTooNew, RunLocked.
    """
    mark, run_id = _mark(store, wanted)
    by_hand = mark is not None and "state" in mark.document
    if mark is not None and by_hand:
        return _from_state(store, clock, mark, gates)
    if mark is not None:
        reading.check(store, mark)
    graph, config = _pinned(store, run_id)
    newest = finding.checkpoints_in(finding.marks(store, run_id))
    again: list[str] = []
    if mark is not None and newest and newest[0].seq > mark.seq:
        seq = mark.seq
        then = fold(run_id, takewhile(lambda record: record.seq <= seq, records(store, run_id)))
        again = _since(load(store, run_id), set(done_tasks(then, dag_of(graph))), dag_of(graph))
    base = mark if mark is not None and again else newest[0] if newest else None
    saved = int(base.document["layer_index"]) if base is not None else 0
    return Ready(run_id, graph, config, saved, None if base is None else base.id, again)


def _mark(store: Store, wanted: str) -> tuple[Mark | None, str]:
    if is_checkpoint_id(wanted.strip().lower()):
        mark = reading.find(store, wanted)
        return mark, mark.run_id
    run_id = finding.run_of(store, wanted)
    if run_id is None:
        raise RunNotFound(f"There is no checkpoint and no run {wanted!r}.", checkpoint=wanted)
    newest = finding.checkpoints_in(finding.marks(store, run_id))
    return (newest[0] if newest else None), run_id


def _from_state(store: Store, clock: Clock, mark: Mark, gates: Sequence[str]) -> Ready:
    """Make a state that was saved by hand the position of its run, unless the run has gone on from it already."""
    checkpoint = reading.read(store, mark)
    graph = graph_of(checkpoint.dag, gates)
    blob = given.keep_values(store, checkpoint, graph)
    known = Dag.of(checkpoint.dag)
    found: list[str] = []

    def decide(state: RunState) -> list[Fact]:
        if mark.seq < max((step.ended_seq for step in state.steps.values()), default=0):
            found.extend(_since(state, set(checkpoint.state.results()), known))
            return []
        pins = {"graph": digest(canonical(graph.to_json(), "dag"))}
        position = given.position(checkpoint, graph, blob, clock)
        return [RunResumed({}, host=host(), pins=pins), Snapshot(position, source="fork")]

    amend(store, mark.run_id, clock, decide)
    pinned, config = _pinned(store, mark.run_id)
    return Ready(mark.run_id, pinned, config or checkpoint.config, checkpoint.layers_done, mark.id, found)


def _since(state: RunState, then: Collection[str], dag: Dag) -> list[str]:
    return [name for name in done_tasks(state, dag) if name not in then]


def _pinned(store: Store, run_id: str) -> tuple[Graph, dict[str, Any]]:
    """The graph and settings that a run is pinned to, from the few records that can say so."""
    pins: dict[str, str] = {}
    for line in store.read(run_id):
        if any(kind in line[:_ENVELOPE] for kind in _PINNING):
            fact = decode_line(line, whole=not line.endswith(b"\n")).fact
            if isinstance(fact, RunStarted | RunResumed):
                pins.update(fact.pins or {})
    if "graph" not in pins:
        raise CheckpointCorrupt(f"Run {run_id} is no layered run, or its first record is damaged.", run=run_id)
    found = {name: json.loads(store.get_blob(run_id, pins[name])) for name in ("graph", "config") if name in pins}
    return Graph.from_json(found["graph"]), found.get("config", {})


def cost_of(state: RunState, tasks: Iterable[str]) -> Spend:
    """What tasks have cost so far."""
    names, total = set(tasks), Spend()
    for key, spend in state.spend.items():
        if key.step.partition("#")[0] in names:
            total.add(spend)
    return total


def refuse_repeats(state: RunState, tasks: Sequence[str], why: str) -> SettingsConflict:
    """The error that says which finished tasks would be made again, and what they cost."""
    spend = cost_of(state, tasks)
    low, high = spend.usd + spend.low, spend.usd + spend.high
    cost = _dollars(low) if low == high else f"{_dollars(low)} to {_dollars(high)}"
    unpriced = f" and {spend.unpriced} unpriced calls" if spend.unpriced else ""
    return SettingsConflict(
        f"{why} These finished tasks would be made again: {', '.join(tasks)}. They cost {cost}{unpriced} before.",
        hint="Resume without the change, or with accept_changes=True.",
        tasks=list(tasks),
        usd=str(spend.usd),
    )


def _dollars(amount: Decimal) -> str:
    return f"${amount:.2f}" if not amount or amount >= Decimal("0.01") else f"${amount:.4f}"


def changed_tasks(stale: Stale, dag: Dag) -> list[str]:
    """Tasks that are finished and do not stand after a change, in order of layers and declaration."""
    names = {path.rpartition("#")[0] for path in stale.steps}
    return [name for name in dag.in_order if name in names]


def free(spend: Spend) -> bool:
    """Whether work is known to have cost nothing."""
    return not (spend.usd or spend.high or spend.unpriced or spend.unbounded) and spend.low == Decimal(0)
