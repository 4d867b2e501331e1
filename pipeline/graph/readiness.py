"""Which visits may start now, from the fold's position alone: joins, dead edges, what a resume takes up again.

Example: a → b, a → c, b → d, c → d, where d joins all. When a#1 ended and chose both edges, two tokens wait and b#1
and c#1 are ready. b#1 ends: its token waits at d, which has two incoming edges and one token, so nothing is ready.
c#1 ends and chooses c → d: d#1 is ready and consumes both tokens. Had c#1 chosen no edge, c → d would be dead (no
token and no running visit can still reach it), and d#1 would fire with the token of b#1 alone. A loop b → a offers
a#2, the next visit of a: a path is `node#visit`, and a resumed visit keeps the path that it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pipeline.graph.liveness import components, reachable
from pipeline.graph.model import ALL, Edge, Graph, Node, frozen
from pipeline.graph.tracks import Tracks
from pipeline.records.run import RunState, StepRun, Token, next_attempt


@frozen
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

    def __init__(self, graph: Graph, state: RunState) -> None:
        self.graph = graph
        #: The live state of the fold; read only.
        self._state = state
        #: Where each edge leads, and how many edges lead there.
        self._goals = {
            edge.id: (graph.nodes[edge.target], len(graph.incoming(edge.target)))
            for edge in graph.edges
            if edge.target in graph.nodes
        }
        self._cyclic = {name for group in components(graph) for name in group}
        self._order = {edge.id: number for number, edge in enumerate(graph.edges)}
        self._tracks = Tracks(graph, state.steps)
        self._begin()

    def _begin(self) -> None:
        self._jumps = self._state.jumps
        #: seq up to which tokens have been looked at, and the owner whose inheritance has been.
        self._seen = 0
        self._owner = 0
        #: Offered and not yet started, by path.
        self._offered: dict[str, Activation] = {}
        #: Highest visit given out, by node.
        self._visits: dict[str, int] = {}
        #: Tokens at joins that wait: node → edge id → tokens, oldest first.
        self._gathered: dict[str, dict[str, list[Token]]] = {}
        #: Branches that have arrived where they are gathered: (node, visit of the fan-out) → tokens.
        self._branches: dict[tuple[str, str], list[Token]] = {}
        #: seq up to which ends were looked at for edges left unchosen, and whether one was.
        self._marked = 0
        self._unchosen = False

    def ready(self, *, idle: bool = False) -> list[Activation]:
        """Return the visits that may start now: those an earlier owner left, then by age of their tokens.

        One that is not started yet is offered again by the next call. `idle` says that nothing
        runs: then also joins that only wait for each other are looked at.
        """
        state = self._state
        if state.jumps != self._jumps:
            self._begin()
        if self._offered:
            self._drop_started()
        if state.owner != self._owner:
            self._owner = state.owner
            for step in left_over(state):
                self._offer_again(step)
        for token in _newer(state, self._seen):
            self._arrive(token)
        self._seen = state.seq
        if self._branches:
            self._gather()
        if self._gathered and (idle or self._doubtful()):
            self._release(idle)
        return list(self._offered.values())

    def follows(self, path: str, edges: Sequence[str]) -> Activation | None:
        """Return the one visit that `path` leads to by these edges, where that is plain before it is recorded."""
        state = self._state
        if self._offered:
            self._drop_started()
        goal = self._goals.get(edges[0]) if len(edges) == 1 else None
        if goal is None or self._offered or self._gathered or self._branches or state.returning:
            return None
        node, expected = goal
        if node.join == ALL and (expected > 1 or node.id in self._tracks.gathers):
            return None
        return self._visit(node.id, ((edges[0], path),))

    def _drop_started(self) -> None:
        for path, activation in list(self._offered.items()):
            step = self._state.steps.get(path)
            if step is not None and (not activation.again or step.started_seq > self._state.owner):
                del self._offered[path]

    def _arrive(self, token: Token) -> None:
        goal = self._goals.get(token.edge)
        if goal is None:
            self._arrive_anyhow(token)
            return
        node, expected = goal
        if node.join == ALL and node.id in self._tracks.gathers:
            fan = self._tracks.group(node.id, token.source)
            if fan:
                self._branches.setdefault((node.id, fan), []).append(token)
            else:
                self._fire(node, [token])
            return
        if node.join != ALL or expected == 1:
            self._fire(node, [token])
            return
        edges = self._gathered.setdefault(node.id, {})
        edges.setdefault(token.edge, []).append(token)
        if len(edges) == expected:
            self._fire_join(node)

    def _arrive_anyhow(self, token: Token) -> None:
        """Start; or follow an imported document, which names the next step, not an edge that exists."""
        target = token.edge.partition("->")[2] if token.edge else self.graph.start
        if target in self.graph.nodes:
            self._fire(self.graph.nodes[target], [token])

    def _fire_join(self, node: Node) -> None:
        edges = self._gathered.pop(node.id)
        tokens = [edges[edge.id].pop(0) for edge in self.graph.incoming(node.id) if edge.id in edges]
        if left := {edge: rest for edge, rest in edges.items() if rest}:
            self._gathered[node.id] = left
        self._fire(node, tokens)

    def _fire(self, node: Node, tokens: list[Token]) -> None:
        activation = self._visit(node.id, tuple([(token.edge, token.source) for token in tokens]))
        self._visits[node.id] = max(activation.visit, self._visits.get(node.id, 0))
        self._offered[activation.path] = activation

    def _visit(self, node: str, consumed: tuple[tuple[str, str], ...]) -> Activation:
        """Return the visit of a node that consumes these tokens."""
        state = self._state
        visit = self._former_visit(consumed) if state.returning else 0
        if not visit:
            visit = max(state.visits.get(node, 0), self._visits.get(node, 0)) + 1
        path = f"{node}#{visit}"
        return Activation(path, node, visit, consumed, next_attempt(state, path))

    def _former_visit(self, consumed: tuple[tuple[str, str], ...]) -> int:
        """Return the visit that consumed one of these tokens before it was made void; 0: none did."""
        returning = self._state.returning
        for key in consumed:
            path = returning.get(key, "")
            if path and path not in self._offered and path not in self._state.steps:
                return int(path.rpartition("#")[2])
        return 0

    def _offer_again(self, step: StepRun) -> None:
        consumed = tuple((edge, source) for edge, source in step.consumed)
        attempt = next_attempt(self._state, step.path)
        self._offered[step.path] = Activation(step.path, step.node, step.visit, consumed, attempt, again=True)

    # Nodes that gather the branches of a fan-out

    def _gather(self) -> None:
        """Fire those whose fan-out has no branch left that is still on its way."""
        for place in list(self._branches):
            if self._on_its_way(place):
                continue
            node, fan = place
            tokens = sorted(self._branches.pop(place), key=lambda token: self._place(token, fan))
            self._fire(self.graph.nodes[node], tokens)

    def _place(self, token: Token, fan: str) -> tuple[int, int, int]:
        """Return where a token stands among those that are gathered: its branch, its edge, its visit; not its time."""
        begun = self._tracks.branch(fan, token.source) or token.edge
        visit = int(token.source.rpartition("#")[2])
        return self._order.get(begun, -1), self._order[token.edge], visit

    def _on_its_way(self, place: tuple[str, str]) -> bool:
        """Return whether anything but what has arrived there still belongs to the visit of the fan-out."""
        tracks, (_, fan) = self._tracks, place
        if any(fan in tracks.around(step.path) for step in unfinished(self._state)):
            return True
        if any(fan in tracks.of(begun.node, begun.consumed) for begun in self._offered.values()):
            return True
        return any(
            tracks.lies_in(fan, other[0], token.source)
            for other, tokens in self._branches.items() if other != place
            for token in tokens
        ) or any(
            tracks.lies_in(fan, node, token.source)
            for node, edges in self._gathered.items() for tokens in edges.values()
            for token in tokens
        )  # fmt: skip

    # Joins whose missing edges may be dead

    def _doubtful(self) -> bool:
        """Return whether an edge was left unchosen, so that a waiting join may wait in vain."""
        if self._unchosen:
            return True
        for mark in reversed(self._state.checkpoints):
            if mark.seq <= self._marked:
                break
            step = self._state.steps.get(mark.path)
            if step is not None and len(step.edges) < len(self.graph.outgoing(step.node)):
                self._unchosen = True
                break
        self._marked = self._state.seq
        return self._unchosen

    def _release(self, idle: bool) -> None:
        """Let joins go that wait for nothing that can still come."""
        stuck = idle and not self._offered and not self._state.open_paths
        alive = self._alive()
        free = [node for node in self._waiting() if not self._blocked(node, alive)]
        for node in free:
            self._fire_join(node)
        if stuck and not free:
            self._break_tie()

    def _waiting(self) -> list[Node]:
        """Return waiting joins, the one with the oldest token first."""
        oldest = {name: min(tokens[0].seq for tokens in edges.values()) for name, edges in self._gathered.items()}
        return [self.graph.nodes[name] for name in sorted(oldest, key=lambda name: oldest[name])]

    def _blocked(self, node: Node, alive: set[str]) -> bool:
        if node.id in self._cyclic:
            # Its own waiting tokens do not keep it waiting for itself.
            alive = self._alive(waiting=node.id)
        return any(edge.source in alive for edge in self._missing(node))

    def _missing(self, node: Node) -> list[Edge]:
        edges = self._gathered[node.id]
        return [edge for edge in self.graph.incoming(node.id) if edge.id not in edges]

    def _alive(self, waiting: str = "") -> set[str]:
        """Return nodes that may still end, and so choose an edge, before the `waiting` join fires."""
        running = {step.node for step in unfinished(self._state)}
        running.update(activation.node for activation in self._offered.values())
        waits = {*self._gathered, *(node for node, _ in self._branches)}
        return _ahead(self.graph, running, waits, waiting)

    def _break_tie(self) -> None:
        """Fire, of joins that only wait for each other, the one with the oldest token."""
        failed = {self._state.steps[path].node for path in self._state.failed_paths}
        for node in self._waiting():
            behind = _ahead(self.graph, failed, (), node.id)
            if not any(edge.source in behind for edge in self._missing(node)):
                self._fire_join(node)
                return


def ready(graph: Graph, state: RunState, *, idle: bool) -> list[Activation]:
    """Return the visits that may start now. Loops keep a `Frontier` instead, which costs only what is new."""
    return Frontier(graph, state).ready(idle=idle)


def unfinished(state: RunState) -> Iterator[StepRun]:
    """Return visits that may still choose an edge: started without an end, or failed and not yet run again."""
    for path in (*state.open_paths, *state.failed_paths):
        if "/" not in path:
            yield state.steps[path]


def left_over(state: RunState) -> list[StepRun]:
    """Return visits an earlier owner left open or failed: what a resume takes up first, at the same path."""
    return [step for step in unfinished(state) if max(step.started_seq, step.ended_seq) < state.owner]


def skipped(graph: Graph, state: RunState) -> list[str]:
    """Return nodes that no visit reached and none can reach any more, in order of declaration."""
    seen = {step.node for step in state.steps.values()}
    origins = {step.node for step in unfinished(state)}
    for token in state.waiting.values():
        edge = graph.edge(token.edge)
        origins.add(edge.target if edge else graph.start)
    alive = reachable(graph, origins)
    return [name for name in graph.nodes if name not in seen and name not in alive]


def _ahead(graph: Graph, running: set[str], gathered: Iterable[str], waiting: str) -> set[str]:
    """Return nodes that end, or can be reached from those, while one join stays where it is."""
    origins = {*running, *gathered}
    if waiting not in running:
        return reachable(graph, origins, waiting)
    # An earlier visit of that join still runs: it ends by itself.
    onward = {edge.target for edge in graph.outgoing(waiting)}
    return reachable(graph, origins | onward, waiting) | {waiting}


def _newer(state: RunState, seq: int) -> list[Token]:
    """Return tokens laid after `seq`, oldest first; looks at no others."""
    found: list[Token] = []
    for token in reversed(state.waiting.values()):
        if token.seq <= seq:
            break
        found.append(token)
    return found[::-1]
