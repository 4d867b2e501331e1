"""What is damaged in a store, run by run: every line, value and head is read and compared. Never writes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from pipeline.errors import PipelineError, RunNotFound, StoreError
from pipeline.records.codec import Record, decode_line
from pipeline.records.fold import Builder, fold
from pipeline.records.kinds import CallStarted, DayReserved, Decision, Gap, RunResumed, RunStarted, StepCompleted
from pipeline.records.lines import LineDamaged, line_seq
from pipeline.store.base import Account, Head, Movable
from pipeline.store.reader import is_sound
from pipeline.store.view import first_problem, records_in

_REFERENCE = re.compile(rb'\$blob\\*":\\*"([0-9a-f]{64})')


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it should be."""

    #: The run or sub-journal; "" for the store as a whole.
    run: str
    #: What it is, a sentence.
    text: str
    #: What was lost is lost or must be looked after; else it is only said: it was mended, or mends itself.
    serious: bool = True


def check(store: Movable, account: Account, run: str = "") -> Iterator[Problem]:
    """Check a store, or one run of it, and return everything that is wrong.

    Raises:
        RunNotFound: There is no such run.
        StoreError: The store cannot be read.
    """
    found, spent = False, dict[str, Decimal]()
    going = set(store.leftovers())
    for head in store.heads():
        if head.run_id in going or (run and head.run_id != run):
            continue
        found = True
        yield from check_run(store, head)
        if not run:
            _add_days(store, head.run_id, spent)
    if run:
        if not found:
            raise RunNotFound(f"There is no run {run}.", hint="`./pipeline.sh list` shows the runs there are.", run=run)
        return
    for name in sorted(going):
        yield Problem(name, "It was partly created or removed; `cleanup` removes it once it is a day old.", False)
    for name in store.unlisted():
        yield from check_run(store, Head(name, {}))
    yield from _account(account)
    yield from _lost_days(account, spent)


def _add_days(store: Movable, run: str, spent: dict[str, Decimal]) -> None:
    """Add what a run spent on the days of which it reserved a part on the account."""
    builder, days = Builder(run), set[str]()
    try:
        for record in records_in(store.read(run)):
            builder.apply(record)
            if isinstance(record.fact, DayReserved):
                days.add(record.fact.day)
    except PipelineError:
        return
    for key, spend in builder.state.spend.items():
        if key.day in days:
            spent[key.day] = spent.get(key.day, Decimal(0)) + spend.usd + spend.low


def _lost_days(account: Account, spent: Mapping[str, Decimal]) -> Iterator[Problem]:
    """Yield days of which the account knows nothing, though runs did spend: reservations, or all of it, were lost."""
    for day, usd in sorted(spent.items()):
        with contextlib.suppress(PipelineError, ValueError):
            if usd and not account.total(date.fromisoformat(day)):
                text = (
                    f"The account has no entry for {day}, although runs spent ${usd:.4f}: it was lost. The day's limit "
                    "counts what the runs report; the cost of removed runs may be lost too."
                )
                yield Problem("", text, False)


def _account(account: Account) -> Iterator[Problem]:
    said: list[str] = []
    try:
        said += account.flaws()
    except StoreError as error:
        said.append(f"{error.message} {error.hint}".rstrip())
    except (PipelineError, LookupError, TypeError, ValueError) as error:
        said.append(f"The account cannot be read ({type(error).__name__}: {error}).")
    yield from (Problem("", text) for text in dict.fromkeys(said))


def check_run(store: Movable, head: Head) -> Iterator[Problem]:
    """Check one run and its sub-journals, and return everything that is wrong."""
    run = head.run_id
    try:
        names = [run, *(f"{run}/{path}" for path in store.parts(run))]
        stored = set(store.blobs(run))
    except PipelineError as error:
        yield Problem(run, error.message)
        return
    wanted: set[str] = set()
    for name in names:
        yield from (Problem(name, text) for text in store.flaws(name))
        yield from _journal(store, name, head if name == run else None, wanted)
    yield from _values(store, run, stored, wanted)


def _journal(store: Movable, name: str, head: Head | None, wanted: set[str]) -> Iterator[Problem]:
    try:
        lines = list(store.read(name))
    except PipelineError as error:
        yield Problem(name, error.message)
        return
    if head is not None and (problem := first_problem(lines[0] if lines else None)):
        yield Problem(name, f"It cannot be resumed. {problem.message}")
    elif head is not None and head.corrupt:
        yield Problem(name, head.corrupt)
    yield from (Problem(name, text) for text in _senseless(lines))
    yield from _missing(name, lines)
    for line in lines:
        wanted.update(values_of(line))
    if head is not None and not head.corrupt:
        yield from _told(store, name, head, lines)


def _senseless(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        try:
            decode_line(line, whole=True)
        except LineDamaged:
            yield f"Record {line_seq(line)} is intact, but this version cannot read it."


def _missing(name: str, lines: list[bytes]) -> Iterator[Problem]:
    """Yield records that are not there: unsaid, or said by a gap."""
    last = 0
    for line in lines:
        seq = line_seq(line)
        if seq > last + 1:
            yield Problem(name, f"{_range(last + 1, seq - 1)} missing from the journal; the next resume records that.")
        last = seq
        gap = _fact(line)
        if isinstance(gap, Gap):
            last = max(last, gap.last)
            kept = f"; {gap.kept} keeps what was left" if gap.kept else ""
            yield Problem(name, f"{_range(gap.first, max(gap.first, gap.last))} lost: {gap.reason}{kept}.", False)


def _told(store: Movable, run: str, head: Head, lines: list[bytes]) -> Iterator[Problem]:
    """Return what the head says otherwise than the records."""
    lost = head.document.get("lost")
    seen = head.document.get("seq")
    last = line_seq(lines[-1]) if lines else 0
    if lost:
        yield Problem(run, f"{lost} Its head knew them.")
    elif isinstance(seen, int) and seen > last:
        yield Problem(run, f"{_range(last + 1, seen)} missing from the journal, although its head lists them.")
    elif not head.owned and seen == last and head.document.get("status") != fold(run, records_in(lines)).status:
        yield Problem(run, "Its head shows a different status from its records.")


def _values(store: Movable, run: str, stored: set[str], wanted: set[str]) -> Iterator[Problem]:
    for blob in sorted(stored | wanted):
        if not is_sound(store, run, blob):
            what = "damaged" if blob in stored else "missing"
            needs = "a record refers to it" if blob in wanted else "no record refers to it"
            yield Problem(run, f"The value {blob} is {what}; {needs}.", blob in wanted)


def values_of(line: bytes) -> Iterator[str]:
    """Return the hashes of the values that a record refers to."""
    yield from (found.decode() for found in _REFERENCE.findall(line))
    fact = _fact(line)
    named = fact.request if isinstance(fact, CallStarted) else fact.edit if isinstance(fact, Decision) else ""
    if re.fullmatch("[0-9a-f]{64}", named):
        yield named
    if isinstance(fact, (RunStarted, RunResumed)):
        yield from (fact.pins or {}).values()
    if isinstance(fact, StepCompleted):
        yield from (fact.artifacts or {}).values()


def _fact(line: bytes) -> object:
    try:
        record: Record = decode_line(line, whole=True)
    except LineDamaged:
        return None
    return record.fact


def _range(first: int, last: int) -> str:
    return f"Record {first} is" if first == last else f"Records {first} to {last} are"
