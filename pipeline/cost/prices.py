"""Usage → charge: exact, between two bounds, or unpriced with the reason; never 0 by silence, never the network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pipeline.cost.price_file import PriceFile
from pipeline.cost.rates import (
    US_FACTOR,
    NoPrice,
    PriceQuery,
    PublishedRates,
    Rates,
    list_of,
    published_id,
    published_ids,
    undated,
)
from pipeline.cost.usage import REGIONAL, WEB_SEARCH, BilledUsage, UsageUnreadable, billed
from pipeline.providers import ANTHROPIC, PROVIDERS
from pipeline.records.charge import BATCH, EXACT, INPUT_KINDS, INTERVAL, TOKEN_KINDS, UNPRICED, Charge

#: Tokens a request may hold beyond the bytes of its text, where its form is not known.
FRAMING_TOKENS = 2_000
_LONG_WRITE = "cache_write_1h"
_WRITES = frozenset({"cache_write_5m", _LONG_WRITE})
#: Of a model's name as a reply gives it, so much is kept.
_LONGEST_NAME = 80
#: In the name of every model of the provider's.
_CLAUDE = "claude"
#: Places of inference with a surcharge.
_DEARER = frozenset({"us", REGIONAL})
#: Prefixes that other tools put before the provider's own model names.
_PREFIX = re.compile(r"^(?:(?:openrouter|litellm)/)?(?:anthropic[/:.]|models/)", re.IGNORECASE)


class PriceBook:
    """Prices: a user's file first, then the provider's published ones."""

    def __init__(
        self, overrides: Path | str | None = None, provider: str = ANTHROPIC, *, regional: bool = False
    ) -> None:
        """Open the book.

        Args:
            provider: Whose prices count where a method is told of no other.
            regional: Usages are of an endpoint of a region, even where they do not say so.
            overrides: A JSON or TOML file of negotiated or missing prices (see price_file.py); it wins.

        Raises:
            InvalidValue: The file cannot be read; names file and key.
        """
        self._published = PublishedRates()
        self._provider = provider
        self._place = {"endpoint": REGIONAL} if regional else {}
        self._file = PriceFile(Path(overrides)) if overrides is not None else None

    @property
    def version(self) -> str:
        """Name and version of the price data."""
        own = f"{self._file.source}; " if self._file is not None else ""
        return own + self._published.source

    def charge(
        self,
        usage: Mapping[str, Any],
        *,
        model: str,
        at: datetime,
        tier: str | None = None,
        answered: str = "",
        provider: str = "",
    ) -> Charge:
        """Return what a finished try cost: exact; unpriced where no price is known.

        Args:
            usage: The provider's usage object, raw.
            model: As asked for; prefixes of other tools are ignored.
            at: When the request was sent.
            tier: "batch" for a batch result; None: as the usage says.
            answered: The model as the reply names it. Where it is another one, its price counts; where that has no
                price, the charge lies between nothing and the dearest price there is.
            provider: Who bills it; "": the book's own.
        """
        provider = provider or self._provider
        other, asked = self._other(model, answered, provider), asked_name(model, provider)
        try:
            seen = billed({**usage, **self._place}, tier)
        except UsageUnreadable as error:
            return Charge(UNPRICED, note=str(error), source=self.version, model=other)
        case = PriceQuery(other or asked, at, seen.prompt, seen.tier == BATCH, seen.fast, provider)
        try:
            charge = self._of(seen, case)
        except NoPrice as error:
            charge = Charge(UNPRICED, tokens=seen.tokens, tier=seen.tier, note=str(error), source=self.version)
            if other:
                charge = replace(charge, state=INTERVAL, high=_priced(seen, self._dearest(case), other).high)
        if not other:
            return charge
        note = "; ".join(filter(None, (f"answered by {other}, not by {asked}", charge.note)))
        return replace(charge, model=other, note=note)

    def partial(
        self,
        usage: Mapping[str, Any],
        *,
        model: str,
        at: datetime,
        worst: Decimal | None,
        answered: str = "",
        provider: str = "",
    ) -> Charge:
        """Return what a try that broke off may have cost: from what was seen of it to its worst case.

        An empty usage (nothing was seen) gives the interval from 0. `worst` None: no upper bound.
        """
        if not usage:
            return Charge(INTERVAL, high=worst, source=self.version, note="no usage seen")
        provider = provider or self._provider
        seen = self.charge({"output_tokens": 0, **usage}, model=model, at=at, answered=answered, provider=provider)
        if seen.model and worst is not None:
            case = PriceQuery(asked_name(model, provider), at, _prompt(seen), provider=provider)
            worst *= self._dearer(seen.model, case)
        if seen.state == UNPRICED:
            return replace(seen, state=INTERVAL, high=worst) if worst is not None else seen
        high = None if worst is None else max(worst, seen.low)
        note = "; ".join(filter(None, ("broke off: at least what was seen, at most the worst case", seen.note)))
        return replace(seen, state=INTERVAL, high=high, note=note)

    def worst(
        self,
        size_bytes: int,
        max_tokens: int,
        *,
        model: str,
        at: datetime,
        fast: bool = False,
        batch: bool = False,
        instead: Iterable[str] = (),
        added: int = FRAMING_TOKENS,
        marked: int | None = None,
        provider: str = "",
    ) -> Decimal | None:
        """Return the most a request can cost, in USD; None if it has no price.

        A token is at least one byte, so the bytes of the text and what the provider adds bound the input. Each part
        of it is priced at the dearest kind that it can be, at the long-context price it may reach, with the surcharge
        for a place of inference, which the provider's account settings can bring about.

        Args:
            size_bytes: Request.size(), or a count of its tokens.
            added: Request.added(): tokens beyond these.
            marked: Request.marked(): so many of them, and what is added, can be written to a cache, for an hour only
                in a batch. None: all of it, for an hour.
            fast: The request asks for fast mode; nothing but the request can.
            batch: It goes out in a batch.
            instead: Models that answered in the place of this one before: the dearest of all counts.
            provider: As of `charge`.
        """
        tokens, provider = size_bytes + added, provider or self._provider
        case = PriceQuery(asked_name(model, provider), at, tokens, batch, fast, provider)
        try:
            rates = self._rates(case)
        except NoPrice:
            return None
        rates = _highest([rates, *(self._rates_or_dearest(replace(case, model=other)) for other in instead)])
        written = tokens if marked is None else min(marked + added, tokens) if marked else 0
        kinds = [kind for kind in INPUT_KINDS if kind != _LONG_WRITE or batch or marked is None]
        dear = [rates.prices[kind] for kind in kinds if kind in rates.prices]
        plain = [rates.prices[kind] for kind in INPUT_KINDS if kind in rates.prices and kind not in _WRITES]
        if not dear or "output" not in rates.prices:
            return None
        rest = max(plain or dear) * (tokens - written)
        return _million(max(dear) * written + rest + rates.prices["output"] * max_tokens) * _surcharge(provider)

    def _other(self, asked: str, answered: str, provider: str) -> str:
        """Return the model that answered in place of the one asked; "" where it is the same."""
        wanted, name = asked_name(asked, provider), _printable(asked_name(answered, provider))
        same = {_bare(wanted), undated(_bare(wanted))}
        if not name or _bare(name) in same or undated(_bare(name)) in same:
            return ""
        found = published_id(wanted, provider)
        if _CLAUDE not in wanted and (self._has(wanted) or (found is None and list_of(provider) != ANTHROPIC)):
            # A server's own name for what it has: a local model, or a gateway's with a price of its own.
            return ""
        return "" if found is not None and found == published_id(name, provider) else name

    def _has(self, model: str) -> bool:
        return self._file is not None and self._file.has(model)

    def _dearer(self, other: str, case: PriceQuery) -> Decimal:
        """Return the factor by which another model costs more than the case's at most; at least 1."""
        base, prices = self._rates(case).prices, self._rates_or_dearest(replace(case, model=other)).prices
        return max([Decimal(1), *(prices[kind] / price for kind, price in base.items() if price and kind in prices)])

    def _rates_or_dearest(self, case: PriceQuery) -> Rates:
        """Return a model's prices; where it has none, for each kind the highest of all models."""
        try:
            return self._rates(case)
        except NoPrice:
            return self._dearest(case)

    def _dearest(self, case: PriceQuery) -> Rates:
        found = []
        for name in (*published_ids(case.provider), *(self._file.models if self._file is not None else ())):
            with suppress(NoPrice):
                found.append(self._rates(replace(case, model=name)))
        return _highest(found)

    def _of(self, seen: BilledUsage, case: PriceQuery) -> Charge:
        """Return the charge of what was billed.

        Raises:
            NoPrice: Why there is none.
        """
        charge = _priced(seen, self._rates(case), case.model)
        if seen.least is not None:
            low = _priced(seen.least, self._rates(replace(case, prompt=seen.least.prompt)), case.model).low
            note = "; ".join(filter(None, (charge.note, "its figures contradict each other")))
            charge = replace(charge, state=INTERVAL, low=min(low, charge.low), parts={}, note=note)
        return replace(charge, full=self._outside(seen, case)) if case.batch and seen.least is None else charge

    def _outside(self, seen: BilledUsage, case: PriceQuery) -> Decimal | None:
        """Return what a batch's reply would have cost outside of one; None where that has no price."""
        try:
            return _priced(seen, self._rates(replace(case, batch=False)), case.model).low
        except NoPrice:
            return None

    def _rates(self, case: PriceQuery) -> Rates:
        if self._file is None:
            return self._published.rates(case)
        called = PROVIDERS[case.provider].priced(case.model) if case.provider in PROVIDERS else case.model
        name = next(filter(self._file.has, (called, case.model)), None)
        return self._published.rates(case) if name is None else self._file.rates(replace(case, model=name))


def plain_name(model: str) -> str:
    """Return the provider's own name of a model, in lower case."""
    return _PREFIX.sub("", model.strip()).lower()


def asked_name(model: str, provider: str) -> str:
    """Return a model's name as the provider's price list may have it: Anthropic's without what others put before it."""
    return plain_name(model) if list_of(provider) == ANTHROPIC else model.strip().lower()


def _surcharge(provider: str) -> Decimal:
    """Return what a place of inference may add to a price, as a factor."""
    return US_FACTOR if provider not in PROVIDERS or PROVIDERS[provider].geo else Decimal(1)


def _printable(name: str) -> str:
    return "".join(filter(str.isprintable, name))[:_LONGEST_NAME]


def _bare(name: str) -> str:
    """Return a name without the prefixes of gateways and clouds ("us.anthropic.", "vertex_ai/")."""
    return re.sub(r"^.*(?:/|anthropic[.:])", "", name)


def _highest(rates: Sequence[Rates]) -> Rates:
    """Return for each kind the highest price of several models."""
    prices: dict[str, Decimal] = {}
    for each in rates:
        prices.update({kind: price for kind, price in each.prices.items() if price >= prices.get(kind, price)})
    return Rates(prices, rates[0].source, rates[0].notes)


def _priced(seen: BilledUsage, rates: Rates, model: str) -> Charge:
    factor = US_FACTOR if seen.geo in _DEARER else Decimal(1)
    applied = {k: p if k == WEB_SEARCH else p * factor for k, p in rates.prices.items() if k in seen.tokens}
    missing = [kind for kind, count in seen.tokens.items() if count and kind not in applied]
    if missing:
        raise NoPrice(f"no price for {', '.join(missing)} of {model!r}")
    parts = {k: _part(k, seen.tokens[k], applied[k]) for k in (*TOKEN_KINDS, WEB_SEARCH) if k in applied}
    total = sum(parts.values(), Decimal(0))
    open_ended = [f"{name} has no price" for name in seen.unknown]
    if seen.geo and seen.geo not in _DEARER:
        open_ended.append(f"inference_geo {seen.geo!r} has no known price")
    return Charge(
        INTERVAL if open_ended else EXACT,
        low=total,
        high=None if open_ended else total,
        tokens=seen.tokens,
        parts=parts,
        prices=applied,
        source=rates.source,
        tier=seen.tier,
        note="; ".join((*rates.notes, *open_ended)),
    )


def _prompt(charge: Charge) -> int:
    return sum(charge.tokens.get(kind, 0) for kind in INPUT_KINDS)


def _part(kind: str, count: int, price: Decimal) -> Decimal:
    return (price * count).scaleb(-3) if kind == WEB_SEARCH else _million(price * count)


def _million(value: Decimal) -> Decimal:
    return value.scaleb(-6)
