"""Reading runs back from any store: their records, their state, and which run a text means. Never writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pipeline.errors import CheckpointCorrupt, RunNotFound, SchemaTooNew
from pipeline.records.codec import Record, decode_line
from pipeline.records.fold import Builder
from pipeline.records.kinds import FORMAT, Fact, Gap, Invalidated, RunStarted, Snapshot, TaskCompleted, UnknownFact
from pipeline.records.lines import LineDamaged
from pipeline.records.run import RunState, TaskTable
from pipeline.store.base import Account, Head, Store
from pipeline.store.parts import COURSES as COURSES
from pipeline.store.parts import LESSONS as LESSONS
from pipeline.store.parts import not_copied, with_parts
from pipeline.store.view import fold_beside, records_in

LATEST = "latest"
_SHOWN = 5
#: A record's time is as long as this.
_STAMP_CHARS = len("2026-01-09T14:30:22.000Z")


def records(store: Store, run_id: str) -> Iterator[Record]:
    """Return all readable records of a run; a gap where some are missing.

    Raises:
        RunNotFound: No such run.
        SchemaTooNew: A newer version wrote it.
    """
    stream = records_in(store.read(run_id))
    for record in stream:
        _refuse_newer(run_id, record.fact)
        yield record
        break
    # Only the first can start a run, and thousands may follow.
    yield from stream


def _refuse_newer(run_id: str, first: Fact) -> None:
    if isinstance(first, RunStarted) and first.format > FORMAT:
        raise SchemaTooNew(
            f"Run {run_id} is written in format {first.format}, by a newer version of this program; this one reads "
            f"format {FORMAT}.",
            hint="Upgrade, then try again.",
        )


def folded(store: Store, run_id: str, head: Mapping[str, Any]) -> tuple[Builder, Gap | None]:
    """Return the fold of a run's own records, and what its head knew to be spent beyond them (view.fold_beside).

    Args:
        head: As `Store.written_head` gave it before the run was opened: what mends it may drop the head.

    Raises:
        RunNotFound, SchemaTooNew: As `records`.
    """
    return fold_beside(run_id, records(store, run_id), head)


def load(store: Store, run_id: str) -> RunState:
    """Return what a run's records say, damaged ones left out; of a corrupt run the calls and the money.

    What its parts hold by now is in it: of tasks that are with an executor, and what people decided meanwhile.

    Raises:
        RunNotFound, SchemaTooNew: As `records`.
    """
    builder, missing = folded(store, run_id, store.written_head(run_id))
    if missing is not None:
        builder.apply(_at_end(builder.state, missing))
    for record in not_copied(store, builder.state):
        builder.apply(record)
    return builder.state


def summary(store: Store, run_id: str) -> RunState:
    """Return what `load` does, but of the tasks of a long map only how many completed."""
    builder = _counted(store, run_id)
    if builder is None:
        return load(store, run_id)
    for record in not_copied(store, builder.state):
        builder.apply(record)
    return builder.state


def _counted(store: Store, run_id: str) -> Builder | None:
    """Return the state with finished tasks counted; None where the records must be looked at one by one.

    A finished task is counted by its line where it differs from the last one only from the task's name on. Whatever
    takes finished work back, or leaves a doubt, is looked at in full.
    """
    builder, seq, alike, line = Builder(run_id), 0, b"", b""
    state, table = builder.state, TaskTable()
    for line in store.read(run_id):
        seq += 1
        start = b'{"seq":%d,"at":"' % seq
        if not line.startswith(start):
            return None
        if alike and line.startswith(alike, len(start) + _STAMP_CHARS):
            table.unlisted += 1
            continue
        fact = _applied(builder, line)
        if fact is None:
            return None
        alike = b""
        if isinstance(fact, TaskCompleted) and not _minds_tasks(state):
            table = cast(TaskTable, state.tasks[fact.path])
            alike = line[len(start) + _STAMP_CHARS : line.find(b'"task":')] + b'"task":"'
    if state.seq < seq:
        table.unlisted -= 1
        builder.apply(decode_line(line, whole=True))
    head = store.written_head(run_id)
    doubtful = state.submitted or head.get("holes") or int(head.get("seq") or 0) > seq
    return builder if seq and not doubtful else None


def _applied(builder: Builder, line: bytes) -> Fact | None:
    """Return the fact of a line, once it is applied; None: after it, tasks cannot be counted by their lines."""
    try:
        record = decode_line(line, whole=True)
    except LineDamaged:
        return None
    fact, state = record.fact, builder.state
    late = isinstance(fact, TaskCompleted) and record.owner != state.owner
    if late or isinstance(fact, Gap | Invalidated | Snapshot | UnknownFact):
        return None
    _refuse_newer(state.run_id, fact)
    builder.apply(record)
    return fact


def _minds_tasks(state: RunState) -> bool:
    """Return whether the end of a task changes anything but the number of finished ones."""
    return bool(state.unknown_tasks or state.submitted or state.remarks or state.memo or state.recalled)


def all_records(store: Store, run_id: str) -> Iterator[Record]:
    """Return what `records` does, followed by what is in the parts of the run only, as if it were its own.

    Raises:
        RunNotFound, SchemaTooNew: As `records`.
    """
    return with_parts(store, run_id, _with_missing(store, run_id))


def _with_missing(store: Store, run_id: str) -> Iterator[Record]:
    """Return the records, then what the head knew of others that are missing."""
    head, last, holed = store.written_head(run_id), 0, False
    for record in records(store, run_id):
        last, holed = record.seq, holed or isinstance(record.fact, (Gap, UnknownFact))
        yield record
    if holed or head.get("holes") or int(head.get("seq") or 0) > last:
        builder, missing = folded(store, run_id, head)
        if missing is not None:
            yield _at_end(builder.state, missing)


def _at_end(state: RunState, fact: Fact) -> Record:
    return Record(state.seq, state.updated_at, state.owner, fact)


def resolve(store: Store, text: str, pipeline: str | None = None) -> str:
    """Return the run that a text means: an exact id, else `latest`, else the only id that begins so.

    Args:
        pipeline: `latest` is the newest run of this one; None: of any.

    Raises:
        RunNotFound: None, or several; names the candidates.
    """
    names = []
    for head in store.heads():
        if text == head.run_id or (text == LATEST and _is_of(head, pipeline)):
            return head.run_id
        if head.run_id.startswith(text):
            names.append(head.run_id)
    if len(names) == 1 and text:
        return names[0]
    if not names or not text:
        of = "" if pipeline is None else f"of the pipeline {pipeline!r} "
        what = f"{of}yet" if text == LATEST else repr(text)
        hint = "`./pipeline.sh list` shows the runs there are."
        raise RunNotFound(f"There is no run {what}.", hint=hint, run=text, pipeline=pipeline)
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    raise RunNotFound(f"{text!r} may mean {shown}.", hint="Type more of the id.", run=text, candidates=names)


def _is_of(head: Head, pipeline: str | None) -> bool:
    # Documents of the original system name no pipeline: they are courses.
    return pipeline is None or (head.document.get("pipeline") or COURSES) == pipeline


def kept_spend(store: Store, account: Account) -> Mapping[str, Mapping[str, Any]]:
    """Return the sums of runs that are really gone: a row counts only while no run of that id exists."""
    return {run: sums for run, sums in account.kept().items() if not _exists(store, run)}


def is_sound(store: Store, run: str, blob: str) -> bool:
    """Return whether a value is there and undamaged."""
    try:
        store.get_blob(run, blob)
    except CheckpointCorrupt:
        return False
    return True


def _exists(store: Store, run: str) -> bool:
    try:
        store.read(run)
    except RunNotFound:
        return False
    return True
