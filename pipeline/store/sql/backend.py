"""Runs as rows of a database: the backend of `sqlite:FILE` and `postgresql://…`. What a row holds is bytes to it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from pipeline.clock import Clock, SystemClock
from pipeline.errors import StoreError, WriteFailed
from pipeline.files import parse_json
from pipeline.records.lines import is_whole
from pipeline.store.address import StoreUrl, parse_store_url
from pipeline.store.backend import Backend, Fenced, Gone, Held, Tail, Tip, Unsure, claim_text, folder_key
from pipeline.store.lease import holder, is_held, parse, taken
from pipeline.store.runs import RunStore
from pipeline.store.sql.connections import Database, Link, shared
from pipeline.store.sql.postgres import PostgresDatabase
from pipeline.store.sql.sqlite import SqliteDatabase
from pipeline.store.sql.tables import Tables

#: Records, keys and runs that are fetched at once.
_PAGE, _RUNS = 500, 50
#: Ids of runs begin with their moment: YYYYMMDD_HHMMSS.
_STEM = 15
#: Before all numbers that a column can hold, and behind all ids of runs.
_FIRST, _NEWEST = -(2**63), ("\U0010ffff", 0, "")
#: Kinds of records that views read, where the fact of a line begins.
_KIND = re.compile(rb'"kind":"(call_started|call_ended|charge_settled|document_kept)"')
_NEAR = 120
_CLOCK = SystemClock()
#: A record's number, line and kind.
Row = tuple[int, bytes, str | None]


class SqlTail(Tail):
    """The end of a journal of a database; every statement holds only where the journal has this owner's epoch."""

    def __init__(self, backend: SqlBackend, name: str, journal: int, epoch: int) -> None:
        self.epoch = epoch
        self._journal = journal
        self._database = backend.database
        self._head = f"{folder_key(name)}/head"
        #: Something that was appended is not durable yet.
        self._loose = False
        #: It has a record.
        self._begun = False
        self._owning = True
        self._database.begin()

    @property
    def found(self) -> str:  # type: ignore[override]
        """See Tail.found: how many bytes the journal has up to which number."""
        return ":".join(map(str, self._database.ask(lambda link: link.row("end", self._journal))))

    def left(self) -> str:
        """See Tail.left; a run that was just created is looked through once more."""
        return self.found if self.epoch > 1 else ""

    def append(self, seq: int, lines: Sequence[bytes], sync: bool) -> None:
        rows = _rows(lines, seq)
        claim = _claim(rows[0][1]) if seq == 1 and rows else ""

        def enter(link: Link) -> bool:
            try:
                return self._enter(link, rows, claim, sync)
            except link.taken:
                if not self._has(link, rows):
                    raise
                # An answer was lost, not the append.
                return True

        if rows:
            self._insist(lambda: self._database.ask(enter, WriteFailed))
            self._loose, self._begun = not sync, True

    def head(self, data: bytes, sync: bool) -> None:
        etag = _CLOCK.new_id()

        def put(link: Link) -> int:
            with contextlib.nullcontext() if sync else link.transaction(sync=False):
                return link.run("head", self._head, etag, data, self._journal, self.epoch)

        self._insist(lambda: self._database.ask(put, WriteFailed))

    def put(self, key: str, data: bytes) -> None:
        etag = _CLOCK.new_id()
        # The first record makes durable what was put before it.
        done = self._database.write(
            lambda link: link.run("put", key, etag, data, self._journal), sync=self._begun or self.epoch > 1
        )
        if not done:
            raise Gone

    def rewrite(self, lines: Sequence[bytes]) -> None:
        rows = [(self._journal, *row) for row in _rows(lines, 1)]

        def replace(link: Link) -> bool:
            if link.row("mine", self._journal) != (self.epoch,):
                return False
            link.run("clear", self._journal)
            link.many("enter", rows)
            return True

        self._insist(lambda: self._database.write(replace))

    def renew(self) -> None:
        if not self._database.write(lambda link: link.run("renew", self._journal, self.epoch), sync=False):
            raise Fenced

    def release(self) -> None:
        self.drop()
        self._database.write(lambda link: link.run("release", self._journal, self.epoch), sync=self._loose)
        self._loose = False

    def drop(self) -> None:
        if self._owning:
            self._owning = False
            self._database.end()

    def _enter(self, link: Link, rows: Sequence[Row], claim: str, sync: bool) -> bool:
        if not claim:
            return link.append(self._journal, self.epoch, rows, sync) == len(rows)
        with link.transaction(sync=sync):
            if link.row("mine", self._journal) != (self.epoch,):
                return False
            link.many("enter", [(self._journal, *row) for row in rows])
            link.run("claim", claim, self._journal)
        return True

    def _has(self, link: Link, rows: Sequence[Row]) -> bool:
        """Return whether these very lines are there."""
        there = link.rows("between", self._journal, rows[0][0], rows[-1][0])
        return [bytes(line) for (line,) in there] == [line for _, line, _ in rows]

    def _insist(self, write: Callable[[], object]) -> None:
        """Write as the owner.

        Raises:
            Fenced, Gone: It changed nothing, since this is the owner no more.
            Unsure: The database refused, or stays away.
        """
        try:
            if write():
                return
            there = self._database.ask(lambda link: link.row("mine", self._journal))
        except StoreError as error:
            data = {name: value for name, value in error.data.items() if name != "fatal"}
            raise Unsure(error.message, error.hint, **data) from error
        raise Gone if there is None else Fenced


class SqlBackend(Backend):
    """A database of runs; see pipeline.store.backend."""

    lazy = leased = queried = True

    def __init__(self, database: Database) -> None:
        self.url = self.place = database.address.url
        self.database = database
        self.tables = Tables(database)

    def own(self, name: str, since: datetime, *, new: bool = False) -> Tail | None:
        if not self.tables.ready(new or name.startswith(".")):
            return None
        # Made for this once, so that who tries again where the answer was lost finds that it has it.
        text = json.dumps(holder(since, id=_CLOCK.new_id()), separators=(",", ":"))
        owned = self.database.write(lambda link: self._take(link, name, text, new), sync=False)
        if owned is None:
            return None
        taken(self.place, name, owned[1])
        return SqlTail(self, name, *owned)

    def read(self, name: str, after: int = 0) -> Iterator[list[bytes]]:
        found = self._look("found", name)
        if not found or not (found[0][1] or "/" in name):
            raise FileNotFoundError(name)
        return ([bytes(line) for _, line in page] for page in self._pages(found[0][0], after))

    def put_if(self, key: str, data: bytes, etag: str | None) -> str | None:
        self.tables.ready(True)
        mine = _CLOCK.new_id()

        def put(link: Link) -> bool:
            if etag is None:
                return link.run("put_any", key, mine, data) == 1
            done = link.run("put_over", mine, data, key, etag) if etag else link.run("put_new", key, mine, data)
            # Where nothing was changed only the answer to the try before may have been lost.
            return done == 1 or link.row("etag", key) == (mine,)

        return mine if self.database.ask(put, WriteFailed) else None

    def get(self, key: str) -> tuple[bytes, str] | None:
        found = self._look("get", key)
        return (bytes(found[0][0]), found[0][1]) if found else None

    def list(self, prefix: str) -> Iterator[str]:
        after = prefix
        while page := self._look("keys", after, _behind(prefix), _PAGE):
            yield from (key for (key,) in page)
            after = page[-1][0]

    def delete(self, prefix: str) -> None:
        """See Backend.delete. What the calls of a run cost stays in the table `charges_kept`."""
        if not self.tables.ready(False):
            return
        run, _, part = prefix.removeprefix("runs/").partition("/parts/")
        name = f"{run}/{unquote(part)}" if part else run

        def remove(link: Link) -> None:
            if prefix == folder_key(name):
                for (journal,) in link.rows("journals_below", name, f"{name}/", _behind(f"{name}/")):
                    for statement in ("keep_charges", "clear", "remove_journal"):
                        link.run(statement, journal)
            link.run("remove_objects", prefix, f"{prefix}/", _behind(f"{prefix}/"))

        self.database.write(remove)

    def tips(self, claim: str = "", start: str = "") -> Iterator[Tip]:
        name, more = ("tips_of_claim", (claim,)) if claim else ("tips", ())
        # No id lies between one and the same with a space.
        last = (start[:_STEM], len(start), f"{start} ") if start else _NEWEST
        # A caller that wants one run reads no further.
        size = 1 if start else _RUNS
        while page := self._look(name, *last, *more, size):
            yield from map(self._tip, page)
            last = page[-1][:3]
            if len(page) < size:
                return
            size = _RUNS

    def parts(self, run: str, beginning: str = "") -> Sequence[str]:
        return [path for (path,) in self._look("parts", run)]

    def is_there(self) -> bool:
        """See Backend.is_there: whether there are its tables."""
        return self.tables.ready(False)

    def upgrade(self) -> tuple[str, str]:
        """See Backend.upgrade. A name that is mistyped makes no database.

        Raises:
            StoreError: There is no such file.
        """
        if not self.database.exists:
            text, hint = f"There is no store at {self.url}.", "Check its name; the first run creates it."
            raise StoreError(text, hint=hint, code="no_store")
        return self.tables.upgrade()

    def flaws(self, name: str) -> Iterator[str]:
        """See Backend.flaws: whole records under the number of another."""
        found = self._look("found", name)
        for page in self._pages(found[0][0], _FIRST) if found else ():
            for seq, line in page:
                if (said := _number(line)) and said != seq and is_whole(line):
                    yield f"Record {seq} holds record {said}."

    def _take(self, link: Link, name: str, text: str, new: bool) -> tuple[int, int] | None:
        """Enter a journal or take it over, within a transaction: its number and the epoch."""
        run, _, path = name.partition("/")
        found = link.row("lease", name)
        if found is None:
            if not new and not name.startswith(".") and not (path and link.row("run_exists", run)):
                return None
            if made := link.row("begin", name, run, path, run[:_STEM], len(run), text):
                if new:
                    link.run("returned", run)
                return made[0], 1
            # Another was faster.
            found = link.row("lease", name)
        journal, epoch, owner, silent = found
        if owner == text:
            return journal, epoch
        if new:
            return None
        if is_held(self.place, name, epoch, parse(owner), silent):
            raise Held(parse(owner))
        link.run("take", epoch + 1, text, journal)
        return journal, epoch + 1

    def _tip(self, row: Sequence[Any]) -> Tip:
        run, epoch, owner, silent, beat, head, first, last = row[2:]
        return Tip(
            run,
            None if head is None else bytes(head),
            last=-1 if last is None else last,
            leftover=last is None,
            touched=beat,
            first=lambda: bytes(first or b""),
            owned=lambda: is_held(self.place, run, epoch, parse(owner), silent),
            holder=lambda: parse(owner),
        )

    def _look(self, name: str, *values: Any) -> Sequence[Any]:
        """Return the rows that a query finds; none where there are no tables."""
        return self.database.ask(lambda link: link.rows(name, *values)) if self.tables.ready(False) else ()

    def _pages(self, journal: int, after: int) -> Iterator[Sequence[Any]]:
        while page := self._look("lines", journal, after, _PAGE):
            yield page
            after = page[-1][0]
            if len(page) < _PAGE:
                return


def _rows(lines: Sequence[bytes], seq: int) -> list[Row]:
    """Return lines as rows; one that says a later number than the next has a gap before it."""
    rows = list[Row]()
    for line in lines:
        seq = max(seq, _number(line))
        rows.append((seq, line.removesuffix(b"\n"), _kind(line)))
        seq += 1
    return rows


def _kind(line: bytes) -> str | None:
    """Return the kind of a record that views read."""
    found = _KIND.search(line, 0, _NEAR)
    return found[1].decode() if found else None


def _number(line: bytes) -> int:
    """Return the number that a line gives itself; 0 where it gives none."""
    digits = line[7 : line.find(b",", 7)] if line.startswith(b'{"seq":') else b""
    return int(digits) if digits.isdigit() and len(digits) < 19 else 0


def _claim(line: bytes) -> str:
    """Return what a run with this first line claims; "" for nothing."""
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        claim = parse_json(line).get("claim") if b'"claim":' in line else None
        return claim_text(claim) if claim else ""
    return ""


def _behind(prefix: str) -> str:
    """Return the first text behind all that begin with a prefix that ends in a slash."""
    return f"{prefix[:-1]}0"


def open_backend(url: str) -> SqlBackend:
    """Return the backend at `sqlite:FILE` or `postgresql://…`; the database is asked when it is first used.

    Raises:
        ConfigError: The URL names no database.
    """
    return SqlBackend(shared(parse_store_url(url), _database))


def open_sql(url: str, clock: Clock) -> RunStore:
    """Return the store at `sqlite:FILE` or `postgresql://…`.

    Raises:
        ConfigError: The URL names no database.
    """
    return RunStore(open_backend(url), clock)


def _database(address: StoreUrl) -> Database:
    return PostgresDatabase(address) if address.file is None else SqliteDatabase(address)
