"""Durable tasks: a few workers pull items; what is finished is reused, what failed is tried again."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, overload

from pipeline.engine.bodies import code_of, place_of
from pipeline.engine.contexts import Lineage
from pipeline.engine.setup import UNSAFE, ActiveRun, settled
from pipeline.engine.sources import Scope
from pipeline.engine.stop import pause_if_of_the_store
from pipeline.errors import (
    ConfigError,
    InvalidValue,
    ModelError,
    NeedsConfirmation,
    Pause,
    PipelineError,
    StepFailed,
    Suspended,
    TaskRejected,
)
from pipeline.llm.forms import copied
from pipeline.records.kinds import CHECK, CODE, PROVIDER, Invalidated, TaskCompleted, TaskFailed, TaskStarted
from pipeline.records.redaction import without_keys
from pipeline.records.run import TaskRun, bare, error_text
from pipeline.records.statuses import FAILED
from pipeline.records.values import Plain, canonical, digest, encode_value

_HASH_CHARS = 16
#: Values that a body cannot change.
_SCALARS = (str, int, float, bool, type(None))
#: Names that are listed; of more, only their number.
_MOST_NAMES = 10
#: How alike a name is to one that was meant.
_ALIKE = 0.75
#: Longest error message kept; a page of it says as much as a book.
_MOST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class TaskFailure(Plain):
    """The value of an item that failed, where failed items are skipped."""

    key: str
    #: {"type", "message", "hint"}.
    error: Mapping[str, Any]

    def plain(self) -> Any:
        return {"key": self.key, "error": dict(self.error)}


@dataclass(slots=True)
class Work:
    """One map (or single task) to do."""

    name: str
    items: Sequence[Any]
    body: Callable[[Any, Any], Any]
    #: Makes the body's context for a scope.
    context: Callable[[Scope], Any]
    version: int = 1
    warm: bool = False
    skip_failed: bool = False
    effect: str = "read"
    repeatable: bool = False
    #: One task under its own name, not the items of a map.
    single: bool = False
    #: Hash of the body's source text.
    code: str = ""
    #: Where the step is in the graph; a worker on an executor must know.
    lineage: Lineage | None = None
    #: The recorded name of each item's task, and how many characters of it come before the item's key.
    names: Sequence[str] = ()
    prefix: int = 0

    def key(self, index: int) -> str:
        return self.name if self.single else _unescaped(self.names[index][self.prefix :])


class MapResult(Sequence[Any]):
    """The values in item order, recorded as a list; long ones are read back when they are asked for."""

    def __init__(self, running: ActiveRun, path: str, tasks: Sequence[str]) -> None:
        self._running = running
        self._path = path
        self._tasks = tasks

    def __len__(self) -> int:
        return len(self._tasks)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(len(self))[index]]
        return self._value(self._tasks[index])

    def __iter__(self) -> Iterator[Any]:
        return map(self._value, self._tasks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _value(self, task: str) -> Any:
        """Return the recorded value of a task, or its TaskFailure."""
        sources = self._running.sources
        done = sources.state.tasks[self._path][task]
        if done.status == FAILED:
            return TaskFailure(task, done.error or {})
        return sources.values.at(done.seq) if done.value is None else sources.values.get(json.loads(done.value))


def run(running: ActiveRun, parent: Scope, seen: Mapping[str, Any], work: Work, keys: Iterable[str]) -> Sequence[Any]:
    """Do what is missing, in item order as far as workers are free; return the values.

    Raises:
        ConfigError: Two items have the same key.
        InvalidValue: An item, or the value of one, is not JSON.
        StepFailed: Items failed (after all others were done), unless they may be skipped.
        Pause: The run is stopping; what was finished is recorded.
    """
    path = parent.path
    _name(parent, work, keys)
    names = work.names
    elsewhere = running.maps.takes(parent, work)
    running.maps.settle(path, names, elsewhere=elsewhere)
    work.code = code_of(work.body)
    todo, without = _missing(running, path, work, seen)
    _tell_other_code(running, path, work, todo)
    for index in todo:
        # Before anything is asked for any of them.
        encode_value(work.items[index], f"{names[index]} item")
    restored = len(names) - len(todo) - without
    running.emit("map_started", path=path, name=work.name, total=len(names), restored=restored, failed=without)
    if todo and elsewhere:
        running.maps.do(parent, seen, work, todo)
    elif todo:
        _Pool(running, parent, work, todo).run()
    failed, reads = [], {}
    with running.recorder.reading() as state:
        done = state.tasks.get(path, {})
        for name in names:
            task = done[name]
            if task.status == FAILED:
                failed.append((name, task))
            # Equal read sets are one object.
            reads[id(task.reads)] = task.reads
    if failed and not work.skip_failed:
        raise _step_failed(work.name, len(names), failed)
    # What the bodies read belongs to what the step read.
    for each in reads.values():
        parent.reads.update(each)
    return MapResult(running, path, names)


def _name(parent: Scope, work: Work, keys: Iterable[str]) -> None:
    """Give each item's task its recorded name, unique in the step."""
    start = ("" if parent.task is None else f"{parent.task}/") + _escaped(work.name)
    if not work.single:
        start += "/"
    work.prefix = len(start)
    names = [start] if work.single else [start + _escaped(key) for key in keys]
    work.names = names
    earlier = parent.used.setdefault(start, [])
    taken = set().union(*earlier)
    for index, name in enumerate(names):
        if name in taken:
            what = f"task {work.name!r}" if work.single else f"key {work.key(index)!r} of map {work.name!r}"
            raise ConfigError(f"Duplicate {what} in one step; keys must be unique.", code="duplicate_key")
        taken.add(name)
    earlier.append(names)


def _escaped(key: str) -> str:
    """Return a key as one part of a name: a slash in it must not look like a border."""
    return key.replace("%", "%25").replace("/", "%2F") if "/" in key or "%" in key else key


def _unescaped(text: str) -> str:
    return text.replace("%2F", "/").replace("%25", "%") if "%" in text else text


def _item_hash(item: Any, where: str) -> str:
    return digest(canonical(item, where))[:_HASH_CHARS]


def _missing(running: ActiveRun, path: str, work: Work, seen: Mapping[str, Any]) -> tuple[Sequence[int], int]:
    """Return which items are to be made, by all that is recorded, and how many have failed before and are skipped."""
    names = work.names
    with running.recorder.reading() as state:
        known = copy(state.tasks.get(path, {}))
    if not known:
        return range(len(names)), 0
    #: Equal read sets are one object, so each is compared once.
    same: dict[int, bool] = {}
    found, failed = [], 0
    for index, name in enumerate(names):
        done = known.get(name)
        if done is not None and done.status == FAILED and work.skip_failed:
            failed += 1
        elif done is None or done.status == FAILED:
            found.append(index)
        elif not _stands(running, done, work, index, seen, same):
            running.recorder.append(Invalidated("changed", tasks=[[path, name]]))
            found.append(index)
    return found, failed


def _stands(
    running: ActiveRun, done: TaskRun, work: Work, index: int, seen: Mapping[str, Any], same: dict[int, bool]
) -> bool:
    """Return whether a finished task was made from what holds now: version, item and all it read."""
    if done.version != work.version or done.item != _item_hash(work.items[index], f"item {work.key(index)}"):
        return False
    if id(done.reads) not in same:
        current = running.sources.hash
        same[id(done.reads)] = all(current(name, seen) == known for name, known in done.reads.items())
    return same[id(done.reads)]


def _tell_other_code(running: ActiveRun, path: str, work: Work, todo: Sequence[int]) -> None:
    """Report once which finished items were made by other code of the user's than there is now."""
    if (path, work.name) in running.told or not work.code or len(todo) == len(work.names):
        return
    running.told.add((path, work.name))
    again = {work.names[index] for index in todo}
    with running.recorder.reading() as state:
        known = state.tasks.get(path, {})
        other = [name for name in work.names if name not in again and known[name].code not in ("", work.code)]
    if other:
        running.emit.note(made_by_other_code(other, running.anew(path, None)))


def made_by_other_code(names: Sequence[str], again: str) -> str:
    """Return the sentence on finished work that was made by other code of the user's than there is now."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    shown = ", ".join(names[:_MOST_NAMES]) + more
    return f"Your code has changed since these results were made; they are kept: {shown}. To run it again: {again}"


def _step_failed(name: str, count: int, failed: Sequence[tuple[str, TaskRun]]) -> StepFailed:
    first = failed[0][1].error or {}
    more = f" and {len(failed) - _MOST_NAMES} more" if len(failed) > _MOST_NAMES else ""
    shown = ", ".join(task for task, _ in failed[:_MOST_NAMES]) + more
    return StepFailed(
        f"{len(failed)} of {count} items of {name} failed: {shown}. First: {error_text(first)}",
        code="items_failed", hint=first.get("hint") or "Resume: only what failed is run again.",
        tasks=[task for task, _ in failed], missing_param=first.get("missing_param", ""),
    )  # fmt: skip


class _Pool:
    """The calling thread and as many spare workers as are free pull items until none is left."""

    def __init__(self, running: ActiveRun, parent: Scope, work: Work, todo: Sequence[int]) -> None:
        self._running = running
        self._parent = parent
        self._work = work
        self._items = iter(todo)
        self._lock = threading.Lock()
        self._count = len(todo)
        self._stopped: BaseException | None = None
        self._suspended: Suspended | None = None

    def run(self) -> None:
        """Return when all items have ended and are durable; raise the first Pause."""
        threads = []
        if self._work.warm and self._count > 1 and self._running.workers:
            first = next(self._items)
            gate = threading.Event()
            threads.append(self._start(lambda: self._first(first, gate)))
            gate.wait()
        while len(threads) < self._count - 1 and self._running.spare.acquire(blocking=False):
            threads.append(self._start(self._worker))
        self._pull()
        for thread in threads:
            thread.join()
        if self._stopped is not None:
            raise self._stopped
        self._running.recorder.sync()
        if self._suspended is not None:
            raise self._suspended

    def _start(self, target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=target, name=f"task {self._work.name}", daemon=True)
        thread.start()
        return thread

    def _worker(self) -> None:
        try:
            self._pull()
        finally:
            self._running.spare.release()

    def _first(self, index: int, gate: threading.Event) -> None:
        """Run the first item; the gate opens at its first reply or its end."""
        try:
            self._one(index, gate)
        finally:
            gate.set()

    def _pull(self) -> None:
        while self._stopped is None:
            with self._lock:
                index = next(self._items, None)
            if index is None:
                return
            self._one(index)

    def _one(self, index: int, answered: threading.Event | None = None) -> None:
        """Run one task to a recorded end; anything that is no end of the task stops the pool."""
        path, task = self._parent.path, self._work.names[index]
        with self._running.recorder.reading() as state:
            scope = Scope(path, task, state.attempts.get((path, task), 1), answered=answered)
        try:
            self._running.stop.check()
            self._body(index, scope, task)
        except Suspended as error:
            # The others go on until they wait too; then all run again.
            self._suspended = error
        except BaseException as error:
            with self._lock:
                self._stopped = self._stopped or error

    def _body(self, index: int, scope: Scope, task: str) -> None:
        recorder, work = self._running.recorder, self._work
        item = work.items[index]
        self._record_start(scope, task)
        try:
            # What the body does to its item, no other body sees.
            own = item if type(item) in _SCALARS else copied(item, f"{task} item")
            value = settled(work.body(work.context(scope), own), f"The code of {work.name!r}")
            scope.leave_if_paused()
            text = recorder.fit_text(value, f"{task} value")
        except failures() as error:
            self._record_failure(scope, task, index, error)
            if isinstance(error, InvalidValue) and not work.skip_failed:
                # The same code makes the other values: no more is asked for them before it is mended.
                raise
            return
        fact = TaskCompleted(
            scope.path, task, text, item=_item_hash(item, f"{task} item"),
            hash=digest(text)[:_HASH_CHARS], attempt=scope.attempt, version=work.version, reads=scope.reads,
            code=work.code, rejected=scope.rejected or (),
        )  # fmt: skip
        # One alone is synced with its record; of many those that end together share a sync.
        recorder.append(
            fact,
            sync=self._count == 1,
            then=lambda: self._running.emit("task_completed", path=scope.path, name=work.name, key=work.key(index)),
        )

    def _record_start(self, scope: Scope, task: str) -> None:
        """Record the start of a task that acts outside the run."""
        work, recorder = self._work, self._running.recorder
        if work.effect not in UNSAFE:
            return
        with recorder.reading() as state:
            unknown = (scope.path, task) in state.unknown_tasks
        if unknown and not work.repeatable and not self._running.repeat_unknown:
            name = bare(scope.path)
            raise Pause("failed", NeedsConfirmation(
                f"Task {task!r} of {name} has side effects and was interrupted; whether they happened is unknown.",
                code="unknown_outcome", hint=unknown_hint(recorder.state.run_id, scope.path),
            ))  # fmt: skip
        recorder.append(TaskStarted(scope.path, task, scope.attempt, work.effect))

    def _record_failure(self, scope: Scope, task: str, index: int, error: BaseException) -> None:
        recorder, work = self._running.recorder, self._work
        with recorder.reading() as state:
            last = state.tasks.get(scope.path, {}).get(task)
        cause, facts = judged(self._running, scope, error, last.error if last else None)
        item = _item_hash(work.items[index], f"{task} item")
        recorder.append(TaskFailed(scope.path, task, facts, cause, scope.attempt, item))
        self._running.emit("task_failed", path=scope.path, name=work.name, key=work.key(index), error=facts)


def unknown_hint(run: str, path: str) -> str:
    """Return what a person can do where a step may have acted outside before it was interrupted."""
    return (
        f"Check whether it acted. If it did: ./pipeline.sh mark-done {run} {bare(path)}; "
        "if not: resume with --retry-unknown (or --yes)."
    )


def failures() -> tuple[type[BaseException], ...]:
    """Return what the code of a step or task raises where it fails: also an exit, and a cancelled await."""
    loaded = sys.modules.get("asyncio")
    return (Exception, SystemExit) if loaded is None else (Exception, SystemExit, loaded.CancelledError)


def judged(
    running: ActiveRun, scope: Scope, error: BaseException, before: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """Return whose fault an error is (records.kinds.CHECK, …), and the error as recorded.

    Only a check that does not accept a reply has it asked anew; after any other error the recorded replies are reused.

    Args:
        before: How the same work failed the last time; None: it did not.

    Raises:
        Pause: The body swallowed one, or the store did not answer.
    """
    scope.leave_if_paused()
    pause_if_of_the_store(error)
    facts = error_facts(error)
    if isinstance(error, ModelError) and error.retryable:
        return PROVIDER, facts
    if isinstance(error, TaskRejected) or scope.unfit:
        return CHECK, facts
    if not scope.heard + scope.bought:
        return CODE, facts
    if not scope.bought and before is not None and all(before.get(key) == facts.get(key) for key in _SAME):
        again = running.anew(scope.path, scope.task)
        hint = f"The same recorded replies led to the same error again. To ask again (and pay again): {again}"
    else:
        hint = "The replies are recorded: once this is fixed, a resume reuses them and pays nothing."
    return CODE, {**facts, "hint": " ".join(filter(None, (facts.get("hint"), hint)))}


#: What two equal errors have in common.
_SAME = ("type", "message")


def error_facts(error: BaseException) -> dict[str, Any]:
    """Return an error as recorded: type, code, message, hint and where, without keys and of bounded length."""
    kind = type(error).__name__
    if isinstance(error, PipelineError):
        facts = {"type": kind, "code": error.code, "message": _recordable(error.message)}
        more = {"hint": error.hint, "missing_param": error.data.get("missing_param")}
        return facts | {name: value for name, value in more.items() if value}
    try:
        text = str(error)
    except Exception as problem:
        text = f"(its text cannot be made: {type(problem).__name__})"
    facts = {"type": kind, "message": _recordable(f"{kind}: {text}" if text else kind)}
    more = {"hint": _meant(error) if isinstance(error, AttributeError) else "", "where": place_of(error)}
    return facts | {name: value for name, value in more.items() if value}


def _meant(error: AttributeError) -> str:
    """Return what was probably meant by an attribute that there is not; "" where nothing is like it."""
    found, name = error.obj, str(error.name)
    if isinstance(found, Mapping) and name in found:
        return f'Write […]["{name}"]: these are looked up by name.'
    near = get_close_matches(name, [each for each in dir(found) if not each.startswith("_")], 1, _ALIKE)
    return f"Did you mean {near[0]!r}?" if near else ""


def _recordable(text: str) -> str:
    text = without_keys(text[: 2 * _MOST_TEXT])
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
