"""Pages of courses of other regions and of subjects without numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from pipeline.drawing.values import quantity
from pipeline.publish import site
from pipeline.publish.questions import places
from pipeline.publish.view import CourseView
from tests.publishing import item
from tests.sites import BUNDLES

Json = dict[str, Any]


def pages(**keys: Any) -> dict[str, str]:
    """The pages of a course, with other keys in its catalogue; None takes one away."""
    bundle = BUNDLES["model"]
    course = {name: value for name, value in {**bundle.course, **keys}.items() if value is not None}
    made = site.build(replace(bundle, course=course))
    return {name: data.decode() for name, data in made.items() if name.endswith(".html")}


def test_a_course_without_calculators_says_nothing_of_them() -> None:
    assert any("calculator" in page.lower() for page in pages().values())
    silent = pages(assessment={"components": [{"id": "essay", "title": "Essay", "marks": 20}]})
    assert not [name for name, page in silent.items() if "calculator" in page.lower()]
    assert (
        not CourseView(replace(BUNDLES["model"], course={**BUNDLES["model"].course, "assessment": {}}))
        .lessons[0]
        .questions[0]
        .calculator
    )


@pytest.mark.parametrize(
    ("keys", "language", "line", "foreign"),
    [
        ({}, "en-GB", "SQA C847 75 · SCQF level 5 · 24 credits", "License"),
        ({"code": "7.RP", "framework": "Common Core"}, "en-US", "Common Core 7.RP", "SQA|SCQF|Licence"),
        ({"code": "", "framework": "NC England"}, "en-GB", "National Curriculum in England", "SQA|SCQF"),
        ({"code": "AA SL", "framework": "IB"}, "en", "IB AA SL", "SQA|SCQF"),
        ({"code": "S1"}, "en", "S1", "SQA|SCQF"),
        ({"code": "", "region": "Ireland"}, "en-IE", "", "SQA|SCQF|class=.code"),
    ],
)
def test_pages_say_whose_course_it_is_in_its_language(keys: Json, language: str, line: str, foreign: str) -> None:
    made = pages(**keys)
    assert {re.findall(r'<html lang="([^"]+)"', page)[0] for page in made.values()} == {language}
    assert line in made["index.html"]
    assert not re.findall(foreign, made["index.html"] + made["about.html"])


def test_a_course_of_words_is_not_said_to_be_computed() -> None:
    bundle = BUNDLES["model"]
    card = {"kind": "exit_ticket", "title": "Before you go", "minutes": 5, "items": [item("The town grew.")]}
    rows = [{**row, "checks": {}, "lesson": {**row["lesson"], "cards": [card]}} for row in bundle.lessons]
    about = site.build(replace(bundle, lessons=rows))["about.html"].decode()
    assert "is a calculation for code to check" in about
    assert "were checked by calculation" not in about


def test_amounts_of_any_money_rise_and_are_drawn() -> None:
    for sign in "£$€":
        assert places([f"{sign}20", f"{sign}9", f"{sign}10.50"]) == [1, 2, 0]
        assert (quantity(f"{sign}12").value, quantity(f"{sign}12").unit) == (12, sign)
