"""What the parts of one owner's go at a run share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline.clock import Clock
from pipeline.engine.boundary import Boundary
from pipeline.engine.calls import Caller
from pipeline.engine.desk import Desk
from pipeline.engine.events import Emitter
from pipeline.engine.limits import Room
from pipeline.engine.recorder import Recorder
from pipeline.engine.sources import Sources
from pipeline.engine.stop import Stop
from pipeline.records.run import bare
from pipeline.store.base import Store


class Crew(Protocol):
    """Whoever does the items of a map elsewhere."""

    def takes(self, parent: Any, work: Any) -> bool:
        """Whether it does these items (Scope, tasks.Work)."""

    def do(self, parent: Any, seen: Mapping[str, Any], work: Any, names: Sequence[str], todo: Sequence[int]) -> None:
        """Return when those items have ended and are durable.

        Raises:
            Pause: The run is stopping; what was finished is recorded.
        """


@dataclass(slots=True)
class Running:
    """One owner's go at a run; shared by its threads."""

    recorder: Recorder
    sources: Sources
    clock: Clock
    emit: Emitter
    stop: Stop
    options: Mapping[str, Any]
    caller: Caller | None = None
    services: Mapping[str, Any] = field(default_factory=dict)
    #: Worker threads beside the one that waits; 0: everything runs inline.
    spare: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    #: How many of them there are.
    workers: int = 0
    #: Unknown write/external work may be repeated (--yes).
    repeat_unknown: bool = False
    #: Told of every recorded end of a visit; None: nobody is.
    boundary: Boundary | None = None
    #: Where the run is kept, with its parts.
    store: Store | None = None
    #: Room under the ceiling that is held for tasks an earlier owner handed out: (path, task).
    held: dict[tuple[str, str], Room] = field(default_factory=dict)
    #: Does the items of maps on an executor; None: they are done here.
    crew: Crew | None = None
    #: Maps (step path, name) whose items made by other code were told of.
    told: set[tuple[str, str]] = field(default_factory=set)
    #: What has the work of a visit (or of a task in it) asked anew: (path, task) → words for people.
    anew: Callable[[str, str | None], str] = lambda path, task: f"resume with --from {bare(path)}"

    @property
    def desk(self) -> Desk | None:
        """Where asks wait for a batch; None: none do."""
        return None if self.caller is None else self.caller.desk
