"""From the command line: what a run waits for or was told to stop at is no error, and the way on is whole."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from tests.acceptance.killing import CLOCK, Starter, course
from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer

COURSE = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "2")


@pytest.fixture
def server(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BillingServer]:
    monkeypatch.setenv("PIPELINE_OUT", str(root.parent / "site"))
    with BillingServer(responder=answer) as made:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-nobody")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", made.url)
        yield made


def test_after_a_ceiling_status_and_list_give_the_command_of_the_last_lines(cli: Cli, server: BillingServer) -> None:
    said = cli(*COURSE, "--max-cost-usd", "0.40")
    assert said.code == 5, said.err
    ceiling = said.err.rstrip().rpartition(" --max-cost-usd ")[2]
    assert float(ceiling) > 0.40
    status, listed = cli("status", "latest"), cli("list")
    for text in (status.out, listed.out):
        assert text.rstrip().endswith(f" --max-cost-usd {ceiling}")
    assert cli("status", "latest", "--json").json()[0]["resume_command"].endswith(f" --max-cost-usd {ceiling}")
    assert cli("lessons", "--resume", "latest", "--max-cost-usd", ceiling).code == 0


def test_batch_that_was_handed_in_is_waited_for_and_no_error(cli: Cli, server: BillingServer) -> None:
    said = cli(*COURSE, "--batch", "--no-wait")
    assert said.code == 75
    assert said.err.startswith("Waiting: The provider works on msgbatch_")
    assert "Error" not in said.err + cli("status", "latest").out
    assert "Waiting: The provider works on" in cli("status", "latest").out


def test_cancelled_batch_is_remembered_by_batches_status_list_and_log(cli: Cli, server: BillingServer) -> None:
    cli(*COURSE, "--batch", "--no-wait")
    said = cli("cancel", "latest")
    assert said.code == 0, said.err
    (batch,) = cli("batches", "--json").json()
    assert batch["status"] == "cancelled"
    assert batch["cancelled_at"]
    assert "cancelled" in cli("batches").out
    assert "cancelled" in cli("status", "latest").out
    (row,) = cli("list", "--json").json()
    assert row["status_detail"] == "stopped_as_asked"
    assert "cancelled" in row["error"]
    assert "batch_cancelled" in cli("log", "latest").out
    assert said.out.splitlines()[-1] == cli("list").out.splitlines()[-1].replace("  ./", "Resume: ./")
    again = cli("cancel", "latest")
    assert again.code == 2
    assert "no pending batch" in again.err
    done = cli("lessons", "--resume", "latest", "--no-batch", "--batch-poll", "0.05")
    assert done.code == 0, done.err
    assert cli("list", "--json").json()[0]["status"] == "completed"


def test_interrupted_while_a_batch_is_out_says_that_it_is_billed_and_how_to_call_it_back(
    tmp_path: Path, starter: Starter
) -> None:
    with course(tmp_path / "c", starter) as made:
        made.options = ("--batch", "--batch-poll", "0.05")
        made.server.batches.looks = 10**6
        pid = made.new()
        for _ in range(600):
            # Looked at once: by then its id is recorded and known to the run.
            if any(held.looks < 10**6 for held in made.server.batches.held.values()):
                break
            CLOCK.wait(made.server.stopping, 0.02)
        os.kill(pid, signal.SIGINT)
        assert starter.wait() == 130
        (run,) = made.runs()
        log = made.log()
        for line in [line for line in log.splitlines() if line.startswith(("Stopping", "Stopped"))]:
            assert "msgbatch_000001 (1 request, at most $" in line
            assert f"./pipeline.sh cancel {run} --store " in line
        assert log.count("msgbatch_000001 (") >= 1
        assert "in flight" not in log
        assert "billed" in str((load(made.store, run).error or {}).get("message"))


def test_fork_of_a_run_whose_batch_is_out_says_that_all_of_it_is_asked_again_and_at_what_price(
    cli: Cli, server: BillingServer
) -> None:
    cli(*COURSE, "--batch", "--no-wait")
    (batch,) = cli("batches", "--json").json()
    (told,) = cli("fork", "latest", "--json").json()[0]["asked_again"]
    assert told == {"batch": batch["batch"], "requests": batch["requests"], "usd_high": batch["open_usd_high"]}
    said = cli("fork", batch["run"]).out
    assert f"{batch['batch']} (1 request)" in said
    assert "at most $" in said
    assert cli("fork", batch["run"], "--at", "start", "--json").json()[0]["asked_again"] == []


def test_batch_of_a_run_at_work_is_cancelled_and_left_to_its_owner(cli: Cli, root: Path, server: BillingServer) -> None:
    cli(*COURSE, "--batch", "--no-wait")
    (row,) = cli("list", "--json").json()
    journal = FileStore(root, SystemClock()).open(row["run_id"])
    try:
        said = cli("cancel", "latest")
    finally:
        journal.close()
    assert said.code == 0, said.err
    assert "A running process waits for it" in said.out
    assert cli("batches", "--json").json()[0]["status"] == "out"


def test_status_of_a_run_left_in_a_step_says_what_is_made_and_nothing_that_is_not_so(
    cli: Cli, server: BillingServer
) -> None:
    assert cli(*COURSE[:-1], "3", "--sample", "1").code == 0
    said = cli("status", "latest").out
    (line,) = [line for line in said.splitlines() if line.startswith("lessons ")]
    assert "· begun" in line
    assert "1 item made so far" in line
    assert "in progress" not in said
    assert "in steps that ended" in said
    assert "Note:    The first lesson of 3 is made, as asked." in said
    assert "wasted" not in cli("cost", "latest").out


def test_lessons_that_failed_are_named_with_both_ways_on_until_they_are_made(
    cli: Cli, server: BillingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(body: Mapping[str, Any], fault: str) -> str:
        # The second lesson never passes its checks.
        return "{}" if "Write lesson 2" in json.dumps(body) else answer(body, fault)

    server.responder = refusing
    said = cli(*COURSE)
    assert said.code == 6
    assert "1 of 2 items of lessons failed: lessons/2." in said.err
    assert "Resume to try again; the other lessons are kept; --skip-failed publishes without it." in said.err
    skipped = cli("lessons", "--resume", "latest", "--skip-failed")
    assert skipped.code == 0, skipped.err
    assert "Expected cost: $0.00" in skipped.out
    assert "  lessons: 2 items, 1 already made, 1 already failed" in skipped.out
    command = "1 lesson failed and is left out; ./pipeline.sh lessons --resume "
    assert command in skipped.out
    again = cli(*COURSE)
    assert "already completed" in again.out
    assert command in again.out
    server.responder = answer
    retry = again.out.partition("left out; ./pipeline.sh ")[2].partition(" tries again")[0]
    done = cli(*retry.split())
    assert done.code == 0, done.err
    assert "left out" not in done.out + cli(*COURSE).out
