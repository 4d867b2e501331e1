"""Stand-ins for the world in a replay: model, prices, clock and person without answers; no side effects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from pipeline.clock import SystemClock
from pipeline.engine.people import Answer, Question
from pipeline.engine.recorder import Recorder
from pipeline.engine.setup import UNSAFE
from pipeline.engine.sources import Scope
from pipeline.engine.step import StepContext
from pipeline.errors import ModelRejected
from pipeline.llm.base import Reply, Request

#: Tells of something that is not recorded: visit, item, what it is, what was asked for.
Told = Callable[[str, str | None, str, Any], None]


class NotRecorded(ModelRejected):
    """The record does not say."""


class InstantClock(SystemClock):
    """The machine's clock, on which every wait is over at once."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Return whether the event is set; the time has passed."""
        return event.is_set()


class AbsentPerson:
    """The person in a replay; a question that is not recorded gets no answer."""

    def __init__(self, tell: Told) -> None:
        self._tell = tell

    def ask(self, question: Question) -> Answer | None:
        """Tell that the question is not in the record.

        Raises:
            NotRecorded: Always.
        """
        self._tell(question.path, None, "question", question.text)
        raise NotRecorded(f"The records hold no answer to {question.text!r}.")


class VisitOrder:
    """Lets visits go in the order in which they had ended, so that they get the numbers that they had.

    It stands at the run's boundaries (engine.recorder.StepEndHook).
    """

    #: Real seconds after which a visit goes although none runs and the one before it has not come: only where
    #: a damaged record holds a visit that nothing leads to.
    PATIENCE = 5.0

    def __init__(self, order: Sequence[str]) -> None:
        self._order = order
        #: Of the replay, once it runs.
        self.recorder: Recorder
        #: How many of them have ended, without a gap.
        self._next = 0
        self._ended: set[str] = set()
        self._going: set[str] = set()
        self._waiting: dict[str, threading.Event] = {}
        self._open = False
        self._lock = threading.Lock()

    def begun(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def ended(self, path: str) -> None:
        with self._lock:
            self._going.discard(path)
            self._ended.add(path)
            while self._head() in self._ended:
                self._next += 1
            if (waiting := self._waiting.pop(self._head(), None)) is not None:
                waiting.set()

    def wait(self, path: str) -> None:
        """Return once all that had ended before have ended again."""
        with self._lock:
            turn = threading.Event()
            if self._open or self._head() in ("", path):
                turn.set()
            else:
                self._waiting[path] = turn
        while not turn.wait(self.PATIENCE):
            if not self._going:
                self.abandon()
        with self._lock:
            self._going.add(path)

    def abandon(self) -> None:
        """Let all go: the order does not matter any more."""
        with self._lock:
            self._open = True
            for waiting in self._waiting.values():
                waiting.set()
            self._waiting.clear()

    def _head(self) -> str:
        """Return whose turn it is; "": all have ended."""
        return self._order[self._next] if self._next < len(self._order) else ""


class ReplayContext(StepContext):
    """What a body gets in a replay: what acts outside the run gives what is recorded, and does nothing."""

    __slots__ = ("known", "scopes")

    #: The recorded value of a task (visit, name).
    known: Callable[[str, str], Any]
    #: Who asks, innermost last.
    scopes: list[Scope]

    @classmethod
    def around(cls, context: StepContext, known: Callable[[str, str], Any], scopes: list[Scope]) -> ReplayContext:
        """Return the same window on the run, with care."""
        made = cls(*(getattr(context, item.name) for item in fields(StepContext)))
        made.known, made.scopes = known, scopes
        return made

    def _asked(self, request: Request, instead_of: Request | None) -> Reply:
        with self._asking():
            return super()._asked(request, instead_of)

    def task(
        self,
        key: str,
        body: Callable[[StepContext, Any], Any],
        item: Any = None,
        *,
        version: int = 1,
        effect: str = "read",
        repeatable: bool = False,
    ) -> Any:
        if effect not in UNSAFE:
            return super().task(key, body, item, version=version, effect=effect, repeatable=repeatable)
        known = self.known

        def recorded(context: StepContext, _item: Any) -> Any:
            return known(context.path, context._scope.task or "")

        return super().task(key, recorded, item, version=version)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        self.scopes.append(self._scope)
        try:
            yield
        finally:
            self.scopes.pop()

    def _child(self, scope: Scope) -> StepContext:
        return ReplayContext.around(super()._child(scope), self.known, self.scopes)
