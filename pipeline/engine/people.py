"""Questions to people: recorded before they are put, answered by exactly one recorded decision.

And what people decided about what tasks made: taken into the run's journal from the part where it is durable already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline.clock import parse_iso
from pipeline.engine.recorder import Recorder
from pipeline.engine.setup import ActiveRun
from pipeline.errors import Pause, WaitingForHuman
from pipeline.records.kinds import Decision, DecisionAsked
from pipeline.records.reviews import ReviewState, standing
from pipeline.records.run import RunState, bare
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import value_hash
from pipeline.store.base import Store
from pipeline.store.parts import decisions_beside


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


def ask(running: ActiveRun, question: Question, otherwise: str) -> Answer:
    """Return the answer to a question; see StepContext.ask_person.

    Raises:
        Pause: waiting_for_human; the question is recorded and can be answered from outside.
    """
    path, seconds = question.path, question.seconds
    with running.recorder.reading() as state:
        known = state.decisions.get((path, question.hash))
        asked = state.questions.get(path)
    if known is not None:
        return Answer(known.choice, known.note, known.by)
    begun = running.clock.now()
    if asked is not None and asked.question == question.hash:
        begun = min(begun, parse_iso(asked.at))
    else:
        told = {**question.shown, "text": question.text}
        running.recorder.append(DecisionAsked(path, question.hash, question.choices, told))
        running.emit("decision_asked", path=path, text=question.text, choices=question.choices)
    interviewer: Interviewer | None = running.services.get("interviewer")
    answer = interviewer.ask(question) if interviewer is not None else None
    if answer is None and seconds is not None and (running.clock.now() - begun).total_seconds() >= seconds:
        answer = Answer(otherwise, f"No answer within {seconds:g} s.", TIMEOUT)
    if answer is None:
        name, choices = bare(path), ", ".join(map(repr, question.choices)) or "any text"
        raise Pause("waiting_for_human", WaitingForHuman(
            f"{name} waits for an answer: {question.text}", path=path,
            hint=f"./pipeline.sh answer {question.run} {name} CHOICE (one of: {choices}), then resume.",
        ))  # fmt: skip
    running.recorder.append(Decision(path, question.hash, answer.choice, answer.by, answer.note))
    running.emit("decision", path=path, choice=answer.choice, by=answer.by)
    return answer


def take_in(recorder: Recorder, store: Store) -> None:
    """Record what people decided about tasks while the run was owned; durable on return.

    Raises:
        Pause: The disk refused.
    """
    found = list(decisions_beside(store, recorder.state))
    for record in found:
        recorder.append(record.fact, sync=record is found[-1], at=record.at)


def standings(state: RunState, path: str) -> dict[str, ReviewState]:
    """Return how what the tasks of a visit made stands after all that people decided, by task."""
    found = {}
    for task, run in state.tasks.get(path, {}).items():
        made = run.hash if run.status == COMPLETED else ""
        found[task] = standing(made, run.seq, state.reviews.get((path, task), ()))
    return found
