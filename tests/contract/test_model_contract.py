"""What every adapter of a model keeps, over real HTTP, whatever its wire format: one try, its usage, its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.cost.prices import PriceBook
from pipeline.errors import ModelError, ModelRejected, ModelUnavailable, SpendLimit
from pipeline.llm.base import Reply, Segment
from pipeline.providers import PROVIDERS
from pipeline.records.charge import EXACT
from tests.contract.models import AUTHORIZATIONS, KEYS, Subject, made, model_id, variables
from tests.servers.billing import BillingServer
from tests.servers.mishaps import Mishap
from tests.servers.platforms import PlatformServer

SCHEMA = {
    "type": "object",
    "properties": {"echo": {"type": "string", "minLength": 1}},
    "required": ["echo"],
}
#: What is billed on top of the first party's price: of a region, by its name or its address.
REGIONAL = {"bedrock-mantle": Decimal("1.1"), "vertex": Decimal("1.1")}


@pytest.fixture(scope="module")
def front() -> Iterator[PlatformServer]:
    with BillingServer() as behind, PlatformServer(behind) as server:
        yield server


@pytest.fixture(scope="module")
def _models() -> Iterator[dict[str, Any]]:
    # Making a client loads the machine's certificates, which takes longer than most tests.
    found: dict[str, Any] = {}
    yield found
    for model in found.values():
        model.close()


@pytest.fixture(params=sorted(PROVIDERS))
def subject(
    request: pytest.FixtureRequest,
    front: PlatformServer,
    _models: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Subject:
    front.reset()
    folder = tmp_path_factory.getbasetemp()
    for name, value in variables(request.param, front.url, Path(folder)).items():
        monkeypatch.setenv(name, value)
    if request.param not in _models:
        _models[request.param] = made(request.param, deadline_seconds=100)
    return Subject(PROVIDERS[request.param], front, lambda **more: made(request.param, **more), _models[request.param])


def unavailable(subject: Subject, text: str = "y" * 4000) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as caught:
        subject.model.complete(subject.ask(text))
    return caught.value


def test_reply_is_one_request_with_the_text_the_stop_reason_and_the_usage_of_the_bill(subject: Subject) -> None:
    reply = subject.model.complete(subject.ask("tangent " * 300))
    assert (reply.text, reply.stop_reason, reply.complete) == ("tangent " * 300, "end_turn", True)
    assert reply.request_id == "req_00000001"
    (entry,) = subject.server.behind.bill.entries()
    assert reply.usage["input_tokens"] == entry.input_tokens
    assert reply.usage["output_tokens"] == entry.output_tokens
    ((_, headers),) = subject.server.seen
    held = " ".join((headers.get("authorization", ""), headers.get("x-api-key", "")))
    assert AUTHORIZATIONS[subject.provider.name] in held
    if subject.provider.client:
        assert subject.model._client.open_telemetry["traces"]["enabled"] is False
    assert "traceparent" not in headers
    # No provider is given the key of another.
    others = set(KEYS.values()) - {key for key in KEYS.values() if key in held}
    assert not [key for key in others if key in json.dumps(headers)]


def test_charge_is_what_the_provider_bills(subject: Subject) -> None:
    reply = subject.model.complete(subject.ask("tangent " * 300))
    charge = PriceBook().charge(
        reply.usage, model=subject.model_id, at=SystemClock().now(), answered=reply.model,
        provider=subject.provider.name,
    )  # fmt: skip
    assert (charge.state, charge.model) == (EXACT, "")
    if not subject.provider.client:
        tokens = charge.tokens
        assert charge.low == (Decimal("0.25") * tokens["input"] + Decimal(2) * tokens["output"]) / 1_000_000
        return
    assert charge.low == subject.server.behind.bill.usd * REGIONAL.get(subject.provider.name, 1)
    worst = PriceBook().worst(8000, 16_000, model=subject.model_id, at=SystemClock().now(),
                              provider=subject.provider.name)  # fmt: skip
    assert worst is not None
    assert worst > charge.low


def test_whole_message_of_a_server_that_does_not_stream_is_a_reply(subject: Subject) -> None:
    streamed = subject.model.complete(subject.ask())
    subject.server.behind.streams = False
    whole = subject.model.complete(subject.ask())
    assert (whole.text, whole.stop_reason, whole.model) == (streamed.text, "end_turn", streamed.model)
    assert whole.usage["input_tokens"] == streamed.usage["input_tokens"]
    assert whole.usage["output_tokens"] == streamed.usage["output_tokens"]


def test_schema_is_sent_and_its_answer_returned_unparsed(subject: Subject) -> None:
    reply = subject.model.complete(subject.ask(schema=SCHEMA, effort="low"))
    assert json.loads(reply.text) == {"echo": "What is a gradient?"}
    sent = subject.server.behind.seen[0][1]["output_config"]
    assert (sent["effort"], sent["format"]["schema"]["additionalProperties"]) == ("low", False)
    with pytest.raises(ModelRejected, check=lambda error: error.code == "schema_unsendable"):
        subject.model.complete(subject.ask(schema={"properties": {}}))
    assert subject.server.behind.bill.requests == 1


def test_truncations_and_refusals_are_replies_with_what_they_cost(subject: Subject) -> None:
    cut = subject.model.complete(subject.ask("word " * 400, max_tokens=50))
    assert (cut.truncated, cut.complete, cut.usage["output_tokens"]) == (True, False, 50)
    subject.server.behind.plan.queue("refusal")
    refused = subject.model.complete(subject.ask())
    assert refused.refused
    assert refused.text
    assert refused.usage["output_tokens"] > 0


def test_shared_prefix_is_counted_as_read_from_the_cache_and_once(subject: Subject) -> None:
    if not subject.provider.client:
        # This wire format has no marks; what its server says of a cache of its own is told apart below.
        pytest.skip("no cache marks")
    system = [Segment("The rules of this course. " * 400, cache=True)]
    first, second = (subject.model.complete(subject.ask(text, system=system)) for text in ("one", "two"))
    assert second.usage["cache_read_input_tokens"] == first.usage["cache_creation_input_tokens"] > 1000
    assert second.usage["input_tokens"] < 100


def test_streams_that_break_off_are_failures_that_keep_what_came(subject: Subject) -> None:
    kinds = ("silent", "cut", "malformed", "no_object", "error_event")
    for kind in kinds:
        subject.server.behind.plan.queue(Mishap(kind, after=2))
        error = unavailable(subject)
        assert isinstance(error.reply, Reply), kind
        assert (error.reply.stop_reason, error.retryable) == (None, True)
        assert "y" * 800 in error.reply.text
        # The second wire format tells its usage only at the end.
        assert error.billed == ("unknown" if not subject.provider.client else "partial")
    assert subject.server.behind.bill.requests == len(kinds)


def test_connection_lost_before_the_reply_may_have_been_billed(subject: Subject) -> None:
    subject.server.behind.plan.queue("drop")
    error = unavailable(subject)
    assert (error.billed, error.reply) == ("unknown", None)


def test_errors_say_whether_to_wait_stop_or_give_up_and_what_was_billed(subject: Subject) -> None:
    subject.server.behind.plan.queue(Mishap("rate_limit", retry_after="7"), "error500", "overloaded")
    late = "no" if subject.provider.free_errors else "unknown"
    for status, wait, billed in ((429, 7.0, "no"), (500, None, late), (529, None, late)):
        error = unavailable(subject)
        assert (error.data["status"], error.data["retry_after"], error.billed) == (status, wait, billed)
    for kind, expected, stops in (("auth", 401, True), ("bad_request", 400, False), ("too_large", 413, False)):
        subject.server.behind.plan.queue(kind)
        with pytest.raises(ModelRejected) as caught:
            subject.model.complete(subject.ask())
        assert (caught.value.data["status"], caught.value.data["stops_run"]) == (expected, stops)
        if kind == "auth":
            assert subject.provider.credential in caught.value.hint
    subject.server.behind.plan.queue("payment")
    with pytest.raises(SpendLimit):
        subject.model.complete(subject.ask())
    assert subject.server.behind.bill.requests == 7


def test_stalled_stream_ends_at_the_deadline(subject: Subject) -> None:
    model = subject.make(deadline_seconds=2)
    subject.server.behind.plan.queue("stall")
    with pytest.raises(ModelUnavailable) as caught:
        model.complete(subject.ask("y" * 4000))
    model.close()
    assert "within 2 s" in caught.value.message


def test_page_in_the_place_of_a_reply_names_the_host_and_the_variable_of_the_address(subject: Subject) -> None:
    page = Mishap("unavailable", status=200, page="<html>Log in</html>", headers={"content-type": "text/html"})
    subject.server.behind.always = page
    with pytest.raises(ModelUnavailable) as caught:
        subject.model.complete(subject.ask())
    assert (caught.value.code, caught.value.data["host"]) == ("no_model_reply", "127.0.0.1")
    assert subject.provider.base_variable in caught.value.hint
    subject.server.behind.always = Mishap("unavailable", status=307, page="", headers={"location": "/elsewhere"})
    with pytest.raises(ModelRejected) as refused:
        subject.model.complete(subject.ask())
    assert refused.value.code == "redirect_refused"
    assert subject.provider.base_variable in refused.value.hint


def test_look_up_is_free_and_tells_an_unknown_model_where_the_provider_does(subject: Subject) -> None:
    info = subject.model.check()
    assert (info.paid, info.provider) == (True, subject.provider.name)
    assert info.id == model_id(subject.provider.name)
    assert subject.server.behind.bill.requests == 0
    if subject.provider.name == "bedrock":
        assert "shows at the first call" in info.warnings[0]
        return
    other = made(subject.provider.name)
    other.model_id = "gpt-9" if not subject.provider.client else "claude-nonsense-9"
    if not subject.provider.lists and subject.provider.counts:
        other.count_tokens.__self__._model_id = other.model_id
    with pytest.raises(ModelRejected) as caught:
        other.check()
    other.close()
    assert caught.value.code == "model_unknown"


def test_model_can_do_what_its_record_says(subject: Subject) -> None:
    assert (getattr(subject.model, "batches", None) is not None) == subject.provider.batches
    counts = getattr(subject.model, "count_tokens", None)
    assert (counts is not None) == subject.provider.counts
    if counts is not None:
        request = subject.ask("word " * 50)
        assert counts(request) == subject.model.complete(request).usage["input_tokens"]
    if subject.provider.batches:
        batch = subject.model.batches.submit([("a", subject.ask())])
        while not subject.model.batches.look(batch.id).ended:
            pass
        (result,) = subject.model.batches.results(batch.id)
        assert result.reply is not None


def test_no_key_is_in_what_is_said_or_sent_on(subject: Subject) -> None:
    shown = AUTHORIZATIONS[subject.provider.name]
    key = KEYS["amazon"] if "AWS4" in shown else shown
    subject.server.behind.plan.queue(Mishap("bad_request", message=f"not with {key}"))
    with pytest.raises(ModelError) as caught:
        subject.model.complete(subject.ask())
    assert not [held for held in KEYS.values() if held in f"{caught.value}{subject.model!r}"]
    assert not [held for held in KEYS.values() if held in repr(subject.model.__reduce__())]
