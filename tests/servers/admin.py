"""A server that plays the provider's Usage and Cost Admin API: real HTTP, pages, its own sums; standard library only.

Nothing here may import the product: what it reports is what a test says was billed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.servers.serving import Handler, Http, Serving

KEY = "sk-ant-admin01-only-for-tests"
COST, USAGE = "/v1/organizations/cost_report", "/v1/organizations/usage_report/messages"
#: How the usage report names what we count.
_NAMES = {"input": "uncached_input_tokens", "cache_read": "cache_read_input_tokens", "output": "output_tokens"}
_WRITES = {"cache_write_5m": "ephemeral_5m_input_tokens", "cache_write_1h": "ephemeral_1h_input_tokens"}


@dataclass
class Billed:
    """One thing the account was billed for."""

    day: str
    model: str | None
    usd: Decimal
    tokens: dict[str, int] = field(default_factory=dict)
    tier: str = "standard"
    kind: str = "tokens"


class AdminServer(Serving):
    """The server; a context manager."""

    def __init__(self) -> None:
        self.billed: list[Billed] = []
        #: Query and headers (names in lower case) of what was asked, in order.
        self.asked: list[tuple[str, dict[str, list[str]], dict[str, str]]] = []
        #: Days on a page at most, whatever is asked for.
        self.page = 31
        #: Status, and body or location, of every answer; None: as it should be.
        self.fault: tuple[int, str] | None = None
        super().__init__(_Handler)

    def bill(self, day: str, model: str | None, usd: str | Decimal, /, *, tier: str = "standard",
             kind: str = "tokens", **tokens: int) -> None:  # fmt: skip
        """Something was billed."""
        self.billed.append(Billed(day, model, Decimal(usd), tokens, tier, kind))

    def report(self, path: str, query: dict[str, list[str]]) -> dict[str, Any]:
        """One page: buckets of days, empty ones too."""
        first, last = (date.fromisoformat(query[name][0][:10]) for name in ("starting_at", "ending_at"))
        days = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days)]
        limit = min(int(query.get("limit", ["7"])[0]), self.page)
        begin = int(query["page"][0].removeprefix("page_")) if "page" in query else 0
        rows = self._costs if path == COST else self._usage
        data = [
            {"starting_at": f"{day}T00:00:00Z", "ending_at": f"{_next(day)}T00:00:00Z", "results": rows(day)}
            for day in days[begin : begin + limit]
        ]
        more = begin + limit < len(days)
        return {"data": data, "has_more": more, "next_page": f"page_{begin + limit}" if more else None}

    def _costs(self, day: str) -> list[dict[str, Any]]:
        """As it is grouped by description: by model, tier and kind; in cents."""
        sums: dict[tuple[str | None, str, str], Decimal] = defaultdict(Decimal)
        for row in self.billed:
            if row.day == day and row.usd and row.tier != "priority":
                sums[row.model, row.tier, row.kind] += row.usd
        return [
            {
                "amount": f"{usd * 100:f}", "currency": "USD", "cost_type": kind, "model": model, "service_tier": tier,
                "description": f"{model} Usage", "token_type": None, "context_window": "0-200k", "workspace_id": None,
                "inference_geo": "not_available",
            }
            for (model, tier, kind), usd in sums.items()
        ]  # fmt: skip

    def _usage(self, day: str) -> list[dict[str, Any]]:
        sums: dict[tuple[str | None, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for row in self.billed:
            if row.day == day and row.kind == "tokens":
                for kind, count in row.tokens.items():
                    sums[row.model, row.tier][kind] += count
        return [
            {
                "model": model, "service_tier": tier, "api_key_id": None, "workspace_id": None, "context_window": None,
                **{name: tokens.get(kind, 0) for kind, name in _NAMES.items()},
                "cache_creation": {name: tokens.get(kind, 0) for kind, name in _WRITES.items()},
                "server_tool_use": {"web_search_requests": tokens.get("web_search", 0)},
            }
            for (model, tier), tokens in sums.items()
        ]  # fmt: skip


def _next(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


class _Handler(Handler):
    server: Http[AdminServer]

    def do_GET(self) -> None:
        owner, asked = self.server.owner, urlsplit(self.path)
        query = parse_qs(asked.query)
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner.asked.append((asked.path, query, headers))
        if owner.fault is not None:
            status, text = owner.fault
            self._answer(status, text.encode(), {"location": text} if 300 <= status < 400 else {})
        elif headers.get("x-api-key") != KEY or "authorization" in headers:
            self._error(401, "authentication_error", f"invalid x-api-key: {headers.get('x-api-key')}")
        elif "anthropic-version" not in headers:
            self._error(400, "invalid_request_error", "anthropic-version: header is required")
        elif asked.path not in (COST, USAGE):
            self._error(404, "not_found_error", f"no such path: {asked.path}")
        else:
            self._answer(200, json.dumps(owner.report(asked.path, query)).encode())

    def _error(self, status: int, kind: str, message: str) -> None:
        error = {"type": "error", "error": {"type": kind, "message": message}}
        self._answer(status, json.dumps(error).encode())

    def _answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
