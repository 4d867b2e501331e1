"""`cost --reprice`: what was recorded against other prices; the run stays as it is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.clock import parse_iso
from pipeline.cost.prices import PriceBook
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.records.values import encode_value
from tests.runs import BEGIN, Script
from tests.said import Cli
from tests.sample_runs import LESSON, completed_run, failed_run

SONNET = "claude-sonnet-5-5"
USAGE = {"input_tokens": 1000, "output_tokens": 1000, "inference_geo": "us"}


def priced_run(root: Path, *, in_blob: bool = False, day: int = 0) -> str:
    """A run with one call in the United States, which only its raw usage tells: $0.0132 at published prices."""
    script = Script(root, at=BEGIN + timedelta(days=day)).begin("seed")
    charge = PriceBook().charge(USAGE, model=SONNET, at=parse_iso("2026-01-09T14:30:22Z"))
    seq = script.add(CallStarted("seed#1", "k", SONNET, script.blob({"n": day}), label="outline", worst="1"))
    reply = {"text": "x", "stop_reason": "end_turn", "usage": USAGE}
    kept = {"$blob": script.blob(reply), "bytes": 9} if in_blob else reply
    script.add(CallEnded(seq, encode_value(kept), charge.to_json(), stop_reason="end_turn"))
    return script.end("failed")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    prices = '{"input": 1, "output": 5, "cache_read": 0.1, "cache_write_5m": 1, "cache_write_1h": 1}'
    path.write_text(f'{{"models": {{"{SONNET}": {prices}}}}}')
    return path


@pytest.mark.parametrize("in_blob", [False, True])
def test_cost_repriced_shows_old_and_new_and_changes_nothing(root: Path, cli: Cli, mine: Path, in_blob: bool) -> None:
    run = priced_run(root, in_blob=in_blob)
    journal = (root / run / "journal.jsonl").read_bytes()
    text = cli("cost", run, "--reprice", str(mine)).out
    assert ["seed", "1", "$0.01", "$0.0066", "-$0.0066"] in [line.split() for line in text.splitlines()]
    assert "Prices: file mine.json sha256:" in text
    assert "Nothing was changed" in text
    assert (root / run / "journal.jsonl").read_bytes() == journal
    (line, total) = cli("cost", run, "--reprice", str(mine), "--json").json()
    assert (line["recorded_usd"], line["repriced_usd"], line["difference_usd"]) == (0.0132, 0.0066, -0.0066)
    assert (total["recorded_usd"], total["type"]) == (0.0132, "total")


def test_cost_repriced_at_the_published_prices_is_what_is_recorded(root: Path, cli: Cli) -> None:
    priced_run(root), priced_run(root, day=1)
    lines = cli("cost", "--reprice", "published", "--by", "day", "--json").json()
    assert [(line["key"], line["difference_usd"]) for line in lines] == [
        ("2026-01-09", 0), ("2026-01-10", 0), ("total", 0),
    ]  # fmt: skip


def test_cost_repriced_says_what_stands_as_recorded(root: Path, cli: Cli, mine: Path) -> None:
    text = cli("cost", failed_run(root), "--reprice", str(mine)).out
    assert "As recorded: 1 call (no end is recorded)" in text


def test_cost_repriced_as_csv_is_exact(root: Path, cli: Cli, mine: Path) -> None:
    run = priced_run(root)
    assert cli("cost", run, "--reprice", str(mine), "--by", "model", "--csv").out.splitlines() == [
        "key,calls,recorded_usd,repriced_usd,difference_usd",
        f"{SONNET},1,0.0132000,0.0066000,-0.0066000",
        "total,1,0.0132000,0.0066000,-0.0066000",
    ]


def test_cost_repriced_counts_removed_runs_as_they_were(root: Path, cli: Cli, mine: Path) -> None:
    script = Script(root, at=BEGIN - timedelta(days=9), subject="physics", level="higher")
    for step in ("seed", "sow", "lessons", "publish"):
        script.begin(step).call(step, None, LESSON).complete(step, {})
    script.end("completed")
    completed_run(root, -8), priced_run(root)
    assert cli("cleanup", "--max-age-days", "1", "--yes").code == 0
    text = cli("cost", "--reprice", str(mine)).out
    assert "As recorded: 4 calls (of removed runs, whose single calls are not kept)" in text
    assert ["total", "5", "$0.21", "$0.21", "-$0.0066"] in [line.split() for line in text.splitlines()]


@pytest.mark.parametrize("prices", ["no-such-file.json", ""])
def test_cost_reprice_names_a_price_file_that_cannot_be_read(root: Path, cli: Cli, prices: str) -> None:
    said = cli("cost", priced_run(root), "--reprice", prices)
    assert (said.code, said.out) == (2, "")
    assert "price file" in said.err
