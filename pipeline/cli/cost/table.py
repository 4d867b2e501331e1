"""Costs for people: the table, what was wasted and saved, what is not exactly known, and where rounding shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from pipeline.cli.cost.books import Books
from pipeline.cli.text import count, money, money_between, table, when, with_unpriced
from pipeline.cli.where import here
from pipeline.cost.ledger import LedgerRow
from pipeline.cost.report import COLUMNS, Column, Posting, Report, ReportLine, at_least
from pipeline.records.run import Spend
from pipeline.records.spending import FAILED, LOST, REFUSED, REJECTED, TRUNCATED, VOID

#: How causes of waste are called.
CAUSES: Mapping[str, str] = {
    FAILED: "failed",
    REFUSED: "refused",
    TRUNCATED: "cut off",
    REJECTED: "rejected by a check",
    VOID: "made void by a change",
    LOST: "answer not recorded",
    "": "cause not recorded",
}
#: Open intervals a screen lists; --json has all.
_SHOWN = 20
_SHOWN_COLUMNS = [column for column in COLUMNS if column.title]
_CENT = Decimal("0.01")


def lines_of(books: Books, made: Report) -> Iterator[str]:
    """The report."""
    if not made.lines:
        yield f"No paid calls are recorded{here() if books.many else ''}."
    else:
        cells = [_cells(line) for line in made.lines]
        head = [_title(made.by), *(column.title for column in _SHOWN_COLUMNS)]
        yield table(head, [*cells, _cells(made.total)], right=head[1:])
        yield from _footnotes(made)
    yield ""
    yield from summary(books, made.total)
    yield from _open_lines(made.open, many=books.many)


def summary(books: Books, total: ReportLine) -> Iterator[str]:
    """The total in words, and what is not in it."""
    yield from _summary(books, total)
    for run, usd in books.imported.items():
        yield f"Imported: {money(usd)} as reported by run {run} before it was taken over, not itemised"
    if books.removed:
        runs = count(len(books.removed), "run")
        yield f"Removed runs: {money(sum(books.removed.values(), Decimal(0)))} in {runs}, in the sums above"
    for run, why in books.unread.items():
        yield f"Not counted: run {run}: {why}"
    if books.lost:
        yield f"Not counted: {books.lost}"


def _title(by: str) -> str:
    return by.replace("_", " ").capitalize()


def _cells(line: ReportLine) -> list[str]:
    return [line.key, *(_cell(column, line) for column in _SHOWN_COLUMNS)]


def _cell(column: Column, line: ReportLine) -> str:
    value = column.value(line)
    if value is None:
        return "no bound"
    if column.name == "cost_usd":
        return with_unpriced(money(value), line.unpriced)
    if isinstance(value, Decimal):
        return money(value) if value else ""
    return f"{value:,}" if value or column.name != "calls" else ""


def _summary(books: Books, total: ReportLine) -> Iterator[str]:
    low, high = at_least(total.spend), None if total.unbounded or books.incomplete else total.usd + total.high
    wasted = f", of it failed or wasted {money(total.wasted)}" if total.wasted else ""
    yield f"Spent:  {with_unpriced(money_between(low, high), total.unpriced)}{wasted}"
    if total.waste:
        yield "Wasted: " + ", ".join(_wasted(cause, total.waste[cause]) for cause in CAUSES if cause in total.waste)
    if saved := saved_text(total.spend):
        yield f"Saved:  {saved}"
    if read := total.tokens.get("cache_read", 0):
        yield f"Cache:  {read / total.input_tokens:.0%} of all input was read from it".replace("%", " %")
    if total.unpriced:
        yield f"Not priced: {count(total.unpriced, 'call')}; the tokens are known, the price is not"


def _wasted(cause: str, spend: Spend) -> str:
    calls = f" ({count(spend.calls, 'call')})" if spend.calls else ""
    return f"{money(at_least(spend))} {CAUSES[cause]}{calls}"


def saved_text(spend: Spend) -> str:
    """What caching and batches saved, in words; "" where there was neither."""
    parts = []
    if spend.saved_cache > 0:
        parts.append(f"{money(spend.saved_cache)} by caching")
    elif spend.saved_cache < 0:
        parts.append(f"nothing by caching, which cost {money(-spend.saved_cache)} more")
    if spend.saved_batch:
        parts.append(f"{money(spend.saved_batch)} by batches")
    return ", ".join(parts)


def _footnotes(made: Report) -> Iterator[str]:
    """Where the figures as shown do not add up: each is rounded by itself."""
    for column in _SHOWN_COLUMNS:
        if column.name.endswith("_usd"):
            *parts, total = (column.value(line) or Decimal(0) for line in (*made.lines, made.total))
            yield from filter(None, [footnote(column.title, parts, total)])


def footnote(name: str, parts: Sequence[Decimal], total: Decimal) -> str:
    """A sentence where rounded parts add up to something else than the rounded total; "" where they do not."""
    summed = sum((_rounded(part) for part in parts), Decimal(0))
    if summed.quantize(_CENT) == _rounded(total).quantize(_CENT):
        return ""
    return f"{name}: the lines, each rounded, add up to {money(summed)}; the total is rounded once."


def _rounded(usd: Decimal) -> Decimal:
    """An amount as `money` shows it."""
    return Decimal(money(usd).replace("$", "").replace(",", ""))


def _open_lines(unknown: Sequence[Posting], *, many: bool) -> Iterator[str]:
    if not unknown:
        return
    calls = sum(posting.spend.calls for posting in unknown if posting.row is not None)
    yield ""
    yield f"Not exactly known ({count(calls, 'call')}):" if calls else "Not exactly known:"
    lines = [_try_line(posting, posting.row, many=many) for posting in unknown if posting.row is not None]
    lines += _run_lines(unknown)
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"  and {len(lines) - _SHOWN} more; --json has all"


def _try_line(posting: Posting, row: LedgerRow, *, many: bool) -> str:
    cost = "not priced" if row.state == "unpriced" else money_between(row.low, row.high)
    run = f"{posting.origin.run} " if many else ""
    return f"  {run}#{row.seq} {row.place} {row.label}, {when(row.at)}: {cost}" + (f" ({row.note})" if row.note else "")


def open_runs(unknown: Sequence[Posting]) -> dict[str, Spend]:
    """The runs of which only sums were read that are not exactly known, and those sums."""
    found: dict[str, Spend] = {}
    for posting in unknown:
        if posting.row is None:
            found.setdefault(posting.origin.run, Spend()).add(posting.spend)
    return found


def _run_lines(unknown: Sequence[Posting]) -> list[str]:
    lines = []
    for run, spend in open_runs(unknown).items():
        cost = money_between(spend.low, None if spend.unbounded else spend.high)
        if spend.unpriced:
            cost += f"; {count(spend.unpriced, 'call')} not priced"
        lines.append(f"  run {run}: {cost}; `cost {run}` lists the calls")
    return lines
