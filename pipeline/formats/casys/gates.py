"""Decisions between layers: an agent may stop the run, a person may reject it. Silence is never a yes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.people import Answer, Interviewer, Question
from pipeline.engine.step import Outcome, StepContext
from pipeline.errors import ConfigError, StepFailed
from pipeline.formats.casys.plan import AGENT, HUMAN, gate_of, node_of
from pipeline.formats.casys.tools import TookTooLong, within
from pipeline.records.values import canonical, digest

#: Results of more bytes are shown by their size and hash.
_SHORT = 2000

#: Returns the answer, or None where none came in time.
Ask = Callable[[Question], Any]
#: Who answers a kind of gate: a function, an interviewer, or True: the run waits for an answer from elsewhere.
Decider = Ask | Interviewer | bool | None

#: Kinds of gates in the order in which they are asked; the answer that continues and the one that ends.
CHOICES: Mapping[str, tuple[str, str]] = {AGENT: ("continue", "abort"), HUMAN: ("approve", "reject")}
_QUESTION = {AGENT: "Layer {layer} is done. Continue?", HUMAN: "Layer {layer} is done. Approve it?"}
_YES, _NO = ("yes", "y", "approved", "ok"), ("no", "n", "rejected")


class Deciders:
    """Who answers the gates of one run: the engine's interviewer."""

    def __init__(
        self,
        deciders: Mapping[str, Decider],
        tell: Callable[[Question, str, int], None],
        seconds: float | None,
        clock: Clock,
    ) -> None:
        """Keep the parts.

        Args:
            tell: Called before a question is put, with the kind of gate and its layer.
            seconds: How long an answer may take; None: no limit.
        """
        self._deciders = deciders
        self._tell = tell
        self._seconds = seconds
        self._clock = clock

    def ask(self, question: Question) -> Answer | None:
        """Return the answer; None where no decider is here, so that the run waits.

        Raises:
            StepFailed: No answer came in time; the run is aborted, and asked again when it is resumed.
            ConfigError: The answer is none of the choices.
        """
        kind, layer = gate_of(node_of(question.path)) or ("", 0)
        self._tell(question, kind, layer)
        decider = self._deciders.get(kind)
        if decider is None or isinstance(decider, bool):
            return None
        ask = decider if callable(decider) else decider.ask
        try:
            said = within(self._seconds, self._clock, lambda: ask(question))
        except (TimeoutError, TookTooLong):
            said, late = None, True
        else:
            late = callable(decider)
        if said is None and late:
            raise StepFailed(f"aborted: no {kind} decision came in time", code="no_decision", gate=kind)
        return said if said is None or isinstance(said, Answer) else Answer(_choice(kind, said), by=kind)


def gate_step(
    kind: str, layer: int, tasks: Sequence[str], before: Callable[[int], None]
) -> Callable[[StepContext], Any]:
    """Return the step of a gate.

    Args:
        tasks: Ids of the layer's tasks; their results are shown, and an answer holds for exactly them.
        before: Called with the layer first: what is asked about is saved by then.
    """

    def body(ctx: StepContext) -> Outcome:
        before(layer)
        shown = {"layer_index": layer, "results": {name: _shown(ctx.outputs[name].get("result")) for name in tasks}}
        answer = ctx.ask_person(_QUESTION[kind].format(layer=layer + 1), CHOICES[kind], shown)
        yes, no = CHOICES[kind]
        if answer.choice != yes:
            raise StepFailed(f"aborted by {kind}", code="gate_rejected", gate=kind, choice=no, note=answer.note)
        return Outcome({"choice": answer.choice, "by": answer.by, "note": answer.note})

    return body


def _shown(result: Any) -> Any:
    text = canonical(result)
    return result if len(text) <= _SHORT else {"bytes": len(text), "sha256": digest(text)}


def _choice(kind: str, said: Any) -> str:
    yes, no = CHOICES[kind]
    if isinstance(said, bool):
        return yes if said else no
    text = str(said).strip().lower()
    if text in (yes, *_YES):
        return yes
    if text in (no, *_NO):
        return no
    raise ConfigError(f"The {kind} gate was answered {said!r}; it takes {yes} or {no}.", code="invalid_answer")
