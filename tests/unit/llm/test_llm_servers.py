"""The test servers themselves: what they refuse, count and answer, over HTTP and as a process."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.content.lesson import Corrections, Lesson, Solutions
from pipeline.errors import ModelUnavailable
from pipeline.lessons.asks import Asks, Draft
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.plan import make_plan
from pipeline.lessons.prompts import load_prompts
from pipeline.lessons.schemas import Critique, Entry, EntryDetails, Outline
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from pipeline.testing import FakeClock
from tests.servers.api_rules import MAX_OUTPUT
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer
from tests.servers.mishaps import Plan
from tests.servers.rate_limits import RateLimits

HEADERS = {"x-api-key": "k", "anthropic-version": "2026-10-21", "content-type": "application/json"}
SERVER = Path(__file__).resolve().parents[2] / "servers" / "billing.py"


def send(
    server: BillingServer, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=60)
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    connection.request(method, path, text, HEADERS if headers is None else headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, json.loads(data)


def body(**changes: Any) -> dict[str, Any]:
    base = {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
    return {**base, **changes}


def test_counting_tokens_is_free_and_equals_what_is_billed(server: BillingServer) -> None:
    question = {"model": "claude-sonnet-5-5", "messages": [{"role": "user", "content": "word " * 50}]}
    status, counted = send(server, "POST", "/v1/messages/count_tokens", question)
    assert status == 200
    assert server.bill.requests == 0
    _, reply = send(server, "POST", "/v1/messages", {**question, "max_tokens": 100})
    assert reply["usage"]["input_tokens"] == counted["input_tokens"]
    assert send(server, "POST", "/v1/messages/count_tokens", body())[0] == 400


def test_batches_are_the_key_s_that_made_them_however_it_is_sent(server: BillingServer) -> None:
    path = "/v1/messages/batches"
    bearer = {**HEADERS, "authorization": "Bearer k"}
    del bearer["x-api-key"]
    _, made = send(server, "POST", path, {"requests": [{"custom_id": "a", "params": body()}]}, bearer)
    for headers, status in ((bearer, 200), (HEADERS, 200), ({**HEADERS, "x-api-key": "other"}, 404)):
        assert send(server, "GET", f"{path}/{made['id']}", headers=headers)[0] == status
        listed = send(server, "GET", path, headers=headers)[1]["data"]
        assert [row["id"] for row in listed] == ([made["id"]] if status == 200 else [])
    assert server.batches.strangers == [(made["id"], "other")]


def test_server_runs_as_a_process_and_shows_its_bill() -> None:
    arguments = [sys.executable, str(SERVER), "--port", "0", "--faults", "overloaded@1", "--seed", "7"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
            seen = []
            for _ in range(2):
                connection.request("POST", "/v1/messages", json.dumps(body()), HEADERS)
                response = connection.getresponse()
                seen.append(response.status)
                response.read()
            connection.request("GET", "/_bill")
            bill = json.loads(connection.getresponse().read())
            connection.close()
        finally:
            process.terminate()
    assert seen == [529, 200]
    assert (bill["requests"], bill["repeated"], bill["in_flight"]) == (2, 1, 0)
    assert [entry["fault"] for entry in bill["log"]] == ["overloaded", ""]
    assert float(bill["usd"]) > 0


def _block(**more: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": "a", **more}]


def _format(**schema: Any) -> dict[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def test_server_refuses_what_the_provider_refuses(server: BillingServer) -> None:
    marked = _block(cache_control={"type": "ephemeral"})
    user, assistant = ({"role": role, "content": "x"} for role in ("user", "assistant"))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"temperature": 0.2}, "temperature"),
        ({"top_k": 3}, "top_k"),
        ({"tempo": 1}, "tempo: Extra inputs"),
        *(({"max_tokens": most}, "max_tokens") for most in (0, MAX_OUTPUT + 1, "100", True, None)),
        ({"stream": "yes"}, "stream"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "role"),
        *(({"messages": [{**user, "content": empty}]}, "non-empty") for empty in ("", _block(text=""))),
        ({"messages": [{**user, "content": [{"type": "poem"}]}]}, "text blocks"),
        ({"messages": [{"role": "user"}]}, "role and content"),
        ({"messages": [user, assistant]}, "prefill"),
        ({"messages": [assistant, user]}, "first message"),
        ({"system": marked * 5}, "maximum of 4"),
        ({"system": _block(cache_control={"type": "forever"})}, "ephemeral"),
        ({"system": _block(cache_control={"type": "ephemeral", "ttl": "2h"})}, "ttl"),
        ({"output_config": {"effort": "extreme"}}, "effort"),
        ({"output_config": {"mood": 1}}, "output_config"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "format"),
        (_format(type="object"), "additionalProperties"),
        (_format(type="string", minLength=1), "minLength"),
    ]
    for wrong, said in refused:
        status, reply = send(server, "POST", "/v1/messages", body(**wrong))
        assert (status, reply["error"]["type"]) == (400, "invalid_request_error"), wrong
        assert said in reply["error"]["message"]
    for name in ("claude-none", "claude-sonnet-4-20250514"):
        assert send(server, "POST", "/v1/messages", body(model=name))[0] == 404
    for headers, status in (
        ({}, 401),
        ({"x-api-key": "k"}, 400),
        ({**HEADERS, "anthropic-version": "2020-01-01"}, 400),
    ):
        assert send(server, "POST", "/v1/messages", body(), headers)[0] == status
    assert send(server, "POST", "/v1/messages", "{")[0] == 400
    assert server.bill.requests == 0


def test_marks_are_written_for_their_time_from_the_least_length_on(server: BillingServer) -> None:
    for length, ttl, kinds in ((8000, "1h", {"ephemeral_1h_input_tokens"}), (4000, "5m", set())):
        block = {"type": "text", "text": "z" * length, "cache_control": {"type": "ephemeral", "ttl": ttl}}
        for again in (False, True):
            usage = send(server, "POST", "/v1/messages", body(system=[block]))[1]["usage"]
            written = {kind for kind, count in usage["cache_creation"].items() if count}
            assert written == (set() if again else kinds)
            assert bool(usage["cache_read_input_tokens"]) == bool(again and kinds)


def test_fault_plan_names_requests_fits_their_kind_and_is_the_same_for_the_same_seed() -> None:
    numbered = Plan("overloaded@2+4")
    assert [bool(numbered.draw(number, "q", "a")) for number in range(1, 6)] == [False, True, False, True, False]
    drawn = [[bool(Plan("cut=0.5", seed).draw(n, "q", "a")) for n in range(50)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert 10 < sum(drawn[0]) < 40
    plan = Plan("lowscore=1,wrong=1")
    fitting = {label: plan.draw(1, "q", "a", label) for label in ("critic", "lesson", "outline")}
    assert [found and found.kind for found in fitting.values()] == ["lowscore", "wrong", None]
    for spec in ("nonsense=0.1", "cut", "cut=often", "cut@x"):
        with pytest.raises(ValueError, match=r"."):
            Plan(spec)


def test_rate_limits_fill_evenly_up_to_a_minutes_worth_and_refuse_what_is_too_much() -> None:
    clock = FakeClock()
    limits = RateLimits(requests=60, clock=clock)
    assert all(limits.take(1).let_in for _ in range(60))
    refused = limits.take(1)
    assert (refused.let_in, refused.headers["retry-after"]) == (False, "1")
    assert refused.headers["anthropic-ratelimit-requests-remaining"] == "0"
    assert refused.headers["anthropic-ratelimit-requests-reset"] == "2026-01-09T14:31:22Z"
    clock.advance(2)
    assert [limits.take(1).let_in for _ in range(3)] == [True, True, False]
    clock.advance(3600)
    assert sum(limits.take(1).let_in for _ in range(100)) == 60
    burst = RateLimits(requests=60, burst=0.1, clock=clock)
    assert sum(burst.take(1).let_in for _ in range(20)) == 6
    made = RateLimits(output_tokens=6000, clock=clock)
    made.take(1)
    made.made(9000)
    assert made.take(1).headers["retry-after"] == "31"
    clock.advance(31)
    assert made.take(1).let_in
    read = RateLimits(input_tokens=10_000, clock=clock)
    assert [read.take(size).let_in for size in (9000, 2000, 500)] == [True, False, True]


def test_replies_and_refusals_carry_what_headers_say_of_limits(server: BillingServer, model: AnthropicModel) -> None:
    server.limits = RateLimits(requests=2, input_tokens=20_000, output_tokens=8000, clock=FakeClock())
    asked = Request("claude-sonnet-5-5", [Message("user", "say this " * 40)], max_tokens=1000)
    told = model.complete(asked).limits
    assert (told["requests"], told["requests_left"]) == (2, 1)
    assert (told["input_tokens"], told["output_tokens_left"]) == (20_000, 8000)
    model.complete(asked)
    with pytest.raises(ModelUnavailable) as refused:
        model.complete(asked)
    data = refused.value.data
    assert (data["status"], data["retry_after"], data["limits"]["requests_left"]) == (429, 30, 0)
    assert refused.value.billed == "no"
    assert [(entry.fault, entry.usd > 0) for entry in server.bill.entries()] == [
        ("", True), ("", True), ("limited", False),
    ]  # fmt: skip


Ask = Callable[[Request], dict[str, Any]]
LESSONS = 6


@pytest.fixture
def asks() -> Asks:
    course = Catalogue().course("mathematics", "national_5")
    return Asks(course, load_prompts(course.to_json()), "claude-sonnet-5-5")


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


def test_correction_that_is_asked_for_is_given(server: BillingServer, asks: Asks, ask: Ask) -> None:
    plan = make_plan(asks.course, LESSONS)
    server.plan = Plan("invalid=1")
    with pytest.raises(ValueError, match=r"line 1"):
        ask(asks.outline(plan))
    for _ in range(2):
        assert len(ask(asks.outline(plan, Draft(None, ["It is not JSON."])))["entries"]) == LESSONS


def test_course_is_written_corrected_solved_and_judged_over_http(
    server: BillingServer, asks: Asks, ask: Ask, model: AnthropicModel
) -> None:
    entries = scheme(asks, ask)
    lesson = ask(asks.lesson(entries, 1))["lesson"]
    Lesson.model_validate(lesson)
    item = {"c1.q1": lesson["cards"][0]["items"][0]}
    patches = Corrections.model_validate(ask(asks.correction(entries, 1, item, ["c1.q1.answer: 12, but it gives 14"])))
    assert [patch.path for patch in patches.patches] == ["c1.q1.feedback"]
    assert Solutions.model_validate(ask(asks.solve([{"question": "c1.q1", "ask": "What is 2 + 2?"}])))
    assert Critique.model_validate(ask(asks.critic(entries[0], lesson, []))).judgements
    labels = [entry.label for entry in server.bill.entries()]
    assert labels == ["outline", *["entry"] * LESSONS, "lesson", "correction", "solve", "critic"]
    # Lessons share a prefix in the cache.
    usage = model.complete(asks.lesson(entries, 2)).usage
    assert (usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"] > 0) == (0, True)
    assert ask(asks.lesson(entries, 1)) == {"lesson": lesson}
    # So do corrections: their form is the lessons', which is part of the prefix.
    usage = model.complete(asks.correction(entries, 2, item, ["c1.q1.answer: 12, but it gives 15"])).usage
    assert (usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"] > 8_000) == (0, True)
