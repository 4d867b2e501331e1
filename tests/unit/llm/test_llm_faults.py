"""How a provider's errors are classified."""

from __future__ import annotations

import logging
import socket
import traceback
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.errors import ModelError, ModelRejected, ModelUnavailable, SpendLimit
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from pipeline.llm.faults import LONGEST_WAIT, redact, retry_after
from tests.servers.billing import BillingServer
from tests.servers.mishaps import Mishap
from tests.unit.llm.conftest import KEY

QUESTION = Request("claude-sonnet-5-5", [Message("user", "Why?")])


def failing(server: BillingServer, model: AnthropicModel, mishap: Mishap | str) -> ModelError:
    server.plan.queue(mishap)
    with pytest.raises(ModelError) as caught:
        model.complete(QUESTION)
    return caught.value


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("rate_limit", 429),
        ("ramp_limit", 429),
        ("conflict", 409),
        ("error500", 500),
        ("unavailable", 503),
        ("overloaded", 529),
    ],
)
def test_passing_trouble_is_retryable_and_not_billed(
    server: BillingServer, model: AnthropicModel, kind: str, status: int
) -> None:
    error = failing(server, model, kind)
    assert isinstance(error, ModelUnavailable)
    assert error.billed == "no"
    assert error.data["status"] == status
    assert error.data["request_id"] == "req_00000001"
    assert error.data["stops_run"] is False


def test_gateway_that_gave_up_waiting_or_asks_for_a_repeat_is_retried(
    server: BillingServer, model: AnthropicModel
) -> None:
    for status in (408, 425, 460, 499):
        error = failing(server, model, Mishap("unavailable", status=status, page="<html>Later.</html>"))
        assert isinstance(error, ModelUnavailable), status
        assert error.billed == ("no" if status == 425 else "unknown")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("spend_limit", "enforced_spend_limit_reached"),
        ("contract_limit", "contract_spend_limit_reached"),
        ("payment", "linked_organization_spend_limit_reached"),
        ("credit", None),
    ],
)
def test_money_limits_of_the_account_are_never_rate_limits(
    server: BillingServer, model: AnthropicModel, kind: str, code: str | None
) -> None:
    error = failing(server, model, kind)
    assert isinstance(error, SpendLimit)
    assert not error.retryable
    assert error.data["provider_code"] == code
    assert error.data["stops_run"] is True
    assert "resume" in error.hint


@pytest.mark.parametrize(("kind", "status"), [("auth", 401), ("forbidden", 403)])
def test_wrong_credential_stops_the_run_and_says_what_to_do(
    server: BillingServer, model: AnthropicModel, kind: str, status: int
) -> None:
    error = failing(server, model, kind)
    assert isinstance(error, ModelRejected)
    assert error.data == {**error.data, "status": status, "stops_run": True}
    assert error.hint


@pytest.mark.parametrize(("kind", "status"), [("bad_request", 400), ("too_large", 413)])
def test_rejected_request_fails_its_item_only(
    server: BillingServer, model: AnthropicModel, kind: str, status: int
) -> None:
    error = failing(server, model, kind)
    assert isinstance(error, ModelRejected)
    assert error.data == {**error.data, "status": status, "stops_run": False}


def test_connection_refused_was_never_sent(make_model: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ModelUnavailable, check=lambda error: error.code == "provider_unreachable") as caught:
        make_model(base_url=address).complete(QUESTION)
    assert caught.value.billed == "no"


@pytest.mark.parametrize("address", ["gopher://127.0.0.1", "127.0.0.1:80"])
def test_address_that_is_no_address_is_not_retried(make_model: Any, address: str) -> None:
    with pytest.raises(ModelRejected) as caught:
        make_model(base_url=address).complete(QUESTION)
    assert caught.value.billed == "no"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT", "date": "Thu, 01 Jan 2026 00:00:00 GMT"}, 60.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 31 Dec 2025 00:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "4294967"}, LONGEST_WAIT),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form_and_bounded(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=datetime(2026, 1, 1, tzinfo=UTC)) == seconds


def test_retry_after_of_a_reply_is_handed_on(server: BillingServer, model: AnthropicModel) -> None:
    error = failing(server, model, Mishap("rate_limit", retry_after="3600"))
    assert error.data["retry_after"] == 3600.0


def test_wait_named_in_milliseconds_is_handed_on(server: BillingServer, model: AnthropicModel) -> None:
    error = failing(server, model, Mishap("overloaded", headers={"retry-after-ms": "250"}))
    assert error.data["retry_after"] == 0.25


SECRETS = [
    KEY,
    "sk-ant-admin01-abcdefgh",
    "Bearer eyJhbGciOi.abc.def",
    "x-api-key: 0123456789abcdef",
    '"api_key": "0123456789abcdef"',
    "https://user:hunter2pass@gateway.example/v1",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_provider_text_that_holds_a_credential_is_cleaned(
    server: BillingServer, model: AnthropicModel, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.plan.queue(Mishap("auth", message=f"not accepted: {secret}, sorry"))
    with pytest.raises(ModelRejected) as caught:
        model.complete(QUESTION)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(model)
    own = [record.getMessage() for record in caplog.records if record.name.startswith("pipeline")]
    core = secret.split()[-1].strip('"').removeprefix("https://").partition("@gateway")[0]
    assert core not in shown + "".join(own)
    assert "sorry" in shown


def test_exact_credential_is_cleaned_even_where_it_looks_like_a_word() -> None:
    assert "letmein" not in redact("the token letmein is wrong", ["letmein"])


def test_long_provider_text_is_cut() -> None:
    assert len(redact("x" * 10_000)) == 400


def test_call_without_a_credential_fails_before_any_network() -> None:
    model = AnthropicModel("claude-sonnet-5-5", base_url="http://127.0.0.1:9")
    with pytest.raises(ModelRejected) as caught:
        model.complete(QUESTION)
    assert "ANTHROPIC_API_KEY" in caught.value.hint
    assert (caught.value.billed, caught.value.data["stops_run"]) == ("no", True)
    model.close()
