"""Who answers a graph's questions: the program itself, a person at the terminal, a function, a list of answers.

None says that there is no answer; the run then waits, and nothing is approved.
"""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Callable, Iterable
from typing import IO, Any

from pipeline.dot.labels import accelerator, agreeing, chosen
from pipeline.engine.events import Event
from pipeline.engine.people import Answer, Interviewer, Question
from pipeline.records.redaction import printable

#: Seconds after which a waiting terminal looks whether the run is stopping.
_SLICE = 0.2


class AutoApprove:
    """Says yes: the question's default, else the choice that says yes, else the first that does not say no."""

    def ask(self, question: Question) -> Answer | None:
        default = str(question.shown.get("default") or "")
        return Answer(default or agreeing(question.choices) or "auto-approved", by="auto-approve")


class Callback:
    """Asks a function: it gives an Answer, the choice as text, or None."""

    def __init__(self, function: Callable[[Question], Answer | str | None]) -> None:
        self._function = function

    def ask(self, question: Question) -> Answer | None:
        return _answer(self._function(question), "callback")


class Queue:
    """Answers given beforehand, one for each question; an empty one answers nothing."""

    def __init__(self, answers: Iterable[Answer | str]) -> None:
        self._answers = list(answers)
        self._lock = threading.Lock()

    def ask(self, question: Question) -> Answer | None:
        with self._lock:
            return _answer(self._answers.pop(0) if self._answers else None, "queue")


class Recording:
    """Passes questions on, and keeps them with their answers."""

    def __init__(self, inner: Interviewer) -> None:
        self._inner = inner
        #: (question, answer) in order.
        self.asked: list[tuple[Question, Answer | None]] = []

    def ask(self, question: Question) -> Answer | None:
        answer = self._inner.ask(question)
        self.asked.append((question, answer))
        return answer


class Console:
    """A person at the terminal; without a terminal there is no answer.

    It may listen to the run's events: once the run is stopping no question is put any more.
    """

    def __init__(self, given: IO[str] | None = None, shown: IO[str] | None = None) -> None:
        self._given = given or sys.stdin
        self._shown = shown or sys.stderr
        self._turn = threading.Lock()
        self._stopping = threading.Event()

    def __call__(self, event: Event) -> None:
        """Hear that the run is stopping."""
        if event.type == "stopping":
            self._stopping.set()

    def ask(self, question: Question) -> Answer | None:
        """Put one question at a time; see Interviewer."""
        try:
            if not (self._given.isatty() and self._shown.isatty()):
                return None
        except ValueError:
            # A stream that is closed.
            return None
        with self._turn:
            self._show(_asked(question))
            while (line := self._line(question.seconds)) is not None:
                choice = chosen(line, question.choices) if line.strip() else str(question.shown.get("default") or "")
                if choice:
                    return Answer(choice, by="console")
                self._show((f"{line.strip()!r} is none of them. " if line.strip() else "") + "> ")
        return None

    def _show(self, text: str) -> None:
        self._shown.write(printable(text))
        self._shown.flush()

    def _line(self, seconds: float | None) -> str | None:
        """Return a line that is typed; None: the time is over, the input has ended, or the run is stopping."""
        left = seconds
        while not self._stopping.is_set():
            wait = _SLICE if left is None else min(_SLICE, left)
            if select.select([self._given], [], [], wait)[0]:
                return self._given.readline() or None
            if left is not None:
                left -= wait
                if left <= 0:
                    return None
        return None


def _asked(question: Question) -> str:
    lines = ["", question.text]
    default = question.shown.get("default")
    for choice in question.choices:
        key = accelerator(choice)
        shown = choice if choice.lstrip().startswith("[") or not key else f"[{key}] {choice}"
        lines.append(f"  {shown}" + (" (default)" if choice == default else ""))
    return "\n".join([*lines, "> "])


def _answer(value: Any, by: str) -> Answer | None:
    return value if value is None or isinstance(value, Answer) else Answer(str(value), by=by)
