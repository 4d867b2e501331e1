"""What a run had cost is never told as less because records of it are lost: every sum says what was known at least."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.said import Cli
from tests.servers.billing import BillingServer

COURSE = ["lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "4", "--yes"]


def _call(lines: list[bytes]) -> list[int]:
    """Where the last call begins and ends."""
    facts = [json.loads(line) for line in lines]
    ended = max(number for number, fact in enumerate(facts) if fact["kind"] == "call_ended")
    (begun,) = [number for number, fact in enumerate(facts) if fact["seq"] == facts[ended]["call"]]
    return [begun, ended]


def _cut(lines: list[bytes]) -> list[bytes]:
    return [line for number, line in enumerate(lines) if number not in _call(lines)]


def _harm(lines: list[bytes]) -> list[bytes]:
    return [b"harmed\n" if number in _call(lines) else line for number, line in enumerate(lines)]


DAMAGE: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "emptied": lambda lines: [],
    "a call cut out, the first record harmed": lambda lines: [b"x\n", *_cut(lines)[1:]],
    "a call cut out": _cut,
    "a call harmed": _harm,
    "an end cut out": lambda lines: [line for number, line in enumerate(lines) if number != _call(lines)[1]],
    "cut short": lambda lines: lines[: _call(lines)[0]],
    "all but the first": lambda lines: lines[:1],
}


@pytest.mark.usefixtures("out")
def test_sums_say_at_least_what_the_head_knew_of_lost_records(cli: Cli, root: Path, server: BillingServer) -> None:
    made = cli(*COURSE, "--model", "claude-sonnet-5-5", "--json").json()[-1]
    assert made["status"] == "completed", json.dumps(made)
    run, journal = made["run"], root / made["run"] / "journal.jsonl"
    bill = float(server.bill.usd)
    shutil.copytree(root, whole := root.with_name("whole"))
    for what, damage in DAMAGE.items():
        shutil.rmtree(root)
        shutil.copytree(whole, root)
        journal.write_bytes(b"".join(damage(journal.read_bytes().splitlines(keepends=True))))
        _tells(cli, run, bill, what)
        before = len(server.bill.entries())
        again = cli("lessons", "--resume", run, "--model", "claude-sonnet-5-5", "--yes")
        if again.code == 0:
            bill_now = float(server.bill.usd)
            assert len(server.bill.entries()) >= before
            _tells(cli, run, bill, f"{what}, resumed")
            assert bill_now >= bill


@pytest.mark.usefixtures("out")
def test_sums_of_a_run_whose_journal_was_removed_are_those_of_its_head_and_counted_once(
    cli: Cli, root: Path, server: BillingServer
) -> None:
    made = cli(*COURSE, "--model", "claude-sonnet-5-5", "--until", "sow", "--json").json()[-1]
    (root / made["run"] / "journal.jsonl").unlink()
    for command in (["cost"], ["cost", made["run"]], ["cost", "--by", "day"]):
        rows = cli(*command, "--json").json()
        assert rows[-1]["at_least_usd"] == pytest.approx(float(server.bill.usd), abs=1e-6), command
        assert rows[-1]["at_most_usd"] is None, command
        assert "imported" not in [row["type"] for row in rows], command


def _tells(cli: Cli, run: str, bill: float, what: str) -> None:
    for command in (["cost"], ["cost", run], ["cost", run, "--by", "call"], ["cost", "--by", "run"]):
        total = cli(*command, "--json").json()[-1]
        assert total["at_least_usd"] == pytest.approx(bill, abs=1e-6) or total["at_least_usd"] > bill, (what, command)
        assert total["at_most_usd"] is None, (what, command)
        assert "at least" in cli(*command).out, (what, command)
    (row,) = cli("list", "--json").json()
    assert row["cost_usd"] >= bill - 1e-6, what
    assert row["possibly_usd"] is None, what
    assert "at least" in cli("list").out, what
    status: Any = cli("status", run, "--json")
    if status.code == 0:
        assert status.json()[-1]["cost_usd"] >= bill - 1e-6 or "an end" in what, what
        assert "at least" in cli("status", run).out, what
