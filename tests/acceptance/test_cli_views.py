"""The commands that only look: list, status, log, history, cost, show, cleanup; over runs written record by record."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline import settings
from pipeline.cli.main import main
from pipeline.records.charge import Charge
from tests.runs import BEGIN, Script

LESSON = Charge(
    "exact", Decimal("0.05"), Decimal("0.05"), tokens={"input": 1000, "output": 500},
    parts={"input": Decimal("0.01"), "output": Decimal("0.04")},
)  # fmt: skip
SCHEME = {
    "course_id": "course_c84775", "catalogue": "h", "lesson_count": 1, "partial": True, "not_covered": ["num.surds"],
    "entries": [{"order": 1, "lesson_type": "teach", "block": "Algebra", "label": "Expanding pairs of brackets",
                 "outcome_refs": ["alg.expand", "alg.factor"]}],
}  # fmt: skip
#: The document of the original system, as its users have it on disk.
ORIGINAL = {
    "run_id": "20260108_161230", "pipeline": "lessons", "subject": "mathematics", "level": "national_5",
    "course_id": "course_c84775", "status": "in_progress",
    "started_at": "2026-01-08T16:12:30Z", "updated_at": "2026-01-08T16:27:33Z",
    "completed_steps": [
        {"step": "seed", "status": "completed", "duration_seconds": 3, "outputs": {"course_id": "course_c84775"}},
        {"step": "sow", "status": "completed", "duration_seconds": 287, "outputs": {"lesson_count": 18},
         "metrics": {"input_tokens": 15420, "output_tokens": 8234, "cost_usd": 1.85}},
    ],
    "last_completed_step": "sow", "next_step": "lessons", "total_cost_usd": 1.85, "total_tokens": 23654, "error": None,
}  # fmt: skip


class Said(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    def json(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Said]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    monkeypatch.setattr(settings, "home", lambda: root.parent)
    monkeypatch.setenv("PIPELINE_STORE", f"files:{root}")
    monkeypatch.delenv("LC_ALL", raising=False)

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        code = main(arguments)
        return Said(code, *capsys.readouterr())

    yield run


def failed_run(root: Path) -> str:
    script = Script(root)
    script.begin("seed").complete("seed", {"course_id": "course_c84775", "outcomes_created": 46})
    script.begin("sow").call("sow", None, LESSON)
    script.complete("sow", {"sow_document_id": "a" * 64, "lesson_count": 3}, seconds=287, scheme=SCHEME)
    script.begin("lessons").call("lessons", "lessons/1", LESSON).task("lessons", "lessons/1", {"title": "One"})
    script.call("lessons", "lessons/2", LESSON, error="overloaded").call("lessons", "lessons/2", None)
    script.fail("lessons", "1 of 3 lessons failed: 2")
    return script.end("failed", message="1 of 3 lessons failed: 2")


def completed_run(root: Path, day: int = 1) -> str:
    script = Script(root, at=BEGIN + timedelta(days=day), subject="physics", level="higher")
    for step in ("seed", "sow", "lessons", "publish"):
        script.begin(step).complete(step, {"step": step})
    return script.end("completed")


def dead_run(root: Path, day: int = 2) -> str:
    script = Script(root, at=BEGIN + timedelta(days=day), subject="physics", level="higher")
    return script.begin("seed").complete("seed", {}).leave()


def original_run(root: Path) -> str:
    folder = root / "20260108_161230"
    folder.mkdir(parents=True)
    (folder / "checkpoint.json").write_text(json.dumps(ORIGINAL))
    return folder.name


def corrupt_run(root: Path) -> str:
    folder = root / "20260107_161230"
    folder.mkdir(parents=True)
    (folder / "checkpoint.json").write_text('{"run_id": ')
    return folder.name


def table_rows(said: Said) -> list[list[str]]:
    lines = said.out.splitlines()
    begin = next(index for index, line in enumerate(lines) if line.startswith("─")) + 1
    end = next((index for index in range(begin, len(lines)) if not lines[index]), len(lines))
    return [line.split() for line in lines[begin:end]]


def test_list_shows_every_kind_of_run_newest_first(root: Path, cli: Cli) -> None:
    failed_run(root), completed_run(root), dead_run(root), original_run(root), corrupt_run(root)
    said = cli("list")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[:3] == ["═" * 75, "PIPELINE RUNS", "═" * 75]
    assert lines[4].split() == ["Run", "ID", "Subject", "Level", "Status", "Steps", "Cost"]
    assert table_rows(said) == [
        ["20260111_143022", "physics", "higher", "interrupted", "1/4", "$0.00"],
        ["20260110_143022", "physics", "higher", "completed", "4/4", "$0.00"],
        ["20260109_143022", "mathematics", "national_5", "failed", "2/4", "$0.15+"],
        ["20260108_161230", "mathematics", "national_5", "in_progress", "2/4", "$1.85"],
        ["20260107_161230", "-", "-", "corrupt", "-", "$0.00"],
    ]
    assert "./pipeline.sh lessons --resume 20260111_143022" in said.out


def test_list_of_an_empty_store_says_how_to_start(cli: Cli) -> None:
    said = cli("list")
    assert said.code == 0
    assert "No runs yet" in said.out
    assert cli("list", "--json").out == ""


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--status", "failed"], ["20260109_143022"]),
        (["--status", "in_progress"], ["20260111_143022", "20260108_161230"]),
        (["--status", "interrupted"], ["20260111_143022"]),
        (["--status", "completed,corrupt"], ["20260110_143022", "20260107_161230"]),
        (["--subject", "maths"], ["20260109_143022", "20260108_161230"]),
        (["--subject", "Phys"], ["20260111_143022", "20260110_143022"]),
        (["--resumable"], ["20260111_143022", "20260109_143022", "20260108_161230"]),
        (["--limit", "2"], ["20260111_143022", "20260110_143022"]),
        (["--limit", "1", "--status", "failed"], ["20260109_143022"]),
    ],
)
def test_list_filters(root: Path, cli: Cli, options: list[str], ids: list[str]) -> None:
    failed_run(root), completed_run(root), dead_run(root), original_run(root), corrupt_run(root)
    assert [row["run_id"] for row in cli("list", "--json", *options).json()] == ids


@pytest.mark.parametrize("options", [["--status", "bogus"], ["--subject", "alchemy"], ["--limit", "-1"], ["--nothing"]])
def test_list_unknown_values_are_errors(cli: Cli, options: list[str]) -> None:
    said = cli("list", *options)
    assert said.code == 2
    assert said.out == ""
    assert "Error:" in said.err


def test_list_subject_of_an_own_catalogue_is_known_by_its_runs(root: Path, cli: Cli) -> None:
    run = Script(root, subject="marine_biology", level="higher").begin("seed").leave()
    assert [row["run_id"] for row in cli("list", "--json", "--subject", "Marine Biology").json()] == [run]


def test_list_says_that_older_runs_are_left_out(root: Path, cli: Cli) -> None:
    completed_run(root, 1), completed_run(root, 2)
    assert "The newest 1 are shown" in cli("list", "--limit", "1").out
    assert "are shown" not in cli("list", "--limit", "2").out


def test_list_verbose_shows_steps_and_error(root: Path, cli: Cli) -> None:
    failed_run(root)
    text = cli("list", "-v").out
    assert "1 of 3 lessons failed: 2" in text
    assert "2026-01-09 14:30:22" in text


def test_list_json_is_versioned_and_complete(root: Path, cli: Cli) -> None:
    failed_run(root)
    (row,) = cli("list", "--json").json()
    assert row["v"] == 1
    assert row["cost_usd"] == 0.15
    assert row["possibly_usd"] == 0.1
    assert (row["steps_completed"], row["steps_total"], row["resumable"]) == (2, 4, True)


def test_list_takes_its_options_from_variables(root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    failed_run(root), completed_run(root)
    monkeypatch.setenv("PIPELINE_LIST_STATUS", "failed")
    monkeypatch.setenv("PIPELINE_JSON", "1")
    assert [row["run_id"] for row in cli("list").json()] == ["20260109_143022"]


def test_status_shows_steps_costs_and_the_way_on(root: Path, cli: Cli) -> None:
    run = failed_run(root)
    said = cli("status", run)
    assert said.code == 0
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert "Status: failed" in lines
    assert "seed ✓ completed 3 s $0.00 course_id course_c84775, outcomes_created 46" in lines
    assert "sow ✓ completed 4 min 47 s $0.05 sow_document_id aaaaaaaaaaaa…, lesson_count 3" in lines
    assert "lessons ✗ failed 2 s $0.10 1 of 3 lessons failed: 2" in lines
    assert "publish · pending" in lines
    assert "Spent: $0.15 in 4 calls, 4,500 tokens" in lines
    assert any("$0.00 to at most $0.10" in line for line in lines)
    assert f"Go on: ./pipeline.sh lessons --resume {run}" in lines


def test_status_of_a_completed_run_offers_no_resume(root: Path, cli: Cli) -> None:
    assert "Go on" not in cli("status", completed_run(root)).out


def test_status_of_the_original_systems_document(root: Path, cli: Cli) -> None:
    original_run(root)
    text = cli("status", "latest").out
    assert "Imported: $1.85" in text
    assert [line.split()[0] for line in text.splitlines() if "pending" in line] == ["lessons", "publish"]
    assert sorted(path.name for path in (root / "20260108_161230").iterdir()) == ["checkpoint.json"]


def test_status_json_holds_the_same(root: Path, cli: Cli) -> None:
    failed_run(root)
    (data,) = cli("status", "latest", "--json").json()
    assert [step["status"] for step in data["steps"]] == ["completed", "completed", "failed", "pending"]
    assert (data["cost_usd"], data["possibly_usd"], data["calls"]) == (0.15, 0.1, 4)
    assert data["resume_command"] == "./pipeline.sh lessons --resume 20260109_143022"


@pytest.mark.parametrize(
    "command",
    [["status"], ["log"], ["history"], ["cost"], ["show", "RUN", "sow"], ["recover", "RUN", "/nowhere"]],
    ids=lambda command: command[0],
)
def test_unknown_runs_exit_with_three(root: Path, cli: Cli, command: list[str]) -> None:
    failed_run(root)
    name = "19990101"
    arguments = [word.replace("RUN", name) for word in command] if "RUN" in command else [*command, name]
    said = cli(*arguments)
    assert said.code == 3
    assert said.out == ""
    assert name in said.err


def test_a_prefix_of_two_runs_names_both(root: Path, cli: Cli) -> None:
    failed_run(root), completed_run(root)
    said = cli("status", "202601")
    assert said.code == 3
    assert "20260109_143022" in said.err
    assert "20260110_143022" in said.err


def test_status_of_a_corrupt_run_is_an_error_with_a_reason(root: Path, cli: Cli) -> None:
    said = cli("status", corrupt_run(root))
    assert said.code == 3
    assert said.err.startswith("Error: ")


def test_log_prints_a_line_a_record(root: Path, cli: Cli) -> None:
    lines = cli("log", failed_run(root)).out.splitlines()
    assert [line.split()[0] for line in lines] == [str(number) for number in range(1, len(lines) + 1)]
    text = "\n".join(lines)
    assert "seed: course_id course_c84775, outcomes_created 46" in text
    assert "lessons/2: lesson, claude-sonnet-5-5, at most $0.10" in text
    assert "failed, ModelUnavailable: overloaded, $0.05, 1,500 tokens" in text
    assert "run_ended        failed: StepFailed: 1 of 3 lessons failed: 2" in text


def test_log_follow_ends_with_the_run(root: Path, cli: Cli) -> None:
    run = failed_run(root)
    assert cli("log", run, "--follow").out == cli("log", run).out


def test_log_json_is_the_record(root: Path, cli: Cli) -> None:
    records = cli("log", failed_run(root), "--json").json()
    assert records[0]["kind"] == "run_started"
    assert records[0]["params"] == {"subject": "mathematics", "level": "national_5"}
    assert records[-1]["seq"] == len(records)


def test_history_lists_checkpoints_with_cost_so_far(root: Path, cli: Cli) -> None:
    run = failed_run(root)
    rows = cli("history", run, "--json").json()
    assert [(row["step"], row["cost_usd"]) for row in rows] == [("seed", 0), ("sow", 0.05), ("lessons", 0.15)]
    assert all(len(row["id"]) == 32 for row in rows)
    assert "Cost so far" in cli("history", run).out


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
        "cost_usd,wasted_usd,open_low_usd,open_high_usd,unpriced_calls"
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


def test_show_prints_the_scheme_as_a_table(root: Path, cli: Cli) -> None:
    text = cli("show", failed_run(root), "sow").out
    assert "1   teach   Algebra   Expanding pairs of brackets   alg.expand, alg.factor" in text
    assert "Partial course. Not covered (1): num.surds" in text
    assert "lesson_count: 3" in text


@pytest.mark.parametrize("what", ["lessons/1", "lessons/lessons/1", "lessons#1/1"])
def test_show_prints_an_item(root: Path, cli: Cli, what: str) -> None:
    assert json.loads(cli("show", failed_run(root), what).out) == {"title": "One"}


def test_show_reads_long_values_back(root: Path, cli: Cli) -> None:
    script = Script(root).begin("seed").complete("seed", {}).begin("sow")
    long = {"text": "x" * 5000}
    run = script.task("sow", "entries/1", long).leave()
    assert json.loads(cli("show", run, "sow/1").out) == long


@pytest.mark.parametrize(("what", "named"), [("nix", "seed"), ("lessons/9", "lessons/1")])
def test_show_names_what_there_is(root: Path, cli: Cli, what: str, named: str) -> None:
    said = cli("show", failed_run(root), what)
    assert said.code == 3
    assert named in said.err


def test_show_json_holds_outputs_and_artifacts(root: Path, cli: Cli) -> None:
    (data,) = cli("show", failed_run(root), "sow", "--json").json()
    assert data["artifacts"]["scheme"] == SCHEME
    assert data["outputs"]["lesson_count"] == 3
