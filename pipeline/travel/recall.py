"""The user's memory in a replay: reads are answered as recorded, writes go nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.records.codec import Record
from pipeline.records.kinds import MemoryRead


class Recalled:
    """What a memory answered, query by query in the order of the records; more than that it does not know."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._answers: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
        for record in records:
            if isinstance(record.fact, MemoryRead):
                self._answers.setdefault(record.fact.query, []).append(record.fact.traces)

    def read(self, query: str) -> list[tuple[str, str, float]]:
        """The next recorded answer to a query; the last one again where there are no more."""
        left = self._answers.get(query) or [()]
        traces = left.pop(0) if len(left) > 1 else left[0]
        return [(str(row["id"]), str(row["content"]), float(row["strength"])) for row in traces]

    def write(self, type: str, content: str, scope: str, key: str) -> None:
        """Nothing is remembered."""
