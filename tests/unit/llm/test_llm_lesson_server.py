"""The test server as an author of lessons: real requests of the lessons, through the adapter, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.lessons.asks import Asks, Draft
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.plan import make_plan
from pipeline.lessons.prompts import load_prompts
from pipeline.lessons.schemas import Critique, Entry, EntryDetails, Lesson, Outline
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Request
from tests.servers.billing import BillingServer
from tests.servers.lessons import OFF_PLAN, WRONG_VALUE, answer
from tests.servers.mishaps import Plan

Ask = Callable[[Request], dict[str, Any]]
LESSONS = 6


@pytest.fixture
def asks() -> Asks:
    return Asks(Catalogue().course("mathematics", "national_5"), load_prompts(), "claude-sonnet-5-5")


@pytest.fixture
def ask(server: BillingServer, model: AnthropicModel) -> Ask:
    server.responder = answer

    def send(request: Request) -> dict[str, Any]:
        reply = model.complete(request)
        assert reply.complete
        value: dict[str, Any] = json.loads(reply.text)
        return value

    return send


def scheme(asks: Asks, ask: Ask) -> list[Entry]:
    rows = Outline.model_validate(ask(asks.outline(make_plan(asks.course, LESSONS)))).entries
    return [
        Entry.model_validate(
            row.model_dump() | EntryDetails.model_validate(ask(asks.entry(rows, row.order))).model_dump()
        )
        for row in rows
    ]


def test_course_is_written_and_judged_over_http(server: BillingServer, asks: Asks, ask: Ask) -> None:
    entries = scheme(asks, ask)
    assert len(entries) == LESSONS
    lesson = ask(asks.lesson(entries, 1))
    assert Lesson.model_validate(lesson).order == 1
    form = Critique.model_validate(ask(asks.critic(entries[0], lesson, [])))
    assert form.verdict == "release"
    labels = [entry.label for entry in server.bill.entries()]
    assert labels == ["outline", *["entry"] * LESSONS, "lesson", "critic"]


def test_lessons_share_a_cached_prefix(server: BillingServer, asks: Asks, model: AnthropicModel, ask: Ask) -> None:
    entries = scheme(asks, ask)
    first = model.complete(asks.lesson(entries, 1)).usage
    second = model.complete(asks.lesson(entries, 2)).usage
    assert second["cache_creation_input_tokens"] == 0
    assert second["cache_read_input_tokens"] >= first["cache_creation_input_tokens"] > 0


def test_same_request_has_the_same_answer(server: BillingServer, asks: Asks, ask: Ask) -> None:
    request = asks.outline(make_plan(asks.course, LESSONS))
    assert ask(request) == ask(request)
    assert server.bill.to_json()["repeated"] == 1


def test_revised_lesson_differs_each_time_so_that_its_critic_is_asked_anew(
    server: BillingServer, asks: Asks, ask: Ask
) -> None:
    entries = scheme(asks, ask)
    versions = [ask(asks.lesson(entries, 1))]
    for _ in range(3):
        versions.append(ask(asks.lesson(entries, 1, Draft(versions[-1], ["Explain more slowly."]))))
    assert len({json.dumps(version) for version in versions}) == 4
    assert all(Lesson.model_validate(version) for version in versions)


def test_correction_that_is_asked_for_is_given(server: BillingServer, asks: Asks, ask: Ask) -> None:
    plan = make_plan(asks.course, LESSONS)
    server.plan = Plan("invalid=1")
    with pytest.raises(ValueError, match=r"line 1"):
        ask(asks.outline(plan))
    for _ in range(2):
        assert len(ask(asks.outline(plan, Draft(None, ["It is not JSON."])))["entries"]) == LESSONS


def test_faults_of_the_content_are_built_in(server: BillingServer, asks: Asks, ask: Ask) -> None:
    entries = scheme(asks, ask)
    lesson = ask(asks.lesson(entries, 1))
    server.plan.queue("offplan", "wrong", "lowscore", "passlow")
    assert OFF_PLAN in ask(asks.lesson(entries, 1))["outcome_refs"]
    assert WRONG_VALUE in json.dumps(ask(asks.lesson(entries, 1)))
    low = Critique.model_validate(ask(asks.critic(entries[0], lesson, [])))
    flattering = Critique.model_validate(ask(asks.critic(entries[0], lesson, [])))
    assert (low.verdict, flattering.verdict) == ("revise", "release")
    assert min(row.score for row in flattering.judgements) == min(row.score for row in low.judgements) == 2
