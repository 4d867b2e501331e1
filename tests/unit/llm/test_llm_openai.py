"""The second wire format: what is its own, beside the contract that all adapters keep."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline import providers
from pipeline.app.model_choice import model_of
from pipeline.cost.prices import PriceBook
from pipeline.cost.usage import billed
from pipeline.errors import ConfigError, CredentialMissing, ModelUnavailable, SpendLimit
from pipeline.llm.base import Message, Request, Segment
from pipeline.llm.openai import ChatHeard, OpenAIModel, chat_parameters, counted, is_strict
from pipeline.providers import PROVIDERS
from pipeline.records.charge import EXACT, INTERVAL, UNPRICED
from tests.servers.billing import BillingServer
from tests.servers.mishaps import Mishap
from tests.servers.platforms import PlatformServer

NOW = datetime(2026, 11, 29, tzinfo=UTC)
ASKED = Request("", [Message("user", "Why? " * 100)])


@pytest.fixture(scope="module")
def front() -> Iterator[PlatformServer]:
    with BillingServer() as behind, PlatformServer(behind) as server:
        yield server


@pytest.fixture(scope="module")
def _local(front: PlatformServer) -> Iterator[OpenAIModel]:
    model = OpenAIModel("gpt-5-mini", base_url=f"{front.url}/openai/v1", deadline_seconds=100)
    yield model
    model.close()


@pytest.fixture
def local(_local: OpenAIModel, front: PlatformServer) -> OpenAIModel:
    """A model of a server that wants no key."""
    front.reset()
    return _local


def test_local_server_is_asked_without_a_key_of_anybodys(local: OpenAIModel, front: PlatformServer) -> None:
    assert local.check().warnings == ()
    assert local.complete(ASKED).complete
    ((_, headers),) = front.seen
    assert headers["authorization"] == "Bearer none"
    with pytest.raises(CredentialMissing, match="gpt-5-mini"):
        OpenAIModel("gpt-5-mini")


def test_list_of_models_is_asked_for_and_a_tag_may_be_left_out(local: OpenAIModel, front: PlatformServer) -> None:
    front.listed = ["gpt-5-mini:latest"]
    assert local.check().warnings == ()
    front.listed = None
    assert "no model list" in local.check().warnings[0]
    front.behind.free_fault = (401, "authentication_error", "no")
    with pytest.raises(Exception, match="credential"):
        local.check()


def test_request_is_in_the_words_of_this_wire_format() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
              "additionalProperties": False}  # fmt: skip
    request = Request(
        "", [Message("user", "Why?"), Message("assistant", "So."), Message("user", "How?")],
        [Segment("Be brief.", cache=True), Segment(""), Segment("Be kind.")],
        schema=schema, schema_id="lesson 7/ü", effort="max", max_tokens=90,
    )  # fmt: skip
    sent = chat_parameters(request, "m", dict, newer_cap=False)
    assert sent["messages"][0] == {"role": "system", "content": "Be brief.\n\nBe kind."}
    assert [turn["role"] for turn in sent["messages"]] == ["system", "user", "assistant", "user"]
    assert (sent["model"], sent["max_tokens"], sent["reasoning_effort"]) == ("m", 90, "xhigh")
    form = sent["response_format"]["json_schema"]
    assert (form["name"], form["strict"], form["schema"]) == ("lesson_7__", True, schema)
    assert chat_parameters(ASKED, "m", dict, newer_cap=True)["max_completion_tokens"] == 16_000
    assert "system" not in {turn["role"] for turn in chat_parameters(ASKED, "m", dict, newer_cap=True)["messages"]}


def test_schema_is_strict_only_where_every_member_is_required_of_closed_objects() -> None:
    member = {"a": {"type": "string"}}
    closed = {"type": "object", "properties": member, "required": ["a"], "additionalProperties": False}
    assert is_strict(closed)
    assert is_strict({"type": "array", "items": closed})
    assert not is_strict({**closed, "required": []})
    assert not is_strict({**closed, "additionalProperties": True})
    assert not is_strict({"anyOf": [closed, {"type": "object"}]})
    assert not is_strict({"oneOf": [closed]})
    assert not is_strict({**closed, "$defs": {"part": {"type": "object", "properties": member}}})


def test_usage_counts_what_is_cached_once_and_reasoning_where_it_comes_on_top() -> None:
    raw = {"prompt_tokens": 1000, "completion_tokens": 300, "total_tokens": 1300, "queue_time": 0.1,
           "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
           "completion_tokens_details": {"reasoning_tokens": 200}}  # fmt: skip
    usage = counted(raw)
    assert billed(usage).tokens == {"input": 300, "cache_write_5m": 100, "cache_read": 600, "output": 300}
    assert usage["output_tokens_details"] == {"thinking_tokens": 200}
    assert raw.items() <= usage.items()
    assert counted({**raw, "total_tokens": 1500})["output_tokens"] == 500
    assert counted({**raw, "total_tokens": None})["output_tokens"] == 300
    assert "input_tokens" not in counted({"completion_tokens": 5})
    # What the total holds beyond both, what is cached beyond the prompt: never a figure below nothing, never too low.
    assert counted({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 915})["output_tokens"] == 905
    cached = counted({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 40}})
    assert (cached["input_tokens"], cached["cache_read_input_tokens"]) == (10, 40)
    thought = counted(
        {"prompt_tokens": 1, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 9}}
    )
    assert thought["output_tokens"] == 14
    assert counted({"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": None})["input_tokens"] == 5


def test_usage_that_comes_with_every_chunk_is_taken_once() -> None:
    heard = ChatHeard()
    for output in (1, 5, 9):
        heard.take({"model": "m", "choices": [{"delta": {"content": "a"}}],
                    "usage": {"prompt_tokens": 7, "completion_tokens": output}})  # fmt: skip
    heard.take({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    reply = heard.reply()
    assert (reply.text, reply.usage["input_tokens"], reply.usage["output_tokens"]) == ("aaa", 7, 9)
    heard = ChatHeard()
    for odd in ({"choices": None}, {"choices": [None]}, {"choices": [{"delta": None}]}, {"usage": 3}, {}):
        heard.take(odd)
    assert heard.partial() is None


@pytest.mark.parametrize(
    ("said", "meant"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("tool_calls", "tool_use"),
     ("function_call", "tool_use"), ("new", "new")],
)  # fmt: skip
def test_ends_are_in_the_words_of_the_first_wire_format(said: str, meant: str) -> None:
    heard = ChatHeard()
    heard.take({"choices": [{"delta": {"content": "a"}, "finish_reason": said}]})
    assert heard.reply().stop_reason == meant


def test_text_that_comes_in_parts_is_the_answer_without_what_was_thought() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Be"}]
    heard, whole = ChatHeard(), ChatHeard()
    heard.take({"choices": [{"delta": {"content": parts}}]})
    heard.take({"choices": [{"delta": {"content": "cause."}, "finish_reason": "stop"}]})
    assert heard.reply().text == "Because."
    whole.take_whole({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]})
    assert whole.reply().text == "Be"


def test_reply_without_a_usage_is_charged_up_to_its_worst_case(local: OpenAIModel) -> None:
    heard = ChatHeard()
    heard.take({"model": "gpt-5-mini", "choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]})
    charge = PriceBook().charge(heard.reply().usage, model="gpt-5-mini", at=NOW, provider="openai")
    assert charge.state == UNPRICED
    assert "no input_tokens" in charge.note
    partial = PriceBook().partial({}, model="gpt-5-mini", at=NOW, worst=Decimal(1), provider="openai")
    assert (partial.state, partial.high) == (INTERVAL, Decimal(1))


def test_what_has_no_published_price_is_unpriced_and_zero_only_where_the_price_file_says_so(tmp_path: Path) -> None:
    usage = counted({"prompt_tokens": 1000, "completion_tokens": 1000})
    how: dict[str, Any] = {"model": "llama3.2", "at": NOW, "answered": "/models/llama.gguf", "provider": "openai"}
    charge = PriceBook().charge(usage, **how)
    assert (charge.state, charge.model) == (UNPRICED, "")
    assert PriceBook().worst(10, 10, model="llama3.2", at=NOW, provider="openai") is None
    file = tmp_path / "prices.json"
    kinds = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
    file.write_text(json.dumps({"models": {"llama3.2": dict.fromkeys(kinds, 0)}}))
    charge = PriceBook(file).charge(usage, **how)
    assert (charge.state, charge.low) == (EXACT, Decimal(0))


def test_cached_tokens_of_a_model_without_a_price_for_them_cost_as_other_input() -> None:
    usage = counted({"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 400}})
    charge = PriceBook().charge(usage, model="gpt-5-pro", at=NOW, provider="openai")
    assert (charge.state, charge.low) == (EXACT, Decimal("0.015"))


def test_used_up_quota_is_the_end_of_the_run_and_no_rate_limit(local: OpenAIModel, front: PlatformServer) -> None:
    front.behind.plan.queue("spend_limit")
    with pytest.raises(SpendLimit) as caught:
        local.complete(ASKED)
    assert caught.value.data["provider_code"] == "insufficient_quota"


def test_error_document_in_the_place_of_a_reply_is_told(local: OpenAIModel, front: PlatformServer) -> None:
    page = json.dumps({"error": {"message": "busy", "type": "server_error"}})
    front.behind.always = Mishap("unavailable", status=200, page=page, headers={"content-type": "application/json"})
    with pytest.raises(ModelUnavailable, match="busy"):
        local.complete(ASKED)


def test_record_alone_says_whose_key_goes_where(monkeypatch: pytest.MonkeyPatch) -> None:
    ninth = replace(PROVIDERS["openai"], name="ninth", base_variable="NINTH_BASE_URL", credential="NINTH_API_KEY")
    monkeypatch.setattr(providers, "PROVIDERS", {**PROVIDERS, "ninth": ninth})
    for variable, value in (("BASE_URL", "http://127.0.0.1:9/v1"), ("API_KEY", "key-of-the-ninth")):
        monkeypatch.setenv(f"NINTH_{variable}", value)
        monkeypatch.setenv(f"OPENAI_{variable}", "https://openai.invalid/v1")
    model = model_of("m", provider="ninth")
    assert isinstance(model, OpenAIModel)
    assert (model.address, model._client.api_key) == ("http://127.0.0.1:9/v1", "key-of-the-ninth")
    assert pickle.loads(pickle.dumps(model)).provider == ninth


def test_model_goes_to_workers_without_its_key() -> None:
    model = OpenAIModel("m", base_url="http://127.0.0.1:9/v1")
    again = pickle.loads(pickle.dumps(model))
    assert (again.model_id, again.address) == ("m", "http://127.0.0.1:9/v1")
    own = OpenAIModel("m", api_key="sk-of-my-own-0123456789", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ConfigError, check=lambda error: error.code == "api_key_not_sent"):
        pickle.dumps(own)
    assert "sk-of-my-own" not in repr(own)
    for each in (model, again, own):
        each.close()


def test_figures_that_come_in_pieces_are_kept_together() -> None:
    heard = ChatHeard()
    heard.take({"usage": {"prompt_tokens": 7, "completion_tokens": 1}})
    heard.take({"usage": {"completion_tokens": 9}})
    assert (heard._usage["input_tokens"], heard._usage["output_tokens"]) == (7, 9)
