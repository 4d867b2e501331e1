"""Claude through the official SDK: one streamed try at a time, its usage always kept.

The SDK's own retries are off: each would be a second bill that is not recorded. Structured output is asked
for but not parsed here, because a parser that raises loses the usage that was paid for.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from pipeline.errors import CredentialMissing, ModelRejected
from pipeline.llm.base import Message, ModelInfo, Request
from pipeline.llm.batches import AnthropicBatches
from pipeline.llm.clients import can_log_in, is_log_in, is_regional, make_client, sdk_errors, secrets_of
from pipeline.llm.faults import from_connection, from_status, no_reply, redact
from pipeline.llm.look_ups import CHECK_SECONDS, bound
from pipeline.llm.stream import StreamedModel, listed, unknown, unsure
from pipeline.llm.wire import Heard, parameters
from pipeline.providers import ANTHROPIC, Provider, provider_of

if TYPE_CHECKING:
    import anthropic

#: The form of an event stream that Amazon has of its own.
_AMAZON = "amazon.eventstream"


class AnthropicModel(StreamedModel):
    """A Claude model, at Anthropic or at another provider. Any number of threads may call it at once."""

    def __init__(
        self,
        model_id: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        deadline_seconds: float = 900.0,
        provider: str = ANTHROPIC,
    ) -> None:
        """Make the client; nothing is sent.

        Args:
            api_key: Of Anthropic; None: whatever credential the SDK finds (variables, profile, workload identity).
            base_url: None: ANTHROPIC_BASE_URL (or the provider's variable), or the provider's own address.
            deadline_seconds: Longest time a try may take, from sending to the last byte.
            provider: One whose record names a client of the SDK.

        Raises:
            CredentialMissing: A profile or identity was named but cannot be loaded, or the account is not named.
            PackageMissing: The provider's extra is not installed.
        """
        import anthropic

        # The SDK warns of deprecated models through `warnings`; check() says it once, in words.
        warnings.filterwarnings("ignore", message=r"The model '.*' is deprecated", category=DeprecationWarning)
        self.model_id = model_id
        self.provider = provider_of(provider)
        self.deadline_seconds = deadline_seconds
        self._made_from = {"base_url": base_url, "deadline_seconds": deadline_seconds, "provider": provider}
        self._own_key = api_key is not None
        # A redirect would carry the key to another host.
        http = anthropic.DefaultHttpxClient(follow_redirects=False, event_hooks={"response": [bound]})
        # The SDK does not close a client of ours.
        weakref.finalize(self, http.close)
        self._client = make_client(self.provider, http, api_key=api_key, base_url=base_url)
        asks = AnthropicBatches(self._client, model_id, self._secrets, self.provider)
        #: None where the provider takes none.
        self.batches = asks if self.provider.batches else None
        #: Returns the input tokens of a request, free (`AnthropicBatches.count`); None where the provider counts none.
        self.count_tokens: Callable[[Request], int] | None = asks.count if self.provider.counts else None

    def _looked_up(self) -> ModelInfo:
        if not self._can_log_in():
            other = "" if "claude" in self.model_id else " --provider openai asks an OpenAI-compatible endpoint."
            raise CredentialMissing(f"No credential for {self.model_id} is set.", hint=self.provider.login + other)
        if self.provider.lists:
            return self._retrieved()
        if self.count_tokens is None:
            return unsure(self.model_id, self.provider.name, f"{self.provider.title} has no free look-up")
        try:
            self.count_tokens(Request("", [Message("user", "?")]))
        except ModelRejected as error:
            if error.data.get("status") != 404:
                raise
            called = self.provider.named(self.model_id)
            raise unknown(called, f"{self.provider.title} lists the names of the models of your account.") from None
        return ModelInfo(self.model_id, paid=True, provider=self.provider.name)

    def close(self) -> None:
        """Free connections."""
        self._client.close()

    def _retrieved(self) -> ModelInfo:
        import anthropic

        models = self._client.with_options(timeout=CHECK_SECONDS).models
        try:
            raw = models.with_raw_response.retrieve(self.model_id)
            found = raw.parse()
            if isinstance(found, str):
                # The SDK hands on what is no JSON as text.
                raise no_reply(raw.http_response, self._secrets(), self.provider)
            return _info(self.model_id, found, self.provider)
        except anthropic.NotFoundError:
            return self._listed(models)
        except anthropic.APIStatusError as error:
            raise from_status(error, reply=None, secrets=self._secrets(), provider=self.provider) from None
        except sdk_errors() as error:
            if is_log_in(error):
                text = redact(f"The credential cannot be loaded: {error}", self._secrets())
                raise CredentialMissing(text, hint=self.provider.login) from None
            raise from_connection(error, reply=None, secrets=self._secrets(), provider=self.provider) from None

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
        return listed(self.model_id, known, self.provider.name)

    def _can_log_in(self) -> bool:
        return can_log_in(self.provider, self._client)

    def _secrets(self) -> Sequence[str | None]:
        return secrets_of(self._client)

    def _heard(self) -> Heard:
        return Heard(regional=is_regional(self.provider, self._client))

    def _parameters(self, request: Request) -> dict[str, Any]:
        import anthropic

        return parameters(request, self.model_id, anthropic.transform_schema, self.provider.named)

    def _open(self, sent: Mapping[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        return cast("AbstractContextManager[Any]", self._client.messages.create(stream=True, timeout=timeout, **sent))

    def _errors(self) -> tuple[type[Exception], ...]:
        return sdk_errors()

    def _told(self, error: Exception) -> Any:
        import anthropic

        return error if isinstance(error, anthropic.APIStatusError) else None

    def _receive(self, stream: Any, heard: Heard) -> None:
        if _AMAZON not in stream.response.headers.get("content-type", ""):
            super()._receive(stream, heard)
            return
        for event in stream:
            # What is no object is nothing that could be heard, as in other streams.
            if hasattr(event, "to_dict"):
                heard.take(event.to_dict(mode="json", exclude_unset=True, warnings=False))

    def _refuse_error(self, document: Mapping[str, Any], response: Any) -> None:
        import anthropic

        if document.get("type") == "error":
            raise anthropic.APIStatusError("error", response=response, body=document)

    def _is_reply(self, document: Mapping[str, Any]) -> bool:
        return document.get("type") == "message"


def _info(model_id: str, found: anthropic.types.ModelInfo, provider: Provider) -> ModelInfo:
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
        provider=provider.name,
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
