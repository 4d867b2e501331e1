"""`list`: every kind of run, filters, and what is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs import Script
from tests.said import Cli, Said
from tests.sample_runs import completed_run, corrupt_run, dead_run, failed_run, original_run
from tests.servers.objects import moto as moto
from tests.servers.objects import objects as objects
from tests.servers.postgres import postgres as postgres
from tests.servers.postgres import postgresql as postgresql


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
    text = cli("list", "-v").out
    assert ("1 of 3 lessons failed: 2" in text, "2026-01-09 14:30:22" in text) == (True, True)
    (row,) = cli("list", "--json", "--status", "failed").json()
    assert (row["v"], row["cost_usd"], row["possibly_usd"]) == (1, 0.15, 0.1)
    assert (row["steps_completed"], row["steps_total"], row["resumable"]) == (2, 4, True)


def test_list_filters(root: Path, cli: Cli) -> None:
    failed_run(root), completed_run(root), dead_run(root), original_run(root), corrupt_run(root)
    for options, ids in (
        (["--status", "failed"], ["20260109_143022"]),
        (["--status", "in_progress"], ["20260111_143022", "20260108_161230"]),
        (["--status", "interrupted"], ["20260111_143022"]),
        (["--status", "completed,corrupt"], ["20260110_143022", "20260107_161230"]),
        (["--subject", "maths"], ["20260109_143022", "20260108_161230"]),
        (["--subject", "Phys"], ["20260111_143022", "20260110_143022"]),
        (["--resumable"], ["20260111_143022", "20260109_143022", "20260108_161230"]),
        (["--limit", "2"], ["20260111_143022", "20260110_143022"]),
        (["--limit", "1", "--status", "failed"], ["20260109_143022"]),
    ):
        assert [row["run_id"] for row in cli("list", "--json", *options).json()] == ids, options


def test_list_unknown_values_are_errors(cli: Cli) -> None:
    for options in ("--status bogus", "--subject alchemy", "--limit -1", "--nothing"):
        said = cli("list", *options.split())
        assert (said.code, said.out, "Error:" in said.err) == (2, "", True), options


def test_list_subject_of_an_own_catalogue_is_known_by_its_runs(root: Path, cli: Cli) -> None:
    run = Script(root, subject="marine_biology", level="higher").begin("seed").leave()
    assert [row["run_id"] for row in cli("list", "--json", "--subject", "Marine Biology").json()] == [run]


def test_list_says_that_older_runs_are_left_out(root: Path, cli: Cli) -> None:
    completed_run(root, 1), completed_run(root, 2)
    assert "The newest run is shown" in cli("list", "--limit", "1").out
    assert "are shown" not in cli("list", "--limit", "2").out
    assert cli("list", "--limit", "9" * 23).code == 0


def test_list_cuts_a_long_name_so_that_the_table_stays_one(root: Path, cli: Cli) -> None:
    Script(root, subject="x" * 3000, level="higher").end("completed")
    assert max(len(line) for line in cli("list").out.splitlines()) < 120
    assert cli("list", "--json").json()[0]["subject"] == "x" * 3000


def test_list_takes_its_options_from_variables(root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    failed_run(root), completed_run(root)
    monkeypatch.setenv("PIPELINE_LIST_STATUS", "failed")
    monkeypatch.setenv("PIPELINE_JSON", "1")
    assert [row["run_id"] for row in cli("list").json()] == ["20260109_143022"]


def test_store_that_is_a_file_is_a_store_error_that_names_it(root: Path, cli: Cli) -> None:
    assert "No runs yet" in cli("list", "--store", "memory:").out
    root.write_text("x")
    for command in ("list", "cost", "cleanup", "status latest"):
        said = cli(*command.split())
        assert said.code == 3
        assert f"Error: The store {root}" in said.err or f"Error: The account {root}" in said.err
