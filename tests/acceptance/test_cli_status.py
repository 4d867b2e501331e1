"""`status`, `log`, `history`, `show`: one run looked at, also one of layers."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline import Pipeline, StepContext, step
from pipeline.clock import SystemClock
from pipeline.engine.amendment import amend
from pipeline.records.kinds import DocumentKept
from pipeline.store.files import FileStore
from tests.layered import Layered, chain
from tests.runs import BEGIN, Script
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
    command = f"./pipeline.sh lessons --resume {run} --store files:{root}"
    assert f"Resume: {command}" in lines
    (data,) = cli("status", "latest", "--json").json()
    assert [step["status"] for step in data["steps"]] == ["completed", "completed", "failed", "pending"]
    assert (data["cost_usd"], data["possibly_usd"], data["calls"]) == (0.15, 0.1, 4)
    assert data["resume_command"] == command
    assert "Resume:" not in cli("status", completed_run(root)).out


def test_status_of_a_run_stopped_as_asked_calls_it_no_error(root: Path, cli: Cli) -> None:
    Script(root).begin("seed").end("in_progress", "stopped_as_asked", "Stopped after sow, as asked.")
    text = cli("status", "latest").out
    assert "Note:    Stopped after sow, as asked." in text
    assert "Error" not in text


def test_status_of_the_original_systems_document(root: Path, cli: Cli) -> None:
    original_run(root)
    text = cli("status", "latest").out
    assert "Imported: $1.85" in text
    assert [line.split()[0] for line in text.splitlines() if "pending" in line] == ["lessons", "publish"]
    assert sorted(path.name for path in (root / "20260108_161230").iterdir()) == ["checkpoint.json"]


def test_unknown_runs_exit_with_three_and_name_what_there_is(root: Path, cli: Cli) -> None:
    run = failed_run(root)
    completed_run(root)
    for command in ("status NO", "log NO", "history NO", "cost NO", "show NO sow", "recover NO /nowhere", "why NO sow"):
        said = cli(*command.replace("NO", "19990101").split())
        assert (said.code, said.out, "19990101" in said.err) == (3, "", True), command
    for words, named in (
        (("status", "202601"), ("20260109_143022", "20260110_143022")),
        (("show", run, "nix"), ("seed",)),
        (("show", run, "lessons/9"), ("lessons/1",)),
    ):
        said = cli(*words)
        assert (said.code, [name in said.err for name in named]) == (3, [True] * len(named)), words


def test_status_of_a_corrupt_run_is_an_error_with_a_reason(root: Path, cli: Cli) -> None:
    said = cli("status", corrupt_run(root))
    assert said.code == 3
    assert said.err.startswith("Error: ")


def test_log_prints_a_line_a_record(root: Path, cli: Cli) -> None:
    run = failed_run(root)
    said = cli("log", run)
    assert cli("log", run, "--follow").out == said.out
    lines = said.out.splitlines()
    assert [line.split()[0] for line in lines] == [str(number) for number in range(1, len(lines) + 1)]
    text = "\n".join(lines)
    assert "seed: course_id course_c84775, outcomes_created 46" in text
    assert "lessons/2: lesson, claude-sonnet-5-5, at most $0.10" in text
    assert "failed, ModelUnavailable: overloaded, $0.05, 1,500 tokens" in text
    assert "run_ended        failed: StepFailed: 1 of 3 lessons failed: 2" in text
    records = cli("log", run, "--json").json()
    assert records[0]["kind"] == "run_started"
    assert records[0]["params"] == {"subject": "mathematics", "level": "national_5"}
    assert records[-1]["seq"] == len(records) == len(lines)


def test_history_lists_checkpoints_with_cost_so_far(root: Path, cli: Cli) -> None:
    run = failed_run(root)
    rows = cli("history", run, "--json").json()
    assert [(row["step"], row["cost_usd"]) for row in rows] == [("seed", 0), ("sow", 0.05), ("lessons", 0.15)]
    assert all(len(row["id"]) == 32 for row in rows)
    assert "Cost so far" in cli("history", run).out


def test_show_prints_a_scheme_as_a_table_and_an_item_whole(root: Path, cli: Cli) -> None:
    run = failed_run(root)
    text = cli("show", run, "sow").out
    assert "1   teach   Algebra   Expanding pairs of brackets   alg.expand, alg.factor" in text
    assert "Partial course. Not covered (1): num.surds" in text
    assert "lesson_count: 3" in text
    (data,) = cli("show", run, "sow", "--json").json()
    assert (data["artifacts"]["scheme"], data["outputs"]["lesson_count"]) == (SCHEME, 3)
    for what in ("lessons/1", "lessons/lessons/1", "lessons#1/1"):
        assert json.loads(cli("show", run, what).out) == {"title": "One"}
    script = Script(root, at=BEGIN.replace(day=12)).begin("seed").complete("seed", {}).begin("sow")
    long = {"text": "x" * 5000}
    assert json.loads(cli("show", script.task("sow", "entries/1", long).leave(), "sow/1").out) == long


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


def test_layers_list_and_status_say_how_to_go_on(cli: Cli, root: Path) -> None:
    layered = Layered(FileStore(root, SystemClock()))
    layered.bad = {"t2": "crash"}
    run = layered.execute(chain(2)).run_id
    command = f'ControlledExecutor(tools=…, store=…).resume_from_checkpoint("{run}")'
    assert command in cli("list").out
    assert command in cli("status", run).out
    assert cli("status", run, "--json").json()[0]["resume_command"] == command


def test_layers_log_tells_checkpoints(cli: Cli, root: Path) -> None:
    layered = Layered(FileStore(root, SystemClock()))
    run = layered.execute(chain(1)).run_id
    amend(layered.store, run, SystemClock(), lambda _: [DocumentKept(b"{no json", "other"), DocumentKept(b"3", "x")])
    said = cli("log", run)
    assert f"casys: type checkpoint, id {layered.saved()[0]}, layer_index 1" in said.out
    kept = [line for line in cli("log", run, "--json").json() if line["kind"] == "document_kept"]
    assert [line["content"] if line["source"] != "casys" else line["content"]["layer_index"] for line in kept] == [
        1, "{no json", 3,
    ]  # fmt: skip
