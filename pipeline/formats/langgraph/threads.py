"""Threads in a store: read as far as they have grown, owned for one write, replaced as a whole, removed.

The name of a thread's run is made of the thread's id, so no other run is looked at. An owner holds a thread only while
it writes, so any process may take a turn; two at the same moment wait for each other.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar, cast

from pipeline.clock import Clock
from pipeline.engine.setup import host
from pipeline.errors import CheckpointCorrupt, ConfigError, RunExists, RunLocked, RunNotFound, StoreError
from pipeline.formats.langgraph.thread import MOVED, Key, Thread
from pipeline.formats.shelf import Document, Holder
from pipeline.records.codec import decode_line, lines_of
from pipeline.records.kinds import DocumentKept, RunEnded, RunStarted
from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import encode_value
from pipeline.store.base import Claim, Journal, Movable, Store
from pipeline.store.view import first_problem

#: The pipeline of the runs that hold threads, and the source of their documents.
PIPELINE = SOURCE = "langgraph"
#: Such names sort behind all that begin with a date: a thread is never the newest run, and displaces none.
_PREFIX, _OTHER = "0thread-", "-b"
#: Bytes of the hash: two ids with the same name are refused, and do not happen by chance.
_HASH_BYTES = 15
#: How many threads are remembered; the one that was met first is forgotten first.
MOST_KNOWN = 256
_STRIPES = 64
#: How often a thread that another process writes to is tried again.
_AGAIN_SECONDS = 0.01
_T = TypeVar("_T")
_log = logging.getLogger("pipeline")


def names_of(thread_id: str) -> tuple[str, str]:
    """Return the names that the run of a thread may have: pruning moves it from one to the other."""
    digest = hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).digest()[:_HASH_BYTES]
    name = _PREFIX + base64.b32encode(digest).decode("ascii").lower()
    return name, name + _OTHER


def homes(store: Store, thread_id: str) -> list[tuple[int, str]]:
    """Return (generation, run) of the runs of a thread, the one that counts first.

    Each pruning makes one more generation; a process that died while pruning leaves a second run.

    Raises:
        CheckpointCorrupt, SchemaTooNew: One of them cannot be read.
        StoreError: One of them is not the thread's.
    """
    found = [(generation, run) for run in names_of(thread_id) if (generation := _generation(store, run, thread_id))]
    return sorted(found, reverse=True)


def _generation(store: Store, run: str, thread_id: str) -> int:
    """Return the generation of a run of that name, which is a thread's; 0 if there is none. Raises as `homes`."""
    try:
        line = next(store.read(run), None)
    except RunNotFound:
        return 0
    return _generation_in(line, run, thread_id)


def _generation_in(line: bytes | None, run: str, thread_id: str) -> int:
    """Return the generation that the first line of a thread's run tells; raises as `homes`."""
    if problem := first_problem(line):
        problem.args = (f"Run {run}, which holds thread {thread_id!r}, cannot be read. {problem.message}",)
        raise problem
    fact = decode_line(line or b"").fact
    claim = fact.claim if isinstance(fact, RunStarted) and fact.pipeline == PIPELINE else None
    if claim is None or len(claim) < 3 or claim[1] != thread_id:
        raise StoreError(
            f"Run {run} is not of thread {thread_id!r}, though it has its name.",
            code="not_of_thread", hint="Use another thread_id, or a store of its own for threads.", run=run,
        )  # fmt: skip
    return int(claim[2])


def check_is_no_thread(state: RunState) -> None:
    """Refuse, with a ConfigError, to resume a run here that holds a thread."""
    if state.pipeline == PIPELINE:
        config = json.dumps({"configurable": {"thread_id": state.params.get("subject")}}, ensure_ascii=False)
        raise ConfigError(
            f"Run {state.run_id} holds a LangGraph thread, and its graph is not part of this program.",
            code="langgraph_thread", hint=f"Resume it in your own program: graph.invoke(None, {config})",
        )  # fmt: skip


def thread_ids(store: Store) -> list[str]:
    """Return the ids of all threads, the one that was begun last first."""
    begun: dict[str, str] = {}
    for head in store.heads(lambda document: document.get("pipeline") == PIPELINE):
        claim = head.document.get("claim")
        # A fork has the claim of the run that it was made of, and is no thread.
        if isinstance(claim, Sequence) and len(claim) > 1 and head.run_id in names_of(str(claim[1])):
            begun[str(claim[1])] = str(head.document.get("started_at") or "")
    return sorted(begun, key=begun.__getitem__, reverse=True)


class Addition(NamedTuple):
    """What is to be recorded of a thread."""

    documents: Sequence[Mapping[str, Any]]
    #: What is stored out of line, by hash.
    blobs: Mapping[str, bytes]


class _Known(Holder):
    """A thread's run, as far as this process has read it."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id, SOURCE)
        #: Another run of the thread, which does not count any more: a process died before it removed it.
        self.spare = ""

    def reset(self) -> None:
        super().reset()
        self.thread = Thread(self.run_id)

    def take(self, document: Document) -> None:
        self.thread.take(json.loads(document.text))

    def extras(self) -> Mapping[str, Any]:
        return {"checkpoints": len(self.thread.checkpoints)}


#: What is known of a thread (None: there is none) → what to add to it; None: nothing.
Make = Callable[[Thread | None], Addition | None]


class Threads:
    """The threads of a store; for any number of threads of this process at once.

    Every call raises SchemaTooNew or StoreError where a thread cannot be read, RunLocked where another process has been
    writing to it all the time that we wait, and WriteFailed where the disk refuses.
    """

    def __init__(self, store: Store, clock: Clock, wait_seconds: float) -> None:
        self.store = cast(Movable, store)
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._known: dict[str, _Known] = {}
        self._guard = threading.Lock()
        self._stripes = [threading.Lock() for _ in range(_STRIPES)]

    @contextmanager
    def reading(self, thread_id: str) -> Iterator[Thread | None]:
        """Hold the thread still within a `with`; None: there is none."""
        with self._stripe(thread_id):
            known = self._current(thread_id)
            yield None if known is None else known.thread

    def add(self, thread_id: str, make: Make) -> None:
        """Record what `make` returns for the current thread; durable on return."""
        with self._stripe(thread_id):
            while True:
                # Its owner reads on, so the known part is enough.
                known = self._known.get(thread_id) or self._current(thread_id)
                if known is None:
                    addition = make(None)
                    if addition is None or self._begin(thread_id, addition):
                        return
                    continue
                with self._owning(thread_id, known) as journal:
                    if journal is not None:
                        addition = make(known.thread)
                        if addition is not None:
                            known.add(journal, *addition, self._clock.stamp())
                        return

    def keep(self, thread_id: str, choose: Callable[[Thread], Collection[Key]]) -> None:
        """Leave only the chosen checkpoints of a thread, and free what the others took; none chosen: it is removed."""
        with self._stripe(thread_id):
            while (known := self._current(thread_id)) is not None:
                with self._owning(thread_id, known) as journal:
                    if journal is None:
                        continue
                    stay = set(choose(known.thread))
                    if stay >= known.thread.checkpoints.keys():
                        return
                    # A process that waits for the thread looks where it has gone; if we die here it stays where it is.
                    known.add(journal, [{"type": MOVED}], {}, self._clock.stamp())
                    if stay:
                        self._move(thread_id, known.thread, stay)
                self._forget(thread_id)
                self._delete(thread_id, known.run_id)
                return

    def copy(self, source: str, target: str) -> None:
        """Make a thread that holds all that another does; nothing happens where that is not there.

        Raises:
            RunExists: There is such a thread already.
        """
        with self.reading(source) as thread:
            if thread is None:
                return
            whole = self._copied(thread, thread.checkpoints.keys() | thread.writes.keys())
        with self._stripe(target):
            if self._current(target) is not None or not self._begin(target, whole):
                raise RunExists(
                    f"A thread {target!r} already exists.",
                    code="thread_exists",
                    hint="Copy to another id, or delete it first.",
                )

    def delete(self, thread_id: str) -> None:
        """Remove a thread and all that is stored of it; nothing happens where it is not there."""
        with self._stripe(thread_id):
            self._forget(thread_id)
            try:
                runs = [run for _, run in homes(self.store, thread_id)]
            except CheckpointCorrupt:
                runs = [*names_of(thread_id)]
            # The one that counts goes last: none that it replaced comes to light.
            for run in reversed(runs):
                self._delete(thread_id, run)

    def _stripe(self, thread_id: str) -> threading.Lock:
        return self._stripes[hash(thread_id) % _STRIPES]

    def _current(self, thread_id: str) -> _Known | None:
        """Return what is known of a thread, read to its end; of two runs the one that replaced the other."""
        known = self._known.get(thread_id)
        if known is not None:
            with suppress(RunNotFound):
                if known.read_on(self.store) and not known.thread.moved:
                    return known
            self._forget(thread_id)
        every: list[tuple[int, _Known]] = []
        for run in names_of(thread_id):
            known = _Known(run)
            with suppress(RunNotFound):
                known.read_on(self.store)
                every.append((_generation_in(known.first, run, thread_id), known))
        if not every:
            return None
        _, best = max(every, key=lambda each: each[0])
        best.spare = next((known.run_id for _, known in every if known is not best), "")
        self._remember(thread_id, best)
        return best

    def _remember(self, thread_id: str, known: _Known) -> None:
        with self._guard:
            self._known[thread_id] = known
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def _forget(self, thread_id: str) -> None:
        with self._guard:
            self._known.pop(thread_id, None)

    @contextmanager
    def _owning(self, thread_id: str, known: _Known) -> Iterator[Journal | None]:
        """Own the run of a thread, with all of it known; None where the thread has moved: look for it again."""
        run = known.run_id
        try:
            journal = self._wait_for(thread_id, lambda: self.store.open(run))
        except RunNotFound:
            self._forget(thread_id)
            yield None
            return
        try:
            if not known.read_on(self.store) or (known.thread.moved and homes(self.store, thread_id)[0][1] != run):
                self._forget(thread_id)
                yield None
                return
            known.mend(journal, self._clock.stamp())
            self._drop_spare(known)
            yield journal
        finally:
            journal.close()

    def _drop_spare(self, known: _Known) -> None:
        """Remove what does not count any more, while the one that counts is owned and so cannot move to its name."""
        if known.spare:
            with suppress(RunNotFound, RunLocked):
                self.store.delete(known.spare)
                _log.warning(
                    "Run %s had been replaced by run %s and left behind; it is removed.", known.spare, known.run_id
                )
            known.spare = ""

    def _wait_for(self, thread_id: str, act: Callable[[], _T]) -> _T:
        """Return what `act` gives as soon as no other process owns the thread."""
        until = self._clock.monotonic() + self._wait_seconds
        never = threading.Event()
        while True:
            try:
                return act()
            except RunLocked as error:
                if self._clock.monotonic() >= until:
                    raise RunLocked(
                        f"Another process is writing to thread {thread_id!r}: {error.message}",
                        hint="Run one graph at a time on a thread, or give this one a thread_id of its own.",
                        **{**error.data, "thread": thread_id},
                    ) from None
            self._clock.wait(never, _AGAIN_SECONDS)

    def _begin(self, thread_id: str, addition: Addition) -> bool:
        """Make the run of a new thread; return False if another process was faster."""
        name, other = names_of(thread_id)
        known = self._make(thread_id, name, 1, addition)
        if known is None:
            return False
        # Meanwhile another process may have made the thread under this name, and moved it to the other one.
        if _generation(self.store, other, thread_id):
            self._delete(thread_id, name)
            return False
        self._remember(thread_id, known)
        return True

    def _copied(self, thread: Thread, keys: AbstractSet[Key]) -> Addition:
        """Return these checkpoints of a thread, with all that is stored out of line; CheckpointCorrupt if damaged."""
        blobs = {blob: self.store.get_blob(thread.run_id, blob) for blob in sorted(thread.blobs(keys))}
        return Addition(list(thread.documents(keys)), blobs)

    def _move(self, thread_id: str, thread: Thread, stay: AbstractSet[Key]) -> None:
        """Write what stays of a thread that we own into another run, which counts from its first moment on."""
        first, second = names_of(thread_id)
        target = first if thread.run_id == second else second
        left = self._copied(thread, stay)
        generation = homes(self.store, thread_id)[0][0] + 1
        while self._make(thread_id, target, generation, left) is None:
            # A process that died while it pruned left it there: this one had replaced it.
            self._delete(thread_id, target)

    def _make(self, thread_id: str, run: str, generation: int, addition: Addition) -> _Known | None:
        """Make a run that holds the thread from its first moment on; None: there is one of that name."""
        # Each generation has a claim of its own, and is completed: no clean-up waits for it, and none takes it.
        claim = Claim(PIPELINE, thread_id, str(generation), "thread").to_json()
        started = RunStarted(PIPELINE, {"subject": thread_id}, {}, {}, claim=claim, host=host())
        kept = [DocumentKept(encode_value(document), SOURCE) for document in addition.documents]
        now = self._clock.now()
        lines = lines_of([started, RunEnded(COMPLETED), *kept], self._clock.stamp())
        values, first = list(addition.blobs.values()), b"".join(lines)
        try:
            journal = self._wait_for(thread_id, lambda: self.store.create_named(run, first, values, at=now))
        except StoreError:
            if not _generation(self.store, run, thread_id):
                raise
            return None
        try:
            known = _Known(run)
            known.read(lines)
            known.write_head(journal)
        finally:
            journal.close()
        return known

    def _delete(self, thread_id: str, run: str) -> None:
        with suppress(RunNotFound):
            self._wait_for(thread_id, lambda: self.store.delete(run))
