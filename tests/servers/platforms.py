"""The paths by which other providers are asked, in front of the billing server: each request is put into the Messages
API's form, each answer back into the provider's. So all of them meet the same models, faults and bill.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from tests.servers.billing import BillingServer
from tests.servers.serving import Handler, Http, Serving

#: Providers of Claude's names of a model, in a path.
_BEDROCK = re.compile(r"/model/(?P<model>[^/]+)/invoke(?P<stream>-with-response-stream)?")
_VERTEX = re.compile(r".*/publishers/anthropic/models/(?P<model>[^:]+):(?P<verb>\w+)")
#: Models of the second wire format, and who answers in their place.
_MODELS = {"gpt-5-mini": "claude-sonnet-5-5", "llama3.2": "claude-sonnet-5-5"}
#: What the first wire format calls the ends and errors of the second.
_REASONS = {"end_turn": "stop", "max_tokens": "length", "refusal": "stop"}
_ERRORS = {"overloaded_error": "server_error", "rate_limit_error": "rate_limit_exceeded"}
_CODES = {"enforced_spend_limit_reached": "insufficient_quota"}


class PlatformServer(Serving):
    """The server in front; a context manager."""

    def __init__(self, behind: BillingServer) -> None:
        self.behind = behind
        #: Path and headers of each request for a message, in order.
        self.seen: list[tuple[str, dict[str, str]]] = []
        #: Bodies as they came, before they were put into another form.
        self.bodies: list[Any] = []
        #: Models that the second wire format lists; None: it has no list.
        self.listed: list[str] | None = ["gpt-5-mini", "text-embedding-3-small"]
        super().__init__(_Handler)

    def reset(self) -> None:
        self.behind.reset()
        self.seen.clear()
        self.bodies.clear()
        self.listed = ["gpt-5-mini", "text-embedding-3-small"]


class _Handler(Handler):
    server: Http[PlatformServer]
    _form = "messages"

    def do_GET(self) -> None:
        owner = self.server.owner
        if self.path.startswith("/openai/"):
            self._form = "chat"
            if owner.behind.always is None and owner.behind.free_fault is None:
                if owner.listed is None:
                    return self._json(404, {"error": {"message": "no such path", "type": "not_found"}})
                rows = [{"id": name, "object": "model"} for name in owner.listed]
                return self._json(200, {"object": "list", "data": rows})
        self._pass_on("GET", "/v1/" + self.path.partition("/v1/")[2], None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/token":
            return self._json(
                200, {"access_token": "ya29.token-of-the-test", "expires_in": 3600, "token_type": "Bearer"}
            )
        body = json.loads(raw or b"{}")
        self.server.owner.bodies.append(body)
        path, told = self._translated(body)
        if "count" not in path and "batches" not in path:
            self.server.owner.seen.append((self.path, {name.lower(): text for name, text in self.headers.items()}))
        self._pass_on("POST", path, told)

    def _translated(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return path and body as the Messages API has them, and note the form of the answer."""
        if found := _BEDROCK.fullmatch(self.path.partition("?")[0]):
            self._form = "amazon" if found["stream"] else "messages"
            told = {**_plain(body), "model": _first_party(found["model"]), "stream": bool(found["stream"])}
            return "/v1/messages", told
        if found := _VERTEX.fullmatch(self.path.partition("?")[0]):
            if found["model"] == "count-tokens":
                return "/v1/messages/count_tokens", _plain(body)
            return "/v1/messages", {**_plain(body), "model": found["model"]}
        if self.path.endswith("/chat/completions"):
            self._form = "chat"
            return "/v1/messages", _messages_of(body)
        path = "/v1/" + self.path.partition("/v1/")[2]
        return path, {**body, "model": _first_party(body["model"])} if "model" in body else body

    def _pass_on(self, method: str, path: str, body: Any) -> None:
        """Ask the server behind, and answer as it does."""
        host = self.server.owner.behind.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=100)
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            kind = response.headers.get("content-type", "")
            if "event-stream" not in kind:
                return self._whole(response.status, kind, response.read(), dict(response.headers.items()))
            self._stream(response)
        except (ConnectionError, http.client.HTTPException):
            self._cut(reset=True)
        finally:
            connection.close()

    def _whole(self, status: int, kind: str, data: bytes, headers: Mapping[str, str]) -> None:
        kept = {name: headers[name] for name in ("retry-after", "location", "request-id") if name in headers}
        if "json" in kind and self._form != "messages":
            document = json.loads(data)
            error = document.get("error") if isinstance(document, dict) else None
            if self._form == "amazon" and error is not None:
                data = json.dumps({"message": error["message"]}).encode()
            elif self._form == "chat" and error is not None:
                data = json.dumps({"error": _chat_error(error)}).encode()
            elif self._form == "chat" and isinstance(document, dict) and document.get("type") == "message":
                data = json.dumps(_completion(document)).encode()
        self._send(status, kind, data, kept)

    def _stream(self, response: http.client.HTTPResponse) -> None:
        self.send_response(200)
        kinds = {"amazon": "application/vnd.amazon.eventstream"}
        self.send_header("content-type", kinds.get(self._form, "text/event-stream"))
        self.send_header("x-request-id", response.headers.get("request-id") or "")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        usage: dict[str, Any] = {}
        try:
            for data in _events(response):
                for piece in self._pieces(data, usage):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
        except (http.client.IncompleteRead, ConnectionError):
            return self._cut()
        self.wfile.write(b"0\r\n\r\n")

    def _pieces(self, data: bytes, usage: dict[str, Any]) -> Iterator[bytes]:
        if self._form == "messages":
            yield b"event: " + _kind(data) + b"\ndata: " + data + b"\n\n"
        elif self._form == "amazon":
            yield _amazon(data)
        else:
            yield from _chat(data, usage)

    def _json(self, status: int, document: Any) -> None:
        self._send(status, "application/json", json.dumps(document).encode(), {})

    def _send(self, status: int, kind: str, data: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        if kind:
            self.send_header("content-type", kind)
        for name, text in {**headers, "content-length": str(len(data))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body without what only other providers put into it; they must."""
    if body.get("anthropic_version") is None:
        raise http.client.HTTPException("anthropic_version is missing")
    return {name: value for name, value in body.items() if name != "anthropic_version"}


def _first_party(model: str) -> str:
    return re.sub(r"^(?:[a-z-]+\.)?anthropic\.", "", model)


def _events(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """The data of each event as it comes."""
    while line := response.readline():
        if line.startswith(b"data: "):
            yield line.removeprefix(b"data: ").rstrip(b"\n")
    if not response.isclosed() and response.length:
        raise http.client.IncompleteRead(b"")


def _kind(data: bytes) -> bytes:
    try:
        return str(json.loads(data)["type"]).encode()
    except (TypeError, ValueError):
        return b"content_block_delta"


def _amazon(data: bytes) -> bytes:
    """One frame of an event stream of Amazon's."""
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    payload = json.dumps({"bytes": base64.b64encode(data).decode()}).encode()
    if b'"error"' in data[:40]:
        error = json.loads(data)["error"]
        headers = {":exception-type": "throttlingException", ":message-type": "exception"}
        payload = json.dumps({"message": error["message"]}).encode()
    rows = b"".join(
        struct.pack("!B", len(name)) + name.encode() + b"\x07" + struct.pack("!H", len(text)) + text.encode()
        for name, text in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(rows) + len(payload), len(rows))
    whole = prelude + struct.pack("!I", zlib.crc32(prelude)) + rows + payload
    return whole + struct.pack("!I", zlib.crc32(whole))


def _messages_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body of the second wire format as the first has it."""
    known = {"model", "messages", "max_tokens", "stream", "stream_options", "response_format", "reasoning_effort"}
    if unknown := set(body) - known:
        raise http.client.HTTPException(f"unknown: {unknown}")
    turns = [turn for turn in body["messages"] if turn["role"] != "system"]
    system = [{"type": "text", "text": turn["content"]} for turn in body["messages"] if turn["role"] == "system"]
    told: dict[str, Any] = {
        "model": _MODELS.get(body["model"], body["model"]),
        "max_tokens": body["max_tokens"], "messages": turns, "stream": body.get("stream", False),
    }  # fmt: skip
    output: dict[str, Any] = {}
    if form := body.get("response_format"):
        output["format"] = {"type": "json_schema", "schema": form["json_schema"]["schema"]}
    if effort := body.get("reasoning_effort"):
        output["effort"] = effort
    return told | ({"system": system} if system else {}) | ({"output_config": output} if output else {})


def _chat_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    read, written = usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0)
    prompt, output = usage["input_tokens"] + read + written, usage["output_tokens"]
    details = {"cached_tokens": read} | ({"cache_write_tokens": written} if written else {})
    return {
        "prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output,
        "prompt_tokens_details": details, "completion_tokens_details": {"reasoning_tokens": output // 2},
    }  # fmt: skip


def _chat_error(error: Mapping[str, Any]) -> dict[str, Any]:
    code = (error.get("details") or {}).get("error_code")
    kind = str(error.get("type"))
    return {"message": error.get("message"), "type": _ERRORS.get(kind, kind), "code": _CODES.get(str(code), code)}


def _completion(message: Mapping[str, Any]) -> dict[str, Any]:
    said = {"role": "assistant", "content": message["content"][0]["text"]}
    if message["stop_reason"] == "refusal":
        said = {"role": "assistant", "content": None, "refusal": said["content"]}
    choice = {"index": 0, "message": said, "finish_reason": _REASONS[message["stop_reason"]]}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-5-mini-2025-08-07", "choices": [choice],
            "usage": _chat_usage(message["usage"])}  # fmt: skip


def _chat(data: bytes, usage: dict[str, Any]) -> Iterator[bytes]:
    """The chunks of the second wire format that an event of the first comes to."""

    def chunk(delta: Mapping[str, Any], reason: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}] if not more else []
        document = {"object": "chat.completion.chunk", "model": "gpt-5-mini-2025-08-07", "choices": choices, **more}
        return b"data: " + json.dumps(document).encode() + b"\n\n"

    try:
        event = json.loads(data)
    except ValueError:
        yield b'data: {"object": "chat.com\n\n'
        return
    if not isinstance(event, dict):
        yield b"data: " + data + b"\n\n"
        return
    kind = event["type"]
    if kind == "message_start":
        usage.update(event["message"]["usage"])
        yield chunk({"role": "assistant", "content": ""}, usage_of_start=None)
    elif kind == "content_block_delta":
        yield chunk({"content": event["delta"]["text"]})
    elif kind == "message_delta":
        reason = event["delta"]["stop_reason"]
        usage.update(event["usage"])
        if reason == "refusal":
            yield chunk({"refusal": "I can't."})
        yield chunk({}, _REASONS[reason])
        yield chunk({}, usage=_chat_usage(usage))
    elif kind == "message_stop":
        yield b"data: [DONE]\n\n"
    elif kind == "error":
        yield b"data: " + json.dumps({"error": _chat_error(event["error"])}).encode() + b"\n\n"
