"""Open questions of runs, and people's answers to them: found in the records, answered through the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.clock import SystemClock
from pipeline.dot.labels import chosen
from pipeline.engine.amendment import amend
from pipeline.errors import ConfigError, DecidedMeanwhile, RunNotFound
from pipeline.formats.attractor.run_documents import head_view
from pipeline.formats.attractor.source import DOT, Source
from pipeline.records.kinds import Decision, Fact
from pipeline.records.run import OpenQuestion, RunState, bare
from pipeline.records.statuses import IN_PROGRESS
from pipeline.store.base import Store
from pipeline.store.reader import load, resolve


@dataclass(frozen=True, slots=True)
class Gate:
    """A question without an answer."""

    run: str
    #: The step that asks, as people name it: "review", "review#2".
    gate: str
    text: str
    #: Allowed answers; none: any text.
    choices: Sequence[str]
    #: What else is shown; JSON.
    shown: Mapping[str, Any]
    #: Since when, ISO 8601.
    since: str
    #: Hash of the question as it was shown; an answer holds for it alone.
    question: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the object of `gates --json`."""
        return {"run": self.run, "gate": self.gate, "question": self.text, "choices": list(self.choices),
                "shown": dict(self.shown), "since": self.since, "hash": self.question}  # fmt: skip


def gates(store: Store, run: str = "") -> Iterator[Gate]:
    """Yield the open questions of one run, or of all that are not finished, newest run first.

    Raises:
        RunNotFound: There is no such run.
    """
    if run:
        names = [resolve(store, run)]
    else:
        heads = store.heads(_asks)
        names = [head.run_id for head in heads if not head.corrupt]
    for name in names:
        try:
            state = load(store, name)
        except RunNotFound:
            # It was removed since it was listed.
            continue
        yield from open_gates(state)


def _asks(document: Mapping[str, Any]) -> bool:
    """Return whether a run may have open questions; heads of an earlier version do not say how many."""
    return document.get("status") == IN_PROGRESS and bool(document.get("open_questions", 1))


def open_gates(state: RunState) -> list[Gate]:
    """Return the open questions of a state, oldest first."""
    asked = sorted(state.questions.items(), key=lambda item: item[1].seq)
    return [_gate(state.run_id, path, question) for path, question in asked]


def answer(
    store: Store, text: str, gate: str, choice: str, *, note: str = "", by: str = "", question: str = ""
) -> tuple[Gate, str]:
    """Record the answer to one open question, durably; return the question, and the choice in its own spelling.

    Args:
        gate: The step that asks; its visit may be left out where only one asks.
        choice: A choice, its key or its label, in any case; any text where there are no choices.
        question: Hash of the question as it was shown; "": whichever is open now.

    Raises:
        RunLocked: A living process owns the run.
        DecidedMeanwhile: `question` was answered already; data has that answer's choice, by, note and at.
        ConfigError: No such question is open, or the choice is none of its choices; says which there are.
    """
    run = resolve(store, text)
    found: list[tuple[Gate, str]] = []

    def decide(state: RunState) -> Sequence[Fact]:
        _refuse_second(state, gate, question)
        path, asked = _asked(state, gate, question)
        meant = chosen(choice, asked.choices)
        if not meant:
            raise ConfigError(f"{choice!r} is not a choice of {gate}.", code="invalid_choice",
                              hint=f"Choose one of: {', '.join(asked.choices)}")  # fmt: skip
        found.append((_gate(run, path, asked), meant))
        return [Decision(path, asked.question, meant, by, note)]

    state = load(store, run)
    # The first answer may have resumed the run: then it is owned.
    _refuse_second(state, gate, question)
    # What the run's format adds to its checkpoint.json.
    view = head_view(Source.stored(store, state).graph()) if DOT in state.pins else None
    amend(store, run, SystemClock(), decide, view)
    return found[0]


def _refuse_second(state: RunState, gate: str, question: str) -> None:
    """Refuse an answer to a question that has one.

    Raises:
        DecidedMeanwhile: It has.
    """
    known = ((path, answered) for (path, asked), answered in state.decisions.items() if question and asked == question)
    path, first = next((each for each in known if gate in (each[0], bare(each[0]))), ("", None))
    if first is not None:
        raise DecidedMeanwhile(
            f"{bare(path)} of run {state.run_id} was answered already: {first.choice}.", code="already_answered",
            hint=f"`./pipeline.sh show {state.run_id}` shows how the run went on.", **first._asdict(),
        )  # fmt: skip


def _gate(run: str, path: str, question: OpenQuestion) -> Gate:
    shown = {key: value for key, value in question.shown.items() if key != "text"}
    return Gate(
        run, bare(path), str(question.shown.get("text", "")), question.choices, shown, question.at, question.question
    )


def _asked(state: RunState, gate: str, wanted: str) -> tuple[str, OpenQuestion]:
    there = {path: question for path, question in state.questions.items() if gate in (path, bare(path))}
    there = there or {path: asked for path, asked in state.questions.items() if path.rpartition("#")[0] == gate}
    if wanted:
        there = {path: asked for path, asked in there.items() if asked.question == wanted}
    if len(there) == 1:
        return next(iter(there.items()))
    names = ", ".join(bare(path) for path in state.questions) or "none"
    what = "has several open questions" if there else "has no open question"
    raise ConfigError(f"{gate} {what} in run {state.run_id}.", code="no_open_question",
                      hint=f"Open questions: {names}.")  # fmt: skip
