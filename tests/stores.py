"""Whole runs put into any store, for tests."""

from __future__ import annotations

from datetime import timedelta

from pipeline.records.codec import decode_line
from pipeline.records.documents import head_document
from pipeline.records.fold import fold
from pipeline.records.lines import line_seq
from pipeline.store.base import Claim, Store
from tests.journals import AT


def write(store: Store, lines: list[bytes], *, head: bool = True, claim: Claim | None = None, days: float = 0) -> str:
    """A run of these lines that nobody owns."""
    run, journal = store.create(lines[0], [], at=AT - timedelta(days=days), claim=claim)
    journal.append(2, lines[1:])
    if head:
        state = fold(run, map(decode_line, store.read(run)))
        journal.write_head(head_document(state, journal.size, ["seed", "sow", "lessons", "publish"]), True)
    journal.close()
    return run


def ids(store: Store) -> list[str]:
    return [head.run_id for head in store.heads()]


def seqs(store: Store, run: str, after: int = 0) -> list[int]:
    """The numbers of the records that are read of a run."""
    return [line_seq(one) for one in store.read(run, after)]
