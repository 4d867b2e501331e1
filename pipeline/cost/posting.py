"""What a report adds up: tries of a ledger, or the sums that a head or the account keeps. Pure.

The totals of a run are the same whichever of the two they are taken from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipeline.cost.ledger import Row, ledger
from pipeline.records.charge import EXACT, UNPRICED
from pipeline.records.codec import Record
from pipeline.records.run import Spend
from pipeline.records.spending import OPEN, USED

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Origin:
    """The run that an amount is of, in the words of `list`."""

    run: str = ""
    subject: str = ""
    level: str = ""
    status: str = ""


NOWHERE = Origin()


@dataclass(frozen=True, slots=True)
class Posting:
    """An amount and what it is of; read only."""

    origin: Origin
    step: str
    label: str
    model: str
    #: UTC day of call_started, YYYY-MM-DD; "" where it is not known any more.
    day: str
    #: used, wasted or open; and why it was wasted.
    outcome: str
    cause: str
    spend: Spend
    #: The try itself; None: a sum of several.
    row: Row | None = None

    @property
    def exact(self) -> bool:
        """Whether all of it is exactly known."""
        if self.row is not None:
            return self.row.state == EXACT
        return not (self.outcome == OPEN or self.spend.high or self.spend.unpriced or self.spend.unbounded)


def of_ledger(rows: Iterable[Row], origin: Origin = NOWHERE) -> Iterator[Posting]:
    """One posting a try."""
    for row in rows:
        yield Posting(origin, row.step, row.label, row.model, row.day, row.outcome, row.cause, amount_of(row), row)


def of_records(records: Iterable[Record], origin: Origin = NOWHERE) -> Iterator[Posting]:
    """One posting a try, and one for what records that are missing may have told."""
    found = ledger(records)
    yield from of_ledger(found.rows, origin)
    if found.lost.unbounded:
        yield Posting(origin, "", "", "", found.day, OPEN, "", found.lost)


def amount_of(row: Row) -> Spend:
    """A try's amount, as the fold counts it."""
    tokens = {kind: count for kind, count in row.tokens.items() if count}
    spend = Spend(calls=1, tokens=tokens, kind_calls=dict.fromkeys(tokens, 1))
    if row.state == EXACT:
        spend.usd, spend.usd_by_kind = row.low, dict(row.parts)
        spend.saved_cache, spend.saved_batch = row.saved_cache, row.saved_batch
    elif row.state == UNPRICED:
        spend.unpriced = 1
    else:
        spend.low = row.low
        spend.high = row.low if row.high is None else row.high
        spend.unbounded = int(row.high is None)
    return spend


def of_sums(rows: Iterable[Mapping[str, Any]], origin: Origin) -> Iterator[Posting]:
    """One posting for each row of sums (records.documents.spend_rows).

    Raises:
        KeyError, TypeError, ValueError, ArithmeticError: A row makes no sense.
    """
    for row in rows:
        calls, tokens = int(row["calls"]), {str(kind): int(n) for kind, n in (row.get("tokens") or {}).items() if n}
        fewer = row.get("kind_calls") or {}
        spend = Spend(
            calls=calls,
            tokens=tokens,
            usd_by_kind={str(kind): _usd(usd) for kind, usd in (row.get("usd_by_kind") or {}).items()},
            kind_calls={kind: int(fewer.get(kind, calls)) for kind in tokens},
            usd=_usd(row.get("usd") or 0),
            low=_usd(row.get("low") or 0),
            high=_usd(row.get("high") or 0),
            unpriced=int(row.get("unpriced") or 0),
            unbounded=int(row.get("unbounded") or 0),
            saved_cache=_usd(row.get("saved_cache") or 0),
            saved_batch=_usd(row.get("saved_batch") or 0),
        )
        names = ("step", "label", "model", "day", "outcome")
        step, label, model, day, outcome = (str(row.get(name) or "") for name in names)
        yield Posting(origin, step, label, model, day, outcome, str(row.get("cause") or ""), spend)


def of_removed(run: str, sums: Mapping[str, Any]) -> Iterator[Posting]:
    """What the account keeps of a run that was removed: its sums, or of older removals one for each day.

    Raises:
        KeyError, TypeError, ValueError, ArithmeticError: It makes no sense.
    """
    claim = [*(sums.get("claim") or ()), "", "", ""]
    subject, level = sums.get("subject") or claim[1], sums.get("level") or claim[2]
    origin = Origin(run, str(subject or ""), str(level or ""), REMOVED)
    if "spend" in sums:
        return of_sums(sums["spend"], origin)
    days: Mapping[str, Mapping[str, Any]] = sums.get("days") or {"": sums}
    # Which of it was for nothing was not kept then.
    return of_sums(({"calls": 0, "outcome": USED, **kept, "day": day} for day, kept in days.items()), origin)


#: The status of a run of which only the account knows.
REMOVED = "removed"


def within(postings: Iterable[Posting], since: str = "", until: str = "") -> Iterator[Posting]:
    """Those of a range of UTC days, both ends in it; "": no end."""
    for posting in postings:
        if (not since or posting.day >= since) and (not until or (posting.day and posting.day <= until)):
            yield posting


def _usd(value: Any) -> Decimal:
    """Dollars of a row: a number or text."""
    usd = Decimal(str(value))
    if not usd.is_finite():
        raise ValueError(f"{value!r} is no amount of dollars")
    return usd
