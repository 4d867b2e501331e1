"""What the shipped topics print, read with many numbers: no slip that one draw in twenty would show a class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest

from pipeline.bank.instance import Instance
from pipeline.bank.topic import Bank, read_topic
from pipeline.content.checks_remarks import accepted
from pipeline.content.lesson import Item

DRAWS = 10
TOPICS = {path.stem: path for path in Bank().paths.values()}
_FORMULA = re.compile(r"\\\((.*?)\\\)", re.DOTALL)
_ONE = re.compile(
    r"(?<![\d.,^{/])(?<!\+ )\b1 (?:metres|hours|minutes|seconds|years|days|people|pupils|boxes|times|marks|divisions|"
    r"points|counters|tickets|quarks|neutrons)\b"
)
_ARTICLE = re.compile(r"\b(?:[Aa] (?:8|11|18|8\d|8\d\d)(?![\d.,])|[Aa]n (?:[1-79]|10|1[2-79]))\b")
_SEA = re.compile(r"\b(?:harbour|sails|lifeboat|kayak|fishing|ferry)\b")


@cache
def drawn(topic: str) -> list[Instance]:
    """Questions of a topic with many numbers."""
    templates = read_topic(TOPICS[topic]).templates()
    return [each for template in templates for each in template.walk(DRAWS, "prints").found[:DRAWS]]


def printed(each: Instance) -> Iterator[str]:
    """All that is printed of a question."""
    yield from (each.ask, *each.working, *each.scheme, each.feedback)
    for answer in (*each.right, *each.wrong):
        yield answer.text
        yield each.text(answer.spec.get("ask", "")) + each.text(answer.spec.get("why", ""))


@pytest.mark.parametrize("topic", TOPICS)
def test_numbers_fit_their_words(topic: str) -> None:
    for each in drawn(topic):
        for text in printed(each):
            words = text.replace("\\(", "").replace("\\)", "")
            assert not _ONE.search(words), (each.id, text)
            assert not _ARTICLE.search(words), (each.id, text)


@pytest.mark.parametrize("topic", TOPICS)
def test_each_mark_is_for_something_of_its_own(topic: str) -> None:
    for each in drawn(topic):
        earned = [mark.partition("\n")[2] for mark in each.scheme if "\n" in mark]
        assert len(set(earned)) == len(earned), (each.id, earned)


@pytest.mark.parametrize("topic", TOPICS)
def test_no_step_only_says_again_what_stands_there(topic: str) -> None:
    for each in drawn(topic):
        for text in printed(each):
            formulas = _FORMULA.findall(text)
            said = [formula for formula in formulas if re.match(r"[a-z] = ", formula)]
            assert len(set(said)) == len(said), (each.id, text)
            for formula in formulas:
                sides = [side.strip() for side in formula.split("=")]
                # A comparison may end in 400 = 400.
                again = [one for one, two in pairwise(sides) if one == two]
                assert not any(re.search(r"[\\a-z]", side) for side in again), (each.id, text)


@pytest.mark.parametrize("topic", TOPICS)
def test_no_figure_tells_an_equation_that_the_question_does_not(topic: str) -> None:
    for each in drawn(topic):
        for figure in each.figures:
            lines = dict(line.split(": ", 1) for line in figure["lines"])
            told = {name for name in ("function", "best fit") if name in lines} - {lines.get("hide", "")}
            assert not told or "y =" in each.ask, (each.id, figure)


@pytest.mark.parametrize("topic", TOPICS)
def test_no_rejected_answer_is_right(topic: str) -> None:
    for each in drawn(topic):
        item = Item.model_validate(each.item(["point 1"]))
        assert not list(accepted("q", item)), each.id


@pytest.mark.parametrize("topic", TOPICS)
def test_boats_leave_from_places_at_the_sea(topic: str) -> None:
    for template in read_topic(TOPICS[topic]).templates():
        if _SEA.search(template.spec["stem"]):
            assert "place" not in template.space.people.values(), template.id
