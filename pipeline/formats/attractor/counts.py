"""What a run's records say of its loops: visits, restarts, retries, gates. Pure functions of graph and state."""

from __future__ import annotations

from collections.abc import Collection

from pipeline.dot import kinds
from pipeline.dot.model import DotEdge, DotGraph
from pipeline.formats.attractor.jumps import RETRY, gates
from pipeline.formats.attractor.outcome import FAIL, SATISFYING, normalise
from pipeline.graph.model import Graph
from pipeline.records.run import RunState, StepRun, next_attempt
from pipeline.records.statuses import FAILED

#: Visits of one node where neither it nor the graph says how many.
MAX_VISITS = 100
#: Times a run begins anew by loop_restart.
MAX_RESTARTS = 5
#: Equal failures of one node after which it is taken to fail for good.
SAME_FAILURES = 3
#: Times a run goes back for one goal gate.
MAX_GATE_JUMPS = 3


def outcome_of(run: StepRun) -> str:
    """The outcome of a visit that has ended."""
    return FAIL if run.status == FAILED else normalise(run.outcome)


def visit_counts(state: RunState) -> dict[str, int]:
    """Node → visits begun."""
    return {name: count for name, count in state.visits.items() if "/" not in name}


def retry_counts(state: RunState) -> dict[str, int]:
    """Node → retries used by its newest visit, while that has not succeeded."""
    found = {}
    for path in (*state.open_paths, *state.failed_paths):
        run = state.steps[path]
        if used := max(run.attempt, next_attempt(state, path)) - 1:
            found[run.node] = used
    return found


def gate_status(graph: DotGraph, state: RunState) -> dict[str, str]:
    """Goal gate → satisfied or unsatisfied by its newest visit; pending before the first."""
    newest = newest_visits(state, gates(graph), 0)
    return {gate: _word(newest.get(gate)) for gate in gates(graph)}


def _word(run: StepRun | None) -> str:
    if run is None:
        return "pending"
    return "satisfied" if outcome_of(run) in SATISFYING else "unsatisfied"


def newest_visits(state: RunState, nodes: Collection[str], since: int) -> dict[str, StepRun]:
    """Node → its visit that ended last, of those begun after the record `since`."""
    found: dict[str, StepRun] = {}
    wanted = set(nodes)
    for run in state.steps.values():
        known = found.get(run.node)
        counts = run.node in wanted and run.ended_seq and run.started_seq > since
        if counts and (known is None or run.ended_seq > known.ended_seq):
            found[run.node] = run
    return found


def last_restart(state: RunState, restarts: Collection[str]) -> int:
    """Which record began the run anew, by its seq; 0: none did."""
    began = (run.ended_seq for run in state.steps.values() if any(edge in restarts for edge in run.edges))
    return max(began, default=0) if restarts else 0


def taken(state: RunState, edges: Collection[str]) -> int:
    """How often any of these edges was chosen."""
    return sum(edge in edges for run in state.steps.values() for edge in run.edges)


def gate_jumps(graph: Graph, state: RunState, gate: str) -> int:
    """How often the run went back for a gate: from an exit, or because the gate itself failed."""
    ways = {
        edge.id
        for edge in graph.edges
        if edge.attributes.get("gate") == gate or (edge.source == gate and edge.attributes.get("virtual") == RETRY)
    }
    return taken(state, ways) if ways else 0


def gate_limit(graph: DotGraph, gate: str) -> int:
    """How often a run goes back for a gate."""
    return graph.nodes[gate].number("max_retries") or MAX_GATE_JUMPS


def same_failures(state: RunState, node: str, sign: str, path: str) -> list[int]:
    """The attempts that each earlier visit of a node took to fail in the same way."""
    return [
        run.attempt
        for run in state.steps.values()
        if run.node == node and run.path != path and (run.error or {}).get("signature") == sign
    ]


def times(number: int) -> str:
    """once, 2 times."""
    return "once" if number == 1 else f"{number} times"


class Limits:
    """What a graph allows: how often a node, an edge or a restart."""

    def __init__(self, graph: DotGraph, restarts: Collection[str]) -> None:
        self._graph = graph
        self._restarts = restarts
        self._every = _positive(graph.number("max_node_visits"), MAX_VISITS)
        self._most_restarts = MAX_RESTARTS if (said := graph.number("max_restarts")) is None else said
        #: Equal failures of a node that end the run.
        self.same = _positive(graph.number("loop_restart_signature_limit"), SAME_FAILURES)

    def visits(self, node: str) -> int:
        """Visits a node may have; each time a child pipeline runs takes its supervisor two."""
        most = _positive(self._graph.nodes[node].number("max_visits"), self._every)
        return 2 * most if self._graph.kind(node) == kinds.LOOP else most

    def node_closed(self, state: RunState, node: str) -> str:
        """Why a node may not be visited again; "": it may."""
        most = self.visits(node)
        if state.visits.get(node, 0) < most:
            return ""
        return f"{node} has been visited {times(most)}, which is its limit (max_visits, max_node_visits)."

    def edge_closed(self, state: RunState, edge: DotEdge) -> str:
        """Why an edge may not be taken again; "": it may."""
        most = edge.number("max_visits")
        if most is not None and taken(state, (edge.id,)) >= most:
            return f"{edge.id} has been taken {times(most)}, which is its limit (max_visits)."
        if edge.id in self._restarts and taken(state, self._restarts) >= self._most_restarts:
            return f"The run has begun anew {times(self._most_restarts)}, which is its limit (max_restarts)."
        return self.node_closed(state, edge.target)


def _positive(said: int | None, otherwise: int) -> int:
    return said if said is not None and said > 0 else otherwise


def restart_count(state: RunState, restarts: Collection[str]) -> int:
    """How often the run began anew."""
    return taken(state, restarts) if restarts else 0
