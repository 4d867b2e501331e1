"""A run as `list` sees it, from what any backend has: lines, the last head, and whether the owner lives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.errors import CheckpointCorrupt, PipelineError, SchemaTooNew
from pipeline.records.codec import Record, decode_line
from pipeline.records.documents import head_document
from pipeline.records.fold import fold
from pipeline.records.kinds import FORMAT, RunStarted
from pipeline.records.lines import LineDamaged, check_line
from pipeline.records.run import RunState
from pipeline.records.statuses import IN_PROGRESS
from pipeline.store.repair import missing_before


def records_in(lines: Iterable[bytes], after: int = 0) -> Iterator[Record]:
    """The records of whole lines; where some are missing, a gap stands in their place."""
    last: Record | None = None
    for line in lines:
        record = decode_line(line)
        gap = missing_before(last, record) if last is not None or not after else None
        if gap is not None:
            yield Record(gap.first, record.at, last.owner if last else record.owner, gap)
        yield record
        last = record


def first_problem(line: bytes | None) -> PipelineError | None:
    """Why a run with this first line cannot be resumed; None if it can."""
    try:
        if _plainly_fine(check_line(line or b"")):
            return None
        record = decode_line(line or b"")
    except LineDamaged:
        return CheckpointCorrupt("Its first record is damaged.")
    if record.seq != 1 or not isinstance(record.fact, RunStarted):
        return CheckpointCorrupt("Its first record does not start a run.")
    if not isinstance(record.fact.format, int) or record.fact.format > FORMAT:
        return SchemaTooNew(
            f"It was written by a newer version of this program ({record.fact.product or 'unknown'}).",
            hint="Upgrade, then try again.",
        )
    return None


def _plainly_fine(line: bytes) -> bool:
    """A whole first line of the first format, which names no format; every listed run is asked this."""
    return line.startswith(b'{"seq":1,') and b'"kind":"run_started"' in line and b'"format"' not in line


def fresh_document(
    run: str,
    lines: Iterable[bytes],
    size: int,
    old: Mapping[str, Any],
    get_blob: Callable[[str], bytes],
) -> dict[str, Any]:
    """The head as it must read after all lines; `old` is the last one written, {} if there is none."""
    state = fold(run, records_in(lines))
    nodes = old.get("nodes") or pinned_nodes(state, get_blob)
    document = head_document(state, size, nodes)
    seen = old.get("seq")
    if isinstance(seen, int) and seen > state.seq:
        document["lost"] = f"Records {state.seq + 1} to {seen} are gone from the journal."
    return document


def pinned_nodes(state: RunState, get_blob: Callable[[str], bytes]) -> Sequence[str]:
    """The node names of the graph that the run is pinned to; () where that cannot be read."""
    blob = state.pins.get("graph")
    if not blob:
        return ()
    try:
        graph = json.loads(get_blob(blob))
        return [node["id"] if isinstance(node, dict) else str(node) for node in graph["nodes"]]
    except (CheckpointCorrupt, ValueError, KeyError, TypeError):
        return ()


def seen_now(document: Mapping[str, Any], owned: bool) -> dict[str, Any]:
    """What a reader sees otherwise than recorded: a running run whose owner died is interrupted."""
    if not owned and document.get("status") == IN_PROGRESS and document.get("status_detail") == "running":
        return {"status_detail": "interrupted"}
    return {}
