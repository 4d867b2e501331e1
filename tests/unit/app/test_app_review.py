"""What people decide about the lessons of a course: checked, bound to what they saw, published, never lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.app.review import CourseReview, LessonReview, ReviewDecision, decide, examples, progress, to_redo
from pipeline.clock import SystemClock
from pipeline.cost.prices import PriceBook
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Setup
from pipeline.errors import ConfigError, RunNotFound
from pipeline.lessons import review
from pipeline.lessons.pipeline import PIPELINE
from pipeline.lessons.review import differences
from pipeline.llm.base import ModelInfo, Reply, Request
from pipeline.publish import site
from pipeline.publish.base import Bundle
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from pipeline.travel.fork import fork
from tests.faulty_disk import LazyDisk
from tests.reviews import question_with_a_root
from tests.unit.lessons.test_lessons_pipeline import PINS, Author, Shelf

STEM = "c1.q1.feedback"
NEW = "A person wrote this feedback by hand, and it says why."


class Place:
    """A store in a folder, and a shelf for what is published."""

    def __init__(self, root: Path) -> None:
        self.store = FileStore(root, SystemClock(), disk=LazyDisk())
        self.shelf = Shelf()

    @property
    def run(self) -> str:
        return next(iter(self.store.heads())).run_id

    def go(self, author: Any = None, **options: Any) -> RunResult:
        """Start the course, or resume it as the command does."""
        author = author or Author(author="model")
        clock = SystemClock()
        setup = Setup(self.store, clock, Emitter(clock, []), {"concurrency": 1, "review": True, **options}, author)
        setup.info, setup.services, setup.prices = author.check(), {"publisher": self.shelf}, PriceBook()
        engine = Engine(PIPELINE.definition, setup)
        if list(self.store.heads()):
            return engine.resume(self.run, redo=to_redo(load(self.store, self.run)))
        identity = {"author": setup.info.author, "model": "test-author", "effort": None, "lessons": 2}
        return engine.start({"subject": "mathematics", "level": "national_5"}, identity=identity, pins=PINS)

    def decide(self, order: int, choice: str, by: str = "M. Reid", **more: Any) -> LessonReview:
        return decide(self.store, self.run, order, ReviewDecision(choice, by, **more))

    def lesson(self, order: int) -> LessonReview:
        return CourseReview.of(self.store, self.run).lesson(order)

    @property
    def published(self) -> Bundle:
        return self.shelf.bundles[-1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of two lessons that waits for its review."""
    root = tmp_path_factory.mktemp("made") / "runs"
    result = Place(root).go()
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "waiting_for_human", 8)
    assert result.error is not None
    assert (result.error.code, result.error.data["lessons"]) == ("waiting_for_review", 2)
    return root


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Place:
    shutil.copytree(made, tmp_path / "runs")
    return Place(tmp_path / "runs")


def refused(act: Callable[[], Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        act()
    return caught.value


def test_course_is_published_once_each_lesson_is_approved_or_edited(place: Place) -> None:
    place.decide(1, "approve")
    assert place.go().detail == "waiting_for_human"
    place.decide(2, "edit", "A. Lee", edit={STEM: NEW})
    queue = CourseReview.of(place.store, place.run).queue()
    assert progress(queue) == {"approved": 2, "total": 2, "conflicts": 0, "redo": 0, "unwritten": 0}
    assert place.go().status == "completed"
    first, second = place.published.lessons
    assert second["lesson"]["cards"][0]["items"][0]["feedback"] == NEW
    assert [row["review"] for row in (first, second)] == [
        {"by": ["M. Reid"], "edited": False}, {"by": ["A. Lee"], "edited": True}
    ]  # fmt: skip
    assert place.published.about["sign_off"] == {"name": "M. Reid and A. Lee", "changes": "lesson 2 edited"}
    pages = {name: data.decode() for name, data in site.build(place.published).items()}
    answers = next(text for name, text in pages.items() if name.startswith("answers/02"))
    assert "Edited and reviewed by A. Lee." in answers
    assert NEW in answers
    assert "reviewed by M. Reid and A. Lee" in pages["about.html"]


def test_published_bytes_depend_on_the_decisions_alone(place: Place, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "other")
    other = Place(tmp_path / "other")
    for each in (place, other):
        each.decide(1, "approve")
        each.decide(2, "approve", "A. Lee")
        each.go()
    assert place.published == other.published


def test_without_review_a_course_is_published_and_says_that_nobody_reviewed_it(place: Place) -> None:
    assert place.go(review=False).status == "completed"
    pages = {name: data.decode() for name, data in site.build(place.published).items()}
    assert "Not reviewed: no teacher has read this" in pages["about.html"]
    assert "sign_off" not in place.published.about
    assert not any("review" in row for row in place.published.lessons)


def test_lesson_that_no_topic_of_the_bank_covers_is_not_written_and_did_not_fail(tmp_path: Path) -> None:
    def nothing(request: Request, value: Any) -> Any:
        return {"not_written": ["num.surds"]} if request.data["kind"] == "lesson" else value

    place = Place(tmp_path / "runs")
    place.go(Author(nothing), review=False)
    found = place.lesson(1)
    assert (found.status, found.failed) == ("not_written", "No topic of the question bank has it yet.")


def test_decision_made_while_the_run_has_an_owner_is_seen_at_once_and_published(place: Place) -> None:
    journal = place.store.open(place.run)
    before = journal.last_seq
    place.decide(1, "approve")
    place.decide(2, "edit", edit={STEM: NEW})
    assert (place.lesson(1).status, place.lesson(2).status) == ("approved", "edited")
    assert len(list(place.store.read(place.run))) == before
    journal.close()
    assert place.go().status == "completed"
    assert place.published.lessons[1]["review"]["edited"]


def test_decision_that_comes_while_the_last_lesson_is_made_is_published_by_the_same_owner(tmp_path: Path) -> None:
    place = Place(tmp_path / "runs")

    class Reviewed(Author):
        """Decides about the first lesson while the second is being written."""

        def complete(self, request: Request) -> Reply:
            if request.data["kind"] == "lesson" and request.data["entry"]["order"] == 2:
                place.decide(1, "approve")
            return super().complete(request)

        def check(self) -> ModelInfo:
            return ModelInfo("test-author", paid=False, author="model")

    assert place.go(Reviewed(), review=False).status == "completed"
    assert [bool(row.get("review")) for row in place.published.lessons] == [True, False]
    assert load(place.store, place.run).reviewed == 1


def test_edit_is_saved_only_if_it_passes_the_checks(place: Place) -> None:
    lesson = CourseReview.of(place.store, place.run).made(1)
    assert lesson is not None
    where = f"{question_with_a_root(lesson['lesson'])}.answer"
    error = refused(lambda: place.decide(1, "edit", edit={where: r"\(99\sqrt{2}\)"}))
    assert error.code == "edit_rejected"
    assert error.data["findings"][0].startswith(where.rpartition(".")[0])
    assert place.lesson(1).status == "open"
    assert refused(lambda: place.decide(1, "edit", edit={"c9.q9.answer": "x"})).code == "no_such_place"
    assert refused(lambda: place.decide(1, "edit", edit={})).code == "nothing_edited"


def test_edit_far_too_long_is_refused_before_its_checks_and_checks_keep_nobody_from_deciding(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(lambda: place.decide(1, "edit", edit={STEM: "Squaring it. " * 16_000})).code == "edit_too_long"
    real = review.checked

    def slow(*given: Any) -> Any:
        if place.lesson(1).status == "open":
            place.decide(1, "approve", "A. Lee")
        return real(*given)

    monkeypatch.setattr(review, "checked", slow)
    place.decide(1, "edit", edit={STEM: NEW})
    assert [each.choice for each in CourseReview.of(place.store, place.run).history(1)] == ["approve", "edit"]


def test_second_of_two_reviewers_is_told_who_decided_what(place: Place) -> None:
    seen = place.lesson(1).standing.mark
    place.decide(1, "approve", "A. Lee", mark=seen)
    for decision in ({"choice": "approve"}, {"choice": "edit", "edit": {STEM: NEW}}, {"choice": "redo", "note": "x"}):
        error = refused(lambda decision=decision: place.decide(1, mark=seen, **decision))  # type: ignore[misc]
        assert error.code == "decided_meanwhile"
        assert "A. Lee" in error.message
    assert "A. Lee" in refused(lambda: place.decide(1, "approve")).message
    place.decide(1, "undo")
    assert refused(lambda: place.decide(1, "approve", mark=seen)).code == "decided_meanwhile"
    assert place.decide(1, "approve").standing.names == ("M. Reid",)


def shorter(request: Request, value: Any) -> Any:
    """The author changes one text of a lesson that a teacher asks for again."""
    if request.data["kind"] != "lesson":
        return value
    value["cards"][0]["items"][0]["feedback"] = "Written anew, as the teacher asked: it says why."
    return value


def test_lesson_made_again_does_not_overwrite_an_edit_but_waits_for_a_decision(place: Place) -> None:
    place.decide(1, "approve")
    place.decide(2, "edit", "A. Lee", edit={STEM: NEW})
    place.decide(2, "redo", note="Shorter, please.")
    assert to_redo(load(place.store, place.run)) == {("lessons#1", "lessons/2"): "Shorter, please."}
    # Also where nobody asked for a review: nothing is overwritten without a word.
    result = place.go(Author(shorter, author="model"), review=False)
    assert result.error is not None
    assert (result.detail, result.error.code) == ("waiting_for_human", "edit_in_conflict")
    course = CourseReview.of(place.store, place.run)
    assert course.queue()[0].status == "conflict"
    made, edit = course.made(2), course.edit(2)
    assert made is not None
    assert edit is not None
    assert [(where, after) for where, _, after in differences(made["lesson"], edit["lesson"])] == [(STEM, NEW)]
    assert refused(lambda: place.decide(2, "approve")).code == "edit_in_conflict"
    assert place.decide(2, "take").status == "open"
    assert place.decide(2, "undo").status == "conflict"
    assert place.decide(2, "keep").status == "edited"
    assert place.go().status == "completed"
    assert place.published.lessons[1]["lesson"]["cards"][0]["items"][0]["feedback"] == NEW
    assert place.published.lessons[1]["review"]["by"] == ["A. Lee", "M. Reid"]


def test_redo_needs_a_note_and_is_done_once(place: Place) -> None:
    assert refused(lambda: place.decide(2, "redo")).code == "note_missing"
    place.decide(1, "approve")
    place.decide(2, "redo", note="Shorter.")
    author = Author(author="model")
    assert place.go(author).detail == "waiting_for_human"
    assert author.asked[0] == "lesson 2"
    # It came out the same, and is not asked for again.
    assert (place.lesson(2).status, to_redo(load(place.store, place.run))) == ("open", {})
    again = Author(author="model")
    place.go(again)
    assert again.asked == []


def test_what_cannot_be_decided_is_said(place: Place) -> None:
    with pytest.raises(RunNotFound, match="has no lesson 9"):
        place.decide(9, "approve")
    assert refused(lambda: place.decide(1, "undo")).code == "nothing_to_undo"
    assert refused(lambda: place.decide(1, "keep")).code == "no_conflict"
    assert refused(lambda: place.decide(1, "approve", by=" \n ")).code == "reviewer_unnamed"


def test_decisions_are_exported_as_examples(place: Place) -> None:
    place.decide(1, "approve", note="Good.")
    place.decide(2, "edit", "A. Lee", edit={STEM: NEW})
    place.decide(2, "undo")
    rows = list(examples(place.store, place.run))
    assert [(row["lesson"], row["verdict"], row["by"], row["note"]) for row in rows] == [
        (1, "approve", "M. Reid", "Good."), (2, "edit", "A. Lee", "")
    ]  # fmt: skip
    assert rows[0]["edit"] is None
    assert differences(rows[1]["draft"], rows[1]["edit"]) == [
        (STEM, rows[1]["draft"]["cards"][0]["items"][0]["feedback"], NEW)
    ]
    json.dumps(rows)


def test_fork_takes_decisions_and_edits_along(place: Place) -> None:
    place.decide(1, "approve")
    place.decide(2, "edit", edit={STEM: NEW})
    made = fork(place.store, place.run, at="end", changes={}).run_id
    course = CourseReview.of(place.store, made)
    assert [course.lesson(order).status for order in (1, 2)] == ["approved", "edited"]
    assert course.edit(2) is not None
