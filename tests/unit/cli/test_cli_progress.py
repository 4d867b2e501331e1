"""What a person sees while a run goes, from the events alone."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from pipeline.cli import displays
from pipeline.cli.live_display import Live
from pipeline.cli.progress import Tally, banner, lines_of
from pipeline.engine.events import Event

AT = "2026-01-09T14:30:22.000Z"
RESUMED = {
    "run": "20260109_143022", "pipeline": "lessons", "subject": "mathematics", "level": "national_5",
    "last_completed": "sow", "resuming_from": "lessons", "spent_usd": "1.85",
}  # fmt: skip
RUN: Sequence[tuple[str, dict[str, Any]]] = [
    ("run_resumed", RESUMED),
    ("step_started", {"step": "lessons", "index": 3, "total": 4}),
    ("map_started", {"name": "lessons", "total": 18, "restored": 7}),
    ("task_completed", {"name": "lessons", "key": "1", "restored": True}),
    ("call_started", {"call": 9, "label": "lesson"}),
    (
        "call_ended",
        {"call": 9, "label": "lesson", "usd": "0.20", "usd_high": "0.20", "tokens": {"input": 10, "output": 5}},
    ),
    ("task_completed", {"name": "lessons", "key": "8", "restored": False}),
    ("waiting", {"reason": "429", "until": "2026-01-09T14:05:00.000Z"}),
]


def tally(events: Sequence[tuple[str, dict[str, Any]]] = RUN) -> Tally:
    result = Tally()
    for kind, data in events:
        result.apply(kind, data)
    return result


def plain(events: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    state, lines = Tally(), []
    for kind, data in events:
        state.apply(kind, data)
        lines += lines_of(kind, data, state)
    return lines


def test_progress_banner_is_the_one_of_the_checkpoint_document() -> None:
    rule = "═" * 75
    assert banner(RESUMED).splitlines() == [
        rule,
        "RESUMING PIPELINE: lessons",
        "Run ID: 20260109_143022",
        "Subject: mathematics",
        "Level: national_5",
        "Last completed: sow",
        "Resuming from: lessons",
        rule,
    ]


def test_progress_step_is_announced_as_in_the_checkpoint_document() -> None:
    assert plain([("step_started", {"step": "lessons", "index": 3, "total": 4})]) == [
        "Step 3/4: LESSONS",
        "  ⏳ In progress...",
    ]


def test_progress_tally_tells_restored_from_new_and_before_from_since() -> None:
    state = tally()
    assert (state.restored, state.made, state.failed, state.done, state.items) == (7, 1, 0, 8, 18)
    assert (state.before, state.since, state.spent) == (Decimal("1.85"), Decimal("0.20"), Decimal("2.05"))
    assert (state.tokens, state.in_flight) == (15, 0)
    assert state.waiting == "429, until 14:05:00 UTC"


def test_progress_interval_counts_as_possibly_spent() -> None:
    state = tally([("call_ended", {"call": 1, "usd": "0.01", "usd_high": "0.11", "tokens": {}})])
    assert (state.since, state.possibly) == (Decimal("0.01"), Decimal("0.10"))


def test_progress_ends_of_nested_maps_do_not_count_as_items() -> None:
    state = tally([*RUN, ("task_completed", {"name": "inner", "key": "x", "restored": False})])
    assert state.made == 1


def test_progress_lines_name_new_items_only() -> None:
    lines = plain(RUN)
    assert "  lessons: 18 items, 7 already made" in lines
    assert "  lessons/8 · 8 of 18 · $2.05" in lines
    assert "  waiting: 429, until 14:05:00 UTC" in lines
    assert not [line for line in lines if "7 of 18" in line]


def test_progress_lines_name_items_as_show_takes_them() -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        ("step_started", {"step": "sow", "path": "sow#1", "index": 2, "total": 4}),
        ("map_started", {"name": "entry", "path": "sow#1", "total": 3}),
        ("task_completed", {"name": "entry", "path": "sow#1", "key": "2"}),
        ("task_failed", {"name": "entry", "path": "sow#1", "key": "3", "error": {"message": "no"}}),
    ]
    assert plain(asked)[-2:] == ["  sow/entry/2 · 1 of 3 · $0.00", "  ✗ sow/entry/3: no"]


def test_progress_counts_what_failed_before_as_no_work_that_stands() -> None:
    begun = ("map_started", {"name": "lessons", "total": 6, "restored": 3, "failed": 2})
    assert plain([begun]) == ["  lessons: 6 items, 3 already made, 2 already failed"]
    state = tally([begun])
    assert (state.restored, state.failed, state.done) == (3, 2, 5)


def test_progress_tells_until_when_a_batch_is_answered_in_words() -> None:
    state = tally([("batch_waiting", {"batch": "msgbatch_1", "expires_at": "2026-01-10T14:30:22Z", "ended": False})])
    assert state.waiting == "batch msgbatch_1, until 2026-01-10 14:30 UTC at the latest"


def test_progress_plan_names_both_costs_and_the_ceiling() -> None:
    data = {"model": "claude-sonnet-5-5", "expected_usd": "3.10", "worst_usd": "21.4", "ceiling_usd": "50"}
    text = "\n".join(plain([("plan", data)]))
    assert "Model: claude-sonnet-5-5" in text
    assert "Expected cost: $3.10, at worst $21.40" in text
    assert "Ceiling: $50.00" in text
    assert "Ceiling: none" in "\n".join(plain([("plan", {**data, "ceiling_usd": None})]))
    assert "Expected cost: $3.10, at worst $4.00 (the ceiling)" in plain([("plan", {**data, "ceiling_usd": "4"})])


def test_progress_plan_says_that_the_ceiling_will_not_do() -> None:
    data = {"model": "claude-sonnet-5-5", "expected_usd": "3.10", "worst_usd": "21.4", "ceiling_usd": "3"}
    (line,) = [text for text in plain([("plan", data)]) if text.startswith("Expected")]
    assert line.startswith("Expected cost: $3.10, more than $3.00 (the ceiling): the run will probably stop there")


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("run_new", "Starting a new run (no unfinished run of this course)"),
        ("run_continuing", "continuing 7 (no unfinished run of this course)"),
        ("run_already_completed", "already completed 7 (no unfinished run of this course)"),
    ],
)
def test_progress_says_which_run_and_why(kind: str, line: str) -> None:
    assert plain([(kind, {"run": "7", "reason": "no unfinished run of this course"})]) == [line]


def test_progress_failures_are_said_when_they_happen() -> None:
    error = {"type": "TaskRejected", "message": "two\nlines"}
    assert plain([("task_failed", {"path": "lessons#1", "name": "lessons", "key": "3", "error": error})]) == [
        "  ✗ lessons/3: two lines"
    ]
    assert plain([("step_failed", {"step": "lessons", "error": error})]) == ["  ✗ two lines"]


def test_progress_unknown_events_are_silent() -> None:
    assert plain([("something_new", {"x": 1})]) == []


def test_progress_json_writes_money_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"usd": "0.20", "usd_high": None, "worst_usd": "3", "state": "exact", "call": 9}
    displays.display(quiet=False, json=True)(Event("call_ended", AT, data))
    told = json.loads(capsys.readouterr().out)
    assert (told["usd"], told["usd_high"], told["worst_usd"], told["state"]) == (0.2, None, 3.0, "exact")


def test_progress_json_is_one_versioned_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    shown = displays.display(quiet=True, json=True)
    shown(Event("step_started", AT, {"step": "seed"}))
    assert json.loads(capsys.readouterr().out) == {"v": 1, "type": "step_started", "at": AT, "step": "seed"}


def test_progress_quiet_leaves_stdout_empty_but_warns(capsys: pytest.CaptureFixture[str]) -> None:
    shown = displays.display(quiet=True, json=False)
    for kind, data in RUN:
        shown(Event(kind, AT, data))
    shown(Event("note", AT, {"text": "this model is deprecated"}))
    out, err = capsys.readouterr()
    assert (out, err) == ("", "this model is deprecated\n")


def test_progress_is_plain_where_stdout_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    displays.display(quiet=False, json=False)(Event("step_started", AT, {"step": "seed", "index": 1, "total": 4}))
    assert capsys.readouterr().out == "Step 1/4: SEED\n  ⏳ In progress...\n"


def test_progress_nobody_is_asked_where_nobody_sits() -> None:
    assert displays.asker(displays.PlainLines(), json=False) is None


def test_progress_question_takes_only_yes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for answer, expected in (("y\n", True), ("YES\n", True), ("\n", False), ("", False), ("no\n", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert displays.ask_yes_no("Spend $3?") is expected
    assert "Spend $3? [y/N]" in capsys.readouterr().out


def live_screen(*, ascii_only: bool, color: bool = True) -> str:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, width=100, no_color=not color, color_system="standard", markup=False
    )
    shown = Live(ascii_only=ascii_only, console=console)
    for kind, data in RUN:
        shown(Event(kind, AT, data))
    console.print(shown)
    shown(Event("step_completed", AT, {"step": "lessons", "seconds": 3, "usd": "0.2", "outputs": {"completed": 18}}))
    shown.close()
    return out.getvalue()


def test_progress_live_shows_step_bar_money_tokens_and_waiting() -> None:
    screen = live_screen(ascii_only=False)
    assert "8/18 (7 from before)" in screen
    assert "step 3/4 lessons · $2.05 spent, $0.20 since the resume · 15 tokens" in screen
    assert "waiting: 429, until 14:05:00" in screen
    assert "✓ 3 s, $0.20: completed 18" in screen


def test_progress_live_is_ascii_where_the_terminal_is() -> None:
    assert live_screen(ascii_only=True).isascii()


def test_progress_live_without_colour_changes_nothing_else() -> None:
    colours = ("\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[2;36m")
    bare = live_screen(ascii_only=False, color=False)
    assert any(code in live_screen(ascii_only=False) for code in colours)
    assert not any(code in bare for code in colours)
    assert "8/18 (7 from before)" in bare


def test_progress_live_leaves_the_screen_for_a_question() -> None:
    out = io.StringIO()
    shown = Live(ascii_only=False, console=Console(file=out, force_terminal=True, width=80))
    shown(Event("step_started", AT, {"step": "seed", "index": 1, "total": 4}))
    with shown.paused():
        before = out.getvalue()
        shown(Event("note", AT, {"text": "question"}))
        assert out.getvalue()[len(before) :] == "question\n"
    shown.close()


def test_batches_that_go_on_are_told_with_money_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"batch": "msgbatch_1", "requests": 3, "worst_usd": "0.25"}
    data = {"signal": "SIGINT", "calls": 0, "worst_usd": "0", "batches": [row], "out": "It goes on."}
    displays.JsonLines()(Event("stopping", AT, data))
    assert json.loads(capsys.readouterr().out)["batches"] == [{**row, "worst_usd": 0.25}]
    assert lines_of("stopping", data, Tally()) == [
        "Stopping (SIGINT). It goes on. Press Ctrl-C again to quit immediately."
    ]
