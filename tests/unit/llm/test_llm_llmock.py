"""The adapter against llmock, a server that was not written by us."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.errors import ModelRejected, ModelUnavailable
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Reply, Request
from tests.unit.llm.conftest import MakeModel

QUESTION = Request("claude-sonnet-4-6", [Message("user", "Explain gradients. " * 20)])


@pytest.fixture
def mocked(make_model: MakeModel, llmock: Any) -> AnthropicModel:
    return make_model("claude-sonnet-4-6", base_url=llmock.base_url("anthropic"))


def test_llmock_reply_is_complete_with_usage(mocked: AnthropicModel, llmock: Any) -> None:
    llmock.reply("A gradient is a slope.")
    reply = mocked.complete(QUESTION)
    assert (reply.text, reply.stop_reason) == ("A gradient is a slope.", "end_turn")
    assert reply.usage["input_tokens"] > 0
    assert reply.usage["output_tokens"] > 0


def test_llmock_rate_limit_hands_on_the_wait_and_is_not_retried_here(mocked: AnthropicModel, llmock: Any) -> None:
    llmock.rate_limit(retry_after=2)
    with pytest.raises(ModelUnavailable) as caught:
        mocked.complete(QUESTION)
    assert caught.value.data["status"] == 429
    assert caught.value.data["retry_after"] == 2.0
    assert len(llmock.requests) == 1


@pytest.mark.parametrize("status", [500, 503, 529])
def test_llmock_provider_trouble_is_unavailable(mocked: AnthropicModel, llmock: Any, status: int) -> None:
    llmock.fail(status)
    with pytest.raises(ModelUnavailable) as caught:
        mocked.complete(QUESTION)
    assert caught.value.billed == "no"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_llmock_refused_requests_are_rejected(mocked: AnthropicModel, llmock: Any, status: int) -> None:
    llmock.fail(status)
    with pytest.raises(ModelRejected) as caught:
        mocked.complete(QUESTION)
    assert caught.value.data["status"] == status


@pytest.mark.parametrize("fault", ["truncate", "disconnect", "corrupt"])
def test_llmock_broken_stream_is_never_taken_for_an_answer(mocked: AnthropicModel, llmock: Any, fault: str) -> None:
    llmock.reply("A gradient tells how steep a line is, and in which direction it goes. " * 5)
    getattr(llmock, fault)(after_chunks=3)
    with pytest.raises(ModelUnavailable) as caught:
        mocked.complete(QUESTION)
    assert caught.value.billed == "partial"
    assert isinstance(caught.value.reply, Reply)
    assert caught.value.reply.usage["input_tokens"] > 0


def test_llmock_stalled_stream_ends_at_the_deadline(make_model: MakeModel, llmock: Any) -> None:
    llmock.stall(after_chunks=2, seconds=2)
    model = make_model("claude-sonnet-4-6", base_url=llmock.base_url("anthropic"), deadline_seconds=0.3)
    with pytest.raises(ModelUnavailable, check=lambda error: error.code == "reply_broken_off"):
        model.complete(QUESTION)


def test_llmock_refusal_and_truncation_are_replies_with_usage(mocked: AnthropicModel, llmock: Any) -> None:
    from llmock.scenarios import Reply as Scripted

    llmock.add(Scripted(text="No.", finish_reason="content_filter"), Scripted(text="Half", finish_reason="length"))
    refused, cut = mocked.complete(QUESTION), mocked.complete(QUESTION)
    assert refused.refused
    assert cut.truncated
    assert refused.usage["output_tokens"] > 0
    assert cut.usage["output_tokens"] > 0
