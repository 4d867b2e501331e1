"""Money, times, tables and what a terminal can show."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import pytest

from pipeline.cli import text


def stream(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


def written(encoding: str, line: str) -> bytes:
    out = stream(encoding)
    text.write(out, line)
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (0, "$0.00"),
        ("1.85", "$1.85"),
        ("0.0042", "$0.0042"),
        ("32.4", "$32.40"),
        ("1234.5", "$1,234.50"),
        (None, "unknown"),
    ],
)
def test_text_money_keeps_small_amounts_visible(usd: object, shown: str) -> None:
    assert text.money(usd) == shown


def test_text_money_names_both_ends_where_they_differ() -> None:
    assert text.money_between("1.85", Decimal("1.850")) == "$1.85"
    assert text.money_between("1.85", "2") == "$1.85 to at most $2.00"
    assert "no upper bound" in text.money_between("1.85", None)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(3, "3 s"), (0.25, "0.2 s"), (42.4, "42 s"), (287, "4 min 47 s"), (4341, "1 h 12 min"), (None, "-")],
)
def test_text_durations_are_for_people(seconds: float | None, shown: str) -> None:
    assert text.duration(seconds) == shown


def test_text_becomes_ascii_where_the_stream_knows_no_more() -> None:
    assert written("ascii", "═══ ⏳ In progress… naïve") == b"=== ... In progress... na?ve\n"
    assert written("utf-8", "═ ⏳") == "═ ⏳\n".encode()


def test_text_becomes_ascii_in_the_c_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    assert written("utf-8", "═") == b"=\n"


def test_text_from_a_model_cannot_command_the_terminal() -> None:
    assert written("utf-8", "a\x1b[2Jb\x9b1mc\x07\rd\te") == b"a[2Jb1mcd\te\n"


def test_text_lone_surrogates_do_not_stop_a_line() -> None:
    assert written("utf-8", "x\ud800y") == b"x?y\n"


def test_text_json_lines_begin_with_the_version() -> None:
    line = text.json_line({"usd": Decimal("1.85"), "name": "═"})
    assert line.startswith('{"v":1,')
    assert json.loads(line) == {"v": 1, "usd": 1.85, "name": "═"}
    assert line.isascii()


def test_text_table_aligns_and_rules_its_head() -> None:
    lines = text.table(["Run", "Cost"], [["a", "$1.00"], ["longer", "$10.00"]], right=["Cost"]).splitlines()
    assert lines[0] == "Run        Cost"
    assert set(lines[1]) == {"─"}
    assert len(lines[1]) == text.RULE
    assert lines[2:] == ["a         $1.00", "longer   $10.00"]


def test_text_rules_are_no_wider_than_the_terminal() -> None:
    shown = text.heading("PIPELINE RUNS", "a ═ b") + "\n" + "─" * 90
    assert text.ruled(shown, 40) == f"{'═' * 40}\nPIPELINE RUNS\na ═ b\n{'═' * 40}\n{'─' * 40}"
    assert text.ruled(shown, 200) == shown


def test_text_table_leaves_ids_and_fractions_as_they_are() -> None:
    assert "007   2/4" in text.table(["Id", "Steps"], [["007", "2/4"]])


def test_text_long_hashes_are_shown_by_their_beginning() -> None:
    assert text.short_hash("ab" * 32) == "abababababab…"
    assert text.short_hash("course_c84775") == "course_c84775"


def test_text_values_are_json_unless_they_are_text() -> None:
    shown = [text.short_hash(value) for value in ("it's", ["it's", True, None], {"a": 1.5}, False)]
    assert shown == ["it's", '["it\'s", true, null]', '{"a": 1.5}', "false"]
