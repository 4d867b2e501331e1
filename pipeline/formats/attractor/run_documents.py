"""What documents of the Attractor dialects say of a run: checkpoint.json beside seeds/002's names, and those beside it.

Views: never read back while a journal exists. Long values are {"$blob": hash, "bytes": n}, as in the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pipeline.dot.model import DotGraph, target_of
from pipeline.engine.recorder import HeadView
from pipeline.formats.attractor.documents import outcome_word
from pipeline.formats.attractor.outcome import SATISFYING, SKIPPED, SUCCESS, value_text
from pipeline.records.charge import TOKEN_KINDS
from pipeline.records.documents import metrics, usd
from pipeline.records.run import RunState, Spend, StepRun, bare, next_attempt, spend_by
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.records.values import digest

#: So many of the last visits are told in `logs`.
_LOGGED = 20


def head_view(graph: DotGraph, *, each_checkpoint: bool = False) -> HeadView:
    """Return what a graph's run adds to checkpoint.json."""
    return HeadView(partial(shaped, graph), each_checkpoint)


def shaped(graph: DotGraph, document: dict[str, Any], state: RunState) -> dict[str, Any]:
    """Return the document with the Attractor names added."""
    ended = ended_visits(state)
    spent = spend_by(state, lambda key: key.step)
    newest = {step.node: step for step in ended}
    return {
        **document,
        **_names(graph, state, ended),
        "node_outcomes": {node: visit_of(step, spent) for node, step in newest.items()},
        "earlier_visits": [visit_of(step, spent) for step in ended if newest[step.node] is not step],
        "node_visits": {name: count for name, count in state.visits.items() if "/" not in name},
    }


def numbered(graph: DotGraph, document: dict[str, Any], state: RunState, step: StepRun, usage: Spend) -> dict[str, Any]:
    """Return the same for the checkpoint at the end of one visit; of the others only their outcomes, told before."""
    spent = {bare(step.path): usage} if usage.calls else {}
    told = {"node_outcomes": {step.node: visit_of(step, spent)}}
    return {**document, **_names(graph, state, ended_visits(state)), **told}


def _names(graph: DotGraph, state: RunState, ended: list[StepRun]) -> dict[str, Any]:
    passed, newest, ahead = passed_visits(ended), {step.node: step for step in ended}, following(state)
    last = passed[-1] if passed else None
    gates = {node.id: "pending" for node in graph.nodes.values() if node.flag("goal_gate")}
    for gate in gates.keys() & newest.keys():
        gates[gate] = "satisfied" if word_of(newest[gate]) in SATISFYING else "unsatisfied"
    fidelity = graph.text("default_fidelity") or graph.text("context_fidelity_default") or "compact"
    fidelities = (step.outputs["fidelity"] for step in reversed(passed) if "fidelity" in step.outputs)
    return {
        "pipeline_name": graph.name,
        "goal": graph.goal,
        "graph_hash": _fingerprint(graph),
        "timestamp": state.updated_at,
        "current_node": last.node if last else "",
        "current_node_id": last.node if last else "",
        "completed_nodes": [step.node for step in passed],
        "next_nodes": ahead,
        "next_node_id": next(iter(ahead), ""),
        "edge_selected": {"edges": list(last.edges), "reason": last.reason} if last else None,
        "outcome": outcome_document(last) if last else None,
        "node_history": [[step.node, word_of(step)] for step in ended],
        "node_retries": _retries(state),
        "goal_gate_status": gates,
        # The fidelity of the graph, and that of the last node that asked; how often the run was resumed.
        "fidelity_state": {"mode": fidelity, "last": next(fidelities, None), "resumes": state.resumes},
        "artifacts": {name: blob for step in passed if step.artifacts for name, blob in step.artifacts.items()},
        "open_questions": {bare(path): list(asked.choices) for path, asked in state.questions.items()},
        "context": dict(state.context),
        "logs": [_log_line(step) for step in ended[-_LOGGED:]],
    }


def _fingerprint(graph: DotGraph) -> str:
    return digest(graph.source.encode("utf-8", "surrogatepass"))


def passed_visits(ended: list[StepRun]) -> list[StepRun]:
    """Return those ended visits that the run went on from: completed, or failed and accepted; no skipped ones."""
    return [step for step in ended if (step.status == COMPLETED or step.edges) and step.outcome != SKIPPED]


def ended_visits(state: RunState) -> list[StepRun]:
    """Return the visits that have ended, oldest end first."""
    return sorted((step for step in state.steps.values() if step.ended_seq), key=lambda step: step.ended_seq)


def word_of(step: StepRun) -> str:
    """Return the outcome of a visit, in the specification's spelling."""
    return outcome_word(step.outcome) if step.outcome else ("fail" if step.status == FAILED else "success")


def outcome_document(step: StepRun) -> dict[str, Any]:
    """Return an Outcome as the specification knows it: as status.json has it too."""
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
    """Return how one visit ended, what it took and cost."""
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
    """Return the nodes that come next: of open and failed visits, then the targets of edges not taken yet."""
    found = [state.steps[path].node for path in (*state.open_paths, *state.failed_paths)]
    found += [target_of(token.edge) for token in state.waiting.values()]
    return [name for name in dict.fromkeys(found) if name]


def _retries(state: RunState) -> dict[str, int]:
    """Return the retries used by visits that have not succeeded yet."""
    found = {}
    for step in (state.steps[path] for path in (*state.open_paths, *state.failed_paths)):
        if used := max(step.attempt, next_attempt(state, step.path)) - 1:
            found[step.node] = used
    return found


def _log_line(step: StepRun) -> str:
    """Return `2026-01-09T14:30:22.000Z test: fail (retry_target) -> plan`."""
    targets = ", ".join(map(target_of, step.edges))
    why = f" ({step.reason})" if step.reason else ""
    return f"{step.completed_at} {bare(step.path)}: {word_of(step)}{why}" + (f" -> {targets}" if targets else "")


def manifest(graph: DotGraph, state: RunState) -> dict[str, Any]:
    """Return manifest.json: what is run, and since when."""
    return {
        "name": graph.name,
        "goal": graph.goal,
        "start_time": state.started_at,
        "run_id": state.run_id,
        "graph_hash": _fingerprint(graph),
        "params": dict(state.params),
        "settings": dict(state.identity),
    }


def final_document(state: RunState) -> dict[str, Any]:
    """Return final.json: that the run is over, and how; written last."""
    return {
        "run_id": state.run_id,
        "status": state.status,
        "outcome": "success" if state.status == COMPLETED else "fail",
        "error": state.error,
        "ended_at": state.updated_at,
        "nodes_visited": len(state.steps),
        "cost_usd": usd(state.total.usd),
        "possibly_spent_usd": usd(state.total.high),
        "unpriced_calls": state.total.unpriced,
        "tokens": {kind: count for kind, count in state.total.tokens.items() if kind in TOKEN_KINDS},
    }


def execution_log(graph: DotGraph, state: RunState) -> dict[str, Any]:
    """Return execution.log.json, version 1, as run_dot writes it, for tools that read that file.

    Contexts are as they were after each step in order of ends, their values as text.
    """
    status = {COMPLETED: "success", FAILED: "error"}.get(state.status, "in_progress")
    context: dict[str, str] = {}
    steps: list[dict[str, Any]] = []
    done: list[str] = []
    for step in passed_visits(ended_visits(state)):
        before = dict(context)
        context.update({key: value_text(value) for key, value in step.context.items()})
        done.append(step.node)
        said = outcome_document(step)
        steps.append({
            "step": len(done),
            "node_id": step.node,
            "handler_type": graph.kind(step.node) if step.node in graph.nodes else "",
            "context_before": before,
            "outcome": {
                "status": "Success" if said["status"] == SUCCESS else said["status"],
                "notes": said["notes"] or said["failure_reason"] or None,
            },
            "context_after": dict(context),
            "next_node_id": target_of(step.edges[0]) if step.edges else None,
            "completed_nodes_after": list(done),
        })  # fmt: skip
    if steps and status == "in_progress":
        steps[-1]["next_node_id"] = next(iter(following(state)), None)
    return {
        "version": 1,
        "goal": graph.goal,
        "started_at": state.started_at,
        "finished_at": state.updated_at if state.status == COMPLETED else None,
        "final_status": status,
        "completed_nodes": done,
        "steps": steps,
    }
