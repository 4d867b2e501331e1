"""`cost`: what was spent on what; at other prices; beside the provider's reports; as a chart."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from pipeline.app.cost_documents import (
    CAUSE_WORDS,
    REASON_WORDS,
    open_runs,
    reconciled_json,
    reconciled_rows,
    report_json,
    report_rows,
    repriced_json,
    repriced_rows,
)
from pipeline.app.cost_report import (
    Comparison,
    Range,
    Repricing,
    Statement,
    prices_of,
    read,
    read_all,
    reconciled,
    repriced,
)
from pipeline.app.stores import head_of, open_store
from pipeline.app.words import count, money, money_between, when, with_unpriced
from pipeline.cli.options import NamedPath, RunName, common_options, here, in_its_folder, own_option
from pipeline.cli.text import table, tell, warn
from pipeline.cost.ledger import LedgerRow
from pipeline.cost.report import COLUMNS, GROUPS, OF_TRIES, Posting, Report, ReportLine, at_least, report
from pipeline.records.run import Spend
from pipeline.records.spreadsheet import write_csv
from pipeline.store.reader import resolve

#: Open intervals that a screen lists; --json has all.
_SHOWN = 20
_CENT = Decimal("0.01")

#: Columns of the table; cost.report has the list of all.
_TABLE = [column for column in COLUMNS if column.title]


def _cells(line: ReportLine) -> list[str]:
    cells = [line.key]
    for column in _TABLE:
        value = column.value(line)
        if value is None:
            cells.append("no bound")
        elif column.name == "cost_usd":
            cells.append(with_unpriced(money(value), line.unpriced))
        elif isinstance(value, Decimal):
            cells.append(money(value) if value else "")
        else:
            cells.append(f"{value:,}" if value or column.name != "calls" else "")
    return cells


_DAY = click.DateTime(["%Y-%m-%d"])


@click.command("cost")
@click.argument("run", type=RunName(), required=False, metavar="[RUN]")
@own_option("cost", "--by", type=click.Choice(GROUPS), default="step", show_default=True, help="What to sum by.")
@own_option("cost", "--since", type=_DAY, metavar="DATE", help="Only calls sent on this UTC day or later.")
@own_option("cost", "--until", type=_DAY, metavar="DATE", help="Only calls sent on this UTC day or earlier.")
@own_option("cost", "--csv", "as_csv", is_flag=True, help="CSV with stable columns; with --by call, one row per call.")
@own_option("cost", "--reprice", "prices", metavar="FILE|published",
            help="Show what the recorded tokens would cost at other prices.")  # fmt: skip
@own_option("cost", "--plot", type=NamedPath(dir_okay=False), metavar="FILE.svg|FILE.png",
            help="Draw spend by day and by step into a file.")  # fmt: skip
@own_option("cost", "--reconcile", is_flag=True,
            help="Compare with the provider's reports by day and model; needs ANTHROPIC_ADMIN_KEY.")  # fmt: skip
@common_options
@in_its_folder
def cost(
    run: str | None, by: str, since: datetime | None, until: datetime | None, as_csv: bool, prices: str | None,
    plot: Path | None, reconcile: bool, as_json: bool, store: str | None,
) -> None:  # fmt: skip
    """Show what was spent on what; without RUN for all runs, removed ones included.

    Failed and wasted spend is in the total and also shown separately; calls whose cost is only known
    between two bounds are listed.
    """
    if as_csv and as_json:
        raise click.UsageError("Give --csv or --json, not both.")
    if since and until and since > until:
        raise click.UsageError(f"--since {since.date()} is after --until {until.date()}.")
    if (prices is not None) + (plot is not None) + reconcile > 1:
        raise click.UsageError("Give only one of --reprice, --plot and --reconcile.")
    days = Range(*(str(day.date()) if day else "" for day in (since, until)))

    def statement(*, tries: bool) -> Statement:
        if run is None:
            return read_all(store, days, tries=tries)
        place = open_store(store)
        return read(place, head_of(place, resolve(place, run)), days)

    if reconcile:
        if run is not None:
            raise click.UsageError("--reconcile compares all runs of a store, not a single one. Omit RUN.")
        found = reconciled(store, days)
        answer: _Answer = (_reconciled_lines(found), reconciled_json(found), reconciled_rows(found))
    elif prices is not None:
        book = prices_of(prices)
        again = repriced(statement(tries=True), open_store(store), book, by)
        answer = (_repriced_lines(again), repriced_json(again), repriced_rows(again))
    elif plot is not None:
        from pipeline.cli import cost_chart

        cost_chart.check(plot)
        shown = statement(tries=False)
        cost_chart.draw(shown, plot)
        lines = [f"Drawn:  {plot}", *_summary(shown, report(shown.postings).total)]
        answer = (lines, [{"type": "plot", "file": str(plot)}], [["file"], [plot]])
    else:
        shown = statement(tries=by in OF_TRIES)
        made = report(shown.postings, by, many=shown.many)
        answer = (lines_of(shown, made), report_json(shown, made), _rows(shown, made))
    _write(answer, as_csv=as_csv, as_json=as_json)


#: An answer as lines for people, as objects, and as a CSV with its head first. Only the form asked for is made.
_Answer = tuple[Iterable[str], Iterable[Mapping[str, Any]], Iterable[Sequence[object]]]


def _write(answer: _Answer, *, as_csv: bool, as_json: bool) -> None:
    lines, objects, rows = answer
    if not as_csv:
        tell(objects, lines, as_json=as_json)
        return
    write_csv(sys.stdout, rows)


# --- what was spent -------------------------------------------------------------------------------


def lines_of(shown: Statement, made: Report) -> Iterator[str]:
    """Yield a report for people."""
    if not made.lines:
        yield f"No paid calls are recorded{here() if shown.many else ''}."
    else:
        head = [_title(made.by), *(column.title for column in _TABLE)]
        yield table(head, list(map(_cells, (*made.lines, made.total))), right=head[1:])
        for column in _TABLE:
            if column.name.endswith("_usd"):
                *parts, total = (column.value(line) or Decimal(0) for line in (*made.lines, made.total))
                yield from _footnote(column.title, parts, total)
    yield ""
    yield from _summary(shown, made.total)
    yield from _open_lines(made.open, many=shown.many)


def _title(by: str) -> str:
    return by.replace("_", " ").capitalize()


def _summary(shown: Statement, total: ReportLine) -> Iterator[str]:
    """Yield the total in words, and what is not in it."""
    high = None if total.unbounded or shown.incomplete else total.usd + total.high
    wasted = f", including failed or wasted {money(total.wasted)}" if total.wasted else ""
    yield f"Spent:  {with_unpriced(money_between(at_least(total), high), total.unpriced)}{wasted}"
    if total.waste:
        yield "Wasted: " + ", ".join(
            f"{money(at_least(spend))} {words}" + (f" ({count(spend.calls, 'call')})" if spend.calls else "")
            for cause, words in CAUSE_WORDS.items()
            if (spend := total.waste.get(cause)) is not None
        )
    if saved := saved_text(total):
        yield f"Saved:  {saved}"
    if cached := total.tokens.get("cache_read", 0):
        yield f"Cache:  {cached / total.input_tokens:.0%} of all input was read from it".replace("%", " %")
    if total.unpriced:
        yield f"Not priced: {count(total.unpriced, 'call')}; the tokens are known, the price is not"
    for run, usd in shown.imported.items():
        yield f"Imported: {money(usd)} as reported by run {run} before it was imported, not itemised"
    if shown.removed:
        runs = count(len(shown.removed), "run")
        yield f"Removed runs: {money(sum(shown.removed.values(), Decimal(0)))} in {runs}, included above"
    for run, why in shown.unread.items():
        yield f"Not counted: run {run}: {why}"
    if shown.lost:
        yield f"Not counted: {shown.lost}"


def saved_text(spend: Spend) -> str:
    """Return what caching and batches saved, in words; "" where there was neither."""
    parts = []
    if spend.saved_cache > 0:
        parts.append(f"{money(spend.saved_cache)} by caching")
    elif spend.saved_cache < 0:
        parts.append(f"nothing by caching, which cost {money(-spend.saved_cache)} more")
    if spend.saved_batch:
        parts.append(f"{money(spend.saved_batch)} by batches")
    return ", ".join(parts)


def _footnote(name: str, parts: Sequence[Decimal], total: Decimal) -> Iterator[str]:
    """Yield a sentence where the parts, each rounded as shown, do not add up to the rounded total."""

    def rounded(usd: Decimal) -> Decimal:
        return Decimal(money(usd).replace("$", "").replace(",", ""))

    summed = sum(map(rounded, parts), Decimal(0))
    if summed.quantize(_CENT) != rounded(total).quantize(_CENT):
        yield f"{name}: the lines, each rounded, add up to {money(summed)}; the total is rounded once."


def _open_lines(unknown: Sequence[Posting], *, many: bool) -> Iterator[str]:
    if not unknown:
        return
    yield ""
    calls = sum(posting.spend.calls for posting in unknown if posting.row is not None)
    yield f"Not exactly known ({count(calls, 'call')}):" if calls else "Not exactly known:"
    lines = [_try_line(posting, posting.row, many=many) for posting in unknown if posting.row is not None]
    for run, spend in open_runs(unknown).items():
        high = None if spend.unbounded else spend.high
        priced = f"; {count(spend.unpriced, 'call')} not priced" if spend.unpriced else ""
        lines.append(f"  run {run}: {money_between(spend.low, high)}{priced}; `cost {run}` lists the calls")
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"  and {len(lines) - _SHOWN} more; --json has all"


def _try_line(posting: Posting, row: LedgerRow, *, many: bool) -> str:
    usd = "not priced" if row.state == "unpriced" else money_between(row.low, row.high)
    run = f"{posting.origin.run} " if many else ""
    return f"  {run}#{row.seq} {row.place} {row.label}, {when(row.at)}: {usd}" + (f" ({row.note})" if row.note else "")


def _rows(shown: Statement, made: Report) -> Iterator[Sequence[object]]:
    """Yield a report's rows; warn of what single calls are not listed of."""
    yield from report_rows(shown, made)
    if made.by != "call":
        return
    sums = [each for each in shown.postings if each.row is None and each.origin.run not in shown.removed]
    if lost := open_runs(sums):
        warn(f"Calls whose records are lost are not listed: of {', '.join(lost)}.")
    if shown.removed:
        usd = money(sum(shown.removed.values(), Decimal(0)))
        warn(f"Single calls of removed runs are not kept: {usd} in {count(len(shown.removed), 'run')} is not listed.")


# --- at other prices ------------------------------------------------------------------------------


def _repriced_lines(made: Repricing) -> Iterator[str]:
    if not made.lines:
        yield "No paid calls are recorded."
    else:
        head = [_title(made.by), "Calls", "Recorded", "Repriced", "Difference"]
        rows = [[line.key, f"{line.calls:,}" if line.calls else "", money(line.recorded), money(line.repriced),
                 _signed(line.difference)] for line in (*made.lines, made.total)]  # fmt: skip
        yield table(head, rows, right=head[1:])
        yield from _footnote("Recorded", [line.recorded for line in made.lines], made.total.recorded)
        yield from _footnote("Repriced", [line.repriced for line in made.lines], made.total.repriced)
    yield ""
    yield f"Prices: {made.prices}"
    for reason, calls in made.kept.items():
        yield f"As recorded: {count(calls, 'call')} ({reason})"
    yield "Nothing was changed: this only shows what the recorded tokens would cost."


def _signed(usd: Decimal) -> str:
    """Return a difference: +$0.10, -$0.10; "" where there is none."""
    return "" if not usd else ("+" if usd > 0 else "-") + money(abs(usd))


# --- beside the provider's reports ----------------------------------------------------------------


def _reconciled_lines(found: Comparison) -> Iterator[str]:
    made, days = found.made, found.days
    if not made.lines:
        yield f"Neither this store nor the provider has any spend from {days.since} to {days.until}."
    else:
        head = ["Day", "Model", "Recorded", "Reported", "Difference", "Why"]
        rows = [[line.day, line.model, money(line.known), money(line.theirs), _signed(line.difference),
                 "; ".join(reason.text for reason in line.reasons)] for line in (*made.lines, made.total)]  # fmt: skip
        yield table(head, rows, right=head[2:5])
        yield from _footnote("Recorded", [line.known for line in made.lines], made.total.known)
        yield from _footnote("Reported", [line.theirs for line in made.lines], made.total.theirs)
    yield ""
    spend = made.total.ours
    unknown = spend.unbounded or spend.unpriced
    yield f"Recorded here: {money_between(made.total.known, None if unknown else spend.usd + spend.high)}"
    yield f"Reported by the provider: {money(made.total.theirs)} from {days.since} to {days.until} (UTC days)"
    if by_reason := made.by_reason():
        parts = (f"{_signed(usd) or money(usd)} {REASON_WORDS[kind]}" for kind, usd in by_reason.items())
        yield f"Difference: {', '.join(parts)}"
    for row in found.batches:
        known = row.batch or "a batch without a known id"
        amount = "an unknown amount" if row.worst_usd is None else f"at most {money(row.worst_usd)}"
        what = "given up" if row.abandoned_at else "not found yet"
        yield (
            f"Possibly billed: {known} of run {row.run}, {count(row.requests, 'request')} submitted "
            f"{when(row.intended_at)}, {what}: {amount}"
        )
    for run, usd in found.statement.imported.items():
        yield f"Not compared: {money(usd)} as reported by run {run} before it was imported, not itemised"
    for run, why in found.statement.unread.items():
        yield f"Not compared: run {run}: {why}"
