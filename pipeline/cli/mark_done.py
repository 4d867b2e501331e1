"""`mark-done`: a step that acts outside was cut off, and a person has looked: it did its work."""

from __future__ import annotations

import click

from pipeline.cli.options import FileAndName, open_store, own, run_argument, store_option
from pipeline.cli.reading import head_of
from pipeline.cli.run import read_param
from pipeline.cli.runs import way_on
from pipeline.cli.summary import row_of
from pipeline.cli.text import say


@click.command("mark-done")
@run_argument
@click.argument("step")
@click.option("--output", "outputs", multiple=True, metavar="KEY=VALUE", envvar=own("mark-done", "output"),
              show_envvar=True, help="What it made, for the steps after it. May be given again.")  # fmt: skip
@click.option("--file", "target", type=FileAndName(), metavar="FILE.py:NAME", envvar=own("mark-done", "file"),
              show_envvar=True, help="The code of a pipeline of your own.")  # fmt: skip
@store_option
def mark_done(run: str, step: str, outputs: tuple[str, ...], target: str | None, store: str | None) -> None:
    """Record that STEP, which was cut off and may have acted outside, had done its work."""
    from pipeline import app

    place = open_store(store)
    name = app.mark_done(place, run, step, dict(read_param(text) for text in outputs), target)
    say(f"{step}: recorded as done")
    say(f"Go on: {way_on(row_of(head_of(place, name)), store)}")
