"""Which checkpoints stay when a thread is pruned. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pipeline.formats.langgraph.thread import Kept, Key, Thread

#: The channels of a checkpoint that are stored as what was written since an earlier one.
Deltas = Callable[[Kept], Collection[str]]


def newest(thread: Thread, deltas: Deltas) -> set[Key]:
    """The newest checkpoint of each namespace, and those before it that it cannot be put together without.

    A channel of deltas has no value in most checkpoints: it is its last whole value and all that was written
    after that, so the way back to that value stays.
    """
    stay: set[Key] = set()
    for namespace in {key.namespace for key in thread.checkpoints}:
        kept = thread.latest(namespace)
        missing = set(deltas(kept)) - kept.values.keys() if kept is not None else set()
        while kept is not None:
            stay.add(kept.key)
            missing -= kept.values.keys()
            parent = Key(namespace, kept.parent or "")
            kept = thread.checkpoints.get(parent) if missing and parent not in stay else None
    return stay
