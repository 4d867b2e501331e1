"""Runs of any backend as a listing shows them, newest first. Never writes.

A head is trusted while its seal is whole and its journal begins well and is as long as it says. Any other run is
given to `rebuild`, which reads its records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pipeline.clock import parse_iso
from pipeline.errors import RunExists
from pipeline.records.lines import LineDamaged, check_line
from pipeline.records.statuses import COMPLETED
from pipeline.store.backend import Backend, Tip
from pipeline.store.base import Claim, Head
from pipeline.store.head import HeadText, scan_int, sealed, whole_head
from pipeline.store.owner import seen_now

Match = Callable[[Mapping[str, Any]], bool]
#: A run untouched for longer holds its claim no more.
WARM = timedelta(days=7)
Rebuild = Callable[[Backend, Tip], Head | None]


class Listing:
    """The runs of a backend; see store.base.Listable."""

    def __init__(self, backend: Backend, rebuild: Rebuild) -> None:
        """List the runs of a backend.

        Args:
            rebuild: See store.head_rebuild; from outside, so that it need not be loaded before a run needs it.
        """
        self._backend = backend
        self._rebuild = rebuild

    def heads(self, match: Match | None = None, start: str = "", claim: str = "") -> Iterator[Head]:
        """See store.base.Listable.heads.

        Args:
            claim: As for Backend.tips.
        """
        for tip in self._backend.tips(claim, start):
            if not tip.leftover and (head := self._head(tip, match)):
                yield head

    def _head(self, tip: Tip, match: Match | None) -> Head | None:
        if tip.problem:
            return Head(tip.run, {}, corrupt=tip.problem)
        try:
            return self._trusted(tip, match)
        except FileNotFoundError:
            # Removed while we looked.
            return None
        except OSError as error:
            return Head(tip.run, {}, corrupt=f"It cannot be read: {error.strerror}.")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            # Whole records that make no sense to this version: one such run must not hide the others.
            why = f"Its records are inconsistent ({type(error).__name__}: {error})."
            return Head(tip.run, {}, corrupt=why, owned=tip.owned())

    def _trusted(self, tip: Tip, match: Match | None) -> Head | None:
        raw = tip.head
        if raw is None or not tip.journal or not sealed(raw) or not _tells_all(raw, tip):
            return self._rebuilt(tip, match)
        # A folder that was copied is a run of its own, whatever its head says.
        named = {"run_id": tip.run}
        document, owned, changed = HeadText(raw, named), None, {}
        try:
            if document.get("status_detail") == "running":
                owned = tip.owned()
                changed = seen_now(document, owned)
                document = HeadText(raw, {**named, **changed})
            if not document.wanted(match):
                return None
        except ValueError:
            return self._rebuilt(tip, match)
        if not tip.sealed and not _begins_well(tip.first()):
            return self._rebuilt(tip, match)
        return Head(tip.run, document, owned=tip.owned() if owned is None else owned, gone=bool(changed))

    def _rebuilt(self, tip: Tip, match: Match | None) -> Head | None:
        found = self._rebuild(self._backend, tip)
        if found is None:
            return None
        owned = tip.owned()
        if found.corrupt:
            return Head(tip.run, {}, corrupt=found.corrupt, owned=owned, known=whole_head(tip.head))
        changed = seen_now(found.document, owned)
        document = {**found.document, **changed}
        head = Head(tip.run, document, owned=owned, gone=bool(changed))
        return head if match is None or match(document) else None


def _tells_all(raw: bytes, tip: Tip) -> bool:
    """Return whether a head was written after the last record."""
    return scan_int(raw, "journal_bytes") == tip.size if tip.size >= 0 else scan_int(raw, "seq") == tip.last


def _begins_well(line: bytes) -> bool:
    """Return whether a first line is a whole run_started of the first format, which names no format."""
    try:
        check_line(line)
    except LineDamaged:
        return False
    return line.startswith(b'{"seq":1,') and b'"kind":"run_started"' in line and b'"format"' not in line


def refuse_if_held(heads: Callable[[Match], Iterator[Head]], claim: Claim, at: datetime) -> None:
    """Look for the newest unfinished run that holds a claim.

    Raises:
        RunExists: There is one; data["run"].
    """
    wanted = claim.to_json()

    def holds(document: Mapping[str, Any]) -> bool:
        return document.get("claim") == wanted and document.get("status") != COMPLETED and _warm(document, at)

    for head in heads(holds):
        if not head.corrupt:
            raise RunExists(
                f"Run {head.run_id} of this course is not finished.",
                hint=f"Resume it, or use --force for a new run: --resume {head.run_id}",
                run=head.run_id,
            )


def _warm(document: Mapping[str, Any], at: datetime) -> bool:
    try:
        return parse_iso(document["updated_at"]) >= at - WARM
    except (KeyError, TypeError, ValueError):
        return False
