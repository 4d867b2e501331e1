"""The books of one run or of a whole store: from heads where their sums tell enough, else from the ledgers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pipeline.cli.options import open_account, open_list, open_store
from pipeline.cli.reading import state_of
from pipeline.cli.summary import LANGGRAPH, row_of
from pipeline.cost.report import Origin, Posting, of_records, of_removed, of_sums, within
from pipeline.errors import StoreError
from pipeline.records.documents import SCHEMA_VERSION, spend_rows
from pipeline.store.base import Head, Store
from pipeline.store.emergency import of_lost_runs
from pipeline.store.reading import all_records, kept_spend, load

#: What reading the sums of a head or of the account may raise where they make no sense.
SENSELESS = (KeyError, TypeError, ValueError, ArithmeticError, AttributeError)


@dataclass(slots=True)
class Books:
    """What was read."""

    postings: list[Posting] = field(default_factory=list)
    #: Totals of imported checkpoints by run, in no posting: they are not itemised.
    imported: dict[str, Decimal] = field(default_factory=dict)
    #: What removed runs had cost at least; their postings are among the others.
    removed: dict[str, Decimal] = field(default_factory=dict)
    #: Runs that nobody can read, and why.
    unread: dict[str, str] = field(default_factory=dict)
    #: What the store's account has lost for good; "" if nothing is known to be.
    lost: str = ""
    #: They are of a whole store.
    many: bool = False

    @property
    def incomplete(self) -> bool:
        """Return whether some of what was spent is not counted: then no sum has an upper bound."""
        return bool(self.lost or (self.many and self.unread))


@dataclass(frozen=True, slots=True)
class Range:
    """UTC days, both in it; "": no end."""

    since: str = ""
    until: str = ""

    def of(self, postings: Iterable[Posting]) -> list[Posting]:
        return list(within(postings, self.since, self.until))


WHOLE = Range()


def read(store: Store, head: Head, days: Range = WHOLE) -> Books:
    """The books of one run, try by try; a run that cannot be resumed has them all the same."""
    lost = _lost_journal(head.document)
    ledger = _of_head(store, head) if lost else of_records(all_records(store, head.run_id), origin_of(head))
    books = Books(days.of(ledger))
    _note_imported(books, head, _imported(store, head))
    if head.document.get("pipeline") == LANGGRAPH:
        books.unread[head.run_id] = "a LangGraph graph makes its calls itself."
    return books


def read_all(url: str | None, days: Range = WHOLE, *, tries: bool = False) -> Books:
    """The books of every run of a store, and what the account keeps of removed ones.

    Args:
        tries: Call by call, from the journals; else from the heads alone, as fresh as `list` sees them.
    """
    books, store = Books(many=True), open_store(url)
    known = set()
    for head in open_list(url).heads():
        known.add(head.run_id)
        try:
            if tries:
                found = read(store, head, days)
                books.postings += found.postings
                books.imported |= found.imported
            else:
                books.postings += days.of(_of_head(store, head))
                _note_imported(books, head, _imported(store, head))
        except StoreError as error:
            books.unread[head.run_id] = error.message
        except SENSELESS as error:
            books.unread[head.run_id] = f"Its sums make no sense ({type(error).__name__}: {error})."
    account = open_account(url)
    try:
        for run, sums in kept_spend(store, account).items():
            _take_removed(books, run, sums, days)
        books.lost = account.lost()
    except StoreError as error:
        # What is there is told all the same.
        books.lost = f"{error.message} What removed runs had cost is not known."
    root = getattr(store, "root", None)
    lost = of_lost_runs(os.path.realpath(root) if root else "", str(getattr(store, "url", "")), known)
    for run, (file, whole) in lost.items():
        way = f"`recover {run} {file}` makes it again from its records." if whole else f"{file} holds its last records."
        books.unread[run] = f"It is gone from the store. {way}"
    return books


def origin_of(head: Head) -> Origin:
    """A run in the words of `list`."""
    row = row_of(head)
    return Origin(row.run_id, row.subject, row.level, row.shown_status)


def _of_head(store: Store, head: Head) -> Iterator[Posting]:
    document = head.document
    summed = document.get("spend") or ()
    if head.corrupt or document.get("tasks_out") or (summed and _older(document.get("schema_version"))):
        # No head, one of a version whose sums told less, or one that cannot know what its workers spend now.
        summed = spend_rows(load(store, head.run_id), str)
    elif _lost_journal(document):
        # What followed the last head is not known.
        summed = [*summed, {"calls": 0, "unbounded": 1, "outcome": "open", "day": str(document.get("updated_at"))[:10]}]
    return of_sums(summed, origin_of(head))


def _lost_journal(document: Mapping[str, Any]) -> bool:
    """Whether a head has no journal, and still tells what the calls of the run had cost."""
    return bool(document.get("imported") and document.get("spend"))


def _older(version: Any) -> bool:
    try:
        return tuple(map(int, str(version).split("."))) < tuple(map(int, SCHEMA_VERSION.split(".")))
    except ValueError:
        return True


def _imported(store: Store, head: Head) -> Any:
    if _lost_journal(head.document):
        return None
    if head.corrupt or head.document.get("imported"):
        return state_of(store, head).reported.get("cost_usd")
    return head.document.get("imported_cost")


def _note_imported(books: Books, head: Head, usd: Any) -> None:
    if amount := Decimal(str(usd or 0)):
        books.imported[head.run_id] = amount


def _take_removed(books: Books, run: str, sums: Mapping[str, Any], days: Range) -> None:
    try:
        found = days.of(of_removed(run, sums))
        imported = Decimal(str(sums.get("imported_usd") or 0))
    except SENSELESS as error:
        books.unread[run] = f"What the account keeps of it makes no sense ({type(error).__name__}: {error})."
        return
    books.postings += found
    if found:
        books.removed[run] = sum((posting.spend.usd + posting.spend.low for posting in found), Decimal(0))
    if imported:
        books.imported[run] = imported
