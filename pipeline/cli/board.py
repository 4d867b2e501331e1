"""The table of progress of `courses`: a row a course; drawn live on a terminal, told in lines elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.cli.ending import spent_text
from pipeline.cli.progress.lines import spent_so_far
from pipeline.cli.progress.tally import Tally
from pipeline.cli.progress.watch import Quiet, display, on_screen
from pipeline.cli.text import for_stream, plain_ascii, say, say_json, table
from pipeline.engine.events import Event

if TYPE_CHECKING:
    from rich.text import Text

    from pipeline.app.courses import End, Line
    from pipeline.engine.events import Listener

_HEAD = ["Line", "Course", "Status", "Lessons", "Cost", "Run"]
_NOT_BEGUN = "not begun"
#: Lines of the screen that are no rows of the table.
_BESIDE = 4
#: Lines of the table's head among them.
_HEAD_LINES = 2
#: What is said above the table; it is drawn again below that.
_SAID = frozenset({"note", "stopping", "leaving"})


@dataclass
class _Row:
    """One course."""

    line: Line
    #: Lessons that are there.
    made: int
    status: str = _NOT_BEGUN
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
        self.cost = spent_so_far(tally)
        waiting = f"waiting: {tally.waiting}" if tally.waiting else ""
        self.status = waiting or (f"running: {tally.step}" if tally.step else "running")

    def cells(self) -> list[str]:
        """As the table shows it."""
        plan = self.line.plan
        return [str(self.line.number), plan.title, self.status, f"{self.made}/{plan.lessons}", self.cost,
                self.run or "-"]  # fmt: skip


class Board:
    """How far each course has come."""

    def __init__(self, lines: Sequence[Line], *, quiet: bool, as_json: bool) -> None:
        self._rows = {line.number: _Row(line, line.lessons_made) for line in lines}
        self._quiet, self._json = quiet, as_json
        self._drawn = on_screen() and not quiet and not as_json
        self._ascii = plain_ascii(sys.stdout)
        self._live: Any = None
        #: What was said before a course had its run: of the credential, of the cluster.
        self._said: set[str] = set()

    def begin(self, line: Line) -> Listener:
        """A course is begun; what listens to it."""
        row = self._rows[line.number]
        row.status = "running"
        if self._json:
            say_json({"type": "course", "line": line.number, "subject": line.options.subject,
                      "level": line.options.level})  # fmt: skip
        elif not self._quiet and not self._drawn:
            say(f"── {line.plan.title} (line {line.number}) ──")
        shown = Quiet() if self._drawn else display(quiet=self._quiet, json=self._json)

        def listen(event: Event) -> None:
            if event.type in ("note", "looking") and not row.run and self._is_said(str(event.data.get("text", ""))):
                return
            row.apply(event)
            if event.type in _SAID:
                self.close()
            shown(event)
            if self._drawn and event.type != "leaving":
                self._draw()

        return listen

    def _is_said(self, note: str) -> bool:
        """Whether an earlier course has told people the same; programs are told everything of each."""
        if self._json or note not in self._said:
            self._said.add(note)
            return False
        return True

    def end(self, end: End) -> None:
        """A course has come to an end."""
        row, result = self._rows[end.line.number], end.result
        if result is None:
            row.status = "refused"
            return
        row.run = result.run_id
        if row.before and not result.left_out:
            # Another process may have completed it since the file was read.
            row.made = end.line.plan.lessons
        row.status = "already completed" if row.before else (result.detail or result.status).replace("_", " ")
        row.cost = spent_text(result.spent)

    def table(self, most: int | None = None) -> str:
        """A row a course.

        Args:
            most: At most so many rows, those around the course that is being made.
        """
        rows = list(self._rows.values())
        if most is not None and len(rows) > most:
            at = max((place for place, row in enumerate(rows) if row.status != _NOT_BEGUN), default=0)
            first = min(max(at - most // 2, 0), len(rows) - most)
            rows = rows[first : first + most]
        return table(_HEAD, [row.cells() for row in rows], right=["Line", "Cost"])

    def close(self) -> None:
        """Take the table off the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __rich__(self) -> Text:
        """What stands on the screen now; drawn four times a second."""
        from rich.text import Text

        return Text(for_stream(self.screenful(), ascii_only=self._ascii), no_wrap=True, overflow="ellipsis")

    def screenful(self) -> str:
        """The table with as many rows as the screen has room for; on a narrow one a row may take several lines."""
        room = max(shutil.get_terminal_size().lines - _BESIDE, 1)
        for most in range(room, 1, -1):
            shown = self.table(most)
            if len(shown.splitlines()) <= room + _HEAD_LINES:
                return shown
        return self.table(1)

    def _draw(self) -> None:
        if self._live is not None:
            return
        from rich.console import Console
        from rich.live import Live

        console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
        self._live = Live(get_renderable=self.__rich__, console=console, transient=True, refresh_per_second=4,
                          redirect_stderr=False, redirect_stdout=False)  # fmt: skip
        self._live.start()
