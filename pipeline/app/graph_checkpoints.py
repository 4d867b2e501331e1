"""CheckpointStore as the library offers it: a fork of one of our runs is a run, made by time travel."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.clock import Clock
from pipeline.formats.agentos import store as agentos
from pipeline.store.base import Store
from pipeline.travel.fork import fork_run


class CheckpointStore(agentos.GraphCheckpointStore):
    """The checkpoints of graph runs in a store; see formats.agentos.store.GraphCheckpointStore."""

    def __init__(self, store: Store, *, nodes: Mapping[str, str] | None = None, clock: Clock | None = None) -> None:
        """Use a store; it needs nothing else.

        Args:
            nodes: Node → before, after, both or none: its own boundaries that are listed, whatever the policy.
        """
        super().__init__(store, fork_run, nodes=nodes, clock=clock)
