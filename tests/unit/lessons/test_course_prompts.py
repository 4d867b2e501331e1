"""Prompts of courses of other frameworks, regions and subjects; those of the shipped courses keep their bytes."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from pipeline.content.cast import cast
from pipeline.content.names import shown
from pipeline.content.spelling import misspelt
from pipeline.frameworks import FRAMEWORKS, REGIONS, SQA_LEVELS, Region
from pipeline.lessons.asks import Asks
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.course import Course
from pipeline.lessons.course_words import examples_of
from pipeline.lessons.estimate import prompts_of
from pipeline.lessons.prompts import load_prompts
from pipeline.records.values import value_hash

#: Shipped courses, with the beginning of the hash of all that a model reads for eighteen lessons of them.
SHIPPED = {
    "mathematics national_5": "c48aaa440397666f",
    "application_of_mathematics national_4": "66f169da21d4e857",
    "physics higher": "090bba97b382458e",
}  # fmt: skip


def texts(course: Course) -> str:
    """All that a model reads for a course of eighteen lessons."""
    asks = Asks(course, load_prompts(course.to_json()), "some-model", "low")
    requests = [prompt.request for prompt in prompts_of(asks, 18)]
    return value_hash(dict(asks.prompts)) + "\n".join(
        text
        for request in requests
        for text in (*(part.text for part in request.system), *(part.text for part in request.messages))
    )


def made(subject: str, level: str, **keys: Any) -> Course:
    """A course of another place, of the outcomes of one that is shipped."""
    data = Catalogue().course("mathematics", "national_5").to_json() | {
        "id": f"{subject}/{level}", "subject": subject, "level": level, "title": f"{shown(level)} {shown(subject)}",
        "code": "", "course_id": f"course_{subject}{level.replace('_', '')}",
    }  # fmt: skip
    del data["scqf"]
    return Course.from_json(data | keys)


@pytest.mark.parametrize("name", SHIPPED)
def test_prompts_of_a_shipped_course_keep_their_bytes(name: str) -> None:
    found = hashlib.sha256(texts(Catalogue().course(*name.split())).encode()).hexdigest()
    # Other prompts are another course for everybody: a change of them is meant, and told.
    assert found[:16] == SHIPPED[name]


#: What a course says of itself; what its prompts hold; what they must not.
OF_SCOTLAND = r"gram formula|Scot|Dundee|Glasgow|Oban|Wick|Stirling|SQA|SCQF|tartan|National 5"
COURSES = [
    (made("science", "ks3", framework="National Curriculum England"),
     ["schools in England", "KS3 Science, National Curriculum in England.", "£12.50", "a bus fare in Leeds",
      "state, describe, calculate, compare, suggest", "molar mass"], "\\$\\d"),
    (made("mathematics", "grade_7", framework="Common Core"),
     ["schools in the United States", "$12.50", "American English, dollars", "find, solve, represent", "nearest cent",
      "$ before, ¢", "The median time was 14 s in Duluth"], "£|pence|penny|British"),
    (made("mathematics", "dp", framework="IB"),
     ["You write lessons for schools.", "English as the course spells it", "write down, find, calculate, show that"],
     "£|pence|penny|British"),
    (made("mathematics", "year_9"), ["You write lessons for schools.", "describe, calculate, compare"], "£|penny"),
    (made("history", "grade_9", region="Kenya"),
     ["schools in Kenya", "a town in Kenya", "its author and year", "write non_calc", "essay",
      "context: 2 to 40 words; where the matter of the points is met"],
     "square number|£|whole roots|numbers fit"),
]  # fmt: skip


@pytest.mark.parametrize(("course", "held", "foreign"), COURSES, ids=lambda value: getattr(value, "id", None))
def test_prompts_of_a_course_speak_of_its_own_framework_region_and_subject(
    course: Course, held: list[str], foreign: str
) -> None:
    if course.subject == "history":
        course = course.model_copy(update={"assessment": course.assessment.model_copy(update={"components": []})})
    text = texts(course)
    assert [words for words in held if words not in text] == []
    # The outcomes are those of the Scottish course that they are taken from.
    own = examples_of(course.subject)
    prompts = "\n".join(
        text for name, text in load_prompts(course.to_json()).items() if not name.startswith("examples_") or name == own
    )
    assert (re.findall(OF_SCOTLAND, prompts), re.findall(foreign, prompts)) == ([], [])


def test_prompts_keep_the_spelling_that_they_ask_for() -> None:
    prompts = load_prompts(made("mathematics", "grade_7", framework="Common Core").to_json())
    assert {name: misspelt(text.replace("modelling", ""), "american") for name, text in prompts.items()} == {
        name: None for name in prompts
    }
    assert ("explainer, modelling, check" in prompts["author"], "°F, $" in prompts["author"]) == (True, True)
    home = load_prompts(made("mathematics", "ks3", framework="National Curriculum England").to_json())
    assert ("3 litres" in home["author"], "°F" in home["author"]) == (True, False)


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("subject", ["mathematics", "history"])
def test_no_place_of_a_prompt_stays_empty(region: str, subject: str) -> None:
    course = made(subject, "year_9", region=region)
    assert not re.findall(r"\[\[|\]\]|Kenya", texts(course))


def test_a_course_without_calculators_is_told_of_none() -> None:
    course = made("chemistry", "gcse", region="England")
    silent = course.model_copy(update={"assessment": course.assessment.model_copy(update={"components": []})})
    told = load_prompts(silent.to_json())
    assert re.findall(r".*calculator.*", told["author"]) == []
    assert re.findall(r".*calculator.*", "".join(told[name] for name in told if name.startswith("examples"))) == []
    assert "Without a calculator" in load_prompts(course.to_json())["author"]


def test_every_framework_knows_what_any_level_demands() -> None:
    for framework in FRAMEWORKS.values():
        rows = [framework.row(level, None) for level in ("ks1", "year_4", "grade_7", "gcse", "dp_hl", "anything")]
        assert all(row.commands for row in rows)
        assert framework.row("national_5", None) == SQA_LEVELS["national_5"]
        assert framework.row("form_b", 8).long_words < framework.row("form_b", 18).long_words
    assert FRAMEWORKS["ib"].row("dp", None).commands != FRAMEWORKS["none"].row("dp", None).commands


@pytest.mark.parametrize("region", REGIONS.values(), ids=list(REGIONS))
def test_every_name_of_a_region_has_its_turn(region: Region) -> None:
    casts = [cast(order, region) for order in range(1, 60)]
    assert {name for people, _ in casts for name in people} == set(region.people)
    assert {name for _, places in casts for name in places} == set(region.places)
    assert all(len(set(people)) == 6 and len(set(places)) == 3 for people, places in casts)
