"""A store of runs over any backend: create, open, read, list, delete. Everything that is promised of runs, once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import CheckpointCorrupt, PipelineError, RunLocked, RunNotFound, StoreError, WriteFailed
from pipeline.records.lines import line_seq
from pipeline.records.values import digest
from pipeline.store import fenced_records
from pipeline.store.backend import Backend, Fenced, Gone, Held, Refused, Tail, Tip, claim_text, folder_key
from pipeline.store.base import Account, Claim, Head
from pipeline.store.head import parse_head, scan_int, sealed, whole_head
from pipeline.store.head_rebuild import rebuild
from pipeline.store.heads import Listing, refuse_if_held
from pipeline.store.imports import import_lines
from pipeline.store.journal import RunJournal, flush
from pipeline.store.lease import TTL_SECONDS
from pipeline.store.ledger import BackendAccount, pause
from pipeline.store.lock import locked
from pipeline.store.names import minted, split
from pipeline.store.recovery import kept_whole, took_in
from pipeline.store.repair import Repair, lost_since, mend
from pipeline.store.survey import Blocks, Survey, survey, whole_lines
from pipeline.store.values import RunValues
from pipeline.store.view import first_problem

#: How often a claim is tried for that another process has for a moment: for about a minute.
_TRIES = 250
#: Longer journals are not surveyed again where this store left them and they are unchanged since. Shorter ones cost
#: nothing, and a file may change twice within one tick of its times.
_SURVEYED_BYTES = 1 << 16
#: Of so many runs it is remembered how they were left.
_MOST_LEFT = 1024


class RunStore:
    """Runs in a backend; see store.base.Store and store.base.Movable."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self.url = backend.url
        self.backend = backend
        self._clock = clock
        self._listing = Listing(backend, rebuild)
        #: How many lines of a journal `open` has just found whole, until they are read.
        self._checked: dict[str, int] = {}
        #: Journals as this store left them: their stamp, last seq, bytes.
        self._left: dict[str, tuple[str, int, int]] = {}

    # --- create ---

    def create(
        self, first: bytes, blobs: Sequence[bytes], *, at: datetime, claim: Claim | None = None
    ) -> tuple[str, RunJournal]:
        if claim is None:
            return self._make(first, blobs, minted(at), at)
        # Look-up and creation are under one owner, who proves at the end that it was one all the time.
        asked = claim.to_json()
        name = f".claims/{digest(json.dumps(asked).encode())[:32]}"
        for number in range(_TRIES):
            with self._refusals("No run could be created"):
                tail = self._own_claim(name, at)
            if tail is None:
                pause(number)
                continue
            try:
                refuse_if_held(lambda match: self._listing.heads(match, claim=claim_text(asked)), claim, at)
                run, journal = self._make(first, blobs, minted(at), at)
                if not self.backend.leased or self._proved(tail, run):
                    return run, journal
                journal.close()
                self.delete(run)
            finally:
                with contextlib.suppress(PipelineError):
                    tail.release()
        text = "No run could be created: other processes keep starting the same course."
        raise WriteFailed(text, code="claim_busy", fatal=False)

    def create_named(self, run: str, first: bytes, blobs: Iterable[bytes] = (), *, at: datetime) -> RunJournal:
        taken = StoreError(f"A run named {run} cannot be created: the name is taken.", run=run, code="run_name_taken")
        if split(run)[1]:
            raise taken
        try:
            return self._make(first, blobs, iter([run]), at)[1]
        except StopIteration:
            with self._refusals("No run could be created"):
                if self._exists(run) or not self._cleared(run):
                    raise taken from None
        try:
            return self._make(first, blobs, iter([run]), at)[1]
        except StopIteration:
            raise taken from None

    def _own_claim(self, name: str, at: datetime) -> Tail | None:
        try:
            return self.backend.own(name, at)
        except Held:
            return None

    @staticmethod
    def _proved(tail: Tail, run: str) -> bool:
        try:
            tail.rewrite([json.dumps({"seq": 1, "run": run}).encode() + b"\n"])
        except Fenced:
            return False
        return True

    def _cleared(self, run: str) -> bool:
        """Remove what is left of a run whose creation or removal was cut off; False: nothing is.

        Raises:
            RunLocked: Its process is alive.
        """
        leased = self.backend.leased
        if not leased and not any(tip.leftover and tip.run == run for tip in self.backend.tips()):
            return False
        tail = self._owned(run)
        if tail is not None:
            try:
                if not self._exists(run):
                    self.backend.delete(folder_key(run))
            finally:
                tail.release()
        return True

    def _make(self, first: bytes, blobs: Iterable[bytes], names: Iterator[str], at: datetime) -> tuple[str, RunJournal]:
        """Make a run under the first name that is free: it exists once its first lines are there.

        Raises:
            StopIteration: No name is.
            WriteFailed: Nothing was made.
        """
        backend = self.backend
        lines = [line + b"\n" for line in first.splitlines()]
        with self._refusals("No run could be created"):
            run, tail = next((name, tail) for name in names if (tail := self._begin(name, at)) is not None)
            values = RunValues(backend, run)
            try:
                values.put_all(tail, blobs)
                tail.append(line_seq(lines[0]), lines, True)
            except BaseException:
                with contextlib.suppress(OSError, PipelineError):
                    backend.delete(folder_key(run))
                with contextlib.suppress(OSError, PipelineError):
                    tail.release()
                raise
        return run, self._journal(run, tail, values, line_seq(lines[-1]), sum(map(len, lines)), ())

    def _begin(self, name: str, at: datetime) -> Tail | None:
        try:
            return self.backend.own(name, at, new=True)
        except Held as held:
            raise locked(name, held.holder) from None

    # --- own ---

    def open(self, run: str) -> RunJournal:
        split(run)
        with self._refusals(f"Run {run} cannot be written to"):
            tail = self._owned(run)
            if tail is None:
                raise self._missing(run)
            try:
                journal = self._opened(run, tail)
            except BaseException:
                with contextlib.suppress(OSError, PipelineError):
                    tail.release()
                raise
            return took_in(self, journal, self.backend.place_of(run))

    def _opened(self, run: str, tail: Tail) -> RunJournal:
        """Mend what is damaged, import what is no journal yet, and take in what former owners left."""
        run_id, path = split(run)
        values = RunValues(self.backend, run_id)
        stamp, last_seq, size = self._left.pop(run, ("", 0, 0))
        if stamp and stamp == tail.found:
            return self._journal(run, tail, values, last_seq, size, ())
        found, said = self._set_right(run, path, tail)
        if not path:
            head = self.backend.get(f"runs/{run}/head")
            seen = scan_int(head[0], "seq") if head and sealed(head[0]) else 0
            said += lost_since(found.last_seq, seen, self.backend.head_name)
        self._checked[run] = found.count
        journal = self._journal(run, tail, values, found.last_seq, found.size, said)
        if self.backend.leased and tail.inherits:
            try:
                fenced_records.take_in(self.backend, journal)
            except BaseException:
                journal.close()
                raise
        return journal

    def _set_right(self, run: str, path: str, tail: Tail) -> tuple[Survey, list[Repair]]:
        """Return the survey of a journal that is owned, sound from now on, and what had to be mended."""
        backend = self.backend
        try:
            ended = backend.ended(run)
            found = survey(lambda: backend.read(run), ended=ended)
        except FileNotFoundError:
            if path:
                return Survey(), []
            lines = self._lines_elsewhere(run)
            tail.rewrite(lines)
            return survey(lambda: [[line.removesuffix(b"\n") for line in lines]]), []
        problem = None if path else first_problem(found.first)
        if problem:
            problem.args = (f"Run {run} cannot be opened. {problem.message}",)
            raise problem
        if not found.text and not ended and found.count:
            # Sound, but for the newline behind it.
            tail.rewrite([line + b"\n" for block in backend.read(run) for line in block if line])
            found.size += 1
        if not found.text or (ended and found.tail is None and not found.middle):
            return found, []
        lines, said = mend(found, lambda what, data: self._keep(run, what, data))
        tail.rewrite(lines)
        mended = survey(lambda: [[line.removesuffix(b"\n") for line in lines]])
        mended.text = b""
        return mended, said

    def _lines_elsewhere(self, run: str) -> list[bytes]:
        """Return the lines of a run that has no journal: as an emergency file has them, or as its head says.

        Raises:
            RunNotFound: There is none.
            CheckpointCorrupt: It has lost its journal, or its head cannot be a run's.
        """
        if lost := kept_whole(run, self.backend.place_of(run)):
            return lost.splitlines(keepends=True)
        return self._document_lines(run)

    def _document_lines(self, run: str) -> list[bytes]:
        try:
            found = self.backend.get(f"runs/{run}/head")
        except OSError as error:
            raise CheckpointCorrupt(
                f"Run {run} has no journal, and its checkpoint.json cannot be read: {error.strerror}.",
                code="head_unreadable", run=run,
            ) from error  # fmt: skip
        if found is None:
            tip = self._tip(run)
            if tip is None or not tip.problem:
                raise self._missing(run)
            raise CheckpointCorrupt(f"Run {run} cannot be read. {tip.problem}", run=run, code="journal_missing")
        document = parse_head(found[0])
        if document is None:
            text = f"Run {run} has no journal, and its checkpoint.json is not a JSON object."
            raise CheckpointCorrupt(text, run=run, code="head_unreadable")
        return import_lines(document, self._clock.now())

    def _keep(self, run: str, what: str, data: bytes) -> str:
        """Keep damaged bytes beside a journal under a new name, and return the name."""
        number = 1
        while self.backend.put_if(f"{folder_key(run)}/x/journal.{what}-{number}", data, "") is None:
            number += 1
        return f"journal.{what}-{number}"

    def _journal(
        self, run: str, tail: Tail, values: RunValues, last_seq: int, size: int, repairs: Sequence[Sequence[Any]]
    ) -> RunJournal:
        return RunJournal(
            self.backend, run, tail, values, last_seq=last_seq, size=size, repairs=repairs, closed=self._note
        )

    def _note(self, journal: RunJournal, stamp: str | None) -> None:
        """Remember how an owner left a journal; what it has left beside it is taken in, if it has no owner now."""
        self._checked.pop(journal.run_id, None)
        if stamp is None:
            with contextlib.suppress(PipelineError):
                self.open(journal.run_id).close()
            return
        if stamp and (self.backend.leased or journal.size > _SURVEYED_BYTES):
            self._left[journal.run_id] = stamp, journal.last_seq, journal.size
            while len(self._left) > _MOST_LEFT:
                self._left.pop(next(iter(self._left)), None)

    def _owned(self, run: str) -> Tail | None:
        try:
            return self.backend.own(run, self._clock.now())
        except Held as held:
            raise locked(run, held.holder, TTL_SECONDS if self.backend.leased else None) from None

    # --- read ---

    def read(self, run: str, after: int = 0) -> Iterator[bytes]:
        return whole_lines(self._blocks(run, after), after, known=0 if after else self._checked.pop(run, 0))

    def written_head(self, run: str) -> Mapping[str, Any]:
        if split(run)[1]:
            return {}
        try:
            found = self.backend.get(f"runs/{run}/head")
        except OSError:
            # Not a file: nothing of it is whole.
            return {}
        if found is None:
            self._check(run)
            return {}
        # Without a journal the document itself is the run: it is taken over, and nothing is known beside it.
        return whole_head(found[0]) if self._exists(run) else {}

    def get_blob(self, run: str, blob: str) -> bytes:
        run_id = split(run)[0]
        try:
            return RunValues(self.backend, run_id).get(blob)
        except CheckpointCorrupt:
            self._check(run_id)
            raise

    def blobs(self, run: str) -> list[str]:
        self._check(split(run)[0])
        return RunValues(self.backend, split(run)[0]).names()

    def parts(self, run: str) -> list[str]:
        self._check(split(run)[0])
        return list(self.backend.parts(split(run)[0]))

    def heads(self, match: Callable[[Mapping[str, Any]], bool] | None = None, start: str = "") -> Iterator[Head]:
        flush(self.backend)
        return self._listing.heads(match, split(start)[0] if start else "")

    def holder(self, run: str) -> Mapping[str, Any]:
        tip = self._tip(split(run)[0])
        if tip is None:
            raise self._missing(run)
        return tip.holder() if tip.owned() else {}

    def flaws(self, run: str) -> Iterator[str]:
        backend = self.backend
        try:
            found = survey(lambda: backend.read(run), ended=backend.ended(run))
        except FileNotFoundError:
            if split(run)[1] or backend.get(f"runs/{run}/head") is None:
                yield "Its journal is missing."
            return
        except StoreError as error:
            yield error.message
            return
        for damage in found.middle:
            between = f"records {damage.before} and {damage.after}"
            where = f"{backend.journal_name}, byte {damage.offset}: " if backend.journal_name else ""
            if damage.bytes:
                yield f"{where}{damage.bytes} bytes between {between} are not a record."
            elif damage.after == damage.before + 1:
                yield f"{where}the newline between {between} is lost."
        if found.tail is not None:
            where = f"{backend.journal_name}, byte {found.tail.offset}: the" if backend.journal_name else "The"
            yield f"{where} last {found.tail.bytes} bytes are an incomplete record."
        yield from backend.flaws(run)
        if not split(run)[1]:
            yield from self._head_flaws(run)

    def _head_flaws(self, run: str) -> Iterator[str]:
        name = self.backend.head_name
        name = f"{name[0].upper()}{name[1:]}" if " " in name else name
        try:
            found = self.backend.get(f"runs/{run}/head")
        except OSError as error:
            yield f"{name} cannot be read: {error.strerror}; it is rebuilt from the records."
            return
        if found is not None and not sealed(found[0]):
            yield f"{name} is damaged, or was changed by hand; it is rebuilt from the records."

    # --- remove ---

    def delete(self, run: str) -> None:
        path = split(run)[1]
        self._check(run)
        held: list[Tail] = []
        with self._refusals(f"Run {run} cannot be removed"):
            try:
                for name in [run, *(() if path else (f"{run}/{part}" for part in self.backend.parts(run)))]:
                    tail = self._owned(name)
                    if tail is not None:
                        held.append(tail)
                self.backend.delete(folder_key(run))
            except RunLocked as error:
                error.args = (error.message.replace(f"{run}/", run),) if not path else error.args
                raise
            finally:
                for tail in held:
                    with contextlib.suppress(PipelineError):
                        tail.release()
        self._left.pop(run, None)

    def sweep(self, before: datetime) -> list[str]:
        done = []
        for tip in self.backend.tips():
            if not tip.leftover or tip.touched >= before.timestamp():
                continue
            with contextlib.suppress(OSError, PipelineError, Held):
                tail = self.backend.own(tip.run, self._clock.now())
                if tail is not None:
                    self.backend.delete(folder_key(tip.run))
                    tail.release()
                    done.append(tip.run)
        for run in self.backend.unlisted():
            self.backend.relist(run)
        return sorted(done)

    def leftovers(self) -> list[str]:
        return sorted(tip.run for tip in self.backend.tips() if tip.leftover)

    def unlisted(self) -> list[str]:
        return list(self.backend.unlisted())

    def upgrade(self) -> tuple[str, str]:
        """Bring the store up to date; see Backend.upgrade."""
        return self.backend.upgrade()

    def is_there(self) -> bool:
        return self.backend.is_there()

    def account(self) -> Account:
        return BackendAccount(self.backend, self._clock)

    # --- shared ---

    def _blocks(self, run: str, after: int = 0) -> Blocks:
        path = split(run)[1]
        flush(self.backend)
        try:
            return self.backend.read(run, after)
        except FileNotFoundError:
            if path:
                raise self._missing(run) from None
            lines = self._document_lines(run)
            return [[line.removesuffix(b"\n") for line in lines[after:]]]

    def _exists(self, run: str) -> bool:
        """Return whether a run or part has a journal."""
        try:
            self.backend.read(run)
        except FileNotFoundError:
            return False
        return True

    def _check(self, run: str) -> None:
        """Make sure that a run is there, if only as a document, or as what is left of it.

        Raises:
            RunNotFound: It is not.
        """
        path = split(run)[1]
        if not self._exists(run) and (path or self._tip(run) is None):
            raise self._missing(run)

    def _tip(self, run: str) -> Tip | None:
        tip = next(self.backend.tips(start=run), None)
        return tip if tip is not None and tip.run == run and not tip.leftover else None

    @staticmethod
    def _missing(run: str) -> RunNotFound:
        return RunNotFound(f"There is no run {run}.", hint="`./pipeline.sh list` shows the runs there are.", run=run)

    @contextlib.contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        """Raise what a backend refuses outside of a journal as our error."""
        try:
            yield
        except OSError as error:
            text, hint = f"{what}: {error.strerror or error}.", "Check the folder and its disk."
            raise WriteFailed(text, hint=hint, fatal=False, code="disk_refused") from error
        except Refused as error:
            data = {"fatal": False, **error.data}
            raise WriteFailed(f"{what}: {error.message}", hint=error.hint, code="write_refused", **data) from error
        except (Fenced, Gone) as error:
            text = f"{what}: another process took it over, or removed it."
            raise WriteFailed(text, hint="Try again.", code="run_taken_over", fatal=False) from error
