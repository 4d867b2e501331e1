"""The page of one paid call: what was asked, what came back in three views, what it cost, how long it took."""

from __future__ import annotations

import json
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from pipeline.app.calls import Call, asked_of, calls_of, find_call, reply_of, segments_of, words_apart
from pipeline.app.preview import Preview, lesson_in, preview
from pipeline.errors import CheckpointCorrupt, RunNotFound
from pipeline.llm.answers import json_in
from pipeline.records.redaction import printable
from pipeline.records.run import item_name
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, PageRoute, RawRoute, StreamRoute, WriteRoute

#: Characters of a text that one page holds; of a prompt's segment that is shown without being asked for.
PIECE, SHORT = 1 << 16, 4_000
VIEWS = ("text", "json", "page")
_MOST_DIGITS = 10


def _call(desk: Desk, request: Request) -> Call:
    run = request.path_params["run"]
    return find_call(desk.store(), run, desk.watched(run).trail, request.path_params["seq"])


def _text(desk: Desk, call: Call) -> str:
    return str(reply_of(desk.store(), call).get("text") or "")


def call_page(desk: Desk, request: Request) -> Data:
    """Return a call: charge, prompt, reply, and what there is to compare it with."""
    run, query = request.path_params["run"], request.query_params
    call = _call(desk, request)
    fact, ended, beside = call.fact, call.ended, query.get("beside", "")
    return {
        "run": run, **row_of(desk, call), "item": item_name(fact.path, fact.task), "has_item": fact.task is not None,
        "batch": fact.batch, "ended_at": call.end.at if call.end else "", "waited": call.waited,
        "request_id": call.row.request_id, "fault": (ended.error or {}).get("message", "") if ended else "",
        "charge": call.charge(), "prompt": _prompt(desk, call),
        "reply": _reply(desk, call, query.get("view", ""), query.get("piece", "")),
        "others": [other for other in rows_of(desk, run, fact.path, fact.task) if other["seq"] != call.start.seq],
        "beside": _beside(desk, call, natural(beside)) if natural(beside) else None,
    }  # fmt: skip


def row_of(desk: Desk, call: Call) -> Data:
    """Return a call as a row, with how it stands: it runs only while its run has an owner."""
    if call.end is None:
        word = "running" if desk.owned(call.run) and call.row.state == "open" else "cut off"
    else:
        word = "failed" if call.row.outcome == "wasted" else "completed"
    return {**call.to_json(), "word": word}


def rows_of(desk: Desk, run: str, path: str, task: str | None) -> list[Data]:
    """Return the calls of an item as rows."""
    return [row_of(desk, call) for call in calls_of(desk.store(), run, desk.watched(run).trail, path, task)]


def natural(text: str, otherwise: int = 0) -> int:
    """Return the number that a query asks for; `otherwise` where it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS else otherwise


def piece_of(text: str, asked: str) -> Data:
    """Return a piece of a long text, and which of how many it is."""
    pieces = max(-(-len(text) // PIECE), 1)
    piece = min(max(natural(asked, 1), 1), pieces)
    return {"text": text[(piece - 1) * PIECE : piece * PIECE], "piece": piece, "pieces": pieces}


def _prompt(desk: Desk, call: Call) -> Data:
    try:
        parts = segments_of(asked_of(desk.store(), call))
    except (CheckpointCorrupt, AttributeError, TypeError) as error:
        return {"parts": [], "fault": f"The prompt cannot be read: {error}"}
    marked = max((place for place, part in enumerate(parts) if part[2]), default=-1)
    tokens = call.row.tokens
    how = "read from cache" if tokens.get("cache_read") else ""
    how = how or ("written to cache" if any(tokens.get(f"cache_write_{kind}") for kind in ("5m", "1h")) else "")
    return {
        "fault": "" if parts else "No prompt is recorded: it came with a fork or an import.",
        "parts": [
            {"number": place + 1, "name": name, "characters": len(text), "cached": how if place <= marked else "",
             "text": text if len(text) <= SHORT else "", "closed": len(text) > SHORT}
            for place, (name, text, _) in enumerate(parts)
        ],
    }  # fmt: skip


def prompt_part(desk: Desk, request: Request) -> Response:
    """Return one segment of a prompt, as text; to the page that opens it, escaped: what it swaps in is read as HTML.

    Raises:
        RunNotFound: There is no such segment.
    """
    call = _call(desk, request)
    parts, number = segments_of(asked_of(desk.store(), call)), request.path_params["part"]
    if not 1 <= number <= len(parts):
        raise RunNotFound(f"The prompt of call {call.start.seq} has no segment {number}.", code="segment_not_found")
    text = printable(parts[number - 1][1])
    return HTMLResponse(escape(text)) if request.headers.get("hx-request") == "true" else PlainTextResponse(text)


def _reply(desk: Desk, call: Call, view: str, piece: str) -> Data:
    view = view if view in VIEWS else "text"
    try:
        text = _text(desk, call)
    except (CheckpointCorrupt, ValueError) as error:
        fault = f"It cannot be read: {error}"
        return {"view": view, "views": [], "characters": 0, "fault": fault, **piece_of("", "")}
    is_lesson = call.fact.label == "lesson" and lesson_in(text) is not None
    view = "text" if view == "page" and not is_lesson else view
    shown, fault = "" if view == "page" else text, ""
    if view == "json":
        try:
            shown = json.dumps(json_in(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError) as error:
            shown, fault = "", f"It is no JSON: {error}"
    views = [name for name in VIEWS if name != "page" or is_lesson]
    return {"view": view, "views": views, "characters": len(text), "fault": fault, **piece_of(shown, piece)}


def reply_file(desk: Desk, request: Request) -> Response:
    """Return the whole text of a reply."""
    return PlainTextResponse(printable(_text(desk, _call(desk, request))))


def _beside(desk: Desk, call: Call, seq: int) -> Data:
    """Return the reply beside another call's, and how they differ word by word; of long ones the first piece."""
    other = find_call(desk.store(), call.run, desk.watched(call.run).trail, seq)
    one, two = _text(desk, other), _text(desk, call)
    parts = list(words_apart(one[:PIECE], two[:PIECE]))
    return {
        "seq": seq,
        "attempt": other.fact.attempt,
        "parts": parts,
        "cut": PIECE if max(len(one), len(two)) > PIECE else 0,
    }


def framed(found: Preview) -> Response:
    """Return a document that only a page of the desk may frame, and that runs nothing."""
    headers = {"content-security-policy": found.policy, "content-type": "text/html; charset=utf-8"}
    return Response(found.html.encode("utf-8", "replace"), headers=headers)


def reply_frame(desk: Desk, request: Request) -> Response:
    """Return the lesson of a reply as pupils would see it.

    Raises:
        ConfigError: It holds none.
    """
    call = _call(desk, request)
    order = (call.fact.task or "").rpartition("/")[2]
    row = {
        "order": natural(order), "lesson": lesson_in(_text(desk, call)),
        "schema": asked_of(desk.store(), call).get("schema_version", 1),
    }  # fmt: skip
    return framed(preview(desk.store(), desk.state(call.run), row))


PAGES = (PageRoute("runs/{run}/calls/{seq:int}", call_page, "call.html", "call"),)
WRITES: tuple[WriteRoute, ...] = ()
RAWS = (
    RawRoute("runs/{run}/calls/{seq:int}/prompt/{part:int}", prompt_part, "prompt"),
    RawRoute("runs/{run}/calls/{seq:int}/reply", reply_file, "reply"),
    RawRoute("runs/{run}/frame/{seq:int}", reply_frame, "frame", ".html"),
)
STREAMS: tuple[StreamRoute, ...] = ()
