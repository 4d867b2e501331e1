"""Tasks that ended, by their keys: a map may have a million of them, so those that are plain are kept packed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from struct import Struct as Layout
from typing import Any

from msgspec import Struct

from pipeline.records.statuses import COMPLETED

NOTHING_READ: Mapping[str, str] = {}
#: A packed task: which of the table's kinds it is of, its seq, its hashes; the value's JSON text follows.
_ROW = Layout("<HI8s8s")
_MOST_KINDS, _MOST_SEQ = 1 << 16, 1 << 32
_ABSENT = bytes(8)


class TaskRun(Struct, gc=False):
    """One task that ended. Its value: inline JSON bytes if short, else read back at `seq`."""

    #: Hash of the item and of the value; what it read.
    item: str
    hash: str
    reads: Mapping[str, str]
    #: seq of the record that holds the value.
    seq: int
    #: JSON text of the value if at most KEEP_BYTES long; None: read it back.
    value: bytes | None
    attempt: int = 1
    version: int = 1
    status: str = COMPLETED
    error: Mapping[str, Any] | None = None
    cause: str = ""
    #: As of StepRun.
    code: str = ""


class _Kind(Struct, gc=False):
    """What many packed tasks have in common."""

    reads: Mapping[str, str]
    attempt: int
    version: int
    code: str
    has_item: bool
    has_hash: bool
    has_value: bool

    def fits(self, run: TaskRun) -> bool:
        return (
            (self.reads is run.reads or self.reads == run.reads)
            and self.code == run.code
            and self.attempt == run.attempt
            and self.version == run.version
            and self.has_item == bool(run.item)
            and self.has_hash == bool(run.hash)
            and self.has_value == (run.value is not None)
        )


class TaskTable(MutableMapping[str, TaskRun]):
    """Ended tasks of one visit by their keys, in order of their first ends.

    A `TaskRun` is made anew each time it is asked for; equal `reads` are one object.
    """

    __slots__ = ("_kinds", "_last", "_numbers", "_rows")

    def __init__(self, tasks: Mapping[str, TaskRun] | None = None) -> None:
        self._rows: dict[str, bytes | TaskRun] = {}
        self._kinds: list[_Kind] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        #: The number of the kind that the last task was of.
        self._last = -1
        self.update(tasks or {})

    def __getitem__(self, task: str) -> TaskRun:
        return self._run(self._rows[task])

    def __setitem__(self, task: str, run: TaskRun) -> None:
        self._rows[task] = self._packed(run)

    def __delitem__(self, task: str) -> None:
        del self._rows[task]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, task: object) -> bool:
        return task in self._rows

    def get(self, task: str, default: Any = None) -> Any:
        row = self._rows.get(task)
        return default if row is None else self._run(row)

    def __copy__(self) -> TaskTable:
        made = TaskTable()
        made._rows, made._kinds, made._numbers = self._rows.copy(), self._kinds.copy(), self._numbers.copy()
        made._last = self._last
        return made

    def count_completed(self) -> int:
        """Return how many of them completed."""
        return sum(type(row) is bytes or self._run(row).status == COMPLETED for row in self._rows.values())

    def _run(self, row: bytes | TaskRun) -> TaskRun:
        if isinstance(row, TaskRun):
            return row
        number, seq, item, value_hash = _ROW.unpack_from(row)
        kind = self._kinds[number]
        return TaskRun(
            item.hex() if kind.has_item else "", value_hash.hex() if kind.has_hash else "", kind.reads, seq,
            row[_ROW.size :] if kind.has_value else None, kind.attempt, kind.version, code=kind.code,
        )  # fmt: skip

    def _packed(self, run: TaskRun) -> bytes | TaskRun:
        """Return the row of a task: itself where it failed, or is unlike what is written nowadays."""
        if run.status != COMPLETED or run.error is not None or run.cause or not 0 <= run.seq < _MOST_SEQ:
            return run
        item = _short_hash(run.item)
        value_hash = _short_hash(run.hash)
        if item is None or value_hash is None:
            return run
        if self._last < 0 or not self._kinds[self._last].fits(run):
            self._last = self._number(run)
            if self._last < 0:
                return run
        return _ROW.pack(self._last, run.seq, item, value_hash) + (run.value or b"")

    def _number(self, run: TaskRun) -> int:
        """Return the number of a task's kind, a new one where it is the first of it; -1: there are too many."""
        kind = _Kind(
            run.reads, run.attempt, run.version, run.code, bool(run.item), bool(run.hash), run.value is not None
        )
        key = (tuple(run.reads.items()), *(getattr(kind, name) for name in kind.__struct_fields__[1:]))
        number = self._numbers.get(key)
        if number is None:
            if len(self._kinds) >= _MOST_KINDS:
                return -1
            number = self._numbers[key] = len(self._kinds)
            self._kinds.append(kind)
        return number


def _short_hash(text: str) -> bytes | None:
    """Return a hash of 16 hex digits (or none) as eight bytes; None: it is no such text."""
    if not text:
        return _ABSENT
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    return data if len(data) == len(_ABSENT) and data.hex() == text else None
