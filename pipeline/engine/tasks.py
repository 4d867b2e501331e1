"""Durable tasks: a few workers pull items; what is finished is reused, what failed is tried anew."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from pipeline.engine import taking_in
from pipeline.engine.bodies import code_of
from pipeline.engine.entries import Scope
from pipeline.engine.lineage import Lineage
from pipeline.engine.running import Running
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
from pipeline.records.kinds import CHECK, CODE, PROVIDER, Invalidated, TaskCompleted, TaskFailed, TaskStarted
from pipeline.records.redaction import without_keys
from pipeline.records.run import TaskRun, bare
from pipeline.records.statuses import FAILED
from pipeline.records.values import Plain, canonical, digest, encode_value

_HASH_CHARS = 16
#: Names that are told; of more, how many.
_MOST_NAMES = 10
#: Longest error message kept; a page of it says as much as a book.
_MOST_TEXT = 4000
#: Effects that act outside the run: never blindly repeated, and durable before they begin.
UNSAFE = frozenset({"write", "external"})


@dataclass(frozen=True, slots=True)
class TaskFailure(Plain):
    """Stands in the place of a value where failed items are skipped."""

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
    keys: list[str]
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
    #: Where the step stands in the graph; a worker elsewhere must know.
    lineage: Lineage | None = None


class MapResult(Sequence[Any]):
    """The values in item order, recorded as a list; long ones are read back when they are asked for."""

    def __init__(self, running: Running, path: str, tasks: Sequence[str]) -> None:
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
        return task_value(self._running, self._path, self._tasks[index])

    def __iter__(self) -> Iterator[Any]:
        return (task_value(self._running, self._path, task) for task in self._tasks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def task_value(running: Running, path: str, task: str) -> Any:
    """The recorded value of a task, or its TaskFailure."""
    done = running.sources.state.tasks[path][task]
    if done.status == FAILED:
        return TaskFailure(task, done.error or {})
    if done.value is not None:
        return running.sources.values.get(json.loads(done.value))
    return running.sources.values.at(done.seq)


def run(running: Running, parent: Scope, seen: Mapping[str, Any], work: Work) -> Sequence[Any]:
    """Do what is missing, in item order as far as workers are free; the values.

    Raises:
        ConfigError: Two items have the same key.
        InvalidValue: An item, or the value of one, is no JSON.
        StepFailed: Items failed (after all others were done), unless they may be skipped.
        Pause: The run is stopping; what was finished is recorded.
    """
    names = _names(parent, work)
    elsewhere = running.crew is not None and running.crew.takes(parent, work)
    if running.recorder.state.submitted:
        taking_in.settle_parts(running, parent.path, names, elsewhere=elsewhere)
    work.code = code_of(work.body)
    todo = _missing(running, parent.path, names, work, seen)
    _tell_other_code(running, parent.path, names, work, todo)
    for index in todo:
        # Told before anything is asked for any of them.
        encode_value(work.items[index], f"{names[index]} item")
    # Failed ones that are done without are no work that stands.
    without = _failed_before(running, parent.path, names) if work.skip_failed else 0
    restored = len(names) - len(todo) - without
    running.emit("map_started", path=parent.path, name=work.name, total=len(names), restored=restored, failed=without)
    if todo and running.crew is not None and elsewhere:
        running.crew.do(parent, seen, work, names, todo)
    elif todo:
        _Pool(running, parent, work, names, todo).run()
    failed = _failures(running, parent.path, names)
    if failed and not work.skip_failed:
        raise _step_failed(work.name, len(names), failed)
    parent.reads.update(_reads_of(running, parent.path, names))
    return MapResult(running, parent.path, names)


def _names(parent: Scope, work: Work) -> list[str]:
    """The recorded name of each item's task, unique in the step.

    Raises:
        ConfigError: Two items have the same key, or the name was used before in this step.
    """
    above = "" if parent.task is None else f"{parent.task}/"
    map_name = _plain(work.name)
    names = [above + (map_name if work.single else f"{map_name}/{_plain(key)}") for key in work.keys]
    for name, key in zip(names, work.keys, strict=True):
        if name in parent.used:
            what = f"task {work.name!r} stands" if work.single else f"map {work.name!r}: the key {key!r} stands"
            raise ConfigError(f"{what} twice in one step; keys must be unique.")
        parent.used.add(name)
    return names


def _plain(key: str) -> str:
    """A key as one part of a name: a slash in it must not look like a border."""
    return key.replace("%", "%25").replace("/", "%2F") if "/" in key or "%" in key else key


def _item_hash(item: Any, where: str) -> str:
    return digest(canonical(item, where))[:_HASH_CHARS]


def _missing(running: Running, path: str, names: Sequence[str], work: Work, seen: Mapping[str, Any]) -> list[int]:
    """Which items are to be made, now that everything recorded has been looked at."""
    with running.recorder.reading() as state:
        known = dict(state.tasks.get(path, {}))
    #: Equal read sets are one object, so each is compared once.
    same: dict[int, bool] = {}
    found = []
    for index, name in enumerate(names):
        done = known.get(name)
        if done is None or (done.status == FAILED and not work.skip_failed):
            found.append(index)
        elif done.status != FAILED and not _stands(running, done, work, index, seen, same):
            running.recorder.append(Invalidated("changed", tasks=[[path, name]]))
            found.append(index)
    return found


def _tell_other_code(running: Running, path: str, names: Sequence[str], work: Work, todo: Sequence[int]) -> None:
    """Say which finished items were made by other code of the user's than there is now, once."""
    if (path, work.name) in running.told or not work.code:
        return
    running.told.add((path, work.name))
    again = {names[index] for index in todo}
    with running.recorder.reading() as state:
        known = state.tasks.get(path, {})
        other = [name for name in names if name not in again and known[name].code not in ("", work.code)]
    if other:
        running.emit("note", text=made_by_other_code(other, running.anew(path, None)))


def made_by_other_code(names: Sequence[str], again: str) -> str:
    """Return the sentence on finished work that was made by other code of the user's than there is now."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    shown = ", ".join(names[:_MOST_NAMES]) + more
    return f"Your code has changed since this was made, and it is kept: {shown}. To make it again: {again}"


def _stands(
    running: Running, done: TaskRun, work: Work, index: int, seen: Mapping[str, Any], same: dict[int, bool]
) -> bool:
    """Whether a finished task was made from what holds now: version, item and all it read."""
    if done.version != work.version or done.item != _item_hash(work.items[index], f"item {work.keys[index]}"):
        return False
    if id(done.reads) not in same:
        current = running.sources.hash
        same[id(done.reads)] = all(current(name, seen) == known for name, known in done.reads.items())
    return same[id(done.reads)]


def _failed_before(running: Running, path: str, names: Sequence[str]) -> int:
    with running.recorder.reading() as state:
        done = state.tasks.get(path, {})
        return sum(name in done and done[name].status == FAILED for name in names)


def _failures(running: Running, path: str, names: Sequence[str]) -> list[tuple[str, TaskRun]]:
    with running.recorder.reading() as state:
        done = state.tasks.get(path, {})
        return [(name, done[name]) for name in names if done[name].status == FAILED]


def _reads_of(running: Running, path: str, names: Sequence[str]) -> dict[str, str]:
    """What the bodies read belongs to what the step read; equal read sets are shared, so look at each once."""
    found: dict[int, Mapping[str, str]] = {}
    with running.recorder.reading() as state:
        done = state.tasks.get(path, {})
        for name in names:
            found[id(done[name].reads)] = done[name].reads
    return {key: value for reads in found.values() for key, value in reads.items()}


def _step_failed(name: str, count: int, failed: Sequence[tuple[str, TaskRun]]) -> StepFailed:
    first = (failed[0][1].error or {}).get("message", "")
    shown = ", ".join(task for task, _ in failed[:10]) + (f" and {len(failed) - 10} more" if len(failed) > 10 else "")
    return StepFailed(
        f"{len(failed)} of {count} items of {name} failed: {shown}. First: {first}",
        hint=(failed[0][1].error or {}).get("hint") or "Resume: only what failed is made again.",
        tasks=[task for task, _ in failed],
        missing_param=(failed[0][1].error or {}).get("missing_param", ""),
    )


class _Pool:
    """The calling thread and as many spare workers as are free pull items until none is left."""

    def __init__(self, running: Running, parent: Scope, work: Work, names: list[str], todo: list[int]) -> None:
        self._running = running
        self._parent = parent
        self._work = work
        self._names = names
        self._items = iter(todo)
        self._lock = threading.Lock()
        self._count = len(todo)
        self._stopped: BaseException | None = None
        self._suspended: Suspended | None = None

    def run(self) -> None:
        """Return when all items have ended and are durable; raises the first Pause."""
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
        scope = self._scope(index)
        scope.answered = gate
        try:
            self._one(index, scope)
        finally:
            gate.set()

    def _pull(self) -> None:
        while self._stopped is None:
            with self._lock:
                index = next(self._items, None)
            if index is None:
                return
            self._one(index, self._scope(index))

    def _scope(self, index: int) -> Scope:
        task = self._names[index]
        with self._running.recorder.reading() as state:
            attempt = state.attempts.get((self._parent.path, task), 1)
        return Scope(self._parent.path, task, attempt)

    def _one(self, index: int, scope: Scope) -> None:
        """Run one task to a recorded end; anything that is no end of the task stops the pool."""
        try:
            self._running.stop.check()
            self._body(index, scope)
        except Suspended as error:
            # The others go on until they wait too; then all run again.
            self._suspended = error
        except BaseException as error:
            with self._lock:
                self._stopped = self._stopped or error

    def _body(self, index: int, scope: Scope) -> None:
        recorder, work, task = self._running.recorder, self._work, scope.task
        assert task is not None
        item = work.items[index]
        self._declare(scope)
        try:
            value = work.body(work.context(scope), json.loads(encode_value(item, f"{task} item")))
            scope.leave_if_paused()
            text = recorder.fit_text(value, f"{task} value")
        except (Exception, SystemExit) as error:
            scope.leave_if_paused()
            pause_if_of_the_store(error)
            self._failed(scope, index, error)
            if isinstance(error, InvalidValue) and not work.skip_failed:
                # The same code makes the other values: nothing more is asked for them before it is mended.
                raise
            return
        fact = TaskCompleted(
            scope.path, task, text, item=_item_hash(item, f"{task} item"),
            hash=digest(text)[:_HASH_CHARS], attempt=scope.attempt, version=work.version, reads=scope.reads,
            code=work.code,
        )  # fmt: skip
        tell = self._running.emit
        key = work.keys[index]
        # One alone is synced with its record; of many those that end together share a sync.
        recorder.append(
            fact,
            sync=self._count == 1,
            then=lambda: tell("task_completed", path=scope.path, name=work.name, key=key),
        )

    def _declare(self, scope: Scope) -> None:
        work, task = self._work, scope.task
        if work.effect not in UNSAFE or task is None:
            return
        with self._running.recorder.reading() as state:
            unknown = (scope.path, task) in state.unknown_tasks
        if unknown and not work.repeatable and not self._running.repeat_unknown:
            run = self._running.recorder.state.run_id
            raise Pause("failed", _unknown_end(run, scope.path, task))
        self._running.recorder.append(TaskStarted(scope.path, task, scope.attempt, work.effect))

    def _failed(self, scope: Scope, index: int, error: BaseException) -> None:
        assert scope.task is not None
        with self._running.recorder.reading() as state:
            last = state.tasks.get(scope.path, {}).get(scope.task)
        cause, facts = judged(self._running, scope, error, last.error if last else None)
        item = _item_hash(self._work.items[index], f"{scope.task} item")
        self._running.recorder.append(TaskFailed(scope.path, scope.task, facts, cause, scope.attempt, item))
        self._running.emit(
            "task_failed", path=scope.path, name=self._work.name, key=self._work.keys[index], error=facts
        )


def _unknown_end(run: str, path: str, task: str) -> NeedsConfirmation:
    return NeedsConfirmation(
        f"Task {task!r} of {bare(path)} acts outside the run and was cut off; whether it acted is unknown.",
        hint=unknown_hint(run, path),
    )


def unknown_hint(run: str, path: str) -> str:
    """How a person goes on where a step may have acted outside before it was cut off."""
    return (
        f"Look whether it acted. If it did: ./pipeline.sh mark-done {run} {bare(path)}; "
        "if not: resume with --retry-unknown (or --yes)."
    )


def judged(
    running: Running, scope: Scope, error: BaseException, before: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """Whose fault an error is (records.kinds.CHECK, …), and the error as recorded.

    Only a check that does not accept a reply has it asked anew; after any other error the replies are heard again.

    Args:
        before: How the same work failed the last time; None: it did not.
    """
    facts = error_facts(error)
    if isinstance(error, ModelError) and error.retryable:
        return PROVIDER, facts
    if isinstance(error, TaskRejected) or scope.unfit:
        return CHECK, facts
    if not scope.heard + scope.bought:
        return CODE, facts
    if not scope.bought and before is not None and _same(before, facts):
        hint = (
            f"The same recorded replies led to the same error again. To ask anew (which is paid again): "
            f"{running.anew(scope.path, scope.task)}"
        )
    else:
        hint = "What was answered is recorded: once this is repaired, a resume hears the same replies and pays nothing."
    return CODE, {**facts, "hint": " ".join(filter(None, (facts.get("hint"), hint)))}


def _same(before: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    return all(before.get(name) == facts.get(name) for name in ("type", "message"))


def error_facts(error: BaseException) -> dict[str, Any]:
    """An error as recorded: type, message and hint; never a key, never without end."""
    kind = type(error).__name__
    if isinstance(error, PipelineError):
        facts = {"type": kind, "code": error.code, "message": _recordable(error.message)}
        more = {"hint": error.hint, "missing_param": error.data.get("missing_param")}
        return facts | {name: value for name, value in more.items() if value}
    try:
        text = str(error)
    except Exception as problem:
        text = f"(its text cannot be made: {type(problem).__name__})"
    return {"type": kind, "message": _recordable(f"{kind}: {text}" if text else kind)}


def _recordable(text: str) -> str:
    text = without_keys(text[: 2 * _MOST_TEXT])
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
