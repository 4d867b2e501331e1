"""What a listing says of a checkpoint, and where it stands among all others: by order, never by its timestamp."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where a checkpoint is recorded; the greater one is newer."""

    #: Grows within a run whatever the clock does; over runs it follows the clock.
    order: int
    run_id: str
    seq: int


#: Of a row that is recorded nowhere yet.
NOWHERE = Place(0, "", 0)


class Row(NamedTuple):
    """The metadata of one checkpoint."""

    id: str
    runId: str
    graphId: str
    nodeId: str
    #: Unix epoch milliseconds.
    timestamp: float
    #: Bytes of the JSON text of `state`.
    stateSize: int
    hasMemorySnapshot: bool
    place: Place = NOWHERE

    def to_json(self) -> dict[str, Any]:
        """The row, under the names it is printed with."""
        return {name: value for name, value in self._asdict().items() if name != "place"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], place: Place) -> Row:
        """The row of a record."""
        return cls(**{name: data[name] for name in cls._fields if name != "place"}, place=place)


def row_of(document: Mapping[str, Any], place: Place = NOWHERE) -> Row:
    """The row of a document."""
    return Row(
        document["id"], document["runId"], document["graphId"], document["nodeId"], document["timestamp"],
        state_size(document["state"]), document.get("memorySnapshot") is not None, place,
    )  # fmt: skip


def state_size(state: Any) -> int:
    """How many bytes the state takes as JSON in UTF-8."""
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-8", "surrogatepass"))


def order_at(moment: datetime) -> int:
    """The order of what happens at a moment where nothing came before."""
    return int(moment.timestamp() * 1000) * 1000
