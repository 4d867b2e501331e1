"""`cost`, `cleanup` and `delete`: what was spent on what, of one run and of many, and what stays known when runs go."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock, parse_iso
from pipeline.cost.prices import PriceBook
from pipeline.records.charge import BATCH, Charge
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled, Invalidated, TaskFailed
from pipeline.records.values import encode_value
from pipeline.store import head_rebuild
from pipeline.store.files import FileStore
from pipeline.store.head import head_bytes
from tests.runs import BEGIN, Script
from tests.said import Cli
from tests.sample_runs import LESSON, completed_run, corrupt_run, dead_run, failed_run, original_run
from tests.unit.cost.logs import batched, cached, exact


def test_cost_tells_wasted_and_open_spend_apart(root: Path, cli: Cli) -> None:
    text = cli("cost", failed_run(root)).out
    assert "Spent:  $0.15 to at most $0.25, including failed or wasted $0.05" in text
    assert "lessons/2" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["lessons", "3", "2,000", "1,000", "$0.10", "$0.05", "$0.10"] in rows


def test_cost_sums_by_what_is_asked_and_by_call_is_the_ledger(root: Path, cli: Cli) -> None:
    run = failed_run(root)
    for by, keys in (
        ("step", ["sow", "lessons"]), ("item", ["sow", "lessons/1", "lessons/2"]), ("model", ["claude-sonnet-5-5"]),
        ("token_kind", ["input", "output", "unsplit"]),
    ):  # fmt: skip
        lines = cli("cost", run, "--by", by, "--json").json()
        assert [line["key"] for line in lines if line["type"] == "line"] == keys
        total = next(line for line in lines if line["type"] == "total")
        assert (total["cost_usd"], total["wasted_usd"], total["at_most_usd"]) == (0.15, 0.05, 0.25)
        assert [line["seq"] for line in lines if line["type"] == "open"] == [14]
    rows = list(csv.DictReader(io.StringIO(cli("cost", run, "--by", "call", "--csv").out)))
    assert [row["run_id"] for row in rows] == [run] * 4
    assert [row["usd_low"] for row in rows] == ["0.05", "0.05", "0.05", "0"]
    assert [line["seq"] for line in cli("cost", run, "--by", "call", "--json").json() if line["type"] == "call"]


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


def test_cleanup_reaches_failed_and_stopped_runs_where_that_is_asked(root: Path, cli: Cli) -> None:
    failed, dead, corrupt = failed_run(root), dead_run(root), corrupt_run(root)
    said = cli("cleanup", "--max-age-days", "0", "--max-runs", "0", "--yes")
    assert (said.out.splitlines()[0], "--unfinished" in said.out) == ("Nothing to remove.", True)
    assert len(cli("list", "--json").json()) == 3
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


HEADS_TELL = ("step", "call_kind", "model", "token_kind", "day", "subject", "level", "run", "status")


def course(root: Path, day: int, *charges: Charge, **params: str) -> str:
    """A completed course that began so many days after the others, with a call for each charge."""
    params = params or {"subject": "physics", "level": "higher"}
    script = Script(root, at=BEGIN + timedelta(days=day), pins=None, execution=None, **params)
    script.begin("seed").complete("seed", {}).begin("sow").complete("sow", {}).begin("lessons")
    for number, charge in enumerate(charges, 1):
        script.call("lessons", f"lessons/{number}", charge).task("lessons", f"lessons/{number}", {})
    script.complete("lessons", {}).begin("publish").complete("publish", {})
    return script.end("completed")


@pytest.fixture
def store(root: Path) -> Path:
    """Runs of two subjects on three days: completed, failed, killed, imported, corrupt."""
    course(root, 1, exact("0.10"), exact("0.021"))
    course(root, 2, batched(), cached())
    failed_run(root), dead_run(root, 3), original_run(root), corrupt_run(root)
    return root


def objects(cli: Cli, kind: str, *arguments: str) -> list[dict[str, Any]]:
    return [line for line in cli("cost", *arguments, "--json").json() if line["type"] == kind]


def keys(cli: Cli, by: str, *arguments: str) -> dict[str, float]:
    return {line["key"]: line["cost_usd"] for line in objects(cli, "line", "--by", by, *arguments)}


def test_cost_of_many_runs_reads_heads_only(store: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Iterator[bytes]:
        raise AssertionError("a journal was read")

    monkeypatch.setattr(FileStore, "read", refuse)
    monkeypatch.setattr(head_rebuild, "fresh_document", refuse)
    # These two have no journal, so what they cost is read from elsewhere.
    for run in ("20260108_161230", "20260107_161230"):
        (store / run / "checkpoint.json").unlink()
        (store / run).rmdir()
    for by in HEADS_TELL:
        assert objects(cli, "total", "--by", by)[0]["at_least_usd"] == pytest.approx(0.2794, abs=1e-9)


def test_cost_from_heads_equals_cost_from_the_ledgers(store: Path, cli: Cli) -> None:
    (from_ledgers,) = objects(cli, "total", "--by", "call")
    for by in HEADS_TELL:
        (from_heads,) = objects(cli, "total", "--by", by)
        assert from_heads == from_ledgers, by
    of_each = [objects(cli, "total", run)[0] for run in keys(cli, "run")]
    assert sum(total["at_least_usd"] for total in of_each) == pytest.approx(from_heads["at_least_usd"], abs=1e-12)


def test_cost_of_a_run_whose_head_is_behind_is_read_from_its_journal(store: Path, cli: Cli, root: Path) -> None:
    before = objects(cli, "total")[0]["cost_usd"]
    script = Script(root, at=BEGIN + timedelta(days=5))
    script.begin("seed").head()
    script.call("seed", None, exact("0.50"))
    assert objects(cli, "total")[0]["cost_usd"] == pytest.approx(before + 0.5, abs=1e-9)


def test_cost_of_a_run_whose_first_record_is_damaged_still_counts(store: Path, cli: Cli) -> None:
    before = objects(cli, "total")[0]
    path = store / "20260109_143022" / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b"run_started", b"run_startes", 1))
    after = objects(cli, "total")[0]
    assert (after["cost_usd"], after["at_most_usd"]) == (before["cost_usd"], before["at_most_usd"])
    assert "corrupt" in keys(cli, "status")


def test_cost_of_a_head_of_an_older_version_is_read_from_its_journal(root: Path, cli: Cli) -> None:
    run = course(root, 1, cached())
    path = root / run / "checkpoint.json"
    document = json.loads(path.read_bytes())
    for row in document["spend"]:
        row.pop("saved_cache")
    path.write_bytes(head_bytes({**document, "schema_version": "1.0"}))
    assert objects(cli, "total")[0]["saved_cache_usd"] == 0.0185


def test_cost_by_subject_level_status_kind_and_day(store: Path, cli: Cli) -> None:
    assert keys(cli, "subject") == pytest.approx({"physics": 0.1294, "mathematics": 0.15}, abs=1e-4)
    assert keys(cli, "level") == pytest.approx({"higher": 0.1294, "national_5": 0.15}, abs=1e-4)
    assert keys(cli, "status") == pytest.approx({"completed": 0.1294, "failed": 0.15}, abs=1e-4)
    assert keys(cli, "call_kind") == pytest.approx({"lesson": 0.2794}, abs=1e-4)
    assert list(keys(cli, "day")) == ["2026-01-09", "2026-01-10", "2026-01-11"]


def test_cost_of_days_takes_both_ends_in(store: Path, cli: Cli) -> None:
    assert list(keys(cli, "day", "--since", "2026-01-10")) == ["2026-01-10", "2026-01-11"]
    assert list(keys(cli, "day", "--until", "2026-01-10")) == ["2026-01-09", "2026-01-10"]
    assert keys(cli, "day", "--since", "2026-01-10", "--until", "2026-01-10") == {"2026-01-10": 0.121}
    assert cli("cost", "--since", "2027-01-01").out.startswith("No paid calls are recorded in files:")


def test_cost_says_what_is_wrong_with_a_day(root: Path, cli: Cli) -> None:
    for arguments in ("--since yesterday", "--until 2026-13-01", "--since 2026-01-02 --until 2026-01-01"):
        said = cli("cost", *arguments.split())
        assert (said.code, said.out, arguments.split()[1] in said.err) == (2, "", True)


def test_cost_tells_waste_by_its_causes_and_what_was_saved(root: Path, cli: Cli) -> None:
    script = Script(root).begin("seed").complete("seed", {}).begin("sow").complete("sow", {}).begin("lessons")
    script.call("lessons", "lessons/1", exact("0.05")).call("lessons", "lessons/2", exact("0.04"))
    script.call("lessons", "lessons/3", exact("0.03"), error="overloaded").call("lessons", "lessons/4", batched())
    script.add(TaskFailed("lessons#1", "lessons/1", {"type": "TaskRejected", "message": "no"}))
    script.add(Invalidated("redo", tasks=[["lessons#1", "lessons/2"]]))
    run = script.end("failed")
    for arguments in (["cost", run], ["cost"]):
        text = cli(*arguments).out
        assert "including failed or wasted $0.12" in text
        assert (
            "Wasted: $0.03 failed (1 call), $0.05 rejected by a check (1 call), $0.04 invalidated by a change (1 call)"
            in text
        )
        assert "Saved:  $0.02 by caching, $0.0042 by batches" in text


def test_cost_says_where_caching_cost_more_than_it_saved(root: Path, cli: Cli) -> None:
    charge = Charge.from_json({**cached().to_json(), "tokens": {"input": 1, "cache_write_5m": 100_000, "output": 1}})
    course(root, 1, charge)
    text = cli("cost").out
    assert "Saved:  nothing by caching, which cost $0.05 more" in text
    assert "Cache:" not in text
    tokens = {"input": 1000, "cache_write_5m": 1000, "cache_read": 6000, "output": 5000}
    run = course(root, 2, Charge.from_json({**cached().to_json(), "tokens": tokens}))
    assert "Cache:  75 % of all input was read from it" in cli("cost", run).out


def test_cost_of_many_runs_names_those_that_are_not_exactly_known(store: Path, cli: Cli) -> None:
    said = cli("cost")
    assert "run 20260109_143022: $0.00 to at most $0.10; `cost 20260109_143022` lists the calls" in said.out
    (line,) = objects(cli, "open_run")
    assert (line["run_id"], line["open_high_usd"]) == ("20260109_143022", 0.1)
    assert "#14 lessons/2 lesson" in cli("cost", "--by", "item").out


def test_cost_footnotes_lines_that_do_not_add_up(root: Path, cli: Cli) -> None:
    script = Script(root).begin("seed").call("seed", None, exact("0.014")).complete("seed", {})
    run = script.begin("sow").call("sow", None, exact("0.014")).complete("sow", {}).end("failed")
    note = "Cost: the lines, each rounded, add up to $0.02; the total is rounded once."
    assert note in cli("cost", run).out
    assert note not in cli("cost", run, "--by", "model").out


def test_cost_of_removed_runs_stays_in_every_sum(root: Path, cli: Cli) -> None:
    old = course(root, 1, exact("0.20"), cached())
    course(root, 2, exact("0.05"))
    before = {by: keys(cli, by) for by in ("step", "model", "day", "subject", "level", "call_kind", "token_kind")}
    total = objects(cli, "total")
    assert cli("cleanup", "--max-age-days", "1", "--yes").out.startswith(old)
    assert {by: keys(cli, by) for by in before} == before
    assert objects(cli, "total") == total
    assert keys(cli, "status") == pytest.approx({"completed": 0.05, "removed": 0.2042}, abs=1e-9)
    assert keys(cli, "day", "--until", "2026-01-10") == pytest.approx({"2026-01-10": 0.2042}, abs=1e-9)
    assert "Removed runs: $0.20 in 1 run, included above" in cli("cost").out
    said = cli("cost", "--by", "call", "--csv")
    assert len(said.out.splitlines()) == 2
    assert "Single calls of removed runs are not kept: $0.20 in 1 run is not listed." in said.err


def test_cost_counts_what_a_fork_inherited_once(root: Path, cli: Cli) -> None:
    parent = course(root, 1, exact("0.10"), exact("0.02"))
    alone = objects(cli, "total")[0]
    said = cli("fork", parent, "--at", "lessons")
    assert said.code == 0, said.err
    (child,) = [path.name for path in root.iterdir() if path.is_dir() and path.name != parent]
    assert objects(cli, "total", child)[0]["cost_usd"] == 0
    assert objects(cli, "total") == [alone]
    assert objects(cli, "total", "--by", "call")[0]["calls"] == alone["calls"] == 2
    # What is made void in the child is not paid for there, so it is no waste of the child's either.
    again = cli("fork", parent, "--set", "settings.model=claude-opus-5-5")
    assert again.code == 0, again.err
    assert objects(cli, "total")[0]["cost_usd"] == alone["cost_usd"]
    assert objects(cli, "total")[0]["waste"] == {}


def test_cost_by_call_is_one_row_a_call_with_prices_and_amount(store: Path, cli: Cli) -> None:
    rows = list(csv.DictReader(io.StringIO(cli("cost", "--by", "call", "--csv").out)))
    assert len(rows) == 8
    (batch,) = [row for row in rows if row["tier"] == BATCH]
    assert {name: batch[name] for name in ("usd", "price_input", "price_cache_read", "state", "item")} == {
        "usd": "0.0042", "price_input": "2", "price_cache_read": "0.1", "state": "exact", "item": "1",
    }  # fmt: skip
    (unknown,) = [row for row in rows if row["state"] == "open"]
    assert (unknown["usd"], unknown["usd_low"], unknown["usd_high"]) == ("", "0", "0.10")
    assert {row["cause"] for row in rows} == {"", "failed"}
    # A spreadsheet takes nothing for a formula.
    course(store, 6, LESSON, subject="=1+1", level="-2")
    for by, key in (("subject", "'=1+1"), ("level", "-2")):
        lines = csv.DictReader(io.StringIO(cli("cost", "--by", by, "--csv").out))
        assert key in [line["key"] for line in lines]


def test_cost_of_a_settled_call_is_exact(root: Path, cli: Cli) -> None:
    script = Script(root).begin("seed").call("seed", None, None)
    script.add(ChargeSettled(3, "0.07", "an accountant"))
    run = script.end("failed")
    for arguments in ([run], []):
        (total,) = objects(cli, "total", *arguments)
        assert (total["cost_usd"], total["at_most_usd"], total["waste"]) == (0.07, 0.07, {"lost": 0.07})


def test_cost_is_drawn_into_a_file(store: Path, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "costs.svg"
    said = cli("cost", "--plot", str(file))
    assert said.out.splitlines()[0] == f"Drawn:  {file}"
    assert "Not counted: run 20260107_161230" in said.out
    text = file.read_text()
    assert "2026-01-11" in text
    assert "lessons" in text
    assert cli("cost", "--plot", str(file), "--json").json() == [{"v": 1, "type": "plot", "file": str(file)}]
    said = cli("cost", "--plot", "costs.gif")
    assert (said.code, "neither an .svg nor a .png" in said.err) == (2, True)


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
    assert cli("cost", run, "--reprice", str(mine), "--by", "model", "--csv").out.splitlines() == [
        "key,calls,recorded_usd,repriced_usd,difference_usd",
        f"{SONNET},1,0.0132000,0.0066000,-0.0066000",
        "total,1,0.0132000,0.0066000,-0.0066000",
    ]


def test_cost_repriced_at_the_published_prices_is_what_is_recorded(root: Path, cli: Cli) -> None:
    priced_run(root), priced_run(root, day=1)
    lines = cli("cost", "--reprice", "published", "--by", "day", "--json").json()
    assert [(line["key"], line["difference_usd"]) for line in lines] == [
        ("2026-01-09", 0), ("2026-01-10", 0), ("total", 0),
    ]  # fmt: skip


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


def test_cost_reprice_names_a_price_file_that_cannot_be_read(root: Path, cli: Cli) -> None:
    for prices in ("no-such-file.json", ""):
        said = cli("cost", priced_run(root), "--reprice", prices)
        assert (said.code, said.out, "price file" in said.err) == (2, "", True)
