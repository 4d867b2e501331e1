"""Kill tests: real processes, real signals, a server that keeps its own bill; nothing is paid for twice.

Each trial has its own server and store, two run at a time. Two thirds are kill -9, the rest INT and TERM.
"""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.records.fold import spent
from pipeline.store.reader import load, resolve
from tests.acceptance.killing import CLOCK, Course, Starter, course, kill_at
from tests.servers.objects import Moto, environ
from tests.servers.objects import moto as moto
from tests.servers.objects import objects as objects
from tests.servers.postgres import Postgres
from tests.servers.postgres import postgres as postgres
from tests.tiers import trials

#: Makes the URL of a fresh store for a seed, and what finds it in the environment.
Place = Callable[[int], tuple[str, dict[str, str]]]

#: How many courses are killed in each store.
TRIALS = {
    "files": trials(12, 80, 200),
    "sqlite": trials(0, 60, 200),
    "postgresql": trials(0, 40, 200),
    "objects": trials(0, 20, 200),
}


@pytest.fixture(scope="module")
def starters(starter: Starter) -> Iterator[list[Starter]]:
    other = Starter()
    yield [starter, other]
    other.close()


@pytest.fixture(scope="module")
def undisturbed(starters: list[Starter], tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], float, int]:
    """What a run without kills publishes, how long it takes, and how many requests it makes."""
    with course(tmp_path_factory.mktemp("undisturbed") / "c", starters[0]) as made:
        begun = CLOCK.monotonic()
        made.new()
        assert made.starter.wait() == 0, made.log()
        return made.published(), CLOCK.monotonic() - begun, made.server.bill.requests


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


def trial(seed: int, home: Path, starter: Starter, place: Place, published: dict[str, str], duration: float) -> str:
    """One course, killed once or twice at random moments, resumed until done; "" or what is wrong."""
    draw = random.Random(seed)
    number = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[seed % 6]
    possible, code = 0, 1
    url, env = place(seed)
    with course(home, starter, url=url, env=env) as made:
        for _ in range(1 + draw.randrange(2)):
            kill_at(made.go(), draw.uniform(0.0, duration), number)
            code = starter.wait()
            if code not in (0, -number, 130) and number != signal.SIGKILL:
                return f"seed {seed}: exit {code} after {number!r}:\n{made.log()[-2000:]}"
            possible += sum(len(load(made.store, run).open_calls) for run in made.runs())
            if code == 0:
                break
        if code != 0:
            made.go()
            code = starter.wait()
        if code != 0:
            return f"seed {seed}: the last resume ended with {code}:\n{made.log()[-2000:]}"
        return judge(seed, made, published, possible)


def judge(seed: int, made: Course, published: dict[str, str], possible: int) -> str:
    """Compare what was published, asked and paid with the undisturbed run and the server's bill."""
    if made.published() != published:
        return f"seed {seed}: the published bytes differ"
    repeated = int(made.server.bill.to_json()["repeated"])
    if repeated > possible:
        return f"seed {seed}: {repeated} requests made twice, {possible} were in flight"
    total = spent(load(made.store, resolve(made.store, "latest")))
    low, high, bill = total.usd + total.low, total.usd + total.high, made.server.bill.usd
    if not low <= bill <= high:
        return f"seed {seed}: bill {bill} is not between {low} and {high}"
    return ""


def test_killed_courses_publish_the_same_bytes_and_pay_nothing_twice(
    starters: list[Starter],
    undisturbed: tuple[dict[str, str], float, int],
    place: tuple[str, Place],
    tmp_path: Path,
) -> None:
    (kind, fresh), (published, duration, _) = place, undisturbed
    free = list(starters)
    lock = threading.Lock()

    def one(seed: int) -> str:
        with lock:
            starter = free.pop()
        try:
            return trial(seed, tmp_path / str(seed), starter, fresh, published, duration)
        finally:
            with lock:
                free.append(starter)

    with ThreadPoolExecutor(len(starters)) as pool:
        wrong = [message for message in pool.map(one, range(TRIALS[kind])) if message]
    assert not wrong, "\n".join(wrong)


def test_without_faults_the_ledger_is_the_bill_to_the_cent(
    starters: list[Starter], undisturbed: tuple[dict[str, str], float, int], tmp_path: Path
) -> None:
    with course(tmp_path / "c", starters[0]) as made:
        made.new()
        assert starters[0].wait() == 0, made.log()
        total = spent(load(made.store, made.runs()[0]))
        assert (total.usd, total.low, total.high) == (made.server.bill.usd, Decimal(0), Decimal(0))
        assert made.server.bill.requests == undisturbed[2]


@pytest.mark.parametrize("seed", range(3))
def test_with_faults_the_bill_is_within_what_the_ledger_says(
    starters: list[Starter], undisturbed: tuple[dict[str, str], float, int], tmp_path: Path, seed: int
) -> None:
    faults = (
        "rate_limit=0.05,overloaded=0.03,error500=0.03,drop=0.03,cut=0.05,silent=0.02,"
        "invalid=0.1,offplan=0.1,wrong=0.1,lowscore=0.1,passlow=0.1,truncated=0.05"
    )
    with course(tmp_path / "c", starters[0], faults, seed) as made:
        made.new()
        code = starters[0].wait()
        for _ in range(4):
            if code == 0:
                break
            made.begin("--resume", "latest")
            code = starters[0].wait()
        total = spent(load(made.store, made.runs()[0]))
        assert total.usd + total.low <= made.server.bill.usd <= total.usd + total.high
        assert made.server.bill.requests == total.calls
