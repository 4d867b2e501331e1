"""`cost --reconcile`: the store's books beside the reports of a server that plays the provider's."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline import AnthropicModel, Message, Pipeline, Request, StepContext, step
from pipeline.store.files import FileStore
from pipeline.testing import FakeClock
from tests.runs import BEGIN, Script
from tests.said import Cli
from tests.sample_runs import LESSON, completed_run, failed_run, original_run
from tests.servers.admin import KEY, AdminServer
from tests.servers.billing import BillingServer
from tests.servers.mishaps import Plan

SONNET = "claude-sonnet-5-5"
DAYS = ("--since", "2026-01-09", "--until", "2026-01-11")


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[AdminServer]:
    with AdminServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_ADMIN_KEY", KEY)
        yield server


def lines(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    said = cli("cost", "--reconcile", "--json", *(arguments or DAYS))
    assert said.code == 0, said.err
    return said.json()


def test_cost_reconciled_explains_what_the_provider_reports_beyond(root: Path, cli: Cli, provider: AdminServer) -> None:
    failed_run(root), original_run(root)
    # Three calls of $0.05; one without an end, which the provider billed at $0.06; and somebody else's.
    provider.bill("2026-01-09", SONNET, "0.21", input=3900, output=2000)
    provider.bill("2026-01-10", "claude-opus-5-5", "4", input=1000)
    text = cli("cost", "--reconcile", *DAYS).out
    assert "calls that are not exactly known" in text
    assert "1,000 tokens that no run here requested: other users of the account, or other stores" in text
    assert "Recorded here: $0.15 to at most $0.25" in text
    assert "Reported by the provider: $4.21 from 2026-01-09 to 2026-01-11 (UTC days)" in text
    assert "Not compared: $1.85 as reported by run 20260108_161230" in text
    mine, others, total = [line for line in lines(cli) if line["type"] != "imported"]
    assert (mine["day"], mine["model"], mine["recorded_usd"], mine["reported_usd"]) == (
        "2026-01-09",
        SONNET,
        0.15,
        0.21,
    )
    assert [reason["reason"] for reason in mine["reasons"]] == ["open"]
    assert [reason["reason"] for reason in others["reasons"]] == ["others"]
    assert (total["difference_usd"], total["reasons"]) == (4.06, {"open": 0.06, "others": 4.0})


def test_cost_reconciled_agrees_to_the_cent_with_a_server_that_billed(
    root: Path, cli: Cli, provider: AdminServer
) -> None:
    bill_of_a_run(root, provider)
    found = lines(cli, "--since", "2026-01-09", "--until", "2026-01-09")
    (line,) = [line for line in found if line["type"] == "reconciled"]
    assert line["recorded_usd"] > 0.01
    assert (line["difference_usd"], line["reasons"], line["token_difference"]) == (0, [], 0)


def bill_of_a_run(root: Path, provider: AdminServer) -> None:
    """Two runs against a server that keeps its own bill, one of them in a batch; its bill becomes the report."""
    clock = FakeClock()
    with BillingServer(plan=Plan()) as server:
        model = AnthropicModel(SONNET, api_key="sk-ant-api03-only-for-tests", base_url=server.url, deadline_seconds=20)

        def ask(ctx: StepContext, item: Any) -> str:
            return ctx.ask(Request(SONNET, [Message("user", f"{item} " + "why " * 300)], max_tokens=2000)).text

        @step("work")
        def work(ctx: StepContext) -> dict[str, Any]:
            return {"texts": list(ctx.map("items", range(4), ask, key=str))}

        for batch in (False, True):
            result = Pipeline("asking", [work]).run(
                store=FileStore(root, clock), model=model, clock=clock, options={"batch": batch}
            )
            assert result.status == "completed"
        model.close()
        for entry in server.bill.entries():
            provider.bill(
                clock.now().date().isoformat(),
                entry.model,
                entry.usd,
                input=entry.input_tokens,
                output=entry.output_tokens,
            )


def test_cost_reconciled_takes_removed_runs_and_calls_before_the_range(
    root: Path, cli: Cli, provider: AdminServer
) -> None:
    script = Script(root, at=BEGIN.replace(hour=23, minute=59), subject="physics", level="higher")
    for name in ("seed", "sow", "lessons", "publish"):
        script.begin(name).call(name, None, LESSON).complete(name, {}, seconds=30)
    script.end("completed")
    completed_run(root, 30)
    assert cli("cleanup", "--max-age-days", "1", "--yes").code == 0
    provider.bill("2026-01-10", SONNET, "0.20", input=4000, output=2000)
    both = [line for line in lines(cli) if line["type"] == "reconciled"]
    assert [line["difference_usd"] for line in both] == [-0.1, 0.1]
    assert {reason["text"] for line in both for reason in line["reasons"]} == {
        "begun on 2026-01-09, billed on 2026-01-10", "begun on 2026-01-09",
    }  # fmt: skip
    (later, _) = lines(cli, "--since", "2026-01-10", "--until", "2026-01-10")
    assert later["reasons"][0]["text"] == "begun on 2026-01-09, before the range"


def test_cost_reconciled_as_csv(root: Path, cli: Cli, provider: AdminServer) -> None:
    failed_run(root)
    provider.bill("2026-01-09", SONNET, "0.15", input=3000, output=1500)
    line, total = csv.DictReader(io.StringIO(cli("cost", "--reconcile", "--csv", *DAYS).out))
    assert (line["recorded_usd"], line["recorded_at_most_usd"], line["reported_usd"]) == ("0.15", "0.25", "0.1500")
    assert (line["difference_usd"], line["reasons"], total["model"]) == ("0.0000", "", "total")


def test_cost_reconciled_without_spend_says_so(root: Path, cli: Cli, provider: AdminServer) -> None:
    root.mkdir()
    said = cli("cost", "--reconcile", *DAYS)
    assert said.out.startswith("Neither this store nor the provider has any spend from 2026-01-09 to 2026-01-11.")
    assert cli("cost", "--reconcile").code == 0
    starts = [query["starting_at"][0] for _, query, _ in provider.asked]
    assert starts[0] == "2026-01-08T00:00:00Z"
    assert starts[-1] > "2026-02"


def test_cost_reconcile_keeps_the_key_to_itself(
    root: Path, cli: Cli, provider: AdminServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed_run(root)
    said = [cli("cost", "--reconcile", *DAYS), cli("cost", "--reconcile", "--json", *DAYS)]
    monkeypatch.setenv("ANTHROPIC_ADMIN_KEY", "sk-ant-admin01-wrong-secret")
    said.append(cli("cost", "--reconcile", *DAYS))
    assert said[-1].code == 4
    assert "does not accept this admin key" in said[-1].err
    with AdminServer() as thief:
        provider.fault = 307, f"{thief.url}/v1/organizations/cost_report"
        said.append(cli("cost", "--reconcile", *DAYS))
        assert thief.asked == []
    assert said[-1].code == 4
    assert "redirect" in said[-1].err
    assert not [each for each in said if KEY in each.out + each.err or "wrong-secret" in each.out + each.err]
    held = [path for path in tmp_path.rglob("*") if path.is_file() and b"admin01" in path.read_bytes()]
    assert held == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["20260109_143022", "--reconcile"], 2, "Omit RUN"),
        (["--reconcile", "--reprice", "published"], 2, "only one of"),
        (["--reconcile"], 2, "ANTHROPIC_ADMIN_KEY"),
    ],
)
def test_cost_reconcile_says_what_is_missing(
    root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    monkeypatch.delenv("ANTHROPIC_ADMIN_KEY", raising=False)
    failed_run(root)
    said = cli("cost", *arguments)
    assert (said.code, said.out) == (code, "")
    assert words in said.err


def test_cost_reconcile_reads_no_journal_but_of_runs_with_calls_that_are_not_exactly_known(
    root: Path, cli: Cli, provider: AdminServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, opened = FileStore.read, []

    def noted(store: FileStore, run: str) -> Iterator[bytes]:
        opened.append(run)
        return read(store, run)

    script = Script(root, subject="physics", level="higher")
    exact = script.begin("sow").call("sow", None, LESSON).complete("sow", {}).end("completed")
    monkeypatch.setattr(FileStore, "read", noted)
    assert lines(cli)[0]["recorded_usd"] == 0.05
    assert opened == []
    # One of its calls has no end: only its journal tells whether that went out in a batch.
    unsure = failed_run(root)
    opened.clear()
    assert lines(cli)[0]["recorded_usd"] == 0.2
    assert (set(opened), exact in opened) == ({unsure}, False)


def test_batches_that_may_have_been_billed_are_named(root: Path, cli: Cli, provider: AdminServer) -> None:
    @step("work")
    def work(ctx: StepContext) -> dict[str, Any]:
        asked = Request(SONNET, [Message("user", "x" * 4000)], max_tokens=9000)
        return {"texts": list(ctx.map("items", range(2), lambda c, i: c.ask(asked).text, key=str))}

    what, clock = Pipeline("asking", [work]), FakeClock()
    with BillingServer() as server:
        model = AnthropicModel(SONNET, api_key="sk-ant-api03-not-a-real-key-0123456789", base_url=server.url)
        server.batches.creations = ["late"]
        more: dict[str, Any] = {"store": FileStore(root, clock), "model": model, "clock": clock}
        given = {"batch": True, "no_wait": True, "max_cost_usd": 5}
        first = what.run(**more, options=given)
        for resubmit, status in ((False, "unknown"), (True, "abandoned")):
            if resubmit:
                what.resume(first.run_id, **more, options={**given, "no_wait": False, "resubmit": True})
            rows = {row["status"]: row for row in cli("batches", "--json").json()}
            (told,) = [line for line in lines(cli) if line["type"] == "batch"]
            assert (told["run_id"], told["status"], told["requests"]) == (first.run_id, status, 2)
            assert told["usd_high"] == rows[status]["open_usd_high"] == float(first.spent.high)
            assert f"run {first.run_id}, 2 requests" in cli("cost", "--reconcile", *DAYS).out
        model.close()
