"""How a visit ended as the rules of routing see it: its outcome, its failure, whether it is tried again. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pipeline.dot import kinds
from pipeline.dot.model import DotGraph, DotNode
from pipeline.engine.routing import Settled
from pipeline.formats.attractor.outcome import FAIL, SUCCESS, normalise, value_text
from pipeline.records.values import digest

#: Kinds of failure that the same attempt would meet again.
FINAL = frozenset({
    "deterministic", "auth", "authentication", "permission", "validation", "config", "configuration", "billing",
    "quota", "canceled", "cancelled", "not_found", "structural", "refused", "refusal", "truncated", "declined",
})  # fmt: skip
_TRANSIENT = frozenset({"timeout", "rate_limit", "network", "unavailable", "overloaded", "infra"})
#: Classes of errors → kind of failure, if the error itself says none.
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
#: Context keys that say what a tool wrote, of which so many characters tell failures apart.
_WRITTEN, _TAIL = ("tool.output", "tool.stderr", "tool_stdout"), 2000
_HEX = re.compile(r"\b(?:0x)?[0-9a-f]{7,}\b")
_DIGITS = re.compile(r"[0-9]+")

#: Seconds that no wait between attempts is longer than.
_LONGEST = 60.0
#: Nodes that do no work of their own: the graph's default of retries is not for them.
_NO_DEFAULT = frozenset({kinds.START, kinds.EXIT, kinds.PARALLEL, kinds.FAN_IN})


class Backoff(NamedTuple):
    """How often a node is tried, and how long is waited between."""

    #: Attempts if nothing else says how many.
    attempts: int
    first_seconds: float
    factor: float
    #: Part of the wait that chance adds or takes.
    jitter: float = 0.5


#: Presets of the specification (retry_policy), and of its paraphrase (retry_backoff).
_PRESETS: Mapping[str, Backoff] = {
    "none": Backoff(1, 0.0, 1.0, 0.0),
    "standard": Backoff(5, 0.2, 2.0),
    "aggressive": Backoff(5, 0.5, 2.0),
    "linear": Backoff(3, 0.5, 1.0),
    "patient": Backoff(3, 2.0, 3.0),
    "exponential": Backoff(5, 0.2, 2.0),
}


@dataclass(frozen=True, slots=True)
class VisitEnd:
    """One visit's end."""

    #: success, partial_success, fail, retry, skipped, or a word of the graph's own.
    outcome: str
    #: {"type", "message", …} if it failed.
    error: Mapping[str, Any] | None
    #: Kind of failure; "": unknown, or none.
    kind: str
    preferred_label: str
    suggested_next_ids: tuple[str, ...]
    #: Where conditions look, in order: what is known beside the context, what the visit set, what it saw.
    tables: tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]

    @classmethod
    def of(cls, settled: Settled, known: Mapping[str, Any]) -> VisitEnd:
        """Return how a visit ended, from what its handler said, or the error it raised.

        Args:
            known: What conditions may ask for beside the context.
        """
        hints, changes = settled.hints, settled.changes
        outcome = FAIL if settled.failed else normalise(settled.outcome) or SUCCESS
        error, kind = None, ""
        if outcome == FAIL:
            reason = str(hints.get("failure_reason") or "It gave no reason.")
            error = settled.error or {"type": "NodeFailed", "message": reason}
            kind = str(error.get("class") or _BY_ERROR.get(str(error.get("type")), ""))
            kind = str(hints.get("failure_class") or "") or kind or str(changes.get("failure_class") or "")
        suggested = hints.get("suggested_next_ids") or changes.get("suggested_next_ids") or ()
        return cls(
            outcome, error, kind, str(hints.get("preferred_label") or changes.get("preferred_label") or ""),
            tuple(str(item) for item in suggested) if isinstance(suggested, (list, tuple)) else (),
            (known, changes, settled.seen),
        )  # fmt: skip

    @property
    def failed(self) -> bool:
        return self.outcome == FAIL

    @property
    def reason(self) -> str:
        """Return why it failed; "" if it did not."""
        return str((self.error or {}).get("message") or "")

    @property
    def own(self) -> dict[str, str]:
        return {
            "outcome": self.outcome,
            "preferred_label": self.preferred_label,
            "failure_reason": self.reason,
            "failure_class": self.kind,
        }

    def lookup(self, key: str) -> str:
        """Return what a condition finds under a key; "" if there is nothing."""
        for table in (self.own, *self.tables):
            if key in table:
                return value_text(table[key])
        return ""

    def as_failure(self, type: str, message: str, kind: str = "") -> VisitEnd:
        """Return the same visit, judged to have failed."""
        error = {"type": type, "message": message, **({"class": kind} if kind else {})}
        return replace(self, outcome=FAIL, error=error, kind=kind)

    def signature(self, node: str) -> str:
        """Return what tells failures apart: node, kind and words, whatever numbers and ids are in them."""
        written = [value_text(self.tables[1].get(key))[-_TAIL:] for key in _WRITTEN]
        text = " ".join([self.kind, self.reason, *written]).lower()
        text = " ".join(_DIGITS.sub("#", _HEX.sub("#", text)).split())
        return f"{node}:{digest(text.encode('utf-8', 'surrogatepass'))[:16]}"


def is_transient(kind: str) -> bool:
    """Return whether a failure of that kind may pass by itself."""
    return kind.startswith("transient") or kind in _TRANSIENT


def most_retries(graph: DotGraph, node: DotNode, type: str) -> int:
    """Return a node's further attempts: its own number counts, also 0, then the graph's default, then 0."""
    if type == kinds.CONDITIONAL:
        return 0
    own, default = node.number("max_retries"), None
    if own is None and (preset := _PRESETS.get(node.text("retry_policy"))):
        return preset.attempts - 1
    if own is None and type not in _NO_DEFAULT:
        said = (graph.number(name) for name in ("default_max_retries", "default_max_retry"))
        default = next((number for number in said if number is not None), None)
        if default is None and (preset := _PRESETS.get(graph.text("retry_policy"))):
            default = preset.attempts - 1
    return max(own or default or 0, 0)


def wait_seconds(graph: DotGraph, node: DotNode, path: str, attempt: int) -> float:
    """Return the seconds between a failed attempt (from 1) and the next; the same for a visit in every process."""
    backoff = _backoff(graph, node)
    seconds = min(backoff.first_seconds * backoff.factor ** min(attempt - 1, 100), _LONGEST)
    chance = int.from_bytes(hashlib.sha256(f"{path} {attempt}".encode()).digest()[:6]) / 2**48
    return round(min(seconds * (1.0 + backoff.jitter * (2.0 * chance - 1.0)), _LONGEST), 3)


def _backoff(graph: DotGraph, node: DotNode) -> Backoff:
    said = ((name, _PRESETS.get(place.text(name))) for place in (node, graph)
            for name in ("retry_policy", "retry_backoff"))  # fmt: skip
    name, preset = next(((name, preset) for name, preset in said if preset), ("", None))
    if preset is None:
        return _PRESETS["standard"]
    jitter = node.decimal("retry_jitter")
    jitter = graph.decimal("retry_jitter") if jitter is None else jitter
    if jitter is None:
        jitter = 0.1 if name == "retry_backoff" and preset.jitter else preset.jitter
    return preset._replace(jitter=min(max(jitter, 0.0), 1.0))
