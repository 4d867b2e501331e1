"""The runs of a store as the desk keeps them: rows for filters and counts, and the state of those that are looked at.

The newest runs are looked at by every request; all of them again at times, by a thread beside it. A row that may
change without a record (its process may die) is read afresh whenever it is shown, and so is one that this desk changed.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from pipeline.app.run_list import RunRow, row_of, run_word
from pipeline.app.run_trail import Trail
from pipeline.app.stores import head_of, state_of
from pipeline.clock import Clock
from pipeline.errors import PipelineError, RunNotFound
from pipeline.records.codec import Record
from pipeline.records.documents import head_document
from pipeline.records.fold import Builder
from pipeline.records.run import RunState
from pipeline.records.statuses import IN_PROGRESS
from pipeline.store.base import Head, Store
from pipeline.store.names import older
from pipeline.store.owner import seen_now
from pipeline.store.reader import records
from pipeline.store.view import pinned_nodes, records_in

#: Runs that are kept, the newest; about 2 kB each.
MOST = 50_000
#: Runs that every request looks at: those of a page, and one that tells whether there are more.
_NEWEST = 51
#: All runs are looked at again after so many seconds, or so many times what it took.
_SECONDS, _TIMES = 15.0, 20
#: Seconds in which the page that asked is answered first.
_LATER = 0.2


class Facets(NamedTuple):
    """Hold what runs are filtered by."""

    run: str
    #: All that a text is looked for in, in small letters.
    text: str
    status: str
    subject: str
    level: str
    model: str
    day: str


#: Facets that runs are counted by.
COUNTED = ("status", "subject", "level", "model", "day")


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted; "" where it does not matter."""

    q: str = ""
    status: str = ""
    subject: str = ""
    level: str = ""
    model: str = ""
    #: The UTC day that they began on, or later.
    day: str = ""

    def tests(self) -> Mapping[str, Callable[[Facets], bool]]:
        """Return facet → whether a run has what is asked of it; only of those that are asked, the quick ones first."""
        words, day = self.q.lower().split(), self.day
        found: dict[str, Callable[[Facets], bool]] = {}
        for place, name in enumerate(("status", "subject", "level", "model"), Facets._fields.index("status")):
            if wanted := getattr(self, name):
                found[name] = lambda facets, place=place, wanted=wanted: facets[place] == wanted  # type: ignore[misc]
        if day:
            found["day"] = lambda facets: facets.day >= day
        if len(words) == 1:
            found["q"] = lambda facets: words[0] in facets.text
        elif words:
            found["q"] = lambda facets: all(word in facets.text for word in words)
        return found


def word_of(row: RunRow) -> str:
    """Return how a run stands, in the word that pages show."""
    # A document of the original system says no more than in_progress.
    return run_word(row.status, row.status_detail, gone=row.gone or not (row.status_detail or row.owned))


def facets_of(row: RunRow) -> Facets:
    """Return what a run is found by."""
    text = " ".join((row.run_id, row.pipeline, row.subject, row.level, row.author, row.target, row.parent, row.error))
    return Facets(
        row.run_id, text.lower().replace("_", " ") + f" {row.run_id}", word_of(row), row.subject, row.level, row.author,
        row.started_at[:10],
    )  # fmt: skip


class RunIndex:
    """Rows of a store's runs; any number of threads."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        #: Newest first.
        self._rows: dict[str, RunRow] = {}
        self._facets: list[Facets] | None = None
        #: All runs were looked at once.
        self._seen = threading.Event()
        #: The first look at all has ended, be it with an error.
        self._looked = threading.Event()
        #: When that may be done again; whether it is being done.
        self._due, self._sweeping = 0.0, False
        #: Runs that were removed, and rows that changed, while all are being looked at.
        self._removed: set[str] = set()
        self._changed: dict[str, RunRow] = {}
        #: Why the first look at all runs failed.
        self._refused: PipelineError | None = None

    @property
    def full(self) -> bool:
        """Return whether there may be older runs, which are listed and not found by filters."""
        return len(self._rows) >= MOST

    @property
    def seen(self) -> bool:
        """Return whether all runs were looked at."""
        return self._seen.is_set()

    def newest(self) -> list[RunRow]:
        """Look at the newest runs, and have all of them looked at where that is due; the rows of the newest."""
        fresh: dict[str, RunRow] = {}
        for head in self._store.heads():
            known = head.run_id in self._rows
            fresh[head.run_id] = row_of(head)
            if len(fresh) >= _NEWEST and (known or not self.seen):
                self._renew(fresh, head.run_id)
                self.look_at_all(_LATER)
                break
        else:
            # These are all.
            self._renew(fresh, "")
            self._seen.set()
            self._looked.set()
        return list(fresh.values())[:_NEWEST]

    def _renew(self, fresh: Mapping[str, RunRow], last: str) -> None:
        """Put rows in front; what is newer than `last` ("": than all) and not among them was removed."""
        if last and not self.seen:
            return
        with self._lock:
            names = list(self._rows)
            rest = names[names.index(last) + 1 :] if last in self._rows else []
            front = names[: len(names) - len(rest)]
            if front != list(fresh) or any(self._rows[name] != row for name, row in fresh.items()):
                merged = {**fresh, **{name: self._rows[name] for name in rest}}
                self._rows, self._facets = dict(islice(merged.items(), MOST)), None

    def page(self, after: str, number: int) -> list[RunRow]:
        """Return rows of the runs behind one, in the store's own order, without any filter."""
        heads = self._store.heads(start=after)
        found = [row_of(head) for head in islice(heads, number + 1) if head.run_id != after]
        return found[:number]

    def look(self, asked: RunFilter) -> tuple[list[str], dict[str, Counter[str]]]:
        """Return the ids of the runs that are asked for, newest first; and facet → value → how many runs have it.

        A facet's runs are counted among those that all other filters leave.
        """
        tests = asked.tests()
        left: dict[str, list[Facets]] = {"": [], **{name: [] for name in tests}}
        for facets in self._all():
            missed = ""
            for name, test in tests.items():
                if not test(facets):
                    if missed:
                        break
                    missed = name
            else:
                left[missed].append(facets)
        counts = {}
        for name in COUNTED:
            place = Facets._fields.index(name)
            counts[name] = Counter([facets[place] for facets in (*left[""], *left.get(name, ()))])
        return [facets.run for facets in left[""]], counts

    def rows(self, names: Sequence[str], asked: RunFilter, number: int) -> list[RunRow]:
        """Return the first rows of these runs that are still as asked; a run that may have changed is read again."""
        tests, found = list(asked.tests().values()), []
        for row in self._fresh(names):
            facets = facets_of(row)
            if all(test(facets) for test in tests):
                found.append(row)
                if len(found) == number:
                    break
        return found

    def _fresh(self, names: Iterable[str]) -> Iterator[RunRow]:
        for name in names:
            row = self._rows.get(name)
            if row is None or row.owned:
                try:
                    row = row_of(head_of(self._store, name))
                except RunNotFound:
                    self.forget(name)
                    continue
                self._put(row)
            yield row

    def _put(self, row: RunRow) -> None:
        with self._lock:
            if row.run_id in self._rows and self._rows[row.run_id] != row:
                self._rows[row.run_id], self._facets = row, None
                self._changed[row.run_id] = row

    def forget(self, run: str) -> None:
        """Drop a run that was removed."""
        with self._lock:
            self._removed.add(run)
            if self._rows.pop(run, None) is not None:
                self._facets = None

    def touch(self, run: str) -> None:
        """Read a run again that was just changed."""
        self._put(row_of(head_of(self._store, run)))

    def _all(self) -> list[Facets]:
        """Return the facets of all runs; the first time that takes as long as a look at every run."""
        if not self.seen:
            self.look_at_all()
        self._looked.wait()
        if self._refused is not None and not self.seen:
            raise self._refused
        with self._lock:
            if self._facets is None:
                self._facets = [facets_of(row) for row in self._rows.values()]
            return self._facets

    def look_at_all(self, later: float = 0.0) -> None:
        """Look at every run in a thread of its own, unless that was done a short while ago.

        Args:
            later: Seconds until it begins.
        """
        with self._lock:
            if self._sweeping or self._clock.monotonic() < self._due:
                return
            self._sweeping = True
            self._removed.clear()
            self._changed.clear()
        threading.Thread(target=self._sweep, args=(later,), name="runs", daemon=True).start()

    def _sweep(self, later: float) -> None:
        self._clock.wait(threading.Event(), later)
        began, found = self._clock.monotonic(), self._rows
        try:
            found = self._read_all(found)
            self._refused = None
            self._seen.set()
        except PipelineError as error:
            # The store does not answer: what is known stays, and every page says so by itself.
            self._refused = error
        finally:
            with self._lock:
                merged = found | {run: row for run, row in self._changed.items() if run in found}
                self._rows = {run: row for run, row in merged.items() if run not in self._removed}
                took = self._clock.monotonic() - began
                self._facets, self._due = None, self._clock.monotonic() + max(_SECONDS, _TIMES * took)
                self._sweeping = False
            self._looked.set()

    def _read_all(self, known: Mapping[str, RunRow]) -> dict[str, RunRow]:
        """Return the rows of all runs, newest first; heads are read as far as they tell that a run has changed."""
        there: dict[str, RunRow] = {}

        def is_new(document: Mapping[str, Any]) -> bool:
            run = str(document.get("run_id"))
            row = known.get(run)
            if row is None or not row.seq or row.status == IN_PROGRESS or document.get("seq") != row.seq:
                return True
            there[run] = row
            return False

        for head in self._store.heads(is_new):
            there[head.run_id] = row_of(head)
            if len(there) >= MOST:
                break
        return there


def behind(names: list[str], after: str) -> list[str]:
    """Return the part of a newest-first list that stands behind a run, which need not be in it."""
    if not after:
        return names
    return names[names.index(after) + 1 :] if after in names else older(names, after)


# --- runs that are looked at ---------------------------------------------------------------------


#: A run is looked at again after so many seconds: many viewers cost no more than one.
FRESH_SECONDS = 0.3
#: So seldom where it must be read as a whole each time.
_SLOW_SECONDS = 2.0
#: Runs whose state is kept.
_MOST = 16


@dataclass(frozen=True)
class RunNow:
    """A run as it stood when it was looked at."""

    head: Head
    #: Nothing changes it later.
    state: RunState
    #: How it went; gathered with the state.
    trail: Trail

    @property
    def owned(self) -> bool:
        """Return whether a living process owns it."""
        return self.head.owned

    @property
    def ended(self) -> bool:
        """Return whether it has come to an end of its own: nothing follows unless it is resumed."""
        return not self.owned and self.state.status != IN_PROGRESS


class _Watch:
    """One run; one thread at a time looks, the others get what it found."""

    def __init__(self, store: Store, run: str, clock: Clock) -> None:
        self._store = store
        self._run = run
        self._clock = clock
        self._lock = threading.Lock()
        self._builder = Builder(run)
        self._trail = Trail()
        self._looked = 0.0
        self._fresh = FRESH_SECONDS
        self._now: RunNow | None = None
        self._nodes: tuple[str, Sequence[str]] = ("", ())

    def now(self) -> RunNow:
        with self._lock:
            if self._now is None or self._clock.monotonic() - self._looked > self._fresh:
                self._now = self._look(self._now)
                self._looked = self._clock.monotonic()
            return self._now

    def _look(self, before: RunNow | None) -> RunNow:
        # The owner first: what it wrote before it was gone is then in the records.
        owned = bool(self._store.holder(self._run))
        seen = self._builder.state.seq
        for record in self._records(seen):
            self._builder.apply(record)
            self._trail.apply(record, self._builder.state)
        is_new = before is None or self._builder.state.seq != seen
        if before is not None and not is_new and owned == before.owned and self._fresh == FRESH_SECONDS:
            return before
        if not self._is_whole(owned):
            self._fresh = _SLOW_SECONDS
            return self._read(before)
        self._fresh = FRESH_SECONDS
        if before is None or is_new:
            state = self._builder.freeze()
            return RunNow(self._head(state, owned), state, self._trail.freeze())
        return RunNow(self._head(before.state, owned), before.state, before.trail)

    def _records(self, seen: int) -> Iterator[Record]:
        if not seen:
            return records(self._store, self._run)
        return records_in(self._store.read(self._run, after=seen), after=seen)

    def _is_whole(self, owned: bool) -> bool:
        """Return whether its own records in a row say it all: none is missing, and no part of it is elsewhere."""
        state = self._builder.state
        if not state.seq or state.gaps or state.submitted or state.imported:
            return False
        if owned and self._now is not None:
            return True
        head = self._store.written_head(self._run)
        return not head.get("holes") and int(head.get("seq") or 0) <= state.seq

    def _read(self, before: RunNow | None) -> RunNow:
        """Return a run of which more must be looked at than its records in a row."""
        head = head_of(self._store, self._run)
        if before is not None and head == before.head and not before.state.submitted:
            return before
        return RunNow(head, state_of(self._store, head), Trail.of(self._store, self._run))

    def _head(self, state: RunState, owned: bool) -> Head:
        """Return the head as the records say it: the written one may be older, and then it is read anew at length."""
        graph = state.pins.get("graph", "")
        if graph != self._nodes[0]:
            self._nodes = graph, pinned_nodes(state, lambda blob: self._store.get_blob(self._run, blob))
        document = head_document(state, 0, self._nodes[1])
        changed = seen_now(document, owned)
        return Head(self._run, {**document, **changed}, owned=owned, gone=bool(changed))


class Watches:
    """The runs that were looked at last."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, _Watch] = OrderedDict()

    def now(self, run: str) -> RunNow:
        """Return a run as it is now.

        Raises:
            RunNotFound: No such run.
        """
        with self._lock:
            watch = self._runs.setdefault(run, _Watch(self._store, run, self._clock))
            self._runs.move_to_end(run)
            while len(self._runs) > _MOST:
                self._runs.popitem(last=False)
        try:
            return watch.now()
        except RunNotFound:
            # Whatever has this name later is another run.
            with self._lock:
                self._runs.pop(run, None)
            raise
