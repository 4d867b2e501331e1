"""Traces at a real receiver: any run afterwards, and runs that go on; a collector that is down, slow or wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline import Pipeline, Request
from pipeline.app import traces
from pipeline.app.stores import open_store
from pipeline.app.traces import is_wanted, send_run
from pipeline.cli.displays import traced
from pipeline.cli.progress import Quiet
from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows
from pipeline.engine.events import Event
from pipeline.engine.result import RunResult
from pipeline.engine.step import StepContext
from pipeline.errors import ConfigError, PackageMissing, PipelineError, PublishError
from pipeline.llm.base import Message, Reply
from pipeline.llm.script import ScriptedModel
from pipeline.settings import Display, Execution
from pipeline.store.base import Store
from pipeline.store.reader import records
from pipeline.traces import live
from pipeline.traces.call import nothing_told, told_by
from pipeline.traces.live import LiveTraces
from pipeline.traces.names import ATTRIBUTES, METRICS
from pipeline.traces.otlp import Collector
from tests.servers.otlp import Receiver, attributes, receiving

PROMPT, REPLY, SECRET = "the prompt's own words", "the reply's own words", "sk-ant-api03-not-a-real-key-0123456789"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(live, "LAST_SECONDS", 60.0)
    with receiving() as found:
        yield found


def write(ctx: StepContext) -> dict[str, Any]:
    def one(task: StepContext, item: int) -> str:
        return task.ask(Request("claude-sonnet-5-5", [Message("user", f"{PROMPT} {item}")], label="part")).text

    return {"made": len(ctx.map("part", range(3), one, key=str))}


DEMO = Pipeline("demo", [write])


def answered(request: Request) -> Reply:
    usage = {"input_tokens": 100, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 7, "output_tokens": 20,
             "output_tokens_details": {"thinking_tokens": 9}}  # fmt: skip
    return Reply(REPLY, "end_turn", usage, request.model)


def made(store: Store, listener: Callable[[Event], None] | None = None) -> RunResult:
    return DEMO.run({}, store=store, model=ScriptedModel(answered, model_id="claude-sonnet-5-5", paid=True),
                    listener=listener)  # fmt: skip


@pytest.mark.parametrize("url", ["files:{}", "sqlite:{}/runs.db"])
def test_run_of_any_store_is_sent_as_its_ledger_says_and_again_changes_nothing(
    url: str, tmp_path: Path, receiver: Receiver
) -> None:
    store = open_store(url.format(tmp_path))
    run = made(store).run_id
    ledger = rows(records(store, run))
    sent = send_run(store, run, receiver.url, content=False)
    first = [span.SerializeToString() for span in receiver.spans]
    calls = [attributes(span) for span in receiver.of_kind("call")]
    assert len(calls) == len(ledger) == sent.calls == 3
    assert sum(Decimal(repr(said["gen_ai.usage.cost.amount"])) for said in calls) == sum(row.low for row in ledger)
    assert sent.usd == sum(row.low for row in ledger) > 0
    assert {said["gen_ai.usage.input_tokens"] for said in calls} == {157}
    assert {said["gen_ai.usage.reasoning.output_tokens"] for said in calls} == {9}
    assert sum(said["gen_ai.usage.output_tokens"] for said in calls) == sum(row.tokens["output"] for row in ledger)
    receiver.spans.clear()
    again = send_run(store, run, f"{receiver.url}/v1/traces", content=False)
    assert [span.SerializeToString() for span in receiver.spans] == first
    assert (again.spans, again.calls, again.tokens, again.usd) == (sent.spans, sent.calls, sent.tokens, sent.usd)
    assert receiver.resources[0] == receiver.resources[-1]
    assert receiver.resources[0]["service.name"] == "course-pipeline"


def test_prompts_replies_and_keys_are_in_no_span_unless_content_is_asked_for(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization={SECRET}")
    store = open_store(f"files:{tmp_path}")
    run = made(store).run_id
    send_run(store, run, receiver.url, content=False)
    whole = "".join(map(str, receiver.spans)) + str(receiver.resources)
    assert receiver.headers[0]["authorization"] == SECRET
    assert not [text for text in (PROMPT, REPLY, SECRET) if text in whole]
    receiver.spans.clear()
    send_run(store, run, receiver.url, content=True)
    said = attributes(receiver.of_kind("call")[0])
    (turn,) = json.loads(said["gen_ai.input.messages"])
    assert (turn["role"], turn["parts"][0]["type"]) == ("user", "text")
    assert turn["parts"][0]["content"].startswith(PROMPT)
    (turn,) = json.loads(said["gen_ai.output.messages"])
    assert turn == {"role": "assistant", "parts": [{"type": "text", "content": REPLY}]}
    assert SECRET not in "".join(map(str, receiver.spans))


def test_every_attribute_that_is_sent_stands_in_the_table(tmp_path: Path, receiver: Receiver) -> None:
    store = open_store(f"files:{tmp_path}")
    send_run(store, made(store).run_id, receiver.url, content=True)
    known = {name for names in ATTRIBUTES.values() for name in names}
    assert {name for span in receiver.spans for name in attributes(span)} <= known


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"status": 503}, 503),
        ({"status": 301}, 301),
        ({"kind": "text/html"}, 200),
        ({"rejected": 2}, 200),
        ({"garbage": b"\xff"}, 200),
    ],
)
def test_collector_that_does_not_take_traces_is_an_error_of_the_command(
    how: dict[str, Any], status: int, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how.get("status") == 503:
        # It would be asked again after 0.8 s.
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.7")
    for name, value in how.items():
        setattr(receiver, name, value)
    store = open_store(f"files:{tmp_path}")
    with pytest.raises(PublishError) as caught:
        send_run(store, made(store).run_id, receiver.url, content=False)
    assert caught.value.code == "collector_refused"
    refused = Collector(receiver.url).send([])
    assert refused is not None
    assert refused.status == status


@pytest.mark.parametrize("endpoint", ["localhost:4318", "ftp://x", "http://"])
def test_address_that_is_no_url_of_http_is_refused(endpoint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Collector(endpoint)
    assert caught.value.code == "invalid_endpoint"


def test_other_protocols_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(ConfigError) as caught:
        Collector(None)
    assert caught.value.code == "unknown_protocol"


# --- while a run goes on --------------------------------------------------------------------------


def followed(store: Store, url: str, said: list[str], **more: Any) -> LiveTraces:
    return LiveTraces(
        lambda: store, Collector(url), SystemClock(), tell=said.append, command=lambda run: f"traces {run}",
        told_of=lambda place, run: told_by(lambda name: place.get_blob(run, name), content=False), **more,
    )  # fmt: skip


def test_run_is_sent_while_it_goes_on_as_it_is_sent_afterwards(tmp_path: Path, receiver: Receiver) -> None:
    store, said = open_store(f"files:{tmp_path}"), list[str]()
    sent_by = followed(store, receiver.url, said)
    run = made(store, sent_by).run_id
    sent_by.close()
    live_spans = [span.SerializeToString() for span in receiver.spans]
    receiver.spans.clear()
    send_run(store, run, receiver.url, content=False)
    assert sorted(live_spans) == sorted(span.SerializeToString() for span in receiver.spans)
    assert not said


def test_metrics_tell_tokens_dollars_seconds_and_what_waits(tmp_path: Path, receiver: Receiver) -> None:
    store = open_store(f"files:{tmp_path}")
    sent_by = followed(store, receiver.url, [])
    made(store, sent_by)
    sent_by.close()
    sums = {metric.name: metric for metric in receiver.metrics}
    ledger = rows(records(store, store.heads().__next__().run_id))

    def points(word: str) -> list[Any]:
        metric = sums[METRICS[word].name]
        return list(getattr(metric, metric.WhichOneof("data")).data_points)

    assert points("input")[0].as_int == 3 * 157
    assert points("output")[0].as_int == 60
    assert points("cache_read")[0].as_int == 150
    assert points("usd")[0].sum == pytest.approx(float(sum(row.low for row in ledger)))
    assert points("seconds")[0].count == 3
    assert points("in_flight")[0].as_int == points("waiting")[0].as_int == 0
    about = attributes(points("input")[0])
    assert (about["gen_ai.provider.name"], about["gen_ai.request.model"]) == ("anthropic", "claude-sonnet-5-5")


def test_resume_sends_only_what_its_own_process_did(tmp_path: Path, receiver: Receiver) -> None:
    store = open_store(f"files:{tmp_path}")
    first = followed(store, receiver.url, [])
    run = DEMO.run({}, store=store, model=ScriptedModel([]), listener=first).run_id
    first.close()
    before = set(receiver.ids())
    second = followed(store, receiver.url, [])
    model = ScriptedModel(answered, model_id="claude-sonnet-5-5", paid=True)
    DEMO.resume(run, store=store, model=model, listener=second)
    second.close()
    assert len(receiver.ids()) == len(set(receiver.ids()))
    alone = {span.span_id.hex() for span in receiver.spans} - before
    receiver.spans.clear()
    send_run(store, run, receiver.url, content=False)
    assert set(receiver.ids()) == before | alone


def test_run_that_is_resumed_by_the_same_process_is_sent_once(tmp_path: Path, receiver: Receiver) -> None:
    store = open_store(f"files:{tmp_path}")
    both = followed(store, receiver.url, [])
    run = DEMO.run({}, store=store, model=ScriptedModel([]), listener=both).run_id
    model = ScriptedModel(answered, model_id="claude-sonnet-5-5", paid=True)
    DEMO.resume(run, store=store, model=model, listener=both)
    both.close()
    seen = receiver.ids()
    assert len(seen) == len(set(seen))
    receiver.spans.clear()
    send_run(store, run, receiver.url, content=False)
    assert set(seen) == set(receiver.ids())


def test_store_that_cannot_be_opened_again_ends_no_run(tmp_path: Path, receiver: Receiver) -> None:
    def refused() -> Store:
        raise PipelineError("gone")

    said: list[str] = []
    sent_by = LiveTraces(refused, Collector(receiver.url), SystemClock(), tell=said.append, command=str,
                         told_of=lambda *_: nothing_told)  # fmt: skip
    assert made(open_store(f"files:{tmp_path}"), sent_by).status == "completed"
    sent_by.close()
    assert len(said) == 1


def test_password_of_an_address_is_shown_nowhere(receiver: Receiver) -> None:
    assert "pass" not in Collector(receiver.url.replace("//", "//me:pass@")).shown
    with pytest.raises(ConfigError) as caught:
        Collector("me:pass@host:4318")
    assert "pass" not in f"{caught.value.message} {caught.value.hint}"
    for address in ("http://collector:4318/v1?key=pass", "http://collector/pass#pass"):
        assert "pass" not in Collector(address).shown
    with pytest.raises(ConfigError) as caught:
        Collector("http://me:pass@[::1")
    assert (caught.value.code, "pass" in caught.value.message) == ("invalid_endpoint", False)


@pytest.mark.parametrize("how", ["down", "wrong", "slow"])
def test_collector_that_takes_nothing_neither_fails_nor_delays_a_run_and_is_told_of_once(
    how: str, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LAST_SECONDS", 0.2)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    url = "http://127.0.0.1:9" if how == "down" else receiver.url
    receiver.status = 404 if how == "wrong" else 200
    if how == "slow":
        receiver.answers.clear()
    store, said = open_store(f"files:{tmp_path}"), list[str]()
    sent_by = followed(store, url, said)
    result = made(store, sent_by)
    sent_by.close()
    # Neither has waited for the answer, which comes now.
    receiver.answers.set()
    assert result.status == "completed"
    assert len(said) == 1
    assert f"traces {result.run_id}" in said[0]


def test_collector_that_comes_back_gets_all(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    receiver.status = 400
    store, said = open_store(f"files:{tmp_path}"), list[str]()
    sent_by = followed(store, receiver.url, said)

    def heard(event: Event) -> None:
        sent_by(event)
        if event.type == "step_completed":
            assert receiver.came.wait(60)
            receiver.status = 200

    run = made(store, heard).run_id
    sent_by.close()
    seen = set(receiver.ids())
    receiver.spans.clear()
    send_run(store, run, receiver.url, content=False)
    assert seen == set(receiver.ids())


def test_collector_that_takes_no_metrics_gets_traces(tmp_path: Path, receiver: Receiver) -> None:
    receiver.metrics_status = 405
    store, said = open_store(f"files:{tmp_path}"), list[str]()
    sent_by = followed(store, receiver.url, said)
    made(store, sent_by)
    sent_by.close()
    assert receiver.of_kind("run")
    assert not said


# --- what asks for traces -------------------------------------------------------------------------


def test_standard_variables_ask_for_traces_and_options_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_wanted(None)
    assert is_wanted(True)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    assert is_wanted(None)
    assert not is_wanted(False)
    for name, value in (("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")):
        with monkeypatch.context() as inner:
            inner.setenv(name, value)
            assert not is_wanted(None)


def test_missing_packages_end_a_start_only_where_otel_was_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(traces, "is_installed", lambda package: False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    execution, plain = Execution(store=f"files:{tmp_path}"), Quiet()
    with traced(execution, Display(), plain) as shown:
        assert shown is plain
    assert "install otel" in capsys.readouterr().err
    with pytest.raises(PackageMissing), traced(execution, Display(otel=True), plain):
        pass


def test_nothing_is_sent_before_a_run_has_begun(receiver: Receiver) -> None:
    others = set(threading.enumerate())
    sent_by = followed(open_store("files:/nonexistent"), receiver.url, [])
    sent_by(Event("note", "", {"text": "x"}))
    sent_by.close()
    assert not receiver.requests
    assert "traces" not in {thread.name for thread in set(threading.enumerate()) - others}
    with pytest.raises(PipelineError):
        send_run(open_store("files:/nonexistent"), "x", receiver.url, content=False)
