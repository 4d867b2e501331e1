"""Fan-outs and where they are gathered: the join policies, what the branches came to, and the best of them.

The branches' context changes are not merged; they are listed in the context key parallel.results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.dot import kinds
from pipeline.dot.model import DotNode
from pipeline.engine.contexts import Arrival
from pipeline.formats.attractor.handlers import codergen
from pipeline.formats.attractor.handlers.prompt import filled
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import FAIL, PARTIAL, RETRY, SUCCESS, NodeOutcome, failure, normalise

#: Context key that holds what the branches came to.
RESULTS = "parallel.results"
#: Worse outcomes have higher ranks; words of one's own count as success.
_RANKS: Mapping[str, int] = {PARTIAL: 1, RETRY: 2, FAIL: 3}
#: Most characters of a reply, and of a context value, that parallel.results has of a branch.
_MOST_REPLY, _MOST_VALUE = 4_000, 1_000
_PROMPTS = ("prompt", "llm_prompt")
_BEST = re.compile(r"^[\s>*_#`-]*BEST[*_`]*\s*[:=]\s*[*_`\"']*([^\s*`\"']+)", re.M | re.I)


@dataclass(frozen=True, slots=True)
class Branch:
    """What one branch came to."""

    #: The node it began with; the node it ended with.
    id: str
    node: str
    outcome: str
    failure_reason: str
    notes: str
    response: str
    score: float
    #: What it set.
    context: Mapping[str, Any]

    @classmethod
    def of(cls, arrival: Arrival) -> Branch:
        """Return what the branch came to whose token arrived."""
        outputs = arrival.outputs
        try:
            score = float(outputs.get("score", arrival.context.get("score")))
        except (TypeError, ValueError):
            score = 0.0
        return cls(
            arrival.branch or arrival.node, arrival.node, FAIL if arrival.failed else normalise(arrival.outcome),
            str((arrival.error or {}).get("message") or ""), str(outputs.get("notes") or ""),
            _short(str(outputs.get("response") or outputs.get("output") or ""), _MOST_REPLY),
            score if abs(score) < 1e300 else 0.0, arrival.context,
        )  # fmt: skip

    @property
    def rank(self) -> int:
        return _RANKS.get(self.outcome, 0)

    @property
    def succeeded(self) -> bool:
        """Return whether it neither failed nor asks to be tried again."""
        return self.rank < _RANKS[RETRY]

    def to_json(self) -> dict[str, Any]:
        """Return it as parallel.results has it; what the program itself notes in the context is left out."""
        program = ("internal.", "current_node", "_", "parallel.")
        return {
            "id": self.id, "node": self.node, "status": self.outcome, "outcome": self.outcome, "score": self.score,
            "notes": self.notes, "failure_reason": self.failure_reason, "response": self.response,
            "context_updates": {
                key: _short(value, _MOST_VALUE) for key, value in self.context.items() if not key.startswith(program)
            },
        }  # fmt: skip


def parallel(visit: Visit) -> NodeOutcome:
    """Return success; the router takes all its edges."""
    return NodeOutcome(outputs={"branches": list(dict.fromkeys(edge.target for edge in visit.outgoing()))})


def fan_in(visit: Visit) -> NodeOutcome:
    """Gather the branches and judge them by the join policy.

    Raises:
        Pause: They are to be ranked by the model, and it cannot be asked.
    """
    branches = branches_of(visit)
    if not branches:
        return failure("No branch has come here.", "deterministic")
    best = min(branches, key=lambda branch: (branch.rank, -branch.score, branch.id))
    outputs: dict[str, Any] = {}
    if visit.node.first(*_PROMPTS) and not visit.ctx.options.get(codergen.SIMULATE):
        chosen = _ranked_by_model(visit, branches, outputs)
        if isinstance(chosen, NodeOutcome):
            return chosen
        best = chosen or best
    results = [branch.to_json() for branch in branches]
    told = {
        RESULTS: results,
        "parallel.fan_in.best_id": best.id,
        "parallel.fan_in.best_outcome": best.outcome,
        "parallel.success_count": sum(branch.succeeded for branch in branches),
        "parallel.fail_count": sum(not branch.succeeded for branch in branches),
    }
    made = joined(visit, branches)
    return NodeOutcome(
        made.status, notes=made.notes, failure_reason=made.failure_reason, context_updates=told,
        outputs={**outputs, "results": results, "best": best.id, "policy": _policy(_said_by(visit))},
    )  # fmt: skip


def branches_of(visit: Visit) -> list[Branch]:
    """Return what the branches that have come here came to, in order of declaration of their first nodes."""
    edges = [edge for node in _said_by(visit)[1:] for edge in visit.graph.outgoing(node.id)]
    order = {edge.target: number for number, edge in reversed(list(enumerate(edges)))}
    return sorted(map(Branch.of, visit.ctx.place.arrivals), key=lambda branch: order.get(branch.id, len(edges)))


def joined(visit: Visit, branches: Sequence[Branch]) -> NodeOutcome:
    """Return the outcome of the branches together."""
    said = _said_by(visit)
    counts = [len({edge.target for edge in visit.outgoing(node.id)}) for node in said[1:]
              if visit.graph.kind(node) == kinds.PARALLEL]  # fmt: skip
    total = max(len(branches), counts[0] if len(counts) == 1 else 0)
    good = sum(branch.succeeded for branch in branches)
    told, policy = f"{good} of {total} branches succeeded", _policy(said)
    if good and policy == "wait_all":
        whole = good == total and all(branch.outcome != PARTIAL for branch in branches)
        return NodeOutcome(SUCCESS if whole else PARTIAL, notes=f"{told}.")
    needed = _needed(said, policy, total) if good else 1
    if needed is None:
        return failure("join_policy=k_of_n needs k, a whole number of branches.", "config")
    if good >= needed:
        return NodeOutcome(SUCCESS, notes=f"{told}; {needed} had to.")
    failed = [branch for branch in branches if not branch.succeeded]
    reasons = "; ".join(f"{branch.id}: {_short(branch.failure_reason or branch.outcome, 300)}" for branch in failed[:5])
    reasons += f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
    return failure(f"{told}{f', {needed} had to' if good else ''}: {reasons}")


def _said_by(visit: Visit) -> list[DotNode]:
    """Return the fan-in, and the fan-outs whose branches it gathers."""
    scope = visit.ctx.place.node.attributes.get("scope") or ()
    names = [scope] if isinstance(scope, str) else list(scope)
    return [visit.node, *(visit.graph.nodes[name] for name in names if name in visit.graph.nodes)]


def _policy(said: Sequence[DotNode]) -> str:
    """Return the join policy: the fan-in's own, else its fan-out's, else wait_all."""
    words = (node.text("join_policy").strip().lower() for node in said)
    return next((word for word in words if word in ("wait_all", "first_success", "quorum", "k_of_n")), "wait_all")


def _needed(said: Sequence[DotNode], policy: str, total: int) -> int | None:
    """Return how many branches must succeed; None if the node does not say."""
    if policy == "first_success":
        return 1
    if policy == "quorum":
        # More than half; or the number or the part of them that `quorum` says.
        part = next((part for node in said if (part := node.decimal("quorum")) is not None and part > 0), None)
        if part is None:
            return total // 2 + 1
        return max(int(part) if part >= 1 else -int(-part * total // 1), 1)
    numbers = (node.number(name) for node in said for name in ("k", "join_k"))
    number = next((number for number in numbers if number is not None), None)
    return None if number is None else max(number, 1)


def _ranked_by_model(visit: Visit, branches: Sequence[Branch], outputs: dict[str, Any]) -> Branch | NodeOutcome | None:
    """Return the branch that the model names the best; None if it names none of them; or how asking failed."""
    text = filled(visit, visit.node.first(*_PROMPTS))
    listed = "\n\n".join(
        f"## {branch.id} ({branch.outcome})\n{branch.response or branch.failure_reason or branch.notes}"
        for branch in branches
    )
    names = ", ".join(branch.id for branch in branches)
    rules = f"Choose the best of the candidates. End your reply with one line:\nBEST: id\nwhere id is one of: {names}."
    answered = codergen.ask(visit, f"{text}\n\n# Candidates\n\n{listed}", rules)
    if isinstance(answered, NodeOutcome):
        return answered
    reply = answered.reply.text
    outputs.update({**answered.outputs, "prompt": text, "response": reply})
    found = _BEST.findall(reply)
    by_id = {branch.id.casefold(): branch for branch in branches}
    return by_id.get(found[-1].rstrip(".").casefold()) if found else None


def _short(value: Any, most: int) -> Any:
    """Return a value that does not blow up the context: long texts and structures are cut."""
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[: most - 1]}…"
    if isinstance(value, list | dict) and len(text := json.dumps(value)) > most:
        return f"{text[: most - 1]}…"
    return value
