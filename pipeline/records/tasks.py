"""Tasks that ended, by their keys: a map may have a million of them, so those that are plain are kept packed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from struct import Struct as Layout
from typing import Any

from msgspec import Struct

from pipeline.records.statuses import COMPLETED

NOTHING_READ: Mapping[str, str] = {}
#: A packed task: which of the table's kinds it is of, its seq, its two hashes; the value's JSON text follows.
_ROW = Layout("<II16s")
_MOST_SEQ = 1 << 32
#: Hex digits of a hash as it is written nowadays.
_HASH_CHARS = 16


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
    has_value: bool


class TaskTable(MutableMapping[str, TaskRun]):
    """Ended tasks of one visit by their keys, in order of their first ends.

    A `TaskRun` is made anew each time it is asked for; equal `reads` are one object.
    """

    __slots__ = ("_kinds", "_last", "_numbers", "_rows", "unlisted")

    def __init__(self, tasks: Mapping[str, TaskRun] | None = None) -> None:
        self._rows: dict[str, bytes | TaskRun] = {}
        self._kinds: list[_Kind] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        #: The number of the kind that the last task was of.
        self._last = 0
        #: Completed tasks that are only counted (see store.reader.summary).
        self.unlisted = 0
        self.update(tasks or {})

    def __getitem__(self, task: str) -> TaskRun:
        return self._run(self._rows[task])

    def __setitem__(self, task: str, run: TaskRun) -> None:
        self._rows[task] = run
        if run.status == COMPLETED and run.error is None and not run.cause:
            self.complete(
                task, run.item, run.hash, run.reads, run.seq, run.value, run.attempt, run.version, run.code
            )  # fmt: skip

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
        made._last, made.unlisted = self._last, self.unlisted
        return made

    def count_completed(self) -> int:
        listed = sum(type(row) is bytes or self._run(row).status == COMPLETED for row in self._rows.values())
        return listed + self.unlisted

    def incomplete(self) -> dict[str, TaskRun]:
        rows = ((key, row) for key, row in self._rows.items() if isinstance(row, TaskRun))
        return {key: row for key, row in rows if row.status != COMPLETED}

    def complete(
        self,
        task: str,
        item: str,
        value_hash: str,
        reads: Mapping[str, str],
        seq: int,
        value: bytes | None,
        attempt: int,
        version: int,
        code: str,
    ) -> None:
        """Note a task that completed; see `TaskRun`. What is written nowadays is packed."""
        number = self._last
        kind = self._kinds[number] if self._kinds else None
        if (
            kind is None
            or kind.reads != reads
            or kind.code != code
            or kind.attempt != attempt
            or kind.version != version
            or kind.has_value is (value is None)
        ):
            self._last = number = self._number(_Kind(reads, attempt, version, code, value is not None))
        hashes = item + value_hash
        try:
            packed = bytes.fromhex(hashes)
        except ValueError:
            packed = b""
        if len(item) == len(value_hash) == len(packed) == _HASH_CHARS and packed.hex() == hashes and seq < _MOST_SEQ:
            self._rows[task] = _ROW.pack(number, seq, packed) + (value or b"")
        else:
            shared = self._kinds[number].reads
            self._rows[task] = TaskRun(item, value_hash, shared, seq, value, attempt, version, code=code)

    def _run(self, row: bytes | TaskRun) -> TaskRun:
        if isinstance(row, TaskRun):
            return row
        number, seq, hashes = _ROW.unpack_from(row)
        kind, text = self._kinds[number], hashes.hex()
        value = row[_ROW.size :] if kind.has_value else None
        return TaskRun(
            text[:_HASH_CHARS], text[_HASH_CHARS:], kind.reads, seq, value, kind.attempt, kind.version, code=kind.code
        )

    def _number(self, kind: _Kind) -> int:
        """Return the number of a kind, a new one where it is the first."""
        key = (tuple(kind.reads.items()), kind.attempt, kind.version, kind.code, kind.has_value)
        if key not in self._numbers:
            self._numbers[key] = len(self._kinds)
            self._kinds.append(kind)
        return self._numbers[key]
