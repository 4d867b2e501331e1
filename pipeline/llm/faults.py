"""What a provider's error means for the caller: wait, stop the run, or give up the item; and whether it was billed.

Works on the SDK's and the HTTP library's exceptions; no secret passes through it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pipeline.clock import SystemClock
from pipeline.errors import ModelError, ModelRejected, ModelUnavailable, SpendLimit
from pipeline.llm.base import Reply
from pipeline.providers import ANTHROPIC, Provider
from pipeline.records.redaction import without_keys

#: Longest wait a provider can ask for (seconds); a larger figure is a mistake or an attack, not a plan.
LONGEST_WAIT = 86_400.0
#: Longest provider text repeated in a message.
_TEXT_LIMIT = 400

_RETRY_STATUSES = frozenset({408, 409, 425, 429, 460, 499, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
#: Types of an `error` event inside a stream (whose status says 200), with the status they stand for: Anthropic's,
#: those of Amazon's event streams, and OpenAI's.
_EVENT_STATUSES = {
    "overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
    "throttlingException": 429, "internalServerException": 500, "modelStreamErrorException": 500,
    "serviceUnavailableException": 503, "modelTimeoutException": 504,
    "server_error": 500, "rate_limit_exceeded": 429,
}  # fmt: skip
#: `error_code` of the provider's money limits; stable, unlike its wording.
_SPEND_CODES = frozenset(
    {
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "linked_organization_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "user_profile_not_billable",
        "user_profile_billing_not_authorized",
        "organization_on_hold",
        "insufficient_quota",
        "billing_not_active",
        "billing_hard_limit_reached",
    }
)
#: Statuses with an error code, a sentence and a hint of their own.
_KNOWN = {
    401: (
        "credential_refused",
        "The provider does not accept the credential",
        "Check {credential}, then resume the run.",
    ),
    403: (
        "access_denied",
        "The credential may not do this",
        "Use a credential that may call this model, then resume the run.",
    ),
    413: ("request_too_large", "The request is too large", ""),
    429: ("rate_limited", "The provider limits the rate", ""),
    529: ("overloaded", "The provider is overloaded", ""),
}
#: The one case without a code: a 400 with this text.
_CREDIT = re.compile(r"credit balance", re.IGNORECASE)
#: Answers of a gateway that gave up waiting: the provider may have worked, and billed, all the same.
_GAVE_UP = frozenset({408, 460, 499})
#: Not billed by a provider that documents it, whatever their body; of other server errors only the next two may be.
_UNBILLED = frozenset({500, 529})
#: Not billed in an error document of the provider; a gateway's page may follow a request that was answered.
_UNBILLED_IN_ITS_WORDS = frozenset({502, 503})
#: Connection errors after which the request has certainly not been received whole.
_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"})
#: Errors of our own side: the request is wrong, sending it again is too.
_OUR_FAULT = frozenset({"UnsupportedProtocol", "LocalProtocolError", "InvalidURL", "UnicodeEncodeError", "ValueError"})


def redact(text: str, secrets: Iterable[str | None] = ()) -> str:
    """Return the text on one line without anything that looks like a credential, or is one of `secrets`."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "[key]")
    text = " ".join(without_keys(text).split())
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that the provider asks to wait: retry-after-ms, retry-after in seconds, or an HTTP date.

    Never negative, at most LONGEST_WAIT; None where it says nothing usable. A date is measured
    from the provider's own Date header where it sent one, so that a wrong clock here does no harm.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(headers.get(name))
        if seconds is not None:
            return min(max(seconds / scale, 0.0), LONGEST_WAIT)
    until = http_date(headers.get("retry-after"))
    if until is None:
        return None
    start = http_date(headers.get("date")) or now or SystemClock().now()
    return min(max((until - start).total_seconds(), 0.0), LONGEST_WAIT)


def limits(headers: Mapping[str, str]) -> dict[str, float]:
    """Return the limits that headers tell: {"requests": a minute, "requests_left": now}, and so for tokens."""
    found = {}
    for name in ("requests", "input-tokens", "output-tokens"):
        for said, key in (("limit", ""), ("remaining", "_left")):
            value = _number(headers.get(f"anthropic-ratelimit-{name}-{said}"))
            if value is not None:
                found[name.replace("-", "_") + key] = value
    return found


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def http_date(text: str | None) -> datetime | None:
    """Return the time of a Date header; None where there is none that can be read."""
    try:
        moment = parsedate_to_datetime(text or "")
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo is not None else None


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer says of an error, as the SDKs of the Messages API say it."""

    status_code: int
    api_message: str
    type: str | None
    error_code: str | None
    request_id: str | None
    response: Any
    body: Any = None


def from_status(error: Any, *, reply: Reply | None, secrets: Iterable[str | None], provider: Provider) -> ModelError:
    """Return the error of an HTTP status, or of an `error` event inside a stream (`reply`: what had come by then).

    `error` is an error of Anthropic's SDK, or Told. `data` holds status, type, code, request_id, retry_after and
    stops_run (no other call of this run can succeed either).
    """
    status = int(error.status_code)
    if 300 <= status < 400:
        variable = provider.address
        return ModelRejected(
            f"The host of {variable} answers with a redirect, which is not followed: it would get the key.",
            code="redirect_refused", hint=f"Set {variable} to the host that answers itself.", billed="no",
            status=status, stops_run=True,
        )  # fmt: skip
    in_stream = status < 400
    text = redact(_said(error) or _unexplained(error.response, secrets), secrets)
    data: dict[str, Any] = {
        "status": _EVENT_STATUSES.get(error.type, status) if in_stream else status,
        "type": error.type,
        "provider_code": error.error_code,
        "request_id": error.request_id,
        "stops_run": False,
        "limits": limits(error.response.headers),
        "billed": _billed(reply) if in_stream else _refused_billed(status, error.body, provider),
        "reply": reply,
    }
    if _is_spend_limit(error, status):
        data["stops_run"] = True
        where = "in the Anthropic Console" if provider.name == ANTHROPIC else f"at {provider.title}"
        hint = f"Raise the limit or add credit {where}, then resume the run."
        return SpendLimit(f"The provider account cannot pay for more calls: {text}", hint=hint, **data)
    if (in_stream and error.type in (*_EVENT_STATUSES, None)) or status in _RETRY_STATUSES or status > 504:
        data["retry_after"] = retry_after(error.response.headers)
        if in_stream:
            return ModelUnavailable(f"The reply broke off: {text}", code="reply_broken_off", **data)
        code, sentence, _ = _KNOWN.get(status, ("", "The provider failed to answer", ""))
        return ModelUnavailable(f"{sentence} ({status}): {text}", code=code, **data)
    data["stops_run"] = status in (401, 403, 404)
    code, sentence, hint = _KNOWN.get(status, ("", "The provider rejected the request", ""))
    hint = hint.format(credential=provider.credential)
    return ModelRejected(f"{sentence} ({status}): {text}", code=code, hint=hint, **data)


def _said(error: Any) -> str:
    """Return the words of an error document: those of `error`, or of the document itself, as Amazon writes it."""
    body = error.body if isinstance(error.body, Mapping) else {}
    return str(error.api_message or body.get("message") or body.get("Message") or "")


def _unexplained(response: Any, secrets: Iterable[str | None]) -> str:
    host, kind = _answering(response, secrets)
    return f"{host} says nothing more ({kind})"


def _is_spend_limit(error: Any, status: int) -> bool:
    if error.error_code in _SPEND_CODES or status == 402 or error.type == "billing_error":
        return True
    return status == 400 and bool(_CREDIT.search(str(error.api_message or "")))


def _billed(reply: Reply | None) -> str:
    """Return "partial" for a reply that had begun, "unknown" for one that had not."""
    return "partial" if reply is not None and reply.usage else "unknown"


def _refused_billed(status: int, body: Any, provider: Provider) -> str:
    """Return "no" for an error that the provider documents as unbilled, "unknown" for what a gateway may say late."""
    free = status in _UNBILLED or (status in _UNBILLED_IN_ITS_WORDS and _own_document(body))
    late = status in _GAVE_UP or (status >= 500 and not (free and provider.free_errors))
    return "unknown" if late else "no"


def _own_document(body: Any) -> bool:
    """Return whether a body is the provider's error document, not a gateway's page or JSON of its own."""
    told = body.get("error") if isinstance(body, Mapping) and body.get("type") == "error" else None
    return isinstance(told, Mapping) and isinstance(told.get("type"), str)


def from_connection(
    error: BaseException, *, reply: Reply | None, secrets: Iterable[str | None], provider: Provider
) -> ModelError:
    """Return the error of a connection: not made (billed "no"), or lost after sending ("unknown", "partial")."""
    cause = error.__cause__ or error
    if isinstance(cause, ModelError):
        # The SDK takes what a hook of ours raises for a lost connection.
        return cause
    name = type(cause).__name__
    text = redact(str(cause) or name, secrets)
    data: dict[str, Any] = {"type": name, "retry_after": None, "stops_run": False}
    if name in _OUR_FAULT:
        hint = f"Check {provider.address} and {provider.credential}."
        return ModelRejected(
            f"The request could not be sent: {text}", code="request_unsendable", hint=hint, billed="no", **data
        )
    if name in _NEVER_SENT and reply is None:
        text = f"The provider cannot be reached: {text}"
        return ModelUnavailable(text, code="provider_unreachable", billed="no", **data)
    text = f"The connection was lost: {text}"
    return ModelUnavailable(text, code="connection_lost", billed=_billed(reply), reply=reply, **data)


def no_reply(response: Any, secrets: Iterable[str | None], provider: Provider) -> ModelUnavailable:
    """Return the error of an answer that is no reply of a model: a page of a proxy, a login page, another service.

    `data["tries"]`: how many tries it is worth, as the same answer will come again.
    """
    host, kind = _answering(response, secrets)
    return ModelUnavailable(
        f"{host} answers with {kind}, not with a reply of a model.",
        code="no_model_reply",
        hint=f"Check {provider.address}, and whether a proxy or a login page answers in its place; then resume.",
        billed="unknown", host=host, content_type=kind, retry_after=None, stops_run=False, tries=2,
    )  # fmt: skip


def _answering(response: Any, secrets: Iterable[str | None]) -> tuple[str, str]:
    """Return the host that answered and the content type of its answer."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    return redact(str(response.url.host), secrets), redact(kind, secrets) or "an unnamed content type"


def no_credential(text: str, hint: str) -> ModelRejected:
    """Return the error of a call without a credential: nothing was sent, and nothing else can be."""
    return ModelRejected(text, code="no_credential", hint=hint, billed="no", status=401, stops_run=True)


def broken_off(reason: str, *, reply: Reply | None) -> ModelUnavailable:
    """Return the error of a reply that ended early without an error of the provider."""
    return ModelUnavailable(
        f"The reply broke off: {reason}",
        code="reply_broken_off",
        billed=_billed(reply),
        reply=reply,
        request_id=reply.request_id if reply is not None else None,
        retry_after=None,
        stops_run=False,
    )
