"""Our books against the provider's reports, by day and model: how they differ, and what explains it. Pure.

Money is compared with money, and tokens tell why it differs: the same tokens at another price, more tokens than we
know of, or tokens that were billed on the next day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_DOWN, Decimal, localcontext
from typing import Any, NamedTuple

from pipeline.cost.ledger import LedgerRow
from pipeline.cost.prices import plain_name
from pipeline.cost.rates import undated
from pipeline.cost.report import Posting
from pipeline.cost.usage import WEB_SEARCH
from pipeline.records.run import Spend

#: Differences below a cent are the reports' rounding.
TOLERANCE = Decimal("0.01")
#: The line of searches: the provider bills them under no model.
SEARCHES = "(web searches)"
#: The line of calls whose start was lost: their model with it.
LOST = "(unknown)"
ROUNDING, MIDNIGHT, OPEN, UNPRICED, OTHERS = "rounding", "midnight", "open", "unpriced", "others"
PRICE, NOT_YET, PRIORITY, ELSEWHERE, UNEXPLAINED = "price", "not_yet", "priority", "elsewhere", "unexplained"
#: Every kind of explanation.
REASONS = (ROUNDING, MIDNIGHT, OPEN, UNPRICED, OTHERS, PRICE, NOT_YET, PRIORITY, ELSEWHERE, UNEXPLAINED)
_ZERO = Decimal(0)


class Reported(NamedTuple):
    """What the provider reports of one model on one day: money, or tokens, or both."""

    day: str
    #: "" where it is of no model.
    model: str
    usd: Decimal = _ZERO
    tokens: Mapping[str, int] = {}
    tier: str = "standard"
    #: What is billed: tokens, web_search, …
    kind: str = "tokens"


class Reason(NamedTuple):
    """A part of a difference and what explains it."""

    kind: str
    usd: Decimal
    text: str


@dataclass(slots=True)
class Compared:
    """One model on one day."""

    day: str
    model: str
    #: Recorded here.
    ours: Spend = field(default_factory=Spend)
    theirs: Decimal = _ZERO
    tokens: dict[str, int] = field(default_factory=dict)
    #: Of their tokens, those of a tier whose cost is in no report.
    priority: int = 0
    reasons: list[Reason] = field(default_factory=list)

    @property
    def known(self) -> Decimal:
        """Return recorded spend: exact amounts and lower ends."""
        return self.ours.usd + self.ours.low

    @property
    def difference(self) -> Decimal:
        """Return what the provider reports beyond `known`."""
        return self.theirs - self.known

    @property
    def left(self) -> Decimal:
        """Return the part of the difference without an explanation yet."""
        return self.difference - sum((reason.usd for reason in self.reasons), _ZERO)

    @property
    def surplus(self) -> int:
        """Return tokens that the provider counted beyond ours."""
        return sum(self.tokens.values()) - sum(n for kind, n in self.ours.tokens.items() if kind != WEB_SEARCH)

    def explain(self, kind: str, usd: Decimal, text: str) -> None:
        self.reasons.append(Reason(kind, usd, text))

    def to_json(self) -> dict[str, Any]:
        """Return the fields of --json: money as numbers."""
        spend = self.ours
        return {
            "day": self.day,
            "model": self.model,
            "recorded_usd": float(self.known),
            "recorded_at_most_usd": None if spend.unbounded or spend.unpriced else float(spend.usd + spend.high),
            "reported_usd": float(self.theirs),
            "difference_usd": float(self.difference),
            "token_difference": self.surplus,
            "reasons": [{"reason": r.kind, "usd": float(r.usd), "text": r.text} for r in self.reasons],
        }


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """All lines, in order of day and model, and their total."""

    lines: Sequence[Compared]
    total: Compared

    def by_reason(self) -> dict[str, Decimal]:
        """Return the part of the differences that each kind of reason explains, in USD."""
        sums: dict[str, Decimal] = {}
        for line in self.lines:
            for reason in line.reasons:
                sums[reason.kind] = sums.get(reason.kind, _ZERO) + reason.usd
        return {kind: sums[kind] for kind in REASONS if kind in sums}


def reconcile(
    ours: Iterable[Posting], theirs: Iterable[Reported], *, since: date, until: date, today: date
) -> Reconciliation:
    """Compare and explain the days from `since` to `until`.

    Both sides should hold a day more at either end: what was sent before midnight is billed after it.
    """
    lines: dict[tuple[str, str], Compared] = {}
    for posting in ours:
        _take_ours(lines, posting)
    for reported in theirs:
        _take_theirs(lines, reported)
    _over_midnight(lines, since)
    for line in lines.values():
        _explain(line, today)
    first, last = since.isoformat(), until.isoformat()
    shown = [lines[key] for key in sorted(lines) if first <= key[0] <= last and _is_anything(lines[key])]
    return Reconciliation(shown, _total(shown))


def open_shares(made: Reconciliation, postings: Iterable[Posting]) -> dict[tuple[str, int], Decimal]:
    """Return by run and call what the reports leave for each call whose charge is open.

    Calls of one model and day share what is reported beyond the exact charges. Where others use the account too, that
    is more than these calls were billed; it is never more than their worst cases.
    """
    known = {(line.day, line.model): line for line in made.lines}
    open_calls: dict[tuple[str, str], list[tuple[str, LedgerRow]]] = {}
    for posting in postings:
        if posting.row is not None and not posting.exact:
            key = (posting.day, same_name(posting.model) or LOST)
            open_calls.setdefault(key, []).append((posting.origin.run, posting.row))
    found: dict[tuple[str, int], Decimal] = {}
    for key, calls in open_calls.items():
        if key not in known:
            continue
        bounds = [Bounds.of(row) for _, row in calls]
        more = sum((r.usd for r in known[key].reasons if r.kind in (OPEN, UNPRICED, ROUNDING) and r.usd > 0), _ZERO)
        usd = sum((each.low for each in bounds), _ZERO) + more
        limit = most(bounds)
        for (run, row), share in zip(calls, shares(bounds, usd if limit is None else min(usd, limit)), strict=True):
            found[run, row.seq] = share
    return found


def same_name(model: str) -> str:
    """Return a model's name without a prefix or date."""
    return undated(plain_name(model))


def _at(lines: dict[tuple[str, str], Compared], day: str, model: str) -> Compared:
    return lines.setdefault((day, model), Compared(day, model))


def _take_ours(lines: dict[tuple[str, str], Compared], posting: Posting) -> None:
    spend = posting.spend.copy()
    searched = spend.usd_by_kind.get(WEB_SEARCH, _ZERO)
    if searched:
        spend.usd -= searched
        _at(lines, posting.day, SEARCHES).ours.add(Spend(usd=searched))
    _at(lines, posting.day, same_name(posting.model) or LOST).ours.add(spend)


def _take_theirs(lines: dict[tuple[str, str], Compared], reported: Reported) -> None:
    name = same_name(reported.model)
    if not name:
        name = SEARCHES if reported.kind == WEB_SEARCH else f"({reported.kind.replace('_', ' ')})"
    line = _at(lines, reported.day, name)
    line.theirs += reported.usd
    for kind, count in reported.tokens.items():
        if kind != WEB_SEARCH:
            line.tokens[kind] = line.tokens.get(kind, 0) + count
            line.priority += count if reported.tier.startswith("priority") else 0


def _is_anything(line: Compared) -> bool:
    spend = line.ours
    return bool(line.theirs or spend.usd or spend.high or spend.low or spend.unpriced or spend.unbounded)


def _over_midnight(lines: Mapping[tuple[str, str], Compared], since: date) -> None:
    """Explain what one day lacks and the next has too much of: begun on the one, billed on the other."""
    for (day, model), line in sorted(lines.items()):
        after = lines.get((_next(day), model))
        if after is None or line.left > -TOLERANCE or after.left < TOLERANCE:
            continue
        moved = min(-line.left, after.left)
        line.explain(MIDNIGHT, -moved, f"begun on {day}, billed on {after.day}")
        where = ", before the range" if day < since.isoformat() else ""
        after.explain(MIDNIGHT, moved, f"begun on {day}{where}")


def _next(day: str) -> str:
    try:
        return (date.fromisoformat(day) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return ""


def _explain(line: Compared, today: date) -> None:
    if abs(line.left) < TOLERANCE:
        if line.left:
            line.explain(ROUNDING, line.left, "rounding")
    elif line.left > 0:
        _explain_more(line)
    else:
        _explain_less(line, today)


def _explain_more(line: Compared) -> None:
    """Explain why they report more than is recorded."""
    spend = line.ours
    room = spend.high - spend.low
    if room > 0:
        line.explain(OPEN, min(line.left, room), "calls that are not exactly known (`cost` lists them; `settle`)")
    if line.left < TOLERANCE:
        return
    if spend.unpriced or spend.unbounded:
        calls = spend.unpriced + spend.unbounded
        line.explain(UNPRICED, line.left, f"{calls} of our calls without a price or a bound (`cost --reprice FILE`)")
    elif line.surplus > 0:
        text = f"{line.surplus:,} tokens that no run here requested: other users of the account, or other stores"
        line.explain(OTHERS, line.left, text)
    elif not line.tokens and not spend.tokens:
        line.explain(OTHERS, line.left, "not requested by any run here: other users of the account, or other stores")
    else:
        _explain_price(line)


def _explain_less(line: Compared, today: date) -> None:
    """Explain why they report less than is recorded."""
    if line.priority:
        line.explain(PRIORITY, line.left, f"{line.priority:,} tokens of the priority tier, whose cost is in no report")
    elif line.surplus >= 0 and line.tokens:
        _explain_price(line)
    elif line.day >= today.isoformat():
        line.explain(NOT_YET, line.left, "that day is not over, and reports come some minutes late")
    elif line.model == LOST:
        line.explain(UNEXPLAINED, line.left, "its model is not recorded, so it is reported under another line")
    elif line.surplus < 0:
        text = f"{-line.surplus:,} tokens not charged to this account: another organisation's key"
        line.explain(ELSEWHERE, line.left, text)
    else:
        line.explain(UNEXPLAINED, line.left, "not explained")


def _explain_price(line: Compared) -> None:
    if line.surplus or not line.known:
        line.explain(UNEXPLAINED, line.left, "not explained by the tokens")
        return
    share = line.theirs / line.known
    line.explain(PRICE, line.left, f"the same tokens at {share:.3f} of the recorded price (`cost --reprice FILE`)")


def _total(lines: Iterable[Compared]) -> Compared:
    total = Compared("", "total")
    for line in lines:
        total.ours.add(line.ours)
        total.theirs += line.theirs
        for kind, count in line.tokens.items():
            total.tokens[kind] = total.tokens.get(kind, 0) + count
    return total


#: Shares have no more decimals than this, or than the amount itself.
_DECIMALS = 9
#: Digits that sums of any amounts we take fit into.
_PRECISION = 80


class Bounds(NamedTuple):
    """Bounds of what a call can have cost."""

    low: Decimal
    #: None: no upper bound is known.
    high: Decimal | None
    #: Its size beside others without a bound.
    tokens: int = 0

    @classmethod
    def of(cls, row: LedgerRow) -> Bounds:
        """Return the bounds of a try, as they were before a person settled it."""
        tokens = sum(row.tokens.values())
        return cls(_ZERO, row.bound, tokens) if row.settled else cls(row.low, row.high, tokens)


def most(bounds: Sequence[Bounds]) -> Decimal | None:
    """Return the most that the calls can have cost together; None where that is not known."""
    total = _ZERO
    for each in bounds:
        if each.high is None:
            return None
        total += each.high
    return total


def shares(bounds: Sequence[Bounds], usd: Decimal) -> list[Decimal]:
    """Return the share of each call; they add up to `usd`, and none passes its upper bound unless all must.

    Beyond its lower bound each call gets a part that goes with the width of its bounds. Less than all lower bounds
    is shared in proportion to these.
    """
    with localcontext() as context:
        context.prec = _PRECISION
        exact = _exact(bounds, usd)
        unit = Decimal(1).scaleb(min(-_DECIMALS, int(usd.as_tuple().exponent)))
        found = [share.quantize(unit, ROUND_DOWN) for share in exact]
        left = usd - sum(found, _ZERO)
        for at, each in enumerate(bounds):
            room = left if each.high is None else min(left, max(each.high - found[at], _ZERO))
            found[at] += room
            left -= room
        found[-1] += left
        return found


def _exact(bounds: Sequence[Bounds], usd: Decimal) -> list[Decimal]:
    lows = [each.low for each in bounds]
    above = usd - sum(lows, _ZERO)
    if above < 0:
        return _parts(usd, lows)
    widths = [_ZERO if each.high is None else each.high - each.low for each in bounds]
    unbounded = [each.high is None for each in bounds]
    room = sum(widths, _ZERO)
    if any(unbounded) and above > room:
        # What is bounded is full: the others take the rest, by their tokens where these are known.
        sizes = [Decimal(each.tokens) if free else _ZERO for each, free in zip(bounds, unbounded, strict=True)]
        rest = _parts(above - room, sizes if any(sizes) else [Decimal(free) for free in unbounded])
        return [sum(each, _ZERO) for each in zip(lows, widths, rest, strict=True)]
    return [low + part for low, part in zip(lows, _parts(above, widths), strict=True)]


def _parts(usd: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    whole = sum(weights, _ZERO)
    return [usd * weight / whole for weight in weights] if whole else [usd / len(weights)] * len(weights)
