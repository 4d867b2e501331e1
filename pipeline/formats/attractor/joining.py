"""What the branches of a fan-out come to together, by its join policy; and how they are told to the nodes after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.dot.model import DotNode
from pipeline.engine.lineage import Arrival
from pipeline.formats.attractor.outcome import FAIL, PARTIAL, RETRY, SUCCESS

#: Context key that holds what branches gave.
RESULTS = "parallel.results"


def judged(fan: DotNode, started: int, arrivals: Sequence[Arrival]) -> str:
    """success, partial_success or fail.

    wait_all: success if all branches succeeded, partial_success if some did. first_success, quorum, k_of_n: success
    if at least one, more than half, k of the branches that were started succeeded.
    """
    ended: dict[str, bool] = {}
    for arrival in arrivals:
        ended[arrival.branch] = ended.get(arrival.branch, True) and well(arrival)
    good = sum(ended.values())
    policy = fan.text("join_policy") or "wait_all"
    if policy == "wait_all":
        return FAIL if not good else SUCCESS if all(ended.values()) else PARTIAL
    return SUCCESS if good >= needed(fan, policy, started) else FAIL


def needed(fan: DotNode, policy: str, started: int) -> int:
    """How many branches must succeed."""
    if policy == "quorum":
        return started // 2 + 1
    if policy == "k_of_n":
        return max(fan.number("k") or fan.number("join_k") or 1, 1)
    return 1


def well(arrival: Arrival) -> bool:
    """Whether a branch ended well."""
    return not arrival.failed and arrival.outcome not in (FAIL, RETRY)


def results(arrivals: Sequence[Arrival]) -> list[dict[str, Any]]:
    """What each branch gave, in order of declaration: what `parallel.results` holds."""
    return [
        {
            "id": arrival.branch or arrival.node,
            "node": arrival.node,
            "status": FAIL if arrival.failed else arrival.outcome,
            "failure_reason": str((arrival.error or {}).get("message") or "") if arrival.failed else "",
            "context_updates": dict(arrival.context),
            "notes": _text(arrival.outputs, "notes"),
            "response": _text(arrival.outputs, "response"),
        }
        for arrival in arrivals
    ]


def _text(outputs: Mapping[str, Any], key: str) -> str:
    value = outputs.get(key)
    return value if isinstance(value, str) else ""
