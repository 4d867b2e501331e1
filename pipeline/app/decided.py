"""What a start has decided (a new run, or which one it goes on with) is told once the run is begun or owned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.engine.events import Event, Listener

#: Asks a person; whether the answer was yes.
Confirm = Callable[[str], bool]
_DECIDED = frozenset({"run_new", "run_continuing"})
_BEGUN = frozenset({"run_started", "run_resumed"})


class Decided:
    """A listener before another: a start that is refused has not begun or continued anything."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._held: list[Event] = []

    def __call__(self, event: Event) -> None:
        if event.type in _DECIDED:
            # Of two decisions the later one holds: a new run that somebody else has just begun is gone on with.
            self._held = [each for each in self._held if each.type == event.type] + [event]
            return
        if event.type in _BEGUN:
            self.tell()
        self._listener(event)

    def tell(self) -> None:
        """Tell what was held back."""
        held, self._held = self._held, []
        for event in held:
            self._listener(event)

    def before(self, confirm: Confirm | None) -> Confirm | None:
        """As `confirm`; who is asked for money knows what it is for."""
        if confirm is None:
            return None

        def ask(question: str) -> bool:
            self.tell()
            return confirm(question)

        return ask
