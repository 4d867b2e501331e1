"""The position of a run that begins at a document of another system; see records.snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.graph.model import Graph
from pipeline.records.positions import split
from pipeline.records.snapshots import INHERITED
from pipeline.records.statuses import COMPLETED, IN_PROGRESS

#: The edge and source of the first visit of a run.
START = ("", "")


def visit_row(
    graph: Graph,
    path: str,
    *,
    outputs: Any,
    context: Mapping[str, Any],
    artifacts: Mapping[str, str],
    at: str,
    seconds: float,
    checkpoint: str,
    consumed: Sequence[Sequence[str]],
    edges: Sequence[str],
) -> dict[str, Any]:
    """Return a completed visit; values are JSON or references, artifacts are blobs."""
    return {
        "path": path, "status": COMPLETED, "attempt": 1, "version": graph.nodes[split(path)[0]].version,
        "started_at": at, "completed_at": at, "seconds": seconds, "outputs": outputs, "artifacts": dict(artifacts),
        "context": dict(context), "reads": {}, "outcome": "success", "reason": "", "error": None,
        "checkpoint": checkpoint, "edges": list(edges), "consumed": list(consumed) or [list(START)],
    }  # fmt: skip


def position_document(
    pipeline: str,
    visits: Sequence[Mapping[str, Any]],
    waiting: Iterable[Sequence[str]],
    unapplied: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Return the document of the snapshot that such a run begins with.

    Args:
        visits: Rows in order of their ends.
        waiting: (edge, path that chose it) of what comes next.
        unapplied: Staged writes to the user's memory, by path.
    """
    newest = dict(split(str(row["path"])) for row in visits)
    inherited = {
        "steps": list(visits), "waiting": [list(token) for token in waiting], "returning": [], "visits": newest,
        "tasks": [], "attempts": [], "replies": [], "decisions": [], "unapplied": dict(unapplied or {}),
    }  # fmt: skip
    return {"pipeline": pipeline, "status": IN_PROGRESS, "completed_steps": [], INHERITED: inherited}
