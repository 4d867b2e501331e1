"""Start and exit: nothing is done there. Whether a run may leave by its exit (goal gates) the router decides."""

from __future__ import annotations

from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import NodeOutcome


def start(visit: Visit) -> NodeOutcome:
    """Success."""
    return NodeOutcome()


def leave(visit: Visit) -> NodeOutcome:
    """Success."""
    return NodeOutcome()
