"""How many lessons of which kind, what they reach, and the rules an outline must keep."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.course import Course
from pipeline.lessons.outline_checks import entry_problems, outline_problems
from pipeline.lessons.plan import MAX_OUTCOMES, POINT_LIMITS, make_plan
from pipeline.lessons.schemas import EntryDetails, Outline, OutlineEntry

COURSES = [("maths", "n5"), ("aom", "n4"), ("physics", "higher")]
MATHS = Catalogue().course("maths", "n5")


def outline_of(course: Course, lessons: int) -> list[dict[str, Any]]:
    owner = {point.id: out.id for out in course.outcomes() for point in out.points}
    across = [out.id for out in course.outcomes(cross_cutting=True)]
    return [
        {
            "order": slot.order,
            "lesson_type": slot.lesson_type,
            "block": "Some block",
            "outcome_refs": list(dict.fromkeys(owner[point] for point in slot.points)),
            "points": list(slot.points),
            "cross_cutting": across[:6],
            "label": "What this lesson is about",
            "rationale": "It follows what was taught before it.",
        }
        for slot in make_plan(course, lessons).slots
    ]


def faults(rows: list[dict[str, Any]], lessons: int = 18, course: Course = MATHS) -> list[str]:
    outline = Outline(entries=[OutlineEntry.model_validate(row) for row in rows])
    return outline_problems(course, make_plan(course, lessons), outline)


@pytest.mark.parametrize(("subject", "level"), COURSES)
def test_plan_keeps_every_rule_for_any_number_of_lessons(subject: str, level: str) -> None:
    course = Catalogue().course(subject, level)
    for lessons in (1, 5, 6, 8, 18, 27, 40, 120):
        assert faults(outline_of(course, lessons), lessons, course) == [], lessons


def test_plan_below_six_lessons_teaches_only() -> None:
    assert {slot.lesson_type for slot in make_plan(MATHS, 5).slots} == {"teach"}
    assert make_plan(MATHS, 6).counts == {"teach": 4, "mock_exam": 1, "revision": 1}


def test_plan_of_eighteen_has_all_kinds_and_one_mock_exam_at_the_end() -> None:
    plan = make_plan(MATHS, 18)
    assert sum(plan.counts.values()) == 18
    assert set(plan.counts) == {"teach", *POINT_LIMITS}
    assert plan.slots[-1].lesson_type == "mock_exam"


def test_plan_too_small_for_the_course_lists_the_rest_in_teaching_order() -> None:
    plan = make_plan(MATHS, 3)
    every = [out.id for out in MATHS.outcomes()]
    assert plan.covered
    assert [*plan.covered, *plan.not_covered] == every
    assert make_plan(MATHS, 60).not_covered == ()


def test_plan_with_one_lesson_covers_an_outcome_that_has_too_many_points() -> None:
    course = MATHS.model_copy(deep=True)
    first = course.groups[0].outcomes[0]
    points = [first.points[0].model_copy(update={"id": f"num.surds.{n}"}) for n in range(1, 10)]
    first.points.clear()
    first.points.extend(points)
    plan = make_plan(course, 1)
    assert plan.covered == ("num.surds",)
    assert plan.max_points == 9


def test_outline_with_a_gap_or_a_wrong_number_is_refused() -> None:
    rows = outline_of(MATHS, 18)
    rows[4]["order"] = 6
    assert faults(rows) == ["entries.4.order: 6, wanted 5; orders rise by one without gaps"]
    assert faults(outline_of(MATHS, 18)[:17]) == ["entries: 17 lessons, wanted 18"]


def test_outline_refs_outside_the_catalogue_are_refused() -> None:
    rows = outline_of(MATHS, 18)
    rows[0]["outcome_refs"] = [*rows[0]["outcome_refs"], "num.magic"]
    rows[1]["points"] = [*rows[1]["points"], "num.indices.9"]
    rows[2]["outcome_refs"] = ["reason.strategy", *rows[2]["outcome_refs"]]
    rows[3]["cross_cutting"] = ["num.surds"]
    rows[4]["points"] = [*rows[4]["points"], "num.surds.1"]
    found = "\n".join(faults(rows))
    assert "lesson 1: there is no outcome num.magic" in found
    assert "lesson 2: there is no point num.indices.9" in found
    assert "lesson 3: reason.strategy is cross-cutting" in found
    assert "lesson 4: num.surds is not a cross-cutting outcome" in found
    assert "lesson 5: point num.surds.1 belongs to num.surds" in found


def test_outline_that_leaves_a_point_or_goes_beyond_its_reach_is_refused() -> None:
    rows = outline_of(MATHS, 18)
    dropped = rows[0]["points"].pop(1)
    assert any(f"no teach lesson teaches {dropped}" in line for line in faults(rows))
    rows = outline_of(MATHS, 18)
    rows[0]["outcome_refs"].append("stat.compare")
    rows[0]["points"].append("stat.compare.1")
    assert any("stat.compare is outside this scheme" in line for line in faults(rows))


def test_outline_with_too_much_in_a_lesson_is_refused() -> None:
    rows = outline_of(MATHS, 18)
    rows[0]["points"] += rows[1]["points"]
    rows[0]["outcome_refs"] = list(dict.fromkeys([*rows[0]["outcome_refs"], *rows[1]["outcome_refs"], "alg.linear"]))
    rows[0]["points"].append("alg.linear.1")
    found = "\n".join(faults(rows))
    assert f"outcomes, wanted at most {MAX_OUTCOMES}" in found
    assert "points, wanted at most 4" in found


def test_outline_pattern_faults_are_named() -> None:
    rows = outline_of(MATHS, 18)
    for row in rows:
        if row["lesson_type"] in ("revision", "formative_assessment"):
            row["lesson_type"] = "independent_practice"
    found = "\n".join(faults(rows))
    assert "0 lessons of type revision, wanted 1 to 2" in found
    assert "0 lessons of type formative_assessment" in found
    assert "lessons of type independent_practice, wanted 1 to 3" in found


def test_outline_mock_exam_is_one_of_the_last_three_and_the_first_lesson_teaches() -> None:
    rows = outline_of(MATHS, 18)
    types = [row["lesson_type"] for row in rows]
    rows[-1]["lesson_type"], rows[0]["lesson_type"] = types[0], types[-1]
    found = "\n".join(faults(rows))
    assert "lesson 1 is mock_exam, wanted teach" in found
    assert "the mock exam is lesson 1, wanted among the last 3" in found


def test_outline_asks_nothing_before_it_was_taught_and_revision_mixes_lessons() -> None:
    rows = outline_of(MATHS, 18)
    practice = next(row for row in rows if row["lesson_type"] == "independent_practice")
    late = next(row for row in rows if row["order"] > practice["order"] and row["lesson_type"] == "teach")
    practice["points"] = [practice["points"][0], late["points"][0]]
    owner = {point.id: out.id for out in MATHS.outcomes() for point in out.points}
    practice["outcome_refs"] = list(dict.fromkeys(owner[point] for point in practice["points"]))
    revision = next(row for row in rows if row["lesson_type"] == "revision")
    revision["points"] = revision["points"][:1]
    revision["outcome_refs"] = [owner[revision["points"][0]]]
    found = "\n".join(faults(rows))
    assert f"{late['points'][0]} not taught before it" in found
    assert "revises 1 earlier lessons, wanted at least 3" in found


def test_outline_without_a_cross_cutting_outcome_is_refused() -> None:
    rows = outline_of(MATHS, 18)
    for row in rows:
        row["cross_cutting"] = ["reason.strategy"]
    assert any("no lesson practises reason.explain" in line for line in faults(rows))


def test_entry_faults_are_named() -> None:
    entry = OutlineEntry.model_validate(outline_of(MATHS, 18)[2])
    details = EntryDetails(
        order=4, calculator="calc", minutes=120, prerequisites=[1, 3], summary="s" * 60,
        emphasis=["adds under one root"], context="buses in Dundee",
    )  # fmt: skip
    assert entry_problems(entry, details) == [
        "order: 4, wanted 3",
        "prerequisites: [3] are not earlier than lesson 3",
        "minutes: 120, wanted 30 to 100",
    ]
