"""What an owner that was fenced out had already paid for: kept in a sub-journal, and taken in by the next owner."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pipeline.errors import PipelineError
from pipeline.records.codec import decode_line
from pipeline.records.kinds import CallEnded, ChargeSettled, TaskCompleted
from pipeline.records.lines import LineDamaged, encode_line, line_body
from pipeline.store.base import Journal
from pipeline.store.names import split
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket
from pipeline.store.objects.lines import entries, lines

#: Money was spent, or a finished value is known; the rest is for the new owner to decide.
_KEPT = (CallEnded, TaskCompleted, ChargeSettled)
_NAME = re.compile(r"late-[0-9]+")


def worth_keeping(given: Sequence[bytes]) -> list[bytes]:
    """Those of the lines that must not be lost."""
    return [line for line in given if isinstance(decode_line(line).fact, _KEPT)]


class LateJournal:
    """The sub-journal of an owner that is none any more; only it writes here, so it needs no lease."""

    def __init__(self, bucket: Bucket, run: str, epoch: int) -> None:
        self.name = f"{run}/late-{epoch}"
        self._bucket = bucket
        self._seq = 0

    def add(self, given: Sequence[bytes]) -> bool:
        """Keep lines, durable on return; False where the server refused."""
        for line in given:
            record = decode_line(line)
            data = encode_line(self._seq + 1, record.at, record.owner, line_body(line))
            try:
                if self._bucket.put_new(keys.journal(self.name, self._seq + 1), data) is None:
                    return False
            except PipelineError:
                return False
            self._seq += 1
        return True


def waiting(bucket: Bucket, run: str) -> list[str]:
    """Sub-journals of late records of this run or sub-journal that nobody has taken in."""
    run_id, path = split(run)
    before = f"{path}/" if path else ""
    found = []
    for name in bucket.names(f"{keys.RUNS}/{run_id}/parts"):
        inner = keys.part_path(f"/parts/{name}/")
        if inner.startswith(before) and _NAME.fullmatch(inner.removeprefix(before)):
            found.append(f"{run_id}/{inner}")
    return found


def take_in(bucket: Bucket, journal: Journal, late: str) -> None:
    """Append what a late sub-journal holds and the journal does not, then remove it.

    It gets new numbers and keeps its owner, so its money and values count and its position does not.

    Raises:
        WriteFailed: What was not taken in is still there.
    """
    bodies = Counter(line_body(line) for line in lines(bucket, journal.run_id, entries(bucket, journal.run_id)))
    for line in lines(bucket, late, entries(bucket, late)):
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
    bucket.delete([entry.key for entry in bucket.under(keys.home(late))])
