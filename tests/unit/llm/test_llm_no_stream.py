"""Answers with status 200 that are no event stream: whole messages, errors, pages of whoever stands between."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pipeline.errors import ModelError, ModelUnavailable
from pipeline.llm import wire
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from tests.servers.billing import BillingServer
from tests.servers.mishaps import Mishap
from tests.unit.llm.conftest import KEY

QUESTION = Request("claude-sonnet-5-5", [Message("user", "Why? " * 300)])
PAGE = "<!DOCTYPE html><html><body>Log in to this network.</body></html>"
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5",
    "content": [{"type": "thinking", "thinking": "hm"}, *({"type": "text", "text": part} for part in ("Be", "cause"))],
    "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 7},
}  # fmt: skip
EVENTS = (
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Because"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
)


def answers(server: BillingServer, kind: str, body: str) -> None:
    """Let the server answer everything so."""
    server.always = Mishap("unavailable", status=200, page=body, headers={"content-type": kind})


def test_whole_message_of_a_server_that_does_not_stream_is_a_reply(
    server: BillingServer, model: AnthropicModel
) -> None:
    streamed = model.complete(QUESTION)
    server.streams = False
    whole = model.complete(QUESTION)
    assert (whole.text, whole.stop_reason, whole.model) == (streamed.text, "end_turn", "claude-sonnet-5-5")
    assert whole.usage == streamed.usage
    assert whole.request_id == "req_00000002"


def test_message_is_read_whatever_its_content_type_says(server: BillingServer, model: AnthropicModel) -> None:
    whole = json.dumps(MESSAGE)
    events = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in EVENTS)
    bare = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in EVENTS) + "data: [DONE]\n\n"
    for body in (whole, "\ufeff\n" + whole, events, ": hello\n\n" + events, bare):
        for kind in ("application/json", "text/event-stream; charset=utf-8", "text/plain", ""):
            answers(server, kind, body)
            reply = model.complete(QUESTION)
            assert (reply.text, reply.complete) == ("Because", True), (kind, body)
            assert reply.usage == {"input_tokens": 5, "output_tokens": 7}


def test_answer_that_is_no_reply_names_the_host_and_the_content_type(
    server: BillingServer, model: AnthropicModel
) -> None:
    for kind, body in (
        ("text/html; charset=utf-8", PAGE),
        ("text/plain", "error: no upstream"),
        ("application/json", json.dumps({"object": "chat.completion", "choices": []})),
        ("application/json", "[" * 100_000),
        ("application/json", "null"),
        ("text/html", ""),
        ("text/event-stream", PAGE),
    ):
        answers(server, kind, body)
        with pytest.raises(ModelUnavailable) as caught:
            model.complete(QUESTION)
        named = kind.partition(";")[0]
        data = caught.value.data
        assert (caught.value.billed, data["content_type"], data["host"]) == ("unknown", named, "127.0.0.1")
        assert all(part in caught.value.message for part in ("127.0.0.1", named))


def test_stream_without_an_end_is_not_read_for_ever(
    server: BillingServer, model: AnthropicModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MOST_BYTES", 100_000)
    pings = 'data: {"type": "ping"}\n\n' * 20_000
    begin, *rest = (f"data: {json.dumps(each)}\n\n" for each in EVENTS)
    answers(server, "text/event-stream", "".join((begin, pings, *rest)))
    with pytest.raises(ModelUnavailable) as caught:
        model.complete(QUESTION)
    assert (caught.value.code, caught.value.billed) == ("reply_broken_off", "partial")
    answers(server, "application/json", json.dumps({**MESSAGE, "more": pings}))
    with pytest.raises(ModelUnavailable, check=lambda error: error.code == "no_model_reply"):
        model.complete(QUESTION)


def test_stream_that_says_nothing_and_an_error_document_are_told_apart(
    server: BillingServer, model: AnthropicModel
) -> None:
    for body in ("", ": ping\n\n"):
        answers(server, "text/event-stream", body)
        with pytest.raises(ModelUnavailable, check=lambda error: error.code == "reply_broken_off"):
            model.complete(QUESTION)
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    answers(server, "application/json", json.dumps(error))
    with pytest.raises(ModelUnavailable) as caught:
        model.complete(QUESTION)
    assert (caught.value.data["status"], caught.value.billed) == (529, "unknown")


def test_page_or_document_in_the_place_of_a_look_up_count_or_list_is_told_as_such(
    server: BillingServer, model: AnthropicModel
) -> None:
    assert model.batches is not None
    assert model.count_tokens is not None
    batches, count = model.batches, partial(model.count_tokens, QUESTION)
    look = partial(batches.look, "msgbatch_1")
    answers(server, "text/html", PAGE)
    asks: tuple[Callable[[], object], ...] = (model.check, count, look)
    for ask in asks:
        with pytest.raises(ModelUnavailable, check=lambda error: error.code == "no_model_reply"):
            ask()
    counts: list[Any] = [{}, *({"input_tokens": found} for found in (None, "many", -9, 0))]
    odd: list[Any] = [[], 5, None]
    for document in counts + odd:
        answers(server, "application/json", json.dumps(document))
        for ask in (count, look, partial(batches.since, None))[: 1 if document in counts else 3]:
            with pytest.raises(ModelUnavailable):
                ask()


def test_redirect_is_an_error_and_the_key_stays_here(server: BillingServer) -> None:
    with BillingServer() as thief:
        server.always = Mishap("unavailable", status=307, page="", headers={"location": f"{thief.url}/v1/messages"})
        own = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=server.url)
        with pytest.raises(ModelError, check=lambda error: error.code == "redirect_refused") as caught:
            own.complete(QUESTION)
        assert thief.seen == []
    assert (caught.value.billed, caught.value.data["status"]) == ("no", 307)
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always")
        # A model that is not closed leaves no connection behind.
        del own, caught
        gc.collect()
    assert [str(warning.message) for warning in left_open if warning.category is ResourceWarning] == []


def test_gateway_error_without_a_document_names_who_answered(server: BillingServer, model: AnthropicModel) -> None:
    server.plan.queue(Mishap("unavailable", status=503, page=PAGE))
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1 .*text/html"):
        model.complete(QUESTION)
