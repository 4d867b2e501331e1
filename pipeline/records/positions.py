"""Where a run stands: how step records, voids and snapshots move it. Called by the fold only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from pipeline.records.kinds import Invalidated, StepCompleted, StepFailed, StepStarted, replace
from pipeline.records.run import CheckpointMark, RunState, StepRun, Token
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS

START = ("", "")


def start_step(state: RunState, seq: int, at: str, fact: StepStarted) -> None:
    """Consume the tokens and open the visit, or open it again."""
    path = fact.path
    for edge, source in fact.consumed or (START,):
        state.waiting.pop((edge, source), None)
        if state.returning:
            state.returning.pop((edge, source), None)
    if state.failed_paths:
        state.failed_paths.pop(path, None)
    state.open_paths[path] = None
    old = state.steps.get(path)
    if old is None:
        place, number = _visit(path)
        node = place.rpartition("/")[2]
        step = StepRun(path, node, number, IN_PROGRESS, fact.attempt, fact.version, fact.consumed or (START,), at)
        if number > state.visits.get(place, 0):
            state.visits[place] = number
        if state.worked:
            step.seconds = state.worked.pop(path, 0.0)
    else:
        step = StepRun(
            path, old.node, old.visit, IN_PROGRESS, fact.attempt, fact.version, fact.consumed or old.consumed,
            old.started_at, seconds=old.seconds, error=old.error,
            deaths=old.deaths if old.attempt == fact.attempt else 0,
        )  # fmt: skip
    step.started_seq = seq
    state.steps[path] = step


def complete_step(state: RunState, seq: int, at: str, fact: StepCompleted) -> None:
    """Close the visit with success and lay tokens on the edges it chose."""
    path = fact.path
    # A visit that had completed is recorded again where its graph has changed: it takes the new edges only, and
    # leaves those that are gone.
    taken = _close(state, seq, at, fact, COMPLETED)
    for edge in taken:
        if edge not in fact.edges:
            state.waiting.pop((edge, path), None)
    for edge in fact.edges:
        if edge not in taken:
            state.waiting[edge, path] = Token(edge, path, seq)
    if fact.context:
        state.context.update(fact.context)
    if state.error is not None and not state.failed_paths:
        state.error = None
    state.checkpoints.append(CheckpointMark(seq, fact.checkpoint, path, at, state.total.usd))


def fail_step(state: RunState, seq: int, at: str, fact: StepFailed) -> None:
    """Close the visit as failed; where an edge accepts the failure the run goes on there."""
    path = fact.path
    _close(state, seq, at, fact, FAILED)
    for edge in fact.edges:
        state.waiting[edge, path] = Token(edge, path, seq)
    if not fact.edges:
        state.failed_paths[path] = None
        if state.error is None and not fact.retry:
            state.error = fact.error
    elif fact.context:
        state.context.update(fact.context)
    state.checkpoints.append(CheckpointMark(seq, fact.checkpoint, path, at, state.total.usd))


def _close(state: RunState, seq: int, at: str, fact: StepCompleted | StepFailed, status: str) -> Sequence[str]:
    """Write down how a visit ended; returns the edges it had taken, if it had completed before."""
    path = fact.path
    if state.failed_paths:
        state.failed_paths.pop(path, None)
    if state.active:
        state.active.pop(path, None)
    if state.former:
        state.former.pop(path, None)
    if state.questions:
        state.questions.pop(path, None)
    step = state.steps.get(path)
    taken: Sequence[str] = ()
    if path in state.open_paths and step is not None:
        # Only the fold has it while it is open.
        del state.open_paths[path]
    else:
        taken = step.edges if step is not None and step.status == COMPLETED else ()
        step = state.steps[path] = StepRun(path, *split(path)) if step is None else copy(step)
    step.status, step.attempt = status, fact.attempt
    step.completed_at, step.ended_seq, step.checkpoint = at, seq, fact.checkpoint
    step.seconds += fact.seconds
    step.outputs, step.artifacts, step.context, step.reads = fact.outputs, fact.artifacts, fact.context, fact.reads
    step.outcome, step.edges, step.reason = fact.outcome, fact.edges, fact.reason
    step.code = fact.code if isinstance(fact, StepCompleted) else ""
    step.error, step.deaths = fact.error if isinstance(fact, StepFailed) else None, 0
    return taken


def fits(state: RunState, fact: StepStarted | StepCompleted | StepFailed) -> bool:
    """Return whether a step record follows from the position; after a gap, those that do not are left out."""
    if isinstance(fact, StepStarted):
        if fact.path in state.steps:
            return fact.path in state.open_paths or fact.path in state.failed_paths
        return all((edge, source) in state.waiting for edge, source in fact.consumed or (START,))
    return fact.path in state.open_paths


def count_deaths(state: RunState, died: bool) -> None:
    """Take a new owner: each visit the last one left open has died once more, unless it got somewhere."""
    for path in state.open_paths:
        step = state.steps[path]
        if not died or step.started_seq < state.owner:
            continue
        stuck = state.active.get(path, 0) < step.started_seq
        state.steps[path] = replace(step, deaths=step.deaths + 1 if stuck else 0)


def void_steps(state: RunState, fact: Invalidated) -> list[StepRun]:
    """Take the named visits and all that followed from them out of the position; returns them."""
    void = _downstream(state.steps, fact.paths)
    gone = [state.steps.pop(path) for path in void]
    if not gone:
        return gone
    for key in [key for key in state.waiting if key[1] in void]:
        del state.waiting[key]
    for step in gone:
        _remember(state, step, fact)
        state.open_paths.pop(step.path, None)
        state.failed_paths.pop(step.path, None)
        state.active.pop(step.path, None)
        state.questions.pop(step.path, None)
        for edge, source in step.consumed:
            state.returning[edge, source] = step.path
            if source not in void:
                state.waiting[edge, source] = Token(edge, source, _age(state, source))
    # What is made again is asked again.
    state.decisions = {key: answer for key, answer in state.decisions.items() if key[0] not in void}
    state.waiting = dict(sorted(state.waiting.items(), key=lambda item: item[1].seq))
    state.context = merged_context(state.steps.values())
    state.jumps += 1
    return gone


#: What followed from these stands again where all that it read turns out to be the same.
_MAY_STAND = frozenset({"changed", "refresh"})


def _remember(state: RunState, step: StepRun, fact: Invalidated) -> None:
    """Keep what followed from a change, for the case that it read nothing of it; forget what is to be made anew."""
    state.worked[step.path] = step.seconds
    if fact.reason in _MAY_STAND and step.path not in fact.paths and step.status == COMPLETED:
        state.former[step.path] = step
    else:
        state.former.pop(step.path, None)


def merged_context(steps: Any) -> dict[str, Any]:
    """Return the context that steps leave which completed, or whose failure was accepted, in order of their ends."""
    context: dict[str, Any] = {}
    for step in sorted(steps, key=lambda step: step.ended_seq):
        if step.context and (step.status == COMPLETED or step.edges):
            context.update(step.context)
    return context


def _downstream(steps: Mapping[str, StepRun], paths: Sequence[str]) -> dict[str, None]:
    void = dict.fromkeys(path for path in paths if path in steps)
    # Sources start before what consumes their tokens, and `steps` is in order of first start.
    for path, step in steps.items():
        if path in void:
            continue
        if any(source in void for _, source in step.consumed) or _inside(path, void):
            void[path] = None
    return void


def _inside(path: str, void: Mapping[str, None]) -> bool:
    while "/" in path:
        path = path.rpartition("/")[0]
        if path in void:
            return True
    return False


def _age(state: RunState, source: str) -> int:
    step = state.steps.get(source)
    return 1 if step is None else step.ended_seq


def split(path: str) -> tuple[str, int]:
    """Return node and visit of the last frame: "fan#2/left#3" → ("left", 3)."""
    place, number = _visit(path)
    return place.rpartition("/")[2], number


def _visit(path: str) -> tuple[str, int]:
    """Return where a node stands, and which visit of it: "fan#2/left#3" → ("fan#2/left", 3)."""
    place, _, number = path.rpartition("#")
    return place, int(number)
