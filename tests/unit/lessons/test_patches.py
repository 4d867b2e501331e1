"""Corrections change what findings name, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.content.addresses import texts, value_at
from pipeline.content.findings import Finding
from pipeline.lessons.patches import Patch, PatchScope, apply, read_patches
from tests.small_lesson import LESSON, fresh

TEXTS = dict(texts(LESSON))
ITEM = LESSON["cards"][3]["items"][1]


def scope(*places: str, also: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> PatchScope:
    return PatchScope.of([Finding(1, "R", place, "found", "wanted", also) for place in places], whole)


@given(st.sampled_from(sorted(TEXTS)), st.text(min_size=1).filter(str.strip))
def test_one_text_is_changed_and_the_rest_stays_byte_for_byte(place: str, text: str) -> None:
    made, refused = apply(LESSON, [Patch(place, text)], scope(place))
    assert (refused, value_at(made, place)) == ([], text)
    back, _ = apply(made, [Patch(place, TEXTS[place])], scope(place))
    assert json.dumps(back) == json.dumps(LESSON)


@pytest.mark.parametrize(
    ("path", "value", "place", "there"),
    [
        ("c4.q2.tests", ["point 2"], "c4.q2.answer", ["point 2"]),
        ("c4.q2", {**ITEM, "answer": "9"}, "c4.q2.working.1", {**ITEM, "answer": "9"}),
        ("c4.q3", ITEM, "c4.q3", ITEM),
        ("c8.q3.wrong", None, "c8.q3", None),
        ("c8.q3.wrong.1.mistake", 1, "c8.q3", 1),
        ("c5.mistakes", ["1"], "c5.mistakes", [1]),
        ("c5.minutes", "7", "c5.minutes", 7),
        ("misconceptions.2.belief", "A belief that is new.", "misconceptions", "A belief that is new."),
        ("c10", LESSON["cards"][8], "cards", LESSON["cards"][8]),
        ("keywords.2", None, "keywords", None),
    ],
)
def test_patch_of_each_kind_is_put_where_it_belongs(path: str, value: Any, place: str, there: Any) -> None:
    made, refused = apply(LESSON, [Patch(path, value)], scope(place))
    assert refused == []
    assert value_at(made, path) == there


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("c8.q1.ask", "banana", "is not what a finding names"),
        ("c4", LESSON["cards"][3], "is not what a finding names"),
        ("c4.q22", ITEM, "is not what a finding names"),
        ("title", "Another title for the whole of the lesson", "is not what a finding names"),
        ("cards", [], "is not what a finding names"),
        ("c4.q2", None, "takes a question away"),
        ("../etc", "x", "is at no address"),
        ("c4.q2.working.9", "Far beyond the end.", "is beyond the end: there are 2"),
        ("c4.q2.ask.1", "x", "is nowhere in the lesson"),
    ],
)
def test_patch_elsewhere_is_refused_by_name_and_changes_nothing(path: str, value: Any, why: str) -> None:
    made, (refused,) = apply(LESSON, [Patch(path, value)], scope("c4.q2.answer"))
    assert made == LESSON
    assert refused.where == path
    assert why in refused.found


def test_what_a_finding_names_besides_is_open_and_no_more() -> None:
    allowed = scope("c5.teaches", also=("c2.teaches", "c8.q1.tests"))
    for path, right in (("c2.teaches", True), ("c8.q1.tests", True), ("c8.q1.ask", False), ("c2.text", False)):
        assert (allowed.refusal(Patch(path, ["1"])) == "") is right, path


def test_what_is_taken_away_goes_last_so_that_addresses_hold() -> None:
    patches = [Patch("c8.q1", None), Patch("c8.q3", None), Patch("c8.q4.ask", "The last question, in new words.")]
    made, refused = apply(LESSON, patches, scope("c8"))
    assert refused == []
    asks = [item["ask"] for item in made["cards"][7]["items"]]
    assert asks == [LESSON["cards"][7]["items"][1]["ask"], "The last question, in new words."]


def test_question_that_failed_before_is_taken_as_a_whole_only() -> None:
    allowed = scope("c4.q2.answer", whole=("c4.q2",))
    assert "write the whole question anew" in allowed.refusal(Patch("c4.q2.answer", "9"))
    assert allowed.refusal(Patch("c4.q2", ITEM)) == ""


def test_reply_without_patches_is_named() -> None:
    patches, fault = read_patches({"patches": [{"path": "title", "text": ""}, {"path": "c1", "value": {}}]})
    assert (patches, fault) == ([Patch("title", None), Patch("c1", {})], "")
    wrong: list[Any] = [None, [], {}, {"patches": []}, {"patches": ["x"]}, {"patches": [{"path": "title"}]}, fresh()]
    for raw in (*wrong, {"patches": [{"path": "title", "text": "a", "number": 1}]}):
        assert read_patches(raw)[1], raw
