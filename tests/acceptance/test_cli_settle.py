"""`cost --reconcile` and `settle`: the provider's reports beside ours; what a call cost is never printed as nothing."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline import AnthropicModel, Message, Pipeline, Request, StepContext, step
from pipeline.records.kinds import BatchIntended, BatchSubmitted, CallStarted
from pipeline.store.files import FileStore
from pipeline.testing import FakeClock
from tests.runs import BEGIN, Script
from tests.said import Cli
from tests.sample_runs import LESSON, completed_run, failed_run, original_run
from tests.servers import bill, models
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
    found = (mine["day"], mine["model"], mine["recorded_usd"], mine["reported_usd"])
    assert found == ("2026-01-09", SONNET, 0.15, 0.21)
    assert [reason["reason"] for reason in mine["reasons"]] == ["open"]
    assert [reason["reason"] for reason in others["reasons"]] == ["others"]
    assert (total["difference_usd"], total["reasons"]) == (4.06, {"open": 0.06, "others": 4.0})
    rows = list(csv.DictReader(io.StringIO(cli("cost", "--reconcile", "--csv", *DAYS).out)))
    assert [row["difference_usd"] for row in rows] == ["0.0600", "4.00", "4.0600"]
    line = rows[0]
    assert (line["recorded_usd"], line["recorded_at_most_usd"], line["reported_usd"]) == ("0.15", "0.25", "0.2100")
    assert ([row["reasons"] for row in rows[:2]], rows[2]["model"]) == (["open", "others"], "total")


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
        model = AnthropicModel(SONNET, api_key="sk-ant-api03-only-for-tests", base_url=server.url, deadline_seconds=100)

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
            day = clock.now().date().isoformat()
            provider.bill(day, entry.model, entry.usd, input=entry.input_tokens, output=entry.output_tokens)


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


def test_cost_reconcile_says_what_is_missing(root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_ADMIN_KEY", raising=False)
    for arguments, words in (
        (f"{failed_run(root)} --reconcile", "Omit RUN"), ("--reconcile --reprice published", "only one of"),
        ("--reconcile", "ANTHROPIC_ADMIN_KEY"),
    ):  # fmt: skip
        said = cli("cost", *arguments.split())
        assert (said.code, said.out, words in said.err) == (2, "", True)


def test_cost_reconcile_reads_no_journal_but_of_runs_with_calls_that_are_not_exactly_known(
    root: Path, cli: Cli, provider: AdminServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, opened = FileStore.read, []

    def noted(store: FileStore, run: str, after: int = 0) -> Iterator[bytes]:
        opened.append(run)
        return read(store, run, after)

    script = Script(root, subject="physics", level="higher")
    exact = script.begin("sow").call("sow", None, LESSON).complete("sow", {}).end("completed")
    monkeypatch.setattr(FileStore, "read", noted)
    assert lines(cli)[0]["recorded_usd"] == 0.05
    assert opened == []
    # One of its calls has no end: only its journal tells whether that went out in a batch.
    unsure = failed_run(root)
    opened.clear()
    assert lines(cli)[0]["recorded_usd"] == 0.2
    # Beside its journal stand the decisions of reviews.
    assert (set(opened) - {f"{unsure}/review"}, exact in opened) == ({unsure}, False)


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


COURSE = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "2", "--yes")
UNPRICED = "claude-mythos-5"
PRICES = "[models.{}]\ninput = 2\ncache_write_5m = 2.5\ncache_write_1h = 4\ncache_read = 0.2\noutput = 10\n"


@pytest.fixture
def unpriced(server: BillingServer, monkeypatch: pytest.MonkeyPatch) -> BillingServer:
    """A server whose model has no price."""
    monkeypatch.setitem(models.MODELS, UNPRICED, {**models.MODELS[SONNET], "id": UNPRICED})
    monkeypatch.setitem(bill.PRICES, UNPRICED, bill.PRICES[SONNET])
    return server


def open_calls(root: Path, *worst: str) -> tuple[str, list[int]]:
    """A run with calls that have no end; its id and their numbers."""
    script = Script(root).begin("seed")
    for each in worst:
        script.call("seed", None, None, worst=each)
    return script.end("failed"), [3 + at for at in range(len(worst))]


def spent(cli: Cli, run: str) -> tuple[float, float | None, int]:
    """What `cost` says: at least, at most, without a price."""
    total = cli("cost", run, "--json").json()[-1]
    return total["at_least_usd"], total["at_most_usd"], total["unpriced_calls"]


def test_calls_without_a_price_are_named_everywhere_and_priced_on_resume(
    cli: Cli, out: Path, unpriced: BillingServer, tmp_path: Path
) -> None:
    said = cli(*COURSE, "--model", UNPRICED, "--max-cost-usd", "none", "--sample", "1")
    assert said.code == 0, said.err
    (row,) = cli("list", "--json").json()
    run, calls = row["run_id"], row["unpriced_calls"]
    assert calls > 1
    word = f"$0.00 + {calls} unpriced"
    assert f"Cost: {word}" in said.out
    for command in (("list",), ("status", run), ("cost", run)):
        assert word in cli(*command).out, command
    asked = unpriced.bill.requests
    refused = cli("lessons", "--resume", run, "--max-cost-usd", "20")
    assert (refused.code, unpriced.bill.requests) == (5, asked)
    file = tmp_path / "prices.toml"
    file.write_text(PRICES.format(f'"{UNPRICED}"'))
    again = cli("lessons", "--resume", run, "--max-cost-usd", "20", "--prices", str(file), "--yes")
    assert again.code == 0, again.err
    assert unpriced.bill.requests > asked
    low, high, left = spent(cli, run)
    assert (left, low == high, low > 0) == (0, True, True)
    (total,) = [row for row in cli("cost", run, "--reprice", str(file), "--json").json() if row["type"] == "total"]
    assert total["difference_usd"] == total["repriced_usd"] - low


def test_courses_name_calls_without_a_price(cli: Cli, out: Path, unpriced: BillingServer, tmp_path: Path) -> None:
    file = tmp_path / "courses.csv"
    file.write_text("subject,level,lessons\nmaths,N5,2\n")
    said = cli("courses", str(file), "--model", UNPRICED, "--max-cost-usd", "none", "--sample", "1", "--yes")
    assert re.search(r"Spent by this command: \$0\.00 \+ \d+ unpriced", said.out), said.out + said.err


def test_call_is_not_settled_above_its_worst_case_without_a_yes_and_can_be_corrected(root: Path, cli: Cli) -> None:
    run, (call,) = open_calls(root, "0.10")
    said = cli("settle", run, str(call), "10000")
    assert (said.code, "$0.10" in said.err) == (6, True)
    assert spent(cli, run)[1] == 0.1
    for usd in ("0.0000001", "1e1", "0.07"):
        said = cli("settle", run, str(call), usd, "--yes")
        assert said.code == 0, said.err
        assert spent(cli, run)[:2] == (float(usd), float(usd))
        for command in (("cost", run), ("list",), ("status", run), ("log", run)):
            assert not re.search(r"\$[\d.]+E", said.out + cli(*command).out), command
        assert f"{Decimal(usd):f}" in said.out
    # The bound is that of the call, not of the amount it was settled at.
    assert cli("settle", run, str(call), "0.09").code == 0
    assert cli("settle", run, str(call), "0.11").code == 6
    assert cli("store", "check").code == 0


def test_all_open_calls_are_settled_in_one_decision(root: Path, cli: Cli) -> None:
    worst = ["0.10", "0.20", "0.40"] * 4
    run, calls = open_calls(root, *worst)
    assert cli("settle", run, "--all", "5").code == 6
    shown = cli("settle", run, "--all", "0.7", "--dry-run", "--json").json()
    assert spent(cli, run)[0] == 0
    done = cli("settle", run, "--all", "0.7", "--json").json()
    assert [row["usd"] for row in shown] == [row["usd"] for row in done]
    assert [row["call"] for row in done] == calls
    assert sum(Decimal(str(row["usd"])) for row in done) == Decimal("0.7")
    assert all(row["usd"] <= float(most) for row, most in zip(done, worst, strict=True))
    assert spent(cli, run)[:2] == (0.7, 0.7)
    # Where none is open, the whole is corrected.
    assert cli("settle", run, "--all", "0.35").code == 0
    assert spent(cli, run)[:2] == (0.35, 0.35)
    assert "Recorded." in cli("settle", run, "--all", "5", "--yes").out
    assert spent(cli, run)[:2] == (5.0, 5.0)


def test_open_calls_are_settled_against_the_providers_report(root: Path, cli: Cli, provider: AdminServer) -> None:
    run, _ = open_calls(root, "0.10", "0.30")
    provider.bill("2026-01-09", SONNET, "0.20", input=1000, output=500)
    shown = cli("settle", run, "--reconcile", "--dry-run", "--json")
    assert [row["usd"] for row in shown.json()] == [0.05, 0.15], shown.err
    assert spent(cli, run)[:2] == (0.0, 0.4)
    assert cli("settle", run, "--reconcile").code == 0
    assert spent(cli, run)[:2] == (0.2, 0.2)
    assert cli("settle", run, "--reconcile").code == 2


def test_calls_whose_answers_a_batch_may_hold_are_not_settled_without_a_yes(root: Path, cli: Cli) -> None:
    script = Script(root).begin("seed")
    call = script.add(CallStarted("seed#1", "key", SONNET, "", worst="0.10", batch="nonce"))
    script.add(BatchIntended("nonce", [{"id": "nonce-1", "call": call}], 1))
    script.add(BatchSubmitted("nonce", "msgbatch_1", "2026-01-10T14:30:22Z"))
    run = script.end("in_progress", "waiting_for_batch")
    for how in ((str(call), "0.05"), ("--all", "0.05")):
        said = cli("settle", run, *how)
        assert (said.code, "Resume" in said.err) == (6, True), how
        assert spent(cli, run)[1] == 0.1
    assert cli("settle", run, "--all", "0.05", "--yes").code == 0
    # Corrected later, nothing is given up any more.
    assert cli("settle", run, "--all", "0.04").code == 0
    assert spent(cli, run)[:2] == (0.04, 0.04)


def test_settle_names_what_is_missing(root: Path, cli: Cli) -> None:
    run, (call,) = open_calls(root, "0.10")
    for arguments in ((), (str(call),), (str(call), "0.1", "--all", "1"), ("--all", "1", "--reconcile")):
        assert cli("settle", run, *arguments).code == 2
    assert cli("settle", run, str(call), "--", "-0").code == 2


def test_tiny_ceilings_are_printed_in_full_and_minus_nothing_is_refused(cli: Cli, server: BillingServer) -> None:
    for option in ("--max-cost-usd", "--daily-budget-usd"):
        said = cli(*COURSE, option, "-0")
        assert (said.code, option in said.err) == (2, True)
    said = cli(*COURSE, "--max-cost-usd", "0.0000125")
    assert (said.code, server.bill.requests) == (5, 0)
    assert "the ceiling of $0.0000125." in said.err
    assert "E-" not in said.out + said.err
