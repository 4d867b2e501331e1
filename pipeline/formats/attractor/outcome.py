"""What a node came to (NodeOutcome): its words, how it is read from status.json, and what the engine is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.engine.step import Outcome

SUCCESS, PARTIAL, FAIL, RETRY, SKIPPED = "success", "partial_success", "fail", "retry", "skipped"
#: Outcomes that satisfy a goal gate and end a visit well.
SATISFYING = frozenset({SUCCESS, PARTIAL})

_WORDS: Mapping[str, str] = {
    **{word: word for word in (SUCCESS, PARTIAL, FAIL, RETRY, SKIPPED)},
    "succeeded": SUCCESS,
    "partial": PARTIAL,
    "partially_succeeded": PARTIAL,
    "failed": FAIL,
    "failure": FAIL,
}


@dataclass(frozen=True, slots=True)
class NodeOutcome:
    """How one visit of a node ended, as its handler says."""

    #: success, partial_success, fail, retry, skipped, or any other word that conditions ask for.
    status: str = SUCCESS
    #: Label of the edge that should be taken.
    preferred_label: str = ""
    #: Nodes that should come next, the best first.
    suggested_next_ids: Sequence[str] = ()
    #: Context keys it sets.
    context_updates: Mapping[str, Any] = field(default_factory=dict)
    #: For people.
    notes: str = ""
    #: Why it failed.
    failure_reason: str = ""
    #: Kind of failure: transient_infra, deterministic, auth, validation, …; "": unknown.
    failure_class: str = ""
    #: What is recorded as the step's outputs (response, …).
    outputs: Mapping[str, Any] = field(default_factory=dict)


def normalise(status: str) -> str:
    """An outcome in this program's spelling; a word that is nobody's alias stays as it is."""
    word = status.strip()
    return _WORDS.get(word.lower(), word)


def failure(reason: str, kind: str = "", **more: Any) -> NodeOutcome:
    """A failed outcome."""
    return NodeOutcome(FAIL, failure_reason=reason, failure_class=kind, **more)


def from_json(document: Any, name: str = "status.json") -> NodeOutcome:
    """The outcome that a status.json or outcome.json says; a document that says none is a failure that names the key.

    Args:
        name: What the document is called in the reason of such a failure.
    """
    if not isinstance(document, Mapping):
        return _refused(name, "the document", "an object")
    said = {key: document.get(key) for key in _CONTRACT}
    for key, (kind, wanted) in _CONTRACT.items():
        if said[key] is not None and not isinstance(said[key], kind):
            return _refused(name, repr(key), wanted)
    status = said["outcome"] or said["status"]
    if not status:
        return _refused(name, "'outcome'", "a word")
    ids = said["suggested_next_ids"] or ()
    if not all(isinstance(item, str) for item in ids):
        return _refused(name, "'suggested_next_ids'", "a list of node ids")
    return NodeOutcome(
        normalise(status),
        said["preferred_label"] or said["preferred_next_label"] or "",
        tuple(ids),
        dict(said["context_updates"] or {}),
        said["notes"] or "",
        said["failure_reason"] or "",
        said["failure_class"] or "",
    )


#: Key → its type, and how a reason names it.
_CONTRACT: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "outcome": (str, "a word"),
    "status": (str, "a word"),
    "preferred_label": (str, "a text"),
    "preferred_next_label": (str, "a text"),
    "suggested_next_ids": ((list, tuple), "a list of node ids"),
    "context_updates": (Mapping, "an object"),
    "notes": (str, "a text"),
    "failure_reason": (str, "a text"),
    "failure_class": (str, "a word"),
}


def _refused(name: str, key: str, wanted: str) -> NodeOutcome:
    return failure(f"{name}: {key} is not {wanted}.", "validation")


def to_engine(outcome: NodeOutcome) -> Outcome:
    """What the engine is told: a failure is an error, the way on is hinted at; the router adds what is always set."""
    status = normalise(outcome.status)
    told = {
        "preferred_label": outcome.preferred_label,
        "suggested_next_ids": list(outcome.suggested_next_ids),
        "notes": outcome.notes,
    }
    outputs = {**outcome.outputs, **{key: value for key, value in told.items() if value}}
    hints = {
        "preferred_label": outcome.preferred_label,
        "suggested_next_ids": tuple(outcome.suggested_next_ids),
        "failure_class": outcome.failure_class,
        "failure_reason": outcome.failure_reason,
    }
    return Outcome(outputs, status, outcome.context_updates, _error(outcome, status), hints)


def _error(outcome: NodeOutcome, status: str) -> Mapping[str, Any] | None:
    if status != FAIL:
        return None
    error = {"type": "NodeFailed", "message": outcome.failure_reason or outcome.notes or "It says no more than: fail."}
    return {**error, "class": outcome.failure_class} if outcome.failure_class else error
