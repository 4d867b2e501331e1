"""`budget`, `--label` and `cost --by label` as a team types them: what is set holds for all of its runs."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline import open_account
from pipeline.clock import SystemClock
from tests.acceptance.dots import wait_for
from tests.said import Cli
from tests.servers.billing import BillingServer

pytestmark = pytest.mark.usefixtures("out")
COURSE = ("lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "1", "--yes")


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


@pytest.mark.parametrize(
    ("labels", "per", "way"),
    [
        ((), "day", "--per day"), ((), "week", "--per week"), ((), "total", "--per total"),
        (("--label", "team=maths"), "month", "--label team=maths --per month"),
    ],
)  # fmt: skip
def test_plan_and_start_warn_of_a_limit_that_has_less_left_than_is_expected(
    cli: Cli, server: BillingServer, tmp_path: Path, labels: tuple[str, ...], per: str, way: str
) -> None:
    at = ("--store", f"files:{tmp_path / 'here'}")
    course = (*COURSE, *labels, *at)
    cli("budget", "set", *labels, "--per", per, "--usd", "50", *at)
    cli("budget", "set", "--label", "team=physics", "--per", "total", "--usd", "0.01", *at)
    plenty = cli(*course, "--dry-run", "--json").json()[0]
    assert plenty["short_limits"] == []
    cli("budget", "set", *labels, "--per", per, "--usd", "0.05", *at)
    (short,) = cli(*course, "--dry-run", "--json").json()[0]["short_limits"]
    assert (short["per"], short["label"], short["left_usd"]) == (per, labels[1] if labels else None, 0.05)
    shown = cli(*course, "--dry-run").out
    (line,) = (each for each in shown.splitlines() if "stop there" in each)
    assert line.startswith(f"The limit of $0.05 {'in total' if per == 'total' else f'per {per}'} for ")
    assert f"has $0.05 left, less than the expected ${plenty['expected_usd']:.2f}" in line
    assert f"`./pipeline.sh budget set {way} --usd " in line
    assert short["way"] in line
    assert f" --store files:{tmp_path / 'here'}`" in line
    # A start says the same before it asks anybody, and as an event.
    stopped = cli(*course)
    assert (stopped.code, line in stopped.out) == (5, True), stopped.out
    table = tmp_path / "courses.csv"
    table.write_text("subject,level,lessons\nmathematics,national_5,1\n")
    assert "stop there" in cli("courses", str(table), "--dry-run", *labels, *at).out
    # What it says to type lets it end.
    assert cli(*shlex.split(short["way"])[1:]).code == 0
    assert cli(*course, "--dry-run", "--json").json()[0]["short_limits"] == []
    assert cli(*course).code == 0


def test_plan_warns_of_a_day_s_limit_that_is_given(cli: Cli, server: BillingServer) -> None:
    course = (*COURSE, "--daily-budget-usd", "0.03")
    (short,) = cli(*course, "--dry-run", "--json").json()[0]["short_limits"]
    assert short["way"].startswith("--daily-budget-usd ")
    stopped = cli(*course)
    assert (stopped.code, f"{short['way']} leaves room for the worst case." in stopped.out) == (5, True)
    assert cli(*COURSE, *short["way"].split(), "--dry-run", "--json").json()[0]["short_limits"] == []


_DYING = """
import os, signal, sys
from pipeline.cli.main import main
from pipeline.store.account import FileAccount
from pipeline.store.ledger import BackendAccount
for kind in (FileAccount, BackendAccount):
    def reserve(*arguments, real=kind.reserve):
        real(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
    kind.reserve = reserve
main(sys.argv[1:])
"""


def reserved(cli: Cli, *store: str) -> Decimal:
    (row,) = cli("budget", "list", "--json", *store).json()
    return Decimal(str(row["reserved_usd"]))


@pytest.mark.parametrize(
    ("kind", "freed_by"),
    [
        ("files", "a look"), ("sqlite", "a look"), ("files", "the run itself"), ("files", "another run"),
        ("sqlite", "deletion"),
    ],
)  # fmt: skip
def test_killed_before_it_notes_its_reservation_it_keeps_no_room(
    cli: Cli, server: BillingServer, tmp_path: Path, kind: str, freed_by: str
) -> None:
    url = f"{kind}:{tmp_path / 'here'}"
    at = ("--store", url)
    cli("budget", "set", "--per", "total", "--usd", "4", *at)
    died = subprocess.run([sys.executable, "-c", _DYING, *COURSE, *at], check=False, timeout=300, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert server.bill.requests == 0
    (left,) = open_account(url).standings(SystemClock().now())
    assert left.tally.reserved > Decimal("0.1")
    (run,) = (row["run_id"] for row in cli("list", "--json", *at).json())
    if freed_by == "a look":
        assert reserved(cli, *at) == 0
    elif freed_by == "deletion":
        assert cli("delete", run, "--yes", *at).code == 0
    elif freed_by == "the run itself":
        assert cli("lessons", "--resume", run, "--yes", *at).code == 0
    else:
        # Room for no call beside what the dead one holds.
        cli("budget", "set", "--per", "total", "--usd", str(left.tally.reserved), *at)
        cli(*COURSE, "--force", *at)
        assert server.bill.requests > 0
    (now,) = open_account(url).standings(SystemClock().now())
    assert (now.tally.reserved, now.tally.spent) == (0, server.bill.usd)


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_look_frees_nothing_that_a_living_run_holds(cli: Cli, server: BillingServer, tmp_path: Path, kind: str) -> None:
    at = ("--store", f"{kind}:{tmp_path / 'here'}")
    cli("budget", "set", "--per", "total", "--usd", "40", *at)
    server.latency = 60
    going = subprocess.Popen([sys.executable, "-m", "pipeline", *COURSE, *at], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: server.bill.requests > 0)
        assert reserved(cli, *at) == reserved(cli, *at) > 0
    finally:
        going.kill()
        going.communicate()
    # The one call that is out may have been billed: it counts at its worst, and nothing more.
    (call,) = (row for row in cli("cost", "--json", *at).json() if row["type"] == "total")
    (row,) = cli("budget", "list", "--json", *at).json()
    assert (row["reserved_usd"], row["spent_usd"]) == (0, call["at_most_usd"])
