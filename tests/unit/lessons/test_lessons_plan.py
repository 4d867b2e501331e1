"""How many lessons of which kind, what they reach, and the rules an outline must keep."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.course import Assessment, Course
from pipeline.lessons.drafting.details import details
from pipeline.lessons.outline_checks import entry_problems, outline_problems
from pipeline.lessons.plan import POINT_LIMITS, make_plan
from pipeline.lessons.prompts import load_prompts
from pipeline.lessons.schemas import EntryDetails, Outline, OutlineEntry
from tests.checking import MATHS, Json

OWNER = {point.id: out.id for out in MATHS.outcomes() for point in out.points}
Rows = list[Json]


def outline_of(course: Course, lessons: int) -> Rows:
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


def faults(rows: Rows, lessons: int = 18, course: Course = MATHS) -> list[str]:
    outline = Outline(entries=[OutlineEntry.model_validate(row) for row in rows])
    return outline_problems(course, make_plan(course, lessons), outline)


def test_plan_keeps_every_rule_for_any_number_of_lessons() -> None:
    for subject, level in (("maths", "n5"), ("aom", "n4"), ("physics", "higher")):
        course = Catalogue().course(subject, level)
        for lessons in (1, 5, 6, 8, 18, 27, 40, 120):
            assert faults(outline_of(course, lessons), lessons, course) == [], lessons


def test_plan_has_kinds_by_its_size_and_one_mock_exam_at_the_end() -> None:
    assert {slot.lesson_type for slot in make_plan(MATHS, 5).slots} == {"teach"}
    assert make_plan(MATHS, 6).counts == {"teach": 4, "mock_exam": 1, "revision": 1}
    plan = make_plan(MATHS, 18)
    assert sum(plan.counts.values()) == 18
    assert set(plan.counts) == {"teach", *POINT_LIMITS}
    assert plan.slots[-1].lesson_type == "mock_exam"


def test_plan_has_no_mock_exam_where_there_are_no_exams() -> None:
    young = MATHS.model_copy(update={"level": "ks3", "age": 13, "assessment": Assessment()})
    plan = make_plan(young, 18)
    assert "mock_exam" not in plan.counts
    assert (sum(plan.counts.values()), len(plan.slots)) == (18, 18)
    assert faults(outline_of(young, 18), 18, young) == []
    # Papers in the course file, or older learners, have one.
    named = young.model_copy(update={"assessment": MATHS.assessment})
    for course in (named, young.model_copy(update={"level": "gcse", "age": 16})):
        assert make_plan(course, 18).slots[-1].lesson_type == "mock_exam"
    assert "mock exam is one of the last" in load_prompts(named.to_json())["outline"]
    assert "mock exam is one of the last" not in load_prompts(young.to_json())["outline"]


def test_plan_too_small_for_the_course_lists_the_rest_in_teaching_order() -> None:
    plan = make_plan(MATHS, 3)
    assert plan.covered
    assert [*plan.covered, *plan.not_covered] == [out.id for out in MATHS.outcomes()]
    assert make_plan(MATHS, 60).not_covered == ()
    # One lesson covers an outcome although it has too many points.
    course = MATHS.model_copy(deep=True)
    first = course.groups[0].outcomes[0]
    first.points[:] = [first.points[0].model_copy(update={"id": f"num.surds.{n}"}) for n in range(1, 10)]
    plan = make_plan(course, 1)
    assert (plan.covered, plan.max_points) == (("num.surds",), 9)


def of_type(rows: Rows, lesson_type: str) -> Json:
    return next(row for row in rows if row["lesson_type"] == lesson_type)


def asking(row: Json, *points: str) -> None:
    row.update(points=list(points), outcome_refs=list(dict.fromkeys(OWNER[point] for point in points)))


def strange_refs(rows: Rows) -> None:
    rows[0]["outcome_refs"] += ["num.magic"]
    rows[1]["points"] += ["num.indices.9"]
    rows[2]["outcome_refs"] = ["reason.strategy"]
    rows[3]["cross_cutting"] = ["num.surds"]
    rows[4]["points"] = ["num.surds.1"]


def too_much(rows: Rows) -> None:
    rows[0]["points"] += [*rows[1]["points"], "alg.linear.1"]
    rows[0]["outcome_refs"] = list(dict.fromkeys([*rows[0]["outcome_refs"], *rows[1]["outcome_refs"], "alg.linear"]))


def beyond(rows: Rows) -> None:
    rows[0]["outcome_refs"].append("stat.compare")
    rows[0]["points"].append("stat.compare.1")


def one_kind(rows: Rows) -> None:
    for row in rows:
        if row["lesson_type"] in ("revision", "formative_assessment"):
            row["lesson_type"] = "independent_practice"


def exam_first(rows: Rows) -> None:
    rows[-1]["lesson_type"], rows[0]["lesson_type"] = rows[0]["lesson_type"], rows[-1]["lesson_type"]


def too_early(rows: Rows) -> None:
    practice = of_type(rows, "independent_practice")
    late = next(row for row in rows if row["order"] > practice["order"] and row["lesson_type"] == "teach")
    asking(practice, practice["points"][0], late["points"][0])
    asking(of_type(rows, "revision"), of_type(rows, "revision")["points"][0])


def nothing_across(rows: Rows) -> None:
    for row in rows:
        row["cross_cutting"] = ["reason.strategy"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[4].update(order=6), ["entries.4.order: 6, wanted 5; orders rise by one without gaps"]),
        (lambda rows: rows.pop(), ["entries: 17 lessons, wanted 18"]),
        (strange_refs, ["no outcome num.magic", "no point num.indices.9", "lesson 3: reason.strategy is cross-cutting",
                        "lesson 4: num.surds is not a cross-cutting outcome",
                        "lesson 5: point num.surds.1 belongs to num.surds"]),
        (lambda rows: rows[0]["points"].remove("num.surds.2"), ["no teach lesson teaches num.surds.2"]),
        (beyond, ["stat.compare is outside this scheme"]),
        (too_much, ["outcomes, wanted at most 2", "points, wanted at most 4"]),
        (one_kind, ["0 lessons of type revision, wanted 1 to 2", "0 lessons of type formative_assessment",
                    "lessons of type independent_practice, wanted 1 to 3"]),
        (exam_first, ["lesson 1 is mock_exam, wanted teach", "the mock exam is lesson 1, wanted among the last 3"]),
        (too_early, ["not taught before it", "revises 1 earlier lessons, wanted at least 3"]),
        (nothing_across, ["no lesson practises reason.explain"]),
    ],
)  # fmt: skip
def test_outline_that_breaks_a_rule_is_refused_with_the_reason(change: Callable[[Rows], None], said: list[str]) -> None:
    rows = outline_of(MATHS, 18)
    change(rows)
    found = "\n".join(faults(rows))
    assert [line for line in said if line not in found] == [], found


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


def test_offline_scheme_of_a_subject_in_words_has_no_shop_and_no_calculator() -> None:
    entries = [{"order": 1, "lesson_type": "teach", "block": "b", "outcome_refs": ["o"]}]
    course = {"subject": "history", "groups": []}
    made = details(course, entries, 1)
    assert (made["calculator"], made["context"]) == ("non_calc", "The time, the place and the texts of the points")
    assert details(course | {"subject": "mathematics"}, entries, 1)["calculator"] == "mixed"
