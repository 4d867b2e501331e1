"""The review desk: the queue, one lesson, decisions with names, edits that are checked, conflicts, two at once."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from urllib.parse import urlencode

import pytest

from pipeline.app.review import CourseReview
from pipeline.content.addresses import steps_of
from pipeline.lessons.review import leaves
from tests.desks import Got, Served
from tests.reviews import question_with_a_root
from tests.sample_runs import completed_run
from tests.unit.app.test_app_review import NEW, STEM, Place, shorter
from tests.unit.app.test_app_review import made as made
from tests.unit.app.test_app_review import place as place
from tests.unit.lessons.test_lessons_pipeline import Author


@pytest.fixture
def run(place: Place, desk: Served) -> str:
    return place.run


def mark(desk: Served, run: str, item: int) -> str:
    return str(desk.data(f"runs/{run}/review?item={item}")["lesson"]["mark"])


def post(desk: Served, run: str, what: str, item: int, **fields: str) -> Got:
    form = {"item": str(item), "mark": mark(desk, run, item), "by": "M. Reid", **fields}
    return desk.post(f"runs/{run}/review/{what}?{urlencode({'item': item, 'edit': fields.get('edit', '')})}", form)


def test_queue_has_every_lesson_with_its_findings_at_their_place(desk: Served, run: str) -> None:
    data = desk.data(f"runs/{run}/review")
    assert data["progress"] == {"approved": 0, "total": 2, "conflicts": 0, "redo": 0, "unwritten": 0}
    assert [row["severity"] for row in data["queue"]] == ["finding", "none"]
    found = data["lesson"]["findings"]
    assert len(found) == data["queue"][0]["number"]
    where = next(each for each in found if each["anchor"].startswith("q"))
    assert where["name"] == f"question {where['anchor'].removeprefix('q')}"
    page = desk.get(f"runs/{run}/review").text
    assert "0 of 2 approved" in page
    assert f'#{where["anchor"]}" target="lesson"' in page
    assert desk.get(f"runs/{run}/review?item=9").status == 404
    assert desk.data("review")["courses"][0]["progress"]["total"] == 2


def test_lesson_is_framed_without_scripts_and_its_answers_beside_it(desk: Served, run: str) -> None:
    page = desk.get(f"runs/{run}/review").page
    frames = [each for each in page.all("iframe")]
    assert [each.attributes.get("sandbox") for each in frames] == ["", ""]
    for query, words in (("", "Simplifying surds"), ("?answers=1", "For the reviewer")):
        got = desk.get(f"runs/{run}/review/frame/1{query}")
        assert got.status == 200
        assert words in got.text
        assert "sandbox" in got.headers["content-security-policy"]
    assert desk.get(f"runs/{run}/review/frame/7").status == 404


def test_approval_is_recorded_with_the_name_and_leads_to_the_next_lesson(
    desk: Served, run: str, place: Place
) -> None:  # fmt: skip
    nameless = post(desk, run, "decide", 1, choice="approve", by="")
    assert (nameless.status, "needs the name" in nameless.text) == (400, True)
    seen = mark(desk, run, 1)
    for _ in range(2):
        # The second click of two comes too late, and leads where the first did.
        went = post(desk, run, "decide", 1, choice="approve", mark=seen)
        assert (went.status, went.headers["location"]) == (303, "../../../runs/" + run + "/review?item=2")
    assert place.lesson(1).standing.names == ("M. Reid",)
    page = desk.get(f"runs/{run}/review?item=1").text
    assert "You decide as M. Reid." in page
    assert "1 of 2 approved" in page
    assert post(desk, run, "decide", 1, choice="undo").status == 303
    assert place.lesson(1).status == "open"
    assert post(desk, run, "decide", 1, choice="sell").status == 400
    assert post(desk, run, "decide", 1, choice="redo").status == 400
    assert post(desk, run, "decide", 1, choice="redo", note="Shorter.").status == 303
    assert place.lesson(1).status == "redo"


def test_second_reviewer_gets_409_that_names_the_first_and_loses_nothing_typed(
    desk: Served, run: str, place: Place
) -> None:
    seen = mark(desk, run, 1)
    place.decide(1, "approve", "A. Lee")
    late = post(desk, run, "decide", 1, choice="approve", mark=seen)
    assert (late.status, "A. Lee decided about lesson 1: approved" in late.text) == (409, True)
    edit = {"edit": "c1.q1", f"at:{STEM}": NEW, "mark": seen}
    late = post(desk, run, "edit", 1, **edit)
    assert (late.status, "A. Lee" in late.text, NEW in late.text) == (409, True, True)
    # Seen and sent once more, it holds.
    assert post(desk, run, "edit", 1, **{**edit, "mark": mark(desk, run, 1)}).status == 303
    assert place.lesson(1).status == "edited"


def test_edit_is_checked_while_it_is_typed_and_saved_only_where_it_passes(
    desk: Served, run: str, place: Place
) -> None:  # fmt: skip
    row = CourseReview.of(place.store, run).made(1)
    assert row is not None
    where = question_with_a_root(row["lesson"])
    form = desk.data(f"runs/{run}/review?item=1&edit={where}")["edit"]
    assert form["title"].startswith("Edit question ")
    assert form["fields"][0]["label"] == "Question"
    wrong = {"edit": where, f"at:{where}.answer": r"\(99\sqrt{2}\)"}
    got = post(desk, run, "check", 1, **wrong)
    assert got.status == 200
    assert 'class="fault"' in got.text
    assert "Passes every check." not in got.text
    refused = post(desk, run, "edit", 1, **wrong)
    assert (refused.status, 'aria-invalid="true"' in refused.text) == (400, True)
    assert 'name="by" value="M. Reid"' in refused.text
    assert r"\(99\sqrt{2}\)" in refused.text
    assert place.lesson(1).status == "open"
    fine = {"edit": where, f"at:{where}.feedback": NEW}
    assert "Passes every check." in post(desk, run, "check", 1, **fine).text
    assert post(desk, run, "edit", 1, **fine).status == 303
    page = desk.get(f"runs/{run}/review?item=1").text
    assert f"<ins>{NEW}</ins>" in page
    assert NEW in desk.get(f"runs/{run}/review/frame/1?answers=1").text
    assert NEW not in desk.get(f"runs/{run}/review/frame/1?answers=1&version=made").text


def test_conflict_is_shown_with_both_versions_and_decided(desk: Served, run: str, place: Place) -> None:
    place.decide(1, "edit", "A. Lee", edit={STEM: NEW})
    place.decide(1, "redo", note="Shorter.")
    place.go(Author(shorter, author="model"))
    data = desk.data(f"runs/{run}/review/conflict?item=1")
    assert (data["editor"], data["faults"]) == ("A. Lee", [])
    assert [(each["where"], each["before"]) for each in data["differences"]] == [(STEM, NEW)]
    assert desk.data(f"runs/{run}/review")["queue"][0]["status"] == "conflict"
    form = desk.data(f"runs/{run}/review?item=1&edit=conflict")["edit"]
    assert [(each["at"], each["value"]) for each in form["fields"]] == [(STEM, NEW)]
    assert post(desk, run, "edit", 1, edit="conflict", **{f"at:{STEM}": NEW}).status == 303
    assert place.lesson(1).status == "edited"
    assert desk.get(f"runs/{run}/review/conflict?item=1").status == 400


def test_page_of_the_run_leads_to_the_review_and_then_to_a_resume(desk: Served, run: str, place: Place) -> None:
    def helps(wanted: str) -> bool:
        """Whether the page comes to say so: it looks at a run three times a second."""
        for _ in range(600):
            if desk.data(f"runs/{run}")["what"].get("button", "") == wanted:
                return True
            threading.Event().wait(0.1)
        return False

    assert helps("review")
    assert f"runs/{run}/review" in desk.get(f"runs/{run}").text
    place.decide(1, "approve")
    place.decide(2, "approve")
    assert helps("resume")
    assert "a resume publishes the course" in desk.get(f"runs/{run}").text
    place.go()
    assert helps("")
    place.decide(2, "undo")
    assert helps("resume")


def test_run_that_makes_no_lessons_has_no_review(desk: Served, root: Path) -> None:
    assert desk.get("runs/20260101_000000/review").status == 404
    assert desk.data("review") == {"courses": []}


def test_parts_of_a_question_are_fields_at_their_own_addresses() -> None:
    lesson = {"cards": [{"items": [{"ask": "Two things.", "parts": [{"ask": "One?", "answer": "1"}]}]}]}
    found = leaves(lesson["cards"][0]["items"][0], steps_of("c1.q1") or ())
    assert found == {"c1.q1.ask": "Two things.", "c1.q1(a).ask": "One?", "c1.q1(a).answer": "1"}
    assert found == leaves(lesson)


def test_course_without_its_catalogue_has_no_review(desk: Served, root: Path) -> None:
    run = completed_run(root)
    assert desk.get(f"runs/{run}/review").status == 400
    assert desk.data("review")["courses"][0]["progress"] is None


def test_course_whose_values_are_lost_does_not_hide_the_others(desk: Served, run: str, root: Path) -> None:
    completed_run(root)
    shutil.rmtree(root / run / "blobs")
    assert [each["progress"] for each in desk.data("review")["courses"]] == [None, None]
