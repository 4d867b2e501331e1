"""Fan-outs and where they are gathered: the join policies, what the branches came to, and the best of them.

The branches' context changes are not merged; they stand in the context key parallel.results.
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
from pipeline.formats.attractor.children import VIRTUAL
from pipeline.formats.attractor.handlers import asking
from pipeline.formats.attractor.handlers.expansion import Names, expand
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import FAIL, PARTIAL, RETRY, SUCCESS, NodeOutcome, failure, normalise

#: Context key that holds what the branches came to.
RESULTS = "parallel.results"
WAIT_ALL, FIRST_SUCCESS, QUORUM, K_OF_N = "wait_all", "first_success", "quorum", "k_of_n"
POLICIES = (WAIT_ALL, FIRST_SUCCESS, QUORUM, K_OF_N)
#: Worse outcomes have higher ranks; words of one's own count as success.
_RANKS: Mapping[str, int] = {PARTIAL: 1, RETRY: 2, FAIL: 3}
#: Most characters of a reply, and of a context value, that parallel.results has of a branch.
_MOST_REPLY, _MOST_VALUE = 4_000, 1_000
_PROMPTS = ("prompt", "llm_prompt")
_MINORITY = 0.5


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

    @property
    def succeeded(self) -> bool:
        """It neither failed nor wants to be tried again."""
        return _RANKS.get(self.outcome, 0) < _RANKS[RETRY]

    def to_json(self) -> dict[str, Any]:
        """As parallel.results has it."""
        return {
            "id": self.id, "node": self.node, "status": self.outcome, "outcome": self.outcome, "score": self.score,
            "notes": self.notes, "failure_reason": self.failure_reason, "response": self.response,
            "context_updates": {key: _short(value) for key, value in self.context.items() if _is_own(key)},
        }  # fmt: skip


def parallel(visit: Visit) -> NodeOutcome:
    """Success; the router takes all its edges."""
    edges = visit.graph.outgoing(visit.node.id)
    names = [edge.target for edge in edges if not edge.attributes.get(VIRTUAL)]
    return NodeOutcome(outputs={"branches": list(dict.fromkeys(names))})


def fan_in(visit: Visit) -> NodeOutcome:
    """Gather the branches and judge them by the join policy.

    Raises:
        Pause: They are to be ranked by the model, and it cannot be asked.
    """
    branches = branches_of(visit)
    if not branches:
        return failure("No branch has come here.", "deterministic")
    ranked = sorted(branches, key=lambda branch: (_RANKS.get(branch.outcome, 0), -branch.score, branch.id))
    outputs: dict[str, Any] = {}
    best = ranked[0]
    if any(visit.node.text(name).strip() for name in _PROMPTS) and not visit.ctx.options.get(asking.SIMULATE):
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
        outputs={**outputs, "results": results, "best": best.id, "policy": policy_of(visit)},
    )  # fmt: skip


def branches_of(visit: Visit) -> list[Branch]:
    """What the branches that have come here came to, in order of declaration."""
    return _in_order(visit, [_branch(arrival) for arrival in visit.ctx.arrivals])


def joined(visit: Visit, branches: Sequence[Branch]) -> NodeOutcome:
    """The outcome of the branches together."""
    policy, good = policy_of(visit), sum(branch.succeeded for branch in branches)
    total = max(len(branches), _branch_count(visit))
    told = f"{good} of {total} branches succeeded"
    if not good:
        return failure(f"{told}: {_reasons(branches)}")
    if policy == WAIT_ALL:
        whole = good == total and all(branch.outcome != PARTIAL for branch in branches)
        return NodeOutcome(SUCCESS if whole else PARTIAL, notes=f"{told}.")
    needed = _needed(visit, policy, total)
    if needed is None:
        return failure("join_policy=k_of_n needs k, a whole number of branches.", "config")
    if good >= needed:
        return NodeOutcome(SUCCESS, notes=f"{told}; {needed} had to.")
    return failure(f"{told}, {needed} had to: {_reasons(branches)}")


def policy_of(visit: Visit) -> str:
    """The join policy: the fan-in's own, else its fan-out's, else wait_all."""
    said = (node.text("join_policy").strip().lower() for node in _said_by(visit))
    return next((word for word in said if word in POLICIES), WAIT_ALL)


def _said_by(visit: Visit) -> list[DotNode]:
    """The fan-in, and the fan-outs whose branches it gathers."""
    scope = visit.ctx.node.attributes.get("scope") or ()
    names = [scope] if isinstance(scope, str) else list(scope)
    return [visit.node, *(visit.graph.nodes[name] for name in names if name in visit.graph.nodes)]


def _branch_count(visit: Visit) -> int:
    """How many branches the fan-out has."""
    counts = [len({edge.target for edge in visit.graph.outgoing(node.id) if not edge.attributes.get(VIRTUAL)})
              for node in _said_by(visit)[1:] if visit.graph.kind(node) == kinds.PARALLEL]  # fmt: skip
    return counts[0] if len(counts) == 1 else 0


def _in_order(visit: Visit, branches: list[Branch]) -> list[Branch]:
    """The branches in order of declaration, also those whose failure came by a way of its own."""
    edges = [edge for node in _said_by(visit)[1:] for edge in visit.graph.outgoing(node.id)]
    order = {edge.target: number for number, edge in reversed(list(enumerate(edges)))}
    return sorted(branches, key=lambda branch: order.get(branch.id, len(edges)))


def _needed(visit: Visit, policy: str, total: int) -> int | None:
    """How many branches must succeed; None: the node does not say."""
    if policy == FIRST_SUCCESS:
        return 1
    if policy == QUORUM:
        return _quorum(visit, total)
    for node in _said_by(visit):
        for name in ("k", "join_k"):
            number = node.number(name)
            if number is not None:
                return max(number, 1)
    return None


def _quorum(visit: Visit, total: int) -> int:
    """More than half; or the number or the part of them that `quorum` says."""
    for node in _said_by(visit):
        said = node.decimal("quorum")
        if said is not None and said > 0:
            return max(int(said) if said >= 1 else -int(-said * total // 1), 1)
    return int(total * _MINORITY) + 1


def _branch(arrival: Arrival) -> Branch:
    outcome = FAIL if arrival.failed else normalise(arrival.outcome)
    reason = str((arrival.error or {}).get("message") or "")
    notes, outputs = str(arrival.outputs.get("notes") or ""), arrival.outputs
    response = str(outputs.get("response") or outputs.get("output") or "")
    return Branch(
        arrival.branch or arrival.node, arrival.node, outcome, reason, notes, _short(response, _MOST_REPLY),
        _score(outputs.get("score", arrival.context.get("score"))), arrival.context,
    )  # fmt: skip


def _score(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if abs(number) < 1e300 else 0.0


def _reasons(branches: Sequence[Branch]) -> str:
    """Why branches failed, shortly."""
    failed = [branch for branch in branches if not branch.succeeded]
    told = [f"{branch.id}: {_short(branch.failure_reason or branch.outcome, 300)}" for branch in failed[:5]]
    return "; ".join(told) + (f"; and {len(failed) - 5} more" if len(failed) > 5 else "")


def _ranked_by_model(visit: Visit, branches: Sequence[Branch], outputs: dict[str, Any]) -> Branch | NodeOutcome | None:
    """The branch that the model names the best; None: it names none of them; or how asking failed."""
    text = expand(visit.node.first(*_PROMPTS), Names(visit).get)
    listed = "\n\n".join(
        f"## {branch.id} ({branch.outcome})\n{branch.response or branch.failure_reason or branch.notes}"
        for branch in branches
    )
    names = ", ".join(branch.id for branch in branches)
    rules = f"Choose the best of the candidates. End your reply with one line:\nBEST: id\nwhere id is one of: {names}."
    answered = asking.ask(visit, f"{text}\n\n# Candidates\n\n{listed}", rules)
    if isinstance(answered, NodeOutcome):
        return answered
    reply = answered.reply.text
    outputs.update(asking.outputs_of(text, answered), response=reply)
    return _named_in(reply, branches)


_BEST = re.compile(r"^[\s>*_#`-]*BEST[*_`]*\s*[:=]\s*[*_`\"']*([^\s*`\"']+)", re.M | re.I)


def _named_in(reply: str, branches: Sequence[Branch]) -> Branch | None:
    found = _BEST.findall(reply)
    by_id = {branch.id.casefold(): branch for branch in branches}
    return by_id.get(found[-1].rstrip(".").casefold()) if found else None


def _is_own(key: str) -> bool:
    """Whether a branch's context key is what its nodes set, not what the program notes."""
    return not key.startswith(("internal.", "current_node", "_", "parallel."))


def _short(value: Any, most: int = _MOST_VALUE) -> Any:
    """A value that does not blow up the context: long texts and structures are cut."""
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[: most - 1]}…"
    if isinstance(value, list | dict) and len(text := json.dumps(value)) > most:
        return f"{text[: most - 1]}…"
    return value
