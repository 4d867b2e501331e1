"""What a process knows of a thread's run: read once, then read on from where it ended. Never writes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from pipeline.formats.langgraph.finding import SOURCE
from pipeline.formats.langgraph.thread import Thread
from pipeline.records.codec import Record
from pipeline.records.fold import Builder
from pipeline.records.kinds import DocumentKept, Gap
from pipeline.records.lines import line_seq
from pipeline.store.base import Store
from pipeline.store.view import records_in

_log = logging.getLogger("pipeline")


@dataclass
class Known:
    """A thread's run, up to a record."""

    thread: Thread
    builder: Builder
    #: The first line, which says what the run is.
    first: bytes = b""
    #: The last line that was read, and its number.
    line: bytes = b""
    seq: int = 0
    #: Another run of the thread, which does not count any more: a process died before it removed it.
    spare: str = ""
    #: Blobs that were written.
    sound: set[str] = field(default_factory=set)

    def read_on(self, store: Store) -> bool:
        """Take in the records that came since; False: another run has this name by now.

        Raises:
            RunNotFound: It is gone.
        """
        lines = store.read(self.thread.run_id, after=max(self.seq - 1, 0))
        seen: list[bytes] = []
        if self.seq:
            seen = [next(lines, b"").rstrip(b"\n")]
            if seen[0] != self.line:
                return False
        self.take(lines, seen)
        return True

    def take(self, lines: Iterable[bytes], seen: Iterable[bytes] = ()) -> None:
        """Take in lines that follow.

        Args:
            seen: The line before them, known already.
        """
        before = self.seq
        for record in records_in(chain(seen, self._noted(lines)), max(before - 1, 0)):
            if record.seq > before:
                self.builder.apply(record)
                self._take(record)

    def _noted(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            self.line = line.rstrip(b"\n")
            self.seq = line_seq(self.line)
            self.first = self.first or self.line
            yield self.line

    def _take(self, record: Record) -> None:
        """Add what a record says, if it is one of ours and makes sense."""
        fact, run = record.fact, self.thread.run_id
        if isinstance(fact, Gap):
            _log.warning("Records %s to %s of run %s are damaged: the checkpoints that they held are not found.",
                         fact.first, fact.last, run)  # fmt: skip
        if not isinstance(fact, DocumentKept) or fact.source != SOURCE:
            return
        try:
            self.thread.take(json.loads(fact.content))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            _log.warning("Record %s of run %s makes no sense (%s); what it held is not found.", record.seq, run, error)


def unread(run: str) -> Known:
    """A run of which nothing is known yet."""
    return Known(Thread(run), Builder(run))
