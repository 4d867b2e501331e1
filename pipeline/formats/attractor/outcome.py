"""What a node came to (NodeOutcome): its words, how it is read, and what the engine is told of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from pipeline.dot.conditions import OUTCOMES
from pipeline.dot.values import as_text
from pipeline.engine.step import Outcome, StepContext
from pipeline.errors import InvalidValue

SUCCESS, PARTIAL, FAIL, RETRY, SKIPPED = "success", "partial_success", "fail", "retry", "skipped"
#: Outcomes that satisfy a goal gate and end a visit well.
SATISFYING = frozenset({SUCCESS, PARTIAL})
#: Characters of a reply that the context key last_response keeps.
LAST_RESPONSE = 200

_WORDS: Mapping[str, str] = {**OUTCOMES, **{word: word for word in (SUCCESS, PARTIAL, FAIL, RETRY, SKIPPED)}}
#: Keys of a status.json → their type, and how a reason names it.
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
CONTRACT = frozenset(_CONTRACT)
#: Beginnings of context keys that only the program sets: they steer it.
_OURS = ("internal.", "graph.", "parallel.", "stack.", "human.", "current_node")


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

    def to_json(self) -> dict[str, Any]:
        """Return it as the document that `from_json` reads; without the outputs."""
        return {
            "outcome": self.status, "preferred_label": self.preferred_label, "notes": self.notes,
            "suggested_next_ids": list(self.suggested_next_ids), "context_updates": dict(self.context_updates),
            "failure_reason": self.failure_reason, "failure_class": self.failure_class,
        }  # fmt: skip


def normalise(status: str) -> str:
    """Return an outcome in this program's spelling; a word that is no alias stays as it is."""
    word = status.strip()
    return _WORDS.get(word.lower(), word)


def failure(reason: str, kind: str = "", **more: Any) -> NodeOutcome:
    """Return a failed outcome."""
    return NodeOutcome(FAIL, failure_reason=reason, failure_class=kind, **more)


def value_text(value: Any, *, compact: bool = True) -> str:
    """Return a context value as text: truths as true and false, anything but a single value as JSON."""
    if value is None:
        return ""
    if isinstance(value, (str, bool, int, float)):
        return as_text(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else None)


def from_json(document: Any, name: str = "status.json") -> NodeOutcome:
    """Return the outcome that a status.json says; a document that says none is a failure that names the key.

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


def _refused(name: str, key: str, wanted: str) -> NodeOutcome:
    return failure(f"{name}: {key} is not {wanted}.", "validation")


def outcome_of(value: Any) -> NodeOutcome:
    """Return the outcome that a value of a handler or backend means.

    A text is a reply, a mapping is outputs, or what a status.json says; nothing is success.

    Raises:
        InvalidValue: It is nothing of the kind.
    """
    if isinstance(value, NodeOutcome):
        return value
    if value is None:
        return NodeOutcome()
    if isinstance(value, str):
        return replied(value)
    if isinstance(value, Outcome):
        error, hints = value.error or {}, value.hints
        return NodeOutcome(
            FAIL if value.error is not None else value.label, str(hints.get("preferred_label") or ""),
            tuple(hints.get("suggested_next_ids") or ()), value.context,
            failure_reason=str(error.get("message") or ""), failure_class=str(error.get("class") or ""),
            outputs=value.outputs,
        )  # fmt: skip
    if isinstance(value, Mapping):
        if not any(isinstance(value.get(key), str) for key in ("outcome", "status")):
            return NodeOutcome(outputs=dict(value))
        outputs = {key: part for key, part in value.items() if key not in CONTRACT}
        return replace(from_json(value, "the handler's result"), outputs=outputs)
    if not hasattr(value, "status"):
        message = f"A handler returned a {type(value).__name__}; return a NodeOutcome, a mapping or a text."
        raise InvalidValue(message, code="no_outcome")
    # An Outcome of another system: its attributes have the specification's names.
    texts = ("preferred_label", "notes", "failure_reason", "failure_class")
    document = {
        **{name: str(getattr(value, name, None) or "") for name in texts},
        "outcome": str(value.status.value).lower() if isinstance(value.status, Enum) else str(value.status),
        "suggested_next_ids": list(getattr(value, "suggested_next_ids", None) or ()),
        "context_updates": dict(getattr(value, "context_updates", None) or {}),
    }
    return from_json(document, "the handler's outcome")


def replied(text: str, outcome: NodeOutcome | None = None, **outputs: Any) -> NodeOutcome:
    """Return a reply as a node records it: whole in the outputs, its beginning in the context."""
    said = outcome or NodeOutcome()
    return replace(
        said, context_updates={"last_response": text[:LAST_RESPONSE], **said.context_updates},
        outputs={**said.outputs, "response": text, **outputs},
    )  # fmt: skip


def allowed(updates: Mapping[str, Any], ctx: StepContext) -> dict[str, Any]:
    """Return those of the context keys that a model or a command wants to set that are not the program's."""
    kept = {key: value for key, value in updates.items() if not str(key).startswith(_OURS)}
    if len(kept) < len(updates):
        refused = ", ".join(sorted(str(key) for key in updates if key not in kept))
        ctx.note(f"{ctx.place.node.id}: it may not set {refused}.")
    return kept


def to_engine(outcome: NodeOutcome) -> Outcome:
    """Return what the engine is told: a failure is an error, the way on is hinted at."""
    status = normalise(outcome.status)
    hints = {
        "preferred_label": outcome.preferred_label,
        "suggested_next_ids": tuple(outcome.suggested_next_ids),
        "failure_class": outcome.failure_class,
        "failure_reason": outcome.failure_reason,
    }
    told = {"preferred_label": outcome.preferred_label, "suggested_next_ids": list(outcome.suggested_next_ids),
            "notes": outcome.notes}  # fmt: skip
    error = None
    if status == FAIL:
        reason = outcome.failure_reason or outcome.notes or "It gave no reason."
        error = {"type": "NodeFailed", "message": reason}
        if outcome.failure_class:
            error["class"] = outcome.failure_class
    outputs = {**outcome.outputs, **{key: value for key, value in told.items() if value}}
    return Outcome(outputs, status, outcome.context_updates, error, hints)
