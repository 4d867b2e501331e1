"""Costs on the desk: the numbers of `cost`, bars that add up to them, today's limit, the provider's reports."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.app.cost_bars import Bar, columns
from pipeline.app.cost_documents import report_json
from pipeline.app.cost_report import read_all
from pipeline.app.stores import open_account
from pipeline.app.words import plain
from pipeline.clock import SystemClock
from pipeline.cost.report import report
from pipeline.records.budgets import Limit
from pipeline.ui.costs import GROUPS
from tests.desks import Served
from tests.runs import BEGIN, Script
from tests.sample_runs import LESSON, completed_run, corrupt_run, failed_run
from tests.servers.admin import KEY, AdminServer


@pytest.fixture(autouse=True)
def runs(root: Path) -> None:
    """Two days with spend, an open call, a waste, and a run that cannot be read."""
    failed_run(root)
    completed_run(root)
    corrupt_run(root)
    later = Script(root, at=BEGIN + timedelta(days=3), subject="physics", level="higher")
    later.begin("seed").call("seed", None, LESSON).complete("seed", {}).leave()


@pytest.mark.parametrize("by", GROUPS)
def test_numbers_are_those_of_the_command(desk: Served, root: Path, by: str) -> None:
    got, shown = desk.data(f"costs?by={by}"), read_all(f"files:{root}")
    told = [
        json.loads(json.dumps(each, default=plain))
        for each in report_json(shown, report(shown.postings, by, many=True))
    ]
    total = {name: value for name, value in told[-1].items() if name != "type"}
    lines = [{name: value for name, value in each.items() if name != "type"} for each in told if each["type"] == "line"]
    assert got["lines"] == lines
    assert got["total"] == total
    assert got["total"]["wasted_usd"] > 0
    assert got["total"]["at_most_usd"] is None, "a run cannot be read"
    page = desk.get(f"costs?by={by}")
    assert page.status == 200
    for line in lines:
        assert line["key"] in page.text
    assert ('<svg class="columns"' in page.text) is (by == "day")


def test_days_are_columns_without_gaps_that_add_up(desk: Served) -> None:
    got = desk.data("costs")
    bars = got["chart"]["columns"]
    assert [bar["key"] for bar in bars] == ["2026-01-09", "2026-01-10", "2026-01-11", "2026-01-12"]
    assert sum(part["usd"] for bar in bars for part in bar["parts"] if part["name"] != "more") == pytest.approx(
        got["total"]["cost_usd"]
    )
    assert {part["name"] for part in bars[0]["parts"]} == {"used", "wasted", "more"}
    assert all(part["y"] + part["height"] <= 100.01 for bar in bars for part in bar["parts"])


def test_limit_is_drawn_where_the_columns_stay_readable() -> None:
    bars = [Bar("2026-01-09", Decimal(1), Decimal(0), Decimal(1))]
    near, far = columns(bars, Decimal(3)), columns(bars, Decimal(50))
    assert 0 <= near["limit"]["y"] < 50
    assert far["limit"] == {"usd": Decimal(50), "y": None}
    assert columns(bars, None)["limit"] is None


def test_today_is_what_the_account_has_beside_the_limit(
    desk: Served, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert desk.data("costs")["today"]["limit_usd"] is None
    monkeypatch.setenv("PIPELINE_DAILY_BUDGET_USD", "20")
    account, now = open_account(f"files:{root}"), SystemClock().now()
    account.settle(str(account.reserve("h:1:1", Decimal(3), now, Decimal(20))), Decimal("1.25"))
    today = desk.data("costs")["today"]
    assert (today["spent_usd"], today["limit_usd"], today["set_by"]) == (1.25, 20, "PIPELINE_DAILY_BUDGET_USD")
    page = desk.get("costs").text
    assert "$1.25" in page
    assert "of $20.00" in page


def test_limits_are_shown_with_what_is_spent_reserved_and_left(desk: Served, root: Path) -> None:
    assert desk.data("costs")["budgets"] == []
    account, now = open_account(f"files:{root}"), SystemClock().now()
    account.set_limit(Limit("team=maths", "total", Decimal(5)))
    account.settle(str(account.reserve("h:1:1", Decimal(2), now, Decimal(20), "team=maths")), Decimal("1.25"))
    account.reserve("h:1:1", Decimal("0.5"), now, Decimal(20), "team=maths")
    (shown,) = desk.data("costs")["budgets"]
    assert (shown["label"], shown["per"], shown["limit_usd"]) == ("team=maths", "total", 5)
    assert (shown["spent_usd"], shown["reserved_usd"], shown["left_usd"]) == (1.25, 0.5, 3.25)
    page = desk.get("costs").text
    assert "team=maths" in page
    assert "$3.25" in page


def test_days_can_be_chosen_and_a_wrong_one_is_refused(desk: Served) -> None:
    got = desk.data("costs?by=step&since=2026-01-10")
    assert [line["key"] for line in got["lines"]] == ["seed"]
    for query in ("since=yesterday", "since=2026-02-01&until=2026-01-01", "by=colour"):
        assert desk.get(f"costs?{query}").status == 400


def test_csv_is_that_of_the_command(desk: Served) -> None:
    got = desk.get("costs.csv?by=model")
    assert got.headers["content-type"].startswith("text/csv")
    assert "costs-by-model.csv" in got.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(got.text)))
    assert [row["key"] for row in rows] == ["claude-sonnet-5-5", "total"]


def test_reports_need_the_admin_key(desk: Served) -> None:
    assert "ANTHROPIC_ADMIN_KEY" in desk.get("costs").text
    refused = desk.get("costs/reconciled")
    assert refused.status == 400
    assert "ANTHROPIC_ADMIN_KEY" in refused.text


def test_what_took_long_to_read_is_kept_for_a_while(desk: Served, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.ui.costs._TIMES", 10_000)
    first = desk.data("costs")
    completed = Script(root, at=BEGIN + timedelta(days=5), subject="physics", level="higher")
    completed.begin("seed").call("seed", None, LESSON).complete("seed", {}).leave()
    assert desk.data("costs?by=step")["total"] == first["total"]
    assert desk.data("costs?since=2026-01-01")["total"]["cost_usd"] > first["total"]["cost_usd"]


def test_reports_of_the_provider_stand_beside_what_is_recorded(desk: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with AdminServer() as admin:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", admin.url)
        monkeypatch.setenv("ANTHROPIC_ADMIN_KEY", KEY)
        admin.bill("2026-01-09", "claude-sonnet-5-5", "0.17", input=3000, output=1500)
        got = desk.data("costs/reconciled?since=2026-01-09&until=2026-01-12")
        page = desk.get("costs/reconciled?since=2026-01-09&until=2026-01-12").text
        assert "Compare" in desk.get("costs").text
    (first, *_) = got["lines"]
    assert (first["day"], first["model"], first["reported_usd"]) == ("2026-01-09", "claude-sonnet-5-5", 0.17)
    assert got["total"]["reported_usd"] == pytest.approx(0.17)
    assert [each["run_id"] for each in got["beside"]["unread"]] == ["20260107_161230"]
    for text in ("$0.17", "2026-01-09", first["reasons"][0]["text"]):
        assert text in page
    assert KEY not in page
