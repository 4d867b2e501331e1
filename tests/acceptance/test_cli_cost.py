"""`cost` and `cleanup`: what was spent on what, and what stays known when runs go."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.store.files import FileStore
from tests.runs import Script
from tests.said import Cli
from tests.sample_runs import LESSON, completed_run, corrupt_run, dead_run, failed_run, original_run


def test_cost_tells_wasted_and_open_spend_apart(root: Path, cli: Cli) -> None:
    text = cli("cost", failed_run(root)).out
    assert "Spent:  $0.15 to at most $0.25, including failed or wasted $0.05" in text
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
    assert "Spent:  at least $0.15" in text, "what is not counted has no bound"
    assert "Imported: $1.85 as reported by run 20260108_161230" in text
    assert "Not counted: run 20260107_161230" in text


def test_cost_keeps_what_removed_runs_had_cost(root: Path, cli: Cli) -> None:
    script = Script(root, subject="physics", level="higher")
    for step in ("seed", "sow", "lessons", "publish"):
        script.begin(step).call(step, None, LESSON).complete(step, {})
    old = script.end("completed")
    completed_run(root)
    said = cli("cleanup", "--max-age-days", "1", "--yes")
    first, told, last = said.out.splitlines()
    assert first == f"{old}  physics higher, completed"
    assert "stays on the account: $0.20" in told
    assert last == "1 run removed."
    assert not (root / old).exists()
    assert "Removed runs: $0.20 in 1 run" in cli("cost").out
    account, copy = root / "account.jsonl", root / ".account.jsonl"
    for lose in (lambda: account.write_bytes(b""), account.unlink, lambda: account.write_bytes(b"\0" * 99)):
        lose()
        assert "Removed runs: $0.20 in 1 run" in cli("cost").out
        assert "so nothing is lost" in cli("store", "check").out
    for file in (account, copy):
        file.write_bytes(copy.read_bytes().replace(b'"calls"', b'"Calls"'))
    said = cli("cost")
    assert "Spent:  at least" in said.out
    assert "has lost" in said.out
    assert cli("cost", "--json").json()[-1]["at_most_usd"] is None


def test_cleanup_asks_and_without_anybody_removes_nothing(root: Path, cli: Cli) -> None:
    old = completed_run(root, 1)
    completed_run(root, 2)
    said = cli("cleanup", "--max-age-days", "0")
    assert said.code == 6
    assert "--yes" in said.err
    shown = cli("cleanup", "--max-age-days", "0", "--dry-run").out.splitlines()
    assert (shown[0].partition(" ")[0], shown[-1]) == (old, "1 run would be removed.")
    assert (root / old).exists()


def test_cleanup_leaves_unfinished_runs(root: Path, cli: Cli) -> None:
    runs = [failed_run(root), dead_run(root), original_run(root), corrupt_run(root)]
    said = cli("cleanup", "--max-age-days", "0", "--max-runs", "0", "--yes")
    assert said.out.splitlines()[0] == "Nothing to remove."
    assert "--unfinished" in said.out
    assert all((root / run).exists() for run in runs)


def test_cleanup_reaches_failed_and_stopped_runs_where_that_is_asked(root: Path, cli: Cli) -> None:
    failed, dead, corrupt = failed_run(root), dead_run(root), corrupt_run(root)
    before = cli("cost", "--by", "model", "--json").json()[-1]
    gone = cli("cleanup", "--max-age-days", "0", "--unfinished", "--yes", "--json").json()
    assert {row["run"]: row["removed"] for row in gone} == {failed: True, dead: True}
    assert (root / corrupt).exists()
    assert cli("cost", "--by", "model", "--json").json()[-1] == before


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_any_run_that_has_ended_can_be_deleted_and_its_cost_stays(
    kind: str, root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [failed_run(root), dead_run(root), completed_run(root, 3), original_run(root)]
    if kind == "sqlite":
        assert cli("store", "copy", f"files:{root}", f"sqlite:{root}.db").code == 0
        monkeypatch.setenv("PIPELINE_STORE", f"sqlite:{root}.db")
    before = cli("cost", "--json").json()[-1]
    said = cli("delete", *runs)
    assert (said.code, "--yes" in said.err) == (6, True)
    (row, *_) = cli("delete", runs[0], "--dry-run", "--json").json()
    assert (row["run"], row["status"], row["removed"], row["possibly_usd"]) == (runs[0], "failed", False, 0.1)
    assert row["records"] > 5
    assert row["bytes"] > row["records"]
    rows = cli("delete", *runs[:3], "--dry-run", "--json").json()
    assert [row["status_detail"] for row in rows] == [None, "interrupted", None]
    assert len(cli("list", "--json").json()) == 4
    said = cli("delete", runs[0], *runs[:3], "--yes")
    assert (said.code, said.out.splitlines()[-1]) == (0, "3 runs deleted.")
    assert said.out.count("can no longer be resumed") == 2
    assert [row["run_id"] for row in cli("list", "--json").json()] == [runs[3]]
    assert cli("cost", "--json").json()[-1]["at_most_usd"] == before["at_most_usd"]
    assert cli("store", "check").code == 0
    for name in (runs[0], "nothing"):
        assert cli("delete", name, "--yes").code == 3


def test_corrupt_run_can_be_deleted_and_one_that_is_going_cannot(root: Path, cli: Cli) -> None:
    corrupt, failed = corrupt_run(root), failed_run(root)
    journal = FileStore(root, SystemClock()).open(failed)
    said = cli("delete", corrupt, failed, "--yes")
    journal.close()
    assert (said.code, sorted(path.name for path in root.iterdir() if path.is_dir())) == (3, sorted([corrupt, failed]))
    assert cli("delete", corrupt, failed, "--yes").code == 0
    assert not (root / corrupt).exists()
