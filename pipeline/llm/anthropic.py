"""Claude through the official SDK: one streamed try at a time, its usage always kept.

The SDK's own retries are off: each would be a second bill nobody sees. Structured output is asked
for but not parsed here, because a parser that raises loses the usage that was paid for.
"""

from __future__ import annotations

import difflib
import re
import socket
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.errors import CredentialMissing, ModelRejected
from pipeline.llm.base import Message, ModelInfo, Reply, Request, Segment
from pipeline.llm.faults import broken_off, from_connection, from_status, redact

if TYPE_CHECKING:
    import anthropic

#: The provider's limit of cache marks a request.
CACHE_MARKS = 4
#: Longest wait for a connection, and for the free look-up, in seconds.
_CONNECT_SECONDS = 10.0
_CHECK_SECONDS = 30.0
_WHAT_TO_SET = "Set ANTHROPIC_API_KEY (in the environment or in a .env file beside pipeline.sh)."


class AnthropicModel:
    """A Claude model. Any number of threads may call it at once."""

    def __init__(
        self,
        model_id: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        deadline_seconds: float = 900.0,
    ) -> None:
        """Make the client; nothing is sent.

        Args:
            api_key: None: whatever credential the SDK finds (variables, profile, workload identity).
            base_url: None: ANTHROPIC_BASE_URL or the provider's own address.
            deadline_seconds: Longest time a try may take, from sending to the last byte.

        Raises:
            CredentialMissing: A profile or identity was named but cannot be loaded.
        """
        import anthropic

        # The SDK warns of deprecated models through `warnings`; check() says it once, in words.
        warnings.filterwarnings("ignore", message=r"The model '.*' is deprecated", category=DeprecationWarning)
        self.model_id = model_id
        self.deadline_seconds = deadline_seconds
        try:
            self._client = anthropic.Anthropic(api_key=api_key, base_url=base_url, max_retries=0)
        except (anthropic.AnthropicError, ValueError, OSError) as error:
            raise CredentialMissing(redact(f"The credential cannot be loaded: {error}"), hint=_WHAT_TO_SET) from None

    def __repr__(self) -> str:
        return f"AnthropicModel({self.model_id!r})"

    def check(self) -> ModelInfo:
        """Look the model up; free. See `Model.check`."""
        import anthropic
        import httpx2

        self._require_credential()
        models = self._client.with_options(timeout=_CHECK_SECONDS).models
        try:
            return _info(self.model_id, models.retrieve(self.model_id))
        except anthropic.NotFoundError:
            return self._listed(models)
        except anthropic.APIStatusError as error:
            raise from_status(error, reply=None, secrets=self._secrets()) from None
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            raise from_connection(error, reply=None, secrets=self._secrets()) from None

    def complete(self, request: Request) -> Reply:
        """One try within the deadline. See `Model.complete`."""
        import anthropic
        import httpx2

        self._require_credential()
        sent = parameters(request, self.model_id)
        timeout = httpx2.Timeout(self.deadline_seconds, connect=min(_CONNECT_SECONDS, self.deadline_seconds))
        heard = _Heard()
        with _Deadline(self.deadline_seconds) as deadline:
            try:
                with self._client.messages.create(stream=True, timeout=timeout, **sent) as stream:
                    deadline.watch(stream.response)
                    heard.request_id = stream.response.headers.get("request-id")
                    for event in stream:
                        heard.take(event)
            except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError, ValueError, OSError) as error:
                if not heard.finished:
                    raise self._translate(error, heard, deadline) from None
        return self._finish(heard, deadline)

    def close(self) -> None:
        """Free connections."""
        self._client.close()

    def _finish(self, heard: _Heard, deadline: _Deadline) -> Reply:
        """The reply, if the model said why it stopped; the connection's end alone proves nothing."""
        if heard.finished:
            return heard.reply()
        if deadline.passed:
            raise broken_off(self._too_late(), reply=heard.partial())
        raise broken_off("the stream ended without a stop reason", reply=heard.partial())

    def _translate(self, error: Exception, heard: _Heard, deadline: _Deadline) -> Exception:
        import anthropic

        reply = heard.partial()
        if deadline.passed or type(error.__cause__ or error).__name__ == "ReadTimeout":
            return broken_off(self._too_late(), reply=reply)
        if isinstance(error, anthropic.APIStatusError):
            return from_status(error, reply=reply, secrets=self._secrets())
        if isinstance(error, ValueError):
            return broken_off("the stream holds a piece that is not JSON", reply=reply)
        return from_connection(error, reply=reply, secrets=self._secrets())

    def _too_late(self) -> str:
        return f"no complete reply within {self.deadline_seconds:g} s"

    def _listed(self, models: anthropic.resources.Models) -> ModelInfo:
        """After a 404: unknown to the provider, or only to a gateway that knows no look-up of single models.

        Raises:
            ModelRejected: There is a list and the model is not in it.
        """
        import anthropic
        import httpx2

        try:
            known = [found.id for found in models.list(limit=100).data]
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError):
            known = []
        if self.model_id in known:
            return ModelInfo(self.model_id, paid=True)
        if not known:
            unsure = f"This server has no model list; whether it knows {self.model_id} shows at the first call."
            return ModelInfo(self.model_id, paid=True, warnings=(unsure,))
        near = difflib.get_close_matches(self.model_id, known, n=1, cutoff=0.0)[0]
        raise ModelRejected(
            f"The provider does not know the model {self.model_id!r}.",
            hint=f"The nearest it offers: --model {near}",
            model=self.model_id,
            status=404,
            stops_run=True,
        ) from None

    def _require_credential(self) -> None:
        client = self._client
        headers = {name.lower() for name, value in client.default_headers.items() if isinstance(value, str) and value}
        if client.api_key or client.auth_token or client.credentials or headers & {"authorization", "x-api-key"}:
            return
        raise CredentialMissing(f"No credential for {self.model_id} is set.", hint=_WHAT_TO_SET)

    def _secrets(self) -> tuple[str | None, ...]:
        headers = self._client.default_headers
        values = (headers.get(name) for name in ("Authorization", "X-Api-Key", "authorization", "x-api-key"))
        return (self._client.api_key, self._client.auth_token, *(v for v in values if isinstance(v, str)))


def parameters(request: Request, model_id: str) -> dict[str, Any]:
    """The request as arguments of `messages.create`.

    Raises:
        ModelRejected: The schema cannot be expressed for the provider.
    """
    sent: dict[str, Any] = {
        "model": request.model or model_id,
        "max_tokens": request.max_tokens,
        "messages": [_turn(turn) for turn in request.messages],
    }
    if system := _system(request.system):
        sent["system"] = system
    output: dict[str, Any] = {}
    if request.effort is not None:
        output["effort"] = request.effort
    if request.schema is not None:
        output["format"] = {"type": "json_schema", "schema": _schema(request.schema, request.label)}
    if output:
        sent["output_config"] = output
    return sent


def _turn(turn: Message) -> dict[str, Any]:
    return {"role": turn.role, "content": [{"type": "text", "text": _sendable(turn.text)}]}


def _system(segments: Sequence[Segment]) -> list[dict[str, Any]]:
    """System blocks; of more than four cache marks the last four count, as they mark the longest prefixes."""
    parts = [part for part in segments if part.text]
    marked = [index for index, part in enumerate(parts) if part.cache][-CACHE_MARKS:]
    blocks: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        block: dict[str, Any] = {"type": "text", "text": _sendable(part.text)}
        if index in marked:
            block["cache_control"] = {"type": "ephemeral"}
        blocks.append(block)
    return blocks


def _schema(schema: Mapping[str, Any], label: str) -> dict[str, Any]:
    import anthropic

    try:
        return anthropic.transform_schema(dict(schema))
    except (ValueError, TypeError, AssertionError) as error:
        raise ModelRejected(f"The schema of {label!r} cannot be sent: {redact(str(error))}", stops_run=True) from None


_LONE = re.compile("[\ud800-\udfff]")


def _sendable(text: str) -> str:
    """The text with lone surrogates replaced: they survive in records, but UTF-8 cannot carry them."""
    return _LONE.sub("\N{REPLACEMENT CHARACTER}", text)


class _Heard:
    """What a stream has said so far."""

    def __init__(self) -> None:
        self.request_id: str | None = None
        self._model = ""
        self._text: list[str] = []
        self._usage: dict[str, Any] = {}
        self._stop_reason: str | None = None
        self._extra: dict[str, Any] = {}

    @property
    def finished(self) -> bool:
        """The model has said why it stopped; the usage of that event is final."""
        return self._stop_reason is not None

    def take(self, event: Any) -> None:
        kind = getattr(event, "type", "")
        if kind == "content_block_delta":
            self._text.append(getattr(event.delta, "text", None) or "")
        elif kind == "content_block_start":
            self._text.append(getattr(event.content_block, "text", None) or "")
        elif kind == "message_start":
            message = _raw(event.message)
            self._model = message.get("model") or ""
            self._count(message.get("usage"))
        elif kind == "message_delta":
            self._end(_raw(event))

    def _end(self, event: Mapping[str, Any]) -> None:
        delta = dict(event.get("delta") or {})
        self._stop_reason = delta.pop("stop_reason", None) or self._stop_reason
        self._extra.update({key: value for key, value in delta.items() if value is not None})
        self._count(event.get("usage"))

    def _count(self, usage: Any) -> None:
        # Figures are cumulative: a later one replaces an earlier one, adding them would bill twice.
        if isinstance(usage, Mapping):
            self._usage.update({key: value for key, value in usage.items() if value is not None})

    def partial(self) -> Reply | None:
        """What came before the end, if the provider had begun to answer."""
        return self.reply() if self._usage or self._text else None

    def reply(self) -> Reply:
        return Reply(
            text="".join(self._text),
            stop_reason=self._stop_reason,
            usage=self._usage,
            model=self._model,
            request_id=self.request_id,
            extra=self._extra,
        )


def _raw(model: Any) -> dict[str, Any]:
    """An SDK object as the JSON it came from: unknown keys stay, absent ones are not invented."""
    raw = model.to_dict(mode="json", exclude_unset=True, warnings=False)
    return raw if isinstance(raw, dict) else {}


class _Deadline:
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

    def __enter__(self) -> _Deadline:
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


def _info(model_id: str, found: anthropic.types.ModelInfo) -> ModelInfo:
    """What the look-up says, with the sentences to show.

    Raises:
        ModelRejected: The model is retired.
    """
    lifecycle = getattr(found, "lifecycle", None)
    retires = getattr(found, "retires_at", None)
    if lifecycle == "retired":
        when = f" on {retires:%Y-%m-%d}" if retires else ""
        raise ModelRejected(
            f"The model {model_id!r} was retired{when}.",
            hint="Choose another with --model.",
            model=model_id,
            stops_run=True,
        )
    deprecated = getattr(found, "deprecated_at", None)
    return ModelInfo(
        id=model_id,
        paid=True,
        max_output_tokens=getattr(found, "max_tokens", None),
        max_input_tokens=getattr(found, "max_input_tokens", None),
        deprecated_at=deprecated,
        retires_at=retires,
        warnings=_lifecycle_warnings(model_id, lifecycle == "deprecated" or deprecated is not None, retires),
    )


def _lifecycle_warnings(model_id: str, deprecated: bool, retires: Any) -> tuple[str, ...]:
    from anthropic.resources import messages

    known: Mapping[str, str] = getattr(messages, "DEPRECATED_MODELS", {})
    if not deprecated and model_id not in known:
        return ()
    when = f"{retires:%Y-%m-%d}" if retires else known.get(model_id, "a date not yet given")
    return (f"The model {model_id} is deprecated; it will be retired on {when}.",)
