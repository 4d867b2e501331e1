"""`budget`, `--label` and `cost --by label` as a team types them: what is set holds for all of its runs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.said import Cli
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer

COURSE = ("lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "1", "--yes")


@pytest.fixture
def server(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BillingServer]:
    monkeypatch.setenv("PIPELINE_OUT", str(root.parent / "site"))
    with BillingServer(responder=answer) as made:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-nobody")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", made.url)
        yield made


def test_limits_are_set_listed_and_removed(cli: Cli) -> None:
    assert "budget set --label team=maths --per month --usd 200" in cli("budget", "list").out
    said = cli("budget", "set", "--label", "team=maths", "--per", "month", "--usd", "200")
    assert (said.code, said.out.splitlines()[0]) == (0, "Set: $200.00 per month for team=maths. $200.00 is left.")
    again = cli("budget", "set", "--label", "team=maths", "--per", "month", "--usd", "300").out
    assert again.startswith("Set: $300.00 per month for team=maths (it was $200.00). $300.00 is left.")
    cli("budget", "set", "--label", "team=maths", "--per", "month", "--usd", "200")
    (row,) = cli("budget", "list", "--json").json()
    assert (row["label"], row["per"], row["limit_usd"], row["left_usd"]) == ("team=maths", "month", 200, 200)
    assert cli("budget", "remove", "--per", "month").code == 2
    assert cli("budget", "remove", "--per", "month", "--label", "team=maths").code == 0
    assert cli("budget", "list", "--json").json() == []
    wrong = cli("budget", "set", "--label", "maths", "--per", "day", "--usd", "1")
    assert (wrong.code, "such as team=maths" in wrong.err) == (2, True)


@pytest.mark.parametrize("command", [("budget", "set", "--usd", "1"), ("budget", "remove"), COURSE])
def test_empty_label_of_an_unset_variable_means_not_all_runs_and_not_none(cli: Cli, command: tuple[str, ...]) -> None:
    cli("budget", "set", "--per", "day", "--usd", "5")
    said = cli(*command, "--label", "", *(("--per", "day") if command[0] == "budget" else ()))
    assert (said.code, "'' is not a label" in said.err) == (2, True), said.err
    assert [row["limit_usd"] for row in cli("budget", "list", "--json").json()] == [5]
    assert cli("list", "--json").json() == []


def test_course_stops_at_its_team_s_limit_and_continues_once_it_is_raised(cli: Cli, server: BillingServer) -> None:
    cli("budget", "set", "--label", "team=maths", "--per", "month", "--usd", "0.05")
    stopped = cli(*COURSE, "--label", "team=maths")
    assert stopped.code == 5
    assert "of the limit of $0.05 per month for team=maths is spent or reserved" in stopped.err
    assert "budget set --label team=maths --per month --usd USD" in stopped.err
    assert server.bill.usd <= Decimal("0.05")
    assert "Labels:  team=maths" in cli("status", "latest").out.splitlines()
    # The run keeps its label, whoever resumes it.
    assert cli("lessons", "--resume", "latest", "--yes").code == 5
    cli("budget", "set", "--label", "team=maths", "--per", "month", "--usd", "40")
    assert cli("lessons", "--resume", "latest", "--yes").code == 0
    assert int(server.bill.to_json()["repeated"]) == 0
    (row,) = cli("budget", "list", "--json").json()
    assert (Decimal(str(row["spent_usd"])), row["reserved_usd"]) == (server.bill.usd, 0)
    lines = [row for row in cli("cost", "--by", "label", "--json").json() if row["type"] == "line"]
    assert [row["key"] for row in lines] == ["team=maths"]
    assert Decimal(str(lines[0]["cost_usd"])) == server.bill.usd
