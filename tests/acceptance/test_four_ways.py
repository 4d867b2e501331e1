"""One course in four ways (naive, cached, in batches, cached in batches): the same pages, and what each way costs.

Tokens decide, not times: the figures are those of the ledger. The benchmark of the same name has the goals.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.cost.ledger import LedgerRow, rows
from pipeline.store.reader import all_records, resolve
from tests.acceptance.killing import Starter, course
from tests.servers.bill import PromptCache

#: Fewer would not earn back what writing a prefix costs.
LESSONS = 6
BATCH = ("--batch", "--batch-poll", "0.05")
#: Way → its options, and whether the provider takes notice of cache marks.
WAYS: dict[str, tuple[tuple[str, ...], bool]] = {
    "naive": ((), False),
    "cached": ((), True),
    "batch": (BATCH, False),
    "cached batch": (BATCH, True),
}


@dataclass
class Made:
    """A course as it was made and paid for."""

    ledger: list[LedgerRow]
    billed: Decimal
    published: dict[str, str]

    @property
    def usd(self) -> Decimal:
        assert all(row.usd is not None for row in self.ledger)
        return sum((row.low for row in self.ledger), Decimal(0))

    def tokens(self, *kinds: str) -> int:
        return sum(row.tokens.get(kind, 0) for row in self.ledger for kind in kinds)

    def writers(self, label: str) -> int:
        """Calls of a kind that wrote to the cache."""
        mine = [row for row in self.ledger if row.label == label]
        return sum(any(row.tokens.get(f"cache_write_{life}") for life in ("5m", "1h")) for row in mine)


@pytest.fixture(scope="module")
def ways(starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    return {way: make(way, starter, tmp_path_factory.mktemp("way") / "c") for way in WAYS}


def make(way: str, starter: Starter, home: Path) -> Made:
    options, caches = WAYS[way]
    with course(home, starter) as found:
        found.server.cache = PromptCache(marks=caches)
        found.lessons = LESSONS
        found.options = ("--model", "claude-sonnet-5-5", *options)
        found.new()
        assert starter.wait() == 0, found.log()
        ledger = rows(all_records(found.store, resolve(found.store, "latest")))
        return Made(ledger, found.server.bill.usd, found.published())


def test_the_same_course_comes_of_all_ways_and_each_ledger_is_the_bill(ways: dict[str, Made]) -> None:
    for way, made in ways.items():
        assert made.published == ways["naive"].published, way
        assert made.tokens("output") == ways["naive"].tokens("output"), way
        assert made.usd == made.billed > 0, way


def test_caching_and_batches_each_save_and_together_save_most(ways: dict[str, Made]) -> None:
    naive, cached, batch, both = (ways[way].usd for way in WAYS)
    assert both < batch < cached < naive
    assert batch == naive / 2
    assert both <= Decimal("0.45") * naive
    # So few lessons pay for writing the prefixes as well; 18 cost 0.74 of naive.
    assert cached <= Decimal("0.85") * naive


def test_saved_dollars_are_what_the_ways_differ_by(ways: dict[str, Made]) -> None:
    naive = ways["naive"].usd
    cached, batch = ways["cached"], ways["batch"]
    assert sum(row.saved_cache for row in cached.ledger) == naive - cached.usd
    assert sum(row.saved_batch for row in batch.ledger) == naive - batch.usd
    assert not any(row.saved_cache or row.saved_batch for row in ways["naive"].ledger)


def test_a_shared_prefix_is_written_once_and_read_by_all_others(ways: dict[str, Made]) -> None:
    cached = ways["cached"]
    for label in ("entry", "lesson"):
        calls = [row for row in cached.ledger if row.label == label]
        assert len(calls) == LESSONS
        assert cached.writers(label) == 1
        assert sum(row.tokens.get("cache_read", 0) > 0 for row in calls) == LESSONS - 1
    assert cached.tokens("cache_read") > cached.tokens("input")


def test_prefixes_live_an_hour_in_batches_and_five_minutes_elsewhere(ways: dict[str, Made]) -> None:
    assert ways["cached batch"].tokens("cache_write_1h") > 0 == ways["cached batch"].tokens("cache_write_5m")
    assert ways["cached"].tokens("cache_write_5m") > 0 == ways["cached"].tokens("cache_write_1h")
