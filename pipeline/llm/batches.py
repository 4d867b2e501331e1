"""Message Batches through the official SDK: many requests at half the price. No retry, pricing or polling here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pipeline.errors import CredentialMissing, ModelError, ModelRejected, ModelUnavailable
from pipeline.llm.base import Batch, BatchList, BatchResult, Reply, Request
from pipeline.llm.clients import is_log_in, sdk_errors
from pipeline.llm.faults import from_connection, from_status, http_date, redact
from pipeline.llm.look_ups import within
from pipeline.llm.wire import Heard, parameters
from pipeline.providers import Provider

if TYPE_CHECKING:
    import anthropic

#: Longest wait for the answer to one look, and for handing in a batch (up to 256 MB), in seconds.
_LOOK_SECONDS = 60.0
_SUBMIT_SECONDS = 600.0
_PAGE = 100
#: Batches older than this have no results any more (29 days); a day more for their ends.
_KEPT = timedelta(days=30)
#: Ends of a request that are documented as not billed, beside errors.
_UNBILLED_ENDS = frozenset({"canceled", "expired"})


class AnthropicBatches:
    """The batches of one account. Any number of threads may use it at once."""

    most_requests = 100_000
    #: The provider takes 256 MB; what JSON puts around the text is not in `Request.size`.
    most_bytes = 200_000_000

    def __init__(
        self, client: Any, model_id: str, secrets: Callable[[], Sequence[str | None]], provider: Provider
    ) -> None:
        self._client = client
        self._provider = provider
        self._model_id = model_id
        self._secrets = secrets

    def validate(self, request: Request) -> None:
        """See `Batches.validate`; the provider's token count refuses what a call would refuse."""
        self.count(request)

    def count(self, request: Request) -> int:
        """Return the input tokens of a request; free.

        Raises:
            ModelError: As `_asked`; ModelUnavailable where the answer is no count (a gateway's own document, say).
        """
        sent = self._parameters(request)
        sent.pop("max_tokens")
        found = getattr(self._asked(lambda client: client.messages.count_tokens(**sent)), "input_tokens", None)
        if not isinstance(found, int) or found < 1:
            raise self._no_document("with no count of tokens")
        return found

    def submit(self, requests: Sequence[tuple[str, Request]]) -> Batch:
        rows: Any = [{"custom_id": name, "params": self._parameters(request)} for name, request in requests]
        return self._batch(lambda batches: batches.create(requests=rows), _SUBMIT_SECONDS)

    def time(self) -> datetime | None:
        return _time_of(self._asked(lambda client: client.messages.batches.with_raw_response.list(limit=1)))

    def look(self, batch_id: str) -> Batch:
        return self._batch(lambda batches: batches.retrieve(batch_id))

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        rows = iter(self._asked(lambda client: client.messages.batches.results(batch_id)))
        # Many and long, so no time is set for them together.
        while (row := self._translated(lambda: next(rows, None))) is not None:
            yield self._result(row)

    def since(self, moment: datetime | None) -> BatchList:
        raw = self._asked(lambda client: client.messages.batches.with_raw_response.list(limit=_PAGE))
        seen_at = _time_of(raw)
        first = moment or (seen_at and seen_at - _KEPT)
        pages = iter(self._asked(lambda _: raw.parse()))
        found: list[Batch] = []
        while (row := self._asked(lambda _: next(pages, None))) is not None:
            batch = _read(row, seen_at)
            if batch is not None and first is not None and batch.created_at < first:
                break
            found += [batch] if batch is not None else []
        return BatchList(found, seen_at)

    def cancel(self, batch_id: str) -> Batch:
        return self._batch(lambda batches: batches.cancel(batch_id))

    def _batch(self, ask: Callable[[Any], Any], seconds: float = _LOOK_SECONDS) -> Batch:
        """Return the batch that an answer describes.

        Raises:
            ModelError: As `_asked`; ModelUnavailable where the answer describes none (a gateway's page, say).
        """
        raw = self._asked(lambda client: ask(client.messages.batches.with_raw_response), seconds)
        batch = _read(self._asked(lambda _: raw.parse()), _time_of(raw))
        if batch is None:
            kind = redact(str(raw.headers.get("content-type") or "no content type"), self._secrets())
            text = f"The answer to a batch request describes no batch ({kind})."
            raise ModelUnavailable(text, code="no_model_reply", billed="unknown")
        return batch

    def _parameters(self, request: Request) -> dict[str, Any]:
        import anthropic

        sent = parameters(request, self._model_id, anthropic.transform_schema, self._provider.named)
        for block in sent.get("system", ()):
            if "cache_control" in block:
                # A batch is answered over an hour or more: what lives five minutes would be written again and again.
                block["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
        return sent

    def _asked(self, ask: Callable[[anthropic.Anthropic], Any], seconds: float = _LOOK_SECONDS) -> Any:
        """Return what the provider answers within so many seconds in all; raise its errors as ours."""
        return self._translated(lambda: within(seconds, lambda: ask(self._client.with_options(timeout=seconds))))

    def _translated(self, ask: Callable[[], Any]) -> Any:
        import anthropic

        try:
            found = ask()
        except anthropic.APIStatusError as error:
            told = from_status(error, reply=None, secrets=self._secrets(), provider=self._provider)
            told.data["seen_at"] = _time_of(error.response)
            raise told from None
        except sdk_errors() as error:
            if is_log_in(error):
                text = redact(f"The credential cannot be loaded: {error}", self._secrets())
                raise CredentialMissing(text, hint=self._provider.login) from None
            raise from_connection(error, reply=None, secrets=self._secrets(), provider=self._provider) from None
        except (AttributeError, TypeError):
            # The SDK takes for granted that JSON is an object.
            raise self._no_document("with unexpected JSON") from None
        if isinstance(found, str):
            # The SDK hands on what is no JSON as text.
            raise self._no_document("with a page instead of JSON")
        return found

    def _no_document(self, what: str) -> ModelUnavailable:
        text = f"{self._client.base_url.host} answers {what}."
        return ModelUnavailable(text, code="no_model_reply", billed="unknown")

    def _result(self, row: Any) -> BatchResult:
        result = getattr(row, "result", None)
        name, kind = str(getattr(row, "custom_id", "")), str(getattr(result, "type", ""))
        message = getattr(result, "message", None)
        if kind == "succeeded" and message is not None:
            return BatchResult(name, reply=_reply(message))
        return BatchResult(name, error=self._error(result, kind))

    def _error(self, result: Any, kind: str) -> ModelError:
        if kind != "errored":
            # A kind of end that is not known, or an answer without its message, may have been billed.
            billed = "no" if kind in _UNBILLED_ENDS else "unknown"
            return ModelUnavailable(f"The batch ended without an answer to this request ({kind}).", billed=billed)
        told = getattr(result.error, "error", result.error)
        named = str(getattr(told, "type", ""))
        text = redact(str(getattr(told, "message", named)), self._secrets())
        request = getattr(result.error, "request_id", None)
        if named in ("api_error", "overloaded_error", "rate_limit_error", "timeout_error"):
            return ModelUnavailable(f"In the batch: {text}", billed="no", type=named, request_id=request)
        return ModelRejected(f"In the batch: {text}", billed="no", type=named, request_id=request)


def _time_of(answer: Any) -> datetime | None:
    """Return the provider's own time, as the Date header of an answer tells it."""
    return http_date(answer.headers.get("date"))


def _read(raw: Any, seen_at: datetime | None) -> Batch | None:
    """Return an answer's batch; None where it describes none."""
    name, status = getattr(raw, "id", None), getattr(raw, "processing_status", None)
    created, expires = getattr(raw, "created_at", None), getattr(raw, "expires_at", None)
    if not (name and isinstance(name, str) and isinstance(created, datetime) and isinstance(expires, datetime)):
        return None
    counts_of = getattr(getattr(raw, "request_counts", None), "to_dict", dict)
    counts = {kind: int(count) for kind, count in counts_of().items() if isinstance(count, int)}
    return Batch(
        name, status == "ended", sum(counts.values()), _aware(created), _aware(expires), counts, seen_at,
        getattr(raw, "archived_at", None) is not None,
    )  # fmt: skip


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _reply(message: Any) -> Reply:
    """Return a whole message as a reply: its text, its raw usage, and what else it says."""
    heard = Heard()
    heard.take_whole(message.to_dict(mode="json", exclude_unset=True, warnings=False))
    return heard.reply()
