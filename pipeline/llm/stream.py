"""One streamed try at a model over HTTP, within its deadline: what the adapters of all wire formats share."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from pipeline.errors import ConfigError, ModelError, ModelRejected
from pipeline.llm import look_ups
from pipeline.llm.base import ModelInfo, Reply, Request
from pipeline.llm.clients import cloud_errors, is_log_in
from pipeline.llm.faults import broken_off, from_connection, from_status, limits, no_credential, no_reply, redact
from pipeline.llm.wire import Body, Deadline, Heard
from pipeline.providers import Provider

#: Longest wait for a connection, in seconds.
CONNECT_SECONDS = 10.0
#: Names of models that answer no messages, as gateways list them.
_SILENT = re.compile(r"embed|rerank|whisper|moderation|transcribe|tts|dall-e|image|audio|realtime", re.IGNORECASE)
#: How alike a name must be to be meant; names shown where none is.
_NEAR, _MOST_NAMED = 0.6, 8
#: Under which name servers tell the id of a request.
_REQUEST_IDS = ("request-id", "x-request-id", "x-amzn-requestid")


class StreamedModel:
    """A model behind an SDK's client. Any number of threads may call it at once."""

    model_id: str
    provider: Provider
    deadline_seconds: float
    #: It was given a key of its own.
    _own_key: bool
    #: What another process makes the same model from, besides its name.
    _made_from: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_id!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the credential: a worker takes its own from its environment."""
        if self._own_key:
            raise ConfigError(
                "A model with an API key of its own is not sent to workers.",
                code="api_key_not_sent",
                hint=f"Omit api_key, and set {self.provider.credential} where the workers run.",
            )
        kind: Any = type(self)
        return partial(kind, self.model_id, **self._made_from), ()

    def complete(self, request: Request) -> Reply:
        """Make one try within the deadline. See `Model.complete`."""
        import httpx2

        if not self._can_log_in():
            raise no_credential(f"No credential for {self.model_id} is set.", self.provider.login)
        timeout = httpx2.Timeout(self.deadline_seconds, connect=min(CONNECT_SECONDS, self.deadline_seconds))
        heard = self._heard()
        sent = self._parameters(request)
        with Deadline(self.deadline_seconds) as deadline:
            try:
                with self._open(sent, timeout) as stream:
                    heard.answered = True
                    heard.request_id = next(filter(None, map(stream.response.headers.get, _REQUEST_IDS)), None)
                    heard.limits = limits(stream.response.headers)
                    deadline.watch(stream.response)
                    self._receive(stream, heard)
            except RecursionError:
                if not heard.finished:
                    raise broken_off("the stream holds a piece nested without end", reply=heard.partial()) from None
            except self._errors() as error:
                if not heard.finished:
                    raise self._translate(error, heard, deadline) from None
        if heard.finished:
            return heard.reply()
        # The connection's end alone proves nothing: the model did not say why it stopped.
        reason = self._too_late() if deadline.passed else "the stream ended without a stop reason"
        raise broken_off(reason, reply=heard.partial())

    def check(self) -> ModelInfo:
        """Look the model up, free and bounded in time. See `Model.check`."""
        return look_ups.within(look_ups.CHECK_SECONDS, self._looked_up)

    # What a wire format knows.

    def _looked_up(self) -> ModelInfo:
        """Look the model up. Raises as `Model.check`."""
        raise NotImplementedError

    def _can_log_in(self) -> bool:
        """Return whether there is a credential, or none is needed."""
        return True

    def _heard(self) -> Heard:
        raise NotImplementedError

    def _parameters(self, request: Request) -> dict[str, Any]:
        raise NotImplementedError

    def _open(self, sent: Mapping[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        """Send the request; return the stream of its answer, closed on leaving."""
        raise NotImplementedError

    def _receive(self, stream: Any, heard: Heard) -> None:
        """Take in the answer: events as they come, or a whole document from a server that does not stream."""
        response = stream.response
        body = Body.of(response)
        if not body.streamed:
            document = body.document()
            if isinstance(document, Mapping):
                self._refuse_error(document, response)
            if not (isinstance(document, Mapping) and self._is_reply(document)):
                raise no_reply(response, self._secrets(), self.provider)
            heard.take_whole(document)
            return
        for data in _events(body):
            if data.startswith("[DONE]"):
                break
            if isinstance(piece := json.loads(data), Mapping):
                self._refuse_error(piece, response)
                heard.take(piece)

    def _refuse_error(self, document: Mapping[str, Any], response: Any) -> None:
        """Raise the client's error where a document is one, in the place of a reply or of a piece of it."""
        raise NotImplementedError

    def _is_reply(self, document: Mapping[str, Any]) -> bool:
        """Return whether a document is a whole reply."""
        raise NotImplementedError

    def _errors(self) -> tuple[type[Exception], ...]:
        """Return what the client may raise."""
        raise NotImplementedError

    def _told(self, error: Exception) -> Any:
        """Return what the provider says of an error, as `faults.from_status` takes it; None: it said nothing."""
        raise NotImplementedError

    def _secrets(self) -> Sequence[str | None]:
        """Return what no message may hold."""
        raise NotImplementedError

    def _translate(self, error: Exception, heard: Heard, deadline: Deadline) -> Exception:
        reply = heard.partial()
        if deadline.passed or type(error.__cause__ or error).__name__ == "ReadTimeout":
            return broken_off(self._too_late(), reply=reply)
        if (told := self._told(error)) is not None:
            return from_status(told, reply=reply, secrets=self._secrets(), provider=self.provider)
        if isinstance(error, ModelError):
            return error
        if not heard.answered and is_log_in(error):
            text = redact(f"The credential cannot be loaded: {error}", self._secrets())
            return no_credential(text, self.provider.login)
        if heard.answered and isinstance(error, (ValueError, *cloud_errors())):
            return broken_off("the stream holds a piece that is not JSON", reply=reply)
        return from_connection(error, reply=reply, secrets=self._secrets(), provider=self.provider)

    def _too_late(self) -> str:
        return f"no complete reply within {self.deadline_seconds:g} s"


def unsure(model_id: str, provider: str, what: str) -> ModelInfo:
    """Return what is known of a model that cannot be looked up."""
    warning = f"{what}; whether it knows {model_id} shows at the first call."
    return ModelInfo(model_id, paid=True, provider=provider, warnings=(warning,))


def listed(model_id: str, known: Sequence[str], provider: str) -> ModelInfo:
    """Return what a list of models' names says of one.

    Raises:
        ModelRejected: There is a list and the model is not in it.
    """
    if model_id in known or f"{model_id}:latest" in known:
        return ModelInfo(model_id, paid=True, provider=provider)
    if not known:
        return unsure(model_id, provider, "This server has no model list")
    talking = [name for name in known if not _SILENT.search(name)] or known
    near = difflib.get_close_matches(model_id, talking, n=1, cutoff=_NEAR)
    offered = ", ".join(talking[:_MOST_NAMED]) + (", …" if len(talking) > _MOST_NAMED else "")
    raise unknown(model_id, f"The nearest it offers: --model {near[0]}" if near else f"It offers: {offered}.")


def unknown(model_id: str, hint: str) -> ModelRejected:
    """Return the error of a model that the provider does not know."""
    return ModelRejected(
        f"The provider does not know the model {model_id!r}.",
        code="model_unknown", hint=hint, model=model_id, status=404, stops_run=True,
    )  # fmt: skip


def _events(body: Any) -> Iterator[str]:
    """Yield the data of each event of an event stream."""
    import anthropic

    for event in anthropic.Stream.raw_events(body):
        if event.data:
            yield event.data
