"""Journals of paid calls as a test wants them, and charges to put into them."""

from __future__ import annotations

from decimal import Decimal as D
from typing import Any

from pipeline.records.charge import BATCH, EXACT, INTERVAL, Charge
from pipeline.records.codec import Record
from pipeline.records.kinds import CallEnded, CallStarted, Fact, RunStarted

AT = "2026-01-09T14:30:22.000Z"


class Log:
    """Writes records."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.at = AT
        self.add(RunStarted("lessons", {}, {}, {}))

    def add(self, fact: Fact) -> int:
        self.records.append(Record(len(self.records) + 1, self.at, 1, fact))
        return len(self.records)

    def start(self, path: str = "lessons#1", task: str | None = "lessons/7", **more: Any) -> int:
        return self.add(CallStarted(path, "key", "claude-sonnet-5-5", "blob", task=task, worst="1.5", **more))

    def end(self, call: int, charge: Charge, **more: Any) -> int:
        return self.add(CallEnded(call, None, charge.to_json(), **{"stop_reason": "end_turn", **more}))

    def call(self, charge: Charge, path: str = "lessons#1", task: str | None = "lessons/7", **more: Any) -> int:
        seq = self.start(path, task, label="lesson")
        self.end(seq, charge, **more)
        return seq


def exact(usd: str = "0.03", output: int = 100) -> Charge:
    part = D(usd) / 3
    parts = {"input": part, "output": D(usd) - part}
    return Charge(EXACT, D(usd), D(usd), {"input": 50, "output": output}, parts, {"input": D(2)}, "genai-prices 1")


def interval(low: str = "0.01", high: str | None = "0.5") -> Charge:
    return Charge(INTERVAL, D(low), None if high is None else D(high), {"input": 10, "output": 1}, {"input": D(low)})


def cached(tier: str = "standard", full: str | None = None) -> Charge:
    """Of 10,000 tokens read from the cache and 1,000 written to it; what it saved is 0.0185."""
    tokens = {"input": 100, "cache_write_5m": 1000, "cache_read": 10_000, "output": 50, "web_search": 0}
    prices = {"input": D(2), "cache_write_5m": D("2.5"), "cache_read": D("0.1"), "output": D(10)}
    parts = {kind: prices[kind] * tokens[kind] / 1_000_000 for kind in prices}
    total = sum(parts.values(), D(0))
    return Charge(EXACT, total, total, tokens, parts, prices, tier=tier, full=None if full is None else D(full))


def batched() -> Charge:
    return cached(BATCH, "0.0084")
