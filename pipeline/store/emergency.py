"""The last resort: records that their journal's disk refused, kept in a file elsewhere until `recover` appends them."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import Counter
from pathlib import Path

from pipeline.errors import StoreError
from pipeline.records.codec import decode_line, encode_fact
from pipeline.records.kinds import Gap
from pipeline.records.lines import LineDamaged, check_line, encode_line, line_body, line_seq
from pipeline.store.base import Journal, Store


class EmergencyFile:
    """A file of journal lines outside the store; made when first written to."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._fd = -1
        #: Where it is; "" while there is none, or where nothing could be written anywhere.
        self.path = ""

    def add(self, data: bytes) -> None:
        """Keep whole lines, synced. Never raises: there is nowhere left to go."""
        if not data:
            return
        if self._fd < 0:
            self._make()
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.write(self._fd, data)
                os.fsync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _make(self) -> None:
        if self.path:
            with contextlib.suppress(OSError):
                self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
            return
        name = self._run.replace("/", "_")
        for folder in (tempfile.gettempdir(), str(Path.home()), "."):
            try:
                self._fd, path = tempfile.mkstemp(".jsonl", f"pipeline-{name}-", folder)
                self.path = str(Path(path).resolve())
                os.write(self._fd, json.dumps({"emergency": self._run}).encode() + b"\n")
            except OSError:
                self.close()
                continue
            return


def recover(store: Store, run: str, file: Path) -> int:
    """Append to a run what an emergency file holds; records the run has already are left alone.

    A record whose number was given to another one since is appended at the end: it still names its
    owner, so its money and values count and its position does not.

    Returns how many records were appended; they are durable.

    Raises:
        StoreError: The file cannot be read, or belongs to another run.
        RunLocked, RunNotFound, CheckpointCorrupt, WriteFailed: As Store.open and Journal.append.
    """
    lines = _read(file, run)
    if not lines:
        return 0
    journal = store.open(run)
    try:
        present = Counter(line_body(line) for line in store.read(run, after=line_seq(lines[0]) - 1))
        missing = [line for line in lines if not _found(present, line_body(line))]
        for line in missing:
            _append(journal, line)
    finally:
        journal.close()
    return len(missing)


def _found(present: Counter[bytes], body: bytes) -> bool:
    present[body] -= 1
    return present[body] >= 0


def _append(journal: Journal, line: bytes) -> None:
    seq, record = line_seq(line), decode_line(line)
    # Numbers are kept where they are free, because records name each other by them.
    for missing in range(journal.last_seq + 1, seq):
        hole = encode_fact(Gap(missing, missing, reason="neither in the journal nor in the emergency file"))
        journal.append(missing, [encode_line(missing, record.at, record.owner, hole)], sync=False)
    if seq <= journal.last_seq:
        seq = journal.last_seq + 1
        line = encode_line(seq, record.at, record.owner, line_body(line))
    journal.append(seq, [line.rstrip(b"\n") + b"\n"])


def _read(file: Path, run: str) -> list[bytes]:
    try:
        head, *lines = file.read_bytes().split(b"\n")
        owner = json.loads(head)["emergency"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} is no emergency file of a run.", file=str(file)) from error
    if owner != run:
        raise StoreError(f"{file} holds records of run {owner}, not of {run}.", file=str(file), run=owner)
    whole = []
    for line in lines:
        with contextlib.suppress(LineDamaged):
            decode_line(line)
            whole.append(check_line(line))
    return whole
