"""What a worker knows of its run: its state at one seq, kept by the process for the tasks that share it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from pipeline.records.codec import decode_line
from pipeline.records.fold import Builder
from pipeline.records.kinds import TaskCompleted
from pipeline.records.run import RunState, TaskRun
from pipeline.store.base import Store
from pipeline.store.reading import records

#: Runs (at one seq each) that a process keeps.
_MOST = 4
_lock = threading.Lock()
_kept: dict[tuple[str, str, int], RunState] = {}

#: What a task can see and nothing in it changes.
_SHARED = (
    "pipeline", "params", "identity", "execution", "pins", "parent", "host", "product", "status", "detail",
    "started_at", "seq", "steps", "visits", "context", "imported", "resumes", "inherited", "decisions",
)  # fmt: skip


def state_at(store: Store, url: str, run: str, seq: int) -> RunState:
    """A run as it was at that seq; nobody changes it.

    Raises:
        RunNotFound: There is no such run in this store.
    """
    key = (url, run, seq)
    with _lock:
        if key not in _kept:
            builder = Builder(run)
            for record in records(store, run):
                if record.seq > seq:
                    break
                builder.apply(record)
            while len(_kept) >= _MOST:
                del _kept[next(iter(_kept))]
            _kept[key] = builder.state
        return _kept[key]


def part_of(base: RunState, store: Store, path: str, task: str, attempt: int) -> Builder:
    """The fold of a task's part as it begins: what the run knew, and of its money nothing.

    Replies of this attempt that stand in the run answer it for free.
    """
    builder = Builder(base.run_id)
    state = builder.state
    for name in _SHARED:
        setattr(state, name, getattr(base, name))
    inner = f"{task}/"

    def mine(key: tuple[Any, ...]) -> bool:
        return bool(key[0] == path and key[1] is not None and (key[1] == task or str(key[1]).startswith(inner)))

    state.tasks = dict(base.tasks)
    state.tasks[path] = {
        name: _whole(run, base.run_id, store)
        for name, run in base.tasks.get(path, {}).items()
        if name.startswith(inner)
    }
    state.attempts = {key: number for key, number in base.attempts.items() if mine(key)}
    state.attempts[path, task] = attempt
    state.heard_from = {key: number for key, number in base.heard_from.items() if mine(key)}
    state.memo = {
        key: {ask: list(tries) for ask, tries in asks.items()} for key, asks in base.memo.items() if mine(key)
    }
    state.recalled = {key: dict(asks) for key, asks in base.recalled.items() if mine(key)}
    state.unknown_tasks = {key for key in base.unknown_tasks if mine(key)}
    state.remarks = {
        key: remark if remark.value is not None or not remark.seq
        else remark._replace(value=_read(store, base.run_id, remark.seq), seq=0)
        for key, remark in base.remarks.items() if mine(key)
    }  # fmt: skip
    return builder


def _whole(run: TaskRun, run_id: str, store: Store) -> TaskRun:
    """A finished task with its value in it: its seq means nothing in the part."""
    return run if run.value is not None or run.error is not None else replace(run, value=_read(store, run_id, run.seq))


def _read(store: Store, run_id: str, seq: int) -> bytes | None:
    line = next(iter(store.read(run_id, after=seq - 1)), None)
    fact = None if line is None else decode_line(line).fact
    return fact.value if isinstance(fact, TaskCompleted) else None
