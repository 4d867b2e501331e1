"""Where a visit of a DOT graph leads, from the records alone: retries, edges, failures, goal gates, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.model import DotEdge, DotNode
from pipeline.engine.routing import Route, Settled
from pipeline.formats.attractor import choice
from pipeline.formats.attractor.counts import (
    Limits,
    gate_jumps,
    gate_limit,
    last_restart,
    newest_visits,
    outcome_of,
    restart_count,
    same_failures,
    times,
)
from pipeline.formats.attractor.ending import Ending, ending_of, signature
from pipeline.formats.attractor.jumps import BRANCH, EXITS, GATE, branch_id, gate_id, retry_id, targets
from pipeline.formats.attractor.kept import left_behind
from pipeline.formats.attractor.outcome import PARTIAL, RETRY, SATISFYING
from pipeline.formats.attractor.plan import Plan
from pipeline.formats.attractor.retry import FINAL, is_transient, most_retries, wait_seconds
from pipeline.formats.attractor.supervision import begun, failed_child, supervised
from pipeline.graph.tracks import Tracks
from pipeline.records.run import bare

#: Kinds of failure that no jump mends: only an edge that accepts them goes on.
_AT_ONCE = frozenset({"auth", "authentication", "billing", "quota"})
_RESTARTS = "internal.loop_restart_count"


class AttractorRouter:
    """Decides for one graph; holds nothing of a run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._limits = Limits(plan.dot, plan.restarts)
        self._asks_restarts = any(_RESTARTS in edge.condition for edge in plan.dot.edges)

    def __call__(self, settled: Settled) -> Route:
        return _Decision(self._plan, self._limits, settled, asks_restarts=self._asks_restarts).route()


class _Decision:
    """One visit's."""

    def __init__(self, plan: Plan, limits: Limits, settled: Settled, *, asks_restarts: bool) -> None:
        self._plan = plan
        self._limits = limits
        self._settled = settled
        self._state = settled.state
        self._node: DotNode = plan.dot.nodes[settled.node.id]
        self._type = plan.types[settled.node.id]
        known: dict[str, Any] = {"current_node": settled.node.id}
        if plan.does_work(settled.node.id):
            known["last_stage"] = settled.node.id
        if asks_restarts:
            known[_RESTARTS] = restart_count(self._state, plan.restarts)
        self._ending = ending_of(settled, known)

    def route(self) -> Route:
        """Where it leads."""
        ending = self._ending
        if self._type in EXITS and not ending.failed:
            return self._leave(ending)
        if ending.outcome == RETRY and not choice.asks_for_retry(self._plan, self._node.id):
            if self._may_retry(ending):
                return self._again(ending)
            ending = self._spent(ending)
        if not ending.failed:
            return self._supervised(ending) or self._onward(ending)
        return self._failed(ending)

    # Child pipelines

    def _supervised(self, ending: Ending) -> Route | None:
        """From a supervisor into its child, or back."""
        way = supervised(self._settled, self._plan.dot, ending.lookup)
        return None if way is None else self._led(way, ending)

    def _led(self, way: Route, ending: Ending) -> Route:
        made = self._go(way.edges, ending, way.reason)
        return replace(made, context={**made.context, **way.context})

    # Retries

    def _may_retry(self, ending: Ending) -> bool:
        most = most_retries(self._plan.dot, self._node, self._type)
        return self._settled.attempt <= most and ending.kind not in FINAL

    def _again(self, ending: Ending) -> Route:
        seconds = wait_seconds(self._plan.dot, self._node, self._settled.path, self._settled.attempt)
        error = ending.error or {"type": "NodeRetries", "message": "It asked to be tried again."}
        return Route(outcome=ending.outcome, failed=True, error=error, retry_seconds=seconds, reason="retry")

    def _spent(self, ending: Ending) -> Ending:
        """An outcome retry that is out of attempts."""
        if self._node.flag("allow_partial"):
            return replace(ending, outcome=PARTIAL, error=None, kind="")
        tried = f"{self._settled.attempt} attempt{'s' if self._settled.attempt > 1 else ''}"
        return ending.as_failure("RetriesExhausted", f"It still asks to be tried again after {tried}.", "deterministic")

    # Ends that are no failure

    def _onward(self, ending: Ending) -> Route:
        edges = self._plan.outgoing(self._node.id)
        if not edges:
            return self._go([], ending, "")
        if self._type == kinds.PARALLEL:
            chosen = self._branches(edges, ending)
            if chosen:
                return self._go(chosen, ending, kinds.PARALLEL)
        else:
            found = choice.choose(self._plan, self._node.id, ending, self._closed)
            if found.edge is not None:
                return self._go([found.edge.id], ending, found.reason)
            if found.closed:
                return self._kept(self._stopped(ending.as_failure("LimitReached", found.closed, "deterministic")))
        return self._kept(self._failed(self._untaken(edges, ending)))

    def _kept(self, route: Route) -> Route:
        """Where what was made is fine a resume makes it no second time; a person is asked again and may choose else."""
        return replace(route, kept=self._type != kinds.HUMAN)

    def _untaken(self, edges: Sequence[DotEdge], ending: Ending) -> Ending:
        """An end that no edge takes: what was made is fine, so it is not made again for that."""
        asked = ", ".join(dict.fromkeys(edge.condition for edge in edges if edge.condition))
        label = f" with the label {ending.preferred_label!r}" if ending.preferred_label else ""
        said = f"No edge takes its outcome {ending.outcome!r}{label}; the edges ask for: {asked}."
        failed = ending.as_failure("NoEdge", said, "deterministic")
        name = bare(self._settled.path)
        hint = f"Mend the edges and resume with the file: what {name} made is kept; --from {name} makes it again."
        return replace(failed, error={**(failed.error or {}), "hint": hint})

    def _branches(self, edges: Sequence[DotEdge], ending: Ending) -> list[str]:
        """One edge to each node that branches begin with."""
        found: dict[str, str] = {}
        for edge in edges:
            if not edge.condition or choice.holds(self._plan, edge, ending):
                found.setdefault(edge.target, edge.id)
        return list(found.values())

    def _closed(self, edge: DotEdge) -> str:
        return self._limits.edge_closed(self._state, edge)

    # Failures

    def _failed(self, ending: Ending) -> Route:
        """Another attempt, an edge that accepts it, a retry target, the fan-in; else the run fails."""
        if self._may_retry(ending):
            return self._again(ending)
        passes_on = self._type == kinds.CONDITIONAL
        if not passes_on:
            ending = self._signed(ending)
            if hopeless := self._hopeless(ending):
                return hopeless
        found = choice.choose_for_failure(self._plan, self._node.id, ending, self._closed)
        if found.edge is not None:
            return self._go([found.edge.id], ending, found.reason)
        if found.closed:
            return self._stopped(ending.as_failure("LimitReached", f"{ending.reason} {found.closed}", ending.kind))
        if ending.kind not in _AT_ONCE and (back := self._back(ending)):
            return back
        return self._to_fan_in(ending)

    def _signed(self, ending: Ending) -> Ending:
        return replace(ending, error={**(ending.error or {}), "signature": signature(self._node.id, ending)})

    def _hopeless(self, ending: Ending) -> Route | None:
        """The end of what fails again and again in the same way; a gate's verdicts have their own limit."""
        if self._node.id in self._plan.gates or is_transient(ending.kind):
            return None
        sign = str((ending.error or {})["signature"])
        earlier = same_failures(self._state, self._node.id, sign, self._settled.path)
        if len(earlier) + 1 < self._limits.same:
            return None
        visits, attempts = len(earlier) + 1, sum(earlier) + self._settled.attempt
        again = f"{visits} visit{'s' if visits > 1 else ''}"
        again += f" ({attempts} attempts)" if attempts != visits else ""
        error = {
            **(ending.error or {}), "type": "SameFailure",
            "message": f"It has failed in the same way on {again}, so it is not tried again: {ending.reason}",
            "hint": "Mend the cause, then resume; loop_restart_signature_limit says how often is too often.",
        }  # fmt: skip
        return self._to_fan_in(replace(ending, error=error))

    def _back(self, ending: Ending) -> Route | None:
        """The jump to the first retry target that may be taken."""
        graph, node = self._settled.graph, self._node.id
        if node in self._plan.gates:
            limit = gate_limit(self._plan.dot, node)
            if gate_jumps(graph, self._state, node) >= limit:
                if not self._ways(node):
                    return None
                return self._to_fan_in(replace(ending, error=self._unsatisfied(node, ending.reason, limit)))
        for edge in self._ways(node):
            if not self._limits.node_closed(self._state, edge.partition("->")[2].partition("#")[0]):
                return self._go([edge], ending, "retry_target")
        return None

    def _ways(self, node: str) -> list[str]:
        names = (retry_id(node, target) for target in targets(self._plan.dot, self._node))
        return [name for name in names if self._settled.graph.edge(name) is not None]

    def _to_fan_in(self, ending: Ending) -> Route:
        """The failure of a branch is the fan-in's to judge; outside of branches the run fails."""
        tracks = Tracks(self._settled.graph, self._state.steps)
        gather = self._plan.regions.gather_of(self._node.id)
        inside = tracks.of(self._node.id, self._settled.consumed)
        if gather and any(tracks.gathers_visit(gather, fan) for fan in inside):
            return self._go([branch_id(self._node.id, gather)], ending, BRANCH)
        return self._end(ending, ending.error)

    def _stopped(self, ending: Ending) -> Route:
        """A limit was reached: an edge for failures takes it, no jump does."""
        found = choice.choose_for_failure(self._plan, self._node.id, ending, self._closed)
        if found.edge is not None:
            return self._go([found.edge.id], ending, found.reason)
        return self._to_fan_in(ending)

    # The exit

    def _leave(self, ending: Ending) -> Route:
        """The end, if every visited goal gate is satisfied; else back for the first that is not."""
        state, plan = self._state, self._plan
        asked = plan.gates_for(self._node.id)
        since = max(last_restart(state, plan.restarts), begun(self._settled, plan.dot)) if asked else 0
        visits = newest_visits(state, asked, since) if asked else {}
        for gate in asked:
            visit = visits.get(gate)
            if visit is None or outcome_of(visit) in SATISFYING:
                continue
            reason = str((visit.error or {}).get("message") or "")
            limit = gate_limit(plan.dot, gate)
            if gate_jumps(self._settled.graph, state, gate) < limit:
                for target in targets(plan.dot, plan.dot.nodes[gate]):
                    if not self._limits.node_closed(state, target):
                        return self._go([gate_id(self._node.id, target, gate)], ending, GATE)
            error = self._unsatisfied(gate, reason or f"its outcome was {outcome_of(visit)}", limit)
            return self._end(ending.as_failure("GoalGateUnsatisfied", str(error["message"])), error)
        return self._supervised(ending) or self._go([], ending, "")

    def _unsatisfied(self, gate: str, reason: str, limit: int) -> Mapping[str, Any]:
        way = targets(self._plan.dot, self._plan.dot.nodes[gate])
        tried = f"went back for it {times(limit)}" if way else "it names no retry_target"
        return {
            "type": "GoalGateUnsatisfied",
            "message": f"Goal gate unsatisfied: {gate} ({tried}): {reason.rstrip('.')}.",
            "gate": gate,
        }

    # Routes

    def _go(self, edges: Sequence[str], ending: Ending, reason: str) -> Route:
        return Route(
            edges, ending.outcome, ending.failed, ending.error, left_behind(self._plan, self._settled, ending),
            reason=reason,
        )  # fmt: skip

    def _end(self, ending: Ending, error: Mapping[str, Any] | None) -> Route:
        """The end of the run; in a child pipeline its supervisor is told."""
        if (way := failed_child(self._settled, self._plan.dot)) is not None:
            return self._led(way, replace(ending, error=error))
        return Route(
            (), ending.outcome, True, error, left_behind(self._plan, self._settled, ending), reason="failed"
        )  # fmt: skip
