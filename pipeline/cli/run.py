"""`run`: a pipeline of the user's own, in DOT or in Python, with the same runs, costs and progress."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import click

from pipeline.cli.dot_options import Person, dot_options, dot_options_of, refuse_dot_options
from pipeline.cli.ending import watched
from pipeline.cli.lessons import execution_options, options_of, setting
from pipeline.cli.options import FileAndName, place_of
from pipeline.cli.progress.watch import Display
from pipeline.settings import LessonsOptions


@click.command("run")
@click.argument("target", type=FileAndName(), metavar="FILE.dot|FILE.py:NAME", required=False)
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", envvar="PIPELINE_PARAM", show_envvar=True,
              help="A parameter; a value that is JSON is read as JSON. May be given again. "
              "With --resume FILE.py:NAME: one that the run lacks.")  # fmt: skip
@click.option("--resume-from", metavar="DIR|RUN", help="The same as --resume.")
@dot_options
@setting("accept_changes", is_flag=True, help="Go on with a changed graph or model; what that touches is made again.")
@partial(execution_options, model="A Claude model, or offline: stand-in answers for $0.00.  "
         "[default: claude-sonnet-5-5 with a credential; without one, what asks a model is refused]")  # fmt: skip
@click.pass_context
def run(ctx: click.Context, /, target: str | None, params: tuple[str, ...], **_: Any) -> int:
    """Run a pipeline of your own: a graph in FILE.dot, or the object NAME in FILE.py.

    Every start is a new run; --resume goes on with one: a run of the store, or the folder of a run. State is
    saved after every node, and every paid reply before it is used: a run may be stopped or killed at any moment.
    """
    options = options_of(ctx)
    values = dict(read_param(text) for text in params)
    resume = options.resume or ctx.params["resume_from"]
    if target is None and resume is None:
        raise click.UsageError("Missing FILE.dot or FILE.py:NAME (or --resume RUN).")
    if target is not None and is_python(target):
        refuse_dot_options(ctx)
        return _run_python(options, target, values, resume)
    return _run_dot(ctx, options, target, values, resume)


#: The same command by the name that the Attractor family knows.
run_dot = copy.copy(run)
run_dot.name = "run_dot"


def is_python(target: str) -> bool:
    """Whether FILE.py:NAME was given, or a Python file that lacks its NAME; not a DOT file."""
    file, _, name = target.rpartition(":")
    return target.endswith(".py") or file.endswith(".py") or (bool(file) and name.isidentifier())


def _run_dot(
    ctx: click.Context, options: LessonsOptions, target: str | None, params: Mapping[str, Any], resume: str | None
) -> int:
    from pipeline import app

    dot = dot_options_of(ctx, resume)
    return watched(
        options,
        lambda shown, ask: app.run_dot(
            target, params=params, options=options, dot=dot, listener=shown, confirm=ask,
            interviewer=None if options.json else Person(cast(Display, shown)),
        ),
    )  # fmt: skip


def _run_python(options: LessonsOptions, target: str, params: Mapping[str, Any], resume: str | None) -> int:
    from pipeline import app

    if resume:
        resume, store = place_of(resume, options.store or None)
        if store and store != options.store:
            options = replace(options, store=store, given=options.given | {"store"})
    return watched(
        options,
        lambda listener, ask: app.run_file(
            target, params=params, resume=resume, options=options, listener=listener, confirm=ask
        ),
    )


def read_param(text: str) -> tuple[str, Any]:
    """KEY=VALUE as (key, value): a number, true, null, list or object as JSON says, else the text itself.

    Raises:
        click.UsageError: There is no "=", or nothing before it.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"--param is {text!r}; it is KEY=VALUE.")
    try:
        return name.strip(), json.loads(value, parse_constant=_refuse)
    except ValueError:
        return name.strip(), value


def _refuse(name: str) -> Any:
    raise ValueError(name)
