"""A run's head made afresh from what any backend has: its lines and the last head."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Any

from pipeline.errors import CheckpointCorrupt, PipelineError, SchemaTooNew
from pipeline.records.charge import amount
from pipeline.records.codec import Record, decode_line
from pipeline.records.documents import head_document
from pipeline.records.fold import Builder
from pipeline.records.kinds import FORMAT, Gap, RunStarted
from pipeline.records.lines import LineDamaged, line_seq
from pipeline.records.run import RunState, Spend
from pipeline.records.structure import HEAD
from pipeline.store.repair import missing_before

#: A head tells amounts as numbers of 15 digits: what is less is no money.
_LEAST = Decimal("0.000000001")
#: Why a gap is recorded that no line is missing for.
_KNEW_MORE = "the head lists more than the records"


def records_in(lines: Iterable[bytes], after: int = 0) -> Iterator[Record]:
    """Return the records of whole lines; where some are missing or make no sense, a gap is in their place."""
    last: Record | None = None
    senseless = 0
    for line in lines:
        try:
            record = decode_line(line, whole=True)
        except LineDamaged:
            senseless = line_seq(line)
            continue
        if record.seq != (last.seq if last is not None else after) + 1:
            gap = missing_before(last, record) if last is not None or not after else None
            if gap is not None:
                yield Record(gap.first, record.at, last.owner if last else record.owner, gap)
        yield record
        last = record
    if last is not None and senseless > last.seq:
        lost = Gap(last.seq + 1, senseless, reason="the last records are inconsistent")
        yield Record(senseless, last.at, last.owner, lost)


def fold_beside(run: str, records: Iterable[Record], head: Mapping[str, Any]) -> tuple[Builder, Gap | None]:
    """Return the fold of a run's records; and what a head knew to be spent that they do not tell, as a gap.

    Args:
        head: As it was last written; {} if there is none. It tells all records up to its seq.
    """
    builder = Builder(run)
    state, seq = builder.state, head.get("seq")
    seq = seq if isinstance(seq, int) else 0
    then: Spend | None = None
    told = 0
    for record in records:
        if record.seq > seq and then is None:
            then = state.total.copy()
        builder.apply(record)
        if isinstance(record.fact, Gap):
            told = max(told, record.fact.head)
    short = seq > state.seq
    if told >= seq or state.imported or not (short or state.gaps or head.get("holes")):
        return builder, None
    knew = _known(head)
    if knew is None:
        return builder, None
    now = state.total if then is None else then
    low, high = (
        max(more.quantize(_LEAST, ROUND_DOWN), Decimal(0))
        for more in (knew[0] - now.usd - now.low, knew[1] - now.usd - now.high)
    )
    whole = not head.get("holes")
    if not (low or high or short or (whole and state.lost.unbounded)):
        return builder, None
    # Where it knew all that is missing, and no more money than the records, none is missing.
    first, last = (state.seq + 1, seq) if short else (1, 0)
    return builder, Gap(first, last, reason=_KNEW_MORE, head=seq, low=str(low), high=str(high), whole=whole)


def _known(head: Mapping[str, Any]) -> tuple[Decimal, Decimal] | None:
    """Return what a head says was spent: at least, and at most as far as that has a bound; None: it makes no sense."""
    low = high = Decimal(0)
    try:
        for row in head["spend"]:
            usd, least, most = (amount(str(row.get(name) or 0)) for name in ("usd", "low", "high"))
            low, high = low + usd + least, high + usd + max(least, most)
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    return low, high


def unrecorded_gaps(lines: Iterable[bytes]) -> list[Gap]:
    """Return where records are missing or make no sense and no record says so."""
    recorded = [line for line in lines if b'"kind":"gap"' in line]
    return [
        record.fact for record in records_in(lines)
        if isinstance(record.fact, Gap) and not any(line_seq(line) == record.seq for line in recorded)
    ]  # fmt: skip


def first_problem(line: bytes | None) -> PipelineError | None:
    """Return why a run with this first line cannot be resumed; None if it can."""
    try:
        record = decode_line(line or b"")
    except LineDamaged:
        return CheckpointCorrupt("Its first record is damaged.", code="first_record_damaged")
    if record.seq != 1 or not isinstance(record.fact, RunStarted):
        return CheckpointCorrupt("Its first record does not start a run.", code="first_record_damaged")
    if not isinstance(record.fact.format, int) or record.fact.format > FORMAT:
        return SchemaTooNew(
            f"It is written in format {record.fact.format}, by a newer version of this program "
            f"({record.fact.product or 'unknown'}); this one reads format {FORMAT}.",
            hint="Upgrade, then try again.",
        )
    return None


def fresh_document(
    run: str,
    lines: Iterable[bytes],
    size: int,
    old: Mapping[str, Any],
    get_blob: Callable[[str], bytes],
) -> dict[str, Any]:
    """Return the head as it must read after all lines; `old` is the last one written, {} if there is none."""
    builder, missing = fold_beside(run, records_in(lines), old)
    state = builder.state
    if missing is not None:
        builder.apply(Record(state.seq, state.updated_at, state.owner, missing))
    known = old.get("nodes")
    nodes = known if known and not HEAD["nodes"](known) else pinned_nodes(state, get_blob)
    document = head_document(state, size, nodes)
    seen = old.get("seq")
    if isinstance(seen, int) and seen > state.seq:
        document["lost"] = f"Records {state.seq + 1} to {seen} are missing from the journal."
    return document


def pinned_nodes(state: RunState, get_blob: Callable[[str], bytes]) -> Sequence[str]:
    """Return the node names of the graph that the run is pinned to; () where that cannot be read."""
    blob = state.pins.get("graph")
    if not blob:
        return ()
    try:
        graph = json.loads(get_blob(blob))
        return [str(node["id"] if isinstance(node, dict) else node) for node in graph["nodes"]]
    except (CheckpointCorrupt, ValueError, KeyError, TypeError, RecursionError):
        return ()
