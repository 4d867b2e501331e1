"""What a person sees while a run goes, or many: from the events alone."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from pipeline.app.cost_estimate import PlanItem
from pipeline.app.courses import CourseEnd, CourseLine, exit_code
from pipeline.app.plan import CoursePlan
from pipeline.app.start import RunReport
from pipeline.cli import displays
from pipeline.cli.courses import ProgressTable
from pipeline.cli.live_display import Live
from pipeline.cli.progress import Tally, banner, lines_of
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

AT = "2026-01-09T14:30:22.000Z"
RESUMED = {
    "run": "20260109_143022", "pipeline": "lessons", "subject": "mathematics", "level": "national_5",
    "last_completed": "sow", "resuming_from": "lessons", "spent_usd": "1.85",
}  # fmt: skip
Events = Sequence[tuple[str, dict[str, Any]]]
RUN: Events = [
    ("run_resumed", RESUMED),
    ("step_started", {"step": "lessons", "index": 3, "total": 4}),
    ("map_started", {"name": "lessons", "total": 18, "restored": 7}),
    ("task_completed", {"name": "lessons", "key": "1", "restored": True}),
    ("call_started", {"call": 9, "label": "lesson"}),
    ("call_ended", {"call": 9, "usd": "0.20", "usd_high": "0.20", "tokens": {"input": 10, "output": 5}}),
    ("task_completed", {"name": "lessons", "key": "8", "restored": False}),
    ("waiting", {"reason": "429", "until": "2026-01-09T14:05:00.000Z"}),
]


def shown(events: Events) -> tuple[Tally, list[str]]:
    tally, lines = Tally(), []
    for kind, data in events:
        tally.apply(kind, data)
        lines += lines_of(kind, data, tally)
    return tally, lines


def test_progress_banner_is_the_one_of_the_checkpoint_document() -> None:
    assert banner(RESUMED).splitlines() == [
        "═" * 75, "RESUMING PIPELINE: lessons", "Run ID: 20260109_143022", "Subject: mathematics", "Level: national_5",
        "Last completed: sow", "Resuming from: lessons", "═" * 75,
    ]  # fmt: skip


def test_progress_tells_restored_from_new_and_before_from_since() -> None:
    tally, lines = shown([*RUN, ("task_completed", {"name": "inner", "key": "x", "restored": False})])
    assert (tally.restored, tally.made, tally.failed, tally.done, tally.items) == (7, 1, 0, 8, 18)
    assert (tally.before, tally.since, tally.spent) == (Decimal("1.85"), Decimal("0.20"), Decimal("2.05"))
    assert (tally.tokens, tally.in_flight) == (15, 0)
    assert lines[2:] == [
        "Step 3/4: LESSONS",
        "  ⏳ In progress...",
        "  lessons: 18 items, 7 already made",
        "  lessons/8 · 8 of 18 · $2.05",
        "  waiting: 429, until 14:05:00 UTC",
    ]
    tally, lines = shown([("map_started", {"name": "lessons", "total": 6, "restored": 3, "failed": 2})])
    assert lines == ["  lessons: 6 items, 3 already made, 2 already failed"]
    assert (tally.restored, tally.failed, tally.done) == (3, 2, 5)


def test_progress_interval_counts_as_possibly_spent() -> None:
    tally, _ = shown([("call_ended", {"call": 1, "usd": "0.01", "usd_high": "0.11", "tokens": {}})])
    assert (tally.since, tally.possibly) == (Decimal("0.01"), Decimal("0.10"))


def test_progress_lines_name_items_as_show_takes_them() -> None:
    asked: Events = [
        ("step_started", {"step": "sow", "path": "sow#1", "index": 2, "total": 4}),
        ("map_started", {"name": "entry", "path": "sow#1", "total": 3}),
        ("task_completed", {"name": "entry", "path": "sow#1", "key": "2"}),
        ("task_failed", {"name": "entry", "path": "sow#1", "key": "3", "error": {"message": "two\nlines"}}),
        ("step_failed", {"step": "sow", "path": "sow#1", "error": {"message": "two\nlines"}}),
        ("something_new", {"x": 1}),
    ]
    assert shown(asked)[1][-3:] == ["  sow/entry/2 · 1 of 3 · $0.00", "  ✗ sow/entry/3: two lines", "  ✗ two lines"]


def test_progress_tells_until_when_a_batch_is_answered_in_words() -> None:
    waiting = ("batch_waiting", {"batch": "msgbatch_1", "expires_at": "2026-01-10T14:30:22Z", "ended": False})
    assert shown([waiting])[0].waiting == "batch msgbatch_1, until 2026-01-10 14:30 UTC at the latest"


@pytest.mark.parametrize(
    ("ceiling", "cost"),
    [
        ("50", "Expected cost: $3.10, at worst $21.40"),
        (None, "Expected cost: $3.10, at worst $21.40"),
        ("4", "Expected cost: $3.10, at worst $4.00 (the ceiling)"),
        ("3", "Expected cost: $3.10, more than $3.00 (the ceiling): the run will probably stop there"),
    ],
)
def test_progress_plan_names_both_costs_and_the_ceiling(ceiling: str | None, cost: str) -> None:
    data = {"model": "claude-sonnet-5-5", "expected_usd": "3.10", "worst_usd": "21.4", "ceiling_usd": ceiling}
    model, told, limit, _ = shown([("plan", data)])[1]
    assert model == "Model: claude-sonnet-5-5"
    assert told.startswith(cost)
    assert limit == (f"Ceiling: ${ceiling}.00 (--max-cost-usd)" if ceiling else "Ceiling: none")


def test_progress_json_is_one_versioned_object_a_line_with_money_as_numbers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"batch": "msgbatch_1", "requests": 3, "worst_usd": "0.25"}
    data = {"usd": "0.20", "usd_high": None, "worst_usd": "3", "state": "exact", "call": 9, "batches": [row]}
    displays.display(quiet=True, json=True)(Event("call_ended", AT, data))
    told = {**data, "usd": 0.2, "worst_usd": 3.0, "batches": [{**row, "worst_usd": 0.25}]}
    assert json.loads(capsys.readouterr().out) == {"v": 1, "type": "call_ended", "at": AT, **told}


def test_progress_is_plain_where_stdout_is_no_terminal_and_quiet_only_warns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for quiet, expected in ((False, "Step 1/4: SEED\n  ⏳ In progress...\nold\n"), (True, "")):
        listen = displays.display(quiet=quiet, json=False)
        listen(Event("step_started", AT, {"step": "seed", "index": 1, "total": 4}))
        listen(Event("note", AT, {"text": "old"}))
        assert capsys.readouterr() == (expected, "old\n" if quiet else "")


def test_progress_question_takes_only_yes_and_nobody_is_asked_where_nobody_sits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert displays.asker(displays.PlainLines(), json=False) is None
    for answer, expected in (("y\n", True), ("YES\n", True), ("\n", False), ("", False), ("no\n", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert displays.ask_yes_no("Spend $3?") is expected
    assert "Spend $3? [y/N]" in capsys.readouterr().out


def live_screen(*, ascii_only: bool, color: bool = True) -> str:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, width=100, no_color=not color, color_system="standard", markup=False
    )
    live = Live(ascii_only=ascii_only, console=console)
    for kind, data in RUN:
        live(Event(kind, AT, data))
    console.print(live)
    with live.paused():
        before = out.getvalue()
        live(Event("note", AT, {"text": "question"}))
        assert out.getvalue()[len(before) :].endswith("question\n")
    live(Event("step_completed", AT, {"step": "lessons", "seconds": 3, "usd": "0.2", "outputs": {"completed": 18}}))
    live.close()
    return out.getvalue()


def test_progress_live_shows_step_bar_money_tokens_and_waiting() -> None:
    screen, bare = live_screen(ascii_only=False), live_screen(ascii_only=False, color=False)
    for text in (
        "8/18 (7 from before)", "step 3/4 lessons · $2.05 spent, $0.20 since the resume · 15 tokens",
        "waiting: 429, until 14:05:00", "✓ 3 s, $0.20: completed 18",
    ):  # fmt: skip
        assert text in screen
    assert "8/18 (7 from before)" in bare
    colours = ("\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[2;36m")
    assert [any(code in text for code in colours) for text in (screen, bare)] == [True, False]
    assert live_screen(ascii_only=True).isascii()


# --- many courses ---------------------------------------------------------------------------------


def line(number: int, *, made: int = 0) -> CourseLine:
    items = [PlanItem(f"lessons/{at}", "reuse", "", 0, 0, None, None) for at in range(1, made + 1)]
    plan = CoursePlan(f"Course {number}", "offline", "offline", 18, None, (), items=items)
    return CourseLine(number, Identity(), Execution(), plan)


def ended(error: PipelineError | None, detail: str | None = "paused_budget") -> CourseEnd:
    status = "in_progress" if error or detail == "interrupted" else "completed"
    result = RunResult("r", status, detail if status != "completed" else None, error)
    return CourseEnd(line(2), RunReport(result), None)


def test_table_of_courses_counts_what_a_run_tells(capsys: pytest.CaptureFixture[str]) -> None:
    table = ProgressTable([line(2, made=7), line(3)], quiet=True, as_json=False)
    listen = table.begin(line(2))
    for kind, data in RUN[:-1]:
        listen(Event(kind, AT, data))
    row = table.table().splitlines()[2]
    assert [cell.strip() for cell in row.split("   ") if cell.strip()] == [
        "2", "Course 2", "running: lessons", "8/18", "$2.05", "20260109_143022",
    ]  # fmt: skip
    assert capsys.readouterr().out == ""


def test_table_of_courses_says_how_each_ended() -> None:
    table = ProgressTable([line(number) for number in (2, 3, 4)], quiet=True, as_json=False)
    # Another process has completed it since the file was read.
    table.begin(line(2))(Event("run_already_completed", AT, {"run": "r", "reason": "x"}))
    table.end(ended(None, None))
    table.end(CourseEnd(line(3), None, StepFailed("x")))
    result = RunResult("r", "completed", spent=Spend(usd=Decimal("1"), high=Decimal("0.5")))
    table.end(CourseEnd(line(4), RunReport(result), None))
    first, second, third = table.table().splitlines()[2:]
    assert ("already completed" in first, "18/18" in first) == (True, True)
    assert "refused" in second
    assert "$1.00 to at most $1.50" in third


def test_table_of_courses_that_is_too_long_shows_the_rows_around_the_course_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [line(number) for number in range(2, 102)]
    table = ProgressTable(lines, quiet=True, as_json=False)
    for begun, course in ((0, "Course 2 "), (60, "Course 62 "), (99, "Course 101 ")):
        table.begin(lines[begun])
        rows = table.table(10).splitlines()[2:]
        assert len(rows) == 10
        assert any(course in row and "running" in row for row in rows)
    monkeypatch.setenv("LINES", "24")
    for columns in ("34", "60", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        screen = table.screenful()
        assert len(screen.splitlines()) <= 22
        assert max(map(len, screen.splitlines())) <= int(columns)
        assert "Course 101" in screen


@pytest.mark.parametrize(
    ("end", "code", "stops"),
    [
        (ended(None), 0, False),
        (ended(StepFailed("x")), 6, False),
        (ended(BudgetExceeded("x", limit="1")), 5, False),
        (ended(BudgetExceeded("x", code="day_limit_reached")), 5, True),
        (ended(None, "interrupted"), 130, True),
        (CourseEnd(line(2), None, CredentialMissing("x")), 2, True),
        (CourseEnd(line(2), None, ModelRejected("x")), 4, True),
        (CourseEnd(line(2), None, StepFailed("x")), 6, False),
        (CourseEnd(line(2), None, StoreError("x")), 3, True),
        (CourseEnd(line(2), None, RunLocked("x")), 3, False),
    ],
)
def test_course_end_says_its_code_and_whether_others_are_begun(end: CourseEnd, code: int, stops: bool) -> None:
    assert (end.exit_code, end.stops_all) == (code, stops)


def test_courses_exit_code_is_the_first_that_is_not_0_unless_they_were_interrupted() -> None:
    assert [exit_code(codes) for codes in ([0, 0], [0, 5, 6], [0, 6, 5], [6, 0, 130])] == [0, 5, 6, 130]


def test_courses_say_once_what_holds_for_all_but_tell_programs_all(capsys: pytest.CaptureFixture[str]) -> None:
    for as_json, shared in ((False, 1), (True, 2)):
        table = ProgressTable([line(2), line(3)], quiet=not as_json, as_json=as_json)
        for number in (2, 3):
            listen = table.begin(line(number))
            listen(Event("note", AT, {"text": "No credential."}))
            listen(Event("run_resumed", AT, {"run": f"r{number}", "spent_usd": "0"}))
            listen(Event("note", AT, {"text": "The disk is slow."}))
        told = "".join(capsys.readouterr())
        assert (told.count("No credential."), told.count("The disk is slow.")) == (shared, 2)
