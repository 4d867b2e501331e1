"""The scripted model."""

from __future__ import annotations

import threading

import pytest

from pipeline.errors import ModelRejected, ModelUnavailable
from pipeline.llm.base import Message, Reply, Request
from pipeline.llm.script import ScriptedModel


def ask(text: str = "hello", label: str = "lesson") -> Request:
    return Request("claude-sonnet-5-5", [Message("user", text)], label=label)


def test_script_is_answered_in_order_by_texts_values_errors_replies_or_a_function() -> None:
    model = ScriptedModel(["one", {"b": 1, "a": 2}])
    assert [model.complete(ask()).text, model.complete(ask()).text] == ["one", '{"a": 2, "b": 1}']
    with pytest.raises(ModelRejected, check=lambda error: error.code == "script_exhausted"):
        model.complete(ask())
    assert model.calls == 3
    model = ScriptedModel(lambda request: f"{request.label}: {request.messages[0].text}")
    assert model.complete(ask("why", "critic")).text == "critic: why"
    assert model.requests[0].label == "critic"
    model = ScriptedModel([ModelUnavailable("busy"), "fine"])
    with pytest.raises(ModelUnavailable, match="busy"):
        model.complete(ask())
    assert model.complete(ask()).text == "fine"
    assert model.calls == 2
    reply = Reply("half", "max_tokens", usage={"input_tokens": 1, "output_tokens": 2})
    assert ScriptedModel([reply]).complete(ask()) is reply


def test_scripted_model_is_free_unless_it_is_to_be_paid() -> None:
    assert ScriptedModel(["a"]).complete(ask()).usage == {}
    assert not ScriptedModel().check().paid
    paid = ScriptedModel(["abcdefgh"], paid=True)
    assert paid.check().paid
    assert paid.complete(ask("x" * 40)).usage == {"input_tokens": 10, "output_tokens": 2, "service_tier": "standard"}


def test_scripted_model_counts_calls_in_flight_over_threads() -> None:
    gate = threading.Barrier(3)

    def meet(request: Request) -> str:
        gate.wait(timeout=100)
        return "ok"

    model = ScriptedModel(meet)
    threads = [threading.Thread(target=model.complete, args=(ask(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (model.most_in_flight, model.in_flight, model.calls) == (3, 0, 3)
