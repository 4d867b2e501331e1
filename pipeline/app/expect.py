"""What calls of each kind usually take, learned from the completed courses of this store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pipeline.app.start import open_store
from pipeline.records.charge import TOKEN_KINDS
from pipeline.records.statuses import COMPLETED
from pipeline.records.structure import count
from pipeline.settings import LessonsOptions
from pipeline.store.base import Head

#: The newest so many completed courses count.
RUNS = 20
#: Kinds of call that a course makes once; of the others it makes some for each lesson.
_ONCE = frozenset({"outline"})


@dataclass(frozen=True, slots=True)
class Learned:
    """One kind of call, as it came in earlier courses."""

    #: Calls of a course (outline), or of a lesson (the others), failed and repeated ones included.
    calls: float
    #: Billed tokens of one call by kind.
    tokens: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class History:
    """What completed courses by one model took."""

    runs: int
    kinds: Mapping[str, Learned]


def learn(heads: Iterable[Head], model: str, subject: str = "") -> History:
    """What the newest completed courses by a model took, of the same subject where there are any.

    Reads heads only, so it costs the same however long the runs were.
    """
    documents = [head.document for head in islice((head for head in heads if _counts(head, model)), RUNS)]
    same = [document for document in documents if document.get("subject") == subject]
    chosen = same or documents
    calls: dict[str, int] = {}
    units: dict[str, int] = {}
    tokens: dict[str, dict[str, int]] = {}
    for document in chosen:
        lessons = int((document.get("identity") or {}).get("lessons") or 1)
        labels = {str(row.get("label")) for row in document.get("spend") or ()}
        for label in labels:
            units[label] = units.get(label, 0) + (1 if label in _ONCE else lessons)
        for row in document.get("spend") or ():
            label = str(row.get("label"))
            calls[label] = calls.get(label, 0) + int(row.get("calls") or 0)
            table = tokens.setdefault(label, {})
            for kind, number in (row.get("tokens") or {}).items():
                table[kind] = table.get(kind, 0) + int(number)
    kinds = {
        label: Learned(number / units[label], {kind: count / number for kind, count in tokens[label].items()})
        for label, number in calls.items()
        if number and sum(tokens[label].values())
    }
    return History(len(chosen), kinds)


def expectations(options: LessonsOptions, model: str, subject: str) -> History:
    """What earlier courses of this store say of the next one."""
    return learn(open_store(options.store_url).heads(), model, subject)


def usage(tokens: Mapping[str, float], *, cached: bool = True) -> dict[str, Any]:
    """Tokens by our kinds as a provider's usage object, for pricing; `cached` False: as if nothing had been."""
    counts = {kind: round(tokens.get(kind, 0)) for kind in TOKEN_KINDS}
    if not cached:
        whole = sum(count for kind, count in counts.items() if kind != "output")
        return {"input_tokens": whole, "output_tokens": counts["output"]}
    return {
        "input_tokens": counts["input"],
        "output_tokens": counts["output"],
        "cache_read_input_tokens": counts["cache_read"],
        "cache_creation_input_tokens": counts["cache_write_5m"] + counts["cache_write_1h"],
        "cache_creation": {
            "ephemeral_5m_input_tokens": counts["cache_write_5m"],
            "ephemeral_1h_input_tokens": counts["cache_write_1h"],
        },
    }


def _counts(head: Head, model: str) -> bool:
    document = head.document
    identity = document.get("identity") or {}
    return (
        not head.corrupt
        and document.get("pipeline") == "lessons"
        and document.get("status") == COMPLETED
        and identity.get("model") == model
        and bool(document.get("spend"))
        and not count(identity.get("lessons") or 1)
    )
