"""Questions to people: recorded before they are put, answered by exactly one recorded decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline.clock import parse_iso
from pipeline.engine.setup import ActiveRun
from pipeline.engine.sources import Scope
from pipeline.errors import Pause, WaitingForHuman
from pipeline.records.kinds import Decision, DecisionAsked
from pipeline.records.run import bare
from pipeline.records.values import value_hash


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked at a gate."""

    run: str
    #: Path of the visit that asks.
    path: str
    text: str
    #: What may be answered; none: any text.
    choices: Sequence[str]
    #: What else is shown beside the question; JSON.
    shown: Mapping[str, Any] = field(default_factory=dict)
    #: How long an answer is waited for; None: as long as it takes.
    seconds: float | None = None

    @property
    def hash(self) -> str:
        """Return the hash of the question as it was shown; an answer holds for it alone."""
        return value_hash([self.text, list(self.choices), dict(self.shown)])


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer."""

    choice: str
    note: str = ""
    #: Who answered.
    by: str = ""


class Interviewer(Protocol):
    """Puts a question to a person."""

    def ask(self, question: Question) -> Answer | None:
        """Return the answer; None: no person can be asked here, the run waits."""


#: Who answers where no person did in time.
TIMEOUT = "timeout"


def ask(
    running: ActiveRun,
    scope: Scope,
    text: str,
    choices: Sequence[str],
    shown: Mapping[str, Any],
    seconds: float | None = None,
    otherwise: str = "",
) -> Answer:
    """Return the answer to a question; a recorded one is used, and only for the same question.

    Args:
        seconds: So long after it was first asked, the answer is `otherwise`.

    Raises:
        Pause: waiting_for_human; the question is recorded and can be answered from outside.
    """
    question = Question(running.recorder.state.run_id, scope.path, text, list(choices), dict(shown), seconds)
    with running.recorder.reading() as state:
        known = state.decisions.get((scope.path, question.hash))
        asked = state.questions.get(scope.path)
    if known is not None:
        return Answer(known.choice, known.note, known.by)
    begun = running.clock.now()
    if asked is not None and asked.question == question.hash:
        begun = min(begun, parse_iso(asked.at))
    else:
        told = {**question.shown, "text": text}
        running.recorder.append(DecisionAsked(scope.path, question.hash, question.choices, told))
        running.emit("decision_asked", path=scope.path, text=text, choices=question.choices)
    interviewer: Interviewer | None = running.services.get("interviewer")
    answer = interviewer.ask(question) if interviewer is not None else None
    if answer is None and seconds is not None and (running.clock.now() - begun).total_seconds() >= seconds:
        answer = Answer(otherwise, f"No answer within {seconds:g} s.", TIMEOUT)
    if answer is None:
        name = bare(scope.path)
        raise Pause("waiting_for_human", WaitingForHuman(
            f"{name} waits for an answer: {text}", hint=_way_on(question, name), path=scope.path,
        ))  # fmt: skip
    running.recorder.append(Decision(scope.path, question.hash, answer.choice, answer.by, answer.note))
    running.emit("decision", path=scope.path, choice=answer.choice, by=answer.by)
    return answer


def _way_on(question: Question, name: str) -> str:
    choices = ", ".join(repr(choice) for choice in question.choices) or "any text"
    return f"./pipeline.sh answer {question.run} {name} CHOICE (one of: {choices}), then resume."
