"""Paid calls of a run as people look at them: what was asked, what came back, what it cost to the last digit."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.app.run_trail import Trail
from pipeline.clock import parse_iso
from pipeline.cost.ledger import BILLED, LedgerRow, rows
from pipeline.errors import RunNotFound
from pipeline.records.codec import Record, decode_line
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.records.values import resolve_value
from pipeline.store.base import Store
from pipeline.travel.values import Reader

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
#: Texts of more words are compared less closely, so that it takes no minutes.
_MANY_WORDS = 2_000


@dataclass(frozen=True)
class Call:
    """The records of one call."""

    run: str
    start: Record
    fact: CallStarted
    end: Record | None
    row: LedgerRow
    #: Seconds between the end of the item's call before and the start of this one; None: it is the first.
    waited: float | None = None

    @property
    def ended(self) -> CallEnded | None:
        """Return how it ended."""
        return self.end.fact if self.end is not None and isinstance(self.end.fact, CallEnded) else None

    @property
    def seconds(self) -> float | None:
        """Return how long its answer took."""
        return None if self.end is None else _between(self.start, self.end)

    def to_json(self) -> dict[str, Any]:
        """Return it as a row of a list of calls; money with every digit."""
        row = self.row
        return {
            "seq": self.start.seq, "label": self.fact.label, "attempt": self.fact.attempt, "try": self.fact.k,
            "stop_reason": row.stop_reason, "model": row.model, "started_at": self.start.at, "seconds": self.seconds,
            "tokens": sum(row.tokens.values()), "usd": None if row.usd is None else f"{row.usd:f}",
            "low": f"{row.low:f}", "high": None if row.high is None else f"{row.high:f}",
        }  # fmt: skip

    def charge(self) -> dict[str, Any]:
        """Return what it cost: by kind with its price, every digit."""
        row = self.row
        kinds = [kind for kind in BILLED if row.tokens.get(kind) or row.parts.get(kind)]
        return {
            "state": row.state, "usd": None if row.usd is None else f"{row.usd:f}", "low": f"{row.low:f}",
            "high": None if row.high is None else f"{row.high:f}", "note": row.note, "source": row.source,
            "tier": row.tier, "saved_cache": f"{row.saved_cache:f}" if row.saved_cache else "",
            "saved_batch": f"{row.saved_batch:f}" if row.saved_batch else "",
            "kinds": [
                {"kind": kind.replace("_", " "), "tokens": row.tokens.get(kind, 0),
                 "price": f"{row.prices[kind]:f}" if kind in row.prices else "",
                 "usd": f"{row.parts[kind]:f}" if kind in row.parts else ""}
                for kind in kinds
            ],
        }  # fmt: skip


def find_call(store: Store, run: str, trail: Trail, seq: int) -> Call:
    """Return a call by the seq of its start.

    Raises:
        RunNotFound: No call began with that record.
    """
    start = _record(store, run, seq)
    if start is None or not isinstance(start.fact, CallStarted):
        raise RunNotFound(f"Record {seq} of run {run} begins no call.", code="call_not_found",
                          hint="The page of an item lists its calls.")  # fmt: skip
    fact = start.fact
    ends = dict(_seqs(trail, fact.path, fact.task))
    end = _record(store, run, ends[seq]) if ends.get(seq) else None
    settled = (_record(store, run, each) for each in trail.settled.get(seq, ()))
    found = [record for record in (start, end, *settled) if record is not None]
    last = max((ended for began, ended in ends.items() if began < seq and ended), default=0)
    before = _record(store, run, last) if last else None
    return Call(run, start, fact, end, rows(found)[0], None if before is None else _between(before, start))


def calls_of(store: Store, run: str, trail: Trail, path: str, task: str | None) -> list[Call]:
    """Return all calls of an item, or of a step itself, in order."""
    return [find_call(store, run, trail, seq) for seq, _ in _seqs(trail, path, task)]


def _seqs(trail: Trail, path: str, task: str | None) -> tuple[tuple[int, int], ...]:
    work = trail.items.get((path, task))
    return work.calls if work is not None else ()


def _record(store: Store, run: str, seq: int) -> Record | None:
    line = next(iter(store.read(run, after=seq - 1)), None)
    record = None if line is None else decode_line(line)
    return record if record is not None and record.seq == seq else None


def _between(one: Record, two: Record) -> float:
    return (parse_iso(two.at) - parse_iso(one.at)).total_seconds()


def reply_of(store: Store, call: Call) -> Mapping[str, Any]:
    """Return the reply as recorded; {} where none came.

    Raises:
        CheckpointCorrupt: It is damaged.
    """
    ended = call.ended
    if ended is None or ended.reply is None:
        return {}
    found = resolve_value(json.loads(ended.reply), lambda blob: store.get_blob(call.run, blob))
    return found if isinstance(found, Mapping) else {}


def asked_of(store: Store, call: Call) -> Mapping[str, Any]:
    """Return the request as it was sent; {} where none is recorded: it came with a fork or an import.

    Raises:
        CheckpointCorrupt: It is damaged.
    """
    found = Reader(store, call.run).blob(call.fact.request) if call.fact.request else {}
    return found if isinstance(found, Mapping) else {}


def segments_of(asked: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return the parts of a request: (name, text, marked as the end of a cached part)."""
    found = [(f"System {number}", str(part.get("text", "")), bool(part.get("cache")))
             for number, part in enumerate(asked.get("system") or (), 1)]  # fmt: skip
    found += [(str(turn.get("role", "")).capitalize(), str(turn.get("text", "")), False)
              for turn in asked.get("messages") or ()]  # fmt: skip
    if asked.get("schema"):
        found.append(("Schema of the answer", json.dumps(asked["schema"], indent=2, ensure_ascii=False), False))
    return found


def words_apart(before: str, after: str) -> Iterator[list[str]]:
    """Yield the texts' parts in order: [what, words], what being "same", "del" (before only) or "ins" (after only)."""
    one, two = _WORDS.findall(before), _WORDS.findall(after)
    for what, a, b, c, d in difflib.SequenceMatcher(None, one, two, autojunk=len(one) > _MANY_WORDS).get_opcodes():
        if what == "equal":
            yield ["same", "".join(one[a:b])]
            continue
        if a < b:
            yield ["del", "".join(one[a:b])]
        if c < d:
            yield ["ins", "".join(two[c:d])]
