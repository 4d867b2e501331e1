"""Seam 2: who is asked. Request, Reply and Model; no retry, pricing or logging below this line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from pipeline.errors import ConfigError, ModelError
from pipeline.llm.answers import fitting
from pipeline.providers import ANTHROPIC
from pipeline.records.kinds import CUT_OFF, REFUSAL
from pipeline.records.values import canonical, digest

#: Stop reasons after which a reply is complete. A refusal is complete too, as a refusal.
COMPLETE = frozenset({"end_turn", "stop_sequence", "tool_use"})
#: Tokens that the provider adds to the text of a request at most: to any, to each block of it, and for a schema.
ADDED_TOKENS, BLOCK_TOKENS, SCHEMA_TOKENS = 256, 16, 1_024


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the system prompt; `cache` marks the end of a shared prefix."""

    text: str
    cache: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One turn: role "user" or "assistant"."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked."""

    model: str
    messages: Sequence[Message]
    system: Sequence[Segment] = ()
    #: JSON schema of the wanted answer (structured output); None: free text.
    schema: Mapping[str, Any] | None = None
    #: Name and version of a schema that is generated: they are in the hash in its place. "": the schema itself is.
    schema_id: str = ""
    schema_version: int = 1
    max_tokens: int = 16_000
    #: low … max; None: the model's default.
    effort: str | None = None
    #: Kind of call ("outline", "lesson", "critic", …); shown in costs. Not seen by the model.
    label: str = "call"
    #: The same question as structured data, for models without language (offline author). Never sent.
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is easily written in the place of turns and segments.

        Raises:
            ConfigError: Says how to write it.
        """
        if not isinstance(self.model, str):
            raise _no_request(f"its model is a {type(self.model).__name__}, not a name")
        if not _are(self.messages, Message):
            raise _no_request("its messages are no list of Message")
        if not _are(self.system, Segment):
            raise _no_request("its system prompt is no list of Segment")
        if odd := [turn.role for turn in self.messages if turn.role not in _ROLES]:
            raise _no_request(f"the role of a message is {odd[0]!r}, not one of {', '.join(_ROLES)}")

    def hash(self) -> str:
        """Return the hash of what the model sees: two requests with the same are the same work.

        Not in it: cache marks, max_tokens, label, data, and the text of a schema that has an id.
        """
        if self.schema is None or self.schema_id:
            return self.former_hash()
        return digest(canonical({**self._seen(), "schema": ["", self.schema_version, self.schema]}))

    def former_hash(self) -> str:
        """Return the hash that earlier versions recorded: a schema without an id was not in it."""
        schema = None if self.schema is None else [self.schema_id, self.schema_version]
        return digest(canonical({**self._seen(), "schema": schema}))

    def _seen(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "system": "\n".join(part.text for part in self.system),
            "messages": [[turn.role, turn.text] for turn in self.messages],
            "effort": self.effort,
        }

    def fitting(self, text: str) -> str | None:
        """Return an answer, without a fence or wrapper around what the schema describes; None where it is not in it."""
        return text if self.schema is None else fitting(text, self.schema)

    def to_json(self) -> dict[str, Any]:
        """Return what is stored with the call: all that is sent, and the label."""
        return {
            "model": self.model,
            "label": self.label,
            "system": [{"text": part.text, "cache": part.cache} for part in self.system],
            "messages": [{"role": turn.role, "text": turn.text} for turn in self.messages],
            "schema": self.schema,
            "schema_id": self.schema_id,
            "schema_version": self.schema_version,
            "max_tokens": self.max_tokens,
            "effort": self.effort,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Request:
        return cls(
            data["model"],
            [Message(turn["role"], turn["text"]) for turn in data["messages"]],
            [Segment(part["text"], part["cache"]) for part in data["system"]],
            schema=data["schema"],
            schema_id=data["schema_id"],
            schema_version=data["schema_version"],
            max_tokens=data["max_tokens"],
            effort=data["effort"],
            label=data["label"],
        )

    def size(self) -> int:
        """Return the UTF-8 bytes of all text that is sent; a token of it is at least one byte."""
        parts = [part.text for part in self.system] + [turn.text for turn in self.messages]
        return sum(map(_bytes, parts)) + self._schema_bytes()

    def added(self) -> int:
        """Return how many tokens the provider adds at most: roles and framing, and how an answer's schema is kept."""
        blocks = len(self.messages) + sum(bool(part.text) for part in self.system)
        return ADDED_TOKENS + BLOCK_TOKENS * blocks + (SCHEMA_TOKENS if self.schema is not None else 0)

    def marked(self) -> int:
        """Return how many of its bytes stand before the last cache mark: only they can be written to a cache."""
        marks = [index for index, part in enumerate(self.system) if part.cache and part.text]
        if not marks:
            return 0
        # The instructions for the schema are rendered in front of the system prompt.
        return sum(_bytes(part.text) for part in self.system[: marks[-1] + 1]) + self._schema_bytes()

    def _schema_bytes(self) -> int:
        return len(canonical(self.schema)) if self.schema is not None else 0


_ROLES = ("user", "assistant")


def _are(parts: object, kind: type) -> bool:
    return isinstance(parts, Sequence) and all(isinstance(part, kind) for part in parts)


def _no_request(why: str) -> ConfigError:
    return ConfigError(
        f"A Request cannot be made: {why}.", code="invalid_request",
        hint='Write Request(model, [Message("user", text)], [Segment(system_prompt)]).',
    )  # fmt: skip


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, as received."""

    text: str
    #: None only where the stream ended early.
    stop_reason: str | None
    #: The provider's usage object, raw: unknown keys survive.
    usage: Mapping[str, Any] = field(default_factory=dict)
    #: The model as the provider names it.
    model: str = ""
    request_id: str | None = None
    #: Details of a refusal, tool calls and the like, raw.
    extra: Mapping[str, Any] = field(default_factory=dict)
    #: What the provider says of its rate limits: "requests", "input_tokens" and "output_tokens" a minute, and what was
    #: left of each when the answer began ("requests_left", …). Not recorded.
    limits: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def complete(self) -> bool:
        """Return whether the model finished its answer."""
        return self.stop_reason in COMPLETE

    @property
    def refused(self) -> bool:
        return self.stop_reason == REFUSAL

    @property
    def truncated(self) -> bool:
        return self.stop_reason in CUT_OFF

    def to_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "stop_reason": self.stop_reason,
            "usage": dict(self.usage) if isinstance(self.usage, Mapping) else {},
            "model": self.model,
            "request_id": self.request_id,
            "extra": dict(self.extra) if isinstance(self.extra, Mapping) else {},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reply:
        return cls(
            text=data["text"],
            stop_reason=data["stop_reason"],
            usage=data.get("usage") or {},
            model=data.get("model", ""),
            request_id=data.get("request_id"),
            extra=data.get("extra") or {},
        )


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a free look-up says of a model."""

    id: str
    #: False for models that cost nothing (offline, scripted): no ledger price is needed.
    paid: bool
    #: "offline" or "model": the kind of author; never mixed.
    author: str = "model"
    #: Who bills, as the ledger names it: one of providers.PROVIDERS, or a host of the published prices.
    provider: str = ANTHROPIC
    max_output_tokens: int | None = None
    max_input_tokens: int | None = None
    deprecated_at: datetime | None = None
    retires_at: datetime | None = None
    #: Sentences to show before the first call (deprecated, retired, unknown).
    warnings: Sequence[str] = ()

    def identity(self) -> dict[str, str]:
        """Return what of it decides the work of a run, as recorded."""
        return {"model": self.id, "author": self.author, "provider": self.provider}


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the provider sees it."""

    id: str
    #: False while the provider works on it (or is cancelling it); results come only after that.
    ended: bool
    #: Requests in it.
    count: int
    created_at: datetime
    #: When the provider gives up what it has not answered by then.
    expires_at: datetime
    #: succeeded, errored, canceled, expired, processing: how many; final once it has ended.
    counts: Mapping[str, int] = field(default_factory=dict)
    #: The provider's own time when it said so; None: it does not tell.
    seen_at: datetime | None = None
    #: Its results are no longer kept.
    archived: bool = False


@dataclass(frozen=True, slots=True)
class BatchList:
    """The batches of an account, newest first, and the provider's own time when it listed them."""

    batches: Sequence[Batch]
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """How one request of a batch ended."""

    custom_id: str
    #: The reply; None where there is none.
    reply: Reply | None = None
    #: Why not: a ModelRejected (the request is wrong) or ModelUnavailable (it may be sent again); not billed.
    error: ModelError | None = None


class Batches(Protocol):
    """A provider's way to take many requests at once, at a lower price, within a day."""

    #: The provider's limits of one batch: requests, and bytes of all that is sent.
    most_requests: int
    most_bytes: int

    def validate(self, request: Request) -> None:
        """Have the provider look at one request, free: a wrong one is else told only when all have ended.

        Raises:
            ModelRejected: It would be refused.
        """

    def submit(self, requests: Sequence[tuple[str, Request]]) -> Batch:
        """Hand in requests, each under a custom id (at most 64 of A–Z, a–z, 0–9, _ and -), once.

        Raises:
            ModelUnavailable: Not taken (`billed` "no"), or perhaps taken (`billed` "unknown").
            ModelRejected, SpendLimit: As ModelUnavailable, for what a repetition does not mend.
        """

    def time(self) -> datetime | None:
        """Return the provider's own time, free; None: it does not tell.

        Raises:
            ModelError: It cannot be asked.
        """

    def look(self, batch_id: str) -> Batch:
        """Return the batch as it is now.

        Raises:
            ModelRejected: status 404: this account has no such batch, or it does not show yet; data["seen_at"] is
                the provider's own time then.
            ModelUnavailable: The provider cannot be reached.
        """

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        """Yield the results of a batch that has ended, in any order.

        Raises:
            ModelRejected, ModelUnavailable: As `look`; also in the middle.
        """

    def since(self, moment: datetime | None) -> BatchList:
        """Return the account's batches created at or after a moment; None: all whose results may still be kept."""

    def cancel(self, batch_id: str) -> Batch:
        """Ask that what is not answered yet be left; results of the rest come as usual."""


class Model(Protocol):
    """One provider's model: one try at a time. One that takes batches has an attribute `batches` (Batches)."""

    def check(self) -> ModelInfo:
        """Look the model up: credential, lifecycle, limits. Free.

        Raises:
            CredentialMissing: No credential is set.
            ModelRejected: The provider does not know the model, or it is retired.
            ModelUnavailable: The provider cannot be reached.
        """

    def complete(self, request: Request) -> Reply:
        """Make one try, within a total deadline; the reply always carries its usage.

        A truncation, a refusal and an early end of the stream are replies (stop_reason says so).

        Raises:
            ModelUnavailable: 408, 409, 429, 5xx, 529, connection, deadline; `billed` and
                `reply` (partial) say what may have been spent.
            ModelRejected: 400, 401, 403, 404, 413, 422, …; data["stops_run"]: no other call can succeed either.
            SpendLimit: Billing or spending limits of the account.
        """

    def close(self) -> None:
        """Free connections; more calls are errors."""
