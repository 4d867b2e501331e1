"""Whether a node is tried again and how long that waits: presets of both dialects. Pure; chance comes from a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from pipeline.dot import kinds
from pipeline.dot.model import DotGraph, DotNode

#: Seconds that no wait is longer than.
LONGEST = 60.0
#: Kinds of failure that the same attempt would meet again.
FINAL = frozenset({
    "deterministic", "auth", "authentication", "permission", "validation", "config", "configuration", "billing",
    "quota", "canceled", "cancelled", "not_found", "structural", "refused", "refusal", "truncated", "declined",
})  # fmt: skip
#: Classes of error → kind of failure, where the error itself says none.
_BY_ERROR: Mapping[str, str] = {
    "CredentialMissing": "auth",
    "SpendLimit": "billing",
    "ModelUnavailable": "transient_infra",
    **dict.fromkeys(
        (
            "ConfigError", "GraphError", "InvalidValue", "MissingValue", "SecretRefused", "SettingsConflict",
            "CatalogueError", "ModelRejected", "ModelRefused", "ModelTruncated", "NeedsConfirmation",
        ),
        "deterministic",
    ),
}  # fmt: skip
_TRANSIENT = frozenset({"timeout", "rate_limit", "network", "unavailable", "overloaded", "infra"})
#: Nodes that do no work of their own: the graph's default is not for them.
_NO_DEFAULT = frozenset({kinds.START, kinds.EXIT, kinds.PARALLEL, kinds.FAN_IN})


class Backoff(NamedTuple):
    """How often, and how long between."""

    #: Attempts where nothing else says how many.
    attempts: int
    first_seconds: float
    factor: float
    #: Part of the wait that chance adds or takes.
    jitter: float = 0.5


#: Presets of the specification (retry_policy), and of its paraphrase (retry_backoff).
PRESETS: Mapping[str, Backoff] = {
    "none": Backoff(1, 0.0, 1.0, 0.0),
    "standard": Backoff(5, 0.2, 2.0),
    "aggressive": Backoff(5, 0.5, 2.0),
    "linear": Backoff(3, 0.5, 1.0),
    "patient": Backoff(3, 2.0, 3.0),
    "exponential": Backoff(5, 0.2, 2.0),
}


def kind_of(error: Mapping[str, Any] | None) -> str:
    """The kind of a failure as its error tells; "": unknown."""
    said = error or {}
    return str(said.get("class") or _BY_ERROR.get(str(said.get("type")), ""))


def is_transient(kind: str) -> bool:
    """Whether a failure of that kind may pass by itself."""
    return kind.startswith("transient") or kind in _TRANSIENT


def most_retries(graph: DotGraph, node: DotNode, type: str) -> int:
    """Further attempts a node has; what it says itself counts, also 0, then the graph's default, then 0."""
    if type == kinds.CONDITIONAL:
        return 0
    own = node.number("max_retries")
    if own is not None:
        return max(own, 0)
    if preset := PRESETS.get(node.text("retry_policy")):
        return preset.attempts - 1
    if type in _NO_DEFAULT:
        return 0
    for name in ("default_max_retries", "default_max_retry"):
        default = graph.number(name)
        if default is not None:
            return max(default, 0)
    preset = PRESETS.get(graph.text("retry_policy"))
    return preset.attempts - 1 if preset else 0


def wait_seconds(graph: DotGraph, node: DotNode, path: str, attempt: int) -> float:
    """Seconds between an attempt that failed (from 1) and the next; the same for the same visit in every process."""
    backoff = _backoff(graph, node)
    seconds = min(backoff.first_seconds * backoff.factor ** min(attempt - 1, 100), LONGEST)
    chance = int.from_bytes(hashlib.sha256(f"{path} {attempt}".encode()).digest()[:6]) / 2**48
    return round(min(seconds * (1.0 + backoff.jitter * (2.0 * chance - 1.0)), LONGEST), 3)


def _backoff(graph: DotGraph, node: DotNode) -> Backoff:
    for said in (node, graph):
        for name in ("retry_policy", "retry_backoff"):
            if preset := PRESETS.get(said.text(name)):
                jitter = node.decimal("retry_jitter")
                jitter = graph.decimal("retry_jitter") if jitter is None else jitter
                if jitter is None:
                    jitter = 0.1 if name == "retry_backoff" and preset.jitter else preset.jitter
                return preset._replace(jitter=min(max(jitter, 0.0), 1.0))
    return PRESETS["standard"]
