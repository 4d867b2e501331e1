"""The five workloads by this project and by its peers, in turns: python -m tests.benchmarks.peers.compare PYTHON.

    devops/bench.sh --peers [--rounds 3] [--minutes 40] [PEER ...]

PYTHON is the interpreter of the peers' environment. Prints Markdown: medians of ratios, versions, durability, load.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from typing import Any

from tests.benchmarks.measure import ROOT, folder

#: Adapter → how the table calls it; turns are taken in this order.
PEERS = {
    "ours": "this project",
    "langgraph_sqlite": "LangGraph",
    "burr_sqlite": "Burr",
    "dbos_sqlite": "DBOS, SQLite",
    "dbos_postgres": "DBOS, PostgreSQL",
    "pydantic_ai_dbos": "pydantic-ai, DBOS",
    "prefect_server": "Prefect",
    "temporal_server": "Temporal",
}
#: A column: title, workload, how many, the figure of it.
COLUMNS = (
    ("step, 100", "steps", 100, "step"),
    ("step, 1,000", "steps", 1000, "step"),
    ("resume at 500", "resume", 1000, "resume"),
    ("done again", "resume", 1000, "again"),
    ("5 MB: later steps", "state", 40, "later"),
    ("5 MB: kept", "state", 40, "kept"),
    ("200 tasks", "fan", 200, "fan"),
    ("newest 50 of 10,000", "newest", 10_000, "newest"),
)
#: Setting it up takes longest, and it repeats within itself.
_ONCE = frozenset({"newest"})
#: Seconds for one workload of one library, with its server's start.
_PATIENCE = 300

Key = tuple[str, str, int]


def measure(python: str, peer: str, workload: str, count: int) -> dict[str, Any]:
    """Run a workload in the environment of its library; what fails has a reason and no figure."""
    interpreter = sys.executable if peer == "ours" else python
    with folder() as home:
        command = [interpreter, "-m", "tests.benchmarks.peers.workloads", peer, workload, str(home), str(count)]
        running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            said, why = running.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            # It ends its server itself.
            running.terminate()
            running.communicate()
            return {"refused": f"not done within {_PATIENCE} s"}
    if running.returncode:
        print(why, file=sys.stderr)
        return {"refused": "failed"}
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def rounds(python: str, peers: list[str], times: int, minutes: float) -> dict[Key, list[dict[str, Any]]]:
    """Take turns: each workload by each library, so many times over; after so many minutes none begins."""
    end = time.monotonic() + minutes * 60
    found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for number in range(times):
        for workload, count in dict.fromkeys((workload, count) for _, workload, count, _ in COLUMNS):
            if (number and workload in _ONCE) or time.monotonic() > end:
                continue
            for peer in peers:
                begun = time.monotonic()
                found[peer, workload, count].append(measure(python, peer, workload, count))
                spent = time.monotonic() - begun
                print(f"{number + 1}/{times} {workload} {count} {peer}: {spent:.0f} s", file=sys.stderr)
    return found


def cell(measured: list[dict[str, Any]], figure: str) -> str:
    """Return the median of a figure as the table shows it; a dash where there is none."""
    values = [one[figure] for one in measured if figure in one]
    if not values:
        return "–"
    middle = statistics.median(values)
    return f"{middle:,.0f}" if middle >= 20 or figure == "again" else f"{middle:.1f}"


def table(found: dict[Key, list[dict[str, Any]]], peers: list[str]) -> str:
    rows = [["", *(title for title, *_ in COLUMNS)], ["---"] * (len(COLUMNS) + 1)]
    for peer in peers:
        cells = [cell(found[peer, workload, count], figure) for _, workload, count, figure in COLUMNS]
        rows.append([PEERS[peer], *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def notes(python: str, found: dict[Key, list[dict[str, Any]]], peers: list[str]) -> list[str]:
    """Return versions and durability of each library, and why a figure is missing."""
    lines = []
    for peer in peers:
        about = measure(python, peer, "about", 0)
        versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
        missing = {
            one["refused"]: workload for (who, workload, _), many in found.items() if who == peer for one in many
            if "refused" in one
        }  # fmt: skip
        why = "".join(f" No {workload}: {reason}." for reason, workload in missing.items())
        lines.append(f"- {PEERS[peer]} ({versions}): {about['durability']}.{why}")
    return lines


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("python")
    options.add_argument("peers", nargs="*", metavar="PEER", help=", ".join(PEERS))
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--minutes", type=float, default=40, help="after which no workload begins")
    chosen = options.parse_intermixed_args()
    peers = chosen.peers or list(PEERS)
    before = os.getloadavg()[0]
    found = rounds(chosen.python, peers, chosen.rounds, chosen.minutes)
    print(table(found, peers), "", *notes(chosen.python, found, peers), "", sep="\n")
    made = len(found[peers[0], "steps", 100])
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.system()}, {os.cpu_count()} "
        f"cores; load {before:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end; rounds: {made}."
    )


if __name__ == "__main__":
    main()
