"""`courses`: many courses from a CSV file: one table of progress, a run each; the same command again goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline import settings
from pipeline.cli.board import Board
from pipeline.cli.ending import failure_lines, result_code, result_json, spent_text
from pipeline.cli.errors import exit_code_of, hint_line
from pipeline.cli.lessons import AtOnce, Usd, options_of, setting
from pipeline.cli.progress.watch import Quiet, asker
from pipeline.cli.text import count, money, say, say_json, table, warn
from pipeline.cli.where import remember
from pipeline.errors import PipelineError, RunInterrupted
from pipeline.settings import ASK_ABOVE_USD, LessonsOptions

if TYPE_CHECKING:
    from pipeline.app.courses import End, Line

_NOTHING = Decimal(0)


@click.command("courses")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.csv")
@setting("lessons", type=int, metavar="N", help="Lessons in each course, 1 to 120.  [default: 18]")
@setting("model", metavar="ID",
         help="A Claude model, or offline.  [default: claude-sonnet-5-5 with a credential, else offline]")  # fmt: skip
@setting("effort", type=click.Choice(settings.EFFORTS), help="How hard the model thinks.")
@setting("catalogue", type=click.Path(path_type=Path), metavar="DIR", help="Course files of your own.")
@setting("store", metavar="URL", callback=remember, help="Where runs are kept.  [default: files:devops/checkpoints]")
@setting("out", type=click.Path(path_type=Path), metavar="DIR",
         help="Where courses are published.  [default: devops/published]")  # fmt: skip
@setting("max_cost_usd", type=Usd(), metavar="USD|none", help="Ceiling of each run's spend.  [default: 50]")
@setting("daily_budget_usd", type=Usd(), metavar="USD|none",
         help="Limit of a UTC day, over what all runs of the store spend.  [default: none]")  # fmt: skip
@setting("budget", type=click.Choice(settings.BUDGETS),
         help="How a call's worst case is bounded: by its bytes, or by the provider's count and 5 %.")  # fmt: skip
@setting("concurrency", type=AtOnce(), metavar="N|auto",
         help="Maximum paid calls in flight; 1 = sequential, auto = adapt to rate limits.  [default: 4]")  # fmt: skip
@setting("executor", metavar="ADDRESS",
         help="Run map items on dask://HOST:PORT or dask:local.  [default: threads of this process]")  # fmt: skip
@setting("batch", off="--no-batch", is_flag=True, default=False,
         help="Ask through Message Batches: half the price, within a day.")  # fmt: skip
@setting("batch_min", type=int, metavar="N", help="Fewer asks than N go as ordinary calls.  [default: 1]")
@setting("no_wait", is_flag=True, help="Hand each course's batch in and go to the next; the same command fetches them.")
@setting("prices", type=click.Path(path_type=Path), metavar="FILE", help="Unit prices of your own.")
@setting("until", type=click.Choice(settings.UNTIL), help="Stop each after this step; the same command goes on.")
@setting("sample", type=int, metavar="N", help="Make the first N lessons of each, then stop.")
@setting("skip_failed", is_flag=True, help="Publish without lessons that failed.")
@setting("accept_changes", is_flag=True, help="Go on with changed settings; what they touch is made again.")
@setting("overwrite", is_flag=True, help="Publish over files that were edited by hand.")
@setting("dry_run", is_flag=True, help="Show what each line would do and cost; no state, no call.")
@setting("yes", is_flag=True, help="Go on without asking.")
@setting("quiet", is_flag=True, help="The final table only.")
@setting("json", is_flag=True, help="One JSON object a line on stdout.")
@click.pass_context
def courses(ctx: click.Context, /, file: Path, **_: Any) -> int:
    """Make many courses: a line of FILE.csv each, with the columns subject and level.

    Further columns are options of `lessons` (lessons, model, effort, max_cost_usd, …) for that
    course alone. All lines are checked before anything is begun. Each course is a run of its own.
    The same command again goes on with what is unfinished and leaves what is complete as it is.
    """
    from pipeline.app import courses as many

    options = options_of(ctx)
    lines = many.read(file, options)
    if options.dry_run:
        return _show_plan(file, lines, as_json=options.json)
    _ask(lines, options)
    board = Board(lines, quiet=options.quiet, as_json=options.json)
    with closing(board):
        ends = list(_made(many.make(lines, board.begin), board, as_json=options.json))
    return _show_end(lines, ends, board, options)


def _ask(lines: list[Line], options: LessonsOptions) -> None:
    """Ask once for all of them where that is much.

    Raises:
        PipelineError: The person said no.
    """
    expected = sum((line.plan.expected_usd or _NOTHING for line in lines), start=_NOTHING)
    ask = None if options.yes else asker(Quiet(), json=options.json)
    if ask is None or expected <= ASK_ABOVE_USD:
        return
    if not ask(f"{count(len(lines), 'course')} will cost about {money(expected)}. Go on?"):
        raise PipelineError("Not started.", hint="--yes goes on without asking; --dry-run shows the plan.")


def _made(found: Iterator[End], board: Board, *, as_json: bool) -> Iterator[End]:
    for end in found:
        board.end(end)
        if as_json:
            say_json(_end_json(end))
        yield end


def _end_json(end: End) -> dict[str, Any]:
    """The object that closes a course in `--json`."""
    row = {"line": end.line.number, "subject": end.line.options.subject, "level": end.line.options.level}
    if end.result is not None:
        return {**result_json(end.result), **row}
    assert end.error is not None
    error = {"type": type(end.error).__name__, "message": end.error.message, "hint": end.error.hint}
    return {"type": "error", "error": error, "exit_code": end.error.exit_code, **row}


def code_of(end: End) -> int:
    """The exit code that the course would have had alone."""
    return result_code(end.result) if end.result is not None else exit_code_of(end.error)


def _show_end(lines: list[Line], ends: list[End], board: Board, options: LessonsOptions) -> int:
    """The table, the total, and of each course that did not come to its end why."""
    codes = [code_of(end) for end in ends]
    spent = sum((end.result.spent_now_usd or _NOTHING for end in ends if end.result is not None), start=_NOTHING)
    done = sum(end.result is not None and end.result.status == "completed" for end in ends)
    if options.json:
        say_json({"type": "courses", "courses": len(lines), "completed": done, "begun": len(ends),
                  "spent_now_usd": spent, "exit_code": exit_code(codes)})  # fmt: skip
        return exit_code(codes)
    say()
    say(board.table())
    say()
    left = len(lines) - len(ends)
    stopped = sum(end.result is not None and end.result.detail == "stopped_as_asked" for end in ends)
    more = [f", {number} {word}" for number, word in ((stopped, "stopped as asked"), (left, "not begun")) if number]
    amounts = [end.result.spent_now for end in ends if end.result is not None]
    cost = spent_text(sum(amounts[1:], start=amounts[0])) if amounts else money(0)
    say(f"{done} of {count(len(lines), 'course')} completed{''.join(more)}. This start cost {cost}.")
    for end, code in zip(ends, codes, strict=True):
        if code:
            _warn_of(end)
        elif end.result is not None:
            for note in filter(None, (end.result.left_out, end.result.published_note)):
                say(f"Line {end.line.number}, {end.line.plan.title}: {note}")
    if any(codes) or left or stopped:
        warn("The same command again goes on with what is unfinished.")
    return exit_code(codes)


def _warn_of(end: End) -> None:
    where = f"Line {end.line.number}, {end.line.plan.title}"
    if end.result is not None:
        told = failure_lines(end.result)
    else:
        assert end.error is not None
        told = [f"Error: {end.error.message}", *([hint_line(end.error.hint)] if end.error.hint else [])]
    warn(f"{where}: {told[0]}")
    for text in told[1:]:
        warn(f"  {text}")


def exit_code(codes: list[int]) -> int:
    """130 where it was interrupted, else that of the first course that did not come to its end."""
    stopped = RunInterrupted.exit_code
    return stopped if stopped in codes else next((code for code in codes if code), 0)


def _show_plan(file: Path, lines: list[Line], *, as_json: bool) -> int:
    """What each line would do."""
    if as_json:
        for line in lines:
            say_json({"type": "plan", "line": line.number, **line.plan.to_json()})
        return 0
    rows = [[str(line.number), line.plan.title, line.plan.model, f"{line.lessons_made}/{line.plan.lessons}",
             "nothing to do" if line.complete else f"goes on with {line.plan.run}" if line.plan.run else "new",
             money(line.plan.expected_usd), money(line.plan.worst_usd)] for line in lines]  # fmt: skip
    say(f"{count(len(lines), 'course')} of {file.name}. Nothing is made and nobody is asked.")
    say()
    say(table(["Line", "Course", "Model", "Lessons", "Run", "Expected", "At worst"], rows,
              right=["Line", "Expected", "At worst"]))  # fmt: skip
    say()
    for name, amounts in (("Expected", [line.plan.expected_usd for line in lines]),
                          ("Worst", [line.plan.worst_usd for line in lines])):  # fmt: skip
        known = [amount for amount in amounts if amount is not None]
        say(f"{name} cost: {money(sum(known)) if len(known) == len(amounts) else 'unknown'}")
    return 0
