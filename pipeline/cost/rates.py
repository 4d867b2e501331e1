"""Unit prices for one request: the published ones (genai-prices), or why there are none. Never the network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from pipeline.cost.usage import WEB_SEARCH

#: Half price in a batch, for every token kind; applied where the data has no batch price of its own.
BATCH_FACTOR = Decimal("0.5")
#: Inference kept in the United States costs this much more, for every token kind.
US_FACTOR = Decimal("1.1")
_FIELDS = {
    "input": "input_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "cache_read": "cache_read_mtok",
    "output": "output_mtok",
}


class NoPrice(LookupError):
    """There is no price for this; the message says why."""


@dataclass(frozen=True, slots=True)
class PriceQuery:
    """What decides the unit prices of a request."""

    model: str
    at: datetime
    #: All input tokens.
    prompt: int
    batch: bool = False
    fast: bool = False


@dataclass(frozen=True, slots=True)
class Rates:
    """Unit prices that hold for one request."""

    #: USD per million tokens by kind; WEB_SEARCH: per thousand searches. A kind without a price is absent.
    prices: Mapping[str, Decimal]
    source: str
    #: A rule that was applied because the data was silent; "" if none.
    notes: tuple[str, ...] = field(default=())


class PublishedRates:
    """Anthropic's published prices as shipped with the installed genai-prices: dated, tiered, offline."""

    @property
    def source(self) -> str:
        return f"genai-prices {_version()}"

    def rates(self, case: PriceQuery) -> Rates:
        """Return the unit prices of the day of the request.

        Raises:
            NoPrice: Why there are none.
        """
        model = _find(case.model)
        standard = _resolved(model.get_prices(case.at), case.prompt)
        notes: tuple[str, ...] = ()
        prices = standard
        if case.fast and not case.batch:
            prices = _resolved(model.get_prices(case.at, {"speed": "fast"}), case.prompt)
            if prices == standard:
                raise NoPrice(f"no fast price for {case.model}")
        if case.batch:
            prices = _resolved(model.get_prices(case.at, {"processing": "batch"}), case.prompt)
            if prices == standard:
                notes = ("batch: half of the standard price",)
                prices = {k: p if k == WEB_SEARCH else p * BATCH_FACTOR for k, p in standard.items()}
        return Rates(prices, self.source, notes)


@lru_cache(maxsize=1)
def _version() -> str:
    return version("genai-prices")


#: What documented ids put after the name of a model: a date, and a version of a cloud's own (`-v1:0`).
#: A version after a date is that date's; without one, a second version is another model.
_SUFFIX = re.compile(r"(?:[-@](?P<date>\d{8}|\d{4}-\d{2}-\d{2})(?:-v\d+(?::\d+)?)?|-v1(?::\d+)?)$")

_YEAR = re.compile(r"-\d{4}$")


def undated(model: str) -> str:
    """Return a model's name without the date and version that documented ids end in."""
    found = _SUFFIX.search(model)
    if found is None:
        return model
    try:
        if found["date"] is not None:
            date.fromisoformat(found["date"])
    except ValueError:
        return model
    return model[: found.start()]


def published_id(model: str) -> str | None:
    """Return the id under which the published list prices a model; None where it does not name it.

    A name counts that the list holds, as an id or an alias, with or without a date. What only begins like one of these
    is another model, whose price is not known: `claude-opus-4-10` is no `claude-opus-4-1`.
    """
    found = _listed().get(model) or _listed().get(undated(model))
    return None if found is None else str(found.id)


def published_ids() -> frozenset[str]:
    """Return the ids of all models that the published list prices."""
    return frozenset(str(model.id) for model in _listed().values())


@lru_cache(maxsize=1)
def _listed() -> Mapping[str, Any]:
    """Return the published models by every name that the list gives them."""
    # Lazy: the price data brings pydantic, which a command that shows recorded costs does not need.
    from genai_prices.data_snapshot import get_snapshot

    (provider,) = (each for each in get_snapshot().providers if each.id == "anthropic")
    named = {name: model for model in provider.models for name in _names(model.match)}
    return named | {model.id: model for model in provider.models}


def _names(clause: Any) -> Iterator[str]:
    """Yield the names written out in a rule that matches models; not where one breaks off inside a date."""
    for part in getattr(clause, "or_", ()):
        yield from _names(part)
    for kind in ("equals", "starts_with", "contains"):
        name = getattr(clause, kind, None)
        if name is not None and not _YEAR.search(name):
            yield name.rstrip("@")


def _find(model: str) -> Any:
    name = published_id(model)
    if name is None:
        raise NoPrice(f"no published price for {model!r}")
    return _listed()[name]


def _resolved(prices: Any, prompt: int) -> dict[str, Decimal]:
    """Return prices by our kinds; of tiered ones the tier that this prompt reaches holds for every token."""
    out: dict[str, Decimal] = {}
    for kind, name in (*_FIELDS.items(), (WEB_SEARCH, "web_searches_kcount")):
        price = getattr(prices, name)
        if price is not None:
            out[kind] = _at_size(price, prompt)
    return out


def _at_size(price: Any, prompt: int) -> Decimal:
    if isinstance(price, Decimal):
        return price
    found: Decimal = price.base
    for tier in price.tiers:
        if prompt > tier.start:
            found = tier.price
    return found
