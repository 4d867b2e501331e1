"""Claude through the official SDK: one streamed try at a time, its usage always kept.

The SDK's own retries are off: each would be a second bill that is not recorded. Structured output is asked
for but not parsed here, because a parser that raises loses the usage that was paid for.
"""

from __future__ import annotations

import difflib
import json
import re
import warnings
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pipeline.errors import ConfigError, CredentialMissing, ModelRejected
from pipeline.llm.base import ModelInfo, Reply, Request
from pipeline.llm.batches import AnthropicBatches
from pipeline.llm.faults import broken_off, from_connection, from_status, limits, no_credential, no_reply, redact
from pipeline.llm.wire import Body, Deadline, Heard, parameters

if TYPE_CHECKING:
    import anthropic

#: Longest wait for a connection, and for the free look-up, in seconds.
_CONNECT_SECONDS = 10.0
_CHECK_SECONDS = 30.0
_CREDENTIAL_HEADERS = {"authorization", "x-api-key"}
#: Names of models that answer no messages, as gateways list them.
_SILENT = re.compile(r"embed|rerank|whisper|moderation|transcribe|tts|dall-e|image|audio|realtime", re.IGNORECASE)
#: How alike a name must be to be meant; names shown where none is.
_NEAR, _MOST_NAMED = 0.6, 8
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
        #: What another process makes the same model from.
        self._made_from = (model_id, base_url, deadline_seconds)
        self._own_key = api_key is not None
        try:
            # A redirect would carry the key to another host.
            http = anthropic.DefaultHttpxClient(follow_redirects=False)
            # The SDK does not close a client of ours.
            weakref.finalize(self, http.close)
            self._client = anthropic.Anthropic(api_key=api_key, base_url=base_url, max_retries=0, http_client=http)
            self.batches = AnthropicBatches(self._client, model_id, self._secrets)
        except (anthropic.AnthropicError, ValueError, OSError) as error:
            raise CredentialMissing(redact(f"The credential cannot be loaded: {error}"), hint=_WHAT_TO_SET) from None

    def __repr__(self) -> str:
        return f"AnthropicModel({self.model_id!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the credential: a worker takes its own from its environment."""
        if self._own_key:
            raise ConfigError(
                "A model with an API key of its own is not sent to workers.",
                code="api_key_not_sent",
                hint="Omit api_key, and set ANTHROPIC_API_KEY where the workers run.",
            )
        return _made, self._made_from

    def check(self) -> ModelInfo:
        """Look the model up; free. See `Model.check`."""
        import anthropic
        import httpx2

        if not self._has_credential():
            raise CredentialMissing(f"No credential for {self.model_id} is set.", hint=_WHAT_TO_SET)
        models = self._client.with_options(timeout=_CHECK_SECONDS).models
        try:
            raw = models.with_raw_response.retrieve(self.model_id)
            found = raw.parse()
            if isinstance(found, str):
                # The SDK hands on what is no JSON as text.
                raise no_reply(raw.http_response, self._secrets())
            return _info(self.model_id, found)
        except anthropic.NotFoundError:
            return self._listed(models)
        except anthropic.APIStatusError as error:
            raise from_status(error, reply=None, secrets=self._secrets()) from None
        except anthropic.CredentialsError as error:
            text = redact(f"The credential cannot be loaded: {error}", self._secrets())
            raise CredentialMissing(text, hint=_WHAT_TO_SET) from None
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            raise from_connection(error, reply=None, secrets=self._secrets()) from None

    def complete(self, request: Request) -> Reply:
        """Make one try within the deadline. See `Model.complete`."""
        import anthropic
        import httpx2

        if not self._has_credential():
            raise no_credential(f"No credential for {self.model_id} is set.", _WHAT_TO_SET)
        sent = parameters(request, self.model_id, anthropic.transform_schema)
        timeout = httpx2.Timeout(self.deadline_seconds, connect=min(_CONNECT_SECONDS, self.deadline_seconds))
        heard = Heard()
        with Deadline(self.deadline_seconds) as deadline:
            try:
                with self._client.messages.create(stream=True, timeout=timeout, **sent) as stream:
                    heard.answered = True
                    heard.request_id = stream.response.headers.get("request-id")
                    heard.limits = limits(stream.response.headers)
                    deadline.watch(stream.response)
                    self._receive(stream.response, heard)
            except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError, ValueError, OSError) as error:
                if not heard.finished:
                    raise self._translate(error, heard, deadline) from None
            except RecursionError:
                if not heard.finished:
                    raise broken_off("the stream holds a piece nested without end", reply=heard.partial()) from None
        return self._finish(heard, deadline)

    def count_tokens(self, request: Request) -> int:
        """Return the input tokens of a request as the provider counts them; free.

        Raises:
            ModelError: As `Batches.validate`.
        """
        return self.batches.count(request)

    def close(self) -> None:
        """Free connections."""
        self._client.close()

    def _receive(self, response: Any, heard: Heard) -> None:
        """Take in the answer: events as they come, or a whole message from a server that does not stream.

        Raises:
            anthropic.APIStatusError: The provider says an error in the place of a reply, or in the middle of it.
            ModelUnavailable: It is no reply.
        """
        import anthropic

        body = Body.of(response)
        if not body.streamed:
            document = body.document()
            kind = document.get("type") if isinstance(document, Mapping) else None
            if kind == "error":
                raise anthropic.APIStatusError("error", response=response, body=document)
            if kind != "message":
                raise no_reply(response, self._secrets())
            return heard.take_whole(document)
        for event in anthropic.Stream.raw_events(cast(Any, body)):
            piece = json.loads(event.data) if event.data else None
            if not isinstance(piece, Mapping):
                continue
            if piece.get("type") == "error":
                raise anthropic.APIStatusError("error", response=response, body=piece)
            heard.take(piece)
        return None

    def _finish(self, heard: Heard, deadline: Deadline) -> Reply:
        """Return the reply, if the model said why it stopped; the connection's end alone proves nothing."""
        if heard.finished:
            return heard.reply()
        if deadline.passed:
            raise broken_off(self._too_late(), reply=heard.partial())
        raise broken_off("the stream ended without a stop reason", reply=heard.partial())

    def _translate(self, error: Exception, heard: Heard, deadline: Deadline) -> Exception:
        import anthropic

        reply = heard.partial()
        if deadline.passed or type(error.__cause__ or error).__name__ == "ReadTimeout":
            return broken_off(self._too_late(), reply=reply)
        if isinstance(error, anthropic.APIStatusError):
            return from_status(error, reply=reply, secrets=self._secrets())
        if isinstance(error, anthropic.CredentialsError):
            return no_credential(redact(f"The credential cannot be loaded: {error}", self._secrets()), _WHAT_TO_SET)
        if heard.answered and isinstance(error, ValueError):
            return broken_off("the stream holds a piece that is not JSON", reply=reply)
        return from_connection(error, reply=reply, secrets=self._secrets())

    def _too_late(self) -> str:
        return f"no complete reply within {self.deadline_seconds:g} s"

    def _listed(self, models: anthropic.resources.Models) -> ModelInfo:
        """Look for the model in the list, after a 404: some gateways look up no single models.

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
        talking = [name for name in known if not _SILENT.search(name)] or known
        near = difflib.get_close_matches(self.model_id, talking, n=1, cutoff=_NEAR)
        offered = ", ".join(talking[:_MOST_NAMED]) + (", …" if len(talking) > _MOST_NAMED else "")
        raise ModelRejected(
            f"The provider does not know the model {self.model_id!r}.",
            code="model_unknown",
            hint=f"The nearest it offers: --model {near[0]}" if near else f"It offers: {offered}.",
            model=self.model_id,
            status=404,
            stops_run=True,
        ) from None

    def _has_credential(self) -> bool:
        client = self._client
        headers = {name.lower() for name, value in client.default_headers.items() if isinstance(value, str) and value}
        return bool(client.api_key or client.auth_token or client.credentials or headers & _CREDENTIAL_HEADERS)

    def _secrets(self) -> tuple[str | None, ...]:
        values = (v for k, v in self._client.default_headers.items() if k.lower() in _CREDENTIAL_HEADERS)
        return (self._client.api_key, self._client.auth_token, *(v for v in values if isinstance(v, str)))


def _info(model_id: str, found: anthropic.types.ModelInfo) -> ModelInfo:
    """Return what the look-up says, with the sentences to show.

    Raises:
        ModelRejected: The model is retired.
    """
    lifecycle = getattr(found, "lifecycle", None)
    retires = getattr(found, "retires_at", None)
    if lifecycle == "retired":
        when = f" on {retires:%Y-%m-%d}" if retires else ""
        raise ModelRejected(
            f"The model {model_id!r} was retired{when}.",
            code="model_retired",
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


def _made(model_id: str, base_url: str | None, deadline_seconds: float) -> AnthropicModel:
    return AnthropicModel(model_id, base_url=base_url, deadline_seconds=deadline_seconds)
