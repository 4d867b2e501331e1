"""`show`: what a step or one of its items made; a scheme of work as a table, anything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from pipeline.app.run_status import LESSONS_STEPS, Moment, find_step, moment, state_then
from pipeline.app.stores import open_store
from pipeline.app.value_format import brief
from pipeline.cli.options import OneOf, json_option, own_option, run_argument, store_option
from pipeline.cli.status import work_lines
from pipeline.cli.text import heading, one_line, table, tell, when
from pipeline.records.run import RunState, StepRun, bare, in_order, item_name
from pipeline.records.statuses import COMPLETED
from pipeline.travel.values import Reader


@click.command("show")
@run_argument
@click.argument("what", type=OneOf("step", LESSONS_STEPS), required=False, metavar="[STEP[/ITEM]]")
@own_option("show", "--at", default="", metavar="POINT",
            help="The point to show: a record number, a checkpoint id, STEP, STEP#VISIT, start or end.")  # fmt: skip
@json_option
@store_option
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
        yield f"Error: {one_line(step.error.get('message', ''))}"
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
