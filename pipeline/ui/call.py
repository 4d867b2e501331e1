"""One paid call: what was asked, what came back in three views, what it cost to the last digit, how long it took."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pipeline.app.preview import Preview, lesson_in, preview
from pipeline.clock import parse_iso
from pipeline.cost.ledger import BILLED, LedgerRow, rows
from pipeline.errors import CheckpointCorrupt, RunNotFound
from pipeline.llm.answers import json_in
from pipeline.records.codec import Record, decode_line
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.records.redaction import printable
from pipeline.records.run import item_name
from pipeline.records.values import resolve_value
from pipeline.travel.values import Reader
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, PageRoute, RawRoute, StreamRoute, WriteRoute

#: Characters of a reply that one page holds; of a prompt's segment that is shown without being asked for; of each of
#: two replies that are compared.
PIECE, SHORT, COMPARED = 1 << 16, 4_000, 1 << 16
VIEWS = ("text", "json", "page")
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True)
class Call:
    """The records of one call."""

    run: str
    start: Record
    fact: CallStarted
    end: Record | None
    row: LedgerRow

    @property
    def ended(self) -> CallEnded | None:
        """Return how it ended."""
        return self.end.fact if self.end is not None and isinstance(self.end.fact, CallEnded) else None

    @property
    def seconds(self) -> float | None:
        """Return how long its answer took."""
        if self.end is None:
            return None
        return (parse_iso(self.end.at) - parse_iso(self.start.at)).total_seconds()


def call_of(desk: Desk, run: str, seq: int) -> Call:
    """Return a call by the seq of its start.

    Raises:
        RunNotFound: No call began with that record.
    """
    start = _record(desk, run, seq)
    if start is None or not isinstance(start.fact, CallStarted):
        raise RunNotFound(f"Record {seq} of run {run} begins no call.", code="call_not_found",
                          hint="The page of an item lists its calls.")  # fmt: skip
    trail, fact = desk.watched(run).trail, start.fact
    work = trail.items.get((fact.path, fact.task))
    last = dict(work.calls).get(seq, 0) if work is not None else 0
    end = _record(desk, run, last) if last else None
    settled = (_record(desk, run, each) for each in trail.settled.get(seq, ()))
    found = [record for record in (start, end, *settled) if record is not None]
    return Call(run, start, fact, end, rows(found)[0])


def _record(desk: Desk, run: str, seq: int) -> Record | None:
    line = next(iter(desk.store().read(run, after=seq - 1)), None)
    record = None if line is None else decode_line(line)
    return record if record is not None and record.seq == seq else None


def reply_of(desk: Desk, call: Call) -> Mapping[str, Any]:
    """Return the reply as recorded; {} where none came.

    Raises:
        CheckpointCorrupt: It is damaged.
    """
    ended = call.ended
    if ended is None or ended.reply is None:
        return {}
    found = resolve_value(json.loads(ended.reply), lambda blob: desk.store().get_blob(call.run, blob))
    return found if isinstance(found, Mapping) else {}


# --- the page ---------------------------------------------------------------------------------------


def call_page(desk: Desk, request: Request) -> Data:
    """Return a call: charge, prompt, reply, and what there is to compare it with."""
    run, seq, query = request.path_params["run"], request.path_params["seq"], request.query_params
    call = call_of(desk, run, seq)
    fact, ended = call.fact, call.ended
    view = query.get("view", "text") if query.get("view") in VIEWS else "text"
    piece = query.get("piece", "1")
    beside = query.get("beside", "")
    return {
        "run": run, "seq": seq, "item": item_name(fact.path, fact.task), "has_item": fact.task is not None,
        "label": fact.label, "model": call.row.model, "attempt": fact.attempt, "try": fact.k, "batch": fact.batch,
        "started_at": call.start.at, "ended_at": call.end.at if call.end else "", "seconds": call.seconds,
        "waited": _waited(desk, call), "word": word_of(desk, call),
        "stop_reason": call.row.stop_reason, "request_id": call.row.request_id,
        "error": None, "fault": (ended.error or {}).get("message", "") if ended else "",
        "charge": charge_of(call.row), "prompt": _prompt(desk, call),
        "reply": _reply(desk, call, view, int(piece) if piece.isdigit() else 1),
        "others": [other for other in calls_of(desk, run, fact.path, fact.task) if other["seq"] != seq],
        "beside": _beside(desk, call, int(beside)) if beside.isdigit() else None,
    }  # fmt: skip


def word_of(desk: Desk, call: Call) -> str:
    """Return how a call stands: it runs only while its run has an owner."""
    if call.end is None:
        return "running" if desk.owned(call.run) and call.row.state == "open" else "cut off"
    return "failed" if call.row.outcome == "wasted" else "completed"


def calls_of(desk: Desk, run: str, path: str, task: str | None) -> list[Data]:
    """Return all calls of an item, or of a step itself, in order."""
    work = desk.watched(run).trail.items.get((path, task))
    found = [call_of(desk, run, seq) for seq, _ in (work.calls if work is not None else ())]
    return [
        {"seq": call.start.seq, "label": call.fact.label, "attempt": call.fact.attempt, "try": call.fact.k,
         "word": word_of(desk, call), "stop_reason": call.row.stop_reason, "model": call.row.model,
         "started_at": call.start.at, "seconds": call.seconds, "tokens": sum(call.row.tokens.values()),
         "usd": None if call.row.usd is None else f"{call.row.usd:f}", "low": f"{call.row.low:f}",
         "high": None if call.row.high is None else f"{call.row.high:f}"}
        for call in found
    ]  # fmt: skip


def charge_of(row: LedgerRow) -> Data:
    """Return what a call cost: by kind with its price, every digit."""
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


def _waited(desk: Desk, call: Call) -> float | None:
    """Return the seconds between the end of the call before, of the same item, and this one."""
    work = desk.watched(call.run).trail.items.get((call.fact.path, call.fact.task))
    before = [end for seq, end in (work.calls if work is not None else ()) if seq < call.start.seq and end]
    record = _record(desk, call.run, before[-1]) if before else None
    return None if record is None else (parse_iso(call.start.at) - parse_iso(record.at)).total_seconds()


# --- the prompt -------------------------------------------------------------------------------------


def segments_of(desk: Desk, call: Call) -> list[tuple[str, str, bool]]:
    """Return the prompt as it was sent: (name, text, marked as the end of a cached part).

    Raises:
        CheckpointCorrupt: It is damaged.
    """
    if not call.fact.request:
        return []
    asked = Reader(desk.store(), call.run).blob(call.fact.request)
    found = [(f"System {number}", part.get("text", ""), bool(part.get("cache")))
             for number, part in enumerate(asked.get("system") or (), 1)]  # fmt: skip
    found += [(str(turn.get("role", "")).capitalize(), turn.get("text", ""), False)
              for turn in asked.get("messages") or ()]  # fmt: skip
    if asked.get("schema"):
        found.append(("Schema of the answer", json.dumps(asked["schema"], indent=2, ensure_ascii=False), False))
    return found


def _prompt(desk: Desk, call: Call) -> Data:
    try:
        parts = segments_of(desk, call)
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
    """Return one segment of a prompt, as text.

    Raises:
        RunNotFound: There is no such segment.
    """
    call = call_of(desk, request.path_params["run"], request.path_params["seq"])
    parts, number = segments_of(desk, call), request.path_params["part"]
    if not 1 <= number <= len(parts):
        raise RunNotFound(f"The prompt of call {call.start.seq} has no segment {number}.", code="segment_not_found")
    return PlainTextResponse(printable(parts[number - 1][1]))


# --- the reply --------------------------------------------------------------------------------------


def _reply(desk: Desk, call: Call, view: str, piece: int) -> Data:
    try:
        text = str(reply_of(desk, call).get("text") or "")
    except (CheckpointCorrupt, ValueError) as error:
        return {"view": view, "views": [], "text": "", "pieces": 0, "piece": 1, "fault": f"It cannot be read: {error}"}
    is_lesson = call.fact.label == "lesson" and lesson_in(text) is not None
    shown, fault = text, ""
    if view == "json":
        try:
            shown = json.dumps(json_in(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError) as error:
            shown, fault = "", f"It is no JSON: {error}"
    pieces = max(-(-len(shown) // PIECE), 1)
    piece = min(max(piece, 1), pieces)
    return {
        "view": view, "views": [name for name in VIEWS if name != "page" or is_lesson], "characters": len(text),
        "text": "" if view == "page" else shown[(piece - 1) * PIECE : piece * PIECE], "pieces": pieces,
        "piece": piece, "fault": fault,
    }  # fmt: skip


def reply_file(desk: Desk, request: Request) -> Response:
    """Return the whole text of a reply."""
    call = call_of(desk, request.path_params["run"], request.path_params["seq"])
    return PlainTextResponse(printable(str(reply_of(desk, call).get("text") or "")))


def _beside(desk: Desk, call: Call, seq: int) -> Data:
    """Return how the reply differs from another call's, word by word."""
    other = call_of(desk, call.run, seq)
    one, two = (str(reply_of(desk, each).get("text") or "") for each in (other, call))
    parts = list(words_apart(one[:COMPARED], two[:COMPARED]))
    return {"seq": seq, "attempt": other.fact.attempt, "parts": parts, "cut": max(len(one), len(two)) > COMPARED}


def words_apart(before: str, after: str) -> Iterator[list[str]]:
    """Yield the texts' parts in order: [what, words], what being "same", "del" (before only) or "ins" (after only)."""
    one, two = _WORDS.findall(before), _WORDS.findall(after)
    for what, a, b, c, d in difflib.SequenceMatcher(None, one, two, autojunk=len(one) > 2_000).get_opcodes():
        if what == "equal":
            yield ["same", "".join(one[a:b])]
            continue
        if a < b:
            yield ["del", "".join(one[a:b])]
        if c < d:
            yield ["ins", "".join(two[c:d])]


# --- what a reply or an item looks like to pupils -----------------------------------------------------


def framed(found: Preview) -> Response:
    """Return a document that only a page of the desk may frame, and that runs nothing."""
    headers = {"content-security-policy": found.policy, "content-type": "text/html; charset=utf-8"}
    return Response(found.html.encode("utf-8", "replace"), headers=headers)


def reply_frame(desk: Desk, request: Request) -> Response:
    """Return the lesson of a reply as pupils would see it.

    Raises:
        ConfigError: It holds none.
    """
    call = call_of(desk, request.path_params["run"], request.path_params["seq"])
    order = (call.fact.task or "").rpartition("/")[2]
    lesson = lesson_in(str(reply_of(desk, call).get("text") or ""))
    asked = Reader(desk.store(), call.run).blob(call.fact.request)
    row = {"order": int(order) if order.isdigit() else 0, "lesson": lesson, "schema": asked.get("schema_version", 1)}
    return framed(preview(desk.store(), desk.state(call.run), row))


PAGES = (PageRoute("runs/{run}/calls/{seq:int}", call_page, "call.html", "call"),)
WRITES: tuple[WriteRoute, ...] = ()
STREAMS: tuple[StreamRoute, ...] = ()
RAWS = (
    RawRoute("runs/{run}/calls/{seq:int}/prompt/{part:int}", prompt_part, "prompt"),
    RawRoute("runs/{run}/calls/{seq:int}/reply", reply_file, "reply"),
    RawRoute("runs/{run}/frame/{seq:int}", reply_frame, "frame"),
)
