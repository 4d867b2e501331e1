"""`status`: one run, its steps, what it cost and how to resume it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

import click

from pipeline.app.run_list import LANGGRAPH, way_on
from pipeline.app.run_status import BEGUN, UNKNOWN, RunStatus, StepView, status_of
from pipeline.app.stores import open_store, words_of
from pipeline.cli.errors import word_for
from pipeline.cli.options import json_option, run_argument, store_option
from pipeline.cli.progress import outputs_text
from pipeline.cli.text import (
    count,
    duration,
    heading,
    missing_records,
    money,
    money_between,
    one_line,
    short_hash,
    table,
    tell,
    when,
    with_unpriced,
)
from pipeline.providers import ANTHROPIC
from pipeline.records.run import RunState, bare
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING
from pipeline.settings import OFFLINE

_MARKS = {
    COMPLETED: "✓ completed", FAILED: "✗ failed", IN_PROGRESS: "⏳ in progress", PENDING: "· pending",
    UNKNOWN: "? outcome unknown", BEGUN: "· begun",
}  # fmt: skip
_ERROR_WIDTH, _ABOUT_WIDTH = 500, 200
#: Identity settings that are shown.
_SETTINGS = ("author", "model", "provider", "effort", "lessons")
#: Values that go without saying.
_PLAIN = (ANTHROPIC, OFFLINE)


@click.command("status")
@run_argument
@json_option
@store_option
def status(run: str, as_json: bool, store: str | None) -> None:
    """Show one run: its steps with time, cost and outputs, what may have been spent, how to resume it."""
    found = status_of(open_store(store), run, store)
    tell([found.to_json()], status_lines(found, store), as_json=as_json)


def status_lines(found: RunStatus, store: str | None) -> Iterator[str]:
    """Yield a run for people."""
    row, state = found.row, found.state
    yield heading(f"RUN {state.run_id}", _about(state))
    yield f"Status:  {row.shown_status.replace('_', ' ')}"
    yield f"Started: {when(state.started_at)} UTC, last record {when(state.updated_at)} UTC"
    active = sum(float(step.duration_seconds or 0) for step in found.steps)
    part = " in steps that ended" if any(step.status == IN_PROGRESS for step in found.steps) else ""
    resumed = f", resumed {count(state.resumes, 'time')}" if state.resumes else ""
    yield f"Active:  {duration(active)}{part}{resumed}"
    if state.parent:
        yield f"Forked:  from run {state.parent.get('run')} at {state.parent.get('seq')}"
    if settings := ", ".join(f"{name} {state.identity[name]}" for name in state.identity
                             if name in _SETTINGS and state.identity[name]
                             and (name != "provider" or state.identity[name] not in _PLAIN)):  # fmt: skip
        yield f"Made by: {settings}"
    yield ""
    yield from work_lines(state, found.steps)
    yield from (f"Damage:  {missing_records(gap['first'], gap['last'], gap['reason'])}" for gap in state.gaps)
    if state.error:
        word = f"{word_for(state.error, row.status_detail)}:"
        yield f"{word:<9}{one_line(state.error.get('message', ''), _ERROR_WIDTH)}"
    for each in found.interruptions:
        yield f"Unknown: {each.name} has side effects and was interrupted; whether they happened is unknown"
    if found.interruptions:
        yield f"If so:   ./pipeline.sh mark-done {state.run_id} {bare(found.interruptions[0].path)}{words_of(store)}"
        yield "If not:  resume with --retry-unknown"
    if row.resumable:
        yield f"Resume:  {way_on(row, store, ' --retry-unknown' if found.interruptions else '')}"


def _about(state: RunState) -> str:
    """Return the pipeline with its parameters: `lessons: mathematics, national_5`, `quiz (questions=20)`."""
    if state.pipeline == "lessons" and set(state.params) <= {"subject", "level"}:
        values = [str(state.params[name]) for name in ("subject", "level") if name in state.params]
        return f"{state.pipeline}: {', '.join(values)}" if values else state.pipeline
    given = ", ".join(f"{name}={short_hash(value)}" for name, value in state.params.items())
    return f"{state.pipeline} ({one_line(given, _ABOUT_WIDTH)})" if given else state.pipeline


def thread_line(state: RunState) -> str:
    """Return what is said of a run that holds a thread of LangGraph in place of its steps; "" for any other run."""
    if state.pipeline != LANGGRAPH:
        return ""
    thread = state.params.get("subject")
    return f"It holds the LangGraph thread {thread!r}; `get_state_history` of its graph shows the checkpoints."


def work_lines(state: RunState, steps: Sequence[StepView], *, between: Sequence[str] = ()) -> list[str]:
    """Return the steps of a run and what they cost; of a thread what it is.

    Args:
        between: Further lines, after the steps.
    """
    if thread := thread_line(state):
        return [thread, "Spent:   unknown: LangGraph graphs make their own calls"]
    total, reported = state.total, state.reported
    known = f"at least {money(total.usd + total.low)}" if total.unbounded else money(total.usd)
    spent = with_unpriced(known, total.unpriced)
    lines = [_steps_table(steps), *between, ""]
    lines.append(f"Spent:   {spent} in {count(total.calls, 'call')}, {sum(total.tokens.values()):,} tokens")
    if total.high and not total.unbounded:
        lines.append(
            f"Possibly spent in addition: {money_between(total.low, total.high)} (calls without an exact bill)"
        )
    if total.unpriced:
        lines.append(f"Not priced: {count(total.unpriced, 'call')}; their tokens are known, their price is not")
    if Decimal(str(reported.get("cost_usd") or 0)):
        lines.append(f"Imported: {money(reported['cost_usd'])} as reported by the imported document, not itemised")
    return lines


def _steps_table(steps: Sequence[StepView]) -> str:
    rows = []
    for step in steps:
        mark = _MARKS.get(step.shown, step.shown)
        if step.spend is None:
            rows.append([step.step, mark, "", "", ""])
            continue
        mark += f" (attempt {step.attempt})" if step.attempt > 1 else ""
        mark += ", inherited" if step.inherited else ""
        made = outputs_text(step.outputs)
        if step.status != COMPLETED:
            error = one_line((step.error or {}).get("message", ""), 100)
            done = f"{count(step.items_completed, 'item')} made so far" if step.items_completed else ""
            made = error or made or done
        took = "-" if step.status == IN_PROGRESS else duration(step.duration_seconds)
        cost = with_unpriced(money(step.reported_usd or step.spend.usd), step.spend.unpriced)
        rows.append([step.step, mark, "-" if step.shown == BEGUN else took, cost, made])
    return table(["Step", "Status", "Time", "Cost", "Outputs"], rows, right=["Time", "Cost"])
