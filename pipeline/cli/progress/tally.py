"""What the events of one start add up to; the one place where progress is counted. No output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


@dataclass(slots=True)
class Tally:
    """Progress so far; `apply` one event after the other."""

    #: Step being made: id, its number and how many there are.
    step: str = ""
    index: int = 0
    total: int = 0
    #: The map being worked on: name and items by how they ended.
    map: str = ""
    items: int = 0
    restored: int = 0
    made: int = 0
    failed: int = 0
    #: Spent before this start (USD, exact), and since.
    before: Decimal = Decimal(0)
    since: Decimal = Decimal(0)
    #: What open intervals may add to `since`.
    possibly: Decimal = Decimal(0)
    #: Calls of the whole run whose price is not known.
    unpriced: int = 0
    tokens: int = 0
    #: Calls that are out.
    in_flight: int = 0
    #: What is waited for ("429, until 14:05"); "" if nothing.
    waiting: str = ""
    #: The map has begun before in this step: its body was run again after a batch.
    repeated: bool = False
    #: Visits being made now; the last that began; whether what ended stands under another's title, so says its name.
    running: set[str] = field(default_factory=set)
    title: str = ""
    at_once: bool = False
    _maps: set[str] = field(default_factory=set)
    #: Calls by seq that have begun, so that an unmatched end does not count down.
    _open: set[Any] = field(default_factory=set)

    @property
    def spent(self) -> Decimal:
        """USD of the whole run."""
        return self.before + self.since

    @property
    def done(self) -> int:
        """Items that need no more work in this start."""
        return self.restored + self.made + self.failed

    def apply(self, kind: str, data: Mapping[str, Any]) -> None:
        """Count one event; unknown ones change nothing."""
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, data)


def _resumed(tally: Tally, data: Mapping[str, Any]) -> None:
    tally.before = _usd(data.get("spent_usd"))
    tally.unpriced = data.get("unpriced_calls", 0)


def _step_ended(tally: Tally, data: Mapping[str, Any]) -> None:
    path = str(data.get("path", ""))
    tally.at_once = len(tally.running) > 1 or path != tally.title
    tally.running.discard(path)


def _step_started(tally: Tally, data: Mapping[str, Any]) -> None:
    tally.title = str(data.get("path", ""))
    tally.running.add(tally.title)
    tally.step, tally.index, tally.total = str(data.get("step", "")), data.get("index", 0), data.get("total", 0)
    tally.map, tally.items, tally.restored, tally.made, tally.failed = "", 0, 0, 0, 0
    tally.waiting = ""
    tally._maps.clear()


def _map_started(tally: Tally, data: Mapping[str, Any]) -> None:
    name = str(data.get("name", ""))
    tally.repeated = name in tally._maps
    if tally.repeated and name == tally.map:
        return
    tally._maps.add(name)
    tally.map, tally.items = name, data.get("total", 0)
    tally.restored, tally.made, tally.failed = data.get("restored", 0), 0, data.get("failed", 0)


def _task_completed(tally: Tally, data: Mapping[str, Any]) -> None:
    if data.get("name", tally.map) == tally.map and not data.get("restored"):
        tally.made += 1
    tally.waiting = ""


def _task_failed(tally: Tally, data: Mapping[str, Any]) -> None:
    if data.get("name", tally.map) == tally.map:
        tally.failed += 1


def _call_started(tally: Tally, data: Mapping[str, Any]) -> None:
    tally._open.add(data.get("call"))
    tally.in_flight = len(tally._open)
    tally.waiting = ""


def _call_ended(tally: Tally, data: Mapping[str, Any]) -> None:
    tally._open.discard(data.get("call"))
    tally.in_flight = len(tally._open)
    low = _usd(data.get("usd"))
    tally.since += low
    tally.unpriced += data.get("state") == "unpriced"
    if data.get("usd_high") is not None:
        tally.possibly += _usd(data["usd_high"]) - low
    tally.tokens += sum(data.get("tokens", {}).values())


def _waiting(tally: Tally, data: Mapping[str, Any]) -> None:
    until = str(data.get("until") or "")
    clock = f", until {until[11:19].removesuffix('Z')} UTC" if len(until) >= 16 else ""
    tally.waiting = f"{data.get('reason', '')}{clock}"


def _batch_waiting(tally: Tally, data: Mapping[str, Any]) -> None:
    expires = str(data.get("expires_at") or "")[:16].replace("T", " ")
    waiting = f"batch {data.get('batch', '')}, until {expires} UTC at the latest"
    tally.waiting = "" if data.get("ended") else waiting


def _usd(value: Any) -> Decimal:
    return Decimal(str(value)) if value is not None else Decimal(0)


_HANDLERS = {
    "run_resumed": _resumed,
    "step_started": _step_started,
    "step_completed": _step_ended,
    "step_failed": _step_ended,
    "map_started": _map_started,
    "task_completed": _task_completed,
    "task_failed": _task_failed,
    "call_started": _call_started,
    "call_ended": _call_ended,
    "waiting": _waiting,
    "batch_waiting": _batch_waiting,
}
