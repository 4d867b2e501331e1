"""The provider's reports, read over real HTTP; and what becomes of the admin key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal as D

import pytest

from pipeline.errors import CredentialMissing, ModelError, ModelRejected, ModelUnavailable
from pipeline.llm.admin import AdminReports, CostLine, UsageLine
from tests.servers.admin import COST, KEY, USAGE, AdminServer, Billed

SONNET = "claude-sonnet-5-5"
FIRST, LAST = date(2026, 1, 9), date(2026, 1, 11)


@pytest.fixture
def server() -> Iterator[AdminServer]:
    with AdminServer() as server:
        yield server


@pytest.fixture
def reports(server: AdminServer) -> Iterator[AdminReports]:
    reports = AdminReports(KEY, base_url=server.url)
    yield reports
    reports.close()


def test_costs_are_dollars_by_day_and_model(server: AdminServer, reports: AdminReports) -> None:
    server.bill("2026-01-09", SONNET, "1.2378912", input=5)
    server.bill("2026-01-11", SONNET, "0.5", tier="batch")
    server.bill("2026-01-11", None, "0.02", kind="web_search")
    server.bill("2026-01-12", SONNET, "9")
    assert reports.costs(FIRST, LAST) == [
        CostLine("2026-01-09", SONNET, "tokens", D("1.2378912")),
        CostLine("2026-01-11", SONNET, "tokens", D("0.5")),
        CostLine("2026-01-11", "", "web_search", D("0.02")),
    ]
    path, query, headers = server.asked[0]
    assert (path, query["group_by[]"], query["bucket_width"]) == (COST, ["description"], ["1d"])
    assert (query["starting_at"], query["ending_at"]) == (["2026-01-09T00:00:00Z"], ["2026-01-12T00:00:00Z"])
    assert headers["anthropic-version"]


def test_usage_is_tokens_by_our_kinds(server: AdminServer, reports: AdminReports) -> None:
    tokens = {"input": 1, "cache_write_5m": 2, "cache_write_1h": 3, "cache_read": 4, "output": 5, "web_search": 6}
    server.billed.append(Billed("2026-01-10", SONNET, D(1), tokens))
    server.bill("2026-01-10", SONNET, "1", tier="priority", output=7)
    assert reports.usage(FIRST, LAST) == [
        UsageLine("2026-01-10", SONNET, "standard", tokens),
        UsageLine("2026-01-10", SONNET, "priority", {"output": 7}),
    ]
    assert (server.asked[0][0], server.asked[0][1]["group_by[]"]) == (USAGE, ["model", "service_tier"])


def test_reports_are_read_page_by_page(server: AdminServer, reports: AdminReports) -> None:
    server.page = 1
    for day in (9, 10, 11):
        server.bill(f"2026-01-{day:02d}", SONNET, "1")
    assert [line.day for line in reports.costs(FIRST, LAST)] == ["2026-01-09", "2026-01-10", "2026-01-11"]
    assert [query.get("page") for _, query, _ in server.asked] == [None, ["page_1"], ["page_2"]]


def test_pages_that_do_not_end_are_left(server: AdminServer, reports: AdminReports) -> None:
    server.fault = 200, json.dumps({"data": [], "has_more": True, "next_page": "page_1"})
    with pytest.raises(ModelUnavailable, check=lambda error: error.code == "report_unreadable"):
        reports.costs(FIRST, LAST)
    assert len(server.asked) == 2


def test_key_comes_from_its_variable_and_the_host_from_its(
    server: AdminServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url + "/")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another")
    monkeypatch.setenv("ANTHROPIC_ADMIN_KEY", f" {KEY}\n")
    reports = AdminReports()
    assert reports.costs(FIRST, LAST) == []
    assert KEY not in repr(reports)
    reports.close()
    monkeypatch.setenv("ANTHROPIC_ADMIN_KEY", "")
    with pytest.raises(CredentialMissing) as caught:
        AdminReports()
    assert "ANTHROPIC_ADMIN_KEY" in caught.value.hint


def test_redirect_of_a_report_is_not_followed(server: AdminServer, reports: AdminReports) -> None:
    with AdminServer() as thief:
        for status in (301, 302, 307, 308):
            server.fault = status, thief.url + COST
            with pytest.raises(ModelRejected, check=lambda error: error.code == "redirect_refused") as caught:
                reports.costs(FIRST, LAST)
            assert caught.value.data["status"] == status
        assert thief.asked == []


def test_wrong_key_is_refused_and_not_repeated(server: AdminServer) -> None:
    reports = AdminReports("sk-ant-admin01-another-secret", base_url=server.url)
    with pytest.raises(ModelRejected, check=lambda error: error.code == "admin_key_refused") as caught:
        reports.usage(FIRST, LAST)
    assert "another-secret" not in caught.value.message + caught.value.hint
    assert "invalid x-api-key" in caught.value.message
    reports.close()


def test_key_that_is_no_header_is_not_repeated(server: AdminServer) -> None:
    for key in ("sk-ant-admin01-ä", "sk-ant-admin01-a\nx-evil: 1", "sk\x00ant"):
        reports = AdminReports(key, base_url=server.url)
        with pytest.raises((CredentialMissing, ModelUnavailable)) as caught:
            reports.costs(FIRST, LAST)
        assert key not in caught.value.message
        assert "admin01" not in caught.value.message
        reports.close()
    assert server.asked == []


def test_other_statuses_say_what_to_do(server: AdminServer, reports: AdminReports) -> None:
    for status in (403, 404, 429, 500, 529):
        server.fault = status, "<html>no</html>"
        with pytest.raises(ModelRejected if status < 429 else ModelUnavailable, match=f"HTTP {status}") as caught:
            reports.costs(FIRST, LAST)
        assert caught.value.hint


def _bucket(*rows: str) -> str:
    return f'{{"data": [{{"starting_at": "x", "results": [{", ".join(rows)}]}}]}}'


def test_report_that_makes_no_sense_is_an_error_that_says_so(server: AdminServer, reports: AdminReports) -> None:
    costs = ("3", '{"amount": "a lot"}', '{"amount": "NaN"}', '{"amount": "1", "currency": "EUR"}')
    usages = ("3", '{"cache_creation": 3}', '{"output_tokens": "many"}', '{"server_tool_use": ["x"]}')
    more = _bucket("{}")[:-1] + ', "has_more": true}'
    for read, bodies in (
        (reports.costs, ["no json", "[]", '{"data": 3}', '{"data": [{}]}', more, *map(_bucket, costs)]),
        (reports.usage, map(_bucket, usages)),
    ):
        for body in bodies:
            server.fault = 200, body
            with pytest.raises(ModelUnavailable, check=lambda error: error.code == "report_unreadable"):
                read(FIRST, LAST)


def test_host_that_cannot_be_reached_is_an_error_without_the_key() -> None:
    reports = AdminReports(KEY, base_url="http://127.0.0.1:1")
    with pytest.raises(ModelUnavailable, check=lambda error: error.code == "report_unavailable") as caught:
        reports.costs(FIRST, LAST)
    assert KEY not in caught.value.message
    reports.close()
    reports = AdminReports(KEY, base_url="nowhere at all")
    with pytest.raises(ModelError):
        reports.costs(FIRST, LAST)
    reports.close()
