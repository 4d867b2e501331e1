"""`courses`: many courses from a CSV file: one table of progress, a run each; the same command again resumes."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.displays import Quiet, asker
from pipeline.cli.errors import error_json, error_lines
from pipeline.cli.progress_table import ProgressTable
from pipeline.cli.results import failure_lines, report_json
from pipeline.cli.run_options import options_of, settings_options
from pipeline.cli.text import count, money, say, say_json, spent_text, table, warn
from pipeline.errors import PipelineError, RunInterrupted
from pipeline.records.run import Spend
from pipeline.settings import ASK_ABOVE_USD

if TYPE_CHECKING:
    from pipeline.app.courses import CourseEnd, CourseLine

_NOTHING = Decimal(0)


@click.command("courses")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.csv")
@settings_options(
    "lessons", "model", "effort", "catalogue", "store", "out", "max_cost_usd", "daily_budget_usd", "budget",
    "concurrency", "executor", "batch", "batch_min", "no_wait", "prices", "until", "sample", "skip_failed",
    "accept_changes", "overwrite", "dry_run", "yes", "quiet", "json",
    lessons="Lessons in each course, 1 to 120.  [default: 18]",
    max_cost_usd="Spending ceiling of each run.  [default: 50]",
    no_wait="Submit each course's batch and continue with the next; the same command collects them.",
    until="Stop each after this step; the same command resumes them.",
    sample="Make the first N lessons of each, then stop.",
    dry_run="Show what each line would do and cost; change nothing.",
    quiet="The final table only.",
)  # fmt: skip
@click.pass_context
def courses(ctx: click.Context, /, file: Path, **_: Any) -> int:
    """Make many courses: one per line of FILE.csv, with the columns subject and level.

    Further columns are options of `lessons` (lessons, model, effort, max_cost_usd, …) for that
    course alone. All lines are checked before anything is started. Each course is a run of its own.
    The same command again resumes what is unfinished and leaves what is complete as it is.
    """
    from pipeline.app import courses as many

    asked, execution, how = options_of(ctx)
    lines = many.read(file, asked, execution)
    if execution.dry_run:
        _show_plans(file, lines, as_json=how.json)
        return 0
    expected = sum((line.plan.expected_usd or _NOTHING for line in lines), start=_NOTHING)
    ask = None if execution.yes else asker(Quiet(), json=how.json)
    question = f"{count(len(lines), 'course')} will cost about {money(expected)}. Continue?"
    if ask is not None and expected > ASK_ABOVE_USD and not ask(question):
        raise PipelineError("Not started.", code="not_confirmed",
                            hint="--yes proceeds without asking; --dry-run shows the plan.")  # fmt: skip
    shown = ProgressTable(lines, quiet=how.quiet, as_json=how.json)
    ends = []
    with closing(shown):
        for end in many.make(lines, shown.begin):
            shown.end(end)
            if how.json:
                say_json(_end_json(end))
            ends.append(end)
    return _show_end(lines, ends, shown, as_json=how.json)


def _end_json(end: CourseEnd) -> dict[str, Any]:
    """Return the object that closes a course in `--json`."""
    row = {"line": end.line.number, "subject": end.line.asked.subject, "level": end.line.asked.level}
    if end.report is not None:
        return {**report_json(end.report), **row}
    return {"type": "error", "error": error_json(end.error), "exit_code": end.exit_code, **row}


def _show_end(lines: list[CourseLine], ends: list[CourseEnd], shown: ProgressTable, *, as_json: bool) -> int:
    """Show the table, the total, and of each course that did not finish why."""
    code = exit_code([end.exit_code for end in ends])
    reports = [end.report for end in ends if end.report is not None]
    spent = Spend()
    for report in reports:
        spent.add(report.spent_now)
    done = sum(report.result.status == "completed" for report in reports)
    if as_json:
        say_json({"type": "courses", "courses": len(lines), "completed": done, "begun": len(ends),
                  "spent_now_usd": spent.usd, "exit_code": code})  # fmt: skip
        return code
    say(f"\n{shown.table()}\n")
    left = len(lines) - len(ends)
    stopped = sum(report.result.detail == "stopped_as_asked" for report in reports)
    numbers = ((stopped, "stopped as requested"), (left, "not started"))
    more = "".join(f", {number} {word}" for number, word in numbers if number)
    say(f"{done} of {count(len(lines), 'course')} completed{more}. Spent by this command: {spent_text(spent)}.")
    for end in ends:
        where, its = f"Line {end.line.number}, {end.line.plan.title}", end.report
        if end.exit_code:
            lines_of = failure_lines(its) if its is not None else error_lines(end.error or PipelineError())
            first, *others = lines_of
            warn("\n".join([f"{where}: {first}", *(f"  {line}" for line in others)]))
        elif its is not None:
            for note in filter(None, (its.left_out, its.published_note)):
                say(f"{where}: {note}")
    if code or left or stopped:
        warn("The same command again resumes what is unfinished.")
    return code


def exit_code(codes: list[int]) -> int:
    """Return 130 where it was interrupted, else the code of the first course that did not finish."""
    stopped = RunInterrupted.exit_code
    return stopped if stopped in codes else next((code for code in codes if code), 0)


def _show_plans(file: Path, lines: list[CourseLine], *, as_json: bool) -> None:
    """Show what each line would do."""
    if as_json:
        for line in lines:
            say_json({"type": "plan", "line": line.number, **line.plan.to_json()})
        return
    rows = []
    for line in lines:
        run = "nothing to do" if line.complete else f"resumes {line.plan.run}" if line.plan.run else "new"
        rows.append([str(line.number), line.plan.title, line.plan.model, f"{line.lessons_made}/{line.plan.lessons}",
                     run, money(line.plan.expected_usd), money(line.plan.worst_usd)])  # fmt: skip
    say(f"{count(len(lines), 'course')} of {file.name}. Nothing is generated and no model is called.\n")
    say(table(["Line", "Course", "Model", "Lessons", "Run", "Expected", "At worst"], rows,
              right=["Line", "Expected", "At worst"]))  # fmt: skip
    say()
    for name, amounts in (("Expected", [line.plan.expected_usd for line in lines]),
                          ("Worst", [line.plan.worst_usd for line in lines])):  # fmt: skip
        known = [amount for amount in amounts if amount is not None]
        say(f"{name} cost: {money(sum(known)) if len(known) == len(amounts) else 'unknown'}")
