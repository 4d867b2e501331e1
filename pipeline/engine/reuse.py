"""Whether a visit that is void only because something before it changed would come out the same, so that it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.engine.sources import Sources
from pipeline.records.run import WHOLE, StepRun

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
