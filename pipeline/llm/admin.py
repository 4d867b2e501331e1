"""The provider's reports of cost and usage (Usage and Cost Admin API), by day and model. Read-only.

The admin key goes into one header of these requests and nowhere else: it is not kept in a record, shown, or sent on
to where a redirect points.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from pipeline.errors import CredentialMissing, ModelError, ModelRejected, ModelUnavailable
from pipeline.llm.faults import redact
from pipeline.llm.look_ups import within
from pipeline.providers import ANTHROPIC, PROVIDERS

#: Holds the admin key.
KEY_VARIABLE = "ANTHROPIC_ADMIN_KEY"
_BASE_VARIABLE, _BASE = PROVIDERS[ANTHROPIC].base_variable, "https://api.anthropic.com"
#: The version that the reports are documented for.
_VERSION = "2023-06-01"
_COST, _USAGE = "/v1/organizations/cost_report", "/v1/organizations/usage_report/messages"
_WHAT_TO_SET = (
    f"Set {KEY_VARIABLE} (in the environment or in a .env file beside pipeline.sh): an administrator "
    "creates one in the Anthropic Console."
)
#: Longest wait for one page, in seconds; days on a page, at most; pages of one report, at most.
_SECONDS, _PAGE, _PAGES = 60.0, 31, 500


class CostLine(NamedTuple):
    """What the provider billed for one thing on one day."""

    #: UTC day.
    day: str
    #: "" where the cost is of no model (web searches, code execution).
    model: str
    #: tokens, web_search, code_execution, …
    kind: str
    usd: Decimal


class UsageLine(NamedTuple):
    """What the provider counted for one model on one day."""

    day: str
    model: str
    #: standard, batch, priority, …
    tier: str
    #: By our token kinds, web_search among them.
    tokens: Mapping[str, int]


class AdminReports:
    """The reports of one organization."""

    def __init__(self, key: str | None = None, *, base_url: str | None = None) -> None:
        """Make the client; nothing is sent.

        Args:
            key: None: ANTHROPIC_ADMIN_KEY.
            base_url: None: ANTHROPIC_BASE_URL or the provider's own address.

        Raises:
            CredentialMissing: There is no key.
        """
        import httpx2

        self._key = (key or os.environ.get(KEY_VARIABLE) or "").strip()
        if not self._key:
            raise CredentialMissing("The provider's reports need an admin key, and none is set.", hint=_WHAT_TO_SET)
        self._base = (base_url or os.environ.get(_BASE_VARIABLE) or _BASE).rstrip("/")
        # A redirect would carry the key to another host.
        self._client = httpx2.Client(follow_redirects=False, timeout=_SECONDS)

    def __repr__(self) -> str:
        return "AdminReports()"

    def costs(self, since: date, until: date) -> list[CostLine]:
        """Return what was billed on these UTC days, both included.

        Raises:
            ModelRejected: The key is not taken, or the host has no such report.
            ModelUnavailable: The report is unavailable, or cannot be read.
        """
        return [_cost(day, row) for day, row in self._rows(_COST, since, until, ["description"])]

    def usage(self, since: date, until: date) -> list[UsageLine]:
        """Return what was counted on these UTC days, both included. Raises as `costs`."""
        return [_usage(day, row) for day, row in self._rows(_USAGE, since, until, ["model", "service_tier"])]

    def close(self) -> None:
        """Free connections."""
        self._client.close()

    def _rows(self, path: str, since: date, until: date, groups: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield (day, row) of every bucket of every page."""
        asked: dict[str, Any] = {
            "starting_at": f"{since.isoformat()}T00:00:00Z",
            "ending_at": f"{(until + timedelta(days=1)).isoformat()}T00:00:00Z",
            "bucket_width": "1d",
            "group_by[]": groups,
            "limit": _PAGE,
        }
        seen: set[str] = set()
        while True:
            page = self._page(path, asked)
            try:
                found = [(str(bucket["starting_at"])[:10], row) for bucket in page["data"] for row in bucket["results"]]
                following = page["next_page"] if page.get("has_more") else None
            except (KeyError, TypeError, AttributeError) as error:
                raise _unreadable(error) from None
            yield from found
            if following is None:
                return
            if str(following) in seen or len(seen) >= _PAGES:
                raise _unreadable("its pages do not end")
            seen.add(str(following))
            asked["page"] = str(following)

    def _page(self, path: str, asked: Mapping[str, Any]) -> Any:
        import httpx2

        headers = {"x-api-key": self._key, "anthropic-version": _VERSION}
        try:
            response = within(
                _SECONDS, lambda: self._client.get(self._base + path, params=dict(asked), headers=headers)
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            text = redact(f"{type(error).__name__}: {error}", [self._key])
            message = f"The provider's usage report is unavailable: {text}"
            raise ModelUnavailable(message, code="report_unavailable") from None
        except ValueError:
            # Its message may hold the key.
            raise CredentialMissing(f"{KEY_VARIABLE} holds characters that no header can.", hint=_WHAT_TO_SET) from None
        if response.status_code != 200:
            raise self._refused(response)
        try:
            return response.json()
        except ValueError as error:
            raise _unreadable(error) from None

    def _refused(self, response: Any) -> ModelError:
        status = int(response.status_code)
        if 300 <= status < 400:
            return ModelRejected(
                f"The host of {_BASE_VARIABLE} answers with a redirect, which is not followed: it would get the key.",
                code="redirect_refused",
                hint=f"Set {_BASE_VARIABLE} to the host that answers itself.",
                status=status,
            )
        text = redact(_told(response), [self._key])
        if status in (401, 403):
            message = f"The provider does not accept this admin key: {text}"
            return ModelRejected(message, code="admin_key_refused", hint=_WHAT_TO_SET, status=status)
        if status == 429 or status >= 500:
            message = f"The provider's usage report is unavailable: {text}"
            return ModelUnavailable(message, code="report_unavailable", hint="Try again in a minute.", status=status)
        message = f"The provider has no such report: {text}"
        return ModelRejected(message, code="report_missing", hint=f"Check {_BASE_VARIABLE}.", status=status)


def _told(response: Any) -> str:
    """Return what an error says, in its own words where it has some."""
    try:
        error = response.json()["error"]
        return f"{error['type']}: {error['message']} (HTTP {response.status_code})"
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code}"


def _unreadable(error: object) -> ModelUnavailable:
    text = redact(f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error))
    message = f"The provider's report cannot be read: {text}"
    return ModelUnavailable(message, code="report_unreadable", hint=f"Check {_BASE_VARIABLE}.")


def _cost(day: str, row: Mapping[str, Any]) -> CostLine:
    """Return a row of the cost report, whose amounts are in cents."""
    try:
        if row.get("currency", "USD") != "USD":
            raise ValueError(f"it is in {row['currency']}, not in USD")
        usd = Decimal(str(row["amount"])).scaleb(-2)
        if not usd.is_finite():
            raise ValueError(f"an amount is {row['amount']!r}")
        return CostLine(
            day, str(row.get("model") or ""), str(row.get("cost_type") or row.get("description") or ""), usd
        )
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise _unreadable(error) from None


def _usage(day: str, row: Mapping[str, Any]) -> UsageLine:
    try:
        written = row.get("cache_creation") or {}
        searched = row.get("server_tool_use") or {}
        counts = {
            "input": row.get("uncached_input_tokens"),
            "cache_write_5m": written.get("ephemeral_5m_input_tokens"),
            "cache_write_1h": written.get("ephemeral_1h_input_tokens"),
            "cache_read": row.get("cache_read_input_tokens"),
            "output": row.get("output_tokens"),
            "web_search": searched.get("web_search_requests"),
        }
        tokens = {kind: int(count) for kind, count in counts.items() if count}
        return UsageLine(day, str(row.get("model") or ""), str(row.get("service_tier") or "standard"), tokens)
    except (TypeError, ValueError, AttributeError) as error:
        raise _unreadable(error) from None
