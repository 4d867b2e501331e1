"""`cost`: what was spent on what, from the ledger; wasted spend and open intervals apart."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import click

from pipeline.cli.options import RunName, in_its_folder, json_option, open_account, open_store, own, store_option
from pipeline.cli.reading import head_of, state_of
from pipeline.cli.text import count, money, money_between, say, say_json, table, when
from pipeline.cost.ledger import COLUMNS, Row, rows
from pipeline.cost.report import GROUPS, Line, Report, possibly_spent, report
from pipeline.errors import StoreError
from pipeline.records.charge import TOKEN_KINDS
from pipeline.store.base import Head, Store
from pipeline.store.reading import kept_spend, records, resolve

#: Columns of `--csv` for sums; of `--by call`, run_id and the ledger's columns. New ones are added at the end.
SUM_COLUMNS = (
    "key", "calls", *TOKEN_KINDS, "cost_usd", "wasted_usd", "open_low_usd", "open_high_usd", "unpriced_calls",
)  # fmt: skip
#: Open intervals a screen lists; --json and --csv have all.
_SHOWN = 20


@dataclass(slots=True)
class Books:
    """What was read: ledger rows by run, imported totals, sums of removed runs."""

    rows: list[tuple[str, Row]] = field(default_factory=list)
    imported: dict[str, Decimal] = field(default_factory=dict)
    removed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Runs whose calls nobody can read any more, and why.
    unread: dict[str, str] = field(default_factory=dict)


@click.command("cost")
@click.argument("run", type=RunName(), required=False, metavar="[RUN]")
@click.option("--by", type=click.Choice(GROUPS), default="step", show_default=True, envvar=own("cost", "by"),
              show_envvar=True, help="What to sum by.")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, envvar=own("cost", "csv"), show_envvar=True,
              help="CSV with stable columns.")  # fmt: skip
@json_option
@store_option
@in_its_folder
def cost(run: str | None, by: str, as_csv: bool, as_json: bool, store: str | None) -> None:
    """Show what was spent, by step, item, call, model or token kind; of all runs without RUN.

    Failed and wasted spend is in the total and stands apart beside it; calls whose cost is only known
    between two bounds are listed.
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json cannot both be written.")
    place = open_store(store)
    books = read(place, head_of(place, resolve(place, run))) if run else read_all(place, store)
    made = report((row for _, row in books.rows), by)
    if as_csv:
        write_csv(books, made)
    elif as_json:
        for line in json_lines(books, made):
            say_json(line)
    else:
        for text in lines_of(books, made):
            say(text)


def read(store: Store, head: Head) -> Books:
    """The books of one run; a run that cannot be resumed has them all the same."""
    run = head.run_id
    books = Books(rows=[(run, row) for row in rows(records(store, run))])
    if usd := Decimal(str(state_of(store, head).reported.get("cost_usd") or 0)):
        books.imported[run] = usd
    return books


def read_all(store: Store, url: str | None) -> Books:
    """The books of every run of the store, and what removed ones had cost."""
    books = Books(removed=kept_spend(store, open_account(url)))
    for head in store.heads():
        try:
            found = read(store, head)
        except StoreError as error:
            books.unread[head.run_id] = error.message
            continue
        books.rows += found.rows
        books.imported |= found.imported
    return books


def lines_of(books: Books, made: Report) -> Iterator[str]:
    """The report for people."""
    if not made.lines:
        yield "No paid calls are recorded."
    else:
        cells = [_cells(line) for line in made.lines]
        head = [made.by.replace("_", " ").capitalize(), "Calls", "Input", "Output", "Cost", "Wasted", "Possibly more"]
        yield table(head, [*cells, _cells(made.total)], right=head[1:])
    total = made.total
    low, high = possibly_spent(total)
    yield ""
    yield f"Spent:  {money_between(low, high)}, of it failed or wasted {money(total.wasted)}"
    if total.unpriced:
        yield f"Not priced: {count(total.unpriced, 'call')}; the tokens are known, the price is not"
    for run, usd in books.imported.items():
        yield f"Imported: {money(usd)} as reported by run {run} before it was taken over, not itemised"
    if books.removed:
        yield f"Removed runs: {money(removed_usd(books.removed))} in {count(len(books.removed), 'run')}"
    for run, why in books.unread.items():
        yield f"Not counted: run {run}: {why}"
    yield from _open_lines(made.open_rows)


def _cells(line: Line) -> list[str]:
    more = "no bound" if line.unbounded else money(line.high) if line.high else ""
    return [line.key, f"{line.calls:,}", f"{line.input_tokens:,}", f"{line.output_tokens:,}", money(line.usd),
            money(line.wasted) if line.wasted else "", more]  # fmt: skip


def _open_lines(open_rows: Sequence[Row]) -> Iterator[str]:
    if not open_rows:
        return
    yield ""
    yield f"Not exactly known ({count(len(open_rows), 'call')}):"
    for row in open_rows[:_SHOWN]:
        cost = "not priced" if row.state == "unpriced" else money_between(row.low, row.high)
        yield f"  #{row.seq} {row.place} {row.label}, {when(row.at)}: {cost}" + (f" ({row.note})" if row.note else "")
    if len(open_rows) > _SHOWN:
        yield f"  and {len(open_rows) - _SHOWN} more; --by call --json has all"


def json_lines(books: Books, made: Report) -> Iterator[dict[str, Any]]:
    """Lines, then the open intervals, then what is beside the ledger, then the total."""
    if made.by == "call":
        yield from ({"type": "call", "run_id": run, **row.to_json()} for run, row in books.rows)
    else:
        yield from ({"type": "line", "by": made.by, **line.to_json()} for line in made.lines)
        yield from ({"type": "open", "run_id": run, **row.to_json()} for run, row in books.rows if row.state != "exact")
    yield from ({"type": "imported", "run_id": run, "cost_usd": usd} for run, usd in books.imported.items())
    if books.removed:
        yield {"type": "removed", "runs": len(books.removed), "cost_usd": removed_usd(books.removed)}
    yield from ({"type": "unread", "run_id": run, "error": why} for run, why in books.unread.items())
    low, high = possibly_spent(made.total)
    yield {"type": "total", **made.total.to_json(), "at_least_usd": low, "at_most_usd": high}


def write_csv(books: Books, made: Report) -> None:
    """Sums, or with `--by call` the ledger itself."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    if made.by == "call":
        out.writerow(["run_id", *COLUMNS])
        out.writerows([run, *row.to_csv()] for run, row in books.rows)
        return
    out.writerow(SUM_COLUMNS)
    for line in [*made.lines, made.total]:
        tokens = [line.tokens.get(kind, 0) for kind in TOKEN_KINDS]
        high = "" if line.unbounded else f"{line.high:f}"
        out.writerow([line.key, line.calls, *tokens, f"{line.usd:f}", f"{line.wasted:f}", f"{line.low:f}", high,
                      line.unpriced])  # fmt: skip


def removed_usd(kept: Mapping[str, Mapping[str, Any]]) -> Decimal:
    """What removed runs had cost, as kept on the account."""
    return sum((Decimal(str(sums.get("usd") or 0)) for sums in kept.values()), Decimal(0))
