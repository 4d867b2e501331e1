"""Preserve paid results written by an owner that lost its lease, and take them into the run."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pipeline.errors import PipelineError
from pipeline.records.codec import decode_line
from pipeline.records.kinds import CallEnded, ChargeSettled, TaskCompleted
from pipeline.records.lines import LineDamaged, encode_line, line_body
from pipeline.store.backend import Backend, folder_key
from pipeline.store.base import Journal
from pipeline.store.survey import whole_lines

#: Money was spent, or a finished value is known; the rest is for the new owner to decide.
_KEPT = (CallEnded, TaskCompleted, ChargeSettled)
#: Where earlier versions kept them: a part of the run.
_LATE = "late-"
_PART = re.compile(r"(?:(.*)/)?late-[0-9]+")
_TRIES = 1000


def worth_keeping(lines: Sequence[bytes]) -> list[bytes]:
    """Return those of the lines that must not be lost."""
    return [line for line in lines if isinstance(decode_line(line).fact, _KEPT)]


def keep(backend: Backend, run: str, epoch: int, lines: Sequence[bytes]) -> bool:
    """Keep lines of a run or part beside it, durable on return; False: the backend refused."""
    data = b"".join(lines)
    with contextlib.suppress(PipelineError, OSError):
        for number in range(1, _TRIES):
            if backend.put_if(f"{folder_key(run)}/late/{epoch:09d}-{number:06d}", data, "") is not None:
                return True
    return False


def take_in(backend: Backend, journal: Journal) -> None:
    """Append what former owners of a run or part have left and it does not have, then remove it.

    Raises:
        WriteFailed: As Journal.append; what was not taken in is still there.
    """
    run = journal.run_id
    run_id, _, path = run.partition("/")
    for key in list(backend.list(f"{folder_key(run)}/late/")):
        found = backend.get(key)
        if found is not None:
            append_missing(journal, found[0].splitlines(keepends=True), _known(backend, run))
        backend.delete(key)
    for part in backend.parts(run_id, _LATE):
        old = _PART.fullmatch(part)
        if old is not None and (old[1] or "") == path:
            append_missing(journal, whole_lines(backend.read(f"{run_id}/{part}")), _known(backend, run))
            backend.delete(folder_key(f"{run_id}/{part}"))


def append_missing(journal: Journal, lines: Iterable[bytes], known: Iterable[bytes]) -> None:
    """Append those lines that the journal does not have.

    They get new numbers and keep their owner, so their money and values count and their position does not.

    Raises:
        WriteFailed: As Journal.append.
    """
    bodies = Counter(map(line_body, known))
    for line in lines:
        body = line_body(line)
        if bodies[body] > 0:
            bodies[body] -= 1
            continue
        try:
            record = decode_line(line)
        except LineDamaged:
            continue
        seq = journal.last_seq + 1
        journal.append(seq, [encode_line(seq, record.at, record.owner, body)])


def _known(backend: Backend, run: str) -> Iterable[bytes]:
    try:
        return whole_lines(backend.read(run))
    except FileNotFoundError:
        return ()
