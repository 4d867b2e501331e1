"""A node that asks a person: its edges are the choices. An unanswered question is never taken for a yes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.dot.demands import LABEL, Demand, demands, labels_asked, ways_on
from pipeline.dot.labels import accelerator, chosen, normal_label
from pipeline.dot.model import DotEdge
from pipeline.engine.people import TIMEOUT, Answer
from pipeline.formats.attractor.handlers.prompt import filled
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import LAST_RESPONSE, RETRY, NodeOutcome, failure

YES_NO, MULTIPLE_CHOICE, FREEFORM, CONFIRMATION = "yes_no", "multiple_choice", "freeform", "confirmation"
#: Other names of the types of questions.
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("yes_no", "yesno", "yes/no", "binary", "boolean"), YES_NO),
    **dict.fromkeys(
        ("multiple_choice", "multi_choice", "single_select", "multi_select", "select", "choice"), MULTIPLE_CHOICE
    ),
    **dict.fromkeys(("freeform", "free_form", "free_text", "text", "input"), FREEFORM),
    **dict.fromkeys(("confirmation", "confirm", "approval", "approve"), CONFIRMATION),
}
#: How often a question is put whose answer is none of its choices.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to answer."""

    #: As it is shown and answered.
    label: str
    #: Where it leads; "": nowhere of its own.
    target: str = ""

    @classmethod
    def of(cls, edge: DotEdge) -> Choice:
        """Return the choice of an edge: its label, else the one its condition asks for, else its target."""
        return cls(edge.label or next(iter(labels_asked(edge)), "") or edge.target, edge.target)

    @property
    def key(self) -> str:
        """Return what may be typed for it."""
        return accelerator(self.label)


def ask_person(visit: Visit) -> NodeOutcome:
    """Ask, and lead where the answer says.

    Raises:
        Pause: No person can be asked here; the question waits to be answered.
    """
    ctx, node = visit.ctx, visit.node
    said = node.first("question_type", "mode", "human.input").lower()
    kind = _TYPES.get(said.replace("-", "_").replace(" ", "_"), MULTIPLE_CHOICE)
    choices = _choices(visit, kind)
    question = filled(visit, node.first("question", "prompt", "llm_prompt") or node.label).strip()
    default = node.first("human.default_choice", "default_choice")
    labels, targets = [choice.label for choice in choices], [choice.target for choice in choices]
    if default and kind != FREEFORM:
        default = chosen(default, labels, targets) if labels else ""
    seconds = node.seconds("timeout")
    seconds = node.seconds("human.timeout") if seconds is None else seconds
    misunderstood = ""
    for number in range(1, _TRIES + 1):
        shown: dict[str, Any] = {"type": kind, "keys": {choice.label: choice.key for choice in choices}}
        if default:
            shown["default"] = default
        if ctx.attempt > 1 or number > 1:
            # Another question: what was said before does not answer it.
            shown["asked_before"] = f"attempt {ctx.attempt}, question {number}"
        if misunderstood:
            shown["misunderstood"] = misunderstood
        answer = ctx.ask_person(question, labels, shown, seconds=seconds, otherwise=default)
        if answer.by == TIMEOUT and not answer.choice:
            return NodeOutcome(RETRY, failure_reason=answer.note, failure_class="timeout")
        if not choices:
            return _said(visit, answer, question)
        if label := chosen(answer.choice, labels, targets):
            return _led(visit, answer, choices[labels.index(label)])
        misunderstood = answer.choice
    return failure(f"{misunderstood!r} is none of the choices, said {_TRIES} times.", "no_match")


def _choices(visit: Visit, kind: str) -> list[Choice]:
    """Return what may be answered; none: any text."""
    if kind == FREEFORM:
        return []
    edges = visit.outgoing()
    labelled = [edge for edge in edges if edge.label]
    if kind in (YES_NO, CONFIRMATION) and len(labelled) < 2:
        # The one edge that there is goes on.
        yes, no = ("Yes", "No") if kind == YES_NO else ("Confirm", "Cancel")
        edge = next(iter((*labelled, *edges)), None)
        return [Choice(edge.label or yes, edge.target) if edge is not None else Choice(yes), Choice(no)]
    return list({choice.label: choice for choice in map(Choice.of, edges)}.values())


def _led(visit: Visit, answer: Answer, choice: Choice) -> NodeOutcome:
    told = _told(answer, choice.label, accelerator(choice.label))
    outputs = {"choice": choice.label, "by": answer.by, "note": answer.note}
    if not choice.target:
        # A no that no edge is drawn for: nothing may go on as if it were a yes.
        reason = f"It was declined: {choice.label}." + (f" {answer.note}" if answer.note else "")
        return failure(reason, "declined", context_updates=told, outputs=outputs)
    # The label is preferred as a condition spells it; none is if no edge has it.
    asked = demands(ways_on(visit.graph, visit.node.id, visit.outgoing)).get(LABEL, Demand())
    label = asked.spelt(choice.label)
    edges = [edge for edge in visit.outgoing() if edge.target == choice.target]
    known = label in asked.words or any(choice.label in (edge.label, *labels_asked(edge)) for edge in edges)
    return NodeOutcome(
        preferred_label=label if known else "", suggested_next_ids=(choice.target,), context_updates=told,
        notes=answer.note, outputs=outputs,
    )  # fmt: skip


def _said(visit: Visit, answer: Answer, question: str) -> NodeOutcome:
    """Return the outcome of a free text; if it is the label of an edge, it leads there."""
    text = answer.choice
    same = [edge for edge in visit.outgoing() if edge.label and normal_label(edge.label) == normal_label(text)]
    found = same[0] if len(same) == 1 else None
    outputs = {"choice": text, "by": answer.by, "note": answer.note, "response": text, "prompt": question}
    return NodeOutcome(
        preferred_label=found.label if found else "", suggested_next_ids=(found.target,) if found else (),
        context_updates={**_told(answer, text, text), "last_response": text[:LAST_RESPONSE]}, notes=answer.note,
        outputs=outputs,
    )  # fmt: skip


def _told(answer: Answer, label: str, selected: str) -> dict[str, Any]:
    return {
        "human.gate.selected": selected,
        "human.gate.label": label,
        "human.gate.note": answer.note,
        "_human_response": answer.choice,
    }
