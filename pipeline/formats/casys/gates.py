"""Decisions between layers: an agent may stop the run, a person may reject it. Silence is never a yes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.people import Answer, Interviewer, Question
from pipeline.engine.step import Outcome, StepContext
from pipeline.errors import ConfigError, StepFailed
from pipeline.formats.casys.patience import within
from pipeline.formats.casys.plan import AGENT, HUMAN, gate_of
from pipeline.records.values import canonical, digest

#: Bytes of a result that a question shows as it is.
_SHORT = 2000

#: Asks: gives the answer, or None where none came in time.
Ask = Callable[[Question], Any]
#: Who answers a kind of gate: a function, an interviewer, or True: nobody here, so the run waits.
Decider = Ask | Interviewer | bool | None

#: Kinds of gates in the order in which they are asked; the answer that goes on and the one that ends.
CHOICES: Mapping[str, tuple[str, str]] = {AGENT: ("continue", "abort"), HUMAN: ("approve", "reject")}
_QUESTION = {AGENT: "Layer {layer} is done. Continue?", HUMAN: "Layer {layer} is done. Approve it?"}
_YES, _NO = ("yes", "y", "approved", "ok"), ("no", "n", "rejected")


class Deciders:
    """Who answers the gates of one run: the engine's interviewer."""

    def __init__(
        self,
        deciders: Mapping[str, Decider],
        told: Callable[[Question, str, int], None],
        seconds: float | None,
        clock: Clock,
    ) -> None:
        self._deciders = deciders
        #: How long an answer may take; None: as long as it needs.
        self._seconds = seconds
        self._clock = clock
        #: Called before a question is put, with the kind of gate and its layer.
        self._told = told

    def ask(self, question: Question) -> Answer | None:
        """The answer; None: nobody can be asked here, so the run waits.

        Raises:
            StepFailed: No answer came in time; the run is aborted, and asked again when it is resumed.
            ConfigError: The answer is none that was offered.
        """
        kind, layer = gate_of(question.path.rpartition("#")[0]) or ("", 0)
        self._told(question, kind, layer)
        decider = self._deciders.get(kind)
        if decider is None or isinstance(decider, bool):
            return None
        ask = decider if callable(decider) else decider.ask
        try:
            said = within(self._seconds, self._clock, lambda: ask(question))
        except TimeoutError:
            raise StepFailed(f"aborted: no {kind} decision came in time", gate=kind) from None
        if said is None and not callable(decider):
            return None
        if said is None:
            raise StepFailed(f"aborted: no {kind} decision came in time", gate=kind)
        return said if isinstance(said, Answer) else Answer(_choice(kind, said), by=kind)


def gate_step(
    kind: str, layer: int, tasks: Sequence[str], before: Callable[[int], None]
) -> Callable[[StepContext], Any]:
    """The step of a gate.

    Args:
        tasks: Ids of the layer's tasks; their results are shown, and an answer holds for exactly them.
        before: Called with the layer first: what is asked about is saved by then.
    """

    def body(ctx: StepContext) -> Outcome:
        before(layer)
        going_on, ending = CHOICES[kind]
        shown = {"layer_index": layer, "results": {name: _shown(ctx.outputs[name].get("result")) for name in tasks}}
        answer = ctx.ask_person(_QUESTION[kind].format(layer=layer + 1), CHOICES[kind], shown)
        if answer.choice != going_on:
            raise StepFailed(f"aborted by {kind}", gate=kind, choice=ending, note=answer.note)
        return Outcome({"choice": answer.choice, "by": answer.by, "note": answer.note})

    return body


def _shown(result: Any) -> Any:
    """A result as a question shows it: long ones by their size and hash."""
    text = canonical(result)
    return result if len(text) <= _SHORT else {"bytes": len(text), "sha256": digest(text)}


def _choice(kind: str, said: Any) -> str:
    going_on, ending = CHOICES[kind]
    if isinstance(said, bool):
        return going_on if said else ending
    text = str(said).strip().lower()
    if text in (going_on, *_YES):
        return going_on
    if text in (ending, *_NO):
        return ending
    raise ConfigError(f"The {kind} gate was answered {said!r}; it takes {going_on} or {ending}.")
