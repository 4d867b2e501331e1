"""`run` and `mark-done`: a pipeline of the user's own, in DOT or in Python, with the same runs, costs and progress."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any, cast

import click

from pipeline.app.run_list import row_of, way_on
from pipeline.app.stores import head_of, open_store, place_of
from pipeline.cli.displays import EventDisplay
from pipeline.cli.dot_options import Person, dot_options, dot_options_of, refuse_dot_options
from pipeline.cli.options import FileAndName, own_option, run_argument, store_option
from pipeline.cli.results import watched
from pipeline.cli.run_options import EXECUTION, options_of, settings_options
from pipeline.cli.text import say


@click.command("run")
@click.argument("target", type=FileAndName(), metavar="FILE.dot|FILE.py:NAME", required=False)
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", envvar="PIPELINE_PARAM", show_envvar=True,
              help="A parameter; JSON values are parsed. Repeatable. "
              "With --resume of a FILE.py:NAME: one that the run does not have yet.")  # fmt: skip
@click.option("--resume-from", metavar="DIR|RUN", help="The same as --resume.")
@dot_options
@settings_options(
    "accept_changes", *EXECUTION,
    accept_changes="Continue with a changed graph or model; work that this affects is run again.",
    model="A Claude model, or offline: stand-in answers for $0.00.  "
    "[default: claude-sonnet-5-5 with a credential; without one, graphs that call a model are refused]",
)  # fmt: skip
@click.pass_context
def run(ctx: click.Context, /, target: str | None, params: tuple[str, ...], **_: Any) -> int:
    """Run your own pipeline: a graph in FILE.dot, or the object NAME in FILE.py.

    Every start is a new run; --resume continues one: a run of the store, or the folder of a run. State is
    saved after every node, and every paid reply before it is used: a run may be stopped or killed at any moment.
    """
    asked, execution, how = options_of(ctx)
    values = dict(read_param(text) for text in params)
    resume = execution.resume or ctx.params["resume_from"]
    if target is None and resume is None:
        raise click.UsageError("Missing FILE.dot or FILE.py:NAME (or --resume RUN).")
    if target is None or not is_python(target):
        from pipeline.app.run_dot import run_dot as start_dot

        dot = dot_options_of(ctx, resume)
        return watched(execution, how, lambda shown, ask: start_dot(
            target, params=values, model=asked.model, execution=execution, dot=dot, listener=shown, confirm=ask,
            interviewer=None if how.json else Person(cast(EventDisplay, shown)),
        ))  # fmt: skip
    refuse_dot_options(ctx)
    if resume:
        name, store = place_of(resume, execution.store or None)
        execution = replace(execution, resume=name)
        if store and store != execution.store:
            execution = replace(execution, store=store, given=execution.given | {"store"})
    from pipeline.app.run_file import run_file

    return watched(execution, how, lambda shown, ask: run_file(
        target, params=values, model=asked.model, execution=execution, listener=shown, confirm=ask
    ))  # fmt: skip


#: The same command by the name that the Attractor family knows.
run_dot = copy.copy(run)
run_dot.name = "run_dot"


def is_python(target: str) -> bool:
    """Return whether FILE.py:NAME was given, or a Python file that lacks its NAME; not a DOT file."""
    file, _, name = target.rpartition(":")
    return target.endswith(".py") or file.endswith(".py") or (bool(file) and name.isidentifier())


def read_param(text: str) -> tuple[str, Any]:
    """Return KEY=VALUE as (key, value): a number, true, null, list or object as JSON says, else the text itself.

    Raises:
        click.UsageError: There is no "=", or nothing before it.
    """

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"Invalid --param {text!r}; use KEY=VALUE.")
    try:
        return name.strip(), json.loads(value, parse_constant=refuse)
    except ValueError:
        return name.strip(), value


@click.command("mark-done")
@run_argument
@click.argument("step")
@own_option("mark-done", "--output", "outputs", multiple=True, metavar="KEY=VALUE",
            help="An output of the step, for the steps after it. Repeatable.")  # fmt: skip
@own_option("mark-done", "--file", "target", type=FileAndName(), metavar="FILE.py:NAME",
            help="The code of your own pipeline.")  # fmt: skip
@store_option
def mark_done(run: str, step: str, outputs: tuple[str, ...], target: str | None, store: str | None) -> None:
    """Mark STEP as completed: it was interrupted, but its side effects have happened."""
    from pipeline.app import travel

    place = open_store(store)
    name = travel.mark_done(place, run, step, dict(read_param(text) for text in outputs), target)
    say(f"{step}: recorded as completed")
    say(f"Resume: {way_on(row_of(head_of(place, name)), store)}")
