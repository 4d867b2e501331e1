"""From the command line: what a run waits for or was told to stop at is no error, and the way on is whole."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
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

pytestmark = pytest.mark.usefixtures("out")
COURSE = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "2")


def test_batch_is_waited_for_asked_again_by_a_fork_and_remembered_once_it_is_cancelled(
    cli: Cli, root: Path, server: BillingServer
) -> None:
    said = cli(*COURSE, "--batch", "--no-wait")
    assert said.code == 75
    assert said.err.startswith("Waiting: The provider works on msgbatch_")
    status = cli("status", "latest").out
    assert "Waiting: The provider works on" in status
    assert "Error" not in said.err + status
    # A fork at the end asks for all of it again.
    (batch,) = cli("batches", "--json").json()
    run = batch["run"]
    (told,) = cli("fork", run, "--json").json()[0]["asked_again"]
    assert told == {"batch": batch["batch"], "requests": batch["requests"], "usd_high": batch["open_usd_high"]}
    text = cli("fork", run).out
    assert (f"{batch['batch']} (1 request)" in text, "at most $" in text) == (True, True)
    assert cli("fork", run, "--at", "start", "--json").json()[0]["asked_again"] == []
    assert cli("delete", *(row["run_id"] for row in cli("list", "--json").json() if row["parent"]), "--yes").code == 0
    # Of a run at work it is left to the run's owner to see that it is cancelled.
    journal = FileStore(root, SystemClock()).open(run)
    try:
        said = cli("cancel", run)
    finally:
        journal.close()
    assert (said.code, "A running process waits for it" in said.out) == (0, True)
    assert cli("batches", "--json").json()[0]["status"] == "out"
    said = cli("cancel", run)
    assert said.code == 0, said.err
    (batch,) = cli("batches", "--json").json()
    assert batch["status"] == "cancelled"
    assert batch["cancelled_at"]
    assert "cancelled" in cli("batches").out
    assert "cancelled" in cli("status", run).out
    (row,) = cli("list", "--json").json()
    assert row["status_detail"] == "stopped_as_asked"
    assert "cancelled" in row["error"]
    assert "batch_cancelled" in cli("log", run).out
    assert said.out.splitlines()[-1] == cli("list").out.splitlines()[-1].replace("  ./", "Resume: ./")
    again = cli("cancel", run)
    assert again.code == 2
    assert "no pending batch" in again.err
    done = cli("lessons", "--resume", run, "--no-batch", "--batch-poll", "0.05")
    assert done.code == 0, done.err
    assert cli("list", "--json").json()[0]["status"] == "completed"


def test_interrupted_while_a_batch_is_out_says_that_it_is_billed_and_how_to_call_it_back(
    tmp_path: Path, starter: Starter
) -> None:
    with course(tmp_path / "c", starter) as made:
        made.options = ("--batch", "--batch-poll", "0.05")
        made.server.batches.looks = 10**6
        pid = made.new()
        # Looked at once: by then its id is recorded and known to the run.
        while not any(held.looks < 10**6 for held in list(made.server.batches.held.values())):
            os.kill(pid, 0)
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
