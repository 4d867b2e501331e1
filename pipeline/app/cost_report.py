"""What was spent, of one run or a whole store; at other prices; and beside the provider's reports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.app.run_list import LANGGRAPH, row_of
from pipeline.app.stores import open_account, open_list, open_store, state_of
from pipeline.clock import SystemClock
from pipeline.cost.ledger import reprice, usages_of
from pipeline.cost.prices import PriceBook
from pipeline.cost.reconciliation import Reconciliation, Reported, open_shares
from pipeline.cost.reconciliation import reconcile as compare
from pipeline.cost.report import (
    Origin,
    Posting,
    ReportLine,
    amount_of,
    at_least,
    of_records,
    of_removed,
    of_sums,
    report,
    within,
)
from pipeline.environment import VARIABLES
from pipeline.errors import ConfigError, StoreError
from pipeline.providers import ANTHROPIC
from pipeline.records.documents import SCHEMA_VERSION, spend_rows
from pipeline.records.statuses import IN_PROGRESS
from pipeline.settings import parse_usd
from pipeline.store.base import Head, Store
from pipeline.store.emergency import of_lost_runs
from pipeline.store.reader import all_records, kept_spend, load

if TYPE_CHECKING:
    from pipeline.app.batches import BatchRow
    from pipeline.records.run import RunState

#: `--reprice published`: the prices that come with the program.
PUBLISHED = "published"
#: Without --since: so many days before the last.
DAYS = 30
#: What reading the sums of a head or of the account may raise where they make no sense.
_SENSELESS = (KeyError, TypeError, ValueError, ArithmeticError, AttributeError)
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Range:
    """UTC days, both in it; "": no end."""

    since: str = ""
    until: str = ""

    def of(self, postings: Iterable[Posting]) -> list[Posting]:
        return list(within(postings, self.since, self.until))

    def wider(self) -> Range:
        """Return a day more at either end: what was sent before midnight is billed after it."""
        first, last = date.fromisoformat(self.since), date.fromisoformat(self.until)
        return Range(str(first - timedelta(days=1)), str(last + timedelta(days=1)))


WHOLE = Range()


@dataclass(slots=True)
class Statement:
    """The spend that was read."""

    postings: list[Posting] = field(default_factory=list)
    #: Totals of imported checkpoints by run, in no posting: they are not itemised.
    imported: dict[str, Decimal] = field(default_factory=dict)
    #: What removed runs had cost at least; their postings are among the others.
    removed: dict[str, Decimal] = field(default_factory=dict)
    #: Runs that cannot be read, and why.
    unread: dict[str, str] = field(default_factory=dict)
    #: What the store's account has lost for good; "" if nothing is known to be.
    lost: str = ""
    #: It is of a whole store.
    many: bool = False

    @property
    def incomplete(self) -> bool:
        """Return whether some of what was spent is not counted: then no sum has an upper bound."""
        return bool(self.lost or (self.many and self.unread))


def read(store: Store, head: Head, days: Range = WHOLE) -> Statement:
    """Return the spend of one run, try by try; a run that cannot be resumed has it all the same."""
    lost = _lost_journal(head.document)
    ledger = _of_head(store, head) if lost else of_records(all_records(store, head.run_id), _origin(head))
    made = Statement(days.of(ledger))
    _note_imported(made, store, head)
    if head.document.get("pipeline") == LANGGRAPH:
        made.unread[head.run_id] = "LangGraph graphs make their own calls."
    return made


def read_all(url: str | None, days: Range = WHOLE, *, tries: bool = False) -> Statement:
    """Return the spend of every run of a store, and what the account keeps of removed ones.

    Args:
        tries: Call by call, from the journals; else from the heads alone, as fresh as `list` sees them.
    """
    made, store, known = Statement(many=True), open_store(url), set()
    for head in open_list(url).heads():
        known.add(head.run_id)
        try:
            if tries:
                found = read(store, head, days)
                made.postings += found.postings
                made.imported |= found.imported
            else:
                made.postings += days.of(_of_head(store, head))
                _note_imported(made, store, head)
        except StoreError as error:
            made.unread[head.run_id] = error.message
        except _SENSELESS as error:
            made.unread[head.run_id] = f"Its sums are invalid ({type(error).__name__}: {error})."
    account = open_account(url)
    try:
        for run, sums in kept_spend(store, account).items():
            _take_removed(made, run, sums, days)
        made.lost = account.lost()
    except StoreError as error:
        # What is there is reported all the same.
        made.lost = f"{error.message} The cost of removed runs is unknown."
    root = getattr(store, "root", None)
    lost = of_lost_runs(os.path.realpath(root) if root else "", str(getattr(store, "url", "")), known)
    for run, (file, whole) in lost.items():
        way = f"`recover {run} {file}` restores it from its records." if whole else f"{file} holds its last records."
        made.unread[run] = f"It is gone from the store. {way}"
    return made


def _origin(head: Head) -> Origin:
    row = row_of(head)
    return Origin(row.run_id, row.subject, row.level, row.shown_status)


def _of_head(store: Store, head: Head) -> Iterator[Posting]:
    document = head.document
    summed = document.get("spend") or ()
    if head.corrupt or document.get("tasks_out") or (summed and _is_older(document.get("schema_version"))):
        # No head, one of a version whose sums held less, or one that cannot know what its workers spend now.
        summed = spend_rows(load(store, head.run_id), str)
    elif _lost_journal(document):
        # What followed the last head is not known.
        summed = [*summed, {"calls": 0, "unbounded": 1, "outcome": "open", "day": str(document.get("updated_at"))[:10]}]
    return of_sums(summed, _origin(head))


def _lost_journal(document: Mapping[str, Any]) -> bool:
    """Return whether a head has no journal, and still says what the calls of the run had cost."""
    return bool(document.get("imported") and document.get("spend"))


def _is_older(version: Any) -> bool:
    try:
        return tuple(map(int, str(version).split("."))) < tuple(map(int, SCHEMA_VERSION.split(".")))
    except ValueError:
        return True


def _note_imported(made: Statement, store: Store, head: Head) -> None:
    if _lost_journal(head.document):
        return
    usd = head.document.get("imported_cost")
    if head.corrupt or head.document.get("imported"):
        usd = state_of(store, head).reported.get("cost_usd")
    if amount := Decimal(str(usd or 0)):
        made.imported[head.run_id] = amount


def _take_removed(made: Statement, run: str, sums: Mapping[str, Any], days: Range) -> None:
    try:
        found = days.of(of_removed(run, sums))
        imported = Decimal(str(sums.get("imported_usd") or 0))
    except _SENSELESS as error:
        made.unread[run] = f"Its entry in the account is invalid ({type(error).__name__}: {error})."
        return
    made.postings += found
    if found:
        made.removed[run] = sum((at_least(posting.spend) for posting in found), _ZERO)
    if imported:
        made.imported[run] = imported


# --- at other prices ------------------------------------------------------------------------------


class RepricedLine(NamedTuple):
    """One line: what is recorded and what it would be, each at its lower end."""

    key: str
    calls: int
    recorded: Decimal
    repriced: Decimal

    @property
    def difference(self) -> Decimal:
        return self.repriced - self.recorded

    def to_json(self) -> dict[str, Any]:
        """Return it for --json."""
        return {"key": self.key, "calls": self.calls, "recorded_usd": self.recorded, "repriced_usd": self.repriced,
                "difference_usd": self.difference}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Repricing:
    """All of them."""

    by: str
    #: Which price data.
    prices: str
    lines: Sequence[RepricedLine]
    total: RepricedLine
    #: Calls that keep their recorded amount, by why; only those that may have cost something.
    kept: Mapping[str, int]


def prices_of(text: str) -> PriceBook:
    """Return the prices that --reprice names.

    Raises:
        InvalidValue: The file cannot be read.
    """
    return PriceBook(None if text == PUBLISHED else Path(text).expanduser())


def repriced(made: Statement, store: Store, prices: PriceBook, by: str) -> Repricing:
    """Price every call of a statement again; nothing is written."""
    kept: Counter[str] = Counter()
    again: list[Posting] = []
    usages: Mapping[int, Mapping[str, Any]] = {}
    run = None
    for posting in made.postings:
        if posting.row is None:
            kept["of removed runs, whose single calls are not kept"] += posting.spend.calls
            again.append(posting)
            continue
        if posting.origin.run != run:
            run = posting.origin.run
            usages = usages_of(all_records(store, run), partial(store.get_blob, run))
        found = reprice(posting.row, usages.get(posting.row.seq), prices)
        if found.kept:
            kept[found.kept] += 1
        again.append(replace(posting, row=found.row, spend=amount_of(found.row)))
    before, after = (report(postings, by, many=made.many) for postings in (made.postings, again))
    old, new = ({line.key: line for line in each.lines} for each in (before, after))
    lines = [_pair(key, old.get(key), new.get(key)) for key in {**old, **new}]
    return Repricing(by, prices.version, lines, _pair("total", before.total, after.total), kept)


def _pair(key: str, old: ReportLine | None, new: ReportLine | None) -> RepricedLine:
    line = old or new
    recorded, now = (at_least(each) if each else _ZERO for each in (old, new))
    return RepricedLine(key, line.calls if line else 0, recorded, now)


# --- beside the provider's reports ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """Our statement beside the provider's reports of the same days."""

    days: Range
    statement: Statement
    made: Reconciliation
    #: Batches that may have been billed beside what is exactly known.
    batches: Sequence[BatchRow] = ()


def reconciled(url: str | None, days: Range) -> Comparison:
    """Compare a whole store with what the provider reports; without `until` to today, without `since` for a month.

    Raises:
        CredentialMissing: ANTHROPIC_ADMIN_KEY is not set.
        ModelError: The reports are unavailable.
    """
    from pipeline.app.batches import possibly_billed

    last = days.until or str(_today())
    days = Range(days.since or str(date.fromisoformat(last) - timedelta(days=DAYS)), last)
    statement = read_all(url, days.wider())
    ours = _of_anthropic(statement.postings)
    made = _compared(ours, days)
    doubtful = {posting.origin.run for posting in ours if not posting.exact}
    return Comparison(days, statement, made, list(possibly_billed(open_store(url), doubtful, days.since, days.until)))


def reported_shares(url: str | None, run: str) -> Mapping[tuple[str, int], Decimal]:
    """Return by (run, call) what the provider's reports leave for each call whose charge is open.

    Args:
        run: Its exact id; it has such a call.

    Raises:
        CredentialMissing, ModelError: As `reconciled`.
    """
    ours = _of_anthropic(read_all(url, tries=True).postings)
    days = [p.day for p in ours if p.origin.run == run and p.row is not None and not p.exact]
    if not days:
        return {}
    # The day that is not over is not all reported.
    within_days = Range(min(days), min(max(days), str(_today() - timedelta(days=1))))
    if within_days.since > within_days.until:
        return {}
    postings = within_days.wider().of(ours)
    return open_shares(_compared(postings, within_days), postings)


def _of_anthropic(postings: Iterable[Posting]) -> list[Posting]:
    """Return what Anthropic billed: its reports know nothing of other providers."""
    return [posting for posting in postings if posting.provider == ANTHROPIC]


def _compared(postings: Iterable[Posting], days: Range) -> Reconciliation:
    from pipeline.llm.admin import AdminReports

    wider, reports = days.wider(), AdminReports()
    try:
        first, last = date.fromisoformat(wider.since), date.fromisoformat(wider.until)
        theirs = [Reported(day, model, usd, kind=kind) for day, model, kind, usd in reports.costs(first, last)]
        theirs += [Reported(day, model, tokens=n, tier=tier) for day, model, tier, n in reports.usage(first, last)]
    finally:
        reports.close()
    since, until = date.fromisoformat(days.since), date.fromisoformat(days.until)
    return compare(postings, theirs, since=since, until=until, today=_today())


def _today() -> date:
    return SystemClock().now().date()


# --- today ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DaySpend:
    """Hold what all runs of a store have spent and reserved today, and the daily limit."""

    #: UTC day.
    day: str
    #: None: the account cannot be read.
    spent_usd: Decimal | None
    #: None: there is no limit.
    limit_usd: Decimal | None
    #: The variable or the run that sets it, or why the variable does not.
    set_by: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {**asdict(self), "set_by": self.set_by or None}


def day_spend(url: str | None, state: Callable[[str], RunState]) -> DaySpend:
    """Return today's spend beside the least limit that the environment or a living run sets.

    Args:
        state: What the records of a run say.
    """
    store, today, limits = open_store(url), _today(), list[tuple[Decimal, str]]()
    variable = VARIABLES["daily_budget_usd"] or ""
    unread = ""
    try:
        if (usd := parse_usd(os.environ.get(variable) or "none")) is not None:
            limits.append((usd, variable))
    except ConfigError:
        unread = f"{variable} is no amount of dollars"
    for head in store.heads(lambda document: document.get("status") == IN_PROGRESS):
        if head.owned and (text := state(head.run_id).execution.get("daily_budget_usd")):
            limits.append((Decimal(str(text)), f"run {head.run_id}"))
    try:
        spent: Decimal | None = open_account(url).total(today)
    except StoreError:
        spent = None
    usd, set_by = min(limits, default=(None, unread))
    return DaySpend(str(today), spent, usd, set_by)
