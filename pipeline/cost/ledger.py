"""The ledger: one row for every try of a paid call, from the records alone, and at other prices. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from pipeline.clock import parse_iso
from pipeline.cost.usage import WEB_SEARCH
from pipeline.errors import CheckpointCorrupt
from pipeline.providers import ANTHROPIC
from pipeline.records.charge import BATCH, EXACT, TOKEN_KINDS, UNPRICED, Charge, amount, bound
from pipeline.records.codec import Record
from pipeline.records.fold import Builder
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled
from pipeline.records.money import LOST, OPEN, REJECTED, USED, WASTED, waste_of
from pipeline.records.run import Spend, bare, first_heard
from pipeline.records.values import resolve_value

#: What is billed by number, in the order of the columns; and the columns of its unit prices.
BILLED = (*TOKEN_KINDS, WEB_SEARCH)
PRICE_COLUMNS = tuple(f"price_{kind}" for kind in BILLED)
#: Columns of the CSV, in order; new ones are added at the end.
COLUMNS = (
    "seq", "at", "step", "item", "attempt", "n", "k", "label", "model", *TOKEN_KINDS, WEB_SEARCH,
    "usd_low", "usd_high", "state", "outcome", "stop_reason", "error", "request_id", "tier", "source", "note",
    "usd", "cause", "saved_cache_usd", "saved_batch_usd", *PRICE_COLUMNS, "provider", "labels",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One try."""

    #: seq of its call_started; 0 where that record was lost.
    seq: int
    at: str
    #: As people name it: "lessons"; and its item ("7", "" for the step's own calls).
    step: str
    item: str
    attempt: int
    n: int
    k: int
    label: str
    model: str
    #: exact, interval, unpriced, or open: its call has no recorded end, so it cost between 0 and its worst case.
    state: str = OPEN
    #: used, wasted (failed, refused, cut off, or work that is void) or open.
    outcome: str = OPEN
    #: Why it was wasted (records.money.CAUSES); "" where it was not.
    cause: str = ""
    #: USD; equal where exact. high None: no upper bound is known.
    low: Decimal = Decimal(0)
    high: Decimal | None = None
    #: BilledUsage units by kind, USD by kind, and USD per million tokens as applied.
    tokens: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, Decimal] = field(default_factory=dict)
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    source: str = ""
    tier: str = "standard"
    note: str = ""
    #: What the cache (may be below 0) and the batch saved.
    saved_cache: Decimal = Decimal(0)
    saved_batch: Decimal = Decimal(0)
    stop_reason: str = ""
    #: Type of the error ("ModelUnavailable"); "" if none.
    error: str = ""
    request_id: str = ""
    #: A person settled it.
    settled: bool = False
    #: The upper bound before that; None: none was known.
    bound: Decimal | None = None
    #: Who bills it.
    provider: str = ANTHROPIC
    #: Of the run when the call started.
    labels: str = ""

    @property
    def place(self) -> str:
        """Return STEP[/ITEM]."""
        return f"{self.step}/{self.item}" if self.item else self.step

    @property
    def day(self) -> str:
        """Return the UTC day of its call_started."""
        return self.at[:10]

    @property
    def usd(self) -> Decimal | None:
        """Return what it cost; None where that is not exactly known."""
        return self.low if self.state == EXACT else None

    def to_json(self) -> dict[str, Any]:
        """Return the fields of --json: money as numbers, prices as text."""
        return {
            **self._flat(),
            "usd_low": float(self.low),
            "usd_high": None if self.high is None else float(self.high),
            "usd": None if self.usd is None else float(self.usd),
            "saved_cache_usd": float(self.saved_cache),
            "saved_batch_usd": float(self.saved_batch),
            "tokens": dict(self.tokens),
            "prices": {kind: str(price) for kind, price in self.prices.items()},
        }

    def to_csv(self) -> list[str]:
        """Return one cell per column of COLUMNS; money exact."""
        flat = {**dict.fromkeys(BILLED, 0), **self._flat(), **self.tokens}
        money = {"usd_low": self.low, "usd_high": self.high, "usd": self.usd, "saved_cache_usd": self.saved_cache,
                 "saved_batch_usd": self.saved_batch}  # fmt: skip
        money |= {f"price_{kind}": price for kind, price in self.prices.items()}
        flat |= {name: "" if value is None else f"{value:f}" for name, value in money.items()}
        return [str(flat.get(name, "")) for name in COLUMNS]

    def _flat(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in COLUMNS if name in self.__slots__}


class Ledger(NamedTuple):
    """All that a run's records say of money."""

    #: In order of the calls.
    rows: list[LedgerRow]
    #: What missing records may have held beside them, and the UTC day when they were found missing.
    lost: Spend
    day: str


def rows(records: Iterable[Record]) -> list[LedgerRow]:
    """Return the rows of a run, in order of the calls."""
    return ledger(records).rows


def ledger(records: Iterable[Record]) -> Ledger:
    """Return the ledger of a run.

    The fold tells which work is void and what is missing; a call's money and its own end are read here.
    """
    builder = Builder("")
    found: dict[int, LedgerRow] = {}
    slots: dict[int, tuple[str, str | None, int]] = {}
    for record in records:
        builder.apply(record)
        fact = record.fact
        if isinstance(fact, CallStarted):
            found[record.seq] = _started(record.seq, record.at, fact, builder.state.labels)
            slots[record.seq] = (fact.path, fact.task, fact.attempt)
        elif isinstance(fact, CallEnded):
            _end(found, record, fact)
        elif isinstance(fact, ChargeSettled) and fact.call in found:
            found[fact.call] = _settled(found[fact.call], fact)
    for seq, (path, task, attempt) in slots.items():
        if found[seq].outcome == USED and first_heard(builder.state, path, task) > attempt:
            found[seq] = replace(found[seq], outcome=WASTED, cause=builder.cause(path, task, attempt))
    for seq in builder.rejected & found.keys():
        if found[seq].outcome == USED:
            found[seq] = replace(found[seq], outcome=WASTED, cause=REJECTED)
    state = builder.state
    day = next((key.day for key in state.spend if key.outcome == OPEN and not key.step), "")
    return Ledger([found[seq] for seq in sorted(found)], state.lost, day)


def _started(seq: int, at: str, fact: CallStarted, labels: str) -> LedgerRow:
    step = bare(fact.path)
    node = step.rpartition("/")[2].partition("#")[0]
    return LedgerRow(
        seq=seq,
        at=at,
        step=step,
        item=(fact.task or "").removeprefix(f"{node}/"),
        attempt=fact.attempt,
        n=fact.n,
        k=fact.k,
        label=fact.label,
        model=fact.model,
        high=bound(fact.worst),
        note="no end recorded: at most its worst case",
        provider=fact.provider or ANTHROPIC,
        labels=labels,
    )


def _end(found: dict[int, LedgerRow], record: Record, fact: CallEnded) -> None:
    row = found.get(fact.call)
    if row is None:
        # Its start was lost with a damaged piece of the journal; the money was spent all the same.
        lost = LedgerRow(fact.call, record.at, "", "", 1, 1, 1, "", "")
        found[fact.call] = replace(_ended(lost, fact), outcome=WASTED, cause=LOST)
    elif row.outcome == OPEN:
        found[fact.call] = _ended(row, fact)


def _ended(row: LedgerRow, fact: CallEnded) -> LedgerRow:
    cause = waste_of(fact)
    return replace(
        charged(row, Charge.from_json(fact.charge)),
        outcome=WASTED if cause else USED,
        cause=cause,
        stop_reason=fact.stop_reason or "",
        error=str((fact.error or {}).get("type", "")),
        request_id=fact.request_id or "",
    )


def charged(row: LedgerRow, charge: Charge) -> LedgerRow:
    """Return the row with that charge in place of its own."""
    return replace(
        row,
        model=charge.model or row.model,
        state=charge.state,
        low=charge.low,
        high=charge.low if charge.state == EXACT else None if charge.state == UNPRICED else charge.high,
        tokens=charge.tokens,
        parts=charge.parts,
        prices=charge.prices,
        source=charge.source,
        tier=charge.tier,
        note=charge.note,
        saved_cache=charge.saved_by_cache,
        saved_batch=charge.saved_by_batch,
    )


def _settled(row: LedgerRow, fact: ChargeSettled) -> LedgerRow:
    """Put the known amount in place of an open or an earlier one; a charge that was exact by itself stays."""
    if row.state == EXACT and not (row.settled and fact.corrects):
        return row
    usd = amount(fact.usd)
    if row.outcome == OPEN:
        row = replace(row, outcome=WASTED, cause=LOST)
    note = f"settled by {fact.by}" if fact.by else "settled"
    most = row.bound if row.settled else row.high
    return replace(row, state=EXACT, low=usd, high=usd, parts={}, note=note, settled=True, bound=most)


class Pricing(Protocol):
    """The part of cost.prices.PriceBook that repricing needs."""

    def charge(
        self, usage: Mapping[str, Any], *, model: str, at: datetime, tier: str | None = None, provider: str = ""
    ) -> Charge:
        """Return what a finished try costs."""

    def partial(
        self, usage: Mapping[str, Any], *, model: str, at: datetime, worst: Decimal | None, provider: str = ""
    ) -> Charge:
        """Return what a try that broke off may cost."""


@dataclass(frozen=True, slots=True)
class Repriced:
    """A try at other prices."""

    #: With the new charge, or as recorded.
    row: LedgerRow
    #: Why the recorded amount was kept; "" where it was priced again, or nothing was billed.
    kept: str = ""


def reprice(row: LedgerRow, usage: Mapping[str, Any] | None, prices: Pricing) -> Repriced:
    """Price a try again.

    Args:
        usage: The provider's own usage object, as recorded; None or empty: the billed tokens stand for it.
    """
    if row.outcome == OPEN:
        return Repriced(row, "no end is recorded")
    if row.settled:
        return Repriced(row, "settled by hand")
    if row.usd == 0 and not row.tokens:
        # Rejected before any output, or a model that costs nothing.
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


def _charge(row: LedgerRow, usage: Mapping[str, Any], prices: Pricing) -> Charge:
    at = parse_iso(row.at)
    if row.error:
        return prices.partial(usage, model=row.model, at=at, worst=row.high, provider=row.provider)
    tier = BATCH if row.tier == BATCH else None
    return prices.charge(usage, model=row.model, at=at, tier=tier, provider=row.provider)


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
    """Return billed tokens by our kinds as the provider's usage object."""
    short, long = tokens.get("cache_write_5m", 0), tokens.get("cache_write_1h", 0)
    return {
        "input_tokens": tokens.get("input", 0),
        "output_tokens": tokens.get("output", 0),
        "cache_read_input_tokens": tokens.get("cache_read", 0),
        "cache_creation_input_tokens": short + long,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
        "server_tool_use": {"web_search_requests": tokens.get(WEB_SEARCH, 0)},
    }
