"""`status`, `log`, `history`, `show`: one run looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline import Pipeline, StepContext, step
from pipeline.clock import SystemClock
from pipeline.store.files import FileStore
from tests.runs import Script
from tests.said import Cli
from tests.sample_runs import SCHEME, completed_run, corrupt_run, failed_run, original_run
from tests.servers.billing import BillingServer


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
    assert f"Resume: ./pipeline.sh lessons --resume {run} --store files:{root}" in lines


def test_status_of_a_run_stopped_as_asked_calls_it_no_error(root: Path, cli: Cli) -> None:
    Script(root).begin("seed").end("in_progress", "stopped_as_asked", "Stopped after sow, as asked.")
    text = cli("status", "latest").out
    assert "Note:    Stopped after sow, as asked." in text
    assert "Error" not in text


def test_status_of_a_completed_run_offers_no_resume(root: Path, cli: Cli) -> None:
    assert "Resume:" not in cli("status", completed_run(root)).out


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
    assert data["resume_command"] == f"./pipeline.sh lessons --resume 20260109_143022 --store files:{root}"


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


def test_show_names_the_items_there_are_by_their_numbers(root: Path, cli: Cli) -> None:
    script = Script(root).begin("lessons")
    for number in (3, 10, 2, 11, 12, 13, 1, 4, 5, 6, 7, 8, 9):
        script.task("lessons", f"lessons/{number}", {})
    said = cli("show", script.leave(), "lessons/99")
    assert said.code == 3
    listed = ", ".join(f"lessons/{number}" for number in range(1, 13))
    assert f"Hint: Items so far: {listed} and 1 more." in said.err


def test_status_names_the_parameters_of_a_pipeline_of_ones_own(root: Path, cli: Cli) -> None:
    store = FileStore(root, SystemClock())
    quiz = Pipeline("quiz", [step("ask")(lambda ctx: {"n": ctx.params["questions"]})])
    run = quiz.run({"questions": 20, "topics": ["tides"]}, store=store).run_id
    assert 'quiz (questions=20, topics=["tides"])' in cli("status", run).out.splitlines()
    assert "lessons: mathematics, national_5" in cli("status", failed_run(root)).out.splitlines()


def test_fork_says_what_it_inherited_and_nothing_else(root: Path, cli: Cli) -> None:
    store = FileStore(root, SystemClock())

    def map_some(ctx: StepContext) -> dict[str, object]:
        return {"all": list(ctx.map("part", [1, 0, 2], lambda task, n: 1 / n, key=str))}

    first = Pipeline("broken", [step("go")(lambda ctx: {"v": 1 / 0})]).run(store=store).run_id
    said = cli("fork", first).out
    (line,) = [line for line in said.splitlines() if line.startswith("Inherited:")]
    assert ("nothing" in line, "go" in line.split(), "$" in line) == (True, False, False)
    some = Pipeline("some", [step("go")(map_some)]).run(store=store).run_id
    assert "Inherited: 2 items of go ($0.00)" in cli("fork", some).out.splitlines()
    assert cli("fork", some, "--json").json()[0]["inherited"] == []


def test_start_says_what_is_looked_at_before_its_plan(root: Path, cli: Cli, server: BillingServer) -> None:
    said = cli("lessons", "--subject", "maths", "--level", "n5", "--lessons", "2", "--until", "seed")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    plan = next(at for at, line in enumerate(lines) if line.startswith("Expected cost"))
    assert [at for at, line in enumerate(lines[:plan]) if f"files:{root}" in line]
    assert [at for at, line in enumerate(lines[:plan]) if "Checking the model claude" in line]
