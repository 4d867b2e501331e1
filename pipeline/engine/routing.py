"""Where a visit's end leads: what a router is shown, what it decides, and the router of outcome labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from pipeline.graph.model import Graph, Node, choose, frozen
from pipeline.records.run import RunState


@frozen
class Settled:
    """A visit whose work has ended and whose edges are to be chosen."""

    graph: Graph
    node: Node
    path: str
    visit: int
    attempt: int
    #: The outcome's label, and whether the work failed ({"type", "message", …}).
    outcome: str
    failed: bool
    error: Mapping[str, Any] | None
    #: What the step said about the way on (Outcome.hints).
    hints: Mapping[str, Any]
    #: The context as the visit saw it, and the keys it set.
    seen: Mapping[str, Any]
    changes: Mapping[str, Any]
    #: Edges it consumed: (edge id, path of the visit that chose it).
    consumed: Sequence[Sequence[str]]
    #: The fold, standing still while the router looks.
    state: RunState


@frozen
class Route:
    """What a router decided. None leaves a thing as it is."""

    #: Edge ids; none: the visit leads nowhere.
    edges: Sequence[str] = ()
    outcome: str | None = None
    failed: bool | None = None
    error: Mapping[str, Any] | None = None
    #: Context keys that the decision itself sets.
    context: Mapping[str, Any] = field(default_factory=dict)
    #: The attempt failed, and the same visit is tried again after so many seconds.
    retry_seconds: float | None = None
    #: Why these edges, for people: condition, weight, retry_target, …
    reason: str = ""
    #: The work was fine and is kept, only no edge takes its end: a resume hears the same replies again.
    kept: bool = False


#: Decides from its argument alone, so that a resumed run decides the same.
Router = Callable[[Settled], Route]

_FAIL = "fail"


def by_label(settled: Settled) -> Route:
    """Return the edges whose label is the outcome, else those without one; a failure takes only those that name it."""
    return way(settled.graph, settled.node.id, settled.outcome, failed=settled.failed)


def way(graph: Graph, node: str, outcome: str, *, failed: bool) -> Route:
    """Return what `by_label` goes by, and no more."""
    return Route([edge.id for edge in choose(graph, node, _FAIL if failed else outcome)])
