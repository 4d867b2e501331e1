"""Usage → price → charge: what one try cost, exactly, between two bounds, or unpriced. Never 0 by silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from msgspec import Struct

#: The token kinds that are billed, disjoint. `input` is uncached input only.
TOKEN_KINDS = ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output")
INPUT_KINDS = TOKEN_KINDS[:-1]
_CACHE_KINDS = ("cache_write_5m", "cache_write_1h", "cache_read")
_WEB_SEARCH = "web_search"

EXACT, INTERVAL, UNPRICED = "exact", "interval", "unpriced"
_STATES = (EXACT, INTERVAL, UNPRICED)
#: The tier of what went out in a batch.
BATCH = "batch"

_ZERO, _ONE = Decimal(0), Decimal(1)
#: Amounts below it have more decimals.
_CENT = Decimal("0.01")

_MOST = Decimal(10) ** 12


def amount(text: Any) -> Decimal:
    """Return recorded US dollars: decimal text, finite and not negative.

    Raises:
        ValueError: It is anything else.
    """
    try:
        value = Decimal(text) if isinstance(text, str) else None
    except ArithmeticError:
        value = None
    if value is None or not value.is_finite() or not 0 <= value <= _MOST:
        raise ValueError(f"{text!r} is not an amount of dollars")
    return value


def bound(text: Any) -> Decimal | None:
    """Return a recorded upper bound; None where there is none, or none that can be read."""
    try:
        return None if text is None else amount(text)
    except ValueError:
        return None


def dollars(usd: Decimal, places: int = 2) -> str:
    """Return an amount as people read it: $1,234.50; what rounding would leave nothing of keeps every digit.

    Below a cent it has four decimals, and never an exponent.
    """
    places = 4 if 0 < abs(usd) < _CENT else places
    rounded = usd.quantize(_ONE.scaleb(-places))
    return in_full(usd) if usd and not rounded else f"${rounded:,f}"


def in_full(usd: Decimal) -> str:
    """Return an amount with every digit, and at least cents: $50.00, $0.125, $0.0000021."""
    places = max(2, -int(usd.normalize().as_tuple().exponent)) if usd else 2
    return f"${usd:,.{places}f}"


@dataclass(frozen=True, slots=True)
class Charge:
    """What one try cost."""

    #: exact: low = high. interval: low ≤ cost ≤ high (high None: no upper bound known).
    #: unpriced: tokens known, price not; `note` says why.
    state: str
    low: Decimal = Decimal(0)
    high: Decimal | None = Decimal(0)
    #: Billed tokens by kind (TOKEN_KINDS); other billed things (web_search) beside them.
    tokens: Mapping[str, int] = field(default_factory=dict)
    #: USD by token kind, adding up to `low` where exact (decimal text in JSON).
    parts: Mapping[str, Decimal] = field(default_factory=dict)
    #: USD per million tokens by kind, as applied.
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    #: Which price data: "genai-prices 0.2.3" or "file NAME sha256:…".
    source: str = ""
    #: standard, batch, priority.
    tier: str = "standard"
    note: str = ""
    #: What the same would have cost outside a batch; None: it was in none, or that is not known.
    full: Decimal | None = None
    #: The model that answered, where that is another than was asked; its price is the one that counts.
    model: str = ""

    @property
    def saved_by_cache(self) -> Decimal:
        """Return what the cached tokens would have cost more as plain input (USD); below 0 where writing cost more."""
        plain = self.prices.get("input")
        if plain is None or self.state != EXACT:
            return _ZERO
        cached = [kind for kind in _CACHE_KINDS if kind in self.prices and kind in self.tokens]
        return sum(((plain - self.prices[kind]) * self.tokens[kind] for kind in cached), _ZERO).scaleb(-6)

    @property
    def saved_by_batch(self) -> Decimal:
        """Return what it would have cost more outside a batch (USD); as much again for old charges that lack it."""
        if self.tier != BATCH or self.state != EXACT:
            return _ZERO
        return self.low - self.parts.get(_WEB_SEARCH, _ZERO) if self.full is None else self.full - self.low

    def to_json(self) -> dict[str, Any]:
        """Return it as recorded; decimals as text, empty fields left out."""
        out: dict[str, Any] = {"state": self.state, "low": str(self.low)}
        out["high"] = None if self.high is None else str(self.high)
        if self.tokens:
            out["tokens"] = dict(self.tokens)
        for name in ("parts", "prices"):
            table: Mapping[str, Decimal] = getattr(self, name)
            if table:
                out[name] = {key: str(value) for key, value in table.items()}
        for name in ("source", "note", "model"):
            if getattr(self, name):
                out[name] = getattr(self, name)
        if self.tier != "standard":
            out["tier"] = self.tier
        if self.full is not None:
            out["full"] = str(self.full)
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Charge:
        """Return the charge that `to_json` wrote; unknown keys are ignored. One that cannot be read is unpriced."""
        try:
            state, high = data["state"], data.get("high")
            tokens = dict(data.get("tokens", {}))
            if state not in _STATES or not all(type(count) is int and count >= 0 for count in tokens.values()):
                raise ValueError(state)
            return cls(
                state=state,
                low=amount(data.get("low", "0")),
                high=None if high is None else amount(high),
                tokens=tokens,
                parts={key: amount(value) for key, value in data.get("parts", {}).items()},
                prices={key: amount(value) for key, value in data.get("prices", {}).items()},
                source=str(data.get("source", "")),
                tier=str(data.get("tier", "standard")),
                note=str(data.get("note", "")),
                full=bound(data.get("full")),
                model=str(data.get("model", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return cls(UNPRICED, high=None, note="the recorded charge cannot be read")


#: A try for which the provider bills nothing (it was rejected before any output).
FREE = Charge(EXACT)


class Spend(Struct, gc=False):
    """Sums of charges; one a bucket (path's step, model, label, day, outcome)."""

    calls: int = 0
    tokens: dict[str, int] = {}
    usd_by_kind: dict[str, Decimal] = {}
    #: Exact spend, and the sums of the open intervals' low and high ends.
    usd: Decimal = _ZERO
    low: Decimal = _ZERO
    high: Decimal = _ZERO
    #: Calls whose charge has no price, or no upper bound.
    unpriced: int = 0
    unbounded: int = 0
    #: Calls that billed a token kind.
    kind_calls: dict[str, int] = {}
    #: What the same tokens would have cost more without a cache (below 0: less), and outside a batch.
    saved_cache: Decimal = _ZERO
    saved_batch: Decimal = _ZERO

    def add(self, other: Spend) -> None:
        self.calls += other.calls
        self.usd += other.usd
        self.low += other.low
        self.high += other.high
        self.unpriced += other.unpriced
        self.unbounded += other.unbounded
        for kind, count in other.tokens.items() if other.tokens else ():
            self.tokens[kind] = self.tokens.get(kind, 0) + count
        for kind, usd in other.usd_by_kind.items() if other.usd_by_kind else ():
            self.usd_by_kind[kind] = self.usd_by_kind.get(kind, _ZERO) + usd
        for kind, calls in other.kind_calls.items() if other.kind_calls else ():
            self.kind_calls[kind] = self.kind_calls.get(kind, 0) + calls
        if other.saved_cache:
            self.saved_cache += other.saved_cache
        if other.saved_batch:
            self.saved_batch += other.saved_batch

    def subtract(self, other: Spend) -> None:
        """Take back what `add(other)` added; kinds that come to nothing leave the tables."""
        self.calls -= other.calls
        self.usd -= other.usd
        self.low -= other.low
        self.high -= other.high
        self.unpriced -= other.unpriced
        self.unbounded -= other.unbounded
        if other.tokens:
            left = {kind: count - other.tokens.get(kind, 0) for kind, count in self.tokens.items()}
            self.tokens = {kind: count for kind, count in left.items() if count}
        if other.usd_by_kind:
            money = {kind: usd - other.usd_by_kind.get(kind, _ZERO) for kind, usd in self.usd_by_kind.items()}
            self.usd_by_kind = {kind: usd for kind, usd in money.items() if usd}
        if other.kind_calls:
            fewer = {kind: calls - other.kind_calls.get(kind, 0) for kind, calls in self.kind_calls.items()}
            self.kind_calls = {kind: calls for kind, calls in fewer.items() if calls}
        self.saved_cache -= other.saved_cache
        self.saved_batch -= other.saved_batch

    def copy(self) -> Spend:
        out = Spend()
        out.add(self)
        return out


class SpendKey(Struct, frozen=True, gc=False):
    """What a sum is of."""

    #: Step path with first visits bare: "lessons", "fan#2/left/write#3".
    step: str
    model: str
    label: str
    #: UTC day of call_started (YYYY-MM-DD).
    day: str
    #: used: replies of work that stands or may stand; wasted: failed, refused, truncated, rejected,
    #: void; open: no end recorded.
    outcome: str
    #: Why it was wasted (money.CAUSES); "" where it was not.
    cause: str = ""
    #: Who billed it; "": Anthropic.
    provider: str = ""
    #: Of the run when the call started (records.budgets.labels_text).
    labels: str = ""
