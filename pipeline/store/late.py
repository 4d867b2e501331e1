"""What an owner that was fenced out had already paid for: which lines are kept, how they are taken in, what it says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pipeline.errors import WriteFailed
from pipeline.records.codec import decode_line
from pipeline.records.kinds import CallEnded, ChargeSettled, TaskCompleted
from pipeline.records.lines import LineDamaged, encode_line, line_body
from pipeline.store.base import Journal
from pipeline.store.emergency import advice

#: Money was spent, or a finished value is known; the rest is for the new owner to decide.
_KEPT = (CallEnded, TaskCompleted, ChargeSettled)
_BACK = "Bring the run back from a copy of the store"
_NAME = re.compile(r"late-[0-9]+")


def refused(run: str, why: str, *, lost: bool, gone: bool, kept: str, awaited: str) -> WriteFailed:
    """Why the journal of a server takes nothing more, and what to do.

    Args:
        why: What went wrong; where the run was lost to another owner, or is gone, that is said instead.
        kept: The file that holds what nobody took; "" if there is none.
        awaited: What has to answer again, for people.
    """
    if gone:
        return WriteFailed(
            f"Run {run} is gone: it was removed from the store while it was going on.",
            hint=f"{_BACK}, then go on with the run.", fatal=True, emergency=kept, run=run, gone=_BACK,
        )  # fmt: skip
    hint = f"Go on with the run once the {awaited} answers."
    if lost:
        why = f"Run {run} was taken over by another process, so this one stops."
        hint = f"What it had paid for is kept with the run: `./pipeline.sh status {run}` shows it."
    if kept:
        hint = advice(run, kept)
    return WriteFailed(why, hint=hint, fatal=True, emergency=kept, run=run)


def late_name(run: str, epoch: int) -> str:
    """The sub-journal where an owner of that epoch leaves them."""
    return f"{run}/late-{epoch}"


def is_late(run: str, name: str) -> bool:
    """Whether a sub-journal is one that an owner of this run or sub-journal has left."""
    return name.startswith(f"{run}/") and _NAME.fullmatch(name[len(run) + 1 :]) is not None


def worth_keeping(given: Sequence[bytes]) -> list[bytes]:
    """Those of the lines that must not be lost."""
    return [line for line in given if isinstance(decode_line(line).fact, _KEPT)]


def append_missing(journal: Journal, late: Iterable[bytes], known: Iterable[bytes]) -> None:
    """Append what was left late and the journal does not know.

    It gets new numbers and keeps its owner, so its money and values count and its position does not.

    Raises:
        WriteFailed: As Journal.append.
    """
    bodies = Counter(map(line_body, known))
    for line in late:
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
