"""Spelling, money, units and names of lessons in other regions than Scotland."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.content.checks import check_lesson, summary
from pipeline.content.lesson import Solutions
from pipeline.content.lesson_reader import read_lesson
from pipeline.content.money import in_own, in_pounds, sign_of
from pipeline.content.spelling import misspelt
from pipeline.frameworks import REGIONS
from pipeline.lessons import blind
from pipeline.lessons.offline import answer
from tests.checking import MATHS, course, scheme_of
from tests.small_lesson import fresh

Json = dict[str, Any]
COAT = (
    '{"tests":["point 1"],"expression":"60/0.8","options":[{"text":"£75","why":"£60 is 80 % of the old price."},'
    '{"text":"£72","why":"You added 20 % of the new price.","method":"60*1.2","mistake":1},'
    '{"text":"£48","why":"You took 20 % off once more.","method":"60*0.8"},'
    '{"text":"£80","why":"You took 20 % to be £20.","method":"60+20"}],'
    '"working":["The sale price is 80 % of the old price.\\n80 % = £60","Divide by 0.8.\\n\\\\(60\\\\div 0.8=75\\\\)"],'
    '"marks":["divides by 0.8"],"feedback":"The 20 % belongs to the old price, not to the new one.",'
    '"ask":"A coat costs £60 after 20 % was taken off. What was its price before?"}'
)
FARE = (
    '{"tests":["point 1"],"expression":"3*2.50","answer":"£7.50","wrong":[{"method":"3+2.50","error":"added"}],'
    '"working":["Multiply the fare by the number of tickets.\\n\\\\(3\\\\times 2.50=7.50\\\\)"],'
    '"marks":["multiplies"],"feedback":"Each ticket costs the same.",'
    '"ask":"A ticket costs £2.50. Calculate the cost of 3 tickets."}'
)


def found(region: str, *items: Json, **texts: str) -> tuple[list[str], Json]:
    """What is found of items in a lesson of a region, and what pages say of its answers."""
    lesson = fresh()
    lesson["misconceptions"] *= 2
    lesson["cards"][7]["items"] += items
    lesson |= texts
    entry = {**scheme_of(course(), 1)[0], "points": [f"p{number}" for number in range(1, 5)]}
    of = {**course(), "region": region}
    told = [each for each in check_lesson(lesson, entry=entry, course=of) if each.severity != "W"]
    return [each.line() for each in told if each.where.startswith(("c8.q5", "c8.q6", "outcome"))], summary(
        lesson, entry=entry, course=of
    )


@pytest.mark.parametrize(("region", "sign"), [("Scotland", "£"), ("USA", "$"), ("Ireland", "€"), ("none", "$")])
def test_money_of_every_region_is_computed(region: str, sign: str) -> None:
    coat, fare = (json.loads(text.replace("£", sign)) for text in (COAT, FARE))
    told, said = found(region, coat, fare)
    assert told == []
    assert (said["by"]["c8.q5"], said["by"]["c8.q6"]) == ("in part", "computed")
    assert said["wrong"]["c8.q6.wrong.1"] == f"{sign}5.50"
    wrong = json.loads(FARE.replace('"answer":"£7.50"', '"answer":"£8.50"').replace("£", sign))
    assert any(f"{sign}8.50, but 3*2.50 gives 15/2" in line for line in found(region, wrong)[0])


def test_money_of_another_region_is_named_with_its_own_sign() -> None:
    (line,) = (line for line in found("USA", json.loads(FARE))[0] if ".answer" in line)
    assert "£7" in line
    assert "dollars and cents" in line
    assert any("$2" in line and "pounds and pence" in line for line in found("England", dollars())[0])
    assert any("$2" in line and "euros and cent" in line for line in found("Ireland", dollars())[0])


def dollars() -> Json:
    made: Json = json.loads(FARE.replace("£", "$"))
    return made


@pytest.mark.parametrize(
    ("text", "british", "american"),
    [
        ("the colour of the centre", "", "centre"), ("the color of the line", "color", ""),
        ("a distance in kilometres", "", "kilometres"), ("organise and analyse the data", "", "analyse"),
        ("she analyzed it", "analyzed", ""), ("exercise, surprise and otherwise", "", ""),
        ("he travelled far", "", "travelled"), ("labeled axes", "labeled", ""), ("Maths is not math", "math", "Maths"),
    ],
)  # fmt: skip
def test_words_of_the_other_spelling_are_found(text: str, british: str, american: str) -> None:
    assert [(misspelt(text, name) or ("",))[0] for name in ("british", "american", "")] == [british, american, ""]


def test_kinds_of_cards_are_words_of_no_spelling() -> None:
    lesson, entry = fresh(), {**scheme_of(course(), 1)[0], "points": ["p1"]}
    assert any(card["kind"] == "modelling" for card in lesson["cards"])
    told = check_lesson(lesson, entry=entry, course={**course(), "region": "USA"})
    assert not [each for each in told if each.check == 30 and each.where.endswith(".kind")]


def test_feet_and_meters_are_units() -> None:
    fence = json.loads(FARE.replace("£7.50", "7.5 feet").replace("£2.50", "2.50 feet").replace("cost of", "length of"))
    fence["ask"] = "A board is 2.50 feet long. Calculate the length of 3 boards in feet."
    told, said = found("USA", fence)
    assert [line for line in told if "no item tests" not in line] == []
    assert (said["by"]["c8.q5"], said["wrong"]["c8.q5.wrong.1"]) == ("computed", "5.5 feet")


def test_pounds_and_dollars_come_back_as_they_were() -> None:
    for text in ("It costs $5, not £6.", "price / $", "$x$ is no money"):
        assert in_own(in_pounds(text, "$"), "$") == text
    assert in_pounds([r"\(3\times\$4\)", {"a": "$5"}], "$") == [r"\(3\times£4\)", {"a": "£5"}]
    assert sign_of({}, {"ask": "It costs €5."}) == "€"
    assert sign_of({}, {"ask": r"\(x\)"}) == "£"


def test_a_blind_solution_in_dollars_is_compared() -> None:
    lesson = fresh()
    lesson["cards"][7]["items"] = [dollars()]
    read = read_lesson(lesson).lesson
    assert read is not None
    solved = Solutions.model_validate({"solutions": [{"question": "c8.q1", "answer": "$7.5", "options": []}]})
    assert blind.compared(read, solved, "$")[0] == {"c8.q1": "agreed"}


@pytest.mark.parametrize("region", ["England", "USA", "none"])
def test_draft_has_people_places_and_money_of_its_region(region: str) -> None:
    data = MATHS.to_json() | {"region": region}
    outline = answer({"kind": "outline", "course": data, "lessons": 6})["entries"]
    entries = [
        {**entry, **answer({"kind": "entry", "course": data, "entries": outline, "order": entry["order"]})}
        for entry in outline
    ]
    lessons = [answer({"kind": "lesson", "course": data, "entry": entry, "entries": entries}) for entry in entries]
    for lesson, entry in zip(lessons, entries, strict=True):
        grave = [each.line() for each in check_lesson(lesson, entry=entry, course=data) if each.severity != "W"]
        assert grave == []
    text = json.dumps(lessons, ensure_ascii=False)
    scottish, own = REGIONS["scotland"], REGIONS[{"England": "england", "USA": "united_states"}.get(region, "none")]
    assert any(name in text for name in own.people)
    assert not [name for name in {*scottish.people, *scottish.places} - {*own.people, *own.places} if name in text]
    assert "Scot" not in text
    whole = text + json.dumps(entries)
    assert ("upils" in whole, "Mock exam" in whole, "Practice exam" in whole) == (region != "USA",) * 2 + (
        region == "USA",
    )
    assert ("pounds" in text, "metre" in text, "Practise" in text) == (region != "USA",) * 3
    assert ("£" in text, "$" in text) == (region != "USA", region == "USA")
