"""One item of a step: how it stands, its attempts with their calls, what was found, and what was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from pipeline.app.preview import preview
from pipeline.app.run_status import find_step
from pipeline.app.run_trail import open_word
from pipeline.app.words import one_line
from pipeline.errors import CheckpointCorrupt, RunNotFound
from pipeline.publish.view import finding_line
from pipeline.records.redaction import without_secrets
from pipeline.records.run import bare, error_text, item_name
from pipeline.records.statuses import COMPLETED
from pipeline.store.reader import LESSONS
from pipeline.travel.values import Reader
from pipeline.ui.call import framed, natural, piece_of, rows_of
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, PageRoute, RawRoute, StreamRoute, WriteRoute
from pipeline.ui.run import items_seen
from pipeline.ui.stream import live


def item_part(desk: Desk, run: str, query: Mapping[str, str]) -> Data:
    """Return all that is shown of an item.

    Raises:
        RunNotFound: The run has no such item.
    """
    now = desk.watched(run)
    path, key = _place(desk, run, query["item"])
    state, task = now.state, now.state.tasks.get(path, {}).get(key)
    calls = rows_of(desk, run, path, key)
    attempts = sorted({call["attempt"] for call in calls} | ({task.attempt} if task else set()))
    order = key.removeprefix("lessons/")
    is_lesson = state.pipeline == "lessons" and path == LESSONS and natural(order) > 0
    value, fault = None, ""
    if task is not None and task.status == COMPLETED:
        try:
            value = Reader(desk.store(), run).task(path, key, task)
        except (CheckpointCorrupt, ValueError) as error:
            fault = f"What was made cannot be read: {error}"
    remark = state.remarks.get((path, key))
    text = "" if value is None else json.dumps(value, indent=2, ensure_ascii=False)
    items = items_seen(now, path)
    # What was made void and has not begun again is no longer among them.
    there = key in items.names
    word = items.words[items.names.index(key)] if there else open_word(state, owned=now.owned)
    return {
        "item": query["item"], "step": bare(path), "word": word, "title": _title(value) or query["item"],
        "attempts": [{"attempt": each, "calls": [call for call in calls if call["attempt"] == each]}
                     for each in reversed(attempts)],
        "fault": fault or without_secrets(one_line(error_text(task.error or {}), 2_000)) if task else fault,
        "faults": [str(each) for each in (task.error or {}).get("faults") or ()] if task else [],
        "findings": _findings(value), "critic": _critic(value), "note": remark.note if remark else "",
        "order": natural(order) if is_lesson and value is not None and value.get("lesson") else 0,
        "is_lesson": is_lesson, "characters": len(text), "value": piece_of(text, query.get("piece", "")),
    }  # fmt: skip


def _place(desk: Desk, run: str, item: str) -> tuple[str, str]:
    """Return the path and key of an item that has begun, by the name that people use."""
    now = desk.watched(run)
    try:
        step, key = find_step(now.state, item)
    except RunNotFound:
        # Begun, and not ended yet.
        for path, task in now.trail.items:
            if task is not None and item_name(path, task) == item:
                return path, task
        raise
    if key is None:
        raise RunNotFound(f"{item} of run {run} is a step, no item.", code="item_not_found")
    return step.path, key


def _title(value: Any) -> str:
    lesson = value.get("lesson") if isinstance(value, Mapping) else None
    return one_line(lesson.get("title", ""), 200) if isinstance(lesson, Mapping) else ""


def _findings(value: Any) -> list[str]:
    """Return what checks found in a lesson without holding it back."""
    checks = value.get("checks") if isinstance(value, Mapping) else None
    found = checks.get("warnings") if isinstance(checks, Mapping) else None
    return [finding_line(each) for each in found or ()]


def _critic(value: Any) -> list[list[Any]]:
    """Return the critic's scores of a lesson: criterion, score of 5, what it said."""
    critic = value.get("critic") if isinstance(value, Mapping) else None
    rows = critic.get("judgements") if isinstance(critic, Mapping) else None
    return [[row.get("criterion", ""), row.get("score", ""), row.get("finding", "")] for row in rows or ()]


def item_page(desk: Desk, request: Request) -> Data:
    """Return the page of an item."""
    run, item = request.path_params["run"], request.path_params["item"]
    now = desk.watched(run)
    part = item_part(desk, run, {**request.query_params, "item": item})
    return {"run": run, "part": part, "live": live(f"runs/{run}/item-events", now.state.seq, item=item)
            if now.owned else None}  # fmt: skip


def item_frame(desk: Desk, request: Request) -> Response:
    """Return a lesson of a course as pupils see it.

    Raises:
        RunNotFound: It is not made yet.
    """
    run, key = request.path_params["run"], f"lessons/{request.path_params['order']}"
    state = desk.state(run)
    task = state.tasks.get(LESSONS, {}).get(key)
    if task is None or task.status != COMPLETED:
        raise RunNotFound(f"{key} of run {run} is not made yet.", code="item_not_found")
    row = Reader(desk.store(), run).task(LESSONS, key, task)
    return framed(preview(desk.store(), state, row))


PAGES = (PageRoute("runs/{run}/items/{item:path}", item_page, "item.html", "item"),)
WRITES: tuple[WriteRoute, ...] = ()
RAWS = (RawRoute("runs/{run}/frame/item/{order:int}", item_frame, "frame of an item", ".html"),)
STREAMS = (StreamRoute("runs/{run}/item-events", {"item": ("_item.html", item_part)}),)
