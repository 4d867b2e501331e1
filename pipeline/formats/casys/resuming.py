"""What stands between a checkpoint and going on from it: which run, which DAG and settings, what is made again."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import takewhile
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.changes import Stale
from pipeline.errors import CheckpointCorrupt, RunNotFound, SettingsConflict
from pipeline.formats.casys import finding, given, reading
from pipeline.formats.casys.dag import Dag
from pipeline.formats.casys.finding import Mark
from pipeline.formats.casys.ids import is_checkpoint_id
from pipeline.formats.casys.plan import START, dag_of, graph_of, visit_of
from pipeline.formats.casys.views import done_tasks
from pipeline.graph.model import Graph
from pipeline.records.fold import fold
from pipeline.records.run import RunState, Spend
from pipeline.store.base import Store
from pipeline.store.reading import load, records


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
    #: Tasks that were done after the checkpoint that was asked for, with their visits: they are made again.
    again: Mapping[str, str] = field(default_factory=dict)


def ready(store: Store, clock: Clock, wanted: str, gates: Sequence[str]) -> Ready:
    """Find what a checkpoint id (or a run, or a workflow_id) means, and bring its run to where it stands.

    Of an executed run nothing that was recorded after its newest checkpoint is lost. A state saved by hand becomes
    the run's position.

    Args:
        gates: Kinds of gates for a run that has only been saved to.

    Raises:
        RunNotFound, CheckpointCorrupt, SchemaTooNew, RunLocked.
    """
    mark = reading.find(store, wanted) if is_checkpoint_id(wanted.strip().lower()) else None
    run_id = mark.run_id if mark is not None else finding.run_of(store, wanted)
    if run_id is None:
        raise RunNotFound(f"There is no checkpoint and no run {wanted!r}.", checkpoint=wanted)
    found = finding.survey(store, run_id)
    newest = finding.checkpoints_in(found.marks)
    base = mark if mark is not None else newest[0] if newest else None
    if base is not None and "state" in base.document:
        return _from_state(store, clock, base, gates, is_newest=base.seq == newest[0].seq)
    if base is not None:
        reading.check(store, base)
    graph, config = _pinned(store, run_id, found.pins)
    again: dict[str, str] = {}
    if base is not None and newest[0].seq > base.seq:
        seq = base.seq
        then = fold(run_id, takewhile(lambda record: record.seq <= seq, records(store, run_id)))
        again = _since(load(store, run_id), set(done_tasks(then, dag_of(graph))), dag_of(graph))
        base = base if again else newest[0]
    saved = 0 if base is None else int(base.document["layer_index"])
    return Ready(run_id, graph, config, saved, None if base is None else base.id, again)


def _from_state(store: Store, clock: Clock, mark: Mark, gates: Sequence[str], *, is_newest: bool) -> Ready:
    """Make a state that was saved by hand the position of its run, unless the run has gone on from it already."""
    checkpoint = reading.read(store, mark)
    moved = given.take_position(store, clock, checkpoint, graph_of(checkpoint.dag, gates))
    again = {} if moved is None or is_newest else _since(moved, checkpoint.state.results(), checkpoint.dag)
    graph, config = _pinned(store, mark.run_id, finding.survey(store, mark.run_id).pins)
    return Ready(mark.run_id, graph, config or checkpoint.config, checkpoint.layers_done, mark.id, again)


def _since(state: RunState, then: Collection[str], dag: Dag) -> dict[str, str]:
    """Tasks that stand now and did not then, with their visits."""
    found = ((name, visit_of(state, name)) for name in done_tasks(state, dag) if name not in then)
    return {name: step.path for name, step in found if step is not None}


def _pinned(store: Store, run_id: str, pins: Mapping[str, str]) -> tuple[Graph, dict[str, Any]]:
    """The graph and settings that a run is pinned to."""
    if "graph" not in pins:
        raise CheckpointCorrupt(f"Run {run_id} is no layered run, or its first record is damaged.", run=run_id)
    found = {name: json.loads(store.get_blob(run_id, pins[name])) for name in ("graph", "config") if name in pins}
    graph = Graph.from_json(found["graph"])
    if graph.start != START:
        raise RunNotFound(f"Run {run_id} is no layered run.", hint="Its own command resumes it.", run=run_id)
    return graph, found.get("config", {})


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
    return f"${amount:.2f}" if not amount or amount >= Decimal("0.01") else f"${amount:.6f}".rstrip("0")


def changed_tasks(stale: Stale, dag: Dag) -> list[str]:
    """Tasks that are finished and do not stand after a change, in order of layers and declaration."""
    names = {path.rpartition("#")[0] for path in stale.steps}
    return [name for name in dag.in_order if name in names]


def free(spend: Spend) -> bool:
    """Whether work is known to have cost nothing."""
    return not (spend.usd or spend.high or spend.unpriced or spend.unbounded) and spend.low == Decimal(0)
