"""Message Batches through the official SDK: many requests at half the price. No retry, pricing or polling here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pipeline.errors import ModelError, ModelRejected, ModelUnavailable
from pipeline.llm.base import Batch, BatchResult, Reply, Request
from pipeline.llm.faults import from_connection, from_status, redact
from pipeline.llm.sending import parameters

if TYPE_CHECKING:
    import anthropic

#: Longest wait for the answer to one look, and for handing in a batch (up to 256 MB), in seconds.
_LOOK_SECONDS = 60.0
_SUBMIT_SECONDS = 600.0
_PAGE = 100


class AnthropicBatches:
    """The batches of one account. Any number of threads may use it at once."""

    most_requests = 100_000
    #: The provider takes 256 MB; what JSON puts around the text is not in `Request.size`.
    most_bytes = 200_000_000

    def __init__(self, client: anthropic.Anthropic, model_id: str, secrets: Callable[[], Sequence[str | None]]) -> None:
        self._client = client
        self._model_id = model_id
        self._secrets = secrets

    def validate(self, request: Request) -> None:
        """See `Batches.validate`; the provider's token count refuses what a call would refuse."""
        self.count(request)

    def count(self, request: Request) -> int:
        """Input tokens of a request; free."""
        sent = self._parameters(request)
        sent.pop("max_tokens")
        return int(self._asked(lambda client: client.messages.count_tokens(**sent)).input_tokens)

    def submit(self, requests: Sequence[tuple[str, Request]]) -> Batch:
        """See `Batches.submit`."""
        rows: Any = [{"custom_id": name, "params": self._parameters(request)} for name, request in requests]
        return _batch(self._asked(lambda client: client.messages.batches.create(requests=rows), _SUBMIT_SECONDS))

    def look(self, batch_id: str) -> Batch:
        """See `Batches.look`."""
        return _batch(self._asked(lambda client: client.messages.batches.retrieve(batch_id)))

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        """See `Batches.results`."""
        rows = iter(self._asked(lambda client: client.messages.batches.results(batch_id)))
        while (row := self._asked(lambda _: next(rows, None))) is not None:
            yield self._result(row)

    def since(self, moment: datetime) -> Iterator[Batch]:
        """See `Batches.since`."""
        pages = iter(self._asked(lambda client: client.messages.batches.list(limit=_PAGE)))
        while (row := self._asked(lambda _: next(pages, None))) is not None:
            batch = _batch(row)
            if batch.created_at < moment:
                return
            yield batch

    def cancel(self, batch_id: str) -> Batch:
        """See `Batches.cancel`."""
        return _batch(self._asked(lambda client: client.messages.batches.cancel(batch_id)))

    def _parameters(self, request: Request) -> dict[str, Any]:
        import anthropic

        sent = parameters(request, self._model_id, anthropic.transform_schema)
        for block in sent.get("system", ()):
            if "cache_control" in block:
                # A batch is answered over an hour or more: what lives five minutes would be written again and again.
                block["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
        return sent

    def _asked(self, ask: Callable[[anthropic.Anthropic], Any], seconds: float = _LOOK_SECONDS) -> Any:
        """What the provider answers; its errors as ours."""
        import anthropic
        import httpx2

        try:
            return ask(self._client.with_options(timeout=seconds))
        except anthropic.APIStatusError as error:
            raise from_status(error, reply=None, secrets=self._secrets()) from None
        except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError, ValueError, OSError) as error:
            raise from_connection(error, reply=None, secrets=self._secrets()) from None

    def _result(self, row: Any) -> BatchResult:
        result = row.result
        if result.type == "succeeded":
            return BatchResult(row.custom_id, reply=_reply(result.message))
        return BatchResult(row.custom_id, error=self._error(result))

    def _error(self, result: Any) -> ModelError:
        if result.type != "errored":
            return ModelUnavailable(f"The batch ended before this request was answered ({result.type}).", billed="no")
        told = getattr(result.error, "error", result.error)
        kind = str(getattr(told, "type", ""))
        text = redact(str(getattr(told, "message", kind)), self._secrets())
        request = getattr(result.error, "request_id", None)
        if kind in ("api_error", "overloaded_error", "rate_limit_error", "timeout_error"):
            return ModelUnavailable(f"In the batch: {text}", billed="no", type=kind, request_id=request)
        return ModelRejected(f"In the batch: {text}", billed="no", type=kind, request_id=request)


def _batch(raw: Any) -> Batch:
    counts = {name: int(count) for name, count in raw.request_counts.to_dict().items() if isinstance(count, int)}
    return Batch(raw.id, raw.processing_status == "ended", sum(counts.values()), raw.created_at, raw.expires_at, counts)


def _reply(message: Any) -> Reply:
    """A whole message as a reply: its text, its raw usage, and what else it says."""
    raw: Mapping[str, Any] = message.to_dict(mode="json", exclude_unset=True, warnings=False)
    text = "".join(str(block.get("text") or "") for block in raw.get("content") or ())
    kept = {key: raw[key] for key in ("stop_sequence", "stop_details", "container") if raw.get(key) is not None}
    return Reply(text, raw.get("stop_reason"), raw.get("usage") or {}, raw.get("model") or "", None, kept)
