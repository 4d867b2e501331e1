"""What coordinator and workers tell each other: answers, and notices to all in a part of the run of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pipeline import errors
from pipeline.clock import Clock, iso, parse_iso
from pipeline.engine.events import Emitter
from pipeline.engine.retry import CoolDown
from pipeline.engine.stop import Stop
from pipeline.errors import ExecutorLost, Pause, PipelineError, StoreError
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import FleetTold
from pipeline.records.lines import encode_line
from pipeline.records.run import NOTICES
from pipeline.store.base import Store
from pipeline.store.parts import own_part, part_records

#: How a worker left a task: its end is recorded in its part; its next call needs more room under the ceiling (`spent`,
#: `worst`); the run must pause (`detail`, `error`); the part is closed; the worker cannot do it (`error`).
ENDED, NEEDS, PAUSED, CLOSED, REFUSED = "ended", "needs", "paused", "closed", "refused"

Answer = dict[str, Any]


def paused(pause: Pause) -> Answer:
    """Return the answer to a pause."""
    return {"how": PAUSED, "detail": pause.detail, "error": error_json(pause.cause)}


def refused(error: PipelineError) -> Answer:
    """Return the answer of a worker that cannot do the task."""
    return {"how": REFUSED, "error": error_json(error)}


def error_json(error: PipelineError) -> dict[str, Any]:
    """Return an error as JSON; data that is not JSON is left out."""
    data = {}
    for key, value in error.data.items():
        with suppress(TypeError, ValueError):
            json.dumps(value)
            data[key] = value
    words = {"code": error.code, "message": error.message, "hint": error.hint}
    return {"type": type(error).__name__, **words, "data": data}


def error_of(found: Mapping[str, Any]) -> PipelineError:
    """Return the error of an answer."""
    kind = getattr(errors, str(found.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, PipelineError)):
        kind = PipelineError
    words = {name: str(found.get(name, "")) for name in ("message", "code", "hint")}
    return kind(**words, **dict(found.get("data") or {}))


#: What dask gives where a task was on several workers, and each of them died.
_KILLED = "KilledWorker"


def why_lost(task: str, error: BaseException) -> PipelineError:
    """Return the error that stops the run where an executor loses a task; what the task recorded is kept."""
    if isinstance(error, PipelineError):
        return error
    hint = "Start it again, then resume: nothing that was recorded is paid again."
    if type(error).__name__ == _KILLED:
        number = getattr(error, "allowed_failures", 0) + 1
        return ExecutorLost(
            f"{task} has killed every worker that ran it ({number} so far).", code="worker_killed", task=task,
            hint="It crashes the worker or exceeds its memory; fix that, then resume: nothing recorded is paid again.",
        )  # fmt: skip
    if missing := missing_module(error):
        return ExecutorLost(
            f"The workers, or their scheduler, do not find the module {missing} that {task} needs.",
            code="worker_module_missing", task=task,
            hint="Start each of them where it is found (PYTHONPATH=FOLDER …), then resume.",
        )  # fmt: skip
    text = " ".join(str(error).split())[:300]
    why = f"{type(error).__name__}{': ' if text else ''}{text}"
    if isinstance(error, CancelledError):
        why = "it cancelled the task, as it does when its scheduler is gone."
    return ExecutorLost(f"The executor has lost {task}: {why}", code="task_lost", hint=hint, task=task)


def missing_module(error: BaseException | None) -> str | None:
    """Return the module that another process did not find; None if that is not what went wrong."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError):
            return error.name or "of the task"
        error = error.__cause__
    return None


#: Between two looks.
LOOK_SECONDS = 0.25


@dataclass(slots=True)
class Notices:
    """The notices of one run, as one process reads and writes them."""

    _store: Store
    _run: str
    #: Owner mark of the coordinator whose notices count.
    _owner: int
    _clock: Clock
    _lock: threading.Lock = field(default_factory=threading.Lock)
    #: Seq of the last one that was read, and when it was looked for one.
    _read: int = 0
    _looked: float = float("-inf")

    def tell(self, *, seconds: float = 0.0, reason: str = "", stop: bool = False) -> None:
        """Leave a notice; that it could not be left is no fault of the work."""
        until = iso(self._clock.now() + timedelta(seconds=seconds)) if seconds > 0 else ""
        fact = FleetTold(until, reason, self._owner if stop else 0)
        with suppress(StoreError):
            journal = own_part(self._store, self._run, NOTICES, self._clock)
            try:
                seq = journal.last_seq + 1
                journal.append(seq, [encode_line(seq, self._clock.stamp(), seq, encode_fact(fact))])
            finally:
                journal.close()

    def news(self) -> tuple[float, str, bool]:
        """Return what is new since the last look: seconds to wait from now (0: none), why, and whether to stop."""
        with self._lock:
            now = self._clock.monotonic()
            if now - self._looked < LOOK_SECONDS:
                return 0.0, "", False
            self._looked = now
            seconds, reason, stop = 0.0, "", False
            for record in part_records(self._store, self._run, NOTICES, self._read):
                self._read = record.seq
                fact = record.fact
                if not isinstance(fact, FleetTold):
                    continue
                stop = stop or bool(self._owner and fact.stop == self._owner)
                left = _left(self._clock, fact.until)
                if left > seconds:
                    seconds, reason = left, fact.reason
            return seconds, reason, stop


def _left(clock: Clock, until: str) -> float:
    try:
        return (parse_iso(until) - clock.now()).total_seconds() if until else 0.0
    except ValueError:
        return 0.0


class HeardStop(Stop):
    """A stop that also reads the notices before anything is begun or waited for."""

    def __init__(self, clock: Clock, notices: Notices) -> None:
        super().__init__(clock)
        self.notices = notices
        self._cool: Callable[[float, str], None] | None = None
        #: Until when no call may leave, and why: also what is heard before there are calls.
        self._until, self._reason = 0.0, ""

    def pass_to(self, cool: Callable[[float, str], None]) -> None:
        """Call `cool(seconds, reason)` with how long no call may leave, now and whenever that is extended."""
        self._cool = cool
        self._pass_on()

    def check(self) -> None:
        self._hear()
        super().check()

    def rest(self, seconds: float) -> None:
        """See Stop.rest; in pieces, so that notices are read meanwhile."""
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0 and not self.asked:
            self._hear()
            super().rest(min(left, LOOK_SECONDS))
        self.check()

    def _hear(self) -> None:
        if self.asked:
            return
        seconds, reason, stop = self.notices.news()
        if stop:
            self.request("interrupted", PipelineError("The run is stopping.", code="run_interrupted"))
        elif (until := self._clock.monotonic() + seconds) > self._until and seconds > 0:
            self._until, self._reason = until, reason
            self._pass_on()

    def _pass_on(self) -> None:
        if self._cool is not None and (left := self._until - self._clock.monotonic()) > 0:
            self._cool(left, self._reason)


class SharedCoolDown(CoolDown):
    """A cool-down that holds for all who work on a run."""

    def __init__(self, clock: Clock, stop: Stop, emit: Emitter, notices: Notices) -> None:
        super().__init__(clock, stop, emit)
        self._notices = notices

    def extend(self, seconds: float, reason: str) -> None:
        """See CoolDown.extend; the others get a notice."""
        before = self._until
        super().extend(seconds, reason)
        if self._until > before:
            self._notices.tell(seconds=seconds, reason=reason)

    def hear(self, seconds: float, reason: str) -> None:
        """Wait as another process was asked to."""
        super().extend(seconds, reason)
