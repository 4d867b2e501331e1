"""Where a visit of a DOT graph leads, from the records alone: retries, edges, failures, goal gates, limits.

An edge whose condition does not hold is never taken; a failure takes no plain edge, unless a diamond behind it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pipeline.dot import kinds
from pipeline.dot.attributes import DEFAULT_VISITS
from pipeline.dot.conditions import compile_condition
from pipeline.dot.labels import normal_label
from pipeline.dot.model import DotEdge, DotGraph, DotNode, target_of
from pipeline.dot.values import plain
from pipeline.engine.routing import Route, Settled
from pipeline.formats.attractor.children import begun, failed_child, supervised
from pipeline.formats.attractor.outcome import FAIL, PARTIAL, RETRY, SATISFYING, SKIPPED, normalise
from pipeline.formats.attractor.plan import BRANCH, EXITS, GATE, Plan, branch_id, gate_id, retry_id, targets
from pipeline.formats.attractor.plan import RETRY as JUMP
from pipeline.formats.attractor.visit_end import FINAL, VisitEnd, is_transient, most_retries, wait_seconds
from pipeline.graph.model import Graph
from pipeline.graph.tracks import Tracks
from pipeline.records.run import RunState, StepRun, bare
from pipeline.records.statuses import FAILED

#: Kinds of failure that no jump mends: only an edge that accepts them goes on.
_AT_ONCE = frozenset({"auth", "authentication", "billing", "quota"})
_RESTARTS = "internal.loop_restart_count"
#: If the graph does not say: restarts of a run, equal failures of a node until it is taken to fail for good, and times
#: a run goes back for one goal gate.
_MAX_RESTARTS, _SAME_FAILURES, _MAX_GATE_JUMPS = 5, 3, 3
#: Says why an edge may not be taken any more; "": it may.
Closed = Callable[[DotEdge], str]
_FAILING_LABELS = frozenset({"fail", "failed", "failure", "error"})


def graph_context(graph: DotGraph) -> dict[str, Any]:
    """Return what a run knows of its graph from the beginning: `graph.NAME` for each attribute, the pipeline's name."""
    known: dict[str, Any] = {f"graph.{name}": plain(value) for name, value in graph.attributes.items()}
    known.setdefault("graph.goal", graph.goal)
    return {**known, "_pipeline_name": graph.name}


def outcome_of(run: StepRun) -> str:
    """Return the outcome of a visit that has ended."""
    return FAIL if run.status == FAILED else normalise(run.outcome)


def taken(state: RunState, edges: Collection[str]) -> int:
    """Return how often any of these edges was chosen."""
    return sum(edge in edges for run in state.steps.values() for edge in run.edges) if edges else 0


def gate_jumps(graph: Graph, state: RunState, gate: str) -> int:
    """Return how often the run went back for a gate: from an exit, or because the gate itself failed."""
    return taken(state, {
        edge.id
        for edge in graph.edges
        if edge.attributes.get("gate") == gate or (edge.source == gate and edge.attributes.get("virtual") == JUMP)
    })  # fmt: skip


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


class EdgeChoice(NamedTuple):
    """What was chosen."""

    #: None: no edge takes this end.
    edge: DotEdge | None
    #: Why this one: condition, preferred_label, suggested, label, weight, id, only, failure.
    reason: str = ""
    #: Why the edge that would take it may not be taken any more.
    closed: str = ""


def choose(plan: Plan, node: str, end: VisitEnd, closed: Closed) -> EdgeChoice:
    """Return the edge for an end that is no failure."""
    edges = plan.outgoing(node)
    plain = [edge for edge in edges if not edge.condition]
    wanted, suggested = normal_label(end.preferred_label), end.suggested_next_ids
    preferred = [edge for edge in plain if wanted and normal_label(edge.label or edge.target) == wanted]
    by_suggestion = [edge for name in suggested for edge in plain if edge.target == name]
    by_label: list[DotEdge] = []
    if plan.types[node] == kinds.CONDITIONAL and not any(edge.condition or edge.weight for edge in edges):
        by_label = [edge for edge in edges if normalise(normal_label(edge.label)) == end.outcome]
    best = _best([edge for edge in edges if edge.condition and holds(edge, end)])
    for found, reason in (
        ([best] if best else [], "condition"), (preferred, "preferred_label"), (by_suggestion, "suggested"),
        (by_label, "label"),
    ):  # fmt: skip
        if found:
            why = closed(found[0])
            return EdgeChoice(None, "", why) if why else EdgeChoice(found[0], reason)
    # If only weight and name speak for an edge, the next one does as well once it may not be taken.
    best = _best([edge for edge in plain if not closed(edge)])
    if best is None:
        return EdgeChoice(None, "", closed(plain[0]) if plain else "")
    even = all(edge.weight == best.weight for edge in plain)
    return EdgeChoice(best, "only" if len(plain) == 1 else "id" if even else "weight")


def choose_for_failure(plan: Plan, node: str, end: VisitEnd, closed: Closed) -> EdgeChoice:
    """Return the edge that accepts a failure."""
    accepting = [edge for edge in plan.outgoing(node) if accepts(plan, edge, end)]
    open_ = [edge for edge in accepting if not closed(edge)]
    best = _best([edge for edge in open_ if edge.condition]) or _best(open_)
    if best is None:
        return EdgeChoice(None, "", closed(accepting[0]) if accepting else "")
    return EdgeChoice(best, "condition" if best.condition else "failure")


def accepts(plan: Plan, edge: DotEdge, end: VisitEnd) -> bool:
    """Return whether an edge takes a failure: its condition holds, or a diamond that it leads to has an edge for it."""
    todo, seen = [edge], set[str]()
    while todo:
        at = todo.pop()
        if at.flag("loop_restart") and not is_transient(end.kind):
            continue
        if at.condition:
            if holds(at, end):
                return True
            continue
        if plan.dot.nodes[at.source].flag("continue_on_fail"):
            return True
        if plan.types[at.source] == kinds.CONDITIONAL:
            # A diamond's plain edge is meant for failures beside conditions, or if its label says so.
            beside = any(other.condition for other in plan.outgoing(at.source))
            if beside or normal_label(at.label) in _FAILING_LABELS:
                return True
        if at.target not in seen and plan.types.get(at.target) == kinds.CONDITIONAL:
            seen.add(at.target)
            todo.extend(plan.outgoing(at.target))
    return False


def asks_for_retry(plan: Plan, node: str) -> bool:
    """Return whether an edge names the outcome retry: then it is a word like any other, and no attempt is repeated."""
    ahead = [node]
    for name in ahead:
        for edge in plan.outgoing(name):
            if edge.condition and any(
                clause.about_outcome and not negated and clause.operator in ("=", "IN")
                and RETRY in map(normalise, clause.literals)
                for clause, negated in compile_condition(edge.condition).clauses()
            ):  # fmt: skip
                return True
            # A diamond's edges count for what leads to it.
            diamond = not edge.condition and plan.types.get(edge.target) == kinds.CONDITIONAL
            if diamond and edge.target not in ahead:
                ahead.append(edge.target)
    return False


def holds(edge: DotEdge, end: VisitEnd) -> bool:
    """Return whether an edge's condition holds."""
    return compile_condition(edge.condition).holds(end.lookup)


def _best(edges: Sequence[DotEdge]) -> DotEdge | None:
    return min(edges, key=lambda edge: (-edge.weight, edge.target), default=None)


class AttractorRouter:
    """Decides for one graph; holds nothing of a run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.asks_restarts = any(_RESTARTS in edge.condition for edge in plan.dot.edges)
        self._most_visits = self._limit("max_node_visits", DEFAULT_VISITS)
        most = plan.dot.number("max_restarts")
        self._most_restarts = _MAX_RESTARTS if most is None else most
        #: Equal failures of a node that end the run.
        self.same_failures = self._limit("loop_restart_signature_limit", _SAME_FAILURES)

    def __call__(self, settled: Settled) -> Route:
        return _Decision(self, settled).route()

    def _limit(self, name: str, otherwise: int) -> int:
        said = self.plan.dot.number(name)
        return said if said is not None and said > 0 else otherwise

    def node_closed(self, state: RunState, node: str) -> str:
        """Return why a node may not be visited again; "" if it may."""
        said = self.plan.dot.nodes[node].number("max_visits")
        most = said if said is not None and said > 0 else self._most_visits
        # Each time a child pipeline runs takes its supervisor two visits.
        most = 2 * most if self.plan.dot.kind(node) == kinds.LOOP else most
        if state.visits.get(node, 0) < most:
            return ""
        return f"{node} has been visited {_times(most)}, which is its limit (max_visits, max_node_visits)."

    def edge_closed(self, state: RunState, edge: DotEdge) -> str:
        """Return why an edge may not be taken again; "" if it may."""
        most, restarts = edge.number("max_visits"), self.plan.restarts
        if most is not None and taken(state, (edge.id,)) >= most:
            return f"{edge.id} has been taken {_times(most)}, which is its limit (max_visits)."
        if edge.id in restarts and taken(state, restarts) >= self._most_restarts:
            return f"The run has restarted {_times(self._most_restarts)}, which is its limit (max_restarts)."
        return self.node_closed(state, edge.target)


class _Decision:
    """One visit's."""

    def __init__(self, router: AttractorRouter, settled: Settled) -> None:
        self._router = router
        self._plan = plan = router.plan
        self._settled = settled
        self._state = settled.state
        self._node: DotNode = plan.dot.nodes[settled.node.id]
        self._type = plan.types[settled.node.id]
        known: dict[str, Any] = {"current_node": settled.node.id}
        if plan.does_work(settled.node.id):
            known["last_stage"] = settled.node.id
        if router.asks_restarts:
            known[_RESTARTS] = taken(self._state, plan.restarts)
        self._end = VisitEnd.of(settled, known)

    def route(self) -> Route:
        end = self._end
        if self._type in EXITS and not end.failed:
            return self._leave(end)
        if end.outcome == RETRY and not asks_for_retry(self._plan, self._node.id):
            if self._may_retry(end):
                return self._retried(end)
            end = self._retries_spent(end)
        return self._failed(end) if end.failed else self._supervised(end) or self._onward(end)

    def _supervised(self, end: VisitEnd) -> Route | None:
        """Lead from a supervisor into its child, or back."""
        way = supervised(self._settled, self._plan.dot, end.lookup)
        return None if way is None else self._led(way, end)

    def _led(self, way: Route, end: VisitEnd) -> Route:
        made = self._go(way.edges, end, way.reason)
        return replace(made, context={**made.context, **way.context})

    # Retries

    def _may_retry(self, end: VisitEnd) -> bool:
        most = most_retries(self._plan.dot, self._node, self._type)
        return self._settled.attempt <= most and end.kind not in FINAL

    def _retried(self, end: VisitEnd) -> Route:
        seconds = wait_seconds(self._plan.dot, self._node, self._settled.path, self._settled.attempt)
        error = end.error or {"type": "NodeRetries", "message": "It asked for a retry."}
        return Route(outcome=end.outcome, failed=True, error=error, retry_seconds=seconds, reason="retry")

    def _retries_spent(self, end: VisitEnd) -> VisitEnd:
        """Return what an outcome retry without attempts left comes to."""
        if self._node.flag("allow_partial"):
            return replace(end, outcome=PARTIAL, error=None, kind="")
        tried = f"{self._settled.attempt} attempt{'s' if self._settled.attempt > 1 else ''}"
        return end.as_failure("RetriesExhausted", f"It still asks for a retry after {tried}.", "deterministic")

    # Ends that are no failure

    def _onward(self, end: VisitEnd) -> Route:
        edges = self._plan.outgoing(self._node.id)
        if not edges:
            return self._go([], end, "")
        if self._type == kinds.PARALLEL:
            # One edge to each node that branches begin with.
            chosen: dict[str, str] = {}
            for edge in edges:
                if not edge.condition or holds(edge, end):
                    chosen.setdefault(edge.target, edge.id)
            if chosen:
                return self._go(list(chosen.values()), end, kinds.PARALLEL)
        else:
            found = choose(self._plan, self._node.id, end, self._closed)
            if found.edge is not None:
                return self._go([found.edge.id], end, found.reason)
            if found.closed:
                return self._kept(self._stopped(end.as_failure("LimitReached", found.closed, "deterministic")))
        asked = ", ".join(dict.fromkeys(edge.condition for edge in edges if edge.condition))
        label = f" with the label {end.preferred_label!r}" if end.preferred_label else ""
        said = f"No edge accepts its outcome {end.outcome!r}{label}; the edges ask for: {asked}."
        failed, name = end.as_failure("NoEdge", said, "deterministic"), bare(self._settled.path)
        hint = f"Fix the edges and resume with the file: what {name} made is kept; --from {name} runs it again."
        return self._kept(self._failed(replace(failed, error={**(failed.error or {}), "hint": hint})))

    def _kept(self, route: Route) -> Route:
        """Keep work that was fine, so that a resume does not repeat it; a person is asked again and may choose else."""
        return replace(route, kept=self._type != kinds.HUMAN)

    def _closed(self, edge: DotEdge) -> str:
        return self._router.edge_closed(self._state, edge)

    # Failures

    def _failed(self, end: VisitEnd) -> Route:
        """Lead to another attempt, an edge that accepts it, a retry target, the fan-in; else the run fails."""
        if self._may_retry(end):
            return self._retried(end)
        if self._type != kinds.CONDITIONAL:
            end = replace(end, error={**(end.error or {}), "signature": end.signature(self._node.id)})
            if hopeless := self._hopeless(end):
                return hopeless
        found = choose_for_failure(self._plan, self._node.id, end, self._closed)
        if found.edge is not None:
            return self._go([found.edge.id], end, found.reason)
        if found.closed:
            return self._stopped(end.as_failure("LimitReached", f"{end.reason} {found.closed}", end.kind))
        if end.kind not in _AT_ONCE and (back := self._back(end)):
            return back
        return self._to_fan_in(end)

    def _hopeless(self, end: VisitEnd) -> Route | None:
        """End what fails again and again in the same way; a gate's verdicts have their own limit."""
        if self._node.id in self._plan.gates or is_transient(end.kind):
            return None
        sign, path = (end.error or {})["signature"], self._settled.path
        earlier = [run.attempt for run in self._state.steps.values() if run.node == self._node.id
                   and run.path != path and (run.error or {}).get("signature") == sign]  # fmt: skip
        if len(earlier) + 1 < self._router.same_failures:
            return None
        visits, attempts = len(earlier) + 1, sum(earlier) + self._settled.attempt
        often = f"{visits} visit{'s' if visits > 1 else ''}"
        often += f" ({attempts} attempts)" if attempts != visits else ""
        error = {
            **(end.error or {}), "type": "SameFailure",
            "message": f"It has failed in the same way on {often}, so it is not tried again: {end.reason}",
            "hint": "Fix the cause, then resume; loop_restart_signature_limit sets the limit.",
        }  # fmt: skip
        return self._to_fan_in(replace(end, error=error))

    def _back(self, end: VisitEnd) -> Route | None:
        """Jump to the first retry target that may be taken."""
        graph, node = self._settled.graph, self._node.id
        ways = [retry_id(node, target) for target in targets(self._plan.dot, self._node)]
        ways = [way for way in ways if graph.edge(way) is not None]
        if ways and node in self._plan.gates:
            limit = self._gate_limit(node)
            if gate_jumps(graph, self._state, node) >= limit:
                return self._to_fan_in(replace(end, error=self._unsatisfied(node, end.reason, limit)))
        for way in ways:
            if not self._router.node_closed(self._state, target_of(way)):
                return self._go([way], end, "retry_target")
        return None

    def _to_fan_in(self, end: VisitEnd) -> Route:
        """Leave the failure of a branch to the fan-in; outside of branches the run fails."""
        tracks = Tracks(self._settled.graph, self._state.steps)
        gather = self._plan.regions.gather_of(self._node.id)
        inside = tracks.of(self._node.id, self._settled.consumed)
        if gather and any(tracks.gathers_visit(gather, fan) for fan in inside):
            return self._go([branch_id(self._node.id, gather)], end, BRANCH)
        return self._fail(end)

    def _stopped(self, end: VisitEnd) -> Route:
        """Lead on where a limit was reached: an edge for failures takes it, no jump does."""
        found = choose_for_failure(self._plan, self._node.id, end, self._closed)
        return self._to_fan_in(end) if found.edge is None else self._go([found.edge.id], end, found.reason)

    # The exit

    def _leave(self, end: VisitEnd) -> Route:
        """End, if every visited goal gate is satisfied; else go back for the first that is not."""
        state, plan = self._state, self._plan
        visits = self._gate_visits()
        for gate, visit in visits.items():
            if outcome_of(visit) in SATISFYING:
                continue
            reason = str((visit.error or {}).get("message") or "")
            limit = self._gate_limit(gate)
            if gate_jumps(self._settled.graph, state, gate) < limit:
                for target in targets(plan.dot, plan.dot.nodes[gate]):
                    if not self._router.node_closed(state, target):
                        return self._go([gate_id(self._node.id, target, gate)], end, GATE)
            error = self._unsatisfied(gate, reason or f"its outcome was {outcome_of(visit)}", limit)
            failed = end.as_failure("GoalGateUnsatisfied", str(error["message"]))
            return self._fail(replace(failed, error=error))
        return self._supervised(end) or self._go([], end, "")

    def _gate_visits(self) -> dict[str, StepRun]:
        """Return the exit's goal gates that were visited since the run, or the child, began: each newest visit."""
        plan, runs = self._plan, self._state.steps.values()
        gates = plan.gates_for(self._node.id)
        if not gates:
            return {}
        restarted = [run.ended_seq for run in runs if any(edge in plan.restarts for edge in run.edges)]
        since = max([*restarted, begun(self._settled, plan.dot)])
        found = sorted((run for run in runs if run.node in gates and run.ended_seq and run.started_seq > since),
                       key=lambda run: run.ended_seq)  # fmt: skip
        newest = {run.node: run for run in found}
        return {gate: newest[gate] for gate in gates if gate in newest}

    def _gate_limit(self, gate: str) -> int:
        """Return how often a run goes back for a gate."""
        return self._plan.dot.nodes[gate].number("max_retries") or _MAX_GATE_JUMPS

    def _unsatisfied(self, gate: str, reason: str, limit: int) -> Mapping[str, Any]:
        way = targets(self._plan.dot, self._plan.dot.nodes[gate])
        tried = f"went back for it {_times(limit)}" if way else "it names no retry_target"
        message = f"Goal gate unsatisfied: {gate} ({tried}): {reason.rstrip('.')}."
        return {"type": "GoalGateUnsatisfied", "message": message, "gate": gate}

    # Routes

    def _go(self, edges: Sequence[str], end: VisitEnd, reason: str) -> Route:
        return Route(edges, end.outcome, end.failed, end.error, self._left_behind(end), reason=reason)

    def _fail(self, end: VisitEnd) -> Route:
        """End the run; in a child pipeline its supervisor is told."""
        if (way := failed_child(self._settled, self._plan.dot)) is not None:
            return self._led(way, end)
        return replace(self._go((), end, "failed"), failed=True)

    def _left_behind(self, end: VisitEnd) -> dict[str, Any]:
        """Return the context keys that every end sets, in the names of both dialects; only those that change.

        A key that the handler set itself is kept; a skipped node leaves none.
        """
        node, seen, attempts = self._settled.node.id, self._settled.seen, self._settled.attempt
        if end.outcome == SKIPPED:
            return {}
        found: dict[str, Any] = {
            **end.own,
            **({"last_stage": node} if self._plan.does_work(node) else {}),
            "current_node": node,
            "_current_node": node,
            "_previous_node": str(seen.get("current_node") or ""),
        }
        counter = f"internal.retry_count.{node}"
        if attempts > 1 or counter in seen:
            found[counter] = found["_retry_count"] = attempts - 1 if end.failed else 0
        if node in self._plan.gates:
            gates = seen.get("_goal_gates")
            word = "satisfied" if end.outcome in SATISFYING else "unsatisfied"
            found["_goal_gates"] = {**(gates if isinstance(gates, Mapping) else {}), node: word}
        changes = self._settled.changes
        return {key: value for key, value in found.items() if key not in changes and value != seen.get(key, "")}
