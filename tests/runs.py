"""Runs as a test wants them: facts appended to a real store, one line a fact."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pipeline.clock import SystemClock, iso
from pipeline.records.charge import Charge
from pipeline.records.codec import decode_line, encode_fact
from pipeline.records.documents import head_document
from pipeline.records.fold import Builder
from pipeline.records.kinds import (
    CallEnded,
    CallStarted,
    Fact,
    RunEnded,
    RunStarted,
    StepCompleted,
    StepFailed,
    StepStarted,
    TaskCompleted,
)
from pipeline.records.lines import encode_line
from pipeline.records.values import canonical, digest, encode_value
from pipeline.store.files import FileStore
from tests.faulty_disk import LazyDisk

#: Written, not synced: what these tests show does not depend on a power cut.
HastyDisk = LazyDisk
STEPS = ("seed", "sow", "lessons", "publish")
BEGIN = datetime(2026, 1, 9, 14, 30, 22, tzinfo=UTC)


class Script:
    """One run being written, fact by fact."""

    def __init__(
        self,
        root: Path,
        *,
        at: datetime = BEGIN,
        pins: Mapping[str, Any] | None = None,
        execution: Mapping[str, Any] | None = None,
        **params: str,
    ) -> None:
        self._store = FileStore(root, SystemClock(), disk=HastyDisk())
        self._at = at
        self._seq = 1
        graph = canonical(_chain(STEPS))
        params = params or {"subject": "mathematics", "level": "national_5"}
        identity = {"author": "model", "model": "claude-sonnet-5-5", "lessons": 3}
        texts = {"graph": graph, **{name: canonical(value) for name, value in (pins or {}).items()}}
        fact = RunStarted(
            "lessons", params, identity, execution or {}, pins={name: digest(text) for name, text in texts.items()}
        )
        first = encode_line(1, iso(at), 1, encode_fact(fact))
        self.id, self._journal = self._store.create(first, list(texts.values()), at=at)
        self._builder = Builder(self.id)
        self._builder.apply(decode_line(first))

    def add(self, fact: Fact, *, after: float = 1.0) -> int:
        """Append one fact, `after` seconds later; its seq."""
        self._seq += 1
        self._at += timedelta(seconds=after)
        line = encode_line(self._seq, iso(self._at), 1, encode_fact(fact))
        self._journal.append(self._seq, [line])
        self._builder.apply(decode_line(line))
        return self._seq

    def blob(self, value: Any) -> str:
        """Store a JSON value; its hash."""
        return self._journal.put_blob(canonical(value))

    def begin(self, step: str) -> Script:
        """The step starts."""
        before = STEPS.index(step) - 1
        consumed = [[f"{STEPS[before]}->{step}", f"{STEPS[before]}#1"]] if before >= 0 else []
        self.add(StepStarted(f"{step}#1", consumed=consumed))
        return self

    def complete(self, step: str, outputs: Mapping[str, Any], *, seconds: float = 3.0, **made: Any) -> Script:
        """The step ends well; `made`: its artifacts."""
        after = STEPS.index(step) + 1
        edges = [f"{step}->{STEPS[after]}"] if after < len(STEPS) else []
        artifacts = {name: self.blob(value) for name, value in made.items()}
        self.add(
            StepCompleted(f"{step}#1", outputs, f"{self._seq:032x}", edges=edges, artifacts=artifacts, seconds=seconds),
            after=seconds,
        )
        return self

    def fail(self, step: str, message: str) -> Script:
        """The step fails."""
        error = {"type": "StepFailed", "message": message, "hint": ""}
        self.add(StepFailed(f"{step}#1", error, f"{self._seq:032x}", seconds=2.0))
        return self

    def call(
        self, step: str, task: str | None, charge: Charge | None, *, worst: str = "0.10", error: str = ""
    ) -> Script:
        """One try; without a charge it has no recorded end."""
        seq = self.add(
            CallStarted(f"{step}#1", f"{self._seq:064x}", "claude-sonnet-5-5", self.blob({"n": self._seq}), task=task,
                        label="lesson", worst=worst)
        )  # fmt: skip
        if charge is not None:
            facts = {"type": "ModelUnavailable", "message": error} if error else None
            reply = None if error else encode_value({"text": "x", "stop_reason": "end_turn"})
            self.add(CallEnded(seq, reply, charge.to_json(), usable=not error, error=facts,
                               stop_reason=None if error else "end_turn"))  # fmt: skip
        return self

    def task(self, step: str, key: str, value: Any) -> Script:
        """An item is made."""
        self.add(TaskCompleted(f"{step}#1", key, encode_value(value), hash="h"))
        return self

    def end(self, status: str, detail: str | None = None, message: str = "") -> str:
        """The owner leaves; the run's id."""
        error = {"type": "StepFailed", "message": message, "hint": ""} if message else None
        self.add(RunEnded(status, detail, error, f"./pipeline.sh lessons --resume {self.id}"))
        return self.leave()

    def leave(self) -> str:
        """Close without a word, as a killed process does but for the lock; the run's id."""
        self.head()
        self._journal.close()
        return self.id

    def head(self) -> None:
        """Write checkpoint.json."""
        document = head_document(self._builder.state, _size(self._store, self.id), STEPS)
        self._journal.write_head(document, True)


def _size(store: FileStore, run: str) -> int:
    return sum(len(line) if line.endswith(b"\n") else len(line) + 1 for line in store.read(run))


def _chain(steps: tuple[str, ...]) -> dict[str, Any]:
    edges = [
        {"source": before, "target": after, "when": None, "id": f"{before}->{after}"}
        for before, after in itertools.pairwise(steps)
    ]
    return {"start": steps[0], "nodes": [{"id": step} for step in steps], "edges": edges}
