"""Recorded work that answers work of now: replies to the same ask, and a former visit that comes out the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.engine.sources import Sources, Values
from pipeline.llm.base import Request
from pipeline.records.run import WHOLE, CallRun, StepRun
from pipeline.records.values import canonical

#: Why the edges of such a visit were chosen, as recorded.
UNCHANGED = "unchanged"


def unchanged(
    former: StepRun | None,
    consumed: Sequence[Sequence[str]],
    version: int,
    sources: Sources,
    seen: Mapping[str, Any],
) -> bool:
    """Whether the former visit read nothing but what is the same now.

    Args:
        former: As it was when it became void; None: there is none.
        consumed: The tokens that the visit consumes now.
        seen: The context as it is seen now.
    """
    if former is None or former.version != version or not WHOLE.isdisjoint(former.reads):
        return False
    if sorted(map(tuple, former.consumed)) != sorted(map(tuple, consumed)):
        return False
    return all(sources.hash(name, seen) == known for name, known in former.reads.items())


def tries_of(
    asks: Mapping[tuple[str, int], Sequence[CallRun]], request: Request, n: int, values: Values
) -> Sequence[CallRun]:
    """The recorded tries of the n-th equal ask of an attempt.

    Earlier versions left a schema without an id out of the hash: of what they recorded, that counts which was asked
    with the same schema.
    """
    key, former = request.hash(), request.former_hash()
    if key == former or (former, 1) not in asks:
        return asks.get((key, n), ())
    recorded = sorted(ask for ask in asks if ask[0] == former)
    same = [asks[ask] for ask in recorded if _had_schema(asks[ask], request, values)]
    return same[n - 1] if n <= len(same) else asks.get((key, n), ())


def _had_schema(tries: Sequence[CallRun], request: Request, values: Values) -> bool:
    sent = next((call.request for call in tries if call.request), "")
    return not sent or canonical(values.blob(sent).get("schema")) == canonical(request.schema)
