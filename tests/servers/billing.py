"""A Messages API server for tests that keeps its own bill: real HTTP and SSE, deterministic, standard library only.

    python tests/servers/billing.py --port 0 --faults "rate_limit=0.1,cut=0.05" --seed 7 --lessons

It prints `listening on http://127.0.0.1:PORT`; GET /_bill shows the bill.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

if __package__ in (None, ""):
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.servers.api_rules import Invalid, check_count, check_headers, check_message
from tests.servers.batches import Batches
from tests.servers.bill import Bill, Counted, Entry, PromptCache, body_hash, tokens_of
from tests.servers.lessons import answer, is_correction
from tests.servers.mishaps import CONTENT, STATUSES, STREAM, Mishap, Plan
from tests.servers.models import MODELS
from tests.servers.rate_limits import RateLimits
from tests.servers.replies import Responder, cuts, label, question, text_of
from tests.servers.replies import echo as echo
from tests.servers.serving import Handler, Http, Serving

_BATCHES = "/v1/messages/batches"


class BillingServer(Serving):
    """The server; a context manager. Everything a test changes may be changed while it runs."""

    def __init__(
        self, *, plan: Plan | None = None, responder: Responder = echo, port: int = 0, latency: float = 0.0
    ) -> None:
        #: Set to let stalled and delayed replies end.
        self.stopping = threading.Event()
        self.reset(plan, responder, latency)
        super().__init__(_Handler, port)

    def reset(self, plan: Plan | None = None, responder: Responder = echo, latency: float = 0.0) -> None:
        """Begin anew: an empty bill and cache, nothing seen, no faults but those of `plan`; what is delayed ends."""
        self.stopping.set()
        self.stopping = threading.Event()
        self.plan = plan or Plan()
        self.responder = responder
        #: Seconds before each reply begins.
        self.latency = latency
        #: Seconds before each piece of a stream.
        self.piece_seconds = 0.0
        #: Status, type and message of every free look-up; None: they work.
        self.free_fault: tuple[int, str, str] | None = None
        #: The answer to every request, free or paid; None: as it should be.
        self.always: Mishap | None = None
        #: HTTP errors that the next look-ups of models meet, in order.
        self.free_mishaps: list[Mishap] = []
        #: Whether it streams where that is asked; else it answers with a whole message.
        self.streams = True
        self.bill = Bill()
        self.cache = PromptCache()
        self.batches = Batches()
        #: Limits of requests and tokens a minute; None: no limit, and no headers of one.
        self.limits: RateLimits | None = None
        #: The model that answers, and is billed, in the place of the one that is asked; "": the one that is asked.
        self.substitute = ""
        #: What the next streams say of their usage, at their start and at their end; empty: the truth.
        self.usages: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
        #: Headers and bodies of paid requests as received, in order.
        self.seen: list[tuple[dict[str, str], Any]] = []

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        super().__exit__()

    def serve_forever(self) -> None:
        self._http.serve_forever(0.2)


class _Handler(Handler):
    server: Http[BillingServer]
    #: Number of the paid request being answered; 0 for free ones.
    _number = 0
    #: Headers of the answer that tell of rate limits.
    _limits: Mapping[str, str] | None = None

    def do_GET(self) -> None:
        if self.path == "/_bill":
            return self._json(200, self.server.owner.bill.to_json())
        owner, path = self.server.owner, self.path.partition("?")[0].rstrip("/")
        if owner.always is not None:
            return self._status(owner.always)
        try:
            check_headers(self._headers())
            if (fault := owner.free_fault) is not None:
                return self._error(*fault)
            if owner.free_mishaps and path.startswith("/v1/models"):
                return self._status(owner.free_mishaps.pop(0))
            if path == "/v1/models":
                return self._json(
                    200, {"data": list(MODELS.values()), "has_more": False, "first_id": None, "last_id": None}
                )
            if path.startswith(_BATCHES):
                return self._get_batch(path.removeprefix(_BATCHES).strip("/"))
            name = path.removeprefix("/v1/models/")
            if name not in MODELS:
                raise Invalid(f"model: {name}", 404, "not_found_error")
            return self._json(200, MODELS[name])
        except Invalid as error:
            return self._error(error.status, error.kind, str(error))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if (always := self.server.owner.always) is not None:
            return self._status(always)
        try:
            check_headers(self._headers())
            body = json.loads(raw or b"{}")
            if self.path == "/v1/messages/count_tokens":
                check_count(body, MODELS)
                return self._json(200, {"input_tokens": PromptCache().count(body).prompt})
            if self.path.startswith(_BATCHES):
                return self._post_batch(self.path.removeprefix(_BATCHES).strip("/"), body)
            if self.path != "/v1/messages":
                raise Invalid(f"no such path: {self.path}", 404, "not_found_error")
            self.server.owner.seen.append((self._headers(), body))
            check_message(body, MODELS)
        except Invalid as error:
            return self._error(error.status, error.kind, str(error))
        except ValueError:
            return self._error(400, "invalid_request_error", "The request body is not valid JSON.")
        return self._message(body)

    def _get_batch(self, name: str) -> None:
        batches, key = self.server.owner.batches, self._key()
        name, _, part = name.partition("/")
        if not name:
            query = parse_qs(self.path.partition("?")[2])
            return self._json(200, batches.list(key, next(iter(query.get("after_id") or ()), None)))
        held = batches.find(name, key)
        if part != "results":
            return self._json(200, batches.look(held, self._in_batch))
        lines = b"".join(json.dumps(row).encode() + b"\n" for row in batches.read(held))
        self._begin("application/x-jsonl", 200, {"content-length": str(len(lines))})
        self.wfile.write(lines)

    def _post_batch(self, name: str, body: Any) -> None:
        batches, key = self.server.owner.batches, self._key()
        name, _, part = name.partition("/")
        if part == "cancel":
            held = batches.find(name, key)
            held.canceled = True
            return self._json(200, batches.document(held))
        fault = batches.creations.pop(0) if batches.creations else ""
        if fault in ("refuse", "lose"):
            return self._status(Mishap("rate_limit" if fault == "refuse" else "unavailable"))
        while batches.slow is not None and batches.slow.is_set() and not self.server.owner.stopping.is_set():
            self.server.owner.stopping.wait(0.01)
        if fault == "late":
            batches.late.append((body, key))
            return self._cut(reset=True)
        document = batches.create(body, key, MODELS)
        if fault in ("page", "odd"):
            return self._page(504 if fault == "page" else 200, "<h1>Gateway</h1>", {})
        return self._cut(reset=True) if fault == "drop" else self._json(200, document)

    def _in_batch(self, body: dict[str, Any]) -> dict[str, Any]:
        """One request of a batch, answered and billed at half price."""
        owner = self.server.owner
        entry = owner.bill.open(body, body_hash(body), label(body))
        try:
            correction = bool(entry.label) and is_correction(body)
            mishap = owner.plan.draw(entry.number, question(body), entry.body_hash, entry.label, correction)
            kind = mishap.kind if mishap and mishap.kind in CONTENT else ""
            counted = owner.cache.count(body)
            text, stop = text_of(owner.responder, body, kind)
            owner.cache.remember(counted)
            entry.model = owner.substitute or entry.model
            owner.bill.charge(entry, counted, tokens_of(text), batch=True)
            return _reply(entry, text, stop, {**counted.usage(tokens_of(text)), "service_tier": "batch"})
        finally:
            owner.bill.end(entry)

    def _message(self, body: dict[str, Any]) -> None:
        owner = self.server.owner
        bill = owner.bill
        digest = body_hash(body)
        entry = bill.open(body, digest, label(body))
        self._number = entry.number
        try:
            correction = bool(entry.label) and is_correction(body)
            mishap = owner.plan.draw(entry.number, question(body), digest, entry.label, correction)
            entry.fault = mishap.kind if mishap else ""
            counted = owner.cache.count(body)
            if not self._let_in(counted):
                entry.fault = "limited"
                return self._status(Mishap("rate_limit", (self._limits or {})["retry-after"]))
            if owner.stopping.wait(owner.latency):
                return self._cut()
            if mishap is not None and mishap.kind in STATUSES:
                if mishap.billed:
                    bill.charge(entry, counted, tokens_of(text_of(owner.responder, body, "")[0]))
                return self._status(mishap)
            self._answer(body, counted, entry, mishap)
        finally:
            bill.end(entry)

    def _let_in(self, counted: Counted) -> bool:
        """Whether the limits let this request in; what its answer is to say of them is noted."""
        limits = self.server.owner.limits
        told = limits.take(counted.prompt - counted.read) if limits else None
        self._limits = told.headers if told else None
        return told is None or told.let_in

    def _answer(self, body: dict[str, Any], counted: Counted, entry: Entry, mishap: Mishap | None) -> None:
        owner = self.server.owner
        kind = mishap.kind if mishap else ""
        text, stop = text_of(owner.responder, body, kind)
        owner.cache.remember(counted)
        output = tokens_of(text)
        entry.model = owner.substitute or entry.model
        owner.bill.charge(entry, counted, output)
        if owner.limits is not None:
            owner.limits.made(output)
        if kind == "drop":
            return self._cut(reset=True)
        reply = _reply(entry, text, stop, counted.usage(output))
        if stop == "refusal":
            reply["stop_details"] = {"type": "refusal", "category": "cyber", "explanation": "Not this."}
        if not (body.get("stream") and owner.streams):
            return self._json(200, reply, self._limits)
        self._begin("text/event-stream", headers=self._limits, chunked=True)
        return self._stream(reply, counted, entry, mishap if kind in STREAM else None)

    def _stream(self, reply: dict[str, Any], counted: Counted, entry: Entry, mishap: Mishap | None) -> None:
        text = reply["content"][0]["text"]
        final = {key: value for key, value in reply["usage"].items() if key != "cache_creation"}
        usages = self.server.owner.usages
        first, last = usages.pop(0) if usages else (counted.usage(1), final)
        start = {**reply, "content": [], "stop_reason": None, "usage": first}
        start.pop("stop_details", None)
        self._event("message_start", {"message": start})
        self._event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
        self._event("ping", {})
        sent = ""
        for number, piece in enumerate(cuts(text)):
            if mishap is not None and number >= mishap.after:
                break
            sent += piece
            self.server.owner.stopping.wait(self.server.owner.piece_seconds)
            self._event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece}})
        if mishap is not None:
            # A reply that is broken off is billed for what was generated until then.
            self.server.owner.bill.charge(entry, counted, max(1, tokens_of(sent)))
            return self._break(mishap)
        self._event("content_block_stop", {"index": 0})
        delta = {key: reply[key] for key in ("stop_reason", "stop_sequence", "stop_details") if key in reply}
        self._event("message_delta", {"delta": delta, "usage": last})
        self._event("message_stop", {})
        return self._chunk(b"")

    def _break(self, mishap: Mishap) -> None:
        if mishap.kind == "cut":
            return self._cut()
        if mishap.kind == "stall":
            return self._stall()
        if mishap.kind == "malformed":
            self._chunk(b'event: content_block_delta\ndata: {"type": "content_block_de\n\n')
        if mishap.kind == "no_object":
            self._chunk(b"event: content_block_delta\ndata: [1]\n\n")
        if mishap.kind == "error_event":
            self._event("error", {"error": {"type": "overloaded_error", "message": "Overloaded"}})
        return self._chunk(b"")

    def _stall(self) -> None:
        """Say nothing until the client gives up or the server stops."""
        self.close_connection = True
        while not self.server.owner.stopping.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.05)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return

    def _status(self, mishap: Mishap) -> None:
        status, kind, code, wait, message = STATUSES[mishap.kind]
        headers = {**(self._limits or {}), **mishap.headers}
        if (wait := mishap.retry_after if mishap.retry_after is not None else wait) is not None:
            headers["retry-after"] = wait
        status = mishap.status or status
        if mishap.page is not None:
            return self._page(status, mishap.page, headers)
        return self._error(status, kind, mishap.message or message, code, headers)

    def _key(self) -> str:
        """The credential of the request, however it is sent."""
        headers = self._headers()
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")

    def _headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _error(
        self, status: int, kind: str, message: str, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        error: dict[str, Any] = {"type": kind, "message": message}
        if code:
            error["details"] = {"error_code": code, "error_visibility": "user_facing"}
        self._json(status, {"type": "error", "error": error, "request_id": self._request_id()}, headers)

    def _json(self, status: int, document: Any, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(document).encode()
        self._begin("application/json", status, {**(headers or {}), "content-length": str(len(data))})
        self.wfile.write(data)

    def _page(self, status: int, page: str, headers: Mapping[str, str]) -> None:
        data = page.encode()
        rest = {name: value for name, value in headers.items() if name != "content-type"}
        self._begin(headers.get("content-type", "text/html"), status, {**rest, "content-length": str(len(data))})
        self.wfile.write(data)

    def _begin(
        self, kind: str, status: int = 200, headers: Mapping[str, str] | None = None, chunked: bool = False
    ) -> None:
        self.send_response(status)
        if kind:
            self.send_header("content-type", kind)
        self.send_header("request-id", self._request_id())
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if chunked:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _request_id(self) -> str:
        return f"req_{self._number:08d}"

    def _event(self, name: str, data: Mapping[str, Any]) -> None:
        self._chunk(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _reply(entry: Entry, text: str, stop: str, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{entry.number:08d}", "type": "message", "role": "assistant", "model": entry.model,
        "content": [{"type": "text", "text": text}], "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description="A Messages API server that keeps its own bill.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--faults", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--requests", type=float, help="limit of requests a minute")
    parser.add_argument("--lessons", action="store_true", help="answer as an author of lessons, not with an echo")
    asked = parser.parse_args(arguments)
    responder: Responder = echo
    if asked.lessons:
        responder = answer
    server = BillingServer(
        plan=Plan(asked.faults, asked.seed), responder=responder, port=asked.port, latency=asked.latency
    )
    server.limits = RateLimits(requests=asked.requests) if asked.requests else None
    sys.stdout.write(f"listening on {server.url}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
