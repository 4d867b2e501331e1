"""Kill tests: real processes, real signals, a server that keeps its own bill; nothing is paid for twice.

Each trial has its own server and store, two run at a time. Two thirds are kill -9, the rest INT and TERM. In batch mode
the answer to the creation of a batch is lost in every second trial, so that only the intent of it is recorded.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline.records.fold import spent
from pipeline.store.reader import load, resolve
from tests.acceptance.killing import CLOCK, Course, Starter, course, kill_after, kill_at
from tests.servers.objects import Moto, environ
from tests.servers.objects import moto as moto
from tests.servers.objects import objects as objects
from tests.servers.postgres import Postgres
from tests.servers.postgres import postgres as postgres
from tests.tiers import trials

#: Makes the URL of a fresh store for a seed, and what finds it in the environment.
Place = Callable[[int], tuple[str, dict[str, str]]]

#: How many courses are killed in each store, and in batches.
TRIALS = {
    "files": trials(12, 60, 200),
    "sqlite": trials(0, 45, 200),
    "postgresql": trials(0, 30, 200),
    "objects": trials(0, 15, 200),
}
BATCH_TRIALS = trials(2, 5, 50)
BATCH = ("--batch", "--batch-poll", "0.05")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


class Undisturbed(NamedTuple):
    """A course without kills."""

    published: dict[str, str]
    #: Seconds.
    duration: float
    requests: int
    #: How large its batches are.
    sizes: list[int]


def undisturbed_course(starter: Starter, home: Path, *options: str) -> Undisturbed:
    with course(home, starter) as made:
        made.options = options
        begun = CLOCK.monotonic()
        made.new()
        assert starter.wait() == 0, made.log()
        sizes = [len(held.requests) for held in made.server.batches.held.values()]
        return Undisturbed(made.published(), CLOCK.monotonic() - begun, made.server.bill.requests, sizes)


@pytest.fixture(scope="module")
def undisturbed(starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return undisturbed_course(starter, tmp_path_factory.mktemp("undisturbed") / "c")


@pytest.fixture(scope="module")
def batched(starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return undisturbed_course(starter, tmp_path_factory.mktemp("undisturbed") / "c", *BATCH)


@pytest.fixture(scope="module")
def starters(starter: Starter) -> Iterator[list[Starter]]:
    other = Starter()
    yield [starter, other]
    other.close()


@pytest.fixture(params=[kind for kind, number in TRIALS.items() if number])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Place]:
    """A kind of store, and what makes the URL of a fresh one, with what finds it in the environment."""
    kind = str(request.param)
    if kind == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        return kind, lambda seed: (server.database(), {})
    if kind == "objects":
        buckets: Moto = request.getfixturevalue("moto")
        request.getfixturevalue("objects")
        return kind, lambda seed: (f"s3://{buckets.bucket()}/runs", environ(buckets.endpoint))
    return kind, lambda seed: (f"sqlite:{tmp_path / f'{seed}.db'}" if kind == "sqlite" else "", {})


def trial(seed: int, home: Path, starter: Starter, place: Place, whole: Undisturbed, tally: Counter[str]) -> str:
    """One course, killed once or twice at random moments, resumed until done; "" or what is wrong."""
    draw = random.Random(seed)
    number = SIGNALS[seed % 6]
    possible, code = 0, 1
    url, env = place(seed)
    with course(home, starter, url=url, env=env) as made:
        for _ in range(1 + draw.randrange(2)):
            kill_after(made.server, made.go(), *moment(draw, whole, made.server.bill.requests), number)
            code = starter.wait()
            if code not in (0, -number, 130) and number != signal.SIGKILL:
                return f"seed {seed}: exit {code} after {number!r}:\n{made.log()[-2000:]}"
            possible += sum(len(load(made.store, run).open_calls) for run in made.runs())
            if code == 0:
                break
            tally[signal.Signals(number).name] += 1
        if code != 0:
            made.go()
            code = starter.wait()
        if code != 0:
            return f"seed {seed}: the last resume ended with {code}:\n{made.log()[-2000:]}"
        tally["in flight"] += possible
        return judge(seed, made, whole.published, possible, tally)


def moment(draw: random.Random, whole: Undisturbed, asked: int) -> tuple[int, float]:
    """Draw after how many more requests a course is killed, and how many seconds later."""
    left = max(whole.requests - asked, 0)
    requests = draw.randint(0, left)
    # Before the first and after the last one most is done without asking.
    longest = whole.duration / (4 if requests in (0, left) else whole.requests)
    return requests, draw.uniform(0.0, longest)


def judge(seed: int, made: Course, published: dict[str, str], possible: int, tally: Counter[str]) -> str:
    """Compare what was published, asked and paid with the undisturbed run and the server's bill."""
    if made.published() != published:
        return f"seed {seed}: the published bytes differ"
    repeated = int(made.server.bill.to_json()["repeated"])
    tally["asked again"] += repeated
    if repeated > possible:
        return f"seed {seed}: {repeated} requests made twice, {possible} were in flight"
    total = spent(load(made.store, resolve(made.store, "latest")))
    low, high, bill = total.usd + total.low, total.usd + total.high, made.server.bill.usd
    if not low <= bill <= high:
        return f"seed {seed}: bill {bill} is not between {low} and {high}"
    return ""


def test_killed_courses_publish_the_same_bytes_and_pay_nothing_twice(
    starters: list[Starter],
    undisturbed: Undisturbed,
    place: tuple[str, Place],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    kind, fresh = place
    free = list(starters)
    tally: Counter[str] = Counter()

    def one(seed: int) -> str:
        starter = free.pop()
        try:
            return trial(seed, tmp_path / str(seed), starter, fresh, undisturbed, tally)
        finally:
            free.append(starter)

    with ThreadPoolExecutor(len(starters)) as pool:
        wrong = [message for message in pool.map(one, range(TRIALS[kind])) if message]
    counts = ", ".join(f"{name} {count}" for name, count in sorted(tally.items()))
    record_property("figures", f"{kind}: {TRIALS[kind]} courses killed, {len(wrong)} wrong; {counts}")
    assert not wrong, "\n".join(wrong)
    assert sum(tally[signal.Signals(number).name] for number in set(SIGNALS)) >= TRIALS[kind] / 2


def test_without_faults_the_ledger_is_the_bill_to_the_cent(
    starter: Starter, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    with course(tmp_path / "c", starter) as made:
        made.new()
        assert starter.wait() == 0, made.log()
        total = spent(load(made.store, made.runs()[0]))
        assert (total.usd, total.low, total.high) == (made.server.bill.usd, Decimal(0), Decimal(0))
        assert made.server.bill.requests == undisturbed.requests


@pytest.mark.parametrize("seed", range(trials(1, 3, 10)))
def test_with_faults_the_bill_is_within_what_the_ledger_says(starter: Starter, tmp_path: Path, seed: int) -> None:
    faults = (
        "rate_limit=0.05,overloaded=0.03,error500=0.03,drop=0.03,cut=0.05,silent=0.02,"
        "invalid=0.1,offplan=0.1,wrong=0.1,lowscore=0.1,passlow=0.1,truncated=0.05"
    )
    with course(tmp_path / "c", starter, faults, seed) as made:
        made.new()
        code = starter.wait()
        for _ in range(4):
            if code == 0:
                break
            made.begin("--resume", "latest")
            code = starter.wait()
        total = spent(load(made.store, made.runs()[0]))
        assert total.usd + total.low <= made.server.bill.usd <= total.usd + total.high
        assert made.server.bill.requests == total.calls


# --- in batches -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("seed", range(BATCH_TRIALS))
def test_killed_batches_are_found_again_and_paid_once(
    seed: int, starter: Starter, batched: Undisturbed, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    with course(tmp_path / "c", starter) as made:
        made.options = BATCH
        made.server.batches.looks = draw.randrange(3)
        if seed % 2:
            made.server.batches.creations = [draw.choice(["drop", "lose", ""]) for _ in range(len(batched.sizes))]
        wrong = drive(made, draw, batched.duration)
        assert wrong == ""
        assert made.published() == batched.published
        bill = made.server.bill.to_json()
        assert bill["repeated"] == 0, "a request was answered in two batches"
        state = load(made.store, resolve(made.store, "latest"))
        total = spent(state)
        given_up = any(batch.abandoned_at for batch in state.batches.values())
        assert (total.usd, total.low) == (made.server.bill.usd, Decimal(0))
        assert (total.high > 0) == given_up
        assert not state.open_calls


def ends_whole(made: Course, whole: Undisturbed) -> None:
    """The resumed course ends as the undisturbed one, with the same batches; what is known to be spent is billed."""
    assert made.starter.wait() == 0, made.log()
    assert made.published() == whole.published
    assert [len(held.requests) for held in made.server.batches.held.values()] == whole.sizes
    assert spent(load(made.store, made.runs()[0])).usd == made.server.bill.usd


def test_a_batch_whose_process_died_before_it_was_recorded_is_waited_for_and_taken_over(
    starter: Starter, batched: Undisturbed, tmp_path: Path
) -> None:
    """The window between create and record, hit for certain: the first creation is answered to nobody, then SIGKILL."""
    with course(tmp_path / "c", starter) as made:
        made.options = BATCH
        # It stays in progress for as long as the first process looks.
        made.server.batches.looks = 10_000
        made.server.batches.creations = ["drop"]
        pid = made.new()
        wait_until(made, lambda: bool(made.server.batches.held))
        os.kill(pid, signal.SIGKILL)
        assert starter.wait() == -signal.SIGKILL
        (held,) = made.server.batches.held.values()
        state = load(made.store, made.runs()[0])
        assert [run.batch for run in state.batches.values()] == [""]
        held.looks = made.server.batches.looks = 0
        made.go()
        ends_whole(made, batched)


@pytest.mark.parametrize("no_wait", [True, False])
def test_kill_while_the_provider_creates_a_batch_pays_it_once(
    starter: Starter, batched: Undisturbed, tmp_path: Path, no_wait: bool
) -> None:
    """SIGKILL while the provider takes long to create it, and a resume at once: it is looked for until it shows."""
    with course(tmp_path / "c", starter) as made:
        made.options = BATCH
        slow = made.server.batches.slow = threading.Event()
        slow.set()
        made.server.batches.creations = [""]
        pid = made.new()
        wait_until(made, lambda: not made.server.batches.creations)
        os.kill(pid, signal.SIGKILL)
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
        ends_whole(made, batched)
        assert spent(load(made.store, run)).high == 0


def wait_until(made: Course, true: Callable[[], bool]) -> None:
    """Return when it is so."""
    for _ in range(15_000):
        if true():
            return
        CLOCK.wait(made.server.stopping, 0.02)
    raise AssertionError(f"it has not come to that:\n{made.log()}")
