"""The free look-up before a run."""

from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.errors import CredentialMissing, ModelRejected, ModelUnavailable
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from tests.servers import models
from tests.servers.billing import BillingServer
from tests.servers.models import MODELS
from tests.unit.llm.conftest import KEY


def test_check_gives_limits_and_costs_nothing(server: BillingServer, model: AnthropicModel) -> None:
    info = model.check()
    assert (info.id, info.paid, info.author) == ("claude-sonnet-5-5", True, "model")
    assert (info.max_output_tokens, info.max_input_tokens) == (128_000, 1_000_000)
    assert info.warnings == ()
    assert server.bill.requests == 0


def test_check_without_a_credential_says_what_to_set_before_any_network() -> None:
    model = AnthropicModel("claude-sonnet-5-5", base_url="http://127.0.0.1:9")
    with pytest.raises(CredentialMissing) as caught:
        model.check()
    assert "claude-sonnet-5-5" in caught.value.message
    assert "ANTHROPIC_API_KEY" in caught.value.hint
    assert "--provider openai" not in caught.value.hint
    model.close()
    # Whoever names the address of a local server means another wire format.
    model = AnthropicModel("llama3.2", base_url="http://127.0.0.1:9")
    with pytest.raises(CredentialMissing) as caught:
        model.check()
    assert "--provider openai" in caught.value.hint
    model.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_AUTH_TOKEN", KEY),
        ("ANTHROPIC_CUSTOM_HEADERS", f"x-api-key: {KEY}"),
    ],
)
def test_check_takes_the_credential_and_address_of_the_environment(
    server: BillingServer, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    model = AnthropicModel("claude-sonnet-5-5")
    assert model.check().paid
    model.close()


def test_named_profile_that_cannot_be_loaded_is_a_missing_credential(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_PROFILE", "absent")
    with pytest.raises(CredentialMissing):
        AnthropicModel("claude-sonnet-5-5", base_url="http://127.0.0.1:9").check()


def test_unknown_and_retired_models_are_refused_naming_the_nearest_known_one(
    server: BillingServer, make_model: Any
) -> None:
    with pytest.raises(ModelRejected, check=lambda error: error.code == "model_retired"):
        make_model("claude-sonnet-4-20250514").check()
    with pytest.raises(ModelRejected, check=lambda error: error.code == "model_unknown") as caught:
        make_model("claude-sonet-5-5").check()
    assert caught.value.hint == "The nearest it offers: --model claude-sonnet-5-5"


def test_models_that_answer_no_messages_are_not_offered(
    server: BillingServer, make_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gpt-4o-embedding", "text-embedding-3-large", "gpt-4o-mini-tts"):
        monkeypatch.setitem(MODELS, name, {**MODELS["claude-sonnet-5-5"], "id": name})
    for asked in ("gpt-4o", "text-embedding-3"):
        with pytest.raises(ModelRejected) as caught:
            make_model(asked).check()
        assert "embedding" not in caught.value.hint
        assert "tts" not in caught.value.hint
        assert "claude-sonnet-5-5" in caught.value.hint


def test_model_that_is_only_listed_is_known(make_model: Any, llmock: Any) -> None:
    assert make_model("claude-sonnet-4-6", base_url=llmock.base_url("anthropic")).check().warnings == ()


def test_deprecated_model_is_said_once_in_words_not_as_a_python_warning(server: BillingServer, make_model: Any) -> None:
    model = make_model("claude-opus-4-5")
    info = model.check()
    assert info.retires_at == datetime(2027, 1, 22, tzinfo=UTC)
    assert list(info.warnings) == ["The model claude-opus-4-5 is deprecated; it will be retired on 2027-01-22."]
    server.plan.queue("error500")
    with warnings.catch_warnings(record=True) as shown, pytest.raises(ModelUnavailable):
        model.complete(Request("claude-opus-4-5", [Message("user", "Why?")]))
    assert shown == []


def test_deprecation_the_server_does_not_mention_is_known_all_the_same(
    server: BillingServer, make_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = {**models.MODELS["claude-opus-4-5"], "lifecycle": "active", "deprecated_at": None, "retires_at": None}
    monkeypatch.setitem(models.MODELS, "claude-opus-4-5", silent)
    assert "deprecated" in make_model("claude-opus-4-5").check().warnings[0]


def test_check_tells_a_refused_credential_and_a_missing_list_or_provider(
    server: BillingServer, model: AnthropicModel, make_model: Any
) -> None:
    server.free_fault = (404, "not_found_error", "no such path")
    info = model.check()
    assert info.paid
    assert "no model list" in info.warnings[0]
    server.free_fault = (401, "authentication_error", "invalid x-api-key")
    with pytest.raises(ModelRejected, check=lambda error: error.code == "credential_refused"):
        model.check()
    with pytest.raises(ModelUnavailable):
        make_model(base_url="http://127.0.0.1:9").check()


def test_importing_the_adapter_does_not_import_the_sdk() -> None:
    code = "import sys, pipeline.llm.anthropic; sys.exit('anthropic' in sys.modules or 'httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
