"""`lessons` and `redo`: a course made, resumed or planned."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pipeline.app.words import count, money
from pipeline.cli.options import own_option, run_argument
from pipeline.cli.results import Ask, watched
from pipeline.cli.run_options import EXECUTION, options_of, settings_options
from pipeline.cli.text import say, say_json, table
from pipeline.files import write_over
from pipeline.providers import ANTHROPIC, takes_batches
from pipeline.records.charge import in_full
from pipeline.settings import OFFLINE, option_name

if TYPE_CHECKING:
    from pipeline.app.plan import CoursePlan
    from pipeline.app.start import RunReport
    from pipeline.engine.events import Listener

_WAYS = {
    "sync": "as it is", "sync_uncached": "without caching", "batch": "with --batch",
    "batch_uncached": "with --batch, without caching",
}  # fmt: skip


@click.command("lessons")
@settings_options(
    "subject", "level", "lessons", "effort", "blind_solve", "catalogue", "bank", "out", "until", "sample", "dry_run",
    "prompts", "force", "accept_changes", "skip_failed", "retry_failed", "review", "downloads", "overwrite",
    *EXECUTION,
)  # fmt: skip
@click.pass_context
def lessons(ctx: click.Context, /, **_: Any) -> int:
    """Make a course, or resume one: seed, sow, lessons, publish.

    The same command again resumes an unfinished run of the same course, and does nothing
    where the course is complete. A run can be stopped at any moment; what was paid for is kept.
    """
    asked, execution, how = options_of(ctx)
    if not execution.resume and not (asked.subject and asked.level):
        missing = " and ".join(option_name(name) for name in ("subject", "level") if not getattr(asked, name))
        raise click.UsageError(f"Missing {missing} (or --resume RUN). `./pipeline.sh subjects` lists them.")
    if execution.dry_run and execution.resume:
        raise click.UsageError("--dry-run shows the plan of a new course: give --subject and --level, not --resume.")
    if execution.dry_run:
        from pipeline.app.plan import plan

        show_plan(plan(asked, execution), as_json=how.json, prompts=how.prompts)
        return 0
    if ctx.get_parameter_source("prompts") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--prompts only applies together with --dry-run.")
    from pipeline.app import course
    from pipeline.app.start import Start

    def start(shown: Listener, ask: Ask | None) -> RunReport:
        made = Start.of(asked, execution, shown, ask)
        return course.resume(made, execution.resume) if execution.resume else course.lessons(made)

    return watched(execution, how, start)


@click.command("redo")
@run_argument
@click.argument("item", metavar="STEP/ITEM")
@own_option("redo", "--note", default="", metavar="TEXT", help="What to change; added to the prompt.")
@settings_options("out", "overwrite", *EXECUTION, out="Where courses are published.")
@click.pass_context
def redo(ctx: click.Context, /, run: str, item: str, note: str, **_: Any) -> int:
    """Make one lesson of a course again (lessons/7) and publish again; the others are kept.

    The version it replaces stays in the run's history, and its cost in the account.
    """
    asked, execution, how = options_of(ctx)
    if execution.resume:
        raise click.UsageError("redo takes RUN as its argument; omit --resume.")
    from pipeline.app.course import redo as make_again
    from pipeline.app.start import Start

    return watched(
        execution, how, lambda shown, ask: make_again(Start.of(asked, execution, shown, ask), run, item, note)
    )


def show_plan(plan: CoursePlan, *, as_json: bool, prompts: Path | None = None) -> None:
    """Print a plan.

    Args:
        prompts: Folder to write every prompt to, a file each; "-": they are printed first.
    """
    if as_json:
        say_json({"type": "plan", **plan.to_json()})
        return
    where = _prompts(plan, prompts)
    run = f" It resumes run {plan.run}." if plan.run else ""
    lessons = count(plan.lessons, "lesson")
    at = "" if plan.provider in (ANTHROPIC, OFFLINE) else f" at {plan.provider}"
    say(f"{plan.title}, {lessons}, model {plan.model}{at}. Nothing is generated and no model is called.{run}\n")
    # The offline author reads no prompt and uses no token: what a model would use is none of its plan.
    head = ["Step", "Action", "Why", *(() if plan.model == OFFLINE else ("Calls", "Tokens", "Expected", "At worst"))]
    rows = []
    for item in plan.items:
        paid = item.action == "run" and item.calls
        cost = [f"{item.calls:g}", f"{item.tokens:,}", money(item.expected_usd), money(item.worst_usd)]
        rows.append([item.name, item.action, item.why, *(cost if paid else [""] * 4)][: len(head)])
    say(table(head, rows, right=head[3:]))
    say(f"\n{where}")
    if plan.note:
        say(plan.note)
    if plan.model != OFFLINE:
        _show_calls(plan)
    say(f"Expected cost: {money(plan.expected_usd)}")
    for model, usd in plan.others.items():
        say(f"With --model {model} the expected cost is {money(usd)}.")
    ceiling = "none" if plan.ceiling_usd is None else in_full(plan.ceiling_usd)
    say(f"Ceiling: {ceiling} (--max-cost-usd); a run stops, resumably, before it passes it.")
    say(f"Worst cost: {money(plan.worst_usd)}")
    for each in plan.short:
        say(each.text)


def _show_calls(plan: CoursePlan) -> None:
    """Print the kinds of call that this start makes, and what the whole course costs by way."""
    say(f"The estimate is based on: {plan.source}.")
    for row in plan.made:
        calls = f"{row.calls:6.0f} call{'' if round(row.calls) == 1 else 's'} (at most {row.most_calls})"
        say(f"  {row.label:<8} {calls}, {row.input_tokens:,} tokens in, {row.output_tokens:,} out: "
            f"expected {money(row.expected_usd)}, at worst {money(row.worst_usd)}")  # fmt: skip
    ways = plan.ways
    there = [way for way in _WAYS if ways[way] is not None or takes_batches(plan.provider)]
    say("The whole course: " + "; ".join(f"{_WAYS[way]} {money(ways[way])}" for way in there))


def _prompts(plan: CoursePlan, place: Path | None) -> str:
    """Show the prompts, or write them; return a line on where they can be read."""
    if place is None:
        return "Prompts: --prompts DIR writes each of them to a file, --prompts - prints them."
    kinds: Counter[str] = Counter()
    for name, text in plan.prompts():
        kinds["correction" if name.endswith("correction") else name.partition("-")[0]] += 1
        if str(place) == "-":
            say(text + "\n")
        else:
            place.mkdir(parents=True, exist_ok=True)
            write_over(place / f"{name}.md", (text + "\n").encode("utf-8"))
    where = "above" if str(place) == "-" else f"in {place}"
    return f"Prompts, {where}: " + ", ".join(f"{number} {kind}" for kind, number in kinds.items())
