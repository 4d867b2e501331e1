"""A diamond asks nothing and does nothing: it has the outcome of what led to it, so that its edges can tell.

The specification lets it succeed, after which a condition such as outcome!=success could never hold behind it.
"""

from __future__ import annotations

from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import FAIL, NodeOutcome

#: Context keys that outlive a diamond.
_PREFERRED, _CLASS, _REASON = "preferred_label", "failure_class", "failure_reason"


def conditional(visit: Visit) -> NodeOutcome:
    """The outcome, preferred label and failure of the visit that led here."""
    ctx = visit.ctx
    arrivals = ctx.arrivals
    if not arrivals:
        return NodeOutcome()
    last = arrivals[-1]
    error = last.error or {}
    return NodeOutcome(
        FAIL if last.failed else last.outcome,
        preferred_label=str(ctx.context.get(_PREFERRED) or ""),
        failure_reason=str(error.get("message") or ctx.context.get(_REASON) or "") if last.failed else "",
        failure_class=str(error.get("class") or ctx.context.get(_CLASS) or "") if last.failed else "",
    )
