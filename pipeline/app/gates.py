"""Open questions of runs, and a person's answers to them: found in the records, answered through the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import ConfigError
from pipeline.records.statuses import IN_PROGRESS
from pipeline.store.base import Store

if TYPE_CHECKING:
    from pipeline.engine.recorder import HeadView
    from pipeline.records.kinds import Fact
    from pipeline.records.run import OpenQuestion, RunState


@dataclass(frozen=True, slots=True)
class Gate:
    """A question that nobody has answered yet."""

    run: str
    #: The step that asks, as people name it: "review", "review#2".
    gate: str
    text: str
    #: What may be answered; none: any text.
    choices: Sequence[str]
    #: What else is shown; JSON.
    shown: Mapping[str, Any]
    #: Since when, ISO 8601.
    since: str


def gates(store: Store, run: str = "") -> Iterator[Gate]:
    """The open questions of one run, or of all that are not finished, newest run first.

    Raises:
        RunNotFound: There is no such run.
    """
    from pipeline.store.reading import load

    names = [run] if run else [head.run_id for head in store.heads(_unfinished) if not head.corrupt]
    for name in names:
        yield from open_gates(load(store, name))


def open_gates(state: RunState) -> list[Gate]:
    """The open questions of a state, oldest first."""
    asked = sorted(state.questions.items(), key=lambda item: item[1].seq)
    return [_gate(state.run_id, path, question) for path, question in asked]


def answer(store: Store, run: str, gate: str, choice: str, *, note: str = "", by: str = "") -> tuple[Gate, str]:
    """Record the answer to one open question, durably; the question, and the choice in its own spelling.

    Args:
        gate: The step that asks; its visit may be left out where only one asks.
        choice: A choice, its key or its label, in any case; any text where there are no choices.

    Raises:
        RunLocked: A living process owns the run.
        ConfigError: No such question is open, or the choice is none of its choices; says which there are.
    """
    from pipeline.clock import SystemClock
    from pipeline.engine.amendment import amend
    from pipeline.records.kinds import Decision

    found: list[tuple[Gate, str]] = []

    def decide(state: RunState) -> Sequence[Fact]:
        path, question = _asked(state, gate)
        chosen = chosen_of(choice, question.choices)
        if not chosen:
            raise ConfigError(f"{choice!r} is none of the choices of {gate}.", hint=_choices(question.choices))
        found.append((_gate(run, path, question), chosen))
        return [Decision(path, question.question, chosen, by, note)]

    amend(store, run, SystemClock(), decide, _view(store, run))
    return found[0]


def _view(store: Store, run: str) -> HeadView | None:
    """What the run's format adds to its checkpoint.json."""
    from pipeline.formats.attractor.run_documents import head_view
    from pipeline.formats.attractor.source import DOT, Source
    from pipeline.store.reading import load

    state = load(store, run)
    return head_view(Source.stored(store, state).graph()) if DOT in state.pins else None


def chosen_of(text: str, choices: Sequence[str]) -> str:
    """The choice that a person means: itself, its label, its key or, where that is clear, its first letters.

    "" where it is none of them.
    """
    from pipeline.dot.labels import accelerator, normal_label, without_key

    wanted = text.strip()
    if not choices or not wanted:
        return wanted
    folded = wanted.casefold()
    keys = {choice: accelerator(choice) for choice in choices if without_key(choice) != choice.strip()}
    ways: Sequence[Callable[[str], bool]] = (
        lambda choice: choice.strip().casefold() == folded,
        lambda choice: normal_label(choice) == normal_label(wanted),
        lambda choice: keys.get(choice, "").casefold() == folded,
        lambda choice: normal_label(choice).startswith(folded),
    )
    for meant in ways:
        found = [choice for choice in choices if meant(choice)]
        if found:
            return found[0] if len(found) == 1 else ""
    return ""


def _gate(run: str, path: str, question: OpenQuestion) -> Gate:
    from pipeline.records.run import bare

    shown = {key: value for key, value in question.shown.items() if key != "text"}
    return Gate(run, bare(path), str(question.shown.get("text", "")), question.choices, shown, question.at)


def _asked(state: RunState, gate: str) -> tuple[str, OpenQuestion]:
    from pipeline.records.run import bare

    there = {path: question for path, question in state.questions.items() if gate in (path, bare(path))}
    there = there or {path: asked for path, asked in state.questions.items() if path.rpartition("#")[0] == gate}
    if len(there) == 1:
        return next(iter(there.items()))
    names = ", ".join(bare(path) for path in state.questions) or "none"
    what = "asks more than once" if there else "asks nothing now"
    raise ConfigError(f"{gate} {what} in run {state.run_id}.", hint=f"Open questions: {names}.")


def _choices(choices: Sequence[str]) -> str:
    return f"Choose one of: {', '.join(choices)}"


def _unfinished(document: Mapping[str, Any]) -> bool:
    return document.get("status") == IN_PROGRESS
