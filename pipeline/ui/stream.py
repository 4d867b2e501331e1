"""Server-sent events: the parts of a page as they change, and a run's records; who comes back hears the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from pipeline.app.run_log import record_json, records_after
from pipeline.app.words import plain
from pipeline.errors import PipelineError
from pipeline.ui.desk import Desk
from pipeline.ui.layout import Here, render
from pipeline.ui.pages import StreamRoute

#: Seconds between two looks at a run for its records.
EVERY = 0.5
#: Seconds of silence after which a comment is sent, so that no proxy closes the stream.
BEAT = 15.0
END = "event: end\ndata: ended\n\n"
_HEADERS = {"x-accel-buffering": "no"}
#: Digits of a seq at most.
_MOST_DIGITS = 18


class _Look(NamedTuple):
    """What there is to tell."""

    text: str
    #: seq of the last record that it tells of; 0: it is of no run.
    seq: int
    ended: bool


def part_events(desk: Desk, request: Request, stream: StreamRoute) -> StreamingResponse:
    """Return the stream of a page's parts; each message holds those whose HTML is not what was sent last."""
    query = {**request.query_params, **request.path_params}
    run = request.path_params.get("run", "")
    here = Here(query.pop("at", ""), {name: value for name, value in request.query_params.items()}, desk.name(request))
    sent: dict[str, str] = {}
    stood: list[tuple[int, bool]] = []
    if run:
        # Who asks for a run that is not there hears so at once.
        desk.watched(run)

    def look(after: int) -> _Look:
        seq, ended = 0, False
        if run:
            now = desk.watched(run)
            seq, ended = now.state.seq, now.ended
            if (seq, now.owned) in stood:
                return _Look("", seq, ended)
            stood[:] = [(seq, now.owned)]
        changed = []
        parts = [(name, template, data(desk, run, query)) for name, (template, data) in stream.parts.items()]
        for name, template, part in [*parts, *(stream.changes(desk, query) if stream.changes else ())]:
            text = render(template, {"part": part, "run": run}, here)
            if sent.get(name) != text:
                sent[name] = text
                changed.append(f'<hx-partial id="{name}" hx-swap="outerMorph">{text}</hx-partial>')
        if run:
            # Parts may tell of records that came meanwhile already: those are not told a second time.
            seq = desk.watched(run).state.seq
        return _Look("".join(_message(seq, changed)), seq, ended)

    return _streamed(desk, look, _after(request), stream.every)


def record_events(desk: Desk, request: Request) -> StreamingResponse:
    """Return the stream of a run's records: `id` is the record's seq, `data` the record as JSON."""
    run = request.path_params["run"]
    desk.watched(run)

    def look(after: int) -> _Look:
        now, seq, found = desk.watched(run), after, []
        for record in records_after(desk.store(), run, after):
            if record.seq > seq:
                seq = record.seq
                found.append(f"id: {seq}\ndata: {json.dumps(record_json(record), default=plain)}\n\n")
        return _Look("".join(found), seq, now.ended and seq >= now.state.seq)

    return _streamed(desk, look, _after(request), EVERY)


def _after(request: Request) -> int:
    """Return the record that the client has already: a new connection says it in its URL, a later one in a header."""
    for text in (request.headers.get("last-event-id", ""), request.query_params.get("after", "")):
        if text.isdecimal() and len(text) <= _MOST_DIGITS:
            return int(text)
    return 0


def _message(seq: int, parts: list[str]) -> list[str]:
    if not parts:
        return []
    lines = [f"data: {line}\n" for part in parts for line in part.splitlines()]
    return [f"id: {seq}\n" if seq else "", *lines, "\n"]


def _streamed(desk: Desk, look: Callable[[int], _Look], after: int, every: float) -> StreamingResponse:
    async def told() -> AsyncIterator[str]:
        seq, quiet = after, 0.0
        yield ": connected\n\n"
        while not desk.stopping.is_set():
            try:
                found = await run_in_threadpool(look, seq)
            except PipelineError:
                # It was deleted, or its store does not answer: the page says so when it is loaded again.
                return
            seq = max(seq, found.seq)
            if found.text or quiet >= BEAT:
                yield found.text or ": beat\n\n"
                quiet = 0.0
            if found.ended:
                yield END
                return
            quiet += every
            try:
                await asyncio.wait_for(desk.stopping.wait(), every)
            except TimeoutError:
                continue

    return StreamingResponse(told(), media_type="text/event-stream", headers=_HEADERS)


def live(path: str, seq: int, **query: Any) -> Mapping[str, Any]:
    """Return the `live` of a page's data: the stream that it connects to, from the record that it shows on."""
    return {"path": path, "seq": seq, "query": query}
