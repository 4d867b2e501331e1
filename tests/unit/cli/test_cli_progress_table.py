"""The table of `courses`: which rows it shows, what it says of each; the exit code of many courses."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipeline.app.cost_estimate import PlanItem
from pipeline.app.courses import CourseEnd, CourseLine
from pipeline.app.plan import CoursePlan
from pipeline.app.run_report import RunReport
from pipeline.cli.courses import exit_code
from pipeline.cli.progress_table import ProgressTable
from pipeline.engine.events import Event
from pipeline.engine.result import RunResult
from pipeline.errors import (
    BudgetExceeded,
    CredentialMissing,
    ModelRejected,
    PipelineError,
    RunLocked,
    StepFailed,
    StoreError,
)
from pipeline.records.run import Spend
from pipeline.settings import Execution, Identity


def line(number: int, *, made: int = 0) -> CourseLine:
    items = [PlanItem(f"lessons/{at}", "reuse", "", 0, 0, None, None) for at in range(1, made + 1)]
    plan = CoursePlan(f"Course {number}", "offline", "offline", 18, None, (), items=items)
    return CourseLine(number, Identity(), Execution(), plan)


def ended(error: PipelineError | None, detail: str | None = "paused_budget") -> CourseEnd:
    status = "in_progress" if error or detail == "interrupted" else "completed"
    result = RunResult("r", status, detail if status != "completed" else None, error)
    return CourseEnd(line(2), RunReport(result), None)


def test_progress_table_counts_what_a_run_tells(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ProgressTable([line(2, made=7), line(3)], quiet=True, as_json=False)
    listen = shown.begin(line(2))
    assert "running" in shown.table()
    assert "7/18" in shown.table()
    for kind, data in (
        ("run_resumed", {"run": "20260109_143022", "spent_usd": "1.50"}),
        ("step_started", {"path": "lessons#1", "step": "lessons", "index": 3, "total": 4}),
        ("map_started", {"name": "lessons", "total": 18, "restored": 7}),
        ("task_completed", {"name": "lessons"}),
        ("call_ended", {"call": 1, "usd": "0.25"}),
    ):
        listen(Event(kind, "2026-01-09T14:30:22Z", data))
    row = shown.table().splitlines()[2]
    assert [cell.strip() for cell in row.split("   ") if cell.strip()] == [
        "2", "Course 2", "running: lessons", "8/18", "$1.75", "20260109_143022",
    ]  # fmt: skip
    assert capsys.readouterr().out == ""


def test_progress_table_counts_the_lessons_of_a_course_that_another_process_has_completed() -> None:
    shown = ProgressTable([line(2)], quiet=True, as_json=False)
    assert "0/18" in shown.table()
    shown.begin(line(2))(Event("run_already_completed", "2026-01-09T14:30:22Z", {"run": "r", "reason": "x"}))
    shown.end(ended(None, None))
    assert "already completed" in shown.table()
    assert "18/18" in shown.table()


def test_progress_table_that_is_too_long_shows_the_rows_around_the_course_being_made() -> None:
    lines = [line(number) for number in range(2, 102)]
    shown = ProgressTable(lines, quiet=True, as_json=False)
    assert "Course 2 " in shown.table(10)
    shown.begin(lines[60])
    rows = shown.table(10).splitlines()[2:]
    assert len(rows) == 10
    assert any("Course 62 " in row and "running" in row for row in rows)
    shown.begin(lines[-1])
    assert "Course 101" in shown.table(10).splitlines()[-1]
    assert len(shown.table().splitlines()) == 102


@pytest.mark.parametrize(
    ("end", "code", "stops"),
    [
        (ended(None), 0, False),
        (ended(StepFailed("x")), 6, False),
        (ended(BudgetExceeded("x", limit="1")), 5, False),
        (ended(BudgetExceeded("x", daily="1")), 5, True),
        (ended(None, "interrupted"), 130, True),
        (CourseEnd(line(2), None, CredentialMissing("x")), 2, True),
        (CourseEnd(line(2), None, ModelRejected("x")), 4, True),
        (CourseEnd(line(2), None, StepFailed("x")), 6, False),
        (CourseEnd(line(2), None, StoreError("x")), 3, True),
        (CourseEnd(line(2), None, RunLocked("x")), 3, False),
    ],
)
def test_courses_end_says_its_code_and_whether_others_are_begun(end: CourseEnd, code: int, stops: bool) -> None:
    assert (end.exit_code, end.stops_all) == (code, stops)


def test_courses_exit_code_is_the_first_that_is_not_0_unless_they_were_interrupted() -> None:
    assert exit_code([0, 0]) == 0
    assert exit_code([0, 5, 6]) == 5
    assert exit_code([6, 0, 130]) == 130


def test_progress_table_says_what_a_refused_course_and_a_cost_between_bounds_are() -> None:
    shown = ProgressTable([line(2), line(3)], quiet=True, as_json=False)
    shown.end(CourseEnd(line(2), None, StepFailed("x")))
    result = RunResult("r", "completed", spent=Spend(usd=Decimal("1"), high=Decimal("0.5")))
    shown.end(CourseEnd(line(3), RunReport(result), None))
    assert "refused" in shown.table()
    assert "$1.00 to at most $1.50" in shown.table()


def test_progress_table_on_a_narrow_screen_shows_no_more_lines_than_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ProgressTable([line(number) for number in range(2, 102)], quiet=True, as_json=False)
    shown.begin(line(50))
    monkeypatch.setenv("LINES", "24")
    for columns in ("34", "60", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        lines = shown.screenful().splitlines()
        assert len(lines) <= 22
        assert max(map(len, lines)) <= int(columns)
        assert "Course 50" in shown.screenful()


def test_progress_table_says_once_what_holds_for_all_courses(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ProgressTable([line(2), line(3)], quiet=True, as_json=False)
    for number in (2, 3):
        listen = shown.begin(line(number))
        for kind, data in (
            ("note", {"text": "No credential."}),
            ("run_resumed", {"run": f"r{number}", "spent_usd": "0"}),
            ("note", {"text": "The disk is slow."}),
        ):
            listen(Event(kind, "2026-01-09T14:30:22Z", data))
    assert capsys.readouterr().err.splitlines() == ["No credential.", "The disk is slow.", "The disk is slow."]


def test_progress_table_tells_programs_every_note_of_every_course(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ProgressTable([line(2), line(3)], quiet=False, as_json=True)
    for number in (2, 3):
        shown.begin(line(number))(Event("note", "2026-01-09T14:30:22Z", {"text": "No credential."}))
    assert capsys.readouterr().out.count("No credential.") == 2
