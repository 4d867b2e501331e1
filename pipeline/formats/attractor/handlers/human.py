"""A node that asks a person: its edges are the choices. What nobody answered is never taken for a yes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.dot.demands import LABEL, Demand, Way, demands, ways_on
from pipeline.dot.labels import NO, YES, accelerator, normal_label
from pipeline.dot.model import DotEdge
from pipeline.engine.people import TIMEOUT, Answer
from pipeline.formats.attractor.children import VIRTUAL
from pipeline.formats.attractor.handlers.expansion import Names, expand
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.handlers.results import LAST_RESPONSE
from pipeline.formats.attractor.outcome import RETRY, NodeOutcome, failure

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
#: So often is a question put whose answer is none of its choices.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to answer."""

    #: As it is shown and answered.
    label: str
    #: Where it leads; "": nowhere of its own.
    target: str = ""

    @property
    def key(self) -> str:
        """What may be typed for it."""
        return accelerator(self.label)


def ask_person(visit: Visit) -> NodeOutcome:
    """Ask, and lead where the answer says.

    Raises:
        Pause: Nobody can be asked here; the question waits to be answered.
    """
    kind = type_of(visit)
    choices = choices_of(visit, kind)
    default = default_of(visit, choices, kind)
    misunderstood = ""
    for number in range(1, _TRIES + 1):
        shown: dict[str, Any] = {"type": kind, "keys": {choice.label: choice.key for choice in choices}}
        if default:
            shown["default"] = default
        if visit.ctx.attempt > 1 or number > 1:
            # Another question: what was said before does not answer it.
            shown["asked_before"] = f"attempt {visit.ctx.attempt}, question {number}"
        if misunderstood:
            shown["misunderstood"] = misunderstood
        answer = visit.ctx.ask_person(
            question_of(visit), [choice.label for choice in choices], shown,
            seconds=time_of(visit), otherwise=default,
        )  # fmt: skip
        if answer.by == TIMEOUT and not answer.choice:
            return NodeOutcome(RETRY, failure_reason=answer.note, failure_class="timeout")
        if not choices:
            return _said(visit, answer)
        if (chosen := meant(answer.choice, choices)) is not None:
            return _led(visit, answer, chosen, kind)
        misunderstood = answer.choice
    return failure(f"{misunderstood!r} is none of the choices, said {_TRIES} times.", "no_match")


def question_of(visit: Visit) -> str:
    """What is asked: the node's question or prompt, else its label; known names are filled in."""
    node = visit.node
    return expand(node.first("question", "prompt", "llm_prompt") or node.label, Names(visit).get).strip()


def time_of(visit: Visit) -> float | None:
    """Seconds after which the default counts; None: it never does."""
    seconds = visit.node.seconds("timeout")
    return visit.node.seconds("human.timeout") if seconds is None else seconds


def type_of(visit: Visit) -> str:
    """The type of the question: as the node says, else multiple choice among its edges."""
    said = visit.node.first("question_type", "mode", "human.input").lower()
    return _TYPES.get(said.replace("-", "_").replace(" ", "_"), MULTIPLE_CHOICE)


def choices_of(visit: Visit, kind: str) -> list[Choice]:
    """What may be answered; none: any text."""
    if kind == FREEFORM:
        return []
    edges = [edge for edge in visit.graph.outgoing(visit.node.id) if not edge.attributes.get(VIRTUAL)]
    labelled = [edge for edge in edges if edge.label]
    if kind in (YES_NO, CONFIRMATION) and len(labelled) < 2:
        yes, no = ("Yes", "No") if kind == YES_NO else ("Confirm", "Cancel")
        return [_twin(yes, labelled, edges), Choice(no)]
    return list({choice.label: choice for choice in map(_choice, edges)}.values())


def _twin(yes: str, labelled: Sequence[DotEdge], edges: Sequence[DotEdge]) -> Choice:
    """The choice that goes on, by the one edge that there is."""
    edge = (*labelled, *edges)[0] if edges else None
    return Choice(edge.label or yes, edge.target) if edge is not None else Choice(yes)


def _choice(edge: DotEdge) -> Choice:
    return Choice(edge.label or next(iter(_named(edge)), "") or edge.target, edge.target)


def _named(edge: DotEdge) -> Sequence[str]:
    """The labels that an edge's condition asks for."""
    return demands([Way((edge,))]).get(LABEL, Demand()).words


def default_of(visit: Visit, choices: Sequence[Choice], kind: str) -> str:
    """The choice for the case that nobody answers in time; "" where there is none."""
    said = visit.node.first("human.default_choice", "default_choice")
    if not said or kind == FREEFORM:
        return said
    found = meant(said, choices)
    return found.label if found is not None else ""


def meant(text: str, choices: Sequence[Choice]) -> Choice | None:
    """The choice that an answer means: its label, its target, its key, or yes and no; None: none, or more than one."""
    wanted, folded = normal_label(text), text.strip().casefold()
    if not folded:
        return None
    ways = (
        lambda choice: choice.label.strip().casefold() == folded,
        lambda choice: normal_label(choice.label) == wanted,
        lambda choice: choice.target.casefold() == folded,
        lambda choice: choice.key.casefold() == folded,
        lambda choice: _same_word(normal_label(choice.label), wanted),
    )
    for way in ways:
        found = [choice for choice in choices if way(choice)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _same_word(one: str, other: str) -> bool:
    return any(one in words and other in words for words in (YES, NO))


def _led(visit: Visit, answer: Answer, chosen: Choice, kind: str) -> NodeOutcome:
    """The outcome of a choice."""
    told = _told(answer, chosen.label)
    if not chosen.target:
        # A no that no edge is drawn for: nothing may go on as if it were a yes.
        return failure(f"It was declined: {chosen.label}." + _noted(answer), "declined", context_updates=told,
                       outputs=_outputs(answer, chosen.label))  # fmt: skip
    return NodeOutcome(
        preferred_label=_edge_label(visit, chosen), suggested_next_ids=(chosen.target,), context_updates=told,
        notes=answer.note, outputs=_outputs(answer, chosen.label),
    )  # fmt: skip


def _edge_label(visit: Visit, chosen: Choice) -> str:
    """The label that the choice prefers, as a condition spells it; "" where no edge has it."""
    edges = [edge for edge in visit.graph.outgoing(visit.node.id) if not edge.attributes.get(VIRTUAL)]
    asked = demands(ways_on(visit.graph, visit.node.id, lambda node: edges if node == visit.node.id else
                            visit.graph.outgoing(node))).get(LABEL, Demand())  # fmt: skip
    spelt = asked.spelt(chosen.label)
    labels = [text for edge in edges if edge.target == chosen.target for text in (edge.label, *_named(edge))]
    return spelt if spelt in asked.words or chosen.label in labels else ""


def _said(visit: Visit, answer: Answer) -> NodeOutcome:
    """The outcome of a free text; where it is the label of an edge, it leads there."""
    edges = [edge for edge in visit.graph.outgoing(visit.node.id) if edge.label]
    found = meant(
        answer.choice, [_choice(edge) for edge in edges if normal_label(edge.label) == normal_label(answer.choice)]
    )
    told = {**_told(answer, answer.choice, chosen=False), "last_response": answer.choice[:LAST_RESPONSE]}
    outputs = {**_outputs(answer, answer.choice), "response": answer.choice, "prompt": question_of(visit)}
    return NodeOutcome(
        preferred_label=found.label if found else "", suggested_next_ids=(found.target,) if found else (),
        context_updates=told, notes=answer.note, outputs=outputs,
    )  # fmt: skip


def _told(answer: Answer, label: str, *, chosen: bool = True) -> dict[str, Any]:
    return {
        "human.gate.selected": accelerator(label) if chosen else label,
        "human.gate.label": label,
        "human.gate.note": answer.note,
        "_human_response": answer.choice,
    }


def _outputs(answer: Answer, label: str) -> dict[str, Any]:
    return {"choice": label, "by": answer.by, "note": answer.note}


def _noted(answer: Answer) -> str:
    return f" {answer.note}" if answer.note else ""
