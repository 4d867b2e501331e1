"""What a handler or backend returned, whatever it is, as a NodeOutcome."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from pipeline.engine.step import Outcome, StepContext
from pipeline.errors import InvalidValue
from pipeline.formats.attractor.outcome import NodeOutcome, from_json

#: Characters of a reply that the context key last_response keeps.
LAST_RESPONSE = 200
#: Keys of a mapping that make it the document of an outcome.
_SAYS = ("outcome", "status")
#: Keys of that document; what stands beside them is output.
CONTRACT = frozenset({
    "outcome", "status", "preferred_label", "preferred_next_label", "suggested_next_ids", "context_updates", "notes",
    "failure_reason", "failure_class",
})  # fmt: skip
#: Beginnings of context keys that only the program sets: they steer it.
_OURS = ("internal.", "graph.", "parallel.", "stack.", "human.", "current_node")
_TEXTS = ("preferred_label", "notes", "failure_reason", "failure_class")


def outcome_of(value: Any) -> NodeOutcome:
    """The outcome that a returned value means.

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
        return _of_engine(value)
    if isinstance(value, Mapping):
        return _of_mapping(value)
    if hasattr(value, "status"):
        return _of_object(value)
    raise InvalidValue(f"A handler returned a {type(value).__name__}; return a NodeOutcome, a mapping or a text.")


def replied(text: str, outcome: NodeOutcome | None = None, **outputs: Any) -> NodeOutcome:
    """A reply as a node leaves it: whole in the outputs, its beginning in the context."""
    said = outcome or NodeOutcome()
    return NodeOutcome(
        said.status, said.preferred_label, said.suggested_next_ids,
        {"last_response": text[:LAST_RESPONSE], **said.context_updates},
        said.notes, said.failure_reason, said.failure_class, {**said.outputs, "response": text, **outputs},
    )  # fmt: skip


def _of_mapping(value: Mapping[str, Any]) -> NodeOutcome:
    if not any(isinstance(value.get(key), str) for key in _SAYS):
        return NodeOutcome(outputs=dict(value))
    said = from_json(value, "the handler's result")
    outputs = {key: part for key, part in value.items() if key not in CONTRACT}
    return NodeOutcome(
        said.status, said.preferred_label, said.suggested_next_ids, said.context_updates, said.notes,
        said.failure_reason, said.failure_class, outputs,
    )  # fmt: skip


def _of_engine(value: Outcome) -> NodeOutcome:
    error = value.error or {}
    return NodeOutcome(
        "fail" if value.error is not None else value.label,
        str(value.hints.get("preferred_label") or ""),
        tuple(value.hints.get("suggested_next_ids") or ()),
        value.context,
        failure_reason=str(error.get("message") or ""),
        failure_class=str(error.get("class") or ""),
        outputs=value.outputs,
    )


def _of_object(value: Any) -> NodeOutcome:
    """An Outcome of another system: its attributes by the specification's names."""
    said = {name: getattr(value, name, None) or "" for name in _TEXTS}
    status = value.status
    status = status.value if isinstance(status, Enum) else status
    document = {
        "outcome": str(status).lower() if isinstance(value.status, Enum) else str(status),
        "suggested_next_ids": list(getattr(value, "suggested_next_ids", None) or ()),
        "context_updates": dict(getattr(value, "context_updates", None) or {}),
        **{name: str(text) for name, text in said.items()},
    }
    return from_json(document, "the handler's outcome")


def allowed(updates: Mapping[str, Any], ctx: StepContext) -> dict[str, Any]:
    """Of the context keys that a model or a command wants to set those that are theirs to set."""
    kept = {key: value for key, value in updates.items() if not str(key).startswith(_OURS)}
    if len(kept) < len(updates):
        refused = ", ".join(sorted(str(key) for key in updates if key not in kept))
        ctx.note(f"{ctx.node.id}: it may not set {refused}.")
    return kept
