"""`lessons`: the options of a course, handed to the application; its progress and its end shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pipeline import environment, settings
from pipeline.cli.ending import watched
from pipeline.cli.options import F, OneOf, RunName, own, run_argument
from pipeline.cli.plan import show_plan
from pipeline.cli.where import remember
from pipeline.errors import ConfigError
from pipeline.lessons.names import LEVELS, SUBJECTS
from pipeline.settings import LessonsOptions, option_fields, option_name, parse_usd

_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


class Usd(click.ParamType[Any]):
    """An amount of dollars, or `none`."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return parse_usd(value, _option_of(param)) if value.strip().lower() != "none" else "none"
        except ConfigError as error:
            self.fail(error.message, param, ctx)


def _option_of(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None else "--max-cost-usd"


class AtOnce(click.ParamType[Any]):
    """A whole number, or `auto`."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int) or str(value).strip().lower() == settings.AUTO:
            return value if isinstance(value, int) else settings.AUTO
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor auto.", param, ctx)


def setting(field: str, *, off: str = "", **details: Any) -> Callable[[F], F]:
    """The click option of a field of LessonsOptions, with its variable; `off`: the spelling that switches it off."""
    variable = environment.VARIABLES[field]
    names = option_name(field) + (f"/{off}" if off else "")
    return click.option(names, field, envvar=variable, show_envvar=variable is not None, **details)


def options_of(ctx: click.Context) -> LessonsOptions:
    """The settings of this start; what was not given stays at its default.

    Raises:
        ConfigError: A value is outside its range.
    """
    given = {name for name in option_fields() if ctx.get_parameter_source(name) in _GIVEN}
    values = {name: ctx.params[name] for name in given}
    for name in ("max_cost_usd", "daily_budget_usd"):
        if values.get(name) == "none":
            values[name] = None
    return LessonsOptions(**values, given=frozenset(given))


#: What `--model` says of courses.
_MODEL = "A Claude model, or offline.  [default: claude-sonnet-5-5 with a credential, else offline]"


def execution_options(command: F, *, model: str = _MODEL) -> F:
    """The options that say how work is done; `run` has them too."""
    decorators = [
        setting("store", metavar="URL", callback=remember,
                help="Where runs are kept.  [default: files:devops/checkpoints]"),
        setting("max_cost_usd", type=Usd(), metavar="USD|none", help="Ceiling of the run's spend.  [default: 50]"),
        setting("budget", type=click.Choice(settings.BUDGETS),
                help="How a call's worst case is bounded: by its bytes, or by the provider's token count and 5 %."),
        setting("daily_budget_usd", type=Usd(), metavar="USD|none",
                help="Limit of a UTC day, over what all runs of the store spend.  [default: none]"),
        setting("concurrency", type=AtOnce(), metavar="N|auto",
                help="Maximum paid calls in flight; 1 = sequential, auto = adapt to rate limits.  [default: 4]"),
        setting("executor", metavar="ADDRESS",
                help="Run map items on dask://HOST:PORT or dask:local.  [default: threads of this process]"),
        setting("batch", off="--no-batch", is_flag=True, default=False,
                help="Ask through Message Batches: half the price, within a day."),
        setting("batch_min", type=int, metavar="N", help="Fewer asks than N go as ordinary calls.  [default: 1]"),
        setting("no_wait", is_flag=True, help="Submit the batch and exit with 75; --resume collects it."),
        setting("batch_poll", type=float, metavar="SECONDS", help="Batch polling interval.  [default: 5]"),
        setting("resubmit", is_flag=True, help="Resubmit the requests of a lost batch (they may be billed twice)."),
        setting("prices", type=click.Path(path_type=Path), metavar="FILE", help="Unit prices of your own."),
        setting("model", metavar="ID", help=model),
        setting("resume", type=RunName(), metavar="RUN", help="Go on with a run: its id, a unique prefix, or latest."),
        setting("refresh", type=click.Choice(settings.REFRESHED),
                help="With --resume: make completed steps of this effect class, and what read them, again."),
        setting("retry_unknown", is_flag=True,
                help="With --resume: retry side effects whose outcome is unknown."),
        setting("from_step", metavar="STEP", help="With --resume: make this step and what follows it again."),
        setting("yes", is_flag=True, help="Go on without asking."),
        setting("quiet", is_flag=True, help="Final lines only."),
        setting("json", is_flag=True, help="One JSON object a line on stdout."),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


@click.command("lessons")
@setting("subject", type=OneOf("subject", SUBJECTS), metavar="NAME",
         help="mathematics, physics, and more (also maths, phys).")  # fmt: skip
@setting("level", type=OneOf("level", LEVELS), metavar="NAME", help="national_5, higher, and more (also n5, h).")
@setting("lessons", type=int, metavar="N", help="Lessons in the course, 1 to 120.  [default: 18]")
@setting("effort", type=click.Choice(settings.EFFORTS), help="How hard the model thinks.")
@setting("catalogue", type=click.Path(path_type=Path), metavar="DIR", help="Course files of your own.")
@setting("out", type=click.Path(path_type=Path), metavar="DIR", help="Where courses are published.  "
         "[default: devops/published]")  # fmt: skip
@setting("until", type=click.Choice(settings.UNTIL), help="Stop after this step; the run can go on later.")
@setting("sample", type=int, metavar="N", help="Make the first N lessons, then stop.")
@setting("dry_run", is_flag=True, help="Show the plan, its expected and worst cost; no state, no call.")
@setting("prompts", type=click.Path(path_type=Path, allow_dash=True), metavar="DIR|-",
         help="With --dry-run: every prompt, a file each in DIR; -: printed before the plan.")  # fmt: skip
@setting("force", is_flag=True, help="Start a new run even where an unfinished one exists.")
@setting("accept_changes", is_flag=True, help="Go on with changed settings; what they touch is made again.")
@setting("skip_failed", is_flag=True, help="Publish without lessons that failed.")
@setting("retry_failed", is_flag=True, help="With --resume: try failed lessons again, also of a completed run.")
@setting("overwrite", is_flag=True, help="Publish over files that were edited by hand.")
@execution_options
@click.pass_context
def lessons(ctx: click.Context, /, **_: Any) -> int:
    """Make a course, or go on with one: seed, sow, lessons, publish.

    The same command again continues an unfinished run of the same course, and does nothing
    where the course is complete. A run can be stopped at any moment; what was paid for is kept.
    """
    options = options_of(ctx)
    if not options.resume and not (options.subject and options.level):
        missing = " and ".join(option_name(name) for name in ("subject", "level") if not getattr(options, name))
        raise click.UsageError(f"Missing {missing} (or --resume RUN). `./pipeline.sh subjects` lists them.")
    from pipeline import app

    if options.dry_run and options.resume:
        raise click.UsageError("--dry-run shows the plan of a new course: give --subject and --level, not --resume.")
    if options.dry_run:
        return show_plan(app.plan(options), as_json=options.json, prompts=options.prompts)
    if ctx.get_parameter_source("prompts") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--prompts shows the prompts of a plan: give --dry-run too.")
    if options.resume:
        text = options.resume
        return watched(options, lambda listener, ask: app.resume(text, options, listener=listener, confirm=ask))
    return watched(options, lambda listener, ask: app.lessons(options, listener=listener, confirm=ask))


@click.command("redo")
@run_argument
@click.argument("item", metavar="STEP/ITEM")
@click.option("--note", default="", envvar=own("redo", "note"), show_envvar=True, metavar="TEXT",
              help="What to change; added to the prompt.")  # fmt: skip
@setting("out", type=click.Path(path_type=Path), metavar="DIR", help="Where courses are published.")
@setting("overwrite", is_flag=True, help="Publish over files that were edited by hand.")
@execution_options
@click.pass_context
def redo(ctx: click.Context, /, run: str, item: str, note: str, **_: Any) -> int:
    """Make one lesson of a course again (lessons/7) and publish anew; the others are kept.

    The version it replaces stays in the run's history, and what it cost in the account.
    """
    options = options_of(ctx)
    if options.resume:
        raise click.UsageError("redo names its run: give RUN, not --resume.")
    from pipeline import app

    return watched(options, lambda listener, ask: app.redo(run, item, note, options, listener=listener, confirm=ask))
