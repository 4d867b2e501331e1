"""The checkpoint boundaries of a run, read back from its records: what each ended, set, chose and had cost by then."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pipeline.engine.contexts import Contexts, Reducer
from pipeline.errors import CheckpointCorrupt
from pipeline.graph.model import Graph
from pipeline.records.codec import Record
from pipeline.records.fold import Builder
from pipeline.records.kinds import Snapshot, StepCompleted, StepFailed
from pipeline.records.run import RunState, StepRun
from pipeline.store.base import Store


@dataclass(frozen=True, slots=True)
class Boundary:
    """One step's end, and the run as it stood then."""

    seq: int
    #: Checkpoint id; "" where an imported document had none.
    id: str
    #: node#visit frames.
    path: str
    at: str
    #: completed or failed.
    status: str
    outcome: str
    edges: Sequence[str]
    #: Why these edges; "" where the outcome's label says it.
    reason: str
    attempt: int
    #: It failed and was tried again by itself.
    retry: bool
    error: Mapping[str, Any] | None
    #: Active seconds over all attempts so far.
    seconds: float
    #: Spend so far, exact; and what calls without an exact bill may have added (None: no upper bound).
    usd: Decimal
    possibly: Decimal | None
    #: Calls so far whose price is not known.
    unpriced: int = 0
    #: It came with a fork or an import: an earlier run made it.
    inherited: bool = False
    #: Context key → (value seen, value set); as recorded, so a long one is {"$blob", "bytes"}. A key that was
    #: not set before has Ellipsis in its first place.
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def boundaries(run_id: str, records: Iterable[Record], graph: Graph | None = None) -> Iterator[Boundary]:
    """Every boundary in order; context changes are worked out where the graph is given."""
    builder = Builder(run_id)
    state = builder.state
    contexts = Contexts(graph, state, Unknown()) if graph is not None else None
    told: set[tuple[str, str | None]] = set()
    for record in records:
        builder.apply(record)
        fact = record.fact
        if isinstance(fact, Snapshot):
            # Documents saved one after the other hold the earlier steps again.
            new = [step for step in state.steps.values() if (step.path, step.completed_at) not in told]
            told.update((step.path, step.completed_at) for step in new)
            yield from (_boundary(state, step, record, inherited=fact.source != "api") for step in new)
        elif isinstance(fact, (StepCompleted, StepFailed)) and ended(state, record):
            step = state.steps[fact.path]
            retry = isinstance(fact, StepFailed) and fact.retry
            yield _boundary(state, step, record, retry=retry, changes=_changes(contexts, step))


def ended(state: RunState, record: Record) -> bool:
    """Whether the record just applied ended a visit (one of an older owner, or behind a gap, does not)."""
    return bool(state.checkpoints) and state.checkpoints[-1].seq == record.seq


def pinned_graph(store: Store, state: RunState) -> Graph | None:
    """The graph that a run is pinned to; None where it has none (imports) or it cannot be read."""
    blob = state.pins.get("graph")
    if not blob:
        return None
    try:
        return Graph.from_json(json.loads(store.get_blob(state.run_id, blob)))
    except (CheckpointCorrupt, ValueError, KeyError, TypeError):
        return None


class Unknown(dict[str, Reducer]):
    """Reducers of a pipeline whose code is not at hand: what two branches set is shown as both."""

    def get(self, key: str, default: Any = None) -> Callable[[Any, Any], Any]:
        """A reducer that keeps both values."""
        return lambda first, second: [first, second]


def _boundary(
    state: RunState,
    step: StepRun,
    record: Record,
    *,
    inherited: bool = False,
    retry: bool = False,
    changes: Mapping[str, tuple[Any, Any]] | None = None,
) -> Boundary:
    total = state.total
    return Boundary(
        record.seq, step.checkpoint, step.path, (step.completed_at if inherited else None) or record.at, step.status,
        step.outcome, tuple(step.edges), step.reason, step.attempt, retry, step.error, step.seconds, total.usd,
        None if total.unbounded else total.high, total.unpriced, inherited, changes or {},
    )  # fmt: skip


def _changes(contexts: Contexts | None, step: StepRun) -> dict[str, tuple[Any, Any]]:
    """What a visit set to something else than it saw, beside that."""
    if contexts is None or not step.context:
        return {}
    seen = contexts.seen(step.consumed, step.node)
    changed = ((key, seen.get(key, ...), value) for key, value in step.context.items())
    return {key: (before, value) for key, before, value in changed if before is ... or before != value}
