"""Money, times, tables and what a terminal can show: nothing wider than the screen, no id or sum cut."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import pytest

from pipeline import environment
from pipeline.app import words
from pipeline.cli import text

RUNS = (
    ["Run ID", "Subject", "Level", "Status", "Steps", "Cost", "Started"],
    ["20260109_143022", "mathematics", "national_5", "completed", "4/4", "$1.85", "2026-01-09 14:30:22"],
    ["007", "application_of_mathematics", "national_4", "paused budget", "2/4", "$0.61", "-"],
)
COSTS = (
    ["Step", "Calls", "Input", "Output", "Cost", "Wasted", "Possibly more"],
    ["sow", "19", "106,726", "3,921", "$0.09", "", ""],
    ["lessons", "37", "419,455", "137,838", "$1.74", "", "$0.45"],
)


def written(encoding: str, line: str) -> bytes:
    buffer = io.BytesIO()
    out = io.TextIOWrapper(buffer, encoding=encoding)
    text.write(out, line)
    out.flush()
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(0, "$0.00"), ("1.85", "$1.85"), ("0.0042", "$0.0042"), ("1234.5", "$1,234.50"), (None, "unknown")],
)
def test_text_money_keeps_small_amounts_visible(usd: object, shown: str) -> None:
    assert words.money(usd) == shown


def test_text_money_names_both_ends_where_they_differ() -> None:
    assert words.money_between("1.85", Decimal("1.850")) == "$1.85"
    assert words.money_between("1.85", "2") == "$1.85 to at most $2.00"
    assert "no upper bound" in words.money_between("1.85", None)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.25, "0.2 s"), (42.4, "42 s"), (287, "4 min 47 s"), (4341, "1 h 12 min"), (None, "-")]
)
def test_text_durations_are_for_people(seconds: float | None, shown: str) -> None:
    assert words.duration(seconds) == shown


def test_text_is_what_the_stream_can_show_and_no_command_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    assert written("ascii", "═══ ⏳ In progress… naïve") == b"=== ... In progress... na?ve\n"
    assert written("utf-8", "═ ⏳") == "═ ⏳\n".encode()
    for line in ("a\x1b[2Jb\x9b1mc\x07\rd\te", "a\x1b[2Jb1mc\x07\rd\te"):
        assert written("utf-8", line) == b"a[2Jb1mcd\te\n"
    assert written("utf-8", "x\ud800y") == b"x?y\n"
    monkeypatch.setenv("LC_ALL", "C")
    assert written("utf-8", "═") == b"=\n"


def test_text_of_an_installed_copy_names_its_own_command_and_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "is_installed", lambda: True)
    line = written("utf-8", "Set it in .env beside pipeline.sh. [default: files:devops/checkpoints]")
    assert line == b"Set it in .env in this folder. [default: files:course-runs/checkpoints]\n"
    assert written("utf-8", "./pipeline.sh run devops/docs/x.py") == b"course-pipeline run devops/docs/x.py\n"


def test_text_json_lines_begin_with_the_version() -> None:
    line = text.json_line({"usd": Decimal("1.85"), "name": "═"})
    assert (line.startswith('{"v":1,'), line.isascii()) == (True, True)
    assert json.loads(line) == {"v": 1, "usd": 1.85, "name": "═"}


def test_text_values_are_json_unless_they_are_text_and_hashes_are_shown_by_their_beginning() -> None:
    shown = [words.short_hash(value) for value in ("it's", ["it's", True, None], {"a": 1.5}, "ab" * 32)]
    assert shown == ["it's", '["it\'s", true, null]', '{"a": 1.5}', "abababababab…"]


def table(monkeypatch: pytest.MonkeyPatch, width: int, *rows: list[str]) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    return text.table(rows[0], rows[1:], right=["Cost"]).splitlines()


def test_table_aligns_and_rules_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = text.table(["Run", "Cost"], [["007", "$1.00"], ["longer", "$10.00"]], right=["Cost"]).splitlines()
    assert lines == ["Run        Cost", "─" * text.RULE, "007       $1.00", "longer   $10.00"]
    assert table(monkeypatch, 200, *RUNS) == text.table(RUNS[0], RUNS[1:], right=["Cost"]).splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132])
def test_table_is_no_wider_than_the_screen_and_no_word_is_cut(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    for rows in (RUNS, COSTS):
        lines = table(monkeypatch, width, *rows)
        assert max(map(len, lines)) <= width
        assert {word for row in rows[1:] for cell in row for word in cell.split() if word != "-"} <= {
            *" ".join(lines).split()
        }


def test_table_columns_move_together_then_words_break_off_then_each_row_is_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = (["Run", "Question"], ["r1", "Is it good enough?"])
    assert table(monkeypatch, 23, *rows)[2] == "r1   Is it good enough?"
    assert table(monkeypatch, 18, *rows) == ["Run  Question", "─" * 18, "r1   Is it good", "     enough?"]
    assert table(monkeypatch, 58, *COSTS)[:3] == [
        "Step     Calls  Input    Output    Cost  Wasted  Possibly",
        "                                                 more",
        "─" * 58,
    ]
    assert table(monkeypatch, 40, *RUNS)[:4] == [
        "Run ID: 20260109_143022",
        "  Subject: mathematics",
        "  Level: national_5 · Status: completed",
        "  Steps: 4/4 · Cost: $1.85",
    ]
    assert "Started" not in " ".join(table(monkeypatch, 40, RUNS[0], RUNS[2]))


def test_rules_are_no_wider_than_the_screen_whose_width_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = text.heading("PIPELINE RUNS", "a ═ b") + "\n" + "─" * 90
    assert text.ruled(shown, 40) == f"{'═' * 40}\nPIPELINE RUNS\na ═ b\n{'═' * 40}\n{'─' * 40}"
    for told, width in (("sixty", None), ("60", 60)):
        monkeypatch.setenv("COLUMNS", told)
        assert text.columns() == width
