"""Heads of the runs in a database, newest first, a page at a time. Never writes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pipeline.store.base import Claim, Head
from pipeline.store.head import HeadText, scan_int, sealed, whole_head
from pipeline.store.owner import seen_now
from pipeline.store.sql import blobs
from pipeline.store.sql.database import Database
from pipeline.store.sql.lease import is_held
from pipeline.store.sql.rows import as_bytes, end_of, lines_of
from pipeline.store.view import first_problem, fresh_document

Match = Callable[[Mapping[str, Any]], bool]
_PAGE = 50
_BEFORE = " AND (j.stem, j.width, j.run_id) < (?, ?, ?)"
_ORDER = " ORDER BY j.stem DESC, j.width DESC, j.run_id DESC LIMIT ?"


def claim_text(claim: Claim | None) -> str:
    """A claim as it is looked for; "" for none."""
    return json.dumps(claim.to_json()) if claim else ""


class Heads:
    """The runs of a database; see store.base.Listable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, match: Match | None = None, claim: str = "") -> Iterator[Head]:
        """All runs, or those that began with a claim, newest first."""
        last: tuple[str, int, str] | None = None
        while True:
            rows = self._page(last, claim)
            for row in rows:
                if head := self._head(row, match):
                    yield head
            if len(rows) < _PAGE:
                return
            last = tuple(rows[-1][:3])

    def _page(self, last: tuple[str, int, str] | None, claim: str) -> Any:
        sql = (
            f"SELECT j.stem, j.width, j.run_id, j.journal, j.head, l.epoch, l.holder, l.beat_at,"
            f" {self._database.now}, r.line, (SELECT MAX(seq) FROM records e WHERE e.journal = j.journal)"
            " FROM journals j LEFT JOIN leases l ON l.journal = j.journal"
            " LEFT JOIN records r ON r.journal = j.journal AND r.seq = 1 WHERE j.path = ''"
        )
        values: list[Any] = [claim] if claim else []
        sql += " AND j.claim = ?" * bool(claim) + _BEFORE * bool(last) + _ORDER
        with self._database.read() as link:
            return link.rows(sql, *values, *(last or ()), _PAGE)

    def _head(self, row: Any, match: Match | None) -> Head | None:
        _, _, run, journal, raw, epoch, holder, beat, now, first, last_seq = row
        owned = is_held(self._database, journal, epoch, holder, beat, now)
        raw, first = as_bytes(raw or b""), as_bytes(first or b"")
        if not _begins_well(first) and (problem := first_problem(first)):
            return Head(run, {}, corrupt=problem.message, owned=owned, known=whole_head(raw))
        if sealed(raw) and scan_int(raw, "seq") == last_seq:
            with contextlib.suppress(ValueError):
                known = HeadText(raw, seen_now(HeadText(raw, {}), owned))
                return Head(run, known, owned=owned) if known.wanted(match) else None
        try:
            document = self._fresh(run, journal, raw)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            return Head(run, {}, corrupt=f"Its records make no sense ({error}).", owned=owned)
        document |= seen_now(document, owned)
        return Head(run, document, owned=owned) if match is None or match(document) else None

    def _fresh(self, run: str, journal: int, raw: bytes) -> dict[str, Any]:
        old = whole_head(raw)
        with self._database.read() as link:
            _, size = end_of(link, journal)
        return fresh_document(run, lines_of(self._database, journal), size, old, lambda blob: self._blob(run, blob))

    def _blob(self, run: str, blob: str) -> bytes:
        with self._database.read() as link:
            return blobs.get(link, run, blob)


def _begins_well(line: bytes) -> bool:
    """Whether a first line starts a run in the first format, as nearly all do; `first_problem` knows the rest."""
    return b'"kind":"run_started"' in line and b'"format"' not in line and line.startswith(b'{"seq":1,')
