"""The review of a course: how each lesson stands before people, and how what they decide is recorded.

A decision is durable at once in a part of the run. Where no process owns the run it is in the journal just after; else
the owner records it there before it publishes, or the next owner when it opens the run.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pipeline.app.stores import words_of
from pipeline.clock import SystemClock
from pipeline.content.findings import Finding
from pipeline.engine.amendment import take_in
from pipeline.engine.people import standings
from pipeline.errors import ConfigError, DecidedMeanwhile, RunNotFound, StoreError
from pipeline.lessons import review
from pipeline.lessons.earlier import current
from pipeline.lessons.review import ReviewFinding
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import Decision, TaskCompleted
from pipeline.records.lines import encode_line
from pipeline.records.reviews import (
    APPROVE,
    APPROVED,
    CONFLICT,
    EDIT,
    EDITED,
    KEEP,
    MISSING,
    OPEN,
    REDO,
    TAKE,
    TO_REDO,
    UNDO,
    Review,
    ReviewState,
    standing,
)
from pipeline.records.run import REVIEW, RunState
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.records.values import canonical, digest
from pipeline.store.base import Store
from pipeline.store.parts import own_part
from pipeline.store.reader import COURSES, LESSONS, all_records, load, resolve
from pipeline.travel.values import Reader

#: Decisions as people read them.
WORDS: Mapping[str, str] = {
    APPROVE: "approved", EDIT: "edited", REDO: "to be made again", KEEP: "edit kept", TAKE: "new version taken",
    UNDO: "taken back",
}  # fmt: skip
_URGENCY = {CONFLICT: 0, OPEN: 1, MISSING: 3, TO_REDO: 4, APPROVED: 5, EDITED: 5}
#: How a lesson stands that nobody wrote: the offline author has no topic for it.
NOT_WRITTEN = "not_written"
_GRAVITY = {review.SEVERE: 0, review.FINDING: 1, review.NONE: 2}
_MOST_NAME, _MOST_NOTE = 80, 2000
#: Longest text of an edit, several times what any field may have, and of all its texts together; before the checks.
_MOST_TEXT, _MOST_TEXTS = 10_000, 500_000
#: How often a decision is checked again after a concurrent one.
_TRIES = 5
#: Values read lately, by store, run and hash: a page asks for the same again, in any thread.
_READ: OrderedDict[tuple[str, str, str], Any] = OrderedDict()
_READING = threading.Lock()
_MOST_READ = 256

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LessonReview:
    """One lesson before people."""

    order: int
    title: str
    standing: ReviewState
    #: What to look at, gravest first.
    findings: Sequence[ReviewFinding] = ()
    #: Why there is no lesson; "" where there is one, or will be.
    failed: str = ""
    #: Nothing failed: there was nothing to write it from.
    unwritten: bool = False

    @property
    def severity(self) -> str:
        """Return how grave the gravest finding is."""
        return self.findings[0].severity if self.findings else review.NONE

    @property
    def status(self) -> str:
        """Return conflict, open, approved, edited, redo, missing, not_written or failed."""
        return NOT_WRITTEN if self.unwritten else FAILED if self.failed else self.standing.status

    def to_json(self) -> Json:
        """Return it as commands and pages show it."""
        last = self.standing.last
        return {
            "lesson": self.order,
            "title": self.title,
            "status": self.status,
            "severity": self.severity,
            "findings": [each.to_json() for each in self.findings],
            "content": self.standing.content,
            "mark": self.standing.mark,
            "by": list(self.standing.names),
            "choice": last.choice if last else None,
            "at": last.at if last else None,
            "note": last.note if last else "",
            "undo": self.standing.undoable.choice if self.standing.undoable else None,
            "failed": self.failed,
        }


class CourseReview:
    """A course as its reviewers see it; its lessons are read when they are asked for."""

    def __init__(self, store: Store, state: RunState) -> None:
        """Look at a run.

        Raises:
            ConfigError: It makes no course, or has no scheme of work yet.
        """
        #: ` --store URL` for commands that are printed; "" for the default store.
        self.store_words = words_of(store.url)
        if state.pipeline != COURSES:
            raise ConfigError(
                f"Run {state.run_id} belongs to the pipeline {state.pipeline!r}, and makes no lessons.",
                code="other_pipeline", hint=f"`./pipeline.sh list{self.store_words}` shows the runs.",
            )  # fmt: skip
        self.run, self.state = state.run_id, state
        self._store, self._reader = store, Reader(store, state.run_id)
        sow = state.steps.get("sow#1")
        if sow is None or "scheme" not in sow.artifacts or "catalogue" not in state.pins:
            raise ConfigError(f"Run {self.run} has no scheme of work yet, so it has no lessons.",
                              code="no_scheme", hint=f"./pipeline.sh status {self.run}{self.store_words}")  # fmt: skip
        self.scheme: Json = self._blob(sow.artifacts["scheme"])
        self.standings = standings(state, LESSONS)

    @classmethod
    def of(cls, store: Store, text: str) -> CourseReview:
        """Return the course of a run, by its id, a unique beginning of it, or latest.

        Raises:
            RunNotFound, ConfigError: There is none.
        """
        return cls(store, load(store, resolve(store, text, COURSES)))

    @cached_property
    def course(self) -> Json:
        """Return the course of the catalogue that the run is pinned to."""
        found: Json = self._blob(self.state.pins["catalogue"])
        return found

    @property
    def offline(self) -> bool:
        """Return whether no model writes it: a lesson that is made again comes out the same, whatever a note says."""
        return self.state.identity.get("author") == "offline"

    def entry(self, order: int) -> Json:
        """Return a lesson's entry in the scheme."""
        found: Json = self.scheme["entries"][order - 1]
        return found

    @cached_property
    def _rows(self) -> Mapping[int, Json]:
        """Return the rows of all lessons once the step has ended: they tell, too, what only the whole course shows."""
        step = self.state.steps.get(LESSONS)
        if step is None or step.status != COMPLETED or "lessons" not in step.artifacts:
            return {}
        return {int(row["order"]): row for row in self._blob(step.artifacts["lessons"])}

    def made(self, order: int) -> Json | None:
        """Return the row of a lesson as it was made last; None: it is not there."""
        task = self.state.tasks.get(LESSONS, {}).get(f"lessons/{order}")
        if task is None or task.status != COMPLETED:
            return None
        row = self._rows.get(order)
        if row is None:
            key = self._store.url, self.run, f"{order}:{task.hash}:{task.seq}"
            row = _read(key, lambda: self._reader.task(LESSONS, f"lessons/{order}", task))
        return current(row, self.entry(order)) if row.get("lesson") is not None else None

    def edit(self, order: int) -> Json | None:
        """Return the row as a person edited it: what is in force, or in conflict; None: no edit."""
        found = self.standing(order).edit
        return self._blob(found) if found else None

    def content(self, order: int) -> Json | None:
        """Return the row that is to be decided upon: the edit in force, else what was made."""
        found = self.standing(order)
        return self.edit(order) if found.edit and found.status != CONFLICT else self.made(order)

    def standing(self, order: int) -> ReviewState:
        """Return how a lesson stands."""
        return self.standings.get(f"lessons/{order}") or standing("", 0, ())

    def lesson(self, order: int) -> LessonReview:
        """Return one lesson."""
        found, row = self.standing(order), self.content(order)
        title = str((row["lesson"] if row else self.entry(order)).get("title") or self.entry(order).get("label", ""))
        if row is not None:
            return LessonReview(order, title, found, review.findings_of(row))
        task = self.state.tasks.get(LESSONS, {}).get(f"lessons/{order}")
        if task is None:
            return LessonReview(order, title, found)
        failed = str((task.error or {}).get("message") or "No topic of the question bank has it yet.")
        return LessonReview(order, title, found, failed=failed, unwritten=task.status == COMPLETED)

    def queue(self) -> list[LessonReview]:
        """Return every lesson, the most urgent first: conflicts, then by their findings, then what is decided."""
        found = [self.lesson(order) for order in range(1, len(self.scheme["entries"]) + 1)]
        return sorted(found, key=lambda each: (
            _URGENCY.get(each.status, 9), _GRAVITY[each.severity] if each.status == OPEN else 0, each.order
        ))  # fmt: skip

    def history(self, order: int) -> Sequence[Review]:
        """Return all decisions about a lesson, oldest first."""
        return self.state.reviews.get((LESSONS, f"lessons/{order}"), ())

    def _blob(self, name: str) -> Any:
        return _read((self._store.url, self.run, name), lambda: self._reader.blob(name))


def progress(queue: Sequence[LessonReview]) -> Json:
    """Return how far a review is; in "total" only lessons that are there, or will be, count."""
    there = [each for each in queue if not each.failed]
    return {
        "approved": sum(each.status in (APPROVED, EDITED) for each in there),
        "total": len(there),
        "conflicts": sum(each.status == CONFLICT for each in there),
        "redo": sum(each.status == TO_REDO for each in there),
        "unwritten": sum(each.unwritten for each in queue),
    }


def to_redo(state: RunState) -> dict[tuple[str, str], str]:
    """Return the lessons that people want made again, each with what to change."""
    return {
        (LESSONS, task): each.last.note
        for task, each in standings(state, LESSONS).items()
        if each.status == TO_REDO and each.last is not None
    }


def decided_since(state: RunState) -> bool:
    """Return whether people decided about lessons since the course was published, so that publishing is void."""
    done = state.steps.get("publish#1")
    ended = done.ended_seq if done is not None and done.status == COMPLETED else 0
    return bool(ended) and any(each.seq > ended for found in state.reviews.values() for each in found)


def undecided(state: RunState) -> int:
    """Return how many lessons that are there wait for a decision."""
    return sum(each.status in (OPEN, CONFLICT) for each in standings(state, LESSONS).values())


def order_of(text: str) -> int:
    """Return the number of a lesson: 9, lessons/9.

    Raises:
        ConfigError: It is none.
    """
    number = text.rpartition("/")[2]
    if not number.isdecimal() or not 1 <= int(number) <= 999:
        raise ConfigError(f"{text!r} is not a lesson.", code="lesson_not_found", hint="Name it by its number: 9, or "
                          "lessons/9.")  # fmt: skip
    return int(number)


# --- deciding ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReviewDecision:
    """Hold what a person decides about one lesson."""

    choice: str
    by: str
    note: str = ""
    #: `ReviewState.mark` of what they saw; "": whatever stands now.
    mark: str = ""
    #: Of an edit: all of the lesson, or new values by their addresses.
    edit: Mapping[str, Any] | None = None


def decide(store: Store, text: str, order: int, decision: ReviewDecision) -> LessonReview:
    """Record what a person decides about a lesson, durably; return the lesson after it.

    Raises:
        DecidedMeanwhile: What they saw is not what stands now.
        ConfigError: The edit does not pass its checks (edit_rejected, data["findings"]), or this cannot be decided of
            this lesson.
        RunLocked: Another reviewer holds the reviews of this run.
    """
    run, clock = resolve(store, text, COURSES), SystemClock()
    decision = replace(decision, by=_name(decision.by), note=decision.note.strip()[:_MOST_NOTE])
    for _ in range(_TRIES):
        # Checks take seconds, so the part is owned only after them.
        before = CourseReview.of(store, run)
        fact, edited = _decision(before, order, decision)
        with closing(own_part(store, run, REVIEW, clock)) as part:
            if CourseReview.of(store, run).standing(order).mark != before.standing(order).mark:
                continue
            if edited is not None:
                part.put_blob(edited)
            seq = part.last_seq + 1
            part.append(seq, [encode_line(seq, clock.stamp(), seq, encode_fact(fact))])
            break
    else:
        raise DecidedMeanwhile(f"Others keep deciding about lesson {order}.", lesson=order)
    # Where a living process owns the run, it takes it in; should anything else be wrong, the next owner does.
    with suppress(StoreError):
        take_in(store, run, clock)
    return CourseReview.of(store, run).lesson(order)


def _name(name: str) -> str:
    plain = " ".join("".join(letter for letter in name if letter.isprintable()).split())
    if not plain or len(plain) > _MOST_NAME:
        raise ConfigError("A review needs the name of who decides, as it is to be published.", code="reviewer_unnamed",
                          hint='Give it with --by "M. Reid", or set PIPELINE_REVIEW_BY.')  # fmt: skip
    return plain


def _decision(course: CourseReview, order: int, decision: ReviewDecision) -> tuple[Decision, bytes | None]:
    """Return the record of a decision, and the text of the edited row where it edits.

    Raises:
        ConfigError: It cannot be decided so.
    """
    if not 1 <= order <= len(course.scheme["entries"]):
        raise RunNotFound(f"Run {course.run} has no lesson {order}.", code="lesson_not_found",
                          hint=f"It has lessons 1 to {len(course.scheme['entries'])}.")  # fmt: skip
    found = course.standing(order)
    _check_seen(order, found, decision)
    row = course.content(order)
    if row is None:
        raise _cannot(order, "is not there: it is being made, or failed", code="lesson_not_made")
    kept, text = "", None
    if decision.choice == EDIT:
        text = _edited(course, order, row, decision)
        kept = digest(text)
    elif decision.choice in (KEEP, TAKE):
        if found.status != CONFLICT:
            raise _cannot(order, "has no edit in conflict with a new version", code="no_conflict")
        if decision.choice == KEEP:
            edit = course.edit(order) or row
            _check_passes(order, checked_edit(course, order, edit["lesson"])[1])
            kept = found.edit
    else:
        _check_possible(course.lesson(order), decision)
    task = f"lessons/{order}"
    return Decision(LESSONS, found.content, decision.choice, decision.by, decision.note, task, kept), text


def _check_possible(lesson: LessonReview, decision: ReviewDecision) -> None:
    """Refuse an approval, a redo or an undo that makes no sense of a lesson as it stands."""
    if decision.choice == APPROVE:
        _check_approvable(lesson, decision)
    elif decision.choice == UNDO and lesson.standing.undoable is None:
        raise _cannot(lesson.order, "has no decision that could be taken back", code="nothing_to_undo")
    elif decision.choice == REDO and not decision.note:
        raise _cannot(lesson.order, "needs a note on what to change", code="note_missing")


def _check_seen(order: int, found: ReviewState, decision: ReviewDecision) -> None:
    """Refuse to decide about what has been decided or made again since the reviewer looked."""
    content = decision.mark.rpartition(".")[0]
    if not decision.mark or found.mark == decision.mark:
        return
    if content != found.content and not (found.edit == found.content and found.last):
        raise DecidedMeanwhile(f"Lesson {order} has been made again meanwhile.",
                               hint="Look at the new version first.", lesson=order)  # fmt: skip
    who = f"{found.last.by} decided about lesson {order}: {WORDS[found.last.choice]}" if found.last else (
        f"a decision about lesson {order} was taken back"
    )  # fmt: skip
    raise DecidedMeanwhile(f"Meanwhile {who}.", hint="Look at what stands now first.", lesson=order,
                           by=found.last.by if found.last else "")  # fmt: skip


def _check_approvable(lesson: LessonReview, decision: ReviewDecision) -> None:
    found = lesson.standing
    if found.status == CONFLICT:
        raise _cannot(lesson.order, "was edited, and made again since: decide first which version holds",
                      code="edit_in_conflict", hint="--keep, --take or --edit FILE decides it.")  # fmt: skip
    if found.status == APPROVED and found.last is not None:
        raise DecidedMeanwhile(f"Lesson {lesson.order} is approved by {found.last.by} already.", lesson=lesson.order,
                               by=found.last.by)  # fmt: skip
    if lesson.severity == review.SEVERE and not found.edit and not decision.note:
        raise _cannot(lesson.order, f"has a severe finding ({lesson.findings[0].text}): say why it is approved",
                      code="note_missing", hint="Add --note TEXT.")  # fmt: skip


def checked_edit(course: CourseReview, order: int, edit: Mapping[str, Any]) -> tuple[Json, Sequence[Finding]]:
    """Return the row of a lesson with an edit, and what must be put right before it can be saved.

    Args:
        edit: As `ReviewDecision.edit`.

    Raises:
        ConfigError: There is no lesson, or no such place in it.
    """
    row = course.content(order)
    if row is None:
        raise _cannot(order, "is not there: it is being made, or failed", code="lesson_not_made")
    lesson = edit if "cards" in edit else review.changed(row["lesson"], edit)
    sizes = {at: len(text) for at, text in review.leaves(lesson).items() if isinstance(text, str)}
    if max(sizes.values(), default=0) > _MOST_TEXT or sum(sizes.values()) > _MOST_TEXTS:
        raise _cannot(order, f"has a text that is far too long ({max(sizes, key=sizes.__getitem__)})",
                      code="edit_too_long")  # fmt: skip
    return review.checked(row, lesson, course.entry(order), course.course)


def _edited(course: CourseReview, order: int, row: Json, decision: ReviewDecision) -> bytes:
    made, blocking = checked_edit(course, order, decision.edit or {})
    if made["lesson"] == row["lesson"]:
        raise _cannot(order, "is the same as before the edit", code="nothing_edited")
    _check_passes(order, blocking)
    return canonical(made)


def _check_passes(order: int, blocking: Sequence[Finding]) -> None:
    if blocking:
        lines = [each.line() for each in blocking]
        more = f" (and {len(lines) - 1} more)" if lines[1:] else ""
        raise ConfigError(f"The edit of lesson {order} does not pass its checks: {lines[0]}{more}",
                          code="edit_rejected", hint="Put it right; nothing was saved.", findings=lines)  # fmt: skip


def _cannot(order: int, why: str, *, code: str, hint: str = "") -> ConfigError:
    return ConfigError(f"Lesson {order} {why}.", code=code, hint=hint, lesson=order)


# --- calibration examples ---------------------------------------------------------------------------


def examples(store: Store, text: str) -> Iterator[Json]:
    """Yield each decision that holds of what it was about: the draft, the edit, what was found, the verdict."""
    course = CourseReview.of(store, text)
    asked = {(task, each.question) for (_, task), found in course.state.reviews.items() for each in found}
    reader, drafts = Reader(store, course.run), dict[tuple[str, str], Any]()
    for record in all_records(store, course.run):
        fact = record.fact
        if isinstance(fact, TaskCompleted) and (fact.task, fact.hash) in asked:
            drafts[fact.task, fact.hash] = reader.whole(json.loads(fact.value))
    for (_, task), found in sorted(course.state.reviews.items(), key=lambda pair: order_of(pair[0][1])):
        order = order_of(task)
        for each in found:
            row = drafts.get((task, each.question)) or (
                reader.blob(each.question) if each.question in {one.edit for one in found} else None
            )
            if row is None or each.choice == UNDO:
                continue
            edit = reader.blob(each.edit)["lesson"] if each.edit else None
            yield {
                "run": course.run,
                **{name: course.state.params.get(name) for name in ("subject", "level")},
                "lesson": order,
                "draft": row["lesson"],
                "edit": edit,
                "findings": [finding.to_json() for finding in review.findings_of(row)],
                "verdict": each.choice,
                "note": each.note,
                "by": each.by,
                "at": each.at,
            }


def _read(key: tuple[str, str, str], read: Callable[[], Any]) -> Any:
    """Return a value that never changes, from those read lately."""
    with _READING:
        if key in _READ:
            _READ.move_to_end(key)
            return _READ[key]
    value = read()
    with _READING:
        _READ[key] = value
        while len(_READ) > _MOST_READ:
            _READ.popitem(last=False)
    return value
