"""What checkpoint.json says beside seeds/002's names: those of the Attractor dialects (seeds/000, seeds/004). A view.

Never read back while a journal exists. Long values stand as {"$blob": hash, "bytes": n}, as in the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.dot.model import DotGraph
from pipeline.formats.attractor.documents import outcome_word
from pipeline.formats.attractor.outcome import SATISFYING, SKIPPED
from pipeline.records.documents import metrics
from pipeline.records.run import RunState, Spend, StepRun, bare, next_attempt
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.records.values import digest

#: So many of the last visits are told in `logs`.
_LOGGED = 20


@dataclass(frozen=True, slots=True)
class Facts:
    """What of a graph its documents tell."""

    name: str
    goal: str
    #: Nodes whose success the exit asks for.
    gates: tuple[str, ...]
    #: The graph's own fidelity; compact where it names none.
    fidelity: str
    #: sha256 of the source text.
    fingerprint: str

    @classmethod
    def of(cls, graph: DotGraph) -> Facts:
        """The facts of a parsed graph."""
        gates = tuple(node.id for node in graph.nodes.values() if node.flag("goal_gate"))
        fidelity = graph.text("default_fidelity") or graph.text("context_fidelity_default") or "compact"
        return cls(graph.name, graph.goal, gates, fidelity, digest(graph.source.encode("utf-8", "surrogatepass")))


def shaped(facts: Facts, document: dict[str, Any], state: RunState) -> dict[str, Any]:
    """The document with the Attractor names added."""
    ended, spent = ended_visits(state), _spent_by_visit(state)
    newest = {step.node: step for step in ended}
    return {
        **document,
        **_names(facts, state, ended),
        "node_outcomes": {node: visit_of(step, spent) for node, step in newest.items()},
        "earlier_visits": [visit_of(step, spent) for step in ended if newest[step.node] is not step],
        "node_visits": {name: count for name, count in state.visits.items() if "/" not in name},
    }


def numbered(facts: Facts, document: dict[str, Any], state: RunState, step: StepRun, usage: Spend) -> dict[str, Any]:
    """As `shaped`, for the checkpoint at the end of one visit; of the others only their outcomes, told before."""
    spent = {bare(step.path): usage} if usage.calls else {}
    told = {"node_outcomes": {step.node: visit_of(step, spent)}}
    return {**document, **_names(facts, state, ended_visits(state)), **told}


def _names(facts: Facts, state: RunState, ended: list[StepRun]) -> dict[str, Any]:
    passed = passed_visits(ended)
    last = passed[-1] if passed else None
    return {
        "pipeline_name": facts.name,
        "goal": facts.goal,
        "graph_hash": facts.fingerprint,
        "timestamp": state.updated_at,
        "current_node": last.node if last else "",
        "current_node_id": last.node if last else "",
        "completed_nodes": [step.node for step in passed],
        "next_nodes": following(state),
        "next_node_id": next(iter(following(state)), ""),
        "edge_selected": {"edges": list(last.edges), "reason": last.reason} if last else None,
        "outcome": outcome_of(last) if last else None,
        "node_history": [[step.node, word_of(step)] for step in ended],
        "node_retries": retries(state),
        "goal_gate_status": gate_status(facts, ended),
        "fidelity_state": fidelity_state(facts, passed, state),
        "artifacts": {name: blob for step in passed if step.artifacts for name, blob in step.artifacts.items()},
        "open_questions": {bare(path): list(asked.choices) for path, asked in state.questions.items()},
        "context": dict(state.context),
        "logs": [log_line(step) for step in ended[-_LOGGED:]],
    }


def passed_visits(ended: list[StepRun]) -> list[StepRun]:
    """Of ended visits those that the run went on from: completed, or failed and accepted; skipped ones are not told."""
    return [step for step in ended if (step.status == COMPLETED or step.edges) and step.outcome != SKIPPED]


def ended_visits(state: RunState) -> list[StepRun]:
    """Visits that have ended, oldest end first."""
    return sorted((step for step in state.steps.values() if step.ended_seq), key=lambda step: step.ended_seq)


def word_of(step: StepRun) -> str:
    """The outcome of a visit, in the specification's spelling."""
    return outcome_word(step.outcome) if step.outcome else ("fail" if step.status == FAILED else "success")


def outcome_of(step: StepRun) -> dict[str, Any]:
    """An Outcome as the specification knows it: as status.json has it too."""
    outputs, changes = step.outputs, step.context
    return {
        "status": word_of(step),
        "preferred_label": outputs.get("preferred_label") or changes.get("preferred_label") or "",
        "suggested_next_ids": outputs.get("suggested_next_ids") or [],
        "context_updates": dict(changes),
        "notes": outputs.get("notes") or "",
        "failure_reason": str((step.error or {}).get("message") or ""),
    }


def visit_of(step: StepRun, spent: Mapping[str, Spend]) -> dict[str, Any]:
    """One visit: how it ended, what it took and cost."""
    told: dict[str, Any] = {
        "node": step.node,
        "visit": step.visit,
        "status": word_of(step),
        "attempts": step.attempt,
        "started_at": step.started_at or None,
        "completed_at": step.completed_at,
        "duration_seconds": round(step.seconds, 3),
        "edges": list(step.edges),
    }
    if step.reason:
        told["reason"] = step.reason
    if step.error is not None:
        told["failure_reason"] = str(step.error.get("message") or "")
    usage = spent.get(bare(step.path))
    if usage is not None:
        told["usage"] = metrics(usage)
        told["cost_usd"] = told["usage"]["cost_usd"]
    return told


def following(state: RunState) -> list[str]:
    """Nodes that come next: open and failed visits, then the targets of edges not taken yet."""
    found = [state.steps[path].node for path in (*state.open_paths, *state.failed_paths)]
    for token in state.waiting.values():
        found.append(token.edge.partition("->")[2].partition("#")[0])
    return [name for name in dict.fromkeys(found) if name]


def retries(state: RunState) -> dict[str, int]:
    """Retries used by visits that have not succeeded yet."""
    found = {}
    for path in (*state.open_paths, *state.failed_paths):
        if used := max(state.steps[path].attempt, next_attempt(state, path)) - 1:
            found[state.steps[path].node] = used
    return found


def gate_status(facts: Facts, ended: list[StepRun]) -> dict[str, str]:
    """Each goal gate: satisfied or unsatisfied by its newest visit, pending before the first."""
    if not facts.gates:
        return {}
    newest = {step.node: step for step in ended}
    return {gate: _judged(newest.get(gate)) for gate in facts.gates}


def _judged(step: StepRun | None) -> str:
    if step is None:
        return "pending"
    return "satisfied" if word_of(step) in SATISFYING else "unsatisfied"


def fidelity_state(facts: Facts, passed: list[StepRun], state: RunState) -> dict[str, Any]:
    """The fidelity of the graph, and that of the last node that asked; how often the run was resumed."""
    said = (step.outputs["fidelity"] for step in reversed(passed) if "fidelity" in step.outputs)
    return {"mode": facts.fidelity, "last": next(said, None), "resumes": state.resumes}


def log_line(step: StepRun) -> str:
    """`2026-01-09T14:30:22.000Z test: fail (retry_target) -> plan`."""
    targets = ", ".join(edge.partition("->")[2].partition("#")[0] for edge in step.edges)
    why = f" ({step.reason})" if step.reason else ""
    return f"{step.completed_at} {bare(step.path)}: {word_of(step)}{why}" + (f" -> {targets}" if targets else "")


def _spent_by_visit(state: RunState) -> dict[str, Spend]:
    sums: dict[str, Spend] = {}
    for key, spend in state.spend.items():
        sums.setdefault(key.step, Spend()).add(spend)
    return sums
