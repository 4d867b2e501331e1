"""The documentation of the checks of lessons, from their table: python -m tests.checks > devops/docs/checks.md."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from pipeline.content.checks import ROWS
from pipeline.frameworks import REGIONS

FAULTS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "calibration/faults.yaml").read_text(encoding="utf-8")
)
_INTRODUCTION = """# What lessons are checked for

Every lesson goes through this table before it is published, whoever wrote it. Severity: B is never published, R goes
back to the author as a correction, W is recorded and shown on the page About; a row may find a lesser fault and only
warn of it. Who looks: code reads what is printed; the blind solve is a call that sees the questions without their
answers; the critic is a call that scores the lesson.

The last column counts the seeded faults by which the row is tried: good lessons, each spoilt in one place
(`tests/calibration`). Every one of them must be caught, and none of the good lessons sent back.

| # | severity | who | what it demands | seeded |
|---|---|---|---|---|
"""
_RULES = """
## What the author is told

Each rule that can send a lesson back stands in the prompt, from the same table.

"""


def documentation() -> str:
    """Return the page of the documentation."""
    seeded = Counter(fault["check"] for fault in FAULTS)
    rows = [
        f"| {row.number} | {row.severity} | {row.who} | {row.demands} | {seeded[row.number] or ''} |" for row in ROWS
    ]
    usage = f"In Scotland: {REGIONS['scotland'].rule}"
    rules = [f"- **{row.number}** {row.rule.replace('[[rule_of_usage]]', usage)}" for row in ROWS if row.rule]
    return _INTRODUCTION + "\n".join(rows) + "\n" + _RULES + "\n".join(rules) + "\n"


if __name__ == "__main__":
    sys.stdout.write(documentation())
