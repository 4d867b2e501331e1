"""The coordinator of tasks on an executor: hands them out as far as the ceiling has room, takes in how they ended.

What a task may spend is granted before it is handed out. Nobody knows beforehand what a task will ask, so its first
grant is what others have needed; a worker whose next call does not fit comes back, and goes on with a larger grant
once there is room: its recorded replies answer it for free.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from pipeline.engine.entries import Scope
from pipeline.engine.limits import Ceiling, Room
from pipeline.engine.remote.answers import CLOSED, ENDED, NEEDS, REFUSED, Answer, error_of
from pipeline.engine.remote.fleet import Fleet
from pipeline.engine.remote.lost import why_lost
from pipeline.engine.remote.notices import Notices
from pipeline.engine.remote.references import reference
from pipeline.engine.remote.worker import run_task
from pipeline.engine.running import Running
from pipeline.engine.setup import recorded
from pipeline.engine.spender import at_once
from pipeline.engine.taking_in import spent_in_part, take_in
from pipeline.engine.tasks import Work
from pipeline.errors import ConfigError, Pause, StoreError
from pipeline.records.kinds import FORMAT, CallEnded, TaskSubmitted
from pipeline.records.values import encode_value
from pipeline.store.parts import part_records

#: Between two looks at stop, notices and the ceiling.
_TICK_SECONDS = 0.2
#: Between two looks which tasks nobody works on.
_CALL_BACK_SECONDS = 1.0
_NOTHING = Decimal(0)


class Crew:
    """All that one owner of a run hands out; see running.Crew."""

    def __init__(self, running: Running, fleet: Fleet) -> None:
        self._running = running
        self._fleet = fleet
        state = running.recorder.state
        assert running.store is not None
        #: Maps whose items are done here, and why was said.
        self._noted: set[str] = set()
        self.notices = Notices(running.store, state.run_id, state.owner, running.clock)

    def takes(self, parent: Scope, work: Work) -> bool:
        """Whether these items are done elsewhere: those of a map, in a step; a single task is done here."""
        if work.single or parent.task is not None or work.lineage is None:
            return False
        try:
            reference(work.body, f"map {work.name!r}")
        except ConfigError as error:
            if work.name not in self._noted:
                self._noted.add(work.name)
                self._running.emit("note", text=f"{error.message} So its items are done here. {error.hint}")
            return False
        return True

    def do(self, parent: Scope, seen: Mapping[str, Any], work: Work, names: Sequence[str], todo: Sequence[int]) -> None:
        """See running.Crew.do."""
        _Map(self._running, self._fleet, self.notices, parent, seen, work, names).run(todo)


@dataclass(slots=True)
class _Errand:
    """One task on its way to an end."""

    index: int
    task: str
    attempt: int
    #: Its part and what the worker knows of the run; "": it has none yet.
    part: str = ""
    base: int = 0
    #: What its calls have cost at worst, what the next one needs (None: not known yet), and what they may cost now.
    spent: Decimal = _NOTHING
    worst: Decimal | None = None
    usd: Decimal | None = None
    room: Room | None = None
    #: Last seq of its part that was taken in.
    read: int = 0


@dataclass(slots=True)
class _Map:
    """The items of one map."""

    running: Running
    fleet: Fleet
    notices: Notices
    parent: Scope
    seen: Mapping[str, Any]
    work: Work
    names: Sequence[str]
    #: Errands with a worker, and those that wait to be handed out.
    out: dict[Future[Answer], _Errand] = field(default_factory=dict)
    waiting: deque[_Errand] = field(default_factory=deque)
    #: The most that the calls of one task needed so far.
    usual: Decimal = _NOTHING
    told_stop: bool = False
    #: When a run that stops looks next which of its tasks nobody works on.
    calls_back_at: float = 0.0
    #: What workers know of the run.
    base: int = 0
    spec: dict[str, Any] = field(default_factory=dict)

    def run(self, todo: Sequence[int]) -> None:
        """Return when all have ended and are durable.

        Raises:
            Pause: The run is stopping.
        """
        # The same for all, so that a worker works out the run's state once.
        self.base = self.running.recorder.state.seq
        self.spec = self._common()
        items = deque(self._errand(index) for index in todo)
        if self.work.warm and len(items) > 1:
            self._first(items.popleft())
        most = at_once(self.running.options)
        while items or self.waiting or self.out:
            while not self._stopping and len(self.out) < most and (self.waiting or items):
                if not self._hand_out((self.waiting or items).popleft()):
                    break
            if self._stopping and not self.out:
                break
            self._look()
        self._leave()

    @property
    def _stopping(self) -> bool:
        return self.running.stop.asked

    def _leave(self) -> None:
        for errand in (*self.waiting, *self.out.values()):
            self._give_back(errand)
        self.running.recorder.sync()
        self.running.stop.check()

    def _common(self) -> dict[str, Any]:
        """What all tasks of the map are told alike."""
        running, work, lineage = self.running, self.work, self.work.lineage
        assert lineage is not None
        state = running.recorder.state
        return {
            **self.fleet.spec, "format": FORMAT, "run": state.run_id, "owner": state.owner, "path": self.parent.path,
            "step_attempt": self.parent.attempt, "node": lineage.node, "visit": lineage.visit,
            "consumed": [list(token) for token in lineage.consumed], "map": work.name, "version": work.version,
            "body": reference(work.body, f"map {work.name!r}"), "options": recorded(running.options),
            "seen": json.loads(encode_value(dict(self.seen), "context")),
        }  # fmt: skip

    def _errand(self, index: int) -> _Errand:
        """The task of an item; one that an earlier owner handed out goes on in its part."""
        running, task = self.running, self.names[index]
        key = (self.parent.path, task)
        with running.recorder.reading() as state:
            errand = _Errand(index, task, state.attempts.get(key, 1))
            known = state.submitted.get(key)
        if known is not None:
            errand.part, errand.base = known.part, known.base
            errand.room, errand.usd = running.held.pop(key, None), known.usd
            assert running.store is not None
            errand.spent = spent_in_part(running.store, running.recorder.state.run_id, known.part)
        return errand

    @property
    def _ceiling(self) -> Ceiling | None:
        """The ceiling, where calls have one."""
        caller = self.running.caller
        return None if caller is None or caller.entries.ceiling.limit is None else caller.entries.ceiling

    def _hand_out(self, errand: _Errand) -> bool:
        """Grant room and submit; False: there is no room now, and it waits.

        Raises:
            Pause: There is no room at all, or the disk refused.
        """
        ceiling = self._ceiling
        if ceiling is None:
            self._submit(errand, self._record(errand, None))
            return True
        if errand.room is not None:
            # An earlier owner granted it, and somebody may be using it.
            self._submit(errand, self._record(errand, errand.usd))
            return True
        least = _NOTHING if errand.worst is None else errand.worst
        for amount in dict.fromkeys((max(self.usual - errand.spent, least), least)):
            usd = errand.spent + amount
            found = ceiling.enter_if_room(amount, partial(self._record, errand, usd), day=False)
            if found is not None:
                errand.usd, errand.room = usd, found[1]
                self._submit(errand, found[0])
                return True
        self.waiting.appendleft(errand)
        if not self.out:
            self._refuse(errand.worst)
        return False

    def _refuse(self, worst: Decimal | None) -> None:
        assert self._ceiling is not None
        try:
            self._ceiling.refuse(worst)
        except Pause:
            # It stands in the stop; what is out ends first.
            return

    def _record(self, errand: _Errand, usd: Decimal | None) -> int:
        recorder = self.running.recorder
        if not errand.part:
            errand.base = self.base
        seq = recorder.append(TaskSubmitted(
            self.parent.path, errand.task, errand.part, errand.base, errand.attempt, None if usd is None else str(usd)
        ))  # fmt: skip
        errand.part = errand.part or f"task-{seq}"
        errand.usd = usd
        return seq

    def _submit(self, errand: _Errand, seq: int) -> None:
        item, usd = self.work.items[errand.index], errand.usd
        spec = {
            **self.spec, "task": errand.task, "part": errand.part, "base": errand.base, "attempt": errand.attempt,
            "key": self.work.keys[errand.index], "usd": None if usd is None else str(usd), "submitted": seq,
            "item": json.loads(encode_value(item, f"{errand.task} item")),
        }  # fmt: skip
        try:
            self.out[self.fleet.executor.submit(run_task, spec)] = errand
        except Exception as error:
            self._give_back(errand)
            self.running.stop.request("interrupted", why_lost(errand.task, error))

    def _first(self, errand: _Errand) -> None:
        """Hand out one alone, until its first reply is recorded or it has ended."""
        if not self._hand_out(errand):
            return
        store, run = self.running.store, self.running.recorder.state.run_id
        assert store is not None
        while self.out and not self._stopping:
            self._look()
            if any(isinstance(record.fact, CallEnded) for record in part_records(store, run, errand.part)):
                return
            if self.waiting and not self.out:
                self._hand_out(self.waiting.popleft())

    def _look(self) -> None:
        """Wait a moment; take in what has ended, and what somebody wants all to know."""
        if self.out:
            done, _ = wait(self.out, timeout=_TICK_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                self._settle(self.out.pop(future), future)
        seconds, reason, _ = self.notices.news()
        if seconds > 0 and self.running.caller is not None:
            self.running.caller.cool_down.extend(seconds, reason)
        if self._stopping and not self.told_stop:
            self.told_stop = True
            self.notices.tell(stop=True)
        if self._stopping and self.running.clock.monotonic() >= self.calls_back_at:
            self.calls_back_at = self.running.clock.monotonic() + _CALL_BACK_SECONDS
            self._call_back()

    def _call_back(self) -> None:
        """A run that stops does not wait for tasks that nobody works on: no worker came, or it died over one."""
        for future, errand in list(self.out.items()):
            if self._is_free(errand.part) and future.cancel():
                del self.out[future]
                self._take_in(errand)
                self._give_back(errand)

    def _is_free(self, part: str) -> bool:
        """Whether no living worker owns a part. One that comes to it now hears the stop, and begins nothing."""
        running = self.running
        assert running.store is not None
        try:
            running.store.open(f"{running.recorder.state.run_id}/{part}").close()
        except StoreError:
            return False
        return True

    def _settle(self, errand: _Errand, future: Future[Answer]) -> None:
        """What a worker answered; what counts stands in the part."""
        error = CancelledError() if future.cancelled() else future.exception()
        self._take_in(errand)
        self._give_back(errand)
        if error is not None:
            self.running.stop.request("interrupted", why_lost(errand.task, error))
            return
        answer = future.result()
        how = answer["how"]
        if how == ENDED:
            self.usual = max(self.usual, errand.usd or _NOTHING)
        elif how == NEEDS:
            self._need(errand, answer)
        elif how == CLOSED:
            errand.part, errand.read, errand.spent = "", 0, _NOTHING
            self.waiting.append(errand)
        else:
            cause = error_of(answer["error"])
            detail = "interrupted" if how == REFUSED or isinstance(cause, StoreError) else str(answer["detail"])
            self.running.stop.request(detail, cause)

    def _need(self, errand: _Errand, answer: Answer) -> None:
        if answer["worst"] is None:
            self._refuse(None)
            return
        errand.spent, errand.worst = Decimal(answer["spent"]), Decimal(answer["worst"])
        self.usual = max(self.usual, errand.spent + errand.worst)
        self.waiting.append(errand)

    def _take_in(self, errand: _Errand) -> None:
        key = (self.parent.path, errand.task)
        with self.running.recorder.reading() as state:
            if key not in state.submitted:
                return
        errand.read = take_in(self.running, key, errand.read, self._telling(errand))

    def _telling(self, errand: _Errand) -> Any:
        """Tells of the end of a task once it is durable."""
        running, name, key, path = self.running, self.work.name, self.work.keys[errand.index], self.parent.path

        def tell() -> None:
            done = running.recorder.state.tasks[path][errand.task]
            if done.error is None:
                running.emit("task_completed", path=path, name=name, key=key)
            else:
                running.emit("task_failed", path=path, name=name, key=key, error=dict(done.error))

        return tell

    def _give_back(self, errand: _Errand) -> None:
        if errand.room is not None and self.running.caller is not None:
            self.running.caller.entries.ceiling.leave(errand.room, _NOTHING)
            errand.room = None


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what tasks elsewhere cannot do.

    Raises:
        ConfigError: Batches gather what all tasks ask in one process.
    """
    if options.get("batch"):
        raise ConfigError(
            "--batch gathers the questions of all tasks in one process, so it does not go with --executor.",
            hint="Leave one of them out.",
        )
