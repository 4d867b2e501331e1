"""What a fork changes: partitions of a state, key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.clock import Clock
from pipeline.errors import ConfigError
from pipeline.formats.agentos.documents import INPUT, PARTITIONS, SCRATCH, GraphCheckpoint
from pipeline.formats.agentos.ids import fresh_id

#: Partition of a document → what a fork of a run of ours calls it.
_OWN = {INPUT: "params", SCRATCH: "context"}


def checked(patch: Mapping[str, Any]) -> Mapping[str, Any]:
    """The patch.

    Raises:
        ConfigError: It names no partition.
    """
    for name in patch:
        if name not in PARTITIONS:
            raise ConfigError(f"A patch of {name!r}: it changes {', '.join(PARTITIONS)}.")
    return patch


def forked(source: GraphCheckpoint, patch: Mapping[str, Any], clock: Clock) -> GraphCheckpoint:
    """A document's fork: another run, id and time, its parent, and the state as patched."""
    document = source.to_json()
    state = document["state"]
    for name, change in patch.items():
        before = state.get(name)
        both = isinstance(before, Mapping) and isinstance(change, Mapping)
        state[name] = {**before, **change} if both else change
    document |= {
        "id": fresh_id(clock),
        "runId": fresh_id(clock),
        "timestamp": round(clock.now().timestamp() * 1000),
        "parent": {"runId": source.run_id, "id": source.id},
    }
    return GraphCheckpoint.from_json(document)


def of_own_run(patch: Mapping[str, Any]) -> dict[str, Any]:
    """The patch as the values that a fork of a run of ours is given.

    Raises:
        ConfigError: It changes what only the run's own records say, or is no object.
    """
    given: dict[str, Any] = {}
    for name, change in patch.items():
        if not change:
            continue
        if name not in _OWN:
            raise ConfigError(
                f"{name} of a run of ours is what its records say; a fork changes {' and '.join(_OWN)}.",
                hint="Change what the step that made it has read.",
            )
        if not isinstance(change, Mapping):
            raise ConfigError(f"A patch of {name} is an object of keys and values.")
        given.update({f"{_OWN[name]}.{key}": value for key, value in change.items()})
    return given
