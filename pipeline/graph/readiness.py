"""Which visits may start now, from the fold's position alone: joins, dead edges, what a resume takes up again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.graph.liveness import components, reachable
from pipeline.graph.model import ALL, Edge, Graph, Node
from pipeline.records.run import RunState, StepRun, Token


@dataclass(frozen=True, slots=True)
class Activation:
    """A visit that may start."""

    path: str
    node: str
    visit: int
    #: (edge id, source path) it consumes; (("", ""),) for the start.
    consumed: tuple[tuple[str, str], ...]
    #: Attempt to record in step_started.
    attempt: int = 1
    #: It was started before and is taken up again.
    again: bool = False


class Frontier:
    """An index of the position of one run: each call looks only at what is new since the last.

    It holds nothing that `RunState` does not say: a fresh one gives the same answers.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._cyclic = {name for group in components(graph) for name in group}
        self._jumps = 0
        self._reset()

    def _reset(self) -> None:
        #: seq up to which tokens and ends have been looked at.
        self._seen = 0
        self._owner = 0
        #: Offered and not yet started, by path.
        self._offered: dict[str, Activation] = {}
        #: Highest visit given out, by node.
        self._visits: dict[str, int] = {}
        #: Tokens at joins that wait: node → edge id → tokens, oldest first.
        self._gathered: dict[str, dict[str, list[Token]]] = {}
        #: seq up to which ends were looked at for edges left unchosen, and whether one was.
        self._marked = 0
        self._unchosen = False

    def ready(self, state: RunState, *, idle: bool = False) -> list[Activation]:
        """The visits that may start now, oldest first; those of earlier owners before all.

        One that is not started is offered again by the next call. `idle` says that nothing runs:
        then joins that wait for an edge no token can reach are let go.
        """
        if state.jumps != self._jumps:
            self._reset()
            self._jumps = state.jumps
        self._drop_started(state)
        if state.owner != self._owner:
            self._owner = state.owner
            for step in left_over(state):
                self._offer(state, step.path, step.node, step.visit, (), again=True)
        self._take_in(state)
        if self._gathered and (idle or self._doubtful(state)):
            self._release(state, idle)
        return list(self._offered.values())

    def _drop_started(self, state: RunState) -> None:
        for path, activation in list(self._offered.items()):
            step = state.steps.get(path)
            if step is not None and (not activation.again or step.started_seq > state.owner):
                del self._offered[path]

    def _take_in(self, state: RunState) -> None:
        for token in _newer(state, self._seen):
            self._arrive(state, token)
        self._seen = state.seq

    def _doubtful(self, state: RunState) -> bool:
        """Whether an edge was left unchosen, so that a waiting join may wait in vain."""
        if not self._unchosen:
            for mark in reversed(state.checkpoints):
                if mark.seq <= self._marked:
                    break
                step = state.steps.get(mark.path)
                if step is not None and len(step.edges) < len(self.graph.outgoing(step.node)):
                    self._unchosen = True
        self._marked = state.seq
        return self._unchosen

    def _arrive(self, state: RunState, token: Token) -> None:
        node = self._target(token)
        if node is None:
            return
        incoming = self.graph.incoming(node.id)
        if node.join != ALL or not token.edge or len(incoming) == 1:
            self._fire(state, node, [token])
            return
        edges = self._gathered.setdefault(node.id, {})
        edges.setdefault(token.edge, []).append(token)
        if len(edges) == len(incoming):
            self._fire_join(state, node)

    def _target(self, token: Token) -> Node | None:
        if not token.edge:
            return self.graph.nodes.get(self.graph.start)
        edge = self.graph.edge(token.edge)
        return None if edge is None else self.graph.nodes.get(edge.target)

    def _fire_join(self, state: RunState, node: Node) -> None:
        edges = self._gathered[node.id]
        tokens = [edges[edge.id].pop(0) for edge in self.graph.incoming(node.id) if edge.id in edges]
        left = {edge: rest for edge, rest in edges.items() if rest}
        if left:
            self._gathered[node.id] = left
        else:
            del self._gathered[node.id]
        self._fire(state, node, tokens)

    def _fire(self, state: RunState, node: Node, tokens: list[Token]) -> None:
        consumed = tuple((token.edge, token.source) for token in tokens)
        path = next((state.returning[key] for key in consumed if key in state.returning), "") if state.returning else ""
        if path and path not in self._offered and path not in state.steps:
            visit = int(path.rpartition("#")[2])
        else:
            visit = max(state.visits.get(node.id, 0), self._visits.get(node.id, 0)) + 1
            path = f"{node.id}#{visit}"
        self._visits[node.id] = max(visit, self._visits.get(node.id, 0))
        self._offer(state, path, node.id, visit, consumed)

    def _offer(
        self,
        state: RunState,
        path: str,
        node: str,
        visit: int,
        consumed: tuple[tuple[str, str], ...],
        again: bool = False,
    ) -> None:
        if again:
            consumed = tuple((edge, source) for edge, source in state.steps[path].consumed)
        attempt = state.attempts.get((path, None), 1)
        self._offered[path] = Activation(path, node, visit, consumed, attempt, again)

    # Joins whose missing edges may be dead

    def _release(self, state: RunState, idle: bool) -> None:
        """Let joins go that wait for nothing that can still come."""
        stuck = idle and not self._offered and not state.open_paths
        alive = self._alive(state)
        free = [node for node in self._waiting() if not self._blocked(state, node, alive)]
        for node in free:
            self._fire_join(state, node)
        if stuck and not free:
            self._break_tie(state)

    def _waiting(self) -> list[Node]:
        """Waiting joins, the one with the oldest token first."""
        oldest = {name: min(tokens[0].seq for tokens in edges.values()) for name, edges in self._gathered.items()}
        return [self.graph.nodes[name] for name in sorted(oldest, key=lambda name: oldest[name])]

    def _blocked(self, state: RunState, node: Node, alive: set[str]) -> bool:
        if node.id in self._cyclic:
            # Its own tokens do not keep it waiting for itself.
            alive = self._alive(state, without=node.id)
        return any(edge.source in alive for edge in self._missing(node))

    def _missing(self, node: Node) -> list[Edge]:
        edges = self._gathered[node.id]
        return [edge for edge in self.graph.incoming(node.id) if edge.id not in edges]

    def _alive(self, state: RunState, without: str = "") -> set[str]:
        """Nodes that may still end, and so choose an edge."""
        origins = {step.node for step in unfinished(state)}
        origins.update(activation.node for activation in self._offered.values())
        origins.update(self._gathered)
        return reachable(self.graph, origins, without)

    def _break_tie(self, state: RunState) -> None:
        """Of joins that only wait for each other the one with the oldest token fires."""
        failed = [state.steps[path].node for path in state.failed_paths]
        for node in self._waiting():
            behind = reachable(self.graph, failed, without=node.id)
            if not any(edge.source in behind for edge in self._missing(node)):
                self._fire_join(state, node)
                return


def ready(graph: Graph, state: RunState, *, idle: bool) -> list[Activation]:
    """The visits that may start now. Loops keep a `Frontier` instead, which costs only what is new."""
    return Frontier(graph).ready(state, idle=idle)


def unfinished(state: RunState) -> Iterator[StepRun]:
    """Visits that may still choose an edge: started without an end, or failed and not yet run again."""
    for path in (*state.open_paths, *state.failed_paths):
        if "/" not in path:
            yield state.steps[path]


def left_over(state: RunState) -> list[StepRun]:
    """Visits an earlier owner left open or failed: what a resume takes up first, at the same path."""
    return [step for step in unfinished(state) if max(step.started_seq, step.ended_seq) < state.owner]


def skipped(graph: Graph, state: RunState) -> list[str]:
    """Nodes that no visit reached and none can reach any more, in order of declaration."""
    seen = {step.node for step in state.steps.values()}
    origins = {step.node for step in unfinished(state)}
    for token in state.waiting.values():
        edge = graph.edge(token.edge)
        origins.add(edge.target if edge else graph.start)
    alive = reachable(graph, origins)
    return [name for name in graph.nodes if name not in seen and name not in alive]


def _newer(state: RunState, seq: int) -> list[Token]:
    """Tokens laid after `seq`, oldest first; looks at no others."""
    found: list[Token] = []
    for token in reversed(state.waiting.values()):
        if token.seq <= seq:
            break
        found.append(token)
    return found[::-1]
