"""The settings of a start as options of commands: each described once, with its environment variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from pipeline import environment, settings
from pipeline.cli.options import CourseName, F, NamedPath, RunName, remember
from pipeline.content.names import LEVELS, SUBJECTS
from pipeline.errors import ConfigError
from pipeline.providers import PROVIDERS
from pipeline.records.budgets import labels_text
from pipeline.settings import Display, Execution, Identity, option_fields, option_name, parse_usd


class Usd(click.ParamType[Any]):
    """An amount of dollars, or `none` where that is allowed."""

    name = "usd"

    def __init__(self, *, none: bool = True) -> None:
        self._none = none

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            usd = parse_usd(value, param.opts[0] if self._none and param is not None else "USD")
        except ConfigError as error:
            self.fail(error.message, param, ctx)
        if usd is None and not self._none:
            self.fail("USD is an amount of dollars such as 0.12.", param, ctx)
        # click takes None for a value that is missing.
        return "none" if usd is None else usd


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


_FOLDER = NamedPath()
#: Field → what click is told of it.
_DETAILS: Mapping[str, Mapping[str, Any]] = {
    "subject": {"type": CourseName("subject", SUBJECTS), "metavar": "NAME",
                "help": "Any of the catalogue: mathematics (or maths), physics, …; your own with --catalogue."},
    "level": {"type": CourseName("level", LEVELS), "metavar": "NAME",
              "help": "Any of the catalogue: national_5 (or n5), higher, …; your own with --catalogue."},
    "lessons": {"type": int, "metavar": "N", "help": "Lessons in the course, 1 to 120.  [default: 18]"},
    "model": {"metavar": "ID",
              "help": "A model, FILE.py:NAME of your own, or offline.  "
              "[default: claude-sonnet-5-5 with a credential, else offline]"},
    "provider": {"type": click.Choice(tuple(PROVIDERS)),
                 "help": "Whom to ask for the model; logins are the provider's own.  [default: anthropic]"},
    "base_url": {"metavar": "URL", "help": "Endpoint to ask, for example of a gateway or a local server."},
    "effort": {"type": click.Choice(settings.EFFORTS), "help": "How hard the model thinks."},
    "blind_solve": {"is_flag": True, "default": True,
                    "help": "Solve each lesson's questions without their keys and compare.  [default: on]"},
    "catalogue": {"type": _FOLDER, "metavar": "DIR", "help": "Folder of your own course files."},
    "bank": {"type": _FOLDER, "metavar": "DIR", "help": "Folder of your own topics of the question bank."},
    "store": {"metavar": "URL", "callback": remember,
              "help": "Where runs are kept.  [default: files:devops/checkpoints]"},
    "out": {"type": _FOLDER, "metavar": "DIR", "help": "Where courses are published.  [default: devops/published]"},
    "max_cost_usd": {"type": Usd(), "metavar": "USD|none", "help": "Spending ceiling of the run.  [default: 50]"},
    "budget": {"type": click.Choice(settings.BUDGETS),
               "help": "How a call's worst case is bounded: by its bytes, or by the provider's token count plus 5 %."},
    "daily_budget_usd": {"type": Usd(), "metavar": "USD|none",
                         "help": "Limit per UTC day on what all runs of the store spend.  [default: none]"},
    "labels": {"multiple": True, "metavar": "KEY=VALUE",
               "help": "What the run counts towards, such as team=maths (see budget). Repeatable."},
    "concurrency": {"type": AtOnce(), "metavar": "N|auto",
                    "help": "Maximum paid calls in flight; 1 = sequential, auto = adapt to rate limits.  [default: 4]"},
    "executor": {"metavar": "ADDRESS",
                 "help": "Run map items on dask://HOST:PORT or dask:local.  [default: threads of this process]"},
    "until": {"type": click.Choice(settings.UNTIL), "help": "Stop after this step; the run can be resumed later."},
    "sample": {"type": int, "metavar": "N", "help": "Make the first N lessons, then stop."},
    "batch": {"is_flag": True, "default": False,
              "help": "Use Message Batches: half the price, answers within a day."},
    "batch_min": {"type": int, "metavar": "N",
                  "help": "Send fewer than N requests individually.  [default: 1]"},
    "no_wait": {"is_flag": True, "help": "Submit the batch and exit with 75; --resume collects it."},
    "batch_poll": {"type": float, "metavar": "SECONDS", "help": "Batch polling interval.  [default: 5]"},
    "resubmit": {"is_flag": True, "help": "Resubmit the requests of a lost batch (they may be billed twice)."},
    "prices": {"type": _FOLDER, "metavar": "FILE", "help": "File with your own unit prices."},
    "dry_run": {"is_flag": True, "help": "Show the plan with its expected and worst cost; change nothing."},
    "prompts": {"type": NamedPath(allow_dash=True), "metavar": "DIR|-",
                "help": "With --dry-run: write each prompt to a file in DIR, or print them all before the plan (-)."},
    "resume": {"type": RunName(), "metavar": "RUN", "help": "Resume a run: its id, a unique prefix, or latest."},
    "from_step": {"metavar": "STEP", "help": "With --resume: run this step and the steps after it again."},
    "refresh": {"type": click.Choice(settings.REFRESHED),
                "help": "With --resume: rerun completed steps of this effect class, and what depends on them."},
    "retry_unknown": {"is_flag": True, "help": "With --resume: retry side effects whose outcome is unknown."},
    "force": {"is_flag": True, "help": "Start a new run even if an unfinished one exists."},
    "accept_changes": {"is_flag": True, "help": "Continue with changed settings; work that they affect is run again."},
    "skip_failed": {"is_flag": True, "help": "Publish without the failed lessons."},
    "review": {"is_flag": True, "default": False,
               "help": "Publish only once a person has approved or edited every lesson (exit code 8 until then)."},
    "downloads": {"metavar": "FORMAT[,FORMAT]",
                  "help": "Publish with files to take away: docx,pdf and more (see export), or none.  [default: none]"},
    "retry_failed": {"is_flag": True, "help": "With --resume: retry failed lessons, even if the run is completed."},
    "overwrite": {"is_flag": True, "help": "Publish over files that were edited by hand."},
    "yes": {"is_flag": True, "help": "Proceed without asking."},
    "quiet": {"is_flag": True, "help": "Print only the final lines."},
    "otel": {"is_flag": True, "default": None,
             "help": "Send traces and metrics by OTLP/HTTP.  [default: where OTEL_EXPORTER_OTLP_ENDPOINT is set]"},
    "otel_content": {"is_flag": True, "help": "Put prompts and replies into traces."},
    "json": {"is_flag": True, "help": "One JSON object per line on stdout."},
}  # fmt: skip
#: Flags that can also be given as off.
_SWITCHES = frozenset({"batch", "blind_solve", "otel", "review"})
#: Every command that starts a run has these.
EXECUTION = (
    "store", "max_cost_usd", "budget", "daily_budget_usd", "labels", "concurrency", "executor", "batch", "batch_min",
    "no_wait",
    "batch_poll", "resubmit", "prices", "model", "provider", "base_url", "resume", "refresh", "retry_unknown",
    "from_step", "yes", "quiet", "json", "otel", "otel_content",
)  # fmt: skip


def settings_options(*names: str, **helps: str) -> Callable[[F], F]:
    """Add settings as options, in this order.

    Args:
        helps: What a field means for this command, where that differs.
    """

    def decorate(command: F) -> F:
        for name in reversed(names):
            variable = environment.VARIABLES[name]
            spelled = option_name(name) + (f"/--no-{option_name(name)[2:]}" if name in _SWITCHES else "")
            details = {**_DETAILS[name], **({"help": helps[name]} if name in helps else {})}
            command = click.option(spelled, name, envvar=variable, show_envvar=variable is not None, **details)(command)
        return command

    return decorate


def options_of(ctx: click.Context) -> tuple[Identity, Execution, Display]:
    """Return the settings of this start; what was not given keeps its default.

    Raises:
        ConfigError: A value is outside its range.
    """
    given = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    values = {name: ctx.params[name] for name in option_fields() if ctx.get_parameter_source(name) in given}
    for name in ("max_cost_usd", "daily_budget_usd"):
        if values.get(name) == "none":
            values[name] = None
    if "labels" in values:
        values["labels"] = labels_text(values["labels"])
    return settings.options_of(values)
