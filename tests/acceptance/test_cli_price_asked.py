"""The price that a start names is that of what it makes: for every option that shortens it, and for a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.said import Cli
from tests.servers.billing import BillingServer

COURSE = ("lessons", "--subject", "mathematics", "--level", "n5", "--lessons", "6", "--model", "claude-sonnet-5-5")


def planned(cli: Cli, *more: str) -> dict[str, Any]:
    """What --dry-run says."""
    (data,) = cli(*COURSE, "--dry-run", "--json", *more).json()
    assert data["expected_usd"] == pytest.approx(sum(item["expected_usd"] for item in data["items"]))
    assert data["expected_usd"] == pytest.approx(sum(line["expected_usd"] for line in data["calls"]))
    return dict(data)


def started(cli: Cli, *command: str) -> dict[str, Any]:
    """What a start says before its first paid call."""
    said = cli(*command, "--json", "--yes")
    assert said.code == 0, said.err
    return dict(next(event for event in said.json() if event["type"] == "plan"))


def made(data: dict[str, Any]) -> list[str]:
    return [item["name"] for item in data["items"] if item["action"] == "run"]


def test_price_of_a_start_is_that_of_what_it_makes(cli: Cli, server: BillingServer, out: Path) -> None:
    whole = planned(cli)["expected_usd"]
    lessons = [f"lessons/{number}" for number in range(1, 7)]
    # What a start is told, what it makes, and whether that is paid for.
    steps: list[tuple[tuple[str, ...], list[str], bool]] = [
        (("--until", "seed"), ["seed"], False),
        (("--until", "sow"), ["sow"], True),
        # Done already: nothing is bought.
        (("--until", "sow"), [], False),
        (("--sample", "2"), [*lessons[:2], "lessons"], True),
        (("--until", "sow", "--sample", "3"), [], False),
        (("--sample", "2"), ["lessons"], False),
        (("--until", "lessons"), [*lessons[2:], "lessons"], True),
    ]
    for options, names, paid in steps:
        plan, calls = planned(cli, *options), server.bill.requests
        start = started(cli, *COURSE, *options)
        assert made(plan) == names
        assert float(start["expected_usd"]) == pytest.approx(plan["expected_usd"])
        assert float(start["worst_usd"]) == pytest.approx(plan["worst_usd"])
        assert (plan["expected_usd"] > 0, server.bill.requests > calls) == (paid, paid)
        assert plan["expected_usd"] < whole
    assert made(planned(cli)) == ["publish"]


def test_price_of_a_resume_keeps_what_the_run_was_started_with(cli: Cli, server: BillingServer, out: Path) -> None:
    started(cli, *COURSE, "--until", "sow", "--max-cost-usd", "7")
    plan = planned(cli)
    assert plan["ceiling_usd"] == 7
    start = started(cli, "lessons", "--resume", "latest", "--sample", "1")
    assert start["ceiling_usd"] == 7
    assert float(start["expected_usd"]) == pytest.approx(plan["expected_usd"] / 6)
    again = started(cli, "redo", "latest", "lessons/1")
    # One lesson again, and the five that are not there yet.
    assert float(again["expected_usd"]) == pytest.approx(plan["expected_usd"])


def test_price_with_claude_is_named_whatever_the_offline_author_has_made(cli: Cli, out: Path) -> None:
    offline = ("lessons", "--subject", "mathematics", "--level", "n5", "--lessons", "4")
    before = cli(*offline, "--dry-run").out
    (named,) = [line for line in before.splitlines() if line.startswith("With --model")]
    assert "$0.00" not in named
    assert cli(*offline).code == 0
    assert named in cli(*offline, "--dry-run").out.splitlines()
