"""How a start ends on screen, and which settings it was given."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipeline.app.run_report import RunReport
from pipeline.cli import results
from pipeline.cli.lessons import lessons
from pipeline.cli.run_options import options_of
from pipeline.engine.result import RunResult
from pipeline.errors import BudgetExceeded, PipelineError, StepFailed, WriteFailed
from pipeline.records.run import Spend
from pipeline.settings import Execution, Identity

COMMAND = "./pipeline.sh lessons --resume 20260109_143022"


def result(
    status: str = "completed", detail: str | None = None, error: PipelineError | None = None, published: str = ""
) -> RunReport:
    spent = Spend(usd=Decimal("1.85"), high=Decimal("0.12"), tokens={"input": 23654})
    ended = RunResult("20260109_143022", status, detail, error, spent=spent, seconds=287.0)
    return RunReport(ended, "" if status == "completed" else COMMAND, published)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (result(), 0),
        (result("in_progress", "stopped_as_asked", PipelineError("as asked")), 0),
        (result("failed", None, StepFailed("x")), 6),
        (result("in_progress", "paused_budget", BudgetExceeded()), 5),
        (result("in_progress", "interrupted", PipelineError("Interrupted (INT).")), 130),
        (result("in_progress", "interrupted"), 130),
        (result("failed"), 1),
    ],
)
def test_ending_leaves_the_code_of_what_happened(end: RunReport, code: int) -> None:
    assert end.result.exit_code == code


def test_ending_well_says_where_the_course_is_and_what_it_took() -> None:
    assert results.success_lines(result(published="/site/course_c84775")) == [
        "Published: /site/course_c84775",
        "Time: 4 min 47 s · Tokens: 23,654 · Cost: $1.85 to at most $1.97",
        "Run: 20260109_143022",
    ]


def test_ending_badly_is_three_lines_with_both_ends_of_the_spend() -> None:
    assert results.failure_lines(result("failed", None, StepFailed("lessons: 2 failed"))) == [
        "Error: lessons: 2 failed",
        "Saved: run 20260109_143022; spent $1.85 to at most $1.97",
        f"Resume: {COMMAND}",
    ]


def test_ending_with_the_store_gone_says_what_has_to_come_back_first() -> None:
    first = "Restore the file from a copy"
    gone = WriteFailed("runs.db is gone.", hint="Bring it back.", gone=first, emergency="/kept/file")
    end = result("in_progress", "store", gone)
    assert results.failure_lines(end) == [
        "Error: runs.db is gone.",
        "Spent: $1.85 to at most $1.97 by run 20260109_143022",
        "Kept: records that the store did not accept, in /kept/file; resuming on this machine adds them",
        f"Hint: Restore the file from a copy, then: {COMMAND}",
    ]
    assert results.report_json(end)["resume_command"] is None
    assert results.report_json(result("in_progress", "store", WriteFailed("Full.")))["resume_command"] == COMMAND


def test_ending_badly_gives_advice_that_the_resume_command_lacks() -> None:
    told = result("in_progress", "paused_budget", BudgetExceeded("Too much.", hint="Resume with a higher limit."))
    assert results.failure_lines(told)[0] == "Error: Too much. Resume with a higher limit."
    command = result("failed", None, StepFailed("No.", command=COMMAND))
    assert results.failure_lines(command)[0] == "Error: No."


def test_ending_in_json_has_the_same_facts() -> None:
    data = results.report_json(result("failed", None, StepFailed("no", hint="try")))
    assert data["error"] == {"type": "StepFailed", "code": "step_failed", "message": "no", "hint": "try"}
    assert (data["cost_usd"], data["cost_usd_at_most"], data["exit_code"]) == (Decimal("1.85"), Decimal("1.97"), 6)


def given(*arguments: str) -> tuple[Identity, Execution]:
    with lessons.make_context("lessons", list(arguments)) as context:
        return options_of(context)[:2]


def test_options_remember_what_the_user_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_CONCURRENCY", "2")
    monkeypatch.setenv("PIPELINE_LESSONS", "")
    asked, execution = given("--model", "offline", "--max-cost-usd", "none")
    assert asked.given | execution.given == {"model", "max_cost_usd", "concurrency"}
    assert (asked.model, execution.max_cost_usd, execution.concurrency, asked.lessons) == ("offline", None, 2, 18)


def test_options_given_at_their_default_count_as_given() -> None:
    assert given("--lessons", "18")[0].given == {"lessons"}


def test_options_on_the_line_win_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_MAX_COST_USD", "7")
    assert given()[1].max_cost_usd == Decimal(7)
    assert given("--max-cost-usd", "$2.50")[1].max_cost_usd == Decimal("2.50")


@pytest.mark.parametrize("name", ["FORCE", "YES", "RESUME", "ACCEPT_CHANGES", "SKIP_FAILED", "OVERWRITE"])
def test_options_that_permit_one_act_have_no_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PIPELINE_{name}", "1")
    assert [each.given for each in given()] == [frozenset(), frozenset()]
