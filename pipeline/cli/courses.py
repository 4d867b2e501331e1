"""`courses`: many courses from a CSV file: one table of progress, a run each; the same command again resumes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.app.words import count, money, spent_text
from pipeline.cli.displays import asker, display, on_screen, traced
from pipeline.cli.errors import error_json, error_lines
from pipeline.cli.options import NamedPath
from pipeline.cli.progress import Quiet, Tally
from pipeline.cli.results import failure_lines, report_json
from pipeline.cli.run_options import options_of, settings_options
from pipeline.cli.text import for_stream, plain_ascii, say, say_json, table, warn
from pipeline.engine.events import Event
from pipeline.errors import PipelineError
from pipeline.records.run import Spend
from pipeline.settings import ASK_ABOVE_USD

if TYPE_CHECKING:
    from rich.text import Text

    from pipeline.app.courses import CourseEnd, CourseLine
    from pipeline.engine.events import Listener

_NOTHING = Decimal(0)
_HEAD = ["Line", "Course", "Status", "Lessons", "Cost", "Run"]
_NOT_STARTED = "not started"
#: Lines of the screen that are not rows of the table, and those of the table's head among them.
_BESIDE, _HEAD_LINES = 4, 2
#: Printed above the table, which is drawn again below.
_ABOVE = frozenset({"note", "stopping", "leaving"})


@click.command("courses")
@click.argument("file", type=NamedPath(), metavar="FILE.csv")
@settings_options(
    "lessons", "model", "effort", "catalogue", "bank", "store", "out", "max_cost_usd", "daily_budget_usd", "labels",
    "budget", "concurrency", "executor", "batch", "batch_min", "no_wait", "prices", "until", "sample", "skip_failed",
    "downloads", "accept_changes", "overwrite", "dry_run", "yes", "quiet", "json", "otel",
    "otel_content",
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
    from pipeline.app.limits import short_limits
    from pipeline.app.start import settings_now

    asked, execution, how = options_of(ctx)
    lines = many.read(file, asked, execution)
    if execution.dry_run:
        _show_plans(file, lines, as_json=how.json)
    expected = sum((line.plan.expected_usd or _NOTHING for line in lines), start=_NOTHING)
    worst = sum((line.plan.worst_usd or _NOTHING for line in lines), start=_NOTHING)
    if not how.json:
        for each in short_limits(execution.store_url, settings_now(execution, {}), expected, worst):
            say(each.text)
    if execution.dry_run:
        return 0
    ask = None if execution.yes else asker(Quiet(), json=how.json)
    question = f"{count(len(lines), 'course')} will cost about {money(expected)}. Continue?"
    if ask is not None and expected > ASK_ABOVE_USD and not ask(question):
        raise PipelineError("Not started.", code="not_confirmed",
                            hint="--yes proceeds without asking; --dry-run shows the plan.")  # fmt: skip
    shown = ProgressTable(lines, quiet=how.quiet, as_json=how.json)
    ends = []
    with closing(shown), traced(execution, how, Quiet()) as sent:
        for end in many.make(lines, lambda line: sent.beside(shown.begin(line))):
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
    from pipeline.app.courses import exit_code

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


def _show_plans(file: Path, lines: list[CourseLine], *, as_json: bool) -> None:
    """Show what each line would do."""
    from pipeline.app.cost_estimate import total_usd

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
    say(f"Expected cost: {money(total_usd(line.plan.expected_usd for line in lines))}")
    say(f"Worst cost: {money(total_usd(line.plan.worst_usd for line in lines))}")


# --- the table of progress: drawn live on a terminal, printed as lines elsewhere --------------------


@dataclass
class _CourseRow:
    """One course."""

    line: CourseLine
    #: Lessons made so far.
    made: int
    status: str = _NOT_STARTED
    cost: str = "-"
    run: str = ""
    #: There was nothing left to do.
    before: bool = False
    tally: Tally = field(default_factory=Tally)

    def apply(self, event: Event) -> None:
        """Count an event of its run."""
        tally = self.tally
        tally.apply(event.type, event.data)
        self.run = str(event.data.get("run") or self.run)
        self.before = self.before or event.type == "run_already_completed"
        if tally.map == "lessons":
            self.made = tally.restored + tally.made
        self.cost = tally.spent_text
        waiting = f"waiting: {tally.waiting}" if tally.waiting else ""
        self.status = waiting or (f"running: {tally.step}" if tally.step else "running")

    def cells(self) -> list[str]:
        """Return its row of the table."""
        plan = self.line.plan
        return [str(self.line.number), plan.title, self.status, f"{self.made}/{plan.lessons}", self.cost,
                self.run or "-"]  # fmt: skip


class ProgressTable:
    """Show how far each course has come."""

    def __init__(self, lines: Sequence[CourseLine], *, quiet: bool, as_json: bool) -> None:
        self._rows = {line.number: _CourseRow(line, line.lessons_made) for line in lines}
        self._quiet, self._json = quiet, as_json
        self._drawn = on_screen() and not quiet and not as_json
        self._ascii = plain_ascii(sys.stdout)
        self._live: Any = None
        #: Notes of courses that had no run yet: of the credential, of the cluster.
        self._said: set[str] = set()

    def begin(self, line: CourseLine) -> Listener:
        """Return the listener of a course that starts."""
        row = self._rows[line.number]
        row.status = "running"
        if self._json:
            say_json({"type": "course", "line": line.number, "subject": line.asked.subject,
                      "level": line.asked.level})  # fmt: skip
        elif not self._quiet and not self._drawn:
            say(f"── {line.plan.title} (line {line.number}) ──")
        shown = Quiet() if self._drawn else display(quiet=self._quiet, json=self._json)

        def listen(event: Event) -> None:
            if event.type in ("note", "looking") and not row.run and self._is_said(str(event.data.get("text", ""))):
                return
            row.apply(event)
            if event.type in _ABOVE:
                self.close()
            shown(event)
            if self._drawn and event.type != "leaving":
                self._draw()

        return listen

    def _is_said(self, note: str) -> bool:
        """Return whether people were told the same of an earlier course, before it had its run; programs hear all."""
        if self._json or note not in self._said:
            self._said.add(note)
            return False
        return True

    def end(self, end: CourseEnd) -> None:
        """Note how a course ended."""
        row, report = self._rows[end.line.number], end.report
        if report is None:
            row.status = "refused"
            return
        result, row.run = report.result, report.result.run_id
        if row.before and not report.left_out:
            # Another process may have completed it since the file was read.
            row.made = end.line.plan.lessons
        row.status = "already completed" if row.before else (result.detail or result.status).replace("_", " ")
        row.cost = spent_text(result.spent)

    def table(self, most: int | None = None) -> str:
        """Return a row per course.

        Args:
            most: At most so many rows, those around the course being made.
        """
        rows = list(self._rows.values())
        if most is not None and len(rows) > most:
            at = max((place for place, row in enumerate(rows) if row.status != _NOT_STARTED), default=0)
            first = min(max(at - most // 2, 0), len(rows) - most)
            rows = rows[first : first + most]
        return table(_HEAD, [row.cells() for row in rows], right=["Line", "Cost"])

    def close(self) -> None:
        """Take the table off the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __rich__(self) -> Text:
        """Return what is on the screen now; drawn four times a second."""
        from rich.text import Text

        return Text(for_stream(self.screenful(), ascii_only=self._ascii), no_wrap=True, overflow="ellipsis")

    def screenful(self) -> str:
        """Return the table with as many rows as fit on the screen; on a narrow one a row may take several lines."""
        room = max(shutil.get_terminal_size().lines - _BESIDE, 1)
        for most in range(room, 1, -1):
            shown = self.table(most)
            if len(shown.splitlines()) <= room + _HEAD_LINES:
                return shown
        return self.table(1)

    def _draw(self) -> None:
        if self._live is not None:
            return
        from pipeline.cli.live_display import console_of_stdout, live_part

        self._live = live_part(self.__rich__, console_of_stdout())
