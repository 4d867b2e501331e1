"""What a run's events add up to, and the plain lines that show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pipeline.app.words import count, duration, money, one_line, pairs, with_unpriced
from pipeline.cli.text import heading, warn
from pipeline.engine.events import Event, Listener
from pipeline.records.charge import in_full
from pipeline.records.run import error_text, item_name

Data = Mapping[str, Any]


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
    #: What is waited for ("429, until 14:05"); "" if nothing.
    waiting: str = ""
    #: The map has begun before in this step: its body was run again after a batch.
    repeated: bool = False
    #: Visits being made now; the last that began; whether what ended has another title above it, so needs its name.
    running: set[str] = field(default_factory=set)
    title: str = ""
    at_once: bool = False
    _maps: set[str] = field(default_factory=set)
    #: Calls by seq that have begun, so that an unmatched end does not count down.
    _open: set[Any] = field(default_factory=set)

    @property
    def spent(self) -> Decimal:
        """Return the USD of the whole run."""
        return self.before + self.since

    @property
    def spent_text(self) -> str:
        """Return the same for people."""
        return with_unpriced(money(self.spent), self.unpriced)

    @property
    def done(self) -> int:
        """Return items that need no more work in this start."""
        return self.restored + self.made + self.failed

    @property
    def in_flight(self) -> int:
        """Return calls that are out."""
        return len(self._open)

    def apply(self, kind: str, data: Data) -> None:
        """Count one event; unknown ones change nothing."""
        if handler := _COUNTERS.get(kind):
            handler(self, data)

    def _resumed(self, data: Data) -> None:
        self.before = _usd(data.get("spent_usd"))
        self.unpriced = data.get("unpriced_calls", 0)

    def _step_started(self, data: Data) -> None:
        self.title = str(data.get("path", ""))
        self.running.add(self.title)
        self.step, self.index, self.total = str(data.get("step", "")), data.get("index", 0), data.get("total", 0)
        self.map, self.items, self.restored, self.made, self.failed = "", 0, 0, 0, 0
        self.waiting = ""
        self._maps.clear()

    def _step_ended(self, data: Data) -> None:
        path = str(data.get("path", ""))
        self.at_once = len(self.running) > 1 or path != self.title
        self.running.discard(path)

    def _map_started(self, data: Data) -> None:
        name = str(data.get("name", ""))
        self.repeated = name in self._maps
        if self.repeated and name == self.map:
            return
        self._maps.add(name)
        self.map, self.items = name, data.get("total", 0)
        self.restored, self.made, self.failed = data.get("restored", 0), 0, data.get("failed", 0)

    def _task_completed(self, data: Data) -> None:
        if data.get("name", self.map) == self.map and not data.get("restored"):
            self.made += 1
        self.waiting = ""

    def _task_failed(self, data: Data) -> None:
        if data.get("name", self.map) == self.map:
            self.failed += 1

    def _call_started(self, data: Data) -> None:
        self._open.add(data.get("call"))
        self.waiting = ""

    def _call_ended(self, data: Data) -> None:
        self._open.discard(data.get("call"))
        low = _usd(data.get("usd"))
        self.since += low
        self.unpriced += data.get("state") == "unpriced"
        if data.get("usd_high") is not None:
            self.possibly += _usd(data["usd_high"]) - low
        self.tokens += sum(data.get("tokens", {}).values())

    def _is_waiting(self, data: Data) -> None:
        until = str(data.get("until") or "")
        clock = f", until {until[11:19].removesuffix('Z')} UTC" if len(until) >= 16 else ""
        self.waiting = f"{data.get('reason', '')}{clock}"

    def _batch_waiting(self, data: Data) -> None:
        expires = str(data.get("expires_at") or "")[:16].replace("T", " ")
        waiting = f"batch {data.get('batch', '')}, until {expires} UTC at the latest"
        self.waiting = "" if data.get("ended") else waiting


_COUNTERS: Mapping[str, Callable[[Tally, Data], None]] = {
    "run_resumed": Tally._resumed,
    "step_started": Tally._step_started,
    "step_completed": Tally._step_ended,
    "step_failed": Tally._step_ended,
    "map_started": Tally._map_started,
    "task_completed": Tally._task_completed,
    "task_failed": Tally._task_failed,
    "call_started": Tally._call_started,
    "call_ended": Tally._call_ended,
    "waiting": Tally._is_waiting,
    "batch_waiting": Tally._batch_waiting,
}


def _usd(value: Any) -> Decimal:
    return Decimal(str(value)) if value is not None else Decimal(0)


# --- events as lines ------------------------------------------------------------------------------


def lines_of(kind: str, data: Data, tally: Tally) -> list[str]:
    """Return the lines to print for an event, after `tally` has counted it; most events need none."""
    maker = _MAKERS.get(kind)
    return maker(data, tally) if maker else []


def banner(data: Data) -> str:
    """Return RESUMING PIPELINE, as users of the checkpoint documentation know it."""
    return heading(
        f"RESUMING PIPELINE: {data.get('pipeline', '')}",
        f"Run ID: {data.get('run', '')}",
        *(f"{label}: {data[name]}" for label, name in (("Subject", "subject"), ("Level", "level")) if data.get(name)),
        f"Last completed: {data.get('last_completed') or '-'}",
        f"Resuming from: {data.get('resuming_from') or '-'}",
    )


def outputs_text(outputs: Data) -> str:
    """Return outputs on one line: `course_id course_c84775, outcomes_created 42`."""
    return one_line(pairs(outputs), 160)


def _decided(word: str) -> Callable[[Data, Tally], list[str]]:
    def make(data: Data, _: Tally) -> list[str]:
        reason = f"({data['reason']})" if data.get("reason") else ""
        return [" ".join(filter(None, (word, str(data.get("run", "")), reason)))]

    return make


def _plan(data: Data, _: Tally) -> list[str]:
    ceiling, worst, expected = data.get("ceiling_usd"), data.get("worst_usd"), data.get("expected_usd")
    limit = "none" if ceiling is None else in_full(Decimal(str(ceiling)))
    at_worst = money(worst)
    if ceiling is not None and (worst is None or Decimal(str(worst)) > Decimal(str(ceiling))):
        at_worst = f"{limit} (the ceiling)"
    cost = f"Expected cost: {money(expected)}, at worst {at_worst}"
    if None not in (expected, ceiling) and Decimal(str(expected)) > Decimal(str(ceiling)):
        cost = (f"Expected cost: {money(expected)}, more than {at_worst}: the run will probably stop there before it "
                "is complete, and can be resumed")  # fmt: skip
    option = "" if ceiling is None else " (--max-cost-usd)"
    return [f"Model: {data.get('model', '')}", cost, f"Ceiling: {limit}{option}", ""]


def _which(data: Data) -> str:
    """Return what tells a visit from others of its node, and from nodes beside it: `#2`, the branch of a fan-out."""
    number, branch = str(data.get("path") or "").rpartition("#")[2], data.get("branch")
    visit = f"#{number}" if number.isdecimal() and number != "1" else ""
    return visit + (f" (branch {branch})" if branch and branch != data.get("step") else "")


def _name(data: Data, tally: Tally) -> str:
    """Return the visit that has ended, where others run beside it."""
    return f"{data.get('step', '')}{_which(data)}: " if tally.at_once else ""


def _step_started(data: Data, _: Tally) -> list[str]:
    title = f"Step {data.get('index')}/{data.get('total')}: {str(data.get('step', '')).upper()}{_which(data)}"
    return [title, "  ⏳ In progress..."]


def _step_completed(data: Data, tally: Tally) -> list[str]:
    usd = data.get("usd")
    cost = "" if usd is None else f", {with_unpriced(money(usd), data.get('unpriced_calls', 0))}"
    outputs = outputs_text(data.get("outputs") or {})
    return [f"  ✓ {_name(data, tally)}{duration(data.get('seconds'))}{cost}" + (f": {outputs}" if outputs else "")]


def _step_failed(data: Data, tally: Tally) -> list[str]:
    again = data.get("again")
    more = "" if again is None else f" (retrying in {duration(again)})"
    return [f"  ✗ {_name(data, tally)}{one_line(_message(data.get('error')))}{more}"]


def _map_started(data: Data, tally: Tally) -> list[str]:
    if data.get("total", 0) < 2 or tally.repeated:
        return []
    restored, failed = data.get("restored", 0), data.get("failed")
    note = f", {restored:,} already made" if restored else ""
    note += f", {failed:,} already failed" if failed else ""
    return [f"  {data.get('name', '')}: {count(data.get('total', 0), 'item')}{note}"]


def _task_completed(data: Data, tally: Tally) -> list[str]:
    if data.get("restored") or data.get("name", tally.map) != tally.map or tally.items < 2:
        return []
    return [f"  {_item(data, tally)} · {tally.done} of {tally.items} · {tally.spent_text}"]


def _item(data: Data, tally: Tally) -> str:
    """Return `lessons/7`, `sow/entry/7`: the name that `show` and `redo` take."""
    name, path = str(data.get("name", tally.map)), str(data.get("path") or tally.step)
    return item_name(path, f"{name}/{data.get('key', '')}")


def _batch_submitted(data: Data, _: Tally) -> list[str]:
    until = str(data.get("expires_at") or "")[:16].replace("T", " ")
    return [f"  batch {data.get('batch', '')}: {count(data.get('requests', 0), 'request')}, answered by {until} UTC"]


def _decision_asked(data: Data, _: Tally) -> list[str]:
    choices = ", ".join(str(choice) for choice in data.get("choices") or ())
    return [f"  ? {one_line(data.get('text', ''), 300)}" + (f" ({choices})" if choices else "")]


def _decision(data: Data, _: Tally) -> list[str]:
    return [f"  → {one_line(data.get('choice', ''), 200)}" + (f", by {data['by']}" if data.get("by") else "")]


def _stopping(data: Data, _: Tally) -> list[str]:
    calls = data.get("calls", 0)
    waits = f"; {count(calls, 'call')} in flight, at most {money(data.get('worst_usd'))}, will be recorded"
    out = f" {data['out']}" if data.get("out") else ""
    return [
        f"Stopping ({data.get('signal', '')}){waits if calls else ''}.{out} Press Ctrl-C again to quit immediately."
    ]


def _leaving(data: Data, _: Tally) -> list[str]:
    kept = [f"Kept: records not yet saved in the store, in {data['kept']}"] if data.get("kept") else []
    return [f"Quit immediately; run {data.get('run', '')} is saved.", *kept, f"Resume: {data.get('command', '')}"]


def _note(data: Data, _: Tally) -> list[str]:
    return [one_line(data.get("text", ""), 1000)]


def _message(error: Any) -> str:
    return error_text(error) if isinstance(error, Mapping) else str(error or "")


_MAKERS: Mapping[str, Callable[[Data, Tally], list[str]]] = {
    "run_new": lambda data, _: [
        f"Starting a new run ({data['reason']})" if data.get("reason") else "Starting a new run"
    ],
    "run_continuing": _decided("continuing"),
    "run_already_completed": _decided("already completed"),
    "run_resumed": lambda data, _: [banner(data), ""],
    "run_started": lambda data, _: [f"Run {data.get('run', '')}"],
    "stopping": _stopping,
    "leaving": _leaving,
    "plan": _plan,
    "step_started": _step_started,
    "step_completed": _step_completed,
    "step_failed": _step_failed,
    "map_started": _map_started,
    "task_completed": _task_completed,
    "task_failed": lambda data, tally: [f"  ✗ {_item(data, tally)}: {one_line(_message(data.get('error')), 200)}"],
    "waiting": lambda _, tally: [f"  waiting: {tally.waiting}"],
    "batch_submitted": _batch_submitted,
    "batch_ended": lambda data, tally: [f"  batch {data.get('batch', '')}: answered · {tally.spent_text}"],
    "decision_asked": _decision_asked,
    "decision": _decision,
    "note": _note,
    "looking": _note,
}


# --- the least of all displays ----------------------------------------------------------------------


class Quiet:
    """Show warnings only, on stderr; the command prints the end. Base of all displays, the listeners of a run."""

    def __call__(self, event: Event) -> None:
        """Show one event.

        Raises:
            OSError: Nothing reads any more; the run goes on without this display.
        """
        if event.type in ("note", "stopping", "leaving"):
            for line in lines_of(event.type, event.data, Tally()):
                warn(line)

    def close(self) -> None:
        """Show nothing more."""

    def beside(self, listener: Listener) -> Listener:
        """Return a listener that does as well what this one does unseen: nothing, as a rule."""
        return listener

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the screen alone meanwhile, for a question."""
        yield
