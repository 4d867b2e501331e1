"""A run that dies at each call of the disk, in a process of its own; resumed, it ends the same, nothing paid twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.records.fold import spent
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.store.files import FileStore
from pipeline.store.reader import load, records
from tests.acceptance.dying import DIED, ITEMS, answer, ask, go
from tests.acceptance.partner import Partner
from tests.faulty_disk import LazyDisk

ALL = {"plan", *(f"{kind} {item}" for kind in ("draft", "check") for item in ITEMS)}


class Forker(Partner):
    """The process that forks runs."""

    def __init__(self) -> None:
        super().__init__(Path(__file__).with_name("dying.py"))

    def run(self, home: Path, at: int, how: str, concurrency: int) -> tuple[int, int]:
        """Run until it ends or dies; exit code and calls of the disk (0 if it died)."""
        home.mkdir(exist_ok=True)
        said = self.tell({"home": str(home), "at": at, "how": how, "concurrency": concurrency})
        return int(said["status"]), int(said["calls"])


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    made = Forker()
    yield made
    made.close()


def asked(home: Path) -> list[str]:
    path = home / "asked"
    return path.read_text().splitlines() if path.exists() else []


def calls(home: Path) -> tuple[set[str], int]:
    """Questions whose replies are recorded, and how many calls have no recorded end."""
    store = FileStore(home / "runs", SystemClock())
    questions: dict[int, str] = {}
    ended: set[int] = set()
    by_hash = {ask(text).hash(): text for text in ALL}
    for head in store.heads():
        for record in records(store, head.run_id):
            if isinstance(record.fact, CallStarted):
                questions[record.seq] = by_hash[record.fact.key]
            if isinstance(record.fact, CallEnded):
                ended.add(record.fact.call)
    return {questions[call] for call in ended}, len(questions) - len(ended)


def judge(home: Path, concurrency: int) -> str:
    """Resume what died at this home; "" or what is wrong."""
    before = asked(home)
    known, in_flight = calls(home)
    result = go(home, LazyDisk(), concurrency)
    again = asked(home)[len(before) :]
    lengths = [len(answer(ask(f"check {item}")) + answer(ask(f"draft {item}"))) for item in ITEMS]
    if (result.status, result.outputs.get("bind")) != ("completed", {"book": ["PLAN", *lengths]}):
        return f"ended {result.status} with {result.outputs.get('bind')}: {result.error}"
    if paid_twice := known & set(again):
        return f"asked again although the reply was recorded: {paid_twice}"
    if known | set(again) != ALL or max(Counter(again).values(), default=1) > 1:
        return f"recorded {known}, asked again {again}"
    if sum(Counter(before + again).values()) - len(ALL) > in_flight:
        return f"{before} and {again}: more asked than the {in_flight} in flight"
    store = FileStore(home / "runs", SystemClock())
    total = spent(load(store, result.run_id))
    if total.calls != len(ALL) + in_flight or (total.high > 0) != (in_flight > 0) or total.usd <= Decimal(0):
        return f"ledger: {total.calls} calls, {total.usd} and up to {total.high}; in flight were {in_flight}"
    return ""


@pytest.mark.parametrize(
    ("how", "concurrency", "stride", "deaths"),
    # Without threads, after a call is before the next one. The second death is that of a resume.
    [("before", 1, 1, 1), ("middle", 1, 1, 1), ("middle", 3, 1, 2), ("after", 3, 3, 2)],
)
def test_death_at_any_call_of_the_disk_costs_only_what_was_in_flight(
    forker: Forker, tmp_path: Path, how: str, concurrency: int, stride: int, deaths: int
) -> None:
    code, calls_made = forker.run(tmp_path / "whole", 0, how, concurrency)
    assert code == 0
    assert calls_made > 30
    wrong = []
    for at in range(1, calls_made + 1, stride):
        home = tmp_path / str(at)
        codes = [forker.run(home, moment, how, concurrency)[0] for moment in (at, at * 7 % calls_made + 1)[:deaths]]
        # How threads meet decides a few calls of the disk, and a resume makes fewer, so these numbers may not come.
        if (codes[0] != DIED and concurrency == 1) or set(codes) - {DIED, 0}:
            wrong.append(f"{at}: exit {codes}")
        if problem := judge(home, concurrency):
            wrong.append(f"{at}: {problem}")
    assert not wrong, "\n".join(wrong)
