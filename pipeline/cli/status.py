"""`status`: one run, its steps, what it cost and how to go on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import click

from pipeline.cli.cut_off import CutOff, cut_off, cut_off_lines
from pipeline.cli.errors import word_for
from pipeline.cli.options import json_option, open_store, run_argument, store_option
from pipeline.cli.progress.lines import outputs_text
from pipeline.cli.reading import head_of, state_of
from pipeline.cli.runs import resume_command, way_on
from pipeline.cli.summary import UNKNOWN_SPEND, Row, row_of, thread_line
from pipeline.cli.text import (
    count,
    duration,
    heading,
    missing_records,
    money,
    money_between,
    one_line,
    say,
    say_json,
    short_hash,
    table,
    when,
    with_unpriced,
)
from pipeline.errors import CheckpointCorrupt
from pipeline.records.run import RunState, Spend, StepRun, bare, completed_tasks
from pipeline.records.statuses import COMPLETED, IN_PROGRESS, PENDING
from pipeline.records.values import resolve_value
from pipeline.store.base import Store
from pipeline.store.reading import resolve
from pipeline.store.view import pinned_nodes

#: Shown of a step that acts outside the run and was cut off; and of one that has no end while nobody works on it.
UNKNOWN, BEGUN = "unknown", "begun"
_MARKS = {
    COMPLETED: "✓ completed", "failed": "✗ failed", "in_progress": "⏳ in progress", PENDING: "· pending",
    UNKNOWN: "? end unknown", BEGUN: "· begun",
}  # fmt: skip
_ERROR_WIDTH, _ABOUT_WIDTH = 500, 200
#: The pipeline of courses, and the parameters that name one.
LESSONS, _COURSE = "lessons", ("subject", "level")
#: Steps of an imported course, whose document does not name those to come.
LESSONS_STEPS = ("seed", "sow", "lessons", "publish")


@click.command("status")
@run_argument
@json_option
@store_option
def status(run: str, as_json: bool, store: str | None) -> None:
    """Show one run: its steps with time, cost and outputs, what may have been spent, how to go on."""
    place = open_store(store)
    name = resolve(place, run)
    head = head_of(place, name)
    row = row_of(head)
    if row.status == "corrupt":
        raise CheckpointCorrupt(f"Run {name} cannot be read: {row.error}",
                                hint=f"./pipeline.sh log {name} prints what can still be read.")  # fmt: skip
    state = state_of(place, head, tasks=False)
    steps = step_rows(place, state)
    # While somebody works on it, what has no end is being done.
    unknown = [] if row.owned or row.status == COMPLETED else cut_off(place, state)
    if as_json:
        say_json(status_json(row, state, steps, store, unknown))
        return
    for line in status_lines(row, state, steps, store, unknown):
        say(line)


def step_rows(store: Store, state: RunState) -> list[dict[str, Any]]:
    """Every visit in order of start, then the nodes that have none yet."""
    by_step: dict[str, Spend] = {}
    for key, amount in state.spend.items():
        by_step.setdefault(key.step, Spend()).add(amount)
    reported = {entry.get("step"): entry for entry in state.imported.get("completed_steps") or ()}
    rows = [_visit(store, state, step, by_step.get(bare(step.path), Spend())) for step in state.steps.values()]
    for row in rows:
        if row["step"] in reported and not state.steps[row["path"]].checkpoint:
            row["reported_usd"] = (reported[row["step"]].get("metrics") or {}).get("cost_usd")
    seen = {step.node for step in state.steps.values()}
    rows += [{"step": node, "status": PENDING} for node in nodes_of(store, state) if node not in seen]
    return rows


def _visit(store: Store, state: RunState, step: StepRun, spend: Spend) -> dict[str, Any]:
    return {
        "step": bare(step.path),
        "path": step.path,
        "status": step.status,
        "attempt": step.attempt,
        "started_at": step.started_at or None,
        "completed_at": step.completed_at,
        "duration_seconds": step.seconds,
        "cost_usd": spend.usd,
        "possibly_usd": None if spend.unbounded else spend.high,
        "unpriced_calls": spend.unpriced,
        "tokens": sum(spend.tokens.values()),
        "outputs": _inline(store, state, step.outputs),
        "error": step.error,
        "inherited": 0 < step.ended_seq <= state.inherited,
        "items_completed": completed_tasks(state, step.path),
    }


def _inline(store: Store, state: RunState, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = resolve_value(outputs, partial(store.get_blob, state.run_id))
    return found


def nodes_of(store: Store, state: RunState) -> Sequence[str]:
    """The pinned graph's nodes in order; for an imported run, what its document names as next."""
    nodes = pinned_nodes(state, lambda blob: store.get_blob(state.run_id, blob))
    if nodes:
        return nodes
    if state.pipeline == "lessons":
        return LESSONS_STEPS
    following = state.imported.get("next_step")
    return [str(following)] if following else []


def status_json(
    row: Row, state: RunState, steps: list[dict[str, Any]], store: str | None, unknown: Sequence[CutOff]
) -> dict[str, Any]:
    """The object of `status --json`."""
    total = state.total
    return {
        "run_id": state.run_id,
        "pipeline": state.pipeline,
        "params": dict(state.params),
        "settings": dict(state.identity),
        "status": row.status,
        "status_detail": row.detail,
        "started_at": state.started_at,
        "updated_at": state.updated_at,
        "resumes": state.resumes,
        "parent": state.parent,
        "steps": steps,
        "cost_usd": total.usd + state.lost.low,
        "possibly_usd": None if total.unbounded else total.high,
        "unpriced_calls": total.unpriced,
        "reported_usd": state.reported.get("cost_usd"),
        "tokens": dict(total.tokens),
        "calls": total.calls,
        "error": state.error,
        "unknown": [each.name for each in unknown],
        "gaps": [dict(gap) for gap in state.gaps],
        "resume_command": resume_command(row, store) if row.resumable else None,
    }


def status_lines(
    row: Row, state: RunState, steps: list[dict[str, Any]], store: str | None, unknown: Sequence[CutOff]
) -> list[str]:
    """The same for people."""
    lines = [heading(f"RUN {state.run_id}", _about(state))]
    lines.append(f"Status:  {row.shown_status.replace('_', ' ')}")
    active = sum(float(step.get("duration_seconds") or 0) for step in steps)
    part = " in steps that ended" if any(step["status"] == IN_PROGRESS for step in steps) else ""
    lines.append(f"Started: {when(state.started_at)} UTC, last record {when(state.updated_at)} UTC")
    resumed = f", resumed {count(state.resumes, 'time')}" if state.resumes else ""
    lines.append(f"Active:  {duration(active)}{part}{resumed}")
    if state.parent:
        lines.append(f"Forked:  from run {state.parent.get('run')} at {state.parent.get('seq')}")
    if settings := ", ".join(f"{name} {value}" for name, value in state.identity.items() if name in _SHOWN and value):
        lines.append(f"Made by: {settings}")
    waiting = {each.path for each in unknown}
    shown = [{**step, "status": _shown(step, waiting, owned=row.owned)} for step in steps]
    lines += ["", *_work_lines(state, shown)]
    lines += [f"Damage:  {missing_records(gap['first'], gap['last'], gap['reason'])}" for gap in state.gaps]
    if state.error:
        word = f"{word_for(state.error, row.detail)}:"
        lines.append(f"{word:<9}{one_line(state.error.get('message', ''), _ERROR_WIDTH)}")
    lines += cut_off_lines(state.run_id, unknown)
    if row.resumable:
        lines.append(f"Go on:   {way_on(row, store, ' --retry-unknown' if unknown else '')}")
    return lines


def _about(state: RunState) -> str:
    """The pipeline with what it was given: `lessons: mathematics, national_5`, `quiz (questions=20)`."""
    if state.pipeline == LESSONS and set(state.params) <= set(_COURSE):
        values = [str(state.params[name]) for name in _COURSE if name in state.params]
        return f"{state.pipeline}: {', '.join(values)}" if values else state.pipeline
    given = ", ".join(f"{name}={short_hash(value)}" for name, value in state.params.items())
    return f"{state.pipeline} ({one_line(given, _ABOUT_WIDTH)})" if given else state.pipeline


def _work_lines(state: RunState, steps: list[dict[str, Any]]) -> list[str]:
    """The steps of a run and what they cost; of a thread what it is."""
    if thread := thread_line(state):
        return [thread, UNKNOWN_SPEND]
    return [steps_table(steps), "", *cost_lines(state.total, state.reported)]


_SHOWN = ("author", "model", "effort", "lessons")


def _shown(step: Mapping[str, Any], waiting: Collection[str], *, owned: bool) -> str:
    if step.get("path") in waiting:
        return UNKNOWN
    return BEGUN if step["status"] == IN_PROGRESS and not owned else str(step["status"])


def steps_table(steps: list[dict[str, Any]]) -> str:
    """The steps with time, cost and what they returned."""
    rows = []
    for step in steps:
        mark = _MARKS.get(step["status"], step["status"])
        if step["status"] == PENDING:
            rows.append([step["step"], mark, "", "", ""])
            continue
        attempt = f" (attempt {step['attempt']})" if step["attempt"] > 1 else ""
        attempt += ", inherited" if step["inherited"] else ""
        error = (step["error"] or {}).get("message", "") if step["status"] != COMPLETED else ""
        shown = one_line(error, 100) if error else outputs_text(step["outputs"]) or _made(step)
        took = "-" if step["status"] in (BEGUN, IN_PROGRESS) else duration(step["duration_seconds"])
        rows.append([step["step"], mark + attempt, took,
                     with_unpriced(money(step.get("reported_usd") or step["cost_usd"]), step["unpriced_calls"]),
                     shown])  # fmt: skip
    return table(["Step", "Status", "Time", "Cost", "Outputs"], rows, right=["Time", "Cost"])


def _made(step: Mapping[str, Any]) -> str:
    """What stands already of a step that has no end yet."""
    done = int(step.get("items_completed") or 0)
    return f"{count(done, 'item')} made so far" if done and step["status"] != COMPLETED else ""


def cost_lines(total: Spend, reported: Mapping[str, Any]) -> list[str]:
    """What was spent, what may have been, and what nobody can say."""
    known = f"at least {money(total.usd + total.low)}" if total.unbounded else money(total.usd)
    spent = with_unpriced(known, total.unpriced)
    lines = [f"Spent:   {spent} in {count(total.calls, 'call')}, {sum(total.tokens.values()):,} tokens"]
    if total.high and not total.unbounded:
        beside = money_between(total.low, total.high)
        lines.append(f"Possibly spent beside it: {beside} (calls without an exact bill)")
    if total.unpriced:
        lines.append(f"Not priced: {count(total.unpriced, 'call')}; their tokens are known, their price is not")
    if Decimal(str(reported.get("cost_usd") or 0)):
        lines.append(f"Imported: {money(reported['cost_usd'])} as reported by the imported document, not itemised")
    return lines
