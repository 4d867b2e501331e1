"""The table of progress of `courses`: a row per course; drawn live on a terminal, printed as lines elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.cli.displays import Quiet, display, on_screen
from pipeline.cli.progress import Tally
from pipeline.cli.text import for_stream, plain_ascii, say, say_json, spent_text, table
from pipeline.engine.events import Event

if TYPE_CHECKING:
    from rich.text import Text

    from pipeline.app.courses import CourseEnd, CourseLine
    from pipeline.engine.events import Listener

_HEAD = ["Line", "Course", "Status", "Lessons", "Cost", "Run"]
_NOT_STARTED = "not started"
#: Lines of the screen that are not rows of the table.
_BESIDE = 4
#: Lines of the table's head among them.
_HEAD_LINES = 2
#: Printed above the table, which is drawn again below.
_ABOVE = frozenset({"note", "stopping", "leaving"})


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
