"""The coordinator of tasks on an executor: hands them out as far as the ceiling has room, takes in how they ended.

What a task may spend is granted before it is handed out. What a task will ask is not known beforehand, so its first
grant is what others have needed; a worker whose next call does not fit comes back, and continues with a larger grant
once there is room: its recorded replies answer it for free.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from pipeline.engine.call_setup import at_once
from pipeline.engine.ceiling import Ceiling, Room
from pipeline.engine.map_runner import MapRunner, spent_in_part
from pipeline.engine.remote.messages import CLOSED, ENDED, NEEDS, REFUSED, Answer, Notices, error_of, why_lost
from pipeline.engine.remote.parcels import packed, plain_url, reference
from pipeline.engine.remote.worker import run_task
from pipeline.engine.setup import ActiveRun, Definition, Setup, recorded
from pipeline.engine.sources import Scope
from pipeline.engine.tasks import Work
from pipeline.errors import ConfigError, Pause, StoreError
from pipeline.records.kinds import FORMAT, CallEnded, TaskSubmitted
from pipeline.records.values import encode_value, is_typed
from pipeline.store.address import parse_store_url
from pipeline.store.parts import part_records

#: Executors whose workers are this process or its children.
_NEAR = (ThreadPoolExecutor, ProcessPoolExecutor)
#: Where workers find the function that opens a store; the engine itself knows protocols only.
_OPENER = {"module": "pipeline.store.url", "name": "open_store"}
_SHARED_HINT = "Use --store sqlite:FILE (workers on this host), postgresql://… or s3://… (anywhere)."
#: Between two looks at stop, notices and the ceiling.
_TICK_SECONDS = 0.2
#: Between two looks which tasks have no worker.
_CANCEL_SECONDS = 1.0
_NOTHING = Decimal(0)


def maps_on(
    executor: Executor, store_url: str, definition: Definition, setup: Setup
) -> Callable[[ActiveRun], MapRunner]:
    """Return what Setup.map_runner must be, so that maps go to an executor.

    Raises:
        ConfigError: The workers cannot share the store, or cannot be sent what the tasks need.
    """
    check_options(setup.options)
    check_store(store_url, near=isinstance(executor, _NEAR))
    spec = {"store": plain_url(store_url), "opener": _OPENER, "tools": packed(definition, setup)}
    return lambda running: Coordinator(running, executor, spec)


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what tasks elsewhere cannot do.

    Raises:
        ConfigError: Batches gather what all tasks ask in one process.
    """
    if options.get("batch"):
        raise ConfigError(
            "--batch gathers the requests of all tasks in one process, so it cannot be combined with --executor.",
            code="batch_with_executor", hint="Omit one of them.",
        )  # fmt: skip


def check_store(url: str, *, near: bool) -> None:
    """Refuse a store that workers cannot share.

    Args:
        near: The workers are processes that this one has begun.

    Raises:
        ConfigError: They cannot; names the stores that can be shared.
    """
    named, why = parse_store_url(url or "memory:"), ""
    if named.single:
        why = "A store with ?single=1 serves one process; workers cannot share it."
    elif named.scheme == "memory":
        why = "A memory: store is this process's own; workers cannot share it."
    elif named.scheme == "files" and not near:
        why = (
            "A file store belongs to processes of one host: its locks are the kernel's, and mean nothing to workers "
            "that an executor may have anywhere."
        )
    if why:
        raise ConfigError(why, code="store_not_shared", hint=_SHARED_HINT)


class Coordinator(MapRunner):
    """All that one owner of a run hands out."""

    def __init__(self, running: ActiveRun, executor: Executor, spec: Mapping[str, Any]) -> None:
        """Hand out nothing yet.

        Args:
            spec: What each worker is told of store and tools.
        """
        super().__init__(running)
        self.executor = executor
        self.spec = spec
        state = running.recorder.state
        #: Maps whose items are done here, and the reason was reported.
        self._noted: set[str] = set()
        self.notices = Notices(running.store, state.run_id, state.owner, running.clock)

    def takes(self, parent: Scope, work: Work) -> bool:
        """Return whether these items are done elsewhere: those of a map, in a step; a single task is done here."""
        if work.single or parent.task is not None or work.lineage is None:
            return False
        try:
            reference(work.body, f"map {work.name!r}")
            for kind in filter(is_typed, {type(item) for item in work.items}):
                reference(kind, f"the items of map {work.name!r}")
        except ConfigError as error:
            if work.name not in self._noted:
                self._noted.add(work.name)
                self.running.emit.note(f"{error.message} So its items run in this process. {error.hint}")
            return False
        return True

    def do(self, parent: Scope, seen: Mapping[str, Any], work: Work, todo: Sequence[int]) -> None:
        _RemoteMap(self, self.running, parent, seen, work).run(todo)


@dataclass(slots=True)
class _RemoteTask:
    """One task on its way to an end."""

    index: int
    name: str
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
class _RemoteMap:
    """The items of one map."""

    coordinator: Coordinator
    running: ActiveRun
    parent: Scope
    seen: Mapping[str, Any]
    work: Work
    #: Tasks with a worker, and those that wait to be handed out.
    out: dict[Future[Answer], _RemoteTask] = field(default_factory=dict)
    waiting: deque[_RemoteTask] = field(default_factory=deque)
    #: The most that the calls of one task needed so far.
    usual: Decimal = _NOTHING
    told_stop: bool = False
    #: When a run that stops looks next which of its tasks have no worker.
    cancels_at: float = 0.0
    #: What workers know of the run.
    base: int = 0
    spec: dict[str, Any] = field(default_factory=dict)

    def run(self, todo: Sequence[int]) -> None:
        """Return when all have ended and are durable.

        Raises:
            Pause: The run is stopping.
        """
        running = self.running
        # The same for all, so that a worker works out the run's state once.
        self.base = running.recorder.state.seq
        self.spec = self._common()
        items = deque(map(self._remote_task, todo))
        if self.work.warm and len(items) > 1:
            self._first(items.popleft())
        most = at_once(running.options)
        while items or self.waiting or self.out:
            while not running.stop.asked and len(self.out) < most and (self.waiting or items):
                if not self._hand_out((self.waiting or items).popleft()):
                    break
            if running.stop.asked and not self.out:
                break
            self._look()
        for task in (*self.waiting, *self.out.values()):
            self._give_back(task)
        running.recorder.sync()
        running.stop.check()

    def _common(self) -> dict[str, Any]:
        """Return what all tasks of the map are told alike."""
        running, work, lineage = self.running, self.work, self.work.lineage
        assert lineage is not None
        state = running.recorder.state
        return {
            **self.coordinator.spec, "format": FORMAT, "run": state.run_id, "owner": state.owner,
            "path": self.parent.path, "step_attempt": self.parent.attempt, "node": lineage.node,
            "visit": lineage.visit, "consumed": [list(token) for token in lineage.consumed], "map": work.name,
            "version": work.version, "body": reference(work.body, f"map {work.name!r}"),
            "options": recorded(running.options), "seen": json.loads(encode_value(dict(self.seen), "context")),
        }  # fmt: skip

    def _remote_task(self, index: int) -> _RemoteTask:
        """Return the task of an item; one that an earlier owner handed out continues in its part."""
        running, name = self.running, self.work.names[index]
        key = (self.parent.path, name)
        with running.recorder.reading() as state:
            task = _RemoteTask(index, name, state.attempts.get(key, 1))
            known = state.submitted.get(key)
        if known is not None:
            task.part, task.base = known.part, known.base
            task.room, task.usd = running.held.pop(key, None), known.usd
            task.spent = spent_in_part(running.store, running.recorder.state.run_id, known.part)
        return task

    @property
    def _ceiling(self) -> Ceiling | None:
        caller = self.running.caller
        return None if caller is None or caller.ledger.ceiling.limit is None else caller.ledger.ceiling

    def _hand_out(self, task: _RemoteTask) -> bool:
        """Grant room and submit; return False where there is no room now, and it waits."""
        ceiling = self._ceiling
        if ceiling is None or task.room is not None:
            # Room that an earlier owner granted, a worker may be using.
            self._submit(task, self._record(task, None if ceiling is None else task.usd))
            return True
        least = _NOTHING if task.worst is None else task.worst
        for amount in dict.fromkeys((max(self.usual - task.spent, least), least)):
            usd = task.spent + amount
            found = ceiling.enter_if_room(amount, partial(self._record, task, usd), of_store=False)
            if found is not None:
                task.room = found[1]
                self._submit(task, found[0])
                return True
        self.waiting.appendleft(task)
        if not self.out:
            self._refuse(task.worst)
        return False

    def _refuse(self, worst: Decimal | None) -> None:
        assert self._ceiling is not None
        # The reason is kept by the stop; what is out ends first.
        with suppress(Pause):
            self._ceiling.refuse(worst)

    def _record(self, task: _RemoteTask, usd: Decimal | None) -> int:
        if not task.part:
            task.base = self.base
        seq = self.running.recorder.append(TaskSubmitted(
            self.parent.path, task.name, task.part, task.base, task.attempt, None if usd is None else str(usd)
        ))  # fmt: skip
        task.part = task.part or f"task-{seq}"
        task.usd = usd
        return seq

    def _submit(self, task: _RemoteTask, seq: int) -> None:
        item, usd = self.work.items[task.index], task.usd
        spec = {
            **self.spec, "task": task.name, "part": task.part, "base": task.base, "attempt": task.attempt,
            "key": self.work.key(task.index), "usd": None if usd is None else str(usd), "submitted": seq,
            "item": json.loads(encode_value(item, f"{task.name} item")),
            "form": reference(type(item), task.name) if is_typed(type(item)) else None,
            "labels": self.running.recorder.state.labels,
        }  # fmt: skip
        try:
            self.out[self.coordinator.executor.submit(run_task, spec)] = task
        except Exception as error:
            self._give_back(task)
            self.running.stop.request("interrupted", why_lost(task.name, error))

    def _first(self, task: _RemoteTask) -> None:
        """Hand out one alone, until its first reply is recorded or it has ended."""
        if not self._hand_out(task):
            return
        store, run = self.running.store, self.running.recorder.state.run_id
        while self.out and not self.running.stop.asked:
            self._look()
            if any(isinstance(record.fact, CallEnded) for record in part_records(store, run, task.part)):
                return
            if self.waiting and not self.out:
                self._hand_out(self.waiting.popleft())

    def _look(self) -> None:
        """Wait a moment; take in what has ended, and the notices to all."""
        running, notices = self.running, self.coordinator.notices
        if self.out:
            done, _ = wait(self.out, timeout=_TICK_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                self._settle(self.out.pop(future), future)
        seconds, reason, _ = notices.news()
        if seconds > 0 and running.caller is not None:
            running.caller.cool_down.extend(seconds, reason)
        if running.stop.asked and not self.told_stop:
            self.told_stop = True
            notices.tell(stop=True)
        if running.stop.asked and running.clock.monotonic() >= self.cancels_at:
            self.cancels_at = running.clock.monotonic() + _CANCEL_SECONDS
            self._cancel_free()

    def _cancel_free(self) -> None:
        """Cancel the tasks of a run that stops which have no worker: none came, or it died."""
        for future, task in list(self.out.items()):
            if self._is_free(task.part) and future.cancel():
                del self.out[future]
                self._take_in(task)
                self._give_back(task)

    def _is_free(self, part: str) -> bool:
        """Return whether no living worker owns a part. One that comes to it now sees the stop, and begins nothing."""
        try:
            self.running.store.open(f"{self.running.recorder.state.run_id}/{part}").close()
        except StoreError:
            return False
        return True

    def _settle(self, task: _RemoteTask, future: Future[Answer]) -> None:
        """Act on a worker's answer; what counts is recorded in the part."""
        error = CancelledError() if future.cancelled() else future.exception()
        self._take_in(task)
        self._give_back(task)
        if error is not None:
            self.running.stop.request("interrupted", why_lost(task.name, error))
            return
        answer = future.result()
        how = answer["how"]
        if how == ENDED:
            self.usual = max(self.usual, task.usd or _NOTHING)
        elif how == NEEDS and answer["worst"] is None:
            self._refuse(None)
        elif how == NEEDS:
            task.spent, task.worst = Decimal(answer["spent"]), Decimal(answer["worst"])
            self.usual = max(self.usual, task.spent + task.worst)
            self.waiting.append(task)
        elif how == CLOSED:
            task.part, task.read, task.spent = "", 0, _NOTHING
            self.waiting.append(task)
        else:
            cause = error_of(answer["error"])
            detail = "interrupted" if how == REFUSED or isinstance(cause, StoreError) else str(answer["detail"])
            self.running.stop.request(detail, cause)

    def _take_in(self, task: _RemoteTask) -> None:
        running, path = self.running, self.parent.path
        work, name = self.work.name, task.name
        with running.recorder.reading() as state:
            if (path, name) not in state.submitted:
                return

        def tell() -> None:
            done, key = running.recorder.state.tasks[path][name], self.work.key(task.index)
            if done.error is None:
                running.emit("task_completed", path=path, name=work, key=key)
            else:
                running.emit("task_failed", path=path, name=work, key=key, error=dict(done.error))

        task.read = self.coordinator.take_in((path, name), task.read, tell)

    def _give_back(self, task: _RemoteTask) -> None:
        if task.room is not None and self.running.caller is not None:
            self.running.caller.ledger.ceiling.leave(task.room, _NOTHING)
            task.room = None
