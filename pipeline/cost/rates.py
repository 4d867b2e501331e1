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
from pipeline.providers import ANTHROPIC, PROVIDERS
from pipeline.records.charge import INPUT_KINDS

#: Half price in a batch, for every token kind; applied where the data has no batch price of its own.
BATCH_FACTOR = Decimal("0.5")
#: Inference kept in the United States costs this much more, for every token kind.
US_FACTOR = Decimal("1.1")
#: Lists that price what a cache costs wherever there is one.
_OF_CLAUDE = frozenset(each.prices for each in PROVIDERS.values() if each.client)
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
    #: Whose prices: a provider of ours, or of the published list.
    provider: str = ANTHROPIC


@dataclass(frozen=True, slots=True)
class Rates:
    """Unit prices that hold for one request."""

    #: USD per million tokens by kind; WEB_SEARCH: per thousand searches. A kind without a price is absent.
    prices: Mapping[str, Decimal]
    source: str
    #: A rule that was applied because the data was silent; "" if none.
    notes: tuple[str, ...] = field(default=())


class PublishedRates:
    """The providers' published prices as shipped with the installed genai-prices: dated, tiered, offline."""

    @property
    def source(self) -> str:
        return f"genai-prices {_version()}"

    def rates(self, case: PriceQuery) -> Rates:
        """Return the unit prices of the day of the request.

        Raises:
            NoPrice: Why there are none.
        """
        model = _find(case.model, case.provider)
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
        found = list_of(case.provider)
        if found not in _OF_CLAUDE and "input" in prices:
            # Without a price of its own, what a cache takes or gives is billed as other input.
            prices = {**dict.fromkeys(INPUT_KINDS, prices["input"]), **prices}
        return Rates(prices, self.source + ("" if found == ANTHROPIC else f" {found}"), notes)


@lru_cache(maxsize=1)
def _version() -> str:
    return version("genai-prices")


#: What documented ids put after the name of a model: a date, and a version of a cloud's own (`-v1:0`).
#: A version after a date is that date's; without one, a second version is another model.
_SUFFIX = re.compile(r"(?:[-@](?P<date>\d{8}|\d{4}-\d{2}-\d{2})(?:-v\d+(?::\d+)?)?|-v1(?::\d+)?)$")
#: That version alone.
_VERSION = re.compile(r"-v\d+(?::\d+)?$")
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


def list_of(provider: str) -> str:
    """Return the name of the published list whose prices a provider bills."""
    return PROVIDERS[provider].prices if provider in PROVIDERS else provider


def published_id(model: str, provider: str = ANTHROPIC) -> str | None:
    """Return the id under which the provider's published list prices a model; None where it does not name it.

    A name counts that the list holds, as an id or an alias, with or without a date. What only begins like one of these
    is another model, whose price is not known: `claude-opus-4-10` is no `claude-opus-4-1`.
    """
    names = _listed(list_of(provider))
    called = PROVIDERS[provider].priced(model) if provider in PROVIDERS else model
    found = next((names[name] for name in _spellings(called) if name in names), None)
    return None if found is None else str(found.id)


def _spellings(model: str) -> Iterator[str]:
    """Yield what a list may call a model: its name, that without a cloud's version, and without a date."""
    yield model
    yield undated(model)
    region, _, name = model.rpartition("anthropic.")
    if name != model:
        yield _VERSION.sub("", model)
    if region not in ("", "global."):
        # A region that the list does not name is billed as the others.
        yield from _spellings(f"anthropic.{name}")


def published_ids(provider: str = ANTHROPIC) -> frozenset[str]:
    """Return the ids of all models that the provider's published list prices."""
    return frozenset(str(model.id) for model in _listed(list_of(provider)).values())


@lru_cache
def provider_at(url: str) -> str | None:
    """Return which provider of the published lists an address is of; None: it is of none."""
    from genai_prices.data_snapshot import get_snapshot

    return next((str(each.id) for each in get_snapshot().providers if re.match(each.api_pattern, url)), None)


@lru_cache
def _listed(provider: str) -> Mapping[str, Any]:
    """Return the published models of a list by every name that it gives them."""
    # Lazy: the price data brings pydantic, which a command that shows recorded costs does not need.
    from genai_prices.data_snapshot import get_snapshot

    models = [model for each in get_snapshot().providers if each.id == provider for model in each.models]
    named = {name: model for model in models for name in _names(model.match)}
    return named | {model.id: model for model in models}


def _names(clause: Any) -> Iterator[str]:
    """Yield the names written out in a rule that matches models; not where one breaks off inside a date."""
    for part in getattr(clause, "or_", ()):
        yield from _names(part)
    for kind in ("equals", "starts_with", "ends_with", "contains"):
        name = getattr(clause, kind, None)
        if name is not None and not _YEAR.search(name):
            yield name.rstrip("@")


def _find(model: str, provider: str) -> Any:
    name = published_id(model, provider)
    if name is None:
        of = "" if provider == ANTHROPIC else f" at {provider}"
        raise NoPrice(f"no published price for {model!r}{of}")
    return _listed(list_of(provider))[name]


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
