"""How a visit ended as the rules of routing see it: its outcome word, its failure, and what conditions can ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.dot.values import as_text
from pipeline.engine.routing import Settled
from pipeline.formats.attractor.outcome import FAIL, SUCCESS, normalise
from pipeline.formats.attractor.retry import kind_of
from pipeline.records.values import digest

#: Context keys that say what a tool wrote: failures that differ there are not the same.
_WRITTEN = ("tool.output", "tool.stderr", "tool_stdout")
#: So much of it tells failures apart.
_TAIL = 2000
_HEX = re.compile(r"\b(?:0x)?[0-9a-f]{7,}\b")
_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Ending:
    """One visit's end."""

    #: success, partial_success, fail, retry, skipped, or a word of the graph's own.
    outcome: str
    #: {"type", "message", …} where it failed.
    error: Mapping[str, Any] | None
    #: Kind of failure; "": unknown, or none.
    kind: str
    preferred_label: str
    suggested_next_ids: tuple[str, ...]
    #: Where conditions look, in order: what is known beside the context, what the visit set, what it saw.
    tables: tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]

    @property
    def failed(self) -> bool:
        return self.outcome == FAIL

    @property
    def reason(self) -> str:
        """Why it failed; "" where it did not."""
        return str((self.error or {}).get("message") or "")

    def lookup(self, key: str) -> str:
        """What a condition finds under a key; "" where there is nothing."""
        for table in (self.own(), *self.tables):
            if key in table:
                return value_text(table[key])
        return ""

    def own(self) -> dict[str, str]:
        """Keys that say how it ended."""
        return {
            "outcome": self.outcome,
            "preferred_label": self.preferred_label,
            "failure_reason": self.reason,
            "failure_class": self.kind,
        }

    def as_failure(self, type: str, message: str, kind: str = "") -> Ending:
        """The same visit, judged to have failed."""
        error = {"type": type, "message": message, **({"class": kind} if kind else {})}
        return replace(self, outcome=FAIL, error=error, kind=kind)


def ending_of(settled: Settled, known: Mapping[str, Any]) -> Ending:
    """How a visit ended, from what its handler said, or the error it raised.

    Args:
        known: What conditions may ask for beside the context.
    """
    hints, changes = settled.hints, settled.changes
    outcome = FAIL if settled.failed else normalise(settled.outcome) or SUCCESS
    error = settled.error
    if outcome == FAIL and error is None:
        error = {"type": "NodeFailed", "message": str(hints.get("failure_reason") or "It failed without a reason.")}
    kind = ""
    if outcome == FAIL:
        kind = str(hints.get("failure_class") or "") or kind_of(error) or str(changes.get("failure_class") or "")
    suggested = hints.get("suggested_next_ids") or changes.get("suggested_next_ids") or ()
    return Ending(
        outcome, error if outcome == FAIL else None, kind,
        str(hints.get("preferred_label") or changes.get("preferred_label") or ""),
        tuple(str(item) for item in suggested) if isinstance(suggested, (list, tuple)) else (),
        (known, changes, settled.seen),
    )  # fmt: skip


def value_text(value: Any) -> str:
    """A context value as conditions compare it; truths are true and false, what is no single value is JSON."""
    if value is None:
        return ""
    if isinstance(value, (str, bool, int, float)):
        return as_text(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def signature(node: str, ending: Ending) -> str:
    """What tells failures apart: the same node, kind and words, whatever numbers and ids stand in them."""
    written = [value_text(ending.tables[1].get(key))[-_TAIL:] for key in _WRITTEN]
    text = " ".join([ending.kind, ending.reason, *written]).lower()
    text = " ".join(_DIGITS.sub("#", _HEX.sub("#", text)).split())
    return f"{node}:{digest(text.encode('utf-8', 'surrogatepass'))[:16]}"
