"""`status` and `show`: one run, its steps and what they cost; what a step or one of its items made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import click

from pipeline.app.run_list import LANGGRAPH, way_on
from pipeline.app.run_status import (
    BEGUN,
    LESSONS_STEPS,
    UNKNOWN,
    Moment,
    RunStatus,
    StepView,
    find_step,
    moment,
    state_then,
    status_of,
)
from pipeline.app.stores import open_store, words_of
from pipeline.app.words import (
    brief,
    count,
    duration,
    missing_records,
    money,
    money_between,
    one_line,
    short_hash,
    when,
    with_unpriced,
)
from pipeline.cli.errors import word_for
from pipeline.cli.options import OneOf, common_options, own_option, run_argument
from pipeline.cli.progress import outputs_text
from pipeline.cli.text import heading, table, tell
from pipeline.providers import ANTHROPIC
from pipeline.records.run import RunState, StepRun, bare, error_text, in_order, item_name
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS, PENDING
from pipeline.settings import OFFLINE
from pipeline.travel.values import Reader

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
@common_options
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
    if state.labels:
        yield f"Labels:  {state.labels}"
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


# --- show ----------------------------------------------------------------------------------------


@click.command("show")
@run_argument
@click.argument("what", type=OneOf("step", LESSONS_STEPS), required=False, metavar="[STEP[/ITEM]]")
@own_option("show", "--at", default="", metavar="POINT",
            help="The point to show: a record number, a checkpoint id, STEP, STEP#VISIT, start or end.")  # fmt: skip
@common_options
def show(run: str, what: str | None, at: str, as_json: bool, store: str | None) -> None:
    """Show what a step or one of its items made; without one, the run's steps, context and cost.

    `show RUN sow` prints the scheme of work as a table; `show RUN lessons/7` the seventh lesson;
    `show RUN --at sow` the run as it was when sow had ended.
    """
    place = open_store(store)
    state = state_then(place, run, at)
    if not what:
        found = moment(place, state)
        tell([found.to_json()], _moment_lines(found), as_json=as_json)
        return
    step, item = find_step(state, what)
    reader = Reader(place, state.run_id)
    if item is not None:
        task = state.tasks[step.path][item]
        value = reader.task(step.path, item, task) if task.status == COMPLETED else {"error": task.error}
        shown = {"run_id": state.run_id, "step": bare(step.path), "item": item, "value": value}
        tell([shown], [_pretty(value)], as_json=as_json)
        return
    outputs = reader.whole(step.outputs)
    made = {name: reader.blob(blob) for name, blob in step.artifacts.items()}
    told = {"run_id": state.run_id, "step": bare(step.path), "status": step.status, "outputs": outputs,
            "artifacts": made}  # fmt: skip
    tell([told], step_lines(state, step, outputs, made), as_json=as_json)


def _moment_lines(found: Moment) -> Iterator[str]:
    state = found.state
    yield heading(f"RUN {state.run_id} at {state.seq}", f"{state.pipeline}, {when(state.updated_at)} UTC")
    yield f"Status:  {(state.detail or state.status).replace('_', ' ')}"
    if state.parent:
        yield f"Parent:  run {state.parent.get('run')} at {state.parent.get('seq')}"
    yield ""
    context = [f"  {key}: {brief(value, 100)}" for key, value in state.context.items()]
    yield from work_lines(state, found.steps, between=["\nContext:", *context] if context else [])


def step_lines(state: RunState, step: StepRun, outputs: Mapping[str, Any], made: Mapping[str, Any]) -> Iterator[str]:
    """Yield a step for people: outputs, then each artifact, then its items."""
    yield heading(f"{bare(step.path)} of run {state.run_id}: {step.status.replace('_', ' ')}")
    yield from (f"{name}: {one_line(json.dumps(value, ensure_ascii=False), 200)}" for name, value in outputs.items())
    if step.error and step.status != COMPLETED:
        yield f"Error: {one_line(error_text(step.error))}"
    for name, value in made.items():
        is_scheme = isinstance(value, Mapping) and isinstance(value.get("entries"), list) and "lesson_count" in value
        yield ""
        yield from _scheme_lines(value) if is_scheme else [f"{name}:", _summary(value)]
    if tasks := state.tasks.get(step.path):
        done = sum(task.status == COMPLETED for task in tasks.values())
        names = one_line(", ".join(in_order([item_name(step.path, key) for key in tasks], str)), 200)
        yield ""
        yield f"Items: {done} completed, {len(tasks) - done} failed; see one: {names}"


def _scheme_lines(scheme: Mapping[str, Any]) -> list[str]:
    """Return the scheme of work as a table, with what it leaves out."""
    rows = [
        [str(entry.get("order", "")), str(entry.get("lesson_type", "")), one_line(entry.get("block", ""), 24),
         one_line(entry.get("label", ""), 46), one_line(", ".join(entry.get("outcome_refs", ())), 44)]
        for entry in scheme["entries"]
    ]  # fmt: skip
    lines = [table(["#", "Type", "Block", "Lesson", "Learning outcomes"], rows, right=["#"])]
    left: Sequence[str] = scheme.get("not_covered") or ()
    return [*lines, "", f"Partial course. Not covered ({len(left)}): {', '.join(left)}"] if left else lines


def _summary(value: Any) -> str:
    """Return JSON, or its size where that would fill the screen."""
    text = _pretty(value)
    if len(text) <= 4000:
        return text
    size = f"{len(value):,} entries" if isinstance(value, list | dict) else "text"
    return f"  {size}, {len(text):,} characters; --json prints all of it"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
