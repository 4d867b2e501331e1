"""A checkpoint.json without a journal (the original system's, or a copy by hand) as the first records of a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipeline.clock import iso, parse_iso
from pipeline.errors import CheckpointCorrupt, InvalidValue
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import RunStarted, Snapshot
from pipeline.records.lines import encode_line
from pipeline.records.snapshots import document_shape
from pipeline.records.statuses import COMPLETED, IN_PROGRESS
from pipeline.records.structure import HEAD
from pipeline.records.values import encode_value


def import_lines(document: Mapping[str, Any], now: datetime) -> list[bytes]:
    """Return run_started and snapshot, dated as the document says.

    Raises:
        CheckpointCorrupt: The document cannot be a run's.
    """
    if problem := document_problem(document):
        raise CheckpointCorrupt(f"checkpoint.json cannot be taken over: {problem}.", code="head_not_importable")
    params = {name: document[name] for name in ("subject", "level") if document.get(name) is not None}
    started = RunStarted(
        pipeline=str(document.get("pipeline") or "lessons"),
        params=_mapping(document.get("params")) or params,
        identity=_mapping(document.get("identity")),
        execution={},
        claim=sound_fields(document).get("claim") or None,
    )
    began, changed = _time(document.get("started_at"), now), _time(document.get("updated_at"), now)
    return [
        encode_line(1, began, 1, encode_fact(started)),
        encode_line(2, changed, 1, encode_fact(Snapshot(document=document, source="import"))),
    ]


def document_problem(document: Any) -> str:
    """Return why a document is not a run's; "" if it is one."""
    if problem := document_shape(document):
        return problem
    try:
        encode_value(dict(document), "checkpoint.json")
    except InvalidValue as error:
        return str(error)
    return ""


def imported_view(document: Mapping[str, Any], run: str) -> dict[str, Any]:
    """Return how a run that is not imported yet is listed: the document, under the name of its folder."""
    view = {**sound_fields(document), "run_id": run, "imported": True}
    view.setdefault("status", IN_PROGRESS)
    view.setdefault("status_detail", None)
    if view["status"] == COMPLETED:
        view["status_detail"] = None
    return view


def sound_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without fields of another system that happen to have names of ours."""
    return {key: value for key, value in document.items() if key not in HEAD or not HEAD[key](value)}


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _time(text: Any, now: datetime) -> str:
    try:
        return iso(parse_iso(text))
    except (TypeError, ValueError):
        return iso(now)
