"""Runs from one store to another, byte for byte: each appears there whole, or goes on where an earlier copy ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import CheckpointCorrupt, PackageMissing, PipelineError, RunNotFound, StoreError, WriteFailed
from pipeline.records.lines import line_seq
from pipeline.store.base import Account, Head, Journal, Movable
from pipeline.store.integrity import values_of
from pipeline.store.reader import is_sound
from pipeline.store.recovery import text_of
from pipeline.store.view import first_problem, fresh_document, unrecorded_gaps

#: Lines that are appended at once where a run is there already.
_LINES = 256
_ZERO = Decimal(0)
#: USD by the labels of runs; the same by UTC day and labels.
Spend = dict[str, Decimal]
_DaySpend = dict[tuple[str, str], Decimal]


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of one run."""

    run: str
    #: Records that were not there before, those of sub-journals included.
    records: int = 0
    #: Values that were not there before.
    values: int = 0
    #: A process is still running it: what comes later is not in the copy.
    owned: bool = False
    #: Why it was not copied, or only in part; "" if it was.
    problem: str = ""
    #: What is there goes on beyond what was to be copied: nothing of it is missing there.
    further: bool = False
    #: What is there went another way from some record on; both are whole.
    parted: bool = False


class _Parted(StoreError):
    """The two runs of a name are no beginning of each other."""


def copy(
    source: Movable, target: Movable, clock: Clock, run: str = "", *, account: Account | None = None
) -> Iterator[Copied]:
    """Copy all runs, oldest first, or one; each is reported once it is durable.

    Of a single run the values that are there are read too, and what is damaged is brought anew.

    Args:
        account: The target's: what a run spent is counted there just before it comes, so that a copy which is cut
            off counts once more the one run that it was about, and none too little. Of all runs only what they spent
            today: `copy_account` brings the days before.

    Raises:
        RunNotFound: There is no such run.
        StoreError: A store cannot be read at all.
    """
    heads = [head for head in source.heads() if not run or head.run_id == run]
    if run and not heads:
        raise RunNotFound(f"There is no run {run}.", hint="`./pipeline.sh list` shows the runs there are.", run=run)
    now = clock.now().astimezone(UTC)
    comes = {} if account is None else _arriving(heads, target, None if run else now.date())
    for head in reversed(heads):
        try:
            coming = (lambda: None) if account is None else partial(_count_all, account, comes[head.run_id], now)
            yield _copy_run(source, target, head, clock, coming, mend=bool(run))
        except (PackageMissing, WriteFailed):
            # The target cannot be used, which is no damage of a run.
            raise
        except PipelineError as error:
            parted = isinstance(error, _Parted)
            yield Copied(head.run_id, owned=head.owned, problem=error.message, parted=parted)


def arriving(source: Movable, target: Movable, day: date) -> Spend:
    """Return what the runs that a copy would bring spent on a UTC day, at worst, beyond what is there of them."""
    come = _arriving(source.heads(), target, day).values()
    return _sum({labels: usd for (_, labels), usd in spend.items()} for spend in come)


def _arriving(heads: Iterable[Head], target: Movable, day: date | None) -> dict[str, _DaySpend]:
    """Return what each run that a copy brings spent on a day (None: on each) beyond what is there of it."""
    there = {head.run_id: _spend_of(head.document, day) for head in target.heads()}
    come = {head.run_id: _spend_of(head.document, day) for head in heads}
    return {
        name: {key: max(usd - there.get(name, {}).get(key, _ZERO), _ZERO) for key, usd in spend.items()}
        for name, spend in come.items()
    }


def _spend_of(document: Mapping[str, Any], day: date | None) -> _DaySpend:
    """Return what a run spent on a day, by the `spend` of its head, or of what is kept of it once it is deleted."""
    found: _DaySpend = {}
    for row in document.get("spend") or ():
        if row.get("day") and (day is None or row["day"] == day.isoformat()):
            key = str(row["day"]), str(row.get("labels") or "")
            usd = sum((Decimal(str(row.get(name) or 0)) for name in ("usd", "high")), _ZERO)
            found[key] = found.get(key, _ZERO) + usd
    return found


def _sum(each: Iterable[Spend]) -> Spend:
    found: Spend = {}
    for spend in each:
        for labels, usd in spend.items():
            found[labels] = found.get(labels, _ZERO) + usd
    return found


def copy_account(source: Account, target: Account, clock: Clock, arriving: Spend) -> int:
    """Bring over limits, what deleted runs cost and what was spent on each day, so that limits hold there too.

    Before the runs themselves, so that nothing is ever counted too little. A limit that is set there stays as it is;
    of each day and label counts what is more, here or there.

    Args:
        arriving: What the runs that come spent today; it is counted as each of them comes.

    Returns how many deleted runs were new there.
    """
    there, now = target.kept(), clock.now().astimezone(UTC)
    new = {run: sums for run, sums in source.kept().items() if there.get(run) != sums}
    # The account of the source may have been lost, and what was kept of its deleted runs restored.
    kept = (_spend_of(sums, now.date()) for sums in new.values())
    deleted = _sum({labels: usd for (_, labels), usd in spend.items()} for spend in kept)
    _bring_days(source, target, now, deleted, arriving)
    set_there = {limit.key for limit in target.limits()}
    for limit in source.limits():
        if limit.key not in set_there:
            target.set_limit(limit)
    for run, sums in new.items():
        target.keep(run, sums)
    return len(new)


def _bring_days(source: Account, target: Account, now: datetime, deleted: Spend, arriving: Spend) -> None:
    """Count on each day what the source has of it beyond what is there, by labels.

    Args:
        deleted: Of today at least so much, by the runs that were deleted.
        arriving: Of today this comes with the runs.
    """
    here, there, today = source.days(), target.days(), now.date().isoformat()
    for day in {**here, today: {}}:
        known = there.get(day, {})
        more = {
            labels: tally.total - (known[labels].total if labels in known else _ZERO)
            for labels, tally in here.get(day, {}).items()
        }
        if day == today:
            more = {labels: max(deleted.get(labels, _ZERO), more.get(labels, _ZERO) - arriving.get(labels, _ZERO))
                    for labels in {**deleted, **more}}  # fmt: skip
        _count_all(target, {(day, labels): usd for labels, usd in more.items()}, now)


def _count_all(target: Account, spend: _DaySpend, now: datetime) -> None:
    for (day, labels), usd in spend.items():
        if usd > 0:
            at = datetime.combine(date.fromisoformat(day), now.timetz())
            name = target.reserve("store copy", usd, at, None, labels)
            assert name is not None
            target.settle(name, usd)


def _copy_run(
    source: Movable, target: Movable, head: Head, clock: Clock, coming: Callable[[], None], *, mend: bool
) -> Copied:
    """Copy a run; `coming` is called before anything of it is there that was not."""
    run = head.run_id
    lines = list(source.read(run))
    if problem := first_problem(lines[0] if lines else None):
        raise StoreError(f"It cannot be copied. {problem.message}", code="run_not_copied")
    before = _there(target, run)
    there = [] if before is None else _sound(target, run, mend=mend)
    values = _MissingValues(source, run, there, _wanted(source, run, lines))
    if before is None:
        coming()
        journal = _made(target, run, lines, values, clock)
    else:
        _same(run, before, lines)
        if len(before) >= len(lines) and not values.names and _parts_there(source, target, run):
            lacks = _joined_words(_holes(lines), values.problem)
            return Copied(run, owned=head.owned, problem=lacks, further=len(before) > len(lines))
        coming()
        journal = target.open(run)
    try:
        if before is not None:
            for value in values:
                journal.put_blob(value)
            _append(journal, lines[len(before) :])
        records = max(len(lines) - len(before or ()), 0)
        records += sum(_copy_part(source, target, f"{run}/{path}") for path in source.parts(run))
        longer = max(lines, before or [], key=len)
        # Where records are lost, the first store's head may be all that tells what they had cost.
        journal.write_head(fresh_document(run, longer, journal.size, head.document, journal.get_blob), True)
    finally:
        journal.close()
    left_out = _joined_words(_holes(lines), values.problem)
    return Copied(run, records, len(values.names) - len(values.damaged), head.owned, left_out)


def _joined_words(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _wanted(source: Movable, run: str, lines: list[bytes]) -> set[str]:
    """Return the hashes of the values that the records of a run and of its sub-journals refer to."""
    parts = (line for path in source.parts(run) for line in source.read(f"{run}/{path}"))
    return {name for line in (*lines, *parts) for name in values_of(line)}


def _sound(target: Movable, run: str, *, mend: bool) -> list[str]:
    """Return the values that need not be brought."""
    there = target.blobs(run)
    return [blob for blob in there if is_sound(target, run, blob)] if mend else there


def _made(target: Movable, run: str, lines: list[bytes], values: Iterable[bytes], clock: Clock) -> Journal:
    try:
        return target.create_named(run, text_of(lines), values, at=clock.now())
    except StoreError:
        if _there(target, run) is None:
            raise
        raise StoreError(
            "Another copy has just made it there; the same command again brings what is missing.",
            code="run_not_copied",
            run=run,
        ) from None


def _holes(lines: list[bytes]) -> str:
    """Return which records are missing at the source without a gap that says so; "" if none are."""
    found = [f"{gap.first} to {gap.last}" for gap in unrecorded_gaps(lines)]
    return f"Records {', '.join(found)} cannot be read and were left out." if found else ""


class _MissingValues:
    """The values of a run that are not there yet, read one after the other; what is damaged is left out."""

    def __init__(self, source: Movable, run: str, there: Iterable[str], wanted: set[str]) -> None:
        held = set(source.blobs(run))
        self.names = sorted(held.difference(there))
        #: What records refer to and neither store has.
        self.missing = sorted(wanted.difference(held, there))
        self.damaged: list[str] = []
        self._source = source
        self._run = run

    def __iter__(self) -> Iterator[bytes]:
        for name in self.names:
            try:
                yield self._source.get_blob(self._run, name)
            except CheckpointCorrupt:
                self.damaged.append(name)

    @property
    def problem(self) -> str:
        """Return what could not be copied; "" if all could."""
        said = (("damaged and were left out", self.damaged), ("missing, and records refer to them", self.missing))
        return _joined_words(*(f"These values are {how}: {', '.join(names)}." for how, names in said if names))


def _copy_part(source: Movable, target: Movable, name: str) -> int:
    lines = list(source.read(name))
    before = _there(target, name) or []
    _same(name, before, lines)
    if len(before) >= len(lines):
        return 0
    journal = target.open(name)
    try:
        _append(journal, lines[len(before) :])
    finally:
        journal.close()
    return len(lines) - len(before)


def _parts_there(source: Movable, target: Movable, run: str) -> bool:
    """Return whether nothing of the source's sub-journals is missing at the target."""
    names = [f"{run}/{path}" for path in source.parts(run)]
    pairs = ((list(source.read(name)), _there(target, name)) for name in names)
    return all(before is not None and before[: len(lines)] == lines for lines, before in pairs)


def _there(target: Movable, name: str) -> list[bytes] | None:
    try:
        return list(target.read(name))
    except RunNotFound:
        return None


def _same(run: str, before: list[bytes], lines: list[bytes]) -> None:
    """Refuse to mix two runs: what is there has to be a beginning of what is to be copied, or to continue it.

    Raises:
        StoreError: It is neither.
    """
    differ = next((line_seq(a) for a, b in zip(lines, before, strict=False) if a != b), 0)
    if differ == 1:
        raise _Parted(
            "The target has a different run of that name: record 1 differs. Neither was changed.",
            run=run,
            code="runs_differ",
        )
    if differ:
        raise _Parted(
            f"The run of that name there has diverged: record {differ} differs; earlier records are the same. "
            "Neither was changed.", run=run, code="runs_differ",
        )  # fmt: skip


def _append(journal: Journal, lines: list[bytes]) -> None:
    for begin in range(0, len(lines), _LINES):
        some = [line + b"\n" for line in lines[begin : begin + _LINES]]
        journal.append(line_seq(some[0]), some)
