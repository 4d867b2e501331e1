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
    assert "--base-url (or ANTHROPIC_BASE_URL)" in caught.value.hint


def test_call_without_a_credential_fails_before_any_network() -> None:
    model = AnthropicModel("claude-sonnet-5-5", base_url="http://127.0.0.1:9")
    with pytest.raises(ModelRejected) as caught:
        model.complete(QUESTION)
    assert "ANTHROPIC_API_KEY" in caught.value.hint
    assert (caught.value.billed, caught.value.data["stops_run"]) == ("no", True)
    model.close()


_PASSING, _PAGE = (ModelUnavailable, "no", False), "<html>Later.</html>"
_MONEY, _ACCOUNT, _ITEM = (SpendLimit, "no", True), (ModelRejected, "no", True), (ModelRejected, "no", False)
#: A mishap → its status and code of the provider, and what it means: the error, whether billed, whether the run stops.
_MEANING: tuple[tuple[Mishap | str, int, str | None, tuple[type[ModelError], str, bool]], ...] = (
    ("rate_limit", 429, None, _PASSING),
    ("ramp_limit", 429, None, _PASSING),
    ("conflict", 409, None, _PASSING),
    ("error500", 500, None, _PASSING),
    ("unavailable", 503, None, _PASSING),
    ("overloaded", 529, None, _PASSING),
    (Mishap("unavailable", status=425, page=_PAGE), 425, None, _PASSING),
    *((Mishap("unavailable", status=late, page=_PAGE), late, None, (ModelUnavailable, "unknown", False))
      for late in (408, 460, 499)),
    ("spend_limit", 0, "enforced_spend_limit_reached", _MONEY),
    ("contract_limit", 0, "contract_spend_limit_reached", _MONEY),
    ("payment", 0, "linked_organization_spend_limit_reached", _MONEY),
    ("credit", 0, None, _MONEY),
    ("auth", 401, None, _ACCOUNT),
    ("forbidden", 403, None, _ACCOUNT),
    ("bad_request", 400, None, _ITEM),
    ("too_large", 413, None, _ITEM),
)  # fmt: skip


def test_every_error_says_what_it_means_and_whether_it_was_billed(server: BillingServer, model: AnthropicModel) -> None:
    for mishap, status, code, (kind, billed, stops_run) in _MEANING:
        error = failing(server, model, mishap)
        assert type(error) is kind, mishap
        assert (error.billed, error.data["stops_run"], error.retryable) == (billed, stops_run, kind is ModelUnavailable)
        assert status in (0, error.data["status"]), mishap
        assert code in (None, error.data["provider_code"]), mishap
        assert error.data["request_id"]
        assert error.hint or not stops_run


def test_wait_is_read_in_every_form_and_bounded(server: BillingServer, model: AnthropicModel) -> None:
    begin = "Thu, 01 Jan 2026 00:00:00 GMT"
    for headers, seconds in (
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT", "date": begin}, 60.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 31 Dec 2025 00:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "4294967"}, LONGEST_WAIT),
        *(({"retry-after": said}, None) for said in ("nan", "inf", "soon")),
        ({}, None),
    ):
        assert retry_after(headers, now=datetime(2026, 1, 1, tzinfo=UTC)) == seconds, headers
    assert failing(server, model, Mishap("rate_limit", retry_after="3600")).data["retry_after"] == 3600.0
    mishap = Mishap("overloaded", headers={"retry-after-ms": "250"})
    assert failing(server, model, mishap).data["retry_after"] == 0.25


def test_provider_text_that_holds_a_credential_is_cleaned_and_cut(
    server: BillingServer, model: AnthropicModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for secret, core in (
        (KEY, KEY),
        ("sk-ant-admin01-abcdefgh", "abcdefgh"),
        ("Bearer eyJhbGciOi.abc.def", "eyJhbGciOi"),
        ("x-api-key: 0123456789abcdef", "0123456789abcdef"),
        ('"api_key": "0123456789abcdef"', "0123456789abcdef"),
        ("https://user:hunter2pass@gateway.example/v1", "hunter2pass"),
    ):
        error = failing(server, model, Mishap("auth", message=f"not accepted: {secret}, sorry"))
        shown = "".join(traceback.format_exception(error)) + repr(error) + repr(model)
        own = [record.getMessage() for record in caplog.records if record.name.startswith("pipeline")]
        assert core not in shown + "".join(own)
        assert "sorry" in shown
    assert "letmein" not in redact("the token letmein is wrong", ["letmein"])
    assert len(redact("x" * 10_000)) == 400
