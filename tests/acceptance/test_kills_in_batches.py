"""Kill tests in batch mode: whatever is killed, no batch is handed in twice, and the ledger is the bill.

In every second trial the answer to the creation of a batch is lost, so that
only the intent of it is recorded when the process dies or goes on.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.records.fold import spent
from pipeline.store.reader import load, resolve
from tests.acceptance.killing import CLOCK, Course, Starter, course, kill_at
from tests.tiers import trials

TRIALS = trials(2, 5, 50)
OPTIONS = ("--batch", "--batch-poll", "0.05")


@pytest.fixture(scope="module")
def undisturbed(starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], float, list[int]]:
    """What a run without kills publishes, how long it takes, and how large its batches are."""
    with course(tmp_path_factory.mktemp("undisturbed") / "c", starter) as made:
        made.options = OPTIONS
        begun = CLOCK.monotonic()
        made.new()
        assert starter.wait() == 0, made.log()
        sizes = [len(held.requests) for held in made.server.batches.held.values()]
        return made.published(), CLOCK.monotonic() - begun, sizes


def go(made: Course) -> int:
    """Start or resume; the pid. What was killed between its record and the wire is given up: only we know that."""
    runs = made.runs()
    if not runs:
        return made.new()
    handed_in = [row["custom_id"] for held in made.server.batches.held.values() for row in held.requests]
    state = load(made.store, runs[0])
    unclear = [
        batch.nonce for batch in state.batches.values()
        if not batch.batch and any(call in state.open_calls for call in batch.calls.values())
    ]  # fmt: skip
    never = [nonce for nonce in unclear if not any(name.startswith(nonce) for name in handed_in)]
    return made.begin("--resume", runs[0], *(["--resubmit"] if never else []))


def drive(made: Course, draw: random.Random, duration: float) -> str:
    """Kill the course once or twice, then let it end; "" or what is wrong."""
    for _ in range(1 + draw.randrange(2)):
        kill_at(go(made), draw.uniform(0.0, duration), signal.SIGKILL)
        if made.starter.wait() == 0:
            return ""
    go(made)
    code = made.starter.wait()
    return "" if code == 0 else f"exit {code}:\n{made.log()[-2000:]}"


@pytest.mark.parametrize("seed", range(TRIALS))
def test_killed_batches_are_found_again_and_paid_once(
    seed: int, starter: Starter, undisturbed: tuple[dict[str, str], float, list[int]], tmp_path: Path
) -> None:
    published, duration, sizes = undisturbed
    draw = random.Random(seed)
    with course(tmp_path / "c", starter) as made:
        made.options = OPTIONS
        made.server.batches.looks = draw.randrange(3)
        if seed % 2:
            made.server.batches.creations = [draw.choice(["drop", "lose", ""]) for _ in range(len(sizes))]
        wrong = drive(made, draw, duration)
        assert wrong == ""
        assert made.published() == published
        bill = made.server.bill.to_json()
        assert bill["repeated"] == 0, "a request was answered in two batches"
        state = load(made.store, resolve(made.store, "latest"))
        total = spent(state)
        given_up = any(batch.abandoned_at for batch in state.batches.values())
        assert (total.usd, total.low) == (made.server.bill.usd, Decimal(0))
        assert (total.high > 0) == given_up
        assert not state.open_calls


def test_a_batch_whose_process_died_before_it_was_recorded_is_waited_for_and_taken_over(
    starter: Starter, undisturbed: tuple[dict[str, str], float, list[int]], tmp_path: Path
) -> None:
    """The window between create and record, hit for certain: the first creation is answered to nobody, then SIGKILL."""
    with course(tmp_path / "c", starter) as made:
        made.options = OPTIONS
        # It stays in progress for as long as the first process looks.
        made.server.batches.looks = 10_000
        made.server.batches.creations = ["drop"]
        pid = made.new()
        for _ in range(400):
            if made.server.batches.held:
                break
            CLOCK.wait(made.server.stopping, 0.02)
        kill_at(pid, 0.2, signal.SIGKILL)
        assert starter.wait() == -signal.SIGKILL
        (held,) = made.server.batches.held.values()
        state = load(made.store, made.runs()[0])
        assert [run.batch for run in state.batches.values()] == [""]
        held.looks = 0
        made.server.batches.looks = 0
        made.go()
        assert starter.wait() == 0, made.log()
        assert made.published() == undisturbed[0]
        assert [len(each.requests) for each in made.server.batches.held.values()] == undisturbed[2]
        assert spent(load(made.store, made.runs()[0])).usd == made.server.bill.usd


@pytest.mark.parametrize("no_wait", [True, False])
def test_kill_while_the_provider_creates_a_batch_pays_it_once(
    starter: Starter, undisturbed: tuple[dict[str, str], float, list[int]], tmp_path: Path, no_wait: bool
) -> None:
    """SIGKILL while the provider takes long to create it, and a resume at once: it is looked for until it shows."""
    with course(tmp_path / "c", starter) as made:
        made.options = OPTIONS
        slow = made.server.batches.slow = threading.Event()
        slow.set()
        pid = made.new()
        wait_until(made, lambda: bool(made.runs() and load(made.store, made.runs()[0]).batches))
        kill_at(pid, 0.2, signal.SIGKILL)
        assert starter.wait() == -signal.SIGKILL
        (run,) = made.runs()
        most = spent(load(made.store, run)).high
        assert most > 0
        if no_wait:
            made.begin("--resume", run, "--no-wait")
            assert starter.wait() == 75, made.log()
            assert "--resubmit" in made.log()
            assert (spent(load(made.store, run)).usd, spent(load(made.store, run)).high) == (Decimal(0), most)
        made.go()
        wait_until(made, lambda: len(load(made.store, run).open_calls) > 0)
        slow.clear()
        assert starter.wait() == 0, made.log()
        assert made.published() == undisturbed[0]
        assert [len(held.requests) for held in made.server.batches.held.values()] == undisturbed[2]
        total = spent(load(made.store, run))
        assert (total.usd, total.high) == (made.server.bill.usd, Decimal(0))


def wait_until(made: Course, true: Callable[[], bool]) -> None:
    """Return when it is so, or after some seconds."""
    for _ in range(600):
        if true():
            return
        CLOCK.wait(made.server.stopping, 0.02)
