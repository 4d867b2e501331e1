"""What one start of a course makes: every step and lesson up to where it stops, made or reused, and why. No prices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from pipeline.records.run import RunState, TaskRun
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.store.reader import LESSONS

RUN, REUSE, SKIP = "run", "reuse", "skip"
_STEPS = ("seed", "sow", "lessons", "publish")
_SOW = "sow#1"
#: Kinds of call that a lesson takes.
LESSON_CALLS = ("lesson", "correction", "solve", "critic")
_MADE = (REUSE, "made before")


@dataclass(frozen=True, slots=True)
class Piece:
    """One step or lesson of a start."""

    name: str
    #: run, reuse, or skip (it failed before, and the course does without).
    action: str
    why: str
    #: Which part of the whole course's calls of a kind (outline, entry, LESSON_CALLS) it asks for.
    shares: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CourseWork:
    """What a start was asked for."""

    #: Lessons of the whole course.
    total: int
    #: The run so far; None: it is new, or all of it may be made again.
    state: RunState | None = None
    #: Stop after this step, and after so many lessons; None: neither.
    until: str | None = None
    sample: int | None = None
    #: Why all but the seed is made again; "": it is not.
    changed: str = ""
    #: A step that is made again, with what follows; lessons that are.
    again: str = ""
    redo: Collection[str] = ()
    #: Lessons that failed are left out.
    skip_failed: bool = False

    @property
    def lessons(self) -> int:
        """Return how many lessons are wanted now, already made or not."""
        return self.total if self.sample is None else min(self.sample, self.total)

    def left(self) -> set[str]:
        """Return the names of the steps and lessons that this start makes."""
        return {piece.name for piece in self.pieces() if piece.action == RUN}

    def pieces(self) -> Iterator[Piece]:
        """Yield every step and lesson in order, as far as this start goes."""
        for step in _STEPS:
            if step == "lessons":
                for order in range(1, self.lessons + 1):
                    yield self._lesson(order)
            yield self._step(step)
            if step == self.until or (step == "lessons" and self.lessons < self.total):
                return

    def _step(self, step: str) -> Piece:
        run = self.state.steps.get(f"{step}#1") if self.state else None
        if run is None:
            found = (RUN, "new")
        elif run.status == COMPLETED:
            found = _MADE
        else:
            found = (RUN, "failed before" if run.status == FAILED else "begun before")
        action, why = self._anew(step, found)
        return Piece(step, action, why, self._scheme() if step == "sow" and action == RUN else {})

    def _scheme(self) -> dict[str, Fraction]:
        """Return the outline, and those details of lessons that are not there yet."""
        if self._again("sow"):
            return {"outline": Fraction(1), "entry": Fraction(1)}
        done = {name for name, task in self._tasks(_SOW).items() if task.status == COMPLETED}
        entries = sum(name.startswith("entry/") for name in done)
        return {
            "outline": Fraction(int("outline" not in done)), "entry": Fraction(max(self.total - entries, 0), self.total)
        }  # fmt: skip

    def _lesson(self, order: int) -> Piece:
        name = f"lessons/{order}"
        task = self._tasks(LESSONS).get(name)
        if task is None:
            found = (RUN, "new")
        elif task.status == COMPLETED:
            found = _MADE
        else:
            why = f"failed before: {str((task.error or {}).get('message', ''))[:60]}"
            found = (SKIP if self.skip_failed else RUN, why)
        action, why = (RUN, "as requested") if name in self.redo else self._anew("lessons", found)
        one = Fraction(1, self.total)
        return Piece(name, action, why, dict.fromkeys(LESSON_CALLS, one) if action == RUN else {})

    def _anew(self, step: str, found: tuple[str, str]) -> tuple[str, str]:
        """Return what was found of a step, or that it is made again: a setting has changed, or it was asked for."""
        return (RUN, self._again(step)) if self._again(step) and found[0] == REUSE else found

    def _again(self, step: str) -> str:
        """Return why all of a step is made again; "": it is not."""
        if self.changed and step != "seed":
            return self.changed
        asked = self.again in _STEPS and _STEPS.index(step) >= _STEPS.index(self.again)
        return "as requested" if asked else ""

    def _tasks(self, path: str) -> Mapping[str, TaskRun]:
        return self.state.tasks.get(path, {}) if self.state else {}
