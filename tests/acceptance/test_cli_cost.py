"""`cost` and `cleanup`: what was spent on what, and what stays known when runs go."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.runs import Script
from tests.said import Cli
from tests.sample_runs import LESSON, completed_run, corrupt_run, dead_run, failed_run, original_run


def test_cost_tells_wasted_and_open_spend_apart(root: Path, cli: Cli) -> None:
    text = cli("cost", failed_run(root)).out
    assert "Spent:  $0.15 to at most $0.25, of it failed or wasted $0.05" in text
    assert "lessons/2" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["lessons", "3", "2,000", "1,000", "$0.10", "$0.05", "$0.10"] in rows


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("step", ["sow", "lessons"]),
        ("item", ["sow", "lessons/1", "lessons/2"]),
        ("model", ["claude-sonnet-5-5"]),
        ("token_kind", ["input", "output", "unsplit"]),
    ],
)
def test_cost_sums_by_what_is_asked(root: Path, cli: Cli, by: str, keys: list[str]) -> None:
    lines = cli("cost", failed_run(root), "--by", by, "--json").json()
    assert [line["key"] for line in lines if line["type"] == "line"] == keys
    total = next(line for line in lines if line["type"] == "total")
    assert (total["cost_usd"], total["wasted_usd"], total["at_most_usd"]) == (0.15, 0.05, 0.25)
    assert [line["seq"] for line in lines if line["type"] == "open"] == [14]


def test_cost_by_call_is_the_ledger(root: Path, cli: Cli) -> None:
    run = failed_run(root)
    rows = list(csv.DictReader(io.StringIO(cli("cost", run, "--by", "call", "--csv").out)))
    assert [row["run_id"] for row in rows] == [run] * 4
    assert [row["usd_low"] for row in rows] == ["0.05", "0.05", "0.05", "0"]
    assert [line["seq"] for line in cli("cost", run, "--by", "call", "--json").json() if line["type"] == "call"]


def test_cost_csv_has_the_documented_columns(root: Path, cli: Cli) -> None:
    head = cli("cost", failed_run(root), "--csv").out.splitlines()[0]
    assert head == (
        "key,calls,input,cache_write_5m,cache_write_1h,cache_read,output,"
        "cost_usd,wasted_usd,open_low_usd,open_high_usd,unpriced_calls,"
        "wasted_failed_usd,wasted_refused_usd,wasted_truncated_usd,wasted_rejected_usd,wasted_void_usd,wasted_lost_usd,"
        "saved_cache_usd,saved_batch_usd,web_search"
    )


def test_cost_of_all_runs_names_what_it_cannot_count(root: Path, cli: Cli) -> None:
    failed_run(root), original_run(root), corrupt_run(root)
    text = cli("cost").out
    assert "Spent:  $0.15 to at most $0.25" in text
    assert "Imported: $1.85 as reported by run 20260108_161230" in text
    assert "Not counted: run 20260107_161230" in text


def test_cost_keeps_what_removed_runs_had_cost(root: Path, cli: Cli) -> None:
    script = Script(root, subject="physics", level="higher")
    for step in ("seed", "sow", "lessons", "publish"):
        script.begin(step).call(step, None, LESSON).complete(step, {})
    old = script.end("completed")
    completed_run(root)
    said = cli("cleanup", "--max-age-days", "1", "--yes")
    assert said.out.splitlines() == [old, "1 run removed."]
    assert not (root / old).exists()
    assert "Removed runs: $0.20 in 1 run" in cli("cost").out


def test_cleanup_asks_and_without_anybody_removes_nothing(root: Path, cli: Cli) -> None:
    old = completed_run(root, 1)
    completed_run(root, 2)
    said = cli("cleanup", "--max-age-days", "0")
    assert said.code == 6
    assert "--yes" in said.err
    assert cli("cleanup", "--max-age-days", "0", "--dry-run").out.splitlines() == [old, "1 run would be removed."]
    assert (root / old).exists()


def test_cleanup_leaves_unfinished_runs(root: Path, cli: Cli) -> None:
    failed_run(root), dead_run(root), original_run(root), corrupt_run(root)
    assert cli("cleanup", "--max-age-days", "0", "--max-runs", "0", "--yes").out == "Nothing to remove.\n"
