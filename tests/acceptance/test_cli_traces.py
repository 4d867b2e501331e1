"""`--otel` and `traces` as people type them, at a real receiver, with a server that keeps a bill."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.app.stores import open_store
from pipeline.cost.ledger import LedgerRow, rows
from pipeline.store.reader import all_records, resolve
from pipeline.traces import live
from tests.golden import books
from tests.said import Cli
from tests.sample_runs import failed_run, original_run
from tests.servers.billing import BillingServer
from tests.servers.otlp import Receiver, attributes, receiving

COURSE = ("lessons", "--subject", "maths", "--level", "n5", "--lessons", "2", "--yes", "--quiet")


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(live, "LAST_SECONDS", 60.0)
    with receiving() as found:
        yield found


def ledger(root: Path) -> list[LedgerRow]:
    store = open_store(f"files:{root}")
    return rows(all_records(store, resolve(store, "latest")))


def agree(calls: list[dict[str, Any]], found: list[LedgerRow]) -> None:
    """As many calls as rows; tokens and dollars equal, call by call."""
    by_seq = {said["course_pipeline.call.seq"]: said for said in calls}
    assert len(calls) == len(by_seq) == len(found) > 0
    for row in found:
        said = by_seq[row.seq]
        assert said["gen_ai.usage.input_tokens"] + said["gen_ai.usage.output_tokens"] == sum(row.tokens.values())
        assert Decimal(repr(said["gen_ai.usage.cost.amount"])) == row.usd


def test_course_is_sent_as_the_ledger_and_the_bill_have_it_while_it_is_made_and_again(
    cli: Cli, server: BillingServer, receiver: Receiver, root: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    assert cli(*COURSE).code == 0
    agree([attributes(span) for span in receiver.of_kind("call")], ledger(root))
    assert "sk-ant-api03" not in str(receiver.spans)
    live = sorted(span.SerializeToString() for span in receiver.spans)
    assert {metric.name for metric in receiver.metrics} >= {"gen_ai.client.operation.cost"}
    receiver.spans.clear()
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
    said = cli("traces", "latest", "--endpoint", receiver.url, "--json")
    assert said.code == 0, said.err
    (row,) = said.json()
    assert (row["calls"], row["spans"]) == (len(ledger(root)), len(live))
    assert sorted(span.SerializeToString() for span in receiver.spans) == live


def test_start_without_a_collector_ends_as_ever_and_names_the_command_once(
    cli: Cli, server: BillingServer, root: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    said = cli(*COURSE, "--otel", "--json")
    objects = said.json()
    assert said.code == 0
    assert objects[-1]["type"] == "result"
    assert objects[-1]["status"] == "completed"
    told = said.out.count("./pipeline.sh traces ") + said.err.count("./pipeline.sh traces ")
    assert told == 1


def test_no_otel_sends_nothing(
    cli: Cli, receiver: Receiver, root: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    assert cli(*COURSE, "--model", "offline", "--no-otel").code == 0
    assert not receiver.requests


def test_crashed_run_and_one_of_the_original_system_are_sent(cli: Cli, receiver: Receiver, root: Path) -> None:
    run = failed_run(root)
    said = cli("traces", run, "--endpoint", receiver.url)
    assert said.code == 0
    assert "4 calls" in said.out
    assert len(receiver.of_kind("call")) == len(ledger(root)) == 4
    assert cli("traces", original_run(root), "--endpoint", receiver.url, "--json").json()[0]["calls"] == 0


def test_collector_that_is_down_is_an_error_of_the_command(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    said = cli("traces", failed_run(root), "--endpoint", "http://127.0.0.1:9")
    assert said.code == 7
    assert "127.0.0.1:9" in said.err


GRAPH = """digraph demo {
  start [shape=Mdiamond]; ask [shape=hexagon, label="Go on?"]; done [shape=Msquare];
  start -> ask; ask -> done [label="yes"];
}"""


def test_graph_in_a_folder_of_its_own_and_a_table_of_courses_are_sent(
    cli: Cli, receiver: Receiver, root: Path, out: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    (tmp_path / "demo.dot").write_text(GRAPH)
    said = cli("run", str(tmp_path / "demo.dot"), "--run-dir", str(tmp_path / "own"), "--auto-approve")
    assert said.code == 0, said.err
    (run,) = receiver.of_kind("run")
    receiver.spans.clear()
    assert cli("traces", str(tmp_path / "own"), "--endpoint", receiver.url).code == 0
    assert [span.span_id for span in receiver.of_kind("run")] == [run.span_id]
    receiver.spans.clear()
    (tmp_path / "courses.csv").write_text("subject,level,lessons\nmaths,n5,1\nphysics,higher,1\n")
    said = cli("courses", str(tmp_path / "courses.csv"), "--model", "offline", "--quiet")
    assert said.code == 0, said.err
    assert len(receiver.of_kind("run")) == 2


@pytest.mark.parametrize("archive", ["stores.tar.xz", "stores-2.tar.xz"])
def test_runs_of_earlier_versions_are_sent_as_trees_without_loose_ends(
    archive: str, cli: Cli, receiver: Receiver, tmp_path: Path
) -> None:
    with tarfile.open(Path(books.__file__).parent / archive) as packed:
        packed.extractall(tmp_path / "golden", filter="data")
    seen = 0
    for folder in sorted((tmp_path / "golden").glob("*/store")):
        store = open_store(f"files:{folder}")
        for head in list(store.heads()):
            receiver.spans.clear()
            said = cli("traces", head.run_id, "--store", f"files:{folder}", "--endpoint", receiver.url)
            assert said.code == 0, said.err
            ids = receiver.ids()
            parents = [span.parent_span_id.hex() for span in receiver.spans]
            assert len(ids) == len(set(ids))
            assert parents.count("") == min(len(ids), 1)
            assert {*parents} - {""} <= {*ids}
            calls = [attributes(span) for span in receiver.of_kind("call")]
            found = {row.seq: row for row in rows(all_records(store, head.run_id))}
            assert {said["course_pipeline.call.seq"] for said in calls} == found.keys()
            assert len(calls) == len(found)
            usd = sum((Decimal(repr(said.get("gen_ai.usage.cost.amount", 0))) for said in calls), Decimal(0))
            assert usd == sum((row.usd or Decimal(0) for row in found.values()), Decimal(0))
            seen += 1
    assert seen > 5
