"""Texts that a run is pinned to and its store has lost: put back where this program still has the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.app.identity import identity_of
from pipeline.app.start import Start
from pipeline.errors import CheckpointCorrupt, ConfigError
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import canonical, digest

if TYPE_CHECKING:
    from pipeline.records.run import RunState


def pins_again(start: Start, state: RunState, given: Mapping[str, Any]) -> dict[str, Any]:
    """The lost texts themselves, by name, to be stored again; a value is the same where its hash is.

    A completed run is left as it is.

    Args:
        given: Those that are replaced anyway.

    Raises:
        CheckpointCorrupt: One is lost, and this program has another one of its name.
    """
    if state.status == COMPLETED:
        return {}
    lost = {
        name: blob for name, blob in state.pins.items() if name not in given and name != "graph"
        and not _is_there(start, state.run_id, blob)
    }  # fmt: skip
    if not lost:
        return {}
    now = _present(start, state)
    same = {name: now[name] for name, blob in lost.items() if name in now and _hash(name, now[name]) == blob}
    if other := [name for name in lost if name not in same]:
        raise CheckpointCorrupt(
            f"The store has lost the {_called(other[0])} that run {state.run_id} works from ({lost[other[0]]}), "
            "and the one of this program is another.",
            hint=f"Bring it back: `store copy` from another store that has the run. "
            f"Or begin anew: --force. `store check {state.run_id}` shows what else is lost.",
            blob=lost[other[0]],
        )
    names = ", ".join(_called(name) for name in same)
    start.emit("note", text=f"The store had lost what the run works from ({names}); this program has the same, and "
               "puts it back.")  # fmt: skip
    return same


def _is_there(start: Start, run: str, blob: str) -> bool:
    try:
        start.store.get_blob(run, blob)
    except CheckpointCorrupt:
        return False
    return True


def _present(start: Start, state: RunState) -> dict[str, Any]:
    """What a new run of the same course would be pinned to now."""
    from pipeline.lessons.catalogue import Catalogue

    try:
        course = Catalogue(start.options.catalogue).course(
            str(state.params.get("subject")), str(state.params.get("level"))
        )
    except ConfigError:
        return {}
    return identity_of(start.options, str(state.identity.get("model")), course)[1]


def _hash(name: str, value: Any) -> str:
    return digest(canonical(value, name))


def _called(name: str) -> str:
    kind, _, rest = name.partition(":")
    return f"prompt {rest}" if kind == "prompt" else kind
