"""What recorded calls would cost at other prices, from the tokens they were billed. Pure; records stay as they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol

from pipeline.clock import parse_iso
from pipeline.cost.ledger import Row, charged
from pipeline.cost.usage import WEB_SEARCH
from pipeline.errors import CheckpointCorrupt
from pipeline.records.charge import BATCH, Charge
from pipeline.records.codec import Record
from pipeline.records.kinds import CallEnded
from pipeline.records.spending import OPEN
from pipeline.records.values import resolve_value


class Prices(Protocol):
    """What is asked of a price book (cost.prices.PriceBook)."""

    def charge(self, usage: Mapping[str, Any], *, model: str, at: datetime, tier: str | None = None) -> Charge:
        """What a finished try costs."""

    def partial(self, usage: Mapping[str, Any], *, model: str, at: datetime, worst: Decimal | None) -> Charge:
        """What a try that broke off may cost."""


@dataclass(frozen=True, slots=True)
class Repriced:
    """A try at other prices."""

    #: With the new charge; as recorded where that stands.
    row: Row
    #: Why the recorded amount stands; "" where it was worked out again, or nothing was billed.
    kept: str = ""


def reprice(row: Row, usage: Mapping[str, Any] | None, prices: Prices) -> Repriced:
    """A try at other prices.

    Args:
        usage: The provider's own usage object, as recorded; None or empty: the billed tokens stand for it.
    """
    if row.outcome == OPEN:
        return Repriced(row, "no end is recorded")
    if row.settled:
        return Repriced(row, "settled by hand")
    if row.usd == 0 and not row.tokens:
        # Rejected before any output, or by a model that costs nothing.
        return Repriced(row)
    usage = usage or (usage_of(row.tokens) if row.tokens else None)
    if usage is None:
        return Repriced(row, "no tokens are recorded")
    if not row.model:
        return Repriced(row, "its model is not recorded")
    charge = _charge(row, usage, prices)
    if not charge.prices:
        return Repriced(row, charge.note or "no price is known")
    return Repriced(charged(row, charge))


def _charge(row: Row, usage: Mapping[str, Any], prices: Prices) -> Charge:
    at = parse_iso(row.at)
    if row.error:
        return prices.partial(usage, model=row.model, at=at, worst=row.high)
    return prices.charge(usage, model=row.model, at=at, tier=BATCH if row.tier == BATCH else None)


def usages_of(records: Iterable[Record], get_blob: Callable[[str], bytes]) -> dict[int, Mapping[str, Any]]:
    """Return the provider's usage objects by seq of call_started, of replies that can be read."""
    found: dict[int, Mapping[str, Any]] = {}
    for record in records:
        fact = record.fact
        if isinstance(fact, CallEnded) and fact.reply is not None and (usage := _usage(fact.reply, get_blob)):
            found.setdefault(fact.call, usage)
    return found


def _usage(reply: bytes, get_blob: Callable[[str], bytes]) -> Mapping[str, Any] | None:
    try:
        document = resolve_value(json.loads(reply), get_blob)
    except (CheckpointCorrupt, ValueError):
        return None
    usage = document.get("usage") if isinstance(document, Mapping) else None
    return usage if isinstance(usage, Mapping) else None


def usage_of(tokens: Mapping[str, int]) -> dict[str, Any]:
    """Billed tokens by our kinds as the provider's usage object."""
    short, long = tokens.get("cache_write_5m", 0), tokens.get("cache_write_1h", 0)
    return {
        "input_tokens": tokens.get("input", 0),
        "output_tokens": tokens.get("output", 0),
        "cache_read_input_tokens": tokens.get("cache_read", 0),
        "cache_creation_input_tokens": short + long,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
        "server_tool_use": {"web_search_requests": tokens.get(WEB_SEARCH, 0)},
    }
