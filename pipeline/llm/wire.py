"""The Messages API on the wire: a request as its parameters, a reply as it comes in, and the deadline that ends it."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pipeline.errors import ModelRejected
from pipeline.llm.base import Message, Reply, Request, Segment
from pipeline.llm.faults import redact

#: The provider's limit of cache marks a request.
CACHE_MARKS = 4

Transform = Callable[[dict[str, Any]], dict[str, Any]]


def parameters(
    request: Request, model_id: str, transform: Transform, named: Callable[[str], str] = str
) -> dict[str, Any]:
    """Return the request as arguments of `messages.create`.

    `transform` makes a JSON schema one that the provider takes; `named` makes a model's name the provider's own.

    Raises:
        ModelRejected: The schema cannot be expressed for the provider.
    """
    sent: dict[str, Any] = {
        "model": named(request.model or model_id),
        "max_tokens": request.max_tokens,
        "messages": [_turn(turn) for turn in request.messages],
    }
    if system := _system(request.system):
        sent["system"] = system
    output: dict[str, Any] = {}
    if request.effort is not None:
        output["effort"] = request.effort
    if request.schema is not None:
        output["format"] = {"type": "json_schema", "schema": sendable_schema(request, transform)}
    if output:
        sent["output_config"] = output
    return sent


def _turn(turn: Message) -> dict[str, Any]:
    return {"role": turn.role, "content": [{"type": "text", "text": sendable(turn.text)}]}


def _system(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """Return the system blocks; of more than four cache marks the last four count: they mark the longest prefixes."""
    parts = [part for part in segments if part.text]
    marked = [index for index, part in enumerate(parts) if part.cache][-CACHE_MARKS:]
    blocks: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        block: dict[str, Any] = {"type": "text", "text": sendable(part.text)}
        if index in marked:
            block["cache_control"] = {"type": "ephemeral"}
        blocks.append(block)
    return blocks


def sendable_schema(request: Request, transform: Transform) -> dict[str, Any]:
    """Return the request's schema as providers take it.

    Raises:
        ModelRejected: It cannot be expressed for them.
    """
    try:
        if place := next(_free(request.schema, ""), None):
            raise ValueError(f"{place} is a mapping with free keys, which providers would close; use a list of pairs")
        return transform(dict(request.schema or {}))
    except (ValueError, TypeError, AssertionError) as error:
        text = f"The schema of {request.label!r} cannot be sent: {redact(str(error))}"
        raise ModelRejected(text, code="schema_unsendable", stops_run=True) from None


def _free(schema: Any, at: str) -> Iterator[str]:
    """Yield where a schema has objects of which only the values are known: closed, they could hold nothing."""
    if isinstance(schema, list):
        for each in schema:
            yield from _free(each, at)
    if not isinstance(schema, Mapping):
        return
    if schema.get("additionalProperties") and not schema.get("properties"):
        yield at or "the answer"
    for key in ("properties", "$defs"):
        members = schema.get(key)
        for name, each in members.items() if isinstance(members, Mapping) else ():
            yield from _free(each, f"{at}.{name}".removeprefix("."))
    for key in ("items", "anyOf", "oneOf", "allOf"):
        yield from _free(schema.get(key), at)


_LONE = re.compile("[\ud800-\udfff]")


def sendable(text: str) -> str:
    """Return the text with lone surrogates replaced, which UTF-8 cannot carry."""
    return _LONE.sub("\N{REPLACEMENT CHARACTER}", text)


class Heard:
    """What a stream has said so far."""

    def __init__(self, *, regional: bool = False) -> None:
        """Begin with nothing.

        Args:
            regional: It comes from an endpoint whose price the usage does not tell: it is noted there.
        """
        self._regional = regional
        #: The provider has begun to answer.
        self.answered = False
        self.request_id: str | None = None
        #: What the headers say of rate limits.
        self.limits: Mapping[str, float] = {}
        self._model = ""
        self._text: list[str] = []
        self._usage: dict[str, Any] = {}
        self._stop_reason: str | None = None
        #: The end told how many tokens were generated; what the beginning says of them is only where counting starts.
        self._output_told = False
        self._extra: dict[str, Any] = {}

    @property
    def finished(self) -> bool:
        """Return whether the model has said why it stopped; the usage of that event is final."""
        return self._stop_reason is not None

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in one event of a stream."""
        kind = event.get("type")
        if kind == "content_block_delta":
            self._text.append(_text(event.get("delta")))
        elif kind == "content_block_start":
            self._text.append(_text(event.get("content_block")))
        elif kind == "message_start" and isinstance(message := event.get("message"), Mapping):
            self._model = message.get("model") or ""
            self._count(message.get("usage"))
        elif kind == "message_delta":
            self._end(event.get("delta"), event.get("usage"))

    def take_whole(self, message: Mapping[str, Any]) -> None:
        """Take in a whole message, as a batch and a server that does not stream give it."""
        content = message.get("content")
        self._text.extend(map(_text, content if isinstance(content, list) else ()))
        self._model = message.get("model") or ""
        self._end({key: message.get(key) for key in _ENDS}, message.get("usage"))

    def _end(self, delta: Any, usage: Any) -> None:
        ends = dict(delta) if isinstance(delta, Mapping) else {}
        reason = ends.pop("stop_reason", None)
        self._stop_reason = str(reason) if reason else self._stop_reason
        self._extra.update({key: value for key, value in ends.items() if value is not None})
        self._output_told |= isinstance(usage, Mapping) and usage.get(_OUTPUT) is not None
        self._count(usage)

    def _count(self, usage: Any) -> None:
        # Figures are cumulative: a later one replaces an earlier one, adding them would bill twice.
        if isinstance(usage, Mapping):
            self._usage = merged(self._usage, usage)

    def partial(self) -> Reply | None:
        """Return what came so far; None where the provider had not begun to answer."""
        return self.reply() if self._usage or self._text else None

    def reply(self) -> Reply:
        """Return what was heard; without a count of the answer's tokens where an answer that ended has no true one."""
        text, usage = "".join(self._text), self._usage
        if self.finished and not (self._output_told and (usage.get(_OUTPUT) or not text)):
            usage = {key: value for key, value in usage.items() if key != _OUTPUT}
        if self._regional and usage:
            usage = {**usage, "endpoint": "regional"}
        return Reply(
            text=text,
            stop_reason=self._stop_reason,
            usage=usage,
            model=self._model,
            request_id=self.request_id,
            extra=self._extra,
            limits=self.limits,
        )


#: The figures of a usage object that add up to the prompt.
_PROMPT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_OUTPUT = "output_tokens"
_WRITTEN, _SPLIT, _LEFT_OUT = "cache_creation_input_tokens", "cache_creation", "left_out_later"


def merged(before: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return a usage object brought up to date by a later one, whose figures replace the earlier; null says nothing.

    Nor do zeros that would leave a prompt without tokens. Figures of the prompt that the later one leaves out while it
    changes others are named under "left_out_later": they may count the same tokens.
    """
    told = {key: value for key, value in _told(later).items() if key != _LEFT_OUT}
    if any(map(before.get, _PROMPT)) and not any(map(told.get, _PROMPT)):
        told = {key: value for key, value in told.items() if key not in _PROMPT}
    usage = dict(before)
    if _SPLIT in told and _WRITTEN not in told:
        usage.pop(_WRITTEN, None)
    for key, value in told.items():
        old = usage.get(key)
        usage[key] = {**old, **_told(value)} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    doubtful = set(usage.pop(_LEFT_OUT, ()))
    if any(key in told and told[key] != (before.get(key) or 0) for key in _PROMPT):
        doubtful.update(key for key in _PROMPT if before.get(key))
    if doubtful := doubtful - set(told) - ({_WRITTEN} if _SPLIT in told else set()):
        usage[_LEFT_OUT] = sorted(doubtful)
    return usage


def _told(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: part for key, part in value.items() if part is not None}


#: How a message says that it has ended.
_ENDS = ("stop_reason", "stop_sequence", "stop_details", "container")


def _text(block: Any) -> str:
    found = block.get("text") if isinstance(block, Mapping) else None
    return found if isinstance(found, str) else ""


@dataclass(frozen=True, slots=True)
class Body:
    """The body of an answer, looked at from its beginning: an event stream, or a document as a whole."""

    streamed: bool
    _pieces: Iterator[bytes]

    @classmethod
    def of(cls, response: Any) -> Body:
        """Look at the first bytes; what they are decides, not the header: servers and proxies get that wrong."""
        pieces = response.iter_bytes()
        begin = b""
        while len(begin.strip()) < _ENOUGH and (piece := next(pieces, None)) is not None:
            begin += piece
        named = "event-stream" in response.headers.get("content-type", "").lower()
        return cls(bool(_FIELD.match(begin)) or (named and not begin.strip()), chain([begin], pieces))

    def iter_bytes(self) -> Iterator[bytes]:
        """Yield the bytes as they come, up to the length of the longest reply."""
        left = MOST_BYTES
        for piece in self._pieces:
            yield piece
            left -= len(piece)
            if left < 0:
                return

    def document(self) -> Any:
        """Return the JSON document that the body is; None where it is none, or is longer than any reply."""
        try:
            return json.loads(b"".join(self.iter_bytes()).removeprefix(_BOM))
        except (ValueError, RecursionError):
            return None


#: How a line of an event stream begins, with the bytes that it takes to see that.
_FIELD, _ENOUGH = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:event|data|id|retry)?:"), 6
_BOM = b"\xef\xbb\xbf"
#: No reply is longer.
MOST_BYTES = 100_000_000


class Deadline:
    """Ends a try that takes too long, even one that trickles or stalls.

    A read that blocks cannot be woken by closing its file from another thread, only by shutting
    the socket down.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._socket = None

    def watch(self, response: Any) -> None:
        """Shut this response's connection at the deadline (at once, if it has passed)."""
        stream = response.extensions.get("network_stream")
        found = stream.get_extra_info("socket") if stream is not None else None
        with self._lock:
            self._socket = found
            if self.passed:
                self._shut()

    def _pass(self) -> None:
        with self._lock:
            self.passed = True
            self._shut()

    def _shut(self) -> None:
        if self._socket is None:
            return
        try:
            # Of the plain socket: SSLSocket.shutdown would pull the TLS state away under the reader.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        except OSError:
            return
