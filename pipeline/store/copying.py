"""Runs from one store to another, byte for byte: each appears there whole, or goes on where an earlier copy ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal

from pipeline.clock import Clock
from pipeline.errors import CheckpointCorrupt, PipelineError, RunNotFound, StoreError
from pipeline.records.lines import line_seq
from pipeline.store.base import Account, Head, Journal, Movable
from pipeline.store.view import first_problem, fresh_document

#: Lines that are appended at once where a run is there already.
_LINES = 256


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of one run."""

    run: str
    #: Records that were not there before, those of sub-journals included.
    records: int = 0
    #: Values that were not there before.
    values: int = 0
    #: A process is still running it: what comes later is not in the copy.
    owned: bool = False
    #: Why it was not copied, or only in part; "" if it was.
    problem: str = ""


def copy(source: Movable, target: Movable, clock: Clock, run: str = "") -> Iterator[Copied]:
    """Copy all runs, oldest first, or one; each is reported once it is durable.

    Raises:
        RunNotFound: There is no such run.
        StoreError: A store cannot be read at all.
    """
    heads = [head for head in source.heads() if not run or head.run_id == run]
    if run and not heads:
        raise RunNotFound(f"There is no run {run}.", hint="`list` shows the runs there are.", run=run)
    for head in reversed(heads):
        try:
            yield _copy_run(source, target, head, clock)
        except PipelineError as error:
            yield Copied(head.run_id, owned=head.owned, problem=error.message)


def copy_account(source: Account, target: Account, clock: Clock) -> int:
    """Bring over what deleted runs cost, and what was spent today, so that the day's limit holds there too.

    Returns how many deleted runs were new there.
    """
    there = target.kept()
    new = {run: sums for run, sums in source.kept().items() if there.get(run) != sums}
    for run, sums in new.items():
        target.keep(run, sums)
    now = clock.now().astimezone(UTC)
    missing = source.total(now.date()) - target.total(now.date())
    if missing > 0:
        name = target.reserve("store copy", missing, now, Decimal("Infinity"))
        assert name is not None
        target.settle(name, missing)
    return len(new)


def _copy_run(source: Movable, target: Movable, head: Head, clock: Clock) -> Copied:
    run = head.run_id
    lines = list(source.read(run))
    if problem := first_problem(lines[0] if lines else None):
        raise StoreError(f"It cannot be copied. {problem.message}")
    before = _there(target, run)
    values = _Values(source, run, [] if before is None else target.blobs(run))
    if before is None:
        journal = target.create_named(run, _joined(lines), values, at=clock.now())
    else:
        _same(run, before, lines)
        if len(before) == len(lines) and not values.names and _parts_alike(source, target, run):
            return Copied(run, owned=head.owned)
        journal = target.open(run)
    try:
        if before is not None:
            for value in values:
                journal.put_blob(value)
            _append(journal, lines[len(before) :])
        records = len(lines) - len(before or ())
        records += sum(_copy_part(source, target, f"{run}/{path}") for path in source.parts(run))
        old = {"nodes": head.document["nodes"]} if head.document.get("nodes") else {}
        journal.write_head(fresh_document(run, lines, journal.size, old, journal.get_blob), True)
    finally:
        journal.close()
    return Copied(run, records, len(values.names) - len(values.damaged), head.owned, values.problem)


class _Values:
    """The values of a run that are not there yet, read one after the other; what is damaged is left out."""

    def __init__(self, source: Movable, run: str, there: Iterable[str]) -> None:
        self.names = sorted(set(source.blobs(run)).difference(there))
        self.damaged: list[str] = []
        self._source = source
        self._run = run

    def __iter__(self) -> Iterator[bytes]:
        for name in self.names:
            try:
                yield self._source.get_blob(self._run, name)
            except CheckpointCorrupt:
                self.damaged.append(name)

    @property
    def problem(self) -> str:
        """What could not be copied; "" if all could."""
        return f"These values are damaged and were left out: {', '.join(self.damaged)}." if self.damaged else ""


def _copy_part(source: Movable, target: Movable, name: str) -> int:
    lines = list(source.read(name))
    before = _there(target, name) or []
    _same(name, before, lines)
    if len(before) == len(lines):
        return 0
    journal = target.open(name)
    try:
        _append(journal, lines[len(before) :])
    finally:
        journal.close()
    return len(lines) - len(before)


def _parts_alike(source: Movable, target: Movable, run: str) -> bool:
    parts = source.parts(run)
    return all(list(source.read(f"{run}/{path}")) == _there(target, f"{run}/{path}") for path in parts)


def _there(target: Movable, name: str) -> list[bytes] | None:
    try:
        return list(target.read(name))
    except RunNotFound:
        return None


def _same(run: str, before: list[bytes], lines: list[bytes]) -> None:
    """Refuse to mix two runs.

    Raises:
        StoreError: What is there is no beginning of what is to be copied.
    """
    if lines[: len(before)] != before:
        differ = next((line_seq(a) for a, b in zip(before, lines, strict=False) if a != b), len(lines) + 1)
        raise StoreError(f"There is another run of that name there: record {differ} differs.", run=run)


def _append(journal: Journal, lines: list[bytes]) -> None:
    for begin in range(0, len(lines), _LINES):
        some = [line + b"\n" for line in lines[begin : begin + _LINES]]
        journal.append(line_seq(some[0]), some)


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
