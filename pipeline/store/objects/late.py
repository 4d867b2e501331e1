"""Where a bucket keeps what an owner that was fenced out had already paid for."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.errors import PipelineError
from pipeline.records.codec import decode_line
from pipeline.records.lines import encode_line, line_body
from pipeline.store.base import Journal
from pipeline.store.late import append_missing, is_late, late_name
from pipeline.store.names import split
from pipeline.store.objects import keys
from pipeline.store.objects.bucket import Bucket
from pipeline.store.objects.lines import entries, lines


class LateJournal:
    """The sub-journal of an owner that is none any more; only it writes here, so it needs no lease."""

    def __init__(self, bucket: Bucket, run: str, epoch: int) -> None:
        self.name = late_name(run, epoch)
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
    run_id, _ = split(run)
    parts = (keys.part_path(f"/parts/{name}/") for name in bucket.names(f"{keys.RUNS}/{run_id}/parts"))
    named = (name for part in parts if part and is_late(run, name := f"{run_id}/{part}"))
    # Some servers go on naming a folder for a while whose objects are gone.
    return [name for name in named if next(bucket.under(keys.home(name)), None) is not None]


def take_in(bucket: Bucket, journal: Journal, late: str) -> None:
    """Append what a late sub-journal holds and the journal does not, then remove it.

    Raises:
        WriteFailed: What was not taken in is still there.
    """
    known = lines(bucket, journal.run_id, entries(bucket, journal.run_id))
    append_missing(journal, lines(bucket, late, entries(bucket, late)), known)
    bucket.delete([entry.key for entry in bucket.under(keys.home(late))])
