"""What a reply carries, against a real HTTP server."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pipeline.errors import ModelRejected, ModelUnavailable
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Reply, Request, Segment
from pipeline.llm.wire import parameters
from tests.servers.billing import BillingServer
from tests.servers.mishaps import Mishap

LONG_PREFIX = "The rules of this course. " * 400
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string", "minLength": 1}, "minutes": {"type": "integer", "minimum": 5}},
    "required": ["title", "minutes"],
}


def question(text: str = "What is a gradient?", **changes: Any) -> Request:
    return Request("claude-sonnet-5-5", [Message("user", text)], **changes)


def test_reply_holds_text_stop_reason_model_and_request_id(server: BillingServer, model: AnthropicModel) -> None:
    reply = model.complete(question("tangent" * 300))
    assert reply.text == "tangent" * 300
    assert reply.complete
    assert (reply.stop_reason, reply.model, reply.request_id) == ("end_turn", "claude-sonnet-5-5", "req_00000001")
    headers, sent = server.seen[0]
    assert (sent["stream"], headers["anthropic-version"]) == (True, "2026-10-21")
    # The usage of the end replaces that of the beginning; keys that this program does not know stay.
    assert reply.usage["input_tokens"] == server.bill.entries()[0].input_tokens
    assert reply.usage["output_tokens"] == 525
    assert reply.usage["inference_geo"] == "not_available"
    assert reply.usage["cache_creation"] == {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}


def test_structured_answer_is_asked_for_by_format_and_returned_unparsed(
    server: BillingServer, model: AnthropicModel
) -> None:
    reply = model.complete(question(schema=SCHEMA, effort="low"))
    sent = server.seen[0][1]["output_config"]
    assert sent["effort"] == "low"
    assert sent["format"]["type"] == "json_schema"
    assert sent["format"]["schema"]["additionalProperties"] is False
    assert reply.text.startswith('{"echo"')
    assert "additionalProperties" not in SCHEMA
    server.reset()
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    held = {"type": "object", "properties": {"marks": {"anyOf": [{"type": "null"}, free]}}}
    unsendable: list[dict[str, Any]] = [{"properties": {}}, free, held, {"type": "array", "items": free}]
    for schema in unsendable:
        with pytest.raises(ModelRejected, check=lambda error: error.code == "schema_unsendable"):
            model.complete(question(schema=schema))
    assert server.bill.requests == 0


def test_shared_prefix_is_written_once_then_read(server: BillingServer, model: AnthropicModel) -> None:
    system = [Segment(LONG_PREFIX, cache=True), Segment("Be brief.")]
    first = model.complete(question("one", system=system))
    second = model.complete(question("two", system=system))
    assert first.usage["cache_creation_input_tokens"] > 1024
    assert second.usage["cache_read_input_tokens"] == first.usage["cache_creation_input_tokens"]
    assert second.usage["cache_creation_input_tokens"] == 0


def test_at_most_four_cache_marks_are_sent_the_last_and_no_empty_segments() -> None:
    sent = parameters(question(system=[Segment(f"part {n}", cache=True) for n in range(6)]), "", dict)
    assert ["cache_control" in block for block in sent["system"]] == [False, False, True, True, True, True]
    sent = parameters(question(system=[Segment(""), Segment("a")]), "", dict)
    assert [block["text"] for block in sent["system"]] == ["a"]
    assert "system" not in parameters(question(system=[Segment("", cache=True)]), "", dict)


def test_lone_surrogates_and_nul_reach_the_model_as_valid_text(server: BillingServer, model: AnthropicModel) -> None:
    reply = model.complete(question("a\ud800b\x00c"))
    assert reply.text == "a\N{REPLACEMENT CHARACTER}b\x00c"


def test_truncations_refusals_and_invalid_answers_are_replies_with_what_they_cost(
    server: BillingServer, model: AnthropicModel
) -> None:
    reply = model.complete(question("word " * 400, max_tokens=50))
    assert reply.truncated
    assert not reply.complete
    assert reply.usage["output_tokens"] == 50
    assert reply.text
    server.plan.queue("refusal")
    reply = model.complete(question())
    assert reply.refused
    assert reply.usage["output_tokens"] > 0
    assert reply.extra["stop_details"]["category"] == "cyber"
    server.plan.queue("invalid")
    reply = model.complete(question("x" * 100, schema=SCHEMA))
    assert reply.complete
    assert reply.text.endswith('"]}')
    assert reply.usage["output_tokens"] == server.bill.entries()[-1].output_tokens


def broken(model: AnthropicModel, text: str = "y" * 4000) -> tuple[ModelUnavailable, Reply]:
    with pytest.raises(ModelUnavailable) as caught:
        model.complete(question(text))
    assert caught.value.billed == "partial"
    assert isinstance(caught.value.reply, Reply)
    return caught.value, caught.value.reply


def test_stream_that_breaks_off_is_a_failure_that_keeps_what_came(server: BillingServer, model: AnthropicModel) -> None:
    server.plan.queue(Mishap("silent", after=2))
    error, partial = broken(model)
    assert "without a stop reason" in error.message
    assert partial.text == "y" * 800
    assert partial.stop_reason is None
    assert partial.usage["input_tokens"] == server.bill.entries()[0].input_tokens
    server.plan.queue(Mishap("cut", after=3))
    error, partial = broken(model)
    assert error.retryable
    assert (partial.usage["input_tokens"] > 0, partial.request_id) == (True, "req_00000002")
    server.plan.queue("malformed")
    assert "not JSON" in broken(model)[0].message
    server.plan.queue("error_event")
    error, _ = broken(model)
    assert (error.data["status"], error.data["type"]) == (529, "overloaded_error")


def test_stalled_stream_ends_at_the_deadline(server: BillingServer, make_model: Any) -> None:
    server.plan.queue("stall")
    error, partial = broken(make_model(deadline_seconds=2))
    assert "within 2 s" in error.message
    assert partial.text


def test_reply_that_never_begins_ends_at_the_deadline_and_may_be_billed(server: BillingServer, make_model: Any) -> None:
    server.latency = 30
    with pytest.raises(ModelUnavailable) as caught:
        make_model(deadline_seconds=2).complete(question())
    assert caught.value.billed == "unknown"
    assert "within 2 s" in caught.value.message


def test_trickling_stream_ends_at_the_deadline(server: BillingServer, make_model: Any) -> None:
    server.piece_seconds = 0.05
    error, _ = broken(make_model(deadline_seconds=2), "z" * 400_000)
    assert "within 2 s" in error.message


def test_connection_cut_before_the_reply_may_be_billed(server: BillingServer, model: AnthropicModel) -> None:
    server.plan.queue("drop")
    with pytest.raises(ModelUnavailable) as caught:
        model.complete(question())
    assert caught.value.billed == "unknown"
    assert caught.value.reply is None
    assert server.bill.usd > 0


def test_one_call_is_one_request_whatever_happens(server: BillingServer, model: AnthropicModel) -> None:
    for number, kind in enumerate(["error500", "overloaded", "rate_limit", "drop", "cut"], start=1):
        server.plan.queue(kind)
        with pytest.raises(ModelUnavailable):
            model.complete(question())
        assert server.bill.requests == number


def test_several_threads_call_at_once_without_mixing_replies(server: BillingServer, model: AnthropicModel) -> None:
    server.latency = 0.05
    replies: dict[int, str] = {}

    def call(number: int) -> None:
        replies[number] = model.complete(question(f"thread {number} " * 200)).text

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == {number: f"thread {number} " * 200 for number in range(8)}
    assert server.bill.to_json()["most_in_flight"] > 1
