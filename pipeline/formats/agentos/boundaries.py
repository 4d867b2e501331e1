"""Which boundaries a run of ours has, and which of them a policy shows. Read from its records; nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pipeline.clock import parse_iso
from pipeline.engine.amendment import pinned_graph
from pipeline.errors import ConfigError
from pipeline.formats.agentos.documents import RecordPlace, order_at
from pipeline.formats.shelf import checkpoint_id
from pipeline.records.codec import Record
from pipeline.records.fold import Builder
from pipeline.records.kinds import RunEnded, Snapshot, StepCompleted, StepFailed, StepStarted
from pipeline.records.positions import split
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.store.base import Store

BEFORE, AFTER, ERROR, INTERRUPT, EXIT = "before", "after", "error", "interrupt", "exit"
EVERY_NODE = "every_node"
#: What a node may request itself (its attribute `checkpoint`, or the store's argument `nodes`).
WISHES: Mapping[str, frozenset[str]] = {
    BEFORE: frozenset({BEFORE}),
    AFTER: frozenset({AFTER}),
    "both": frozenset({BEFORE, AFTER}),
    "none": frozenset(),
}
#: Policy → the boundaries it shows of nodes without a preference. Errors and interruptions are always shown.
POLICIES: Mapping[str, frozenset[str]] = {
    **WISHES,
    EVERY_NODE: frozenset({AFTER}),
    "explicit": frozenset(),
    EXIT: frozenset({EXIT}),
}


class NodeBoundary(NamedTuple):
    """A point of a run that is a checkpoint."""

    #: before, after, error, interrupt or exit.
    kind: str
    node: str
    #: In form a UUID of version 4, always the same.
    id: str
    #: Our own id of the same checkpoint; "" where a boundary has none.
    own: str
    #: When it was recorded; ISO-8601 UTC.
    at: str
    #: Its record, and its order among all.
    place: RecordPlace
    #: The record up to which the run stood so.
    upto: int
    #: Which boundaries the node itself requests; None: no preference.
    wishes: frozenset[str] | None = None

    def is_shown(self, policy: str) -> bool:
        if self.kind in (BEFORE, AFTER) and self.wishes is not None:
            return self.kind in self.wishes
        return self.kind in (ERROR, INTERRUPT) or self.kind in POLICIES[policy]


def check_policy(policy: str) -> None:
    """Refuse an unknown policy with a ConfigError."""
    if policy not in POLICIES:
        raise ConfigError(f"policy={policy!r}: it is one of {', '.join(POLICIES)}.", code="unknown_policy")


def checked_wishes(wishes: Mapping[str, str]) -> Mapping[str, str]:
    """Return what nodes request: node → before, after, both or none; ConfigError where it is none of these."""
    for node, wish in wishes.items():
        if wish not in WISHES:
            raise ConfigError(f"nodes[{node!r}] is {wish!r}: it is one of {', '.join(WISHES)}.", code="unknown_policy")
    return wishes


def boundaries(
    store: Store, run_id: str, records: Iterable[Record], wishes: Mapping[str, str]
) -> Iterator[NodeBoundary]:
    """Yield all boundaries of a run, oldest first; each of its records is one at most.

    `before` comes ahead of the record of the node's start, so that its edges are still pending there.

    Args:
        wishes: What nodes request; it overrides the graph.
    """
    walk = _Walk(store, run_id, wishes)
    for record in records:
        walk.builder.apply(record)
        if (found := walk.look(record)) is not None:
            yield found


class _Walk:
    """A run being read."""

    def __init__(self, store: Store, run_id: str, wishes: Mapping[str, str]) -> None:
        self.builder = Builder(run_id)
        self._store = store
        self._pin = ""
        self._start = ""
        self._given = self._wishes = wishes
        self._order = 0
        #: Kind of the last boundary that shows what the present owner came to; "": none yet.
        self._last = ""

    def look(self, record: Record) -> NodeBoundary | None:
        """Return the boundary that the record just applied is."""
        fact, state = record.fact, self.builder.state
        self._order = max(self._order, order_at(parse_iso(record.at)))
        if isinstance(fact, StepStarted):
            started = state.steps.get(fact.path)
            there = started is not None and started.started_seq == record.seq
            return self._made(record, BEFORE, split(fact.path)[0]) if there else None
        if isinstance(fact, StepCompleted | StepFailed):
            counts = bool(state.checkpoints) and state.checkpoints[-1].seq == record.seq
            failed = isinstance(fact, StepFailed)
            if not counts or (isinstance(fact, StepFailed) and fact.retry):
                return None
            kind = ERROR if failed and not fact.edges else AFTER
            return self._made(record, kind, split(fact.path)[0], fact.checkpoint)
        if isinstance(fact, Snapshot):
            return self._made(record, AFTER, self._last_node()) if fact.source == "api" else None
        return self._left(record, fact) if isinstance(fact, RunEnded) else None

    def _left(self, record: Record, fact: RunEnded) -> NodeBoundary | None:
        """Return how an owner left the run. A fork or import that was never resumed is shown as it was left."""
        if fact.status == FAILED and self._last == ERROR:
            # The failure that ended it is shown already.
            return None
        state = self.builder.state
        node = next((state.steps[path].node for path in state.open_paths), "") or self._last_node()
        if fact.status == COMPLETED or fact.detail == "stopped_as_asked":
            return self._made(record, EXIT if self._last else INTERRUPT, node)
        return self._made(record, ERROR if fact.status == FAILED else INTERRUPT, node)

    def _made(self, record: Record, kind: str, node: str, own: str = "") -> NodeBoundary:
        if kind != BEFORE:
            self._last = kind
        run_id, seq = self.builder.state.run_id, record.seq
        self._graph_start()
        wish = self._wishes.get(node)
        return NodeBoundary(
            kind, node, checkpoint_id(f"{run_id}/{own or seq}", run_id), own, record.at,
            RecordPlace(self._order, run_id, seq), seq - 1 if kind == BEFORE else seq,
            None if wish is None else WISHES.get(wish),
        )  # fmt: skip

    def _graph_start(self) -> str:
        """Return the node where the run starts; reads what nodes request where the pinned graph is another one."""
        pin = self.builder.state.pins.get("graph", "")
        if pin != self._pin:
            self._pin = pin
            graph = pinned_graph(self._store, self.builder.state)
            nodes = graph.nodes.values() if graph else ()
            asked = {node.id: str(node.attributes["checkpoint"]) for node in nodes if "checkpoint" in node.attributes}
            self._wishes = {**asked, **self._given}
            self._start = graph.start if graph else ""
        return self._start

    def _last_node(self) -> str:
        """Return the node that ended last; that where the run starts, where none has."""
        state = self.builder.state
        ended = [step for step in state.steps.values() if step.ended_seq]
        # What came with a fork ended by one record, in the order of its rows.
        last = sorted(ended, key=lambda step: step.ended_seq)[-1].node if ended else ""
        return last or self._graph_start() or state.pipeline
