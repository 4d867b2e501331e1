"""Any OpenAI-compatible endpoint, local servers too: the second wire format, through OpenAI's own SDK.

What it answers is put into the words of the first: stop reasons, usage in disjoint buckets beside the raw figures.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

from pipeline.errors import CredentialMissing
from pipeline.extras import is_installed, not_installed
from pipeline.llm.base import ModelInfo, Request
from pipeline.llm.clients import sdk_errors
from pipeline.llm.faults import Told, from_connection, from_status, redact
from pipeline.llm.look_ups import CHECK_SECONDS, bound
from pipeline.llm.stream import StreamedModel, listed
from pipeline.llm.wire import Heard, Transform, merged, sendable, sendable_schema
from pipeline.providers import OPENAI, provider_of
from pipeline.records.kinds import REFUSAL

#: Why an answer ended, in the words of the Messages API.
_REASONS = {
    "stop": "end_turn", "length": "max_tokens", "content_filter": REFUSAL, "tool_calls": "tool_use",
    "function_call": "tool_use",
}  # fmt: skip
#: Hosts that take the cap under its newer name only; other servers may know only the older one.
_NEWER_CAP = (".openai.com", ".azure.com")
#: The highest effort of this wire format.
_EFFORTS = {"max": "xhigh"}
#: Keywords that strict schemas refuse.
_NOT_STRICT = frozenset({"oneOf", "allOf", "not"})
#: What stands in the place of a key at a server that wants none.
_NO_KEY = "none"


class OpenAIModel(StreamedModel):
    """A model behind an OpenAI-compatible endpoint. Any number of threads may call it at once."""

    def __init__(
        self,
        model_id: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        deadline_seconds: float = 900.0,
        provider: str = OPENAI,
    ) -> None:
        """Make the client; nothing is sent.

        Args:
            api_key: None: OPENAI_API_KEY (or the provider's variable); a server named by base_url may want none.
            base_url: None: OPENAI_BASE_URL (or the provider's variable), or OpenAI's own address.
            deadline_seconds: Longest time a try may take, from sending to the last byte.
            provider: One whose record names no client of Anthropic's SDK.

        Raises:
            CredentialMissing: OpenAI is asked without a key.
            PackageMissing: The extra `openai` is not installed.
        """
        if not is_installed("openai"):
            raise not_installed("openai", f"--provider {provider}")
        import openai

        self.provider = provider_of(provider)
        key = api_key or os.environ.get(self.provider.credential)
        address = base_url or os.environ.get(self.provider.base_variable)
        if not key and not address:
            raise CredentialMissing(f"No credential for {model_id} is set.", hint=self.provider.login)
        self.model_id = model_id
        self.deadline_seconds = deadline_seconds
        self._made_from = {"base_url": base_url, "deadline_seconds": deadline_seconds, "provider": provider}
        self._own_key = api_key is not None
        #: Where it is asked; "": at OpenAI itself.
        self.address = address or ""
        # A redirect would carry the key to another host.
        http = openai.DefaultHttpxClient(follow_redirects=False, event_hooks={"response": [bound]})
        weakref.finalize(self, http.close)
        try:
            self._client = openai.OpenAI(
                api_key=key or _NO_KEY, base_url=address or None, max_retries=0, http_client=http
            )
        except (openai.OpenAIError, ValueError) as error:
            raise CredentialMissing(redact(str(error), [key]), hint=self.provider.login) from None

    def _looked_up(self) -> ModelInfo:
        """Look for the model in the endpoint's list."""
        import openai

        client = self._client.with_options(timeout=CHECK_SECONDS)
        try:
            known = [str(found.id) for found in client.models.list().data or ()]
        except openai.APIStatusError as error:
            if error.status_code not in (404, 405, 501):
                told = self._told(error)
                raise from_status(told, reply=None, secrets=self._secrets(), provider=self.provider) from None
            known = []
        except (AttributeError, TypeError):
            # The SDK takes for granted that the list is one.
            known = []
        except self._errors() as error:
            raise from_connection(error, reply=None, secrets=self._secrets(), provider=self.provider) from None
        return listed(self.model_id, known, self.provider.name)

    def close(self) -> None:
        """Free connections."""
        self._client.close()

    def _heard(self) -> Heard:
        return ChatHeard()

    def _parameters(self, request: Request) -> dict[str, Any]:
        import anthropic

        host = self._client.base_url.host
        newer = f".{host}".endswith(_NEWER_CAP)
        return chat_parameters(request, self.model_id, anthropic.transform_schema, newer_cap=newer)

    def _open(self, sent: Mapping[str, Any], timeout: Any) -> AbstractContextManager[Any]:
        made: Any = self._client.chat.completions.create(stream=True, timeout=timeout, **sent)
        return cast("AbstractContextManager[Any]", made)

    def _refuse_error(self, document: Mapping[str, Any], response: Any) -> None:
        import openai

        if error := document.get("error"):
            body = error if isinstance(error, Mapping) else {"message": str(error)}
            raise openai.APIStatusError("error", response=response, body=body)

    def _is_reply(self, document: Mapping[str, Any]) -> bool:
        return isinstance(document.get("choices"), list)

    def _errors(self) -> tuple[type[Exception], ...]:
        import openai

        return (openai.OpenAIError, *sdk_errors())

    def _told(self, error: Exception) -> Any:
        import openai

        if not isinstance(error, openai.APIStatusError):
            return None
        said = error.body.get("message") if isinstance(error.body, Mapping) else None
        return Told(
            error.status_code, said if isinstance(said, str) else "", _text(error.type), _text(error.code),
            error.request_id, error.response, error.body,
        )  # fmt: skip

    def _secrets(self) -> Sequence[str | None]:
        return [key] if (key := self._client.api_key) != _NO_KEY else []


class ChatHeard(Heard):
    """What a stream of chat completions has said so far."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in one chunk; figures that come with several are cumulative."""
        self._model = event.get("model") or self._model
        self._tally(event.get("usage"))
        for choice in _items(event.get("choices"))[:1]:
            self._choose(choice, choice.get("delta"))

    def take_whole(self, message: Mapping[str, Any]) -> None:
        """Take in a whole completion, as a server that does not stream gives it."""
        self._model = message.get("model") or ""
        for choice in _items(message.get("choices"))[:1]:
            self._choose(choice, choice.get("message"))
        self._tally(message.get("usage"))

    def _choose(self, choice: Mapping[str, Any], said: Any) -> None:
        said = said if isinstance(said, Mapping) else {}
        content = said.get("content")
        # Some servers give a list of parts, what the model thought among them.
        parts = [content] if isinstance(content, str) else [part.get("text") for part in _items(content)]
        if text := "".join(filter(None, map(_text, parts))):
            self._text.append(text)
        if refused := _text(said.get("refusal")):
            self._text.append(refused)
            self._extra["refusal"] = self._extra.get("refusal", "") + refused
        if reason := choice.get("finish_reason"):
            self._stop_reason = _REASONS.get(str(reason), str(reason))
        if self._stop_reason == "end_turn" and "refusal" in self._extra:
            self._stop_reason = REFUSAL

    def _tally(self, usage: Any) -> None:
        if isinstance(usage, Mapping) and usage:
            self._usage = merged(self._usage, counted(usage))
            self._output_told |= usage.get("completion_tokens") is not None


def counted(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return a usage object with its figures as the Messages API has them: uncached input, cache, output.

    The raw figures stay beside them. What is cached is part of `prompt_tokens`; reasoning is part of
    `completion_tokens`, unless the total says that it comes on top.
    """
    found = dict(usage)
    prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
    of_prompt, of_output = (_mapping(usage.get(f"{kind}_tokens_details")) for kind in ("prompt", "completion"))
    read, written = _count(of_prompt.get("cached_tokens")), _count(of_prompt.get("cache_write_tokens"))
    reasoning, total = _count(of_output.get("reasoning_tokens")), usage.get("total_tokens")
    # More in the cache than in the prompt: it comes on top.
    cached = read + written
    if isinstance(prompt, int):
        found |= {"input_tokens": prompt - cached if cached <= prompt else prompt, "cache_read_input_tokens": read}
        found |= {"cache_creation_input_tokens": written} if written else {}
    if isinstance(output, int):
        # What the total holds beyond both, or reasoning that the output cannot hold, was generated too.
        beyond = 0
        if isinstance(prompt, int) and isinstance(total, int):
            beyond = total - prompt - output - (cached if cached > prompt else 0)
        found["output_tokens"] = output + max(beyond, reasoning if reasoning > output else 0, 0)
    if reasoning:
        found["output_tokens_details"] = {"thinking_tokens": reasoning}
    return found


def chat_parameters(request: Request, model_id: str, transform: Transform, *, newer_cap: bool) -> dict[str, Any]:
    """Return the request as arguments of `chat.completions.create`.

    Args:
        transform: Makes a JSON schema one of closed objects with the keywords that providers keep to.
        newer_cap: The host takes the cap as max_completion_tokens.

    Raises:
        ModelRejected: The schema cannot be expressed.
    """
    system = "\n\n".join(part.text for part in request.system if part.text)
    turns = [{"role": "system", "content": sendable(system)}] if system else []
    turns += [{"role": turn.role, "content": sendable(turn.text)} for turn in request.messages]
    sent: dict[str, Any] = {
        "model": request.model or model_id,
        "messages": turns,
        "max_completion_tokens" if newer_cap else "max_tokens": request.max_tokens,
        "stream_options": {"include_usage": True},
    }
    if request.effort is not None:
        sent["reasoning_effort"] = _EFFORTS.get(request.effort, request.effort)
    if request.schema is not None:
        schema = sendable_schema(request, transform)
        form = {"name": _form_name(request), "schema": schema, "strict": is_strict(schema)}
        sent["response_format"] = {"type": "json_schema", "json_schema": form}
    return sent


def is_strict(schema: Any) -> bool:
    """Return whether a schema can be kept to the letter: closed objects, every member required, no odd keywords."""
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if _NOT_STRICT & schema.keys():
        return False
    members = schema.get("properties")
    if isinstance(members, Mapping) or schema.get("type") == "object":
        required = set(schema.get("required") or ())
        if schema.get("additionalProperties") is not False or required != set(members or ()):
            return False
    parts = [*_mapping(members).values(), *_mapping(schema.get("$defs")).values(), schema.get("items")]
    return all(map(is_strict, [*parts, *(schema.get("anyOf") or ())]))


def _form_name(request: Request) -> str:
    """Return a name of the schema as the wire format takes it: letters, digits, _ and -, at most 64."""
    name = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in request.schema_id or request.label)
    return name[:64] or "answer"


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
