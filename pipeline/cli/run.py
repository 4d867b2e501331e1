"""`run`: a pipeline of the user's own, with the same runs, costs and progress."""

from __future__ import annotations

import json
from typing import Any

import click

from pipeline.cli.ending import watched
from pipeline.cli.lessons import execution_options, options_of
from pipeline.cli.options import FileAndName


@click.command("run")
@click.argument("target", type=FileAndName(), metavar="FILE.py:NAME")
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", envvar="PIPELINE_PARAM", show_envvar=True,
              help="A parameter; a value that is JSON is read as JSON. May be given again.")  # fmt: skip
@execution_options
@click.pass_context
def run(ctx: click.Context, /, target: str, params: tuple[str, ...], **_: Any) -> int:
    """Run a pipeline of your own: the object NAME in FILE.py.

    Every start is a new run; --resume RUN goes on with one.
    """
    options = options_of(ctx)
    values = dict(read_param(text) for text in params)
    if options.resume and values:
        raise click.UsageError("--resume goes on with the parameters of its run; give no --param.")
    from pipeline import app

    return watched(
        options,
        lambda listener, ask: app.run_file(
            target, params=values, resume=options.resume, options=options, listener=listener, confirm=ask
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
