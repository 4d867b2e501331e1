"""`show`: what a step or one of its items made; a scheme of work as a table, anything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from pipeline.cli.moment import show_moment
from pipeline.cli.narrate import item_name
from pipeline.cli.options import OneOf, json_option, open_store, own, run_argument, store_option
from pipeline.cli.reading import head_of, state_of
from pipeline.cli.status import LESSONS_STEPS
from pipeline.cli.text import heading, one_line, say, say_json, table
from pipeline.errors import RunNotFound
from pipeline.records.run import RunState, StepRun, TaskRun, bare, in_order
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Store
from pipeline.store.reading import resolve
from pipeline.travel.points import points, resolve_point, state_at
from pipeline.travel.values import Reader


@click.command("show")
@run_argument
@click.argument("what", type=OneOf("step", LESSONS_STEPS), required=False, metavar="[STEP[/ITEM]]")
@click.option("--at", default="", envvar=own("show", "at"), show_envvar=True, metavar="POINT",
              help="As it was then: a record's number, a checkpoint id, STEP, STEP#VISIT, start or end.")  # fmt: skip
@json_option
@store_option
def show(run: str, what: str | None, at: str, as_json: bool, store: str | None) -> None:
    """Show what a step or one of its items made; without one, the run's steps, context and cost.

    `show RUN sow` prints the scheme of work as a table; `show RUN lessons/7` the seventh lesson;
    `show RUN --at sow` the run as it was when sow had ended.
    """
    place = open_store(store)
    state = _state(place, resolve(place, run), at)
    if not what:
        show_moment(place, state, as_json=as_json)
        return
    step, item = find(state, what)
    reader = Reader(place, state.run_id)
    if item is not None:
        value = item_value(reader, state, step, item)
        if as_json:
            say_json({"run_id": state.run_id, "step": bare(step.path), "item": item, "value": value})
        else:
            say(_pretty(value))
        return
    outputs = reader.whole(step.outputs)
    made = {name: reader.blob(blob) for name, blob in step.artifacts.items()}
    if as_json:
        say_json({"run_id": state.run_id, "step": bare(step.path), "status": step.status, "outputs": outputs,
                  "artifacts": made})  # fmt: skip
        return
    for line in step_lines(state, step, outputs, made):
        say(line)


def _state(place: Store, name: str, at: str) -> RunState:
    if not at:
        return state_of(place, head_of(place, name))
    return state_at(place, name, resolve_point(points(place, name), at))


def find(state: RunState, what: str) -> tuple[StepRun, str | None]:
    """The step meant (the longest path that fits; of a node's visits the last) and the item's key, if one is named.

    Raises:
        RunNotFound: The run has no such step yet, or the step no such item.
    """
    steps = {bare(step.path): step for step in state.steps.values()}
    steps |= {step.path: step for step in state.steps.values()}
    latest = {step.node: step for step in state.steps.values()}
    parts = what.split("/")
    for cut in range(len(parts), 0, -1):
        name = "/".join(parts[:cut])
        step = steps.get(name) or (latest.get(name) if cut == 1 else None)
        if step is None:
            continue
        if cut == len(parts):
            return step, None
        return step, _key(state, step, "/".join(parts[cut:]))
    names = ", ".join(sorted({bare(path) for path in state.steps})) or "none"
    raise RunNotFound(f"Run {state.run_id} has no step {what!r}.", hint=f"Steps begun so far: {names}.")


def _key(state: RunState, step: StepRun, text: str) -> str:
    """The key of a task of this step: as recorded, or its last part where that is unique ("7" for "lesson/7")."""
    tasks = state.tasks.get(step.path, {})
    if text in tasks:
        return text
    near = [key for key in tasks if text in (key.rpartition("/")[2], key.rpartition(":")[2], key.lstrip("0"))]
    if len(near) == 1:
        return near[0]
    names = in_order([item_name(step.path, key) for key in near or tasks], str)
    some = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "") or "none"
    raise RunNotFound(f"Step {bare(step.path)} has no item {text!r}.", hint=f"Items so far: {some}.")


def item_value(reader: Reader, state: RunState, step: StepRun, key: str) -> Any:
    """What the task made, or the error it ended with."""
    task: TaskRun = state.tasks[step.path][key]
    return reader.task(step.path, key, task) if task.status == COMPLETED else {"error": task.error}


def step_lines(state: RunState, step: StepRun, outputs: Mapping[str, Any], made: Mapping[str, Any]) -> list[str]:
    """A step for people: outputs, then each artifact, then its items."""
    lines = [heading(f"{bare(step.path)} of run {state.run_id}: {step.status.replace('_', ' ')}")]
    lines += [f"{name}: {one_line(json.dumps(value, ensure_ascii=False), 200)}" for name, value in outputs.items()]
    if step.error and step.status != COMPLETED:
        lines.append(f"Error: {one_line(step.error.get('message', ''))}")
    for name, value in made.items():
        lines += ["", *(scheme_lines(value) if _is_scheme(value) else [f"{name}:", _summary(value)])]
    if tasks := state.tasks.get(step.path):
        done = sum(task.status == COMPLETED for task in tasks.values())
        lines += ["", f"Items: {done} completed, {len(tasks) - done} failed; see one: "
                  + one_line(", ".join(in_order([item_name(step.path, key) for key in tasks], str)), 200)]  # fmt: skip
    return lines


def _is_scheme(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("entries"), list) and "lesson_count" in value


def scheme_lines(scheme: Mapping[str, Any]) -> list[str]:
    """The scheme of work as a table, with what it leaves out."""
    rows = [
        [str(entry.get("order", "")), str(entry.get("lesson_type", "")), one_line(entry.get("block", ""), 24),
         one_line(entry.get("label", ""), 46), one_line(", ".join(entry.get("outcome_refs", ())), 44)]
        for entry in scheme["entries"]
    ]  # fmt: skip
    lines = [table(["#", "Type", "Block", "Lesson", "Learning outcomes"], rows, right=["#"])]
    left: Sequence[str] = scheme.get("not_covered") or ()
    if left:
        lines += ["", f"Partial course. Not covered ({len(left)}): {', '.join(left)}"]
    return lines


def _summary(value: Any) -> str:
    """JSON, or its size where that would fill the screen."""
    text = _pretty(value)
    if len(text) <= 4000:
        return text
    size = f"{len(value):,} entries" if isinstance(value, list | dict) else "text"
    return f"  {size}, {len(text):,} characters; --json prints all of it"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
