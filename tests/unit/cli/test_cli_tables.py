"""Tables on narrow screens: nothing is wider than the screen, and no id or sum is cut."""

from __future__ import annotations

import pytest

from pipeline.cli import text

HEAD = ["Run ID", "Subject", "Level", "Status", "Steps", "Cost", "Started"]
ROWS = [
    ["20260109_143022", "mathematics", "national_5", "completed", "4/4", "$1.85", "2026-01-09 14:30:22"],
    ["20260109_144108", "application_of_mathematics", "national_4", "paused budget", "2/4", "$0.61", "-"],
]
COSTS = ["Step", "Calls", "Input", "Output", "Cost", "Wasted", "Possibly more"]
SUMS = [
    ["sow", "19", "106,726", "3,921", "$0.09", "", ""],
    ["lessons", "37", "419,455", "137,838", "$1.74", "", "$0.45"],
]


def shown(monkeypatch: pytest.MonkeyPatch, width: int, head: list[str], rows: list[list[str]]) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    return text.table(head, rows, right=["Cost"]).splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132])
def test_tables_no_line_is_wider_than_the_screen_and_no_word_is_cut(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    for head, rows in ((HEAD, ROWS), (COSTS, SUMS)):
        lines = shown(monkeypatch, width, head, rows)
        assert max(map(len, lines)) <= width
        words = set(" ".join(lines).split())
        assert {word for row in rows for cell in row for word in cell.split() if word != "-"} <= words


def test_tables_a_table_that_fits_is_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = shown(monkeypatch, 200, HEAD, ROWS)
    monkeypatch.delenv("COLUMNS")
    assert wide == text.table(HEAD, ROWS, right=["Cost"]).splitlines()


def test_tables_columns_move_together_before_words_are_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    head, rows = ["Run", "Question"], [["r1", "Is it good enough?"]]
    assert shown(monkeypatch, 23, head, rows)[2] == "r1   Is it good enough?"
    assert shown(monkeypatch, 18, head, rows) == [
        "Run  Question", "─" * 18, "r1   Is it good", "     enough?",
    ]  # fmt: skip


def test_tables_a_head_of_two_lines_has_its_rule_below(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, 58, COSTS, SUMS)[:3] == [
        "Step     Calls  Input    Output    Cost  Wasted  Possibly",
        "                                                 more",
        "─" * 58,
    ]


def test_tables_too_narrow_for_columns_gives_a_block_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, 40, HEAD, ROWS)[:4] == [
        "Run ID: 20260109_143022",
        "  Subject: mathematics",
        "  Level: national_5 · Status: completed",
        "  Steps: 4/4 · Cost: $1.85",
    ]
    assert "Started" not in " ".join(shown(monkeypatch, 40, HEAD, ROWS[1:]))


def test_tables_nobody_who_set_no_width_is_given_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert text.columns() is None
    monkeypatch.setenv("COLUMNS", "sixty")
    assert text.columns() is None
    monkeypatch.setenv("COLUMNS", "60")
    assert text.columns() == 60
