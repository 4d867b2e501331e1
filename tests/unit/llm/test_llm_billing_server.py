"""The test server itself: what it refuses, and as a process of its own."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.servers.api_rules import MAX_OUTPUT
from tests.servers.billing import BillingServer
from tests.servers.mishaps import Plan

HEADERS = {"x-api-key": "k", "anthropic-version": "2026-10-21", "content-type": "application/json"}
SERVER = Path(__file__).resolve().parents[2] / "servers" / "billing.py"


def send(
    server: BillingServer, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=10)
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    connection.request(method, path, text, HEADERS if headers is None else headers)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, json.loads(data)


def body(**changes: Any) -> dict[str, Any]:
    base = {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
    return {**base, **changes}


def test_plain_reply_has_the_shape_of_a_message(server: BillingServer) -> None:
    status, reply = send(server, "POST", "/v1/messages", body())
    assert status == 200
    assert (reply["type"], reply["role"], reply["stop_reason"]) == ("message", "assistant", "end_turn")
    assert reply["content"] == [{"type": "text", "text": "hello"}]
    assert reply["usage"]["output_tokens"] == 2


def text_block(**more: Any) -> dict[str, Any]:
    return {"type": "text", "text": "a", **more}


MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"temperature": 0.2}, "temperature"),
        ({"top_k": 3}, "top_k"),
        ({"tempo": 1}, "tempo: Extra inputs"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": MAX_OUTPUT + 1}, "max_tokens"),
        ({"max_tokens": "100"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"stream": "yes"}, "stream"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user", "content": ""}]}, "non-empty"),
        ({"messages": [{"role": "user", "content": [text_block(text="")]}]}, "non-empty"),
        ({"messages": [{"role": "user", "content": [{"type": "poem"}]}]}, "text blocks"),
        ({"messages": [{"role": "user"}]}, "role and content"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}, "prefill"),
        ({"messages": [{"role": "assistant", "content": "b"}, {"role": "user", "content": "a"}]}, "first message"),
        ({"system": [text_block(**MARK)] * 5}, "maximum of 4"),
        ({"system": [text_block(cache_control={"type": "forever"})]}, "ephemeral"),
        ({"system": [text_block(cache_control={"type": "ephemeral", "ttl": "2h"})]}, "ttl"),
        ({"output_config": {"effort": "extreme"}}, "effort"),
        ({"output_config": {"mood": 1}}, "output_config"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "format"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}, "additionalProperties"),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "string", "minLength": 1}}}},
            "minLength",
        ),
    ],
)
def test_server_refuses_what_the_provider_refuses(server: BillingServer, wrong: dict[str, Any], said: str) -> None:
    status, reply = send(server, "POST", "/v1/messages", body(**wrong))
    assert status == 400
    assert reply["error"]["type"] == "invalid_request_error"
    assert said in reply["error"]["message"]
    assert server.bill.requests == 0


@pytest.mark.parametrize("missing", ["model", "max_tokens", "messages"])
def test_server_refuses_missing_fields(server: BillingServer, missing: str) -> None:
    status, _ = send(server, "POST", "/v1/messages", {k: v for k, v in body().items() if k != missing})
    assert status == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"x-api-key": "k"}, 400), ({"x-api-key": "k", "anthropic-version": "2020-01-01"}, 400)],
)
def test_server_wants_a_credential_and_a_known_version(
    server: BillingServer, headers: dict[str, str], status: int
) -> None:
    assert send(server, "POST", "/v1/messages", body(), headers)[0] == status


def test_unknown_and_retired_models_are_not_found(server: BillingServer) -> None:
    for name in ("claude-none", "claude-sonnet-4-20250514"):
        status, reply = send(server, "POST", "/v1/messages", body(model=name))
        assert (status, reply["error"]["type"]) == (404, "not_found_error")


def test_body_that_is_no_json_is_refused(server: BillingServer) -> None:
    assert send(server, "POST", "/v1/messages", "{")[0] == 400


def test_counting_tokens_is_free_and_equals_what_is_billed(server: BillingServer) -> None:
    question = {"model": "claude-sonnet-5-5", "messages": [{"role": "user", "content": "word " * 50}]}
    status, counted = send(server, "POST", "/v1/messages/count_tokens", question)
    assert status == 200
    assert server.bill.requests == 0
    _, reply = send(server, "POST", "/v1/messages", {**question, "max_tokens": 100})
    assert reply["usage"]["input_tokens"] == counted["input_tokens"]
    assert send(server, "POST", "/v1/messages/count_tokens", body())[0] == 400


def test_one_hour_marks_are_written_at_their_own_price(server: BillingServer) -> None:
    block = {"type": "text", "text": "z" * 8000, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    _, reply = send(server, "POST", "/v1/messages", body(system=[block]))
    assert reply["usage"]["cache_creation"]["ephemeral_1h_input_tokens"] > 2000
    assert reply["usage"]["cache_creation"]["ephemeral_5m_input_tokens"] == 0


def test_prefix_below_the_minimum_is_not_cached(server: BillingServer) -> None:
    block = {"type": "text", "text": "z" * 4000, "cache_control": {"type": "ephemeral"}}
    for _ in range(2):
        _, reply = send(server, "POST", "/v1/messages", body(system=[block]))
    assert reply["usage"]["cache_creation_input_tokens"] == reply["usage"]["cache_read_input_tokens"] == 0


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


@pytest.mark.parametrize("spec", ["nonsense=0.1", "cut", "cut=often", "cut@x"])
def test_fault_plan_that_makes_no_sense_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Plan(spec)


def test_fault_plan_names_requests_and_is_the_same_for_the_same_seed() -> None:
    numbered = Plan("overloaded@2+4")
    assert [bool(numbered.draw(number, "q", "a")) for number in range(1, 6)] == [False, True, False, True, False]
    drawn = [[bool(Plan("cut=0.5", seed).draw(n, "q", "a")) for n in range(50)] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert 10 < sum(drawn[0]) < 40


def test_content_faults_meet_the_calls_they_fit() -> None:
    plan = Plan("lowscore=1,wrong=1")
    drawn = {label: plan.draw(1, "q", "a", label) for label in ("critic", "lesson", "outline")}
    assert {label: found.kind if found else "" for label, found in drawn.items()} == {
        "critic": "lowscore",
        "lesson": "wrong",
        "outline": "",
    }


def test_server_runs_as_a_process_and_shows_its_bill() -> None:
    arguments = [sys.executable, str(SERVER), "--port", "0", "--faults", "overloaded@1", "--seed", "7"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
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
