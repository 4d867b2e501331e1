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


def test_llmock_rate_limit_hands_on_the_wait_and_is_not_retried_here(mocked: AnthropicModel, llmock: Any) -> None:
    llmock.rate_limit(retry_after=2)
    with pytest.raises(ModelUnavailable) as caught:
        mocked.complete(QUESTION)
    assert caught.value.data["status"] == 429
    assert caught.value.data["retry_after"] == 2.0
    assert len(llmock.requests) == 1


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
    llmock.stall(after_chunks=2, seconds=10)
    model = make_model("claude-sonnet-4-6", base_url=llmock.base_url("anthropic"), deadline_seconds=2)
    with pytest.raises(ModelUnavailable, check=lambda error: error.code == "reply_broken_off"):
        model.complete(QUESTION)


def test_llmock_statuses_are_told_apart(mocked: AnthropicModel, llmock: Any) -> None:
    for status in (500, 503, 529, 400, 401, 403, 404, 413, 422):
        llmock.fail(status)
        with pytest.raises(ModelUnavailable if status >= 500 else ModelRejected) as caught:
            mocked.complete(QUESTION)
        assert (caught.value.data["status"], caught.value.billed) == (status, "no")


def test_llmock_replies_refusals_and_truncations_come_with_their_usage(mocked: AnthropicModel, llmock: Any) -> None:
    from llmock.scenarios import Reply as Scripted

    llmock.reply("A gradient is a slope.")
    llmock.add(Scripted(text="No.", finish_reason="content_filter"), Scripted(text="Half", finish_reason="length"))
    whole, refused, cut = (mocked.complete(QUESTION) for _ in range(3))
    assert (whole.text, whole.stop_reason) == ("A gradient is a slope.", "end_turn")
    assert (refused.refused, cut.truncated) == (True, True)
    for reply in (whole, refused, cut):
        assert reply.usage["input_tokens"] > 0
        assert reply.usage["output_tokens"] > 0
