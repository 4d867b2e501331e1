"""Answers with status 200 that are no event stream: whole messages, errors, pages of whoever stands between."""

from __future__ import annotations

import gc
import json
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pipeline.errors import ModelError, ModelUnavailable
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


class Answering:
    """A server that gives every request the same answer."""

    def __init__(self) -> None:
        self.kind, self.body = "text/html", b""
        #: Where it redirects to, in place of an answer.
        self.location = ""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                self.do_GET()

            def do_GET(self) -> None:
                self.send_response(307 if owner.location else 200)
                if owner.location:
                    self.send_header("location", owner.location + self.path)
                if owner.kind:
                    self.send_header("content-type", owner.kind)
                self.send_header("content-length", str(len(owner.body)))
                self.end_headers()
                self.wfile.write(owner.body)

            def log_message(self, format: str, *args: object) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture(scope="module")
def answering() -> Iterator[Answering]:
    made = Answering()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


@pytest.fixture(scope="module")
def asked(answering: Answering) -> Iterator[AnthropicModel]:
    model = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=answering.url, deadline_seconds=20)
    yield model
    model.close()


def test_whole_message_of_a_server_that_does_not_stream_is_a_reply(
    server: BillingServer, model: AnthropicModel
) -> None:
    streamed = model.complete(QUESTION)
    server.streams = False
    whole = model.complete(QUESTION)
    assert (whole.text, whole.stop_reason, whole.model) == (streamed.text, "end_turn", "claude-sonnet-5-5")
    assert whole.usage == streamed.usage
    assert whole.request_id == "req_00000002"


def test_message_is_read_whatever_its_content_type_says(answering: Answering, asked: AnthropicModel) -> None:
    whole = json.dumps(MESSAGE).encode()
    events = b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in EVENTS)  # type: ignore[attr-defined]
    bare = b"".join(b"data: %s\r\n\r\n" % json.dumps(e).encode() for e in EVENTS) + b"data: [DONE]\n\n"
    for body in (whole, b"\xef\xbb\xbf\n" + whole, events, b": hello\n\n" + events, bare):
        for kind in ("application/json", "text/event-stream; charset=utf-8", "text/plain", ""):
            answering.kind, answering.body = kind, body
            reply = asked.complete(QUESTION)
            assert (reply.text, reply.complete) == ("Because", True), (kind, body)
            assert reply.usage == {"input_tokens": 5, "output_tokens": 7}


def test_answer_that_is_no_reply_names_the_host_and_the_content_type(
    answering: Answering, asked: AnthropicModel
) -> None:
    chat = json.dumps({"object": "chat.completion", "choices": []}).encode()
    cases: list[tuple[str, bytes]] = [
        ("text/html; charset=utf-8", PAGE.encode()),
        ("text/plain", b"error: no upstream"),
        ("application/json", chat),
        ("application/json", b"[" * 100_000),
        ("application/json", b"null"),
        ("text/html", b""),
        ("text/event-stream", PAGE.encode()),
    ]
    for kind, body in cases:
        answering.kind, answering.body = kind, body
        with pytest.raises(ModelUnavailable) as caught:
            asked.complete(QUESTION)
        assert caught.value.billed == "unknown"
        assert caught.value.data["content_type"] == kind.partition(";")[0]
        assert caught.value.data["host"] == "127.0.0.1"
        assert all(part in caught.value.message for part in ("127.0.0.1", kind.partition(";")[0]))


def test_stream_that_says_nothing_and_an_error_document_are_told_apart(
    answering: Answering, asked: AnthropicModel
) -> None:
    for body in (b"", b": ping\n\n"):
        answering.kind, answering.body = "text/event-stream", body
        with pytest.raises(ModelUnavailable, check=lambda error: error.code == "reply_broken_off"):
            asked.complete(QUESTION)
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    answering.kind, answering.body = "application/json", json.dumps(error).encode()
    with pytest.raises(ModelUnavailable) as caught:
        asked.complete(QUESTION)
    assert (caught.value.data["status"], caught.value.billed) == (529, "unknown")


def test_page_in_the_place_of_a_look_up_or_a_count_is_told_as_such(answering: Answering, asked: AnthropicModel) -> None:
    answering.kind, answering.body = "text/html", PAGE.encode()
    looks: list[Any] = [asked.check, lambda: asked.count_tokens(QUESTION), lambda: asked.batches.look("msgbatch_1")]
    for look in looks:
        with pytest.raises(ModelUnavailable, check=lambda error: error.code == "no_model_reply"):
            look()


def test_json_that_is_no_count_and_no_list_is_told_as_such(answering: Answering, asked: AnthropicModel) -> None:
    counts: list[Any] = [{}, *({"input_tokens": count} for count in (None, "many", -9, 0))]
    for document in (*counts, [], 5, None):
        answering.kind, answering.body = "application/json", json.dumps(document).encode()
        with pytest.raises(ModelUnavailable):
            asked.count_tokens(QUESTION)
    for document in ([], 5, None):
        answering.body = json.dumps(document).encode()
        looks: list[Any] = [lambda: asked.batches.since(None), lambda: asked.batches.look("msgbatch_1")]
        for look in looks:
            with pytest.raises(ModelUnavailable):
                look()


def test_redirect_is_an_error_and_the_key_stays_here(server: BillingServer, answering: Answering) -> None:
    model = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=answering.url)
    answering.body, answering.location = b"", server.url
    with pytest.raises(ModelError, check=lambda error: error.code == "redirect_refused") as caught:
        model.complete(QUESTION)
    answering.location = ""
    assert (caught.value.billed, caught.value.data["status"]) == ("no", 307)  # type: ignore[attr-defined]
    assert server.seen == []
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always")
        # A model that is not closed leaves no connection behind.
        del model, caught
        gc.collect()
    assert [str(warning.message) for warning in left_open if warning.category is ResourceWarning] == []


def test_gateway_error_without_a_document_names_who_answered(server: BillingServer, model: AnthropicModel) -> None:
    server.plan.queue(Mishap("unavailable", status=503, page=PAGE))
    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1 .*text/html"):
        model.complete(QUESTION)
