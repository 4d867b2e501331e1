"""From the command line: calls whose cost is not known are never printed as nothing, and can be closed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.records.kinds import BatchIntended, BatchSubmitted, CallStarted
from tests.runs import Script
from tests.said import Cli
from tests.servers import bill, models
from tests.servers.admin import KEY, AdminServer
from tests.servers.billing import BillingServer

COURSE = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "2", "--yes")
CLAUDE = "claude-sonnet-5-5"
UNPRICED = "claude-mythos-5"
PRICES = "[models.{}]\ninput = 2\ncache_write_5m = 2.5\ncache_write_1h = 4\ncache_read = 0.2\noutput = 10\n"


@pytest.fixture
def unpriced(server: BillingServer, monkeypatch: pytest.MonkeyPatch) -> BillingServer:
    """A server whose model has no price."""
    monkeypatch.setitem(models.MODELS, UNPRICED, {**models.MODELS[CLAUDE], "id": UNPRICED})
    monkeypatch.setitem(bill.PRICES, UNPRICED, bill.PRICES[CLAUDE])
    return server


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[AdminServer]:
    with AdminServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_ADMIN_KEY", KEY)
        yield server


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
    provider.bill("2026-01-09", CLAUDE, "0.20", input=1000, output=500)
    shown = cli("settle", run, "--reconcile", "--dry-run", "--json")
    assert [row["usd"] for row in shown.json()] == [0.05, 0.15], shown.err
    assert spent(cli, run)[:2] == (0.0, 0.4)
    assert cli("settle", run, "--reconcile").code == 0
    assert spent(cli, run)[:2] == (0.2, 0.2)
    assert cli("settle", run, "--reconcile").code == 2


def test_calls_whose_answers_a_batch_may_hold_are_not_settled_without_a_yes(root: Path, cli: Cli) -> None:
    script = Script(root).begin("seed")
    call = script.add(CallStarted("seed#1", "key", CLAUDE, "", worst="0.10", batch="nonce"))
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
