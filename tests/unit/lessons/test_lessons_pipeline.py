"""The four steps over the real engine: what they leave, what a failing lesson costs, what is published."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.clock import SystemClock, parse_iso
from pipeline.cost.prices import PriceBook
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Setup
from pipeline.engine.step import StepContext
from pipeline.errors import StepFailed
from pipeline.lessons.offline import answer
from pipeline.lessons.pipeline import PIPELINE, sow
from pipeline.lessons.prompts import load_prompts
from pipeline.lessons.run_selection import choose_run
from pipeline.llm.base import ModelInfo, Reply, Request
from pipeline.publish.base import Bundle, Receipt
from pipeline.store.base import Claim, Head
from pipeline.store.memory import MemoryStore
from tests.checking import MATHS
from tests.servers.lessons import critique, solutions
from tests.small_lesson import lesson_for

PINS = {
    "catalogue": MATHS.to_json(),
    **{f"prompt:{name}": text for name, text in load_prompts(MATHS.to_json()).items()},
}


class Shelf:
    """A publisher that keeps what it is given."""

    def __init__(self) -> None:
        self.bundles: list[Bundle] = []
        self.overwrite: list[bool] = []

    def publish(self, bundle: Bundle, *, overwrite: bool = False) -> Receipt:
        self.bundles.append(bundle)
        self.overwrite.append(overwrite)
        return Receipt(f"/shelf/{bundle.name}", "abc", 7)

    def receipt(self, bundle_name: str, facts: Any) -> None:
        raise AssertionError("the steps write no receipt")


class Author:
    """Answers like the offline author; `spoil` may change an answer, a critic is content."""

    def __init__(self, spoil: Callable[[Request, Any], Any] = lambda request, value: value, author: str = "offline"):
        self._spoil, self._author = spoil, author
        self.asked: list[str] = []

    def check(self) -> ModelInfo:
        return ModelInfo("test-author", paid=False, author=self._author)

    def complete(self, request: Request) -> Reply:
        data = request.data
        name = f"{data['kind']} {data.get('order') or data.get('entry', {}).get('order', '')}".strip()
        self.asked.append(name)
        made = {
            "lesson": lambda: lesson_for(data["entry"]),
            "critic": lambda: critique(data["lesson"]),
            "solve": lambda: solutions(data["questions"], "in words"),
        }
        value = made.get(data["kind"], lambda: answer(data))()
        return Reply(json.dumps(self._spoil(request, value)), "end_turn")

    def close(self) -> None:
        """Nothing is open."""


class Bench:
    """A store and a shelf, for runs and resumes of one test."""

    def __init__(self, lessons: int) -> None:
        self.lessons = lessons
        self.clock = SystemClock()
        self.store = MemoryStore(self.clock)
        self.shelf = Shelf()

    def run(self, author: Author, run_id: str = "", **options: Any) -> RunResult:
        setup = Setup(self.store, self.clock, Emitter(self.clock, []), {"concurrency": 1, **options}, author)
        setup.info, setup.services, setup.prices = author.check(), {"publisher": self.shelf}, PriceBook()
        engine = Engine(PIPELINE.definition, setup)
        if run_id:
            return engine.resume(run_id)
        identity = {"author": setup.info.author, "model": "test-author", "effort": None, "lessons": self.lessons}
        return engine.start({"subject": "mathematics", "level": "national_5"}, identity=identity, pins=PINS)


def test_pipeline_publishes_a_draft_of_the_offline_author_and_leaves_the_outputs_of_its_steps() -> None:
    bench, other = Bench(2), Bench(2)
    result = bench.run(Author())
    assert result.status == "completed", result.error
    assert result.outputs["seed"] == {"course_id": "course_c84775", "outcomes_created": 40}
    assert result.outputs["sow"]["lesson_count"] == 2
    assert len(result.outputs["sow"]["sow_document_id"]) == 64
    assert result.outputs["lessons"] == {"total_lessons": 2, "completed": 2, "failed": 0, "skipped": 0}
    assert result.outputs["publish"] == {"path": "course_c84775-draft", "content_hash": "abc", "files": 7}
    (bundle,) = bench.shelf.bundles
    assert (bundle.draft, bundle.about["author"], bundle.about["critic"]) == (True, "offline", None)
    assert bundle.scheme["partial"]
    covered = {ref for row in bundle.scheme["entries"] for ref in row["outcome_refs"]}
    assert [out.id for out in MATHS.outcomes() if out.id not in covered] == bundle.scheme["not_covered"]
    assert all(row["critic"] is None for row in bundle.lessons)
    # The same replies give the same bundle.
    other.run(Author())
    assert bench.shelf.bundles == other.shelf.bundles


def test_pipeline_publishes_a_models_course_with_scores_under_its_plain_name() -> None:
    bench = Bench(1)
    author = Author(author="model")
    result = bench.run(author, overwrite=True)
    assert result.status == "completed", result.error
    assert author.asked == ["outline", "entry 1", "lesson 1", "solve", "critic 1"]
    bundle = bench.shelf.bundles[0]
    assert (bundle.name, bundle.draft, bundle.about["critic"]) == ("course_c84775", False, "test-author")
    assert bundle.lessons[0]["critic"]["fidelity"] == 1.0
    assert bench.shelf.overwrite == [True]


def spoil_second(request: Request, value: Any) -> Any:
    return {**value, "title": "bad"} if request.data.get("entry", {}).get("order") == 2 else value


def test_pipeline_one_failing_lesson_loses_no_other_and_resume_makes_only_that_one() -> None:
    bench = Bench(3)
    result = bench.run(Author(spoil_second))
    assert result.status == "failed"
    assert isinstance(result.error, StepFailed)
    assert "lessons/2" in result.error.message
    assert bench.shelf.bundles == []
    again = Author()
    result = bench.run(again, result.run_id)
    assert result.status == "completed"
    assert again.asked == ["lesson 2"]
    assert result.outputs["lessons"] == {"total_lessons": 3, "completed": 3, "failed": 0, "skipped": 0}


def test_pipeline_skip_failed_publishes_without_that_lesson_and_marks_it() -> None:
    bench = Bench(3)
    result = bench.run(Author(spoil_second), skip_failed=True)
    assert result.status == "completed", result.error
    assert result.outputs["lessons"] == {"total_lessons": 3, "completed": 2, "failed": 1, "skipped": 0}
    bundle = bench.shelf.bundles[0]
    assert [row["order"] for row in bundle.lessons] == [1, 3]
    assert bundle.failed[0]["order"] == 2
    assert bundle.failed[0]["label"] == bundle.scheme["entries"][1]["label"]
    assert "title: 'bad' (3 characters); wanted at least 30 characters" in bundle.failed[0]["reason"]


def test_pipeline_sample_stops_after_the_first_lessons_and_goes_on_from_there() -> None:
    bench = Bench(3)
    first = Author()
    result = bench.run(first, sample=2)
    assert (result.status, result.detail) == ("in_progress", "stopped_as_asked")
    assert first.asked[-2:] == ["lesson 1", "lesson 2"]
    rest = Author()
    assert bench.run(rest, result.run_id).status == "completed"
    assert rest.asked == ["lesson 3"]


@pytest.mark.parametrize("label", ["outline", "entry"])
def test_pipeline_scheme_that_stays_wrong_buys_no_lesson(label: str) -> None:
    def spoil(request: Request, value: Any) -> Any:
        if request.label != label:
            return value
        return {"entries": value["entries"][:1]} if label == "outline" else {**value, "order": 99}

    bench, author = Bench(2), Author(spoil)
    result = bench.run(author)
    assert result.status == "failed"
    assert not any(name.startswith("lesson") for name in author.asked)
    assert sum(name.startswith(label) for name in author.asked) == (4 if label == "outline" else 8)


def test_details_belong_to_the_outline_they_were_made_for() -> None:
    """Two outlines of one size: an entry kept from the first is none of the second."""
    asked: list[list[Any]] = []

    class Enough(Exception):
        pass

    def note(name: str, items: list[Any], *_: Any, **__: Any) -> None:
        asked.append(items)
        raise Enough

    for label in ("Simplify surds", "Add surds"):
        outline = {"entries": [{"order": 1, "label": label}]}
        ctx = SimpleNamespace(task=lambda *_, made=outline: made, map=note)
        with pytest.raises(Enough):
            sow.run(cast(StepContext, ctx))
    assert [[item["order"] for item in items] for items in asked] == [[1], [1]]
    assert asked[0] != asked[1]


def test_command_given_again_means_the_run_of_the_same_course() -> None:
    claim, now = Claim("lessons", "mathematics", "national_5", "model"), parse_iso("2026-01-10T00:00:00.000Z")
    identity = dict.fromkeys(("author", "model", "effort", "lessons", "catalogue", "prompts"), "as asked")

    def head(run: str, status: str, day: str = "09", **other: str) -> Head:
        made = {"status": status, "updated_at": f"2026-01-{day}T14:31:00.000Z", "identity": {**identity, **other}}
        return Head(run, {"claim": claim.to_json(), **made})

    def meant(*heads: Head) -> tuple[str, str]:
        choice = choose_run(heads, claim, identity, now)
        return choice.kind, choice.run

    done, open_run = head("2", "completed"), head("1", "in_progress")
    assert meant(done, open_run) == ("continuing", "1")
    assert meant(done, head("1", "in_progress", day="01")) == ("completed", "2")
    assert meant(Head("1", open_run.document, corrupt="cut off")) == ("new", "")
    for name in identity:
        assert meant(head("2", "completed", **{name: "another"})) == ("new", ""), name
