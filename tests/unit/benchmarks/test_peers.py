"""The adapters of other durable engines: each does the five workloads, tiny, where its packages are there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.peers import compare

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / "tests" / "benchmarks" / "peers"
#: Workload → how many, and what it measures.
TINY = {
    "steps": (25, {"step"}),
    "resume": (6, {"resume", "again"}),
    "state": (10, {"later", "kept"}),
    "fan": (4, {"fan"}),
    "newest": (5, {"newest"}),
}


def _packages(peer: str) -> list[str]:
    """The packages that an adapter names, without importing it."""
    found = re.search(r"PACKAGES[^=\n]* = \(([^)]*)\)", (PEERS / f"{peer}.py").read_text())
    assert found is not None
    return re.findall(r'"([\w-]+)"', found.group(1))


def _interpreter(peer: str) -> str:
    """This Python, or that of the benchmarks' own environment where one was made."""
    try:
        for package in _packages(peer):
            version(package)
        return sys.executable
    except PackageNotFoundError as missing:
        made = ROOT / ".venv.peers" / "bin" / "python"
        if not made.exists():
            pytest.skip(f"{missing.name} is not installed (devops/bench.sh --peers)")
        return str(made)


def _run(peer: str, workload: str, home: Path, count: int) -> dict[str, Any]:
    command = [_interpreter(peer), "-m", "tests.benchmarks.peers.workloads", peer, workload, str(home), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("workload", TINY)
@pytest.mark.parametrize(
    "peer", [pytest.param(name, marks=[pytest.mark.long] * (name != "ours")) for name in compare.PEERS]
)
def test_a_workload_is_measured(peer: str, workload: str, tmp_path: Path) -> None:
    count, figures = TINY[workload]
    measured = _run(peer, workload, tmp_path, count)
    assert measured.keys() in (figures, {"refused"})
    assert all(value >= 0 for name, value in measured.items() if name != "refused")


def test_a_resume_repeats_nothing_that_was_done(tmp_path: Path) -> None:
    assert _run("ours", "resume", tmp_path, 10)["again"] == 0


def test_every_adapter_is_compared_and_short() -> None:
    adapters = {path.stem for path in PEERS.glob("*.py")} - {"compare", "workloads"}
    assert adapters == set(compare.PEERS)
    assert {name for name in adapters if len((PEERS / f"{name}.py").read_text().splitlines()) > 120} == set()


def test_what_adapters_need_is_pinned() -> None:
    pins = set(re.findall(r"^([\w.-]+)==", (PEERS / "requirements.txt").read_text(), re.MULTILINE))
    assert {package for peer in compare.PEERS for package in _packages(peer)} <= pins


def test_a_table_has_medians_and_dashes() -> None:
    found: dict[compare.Key, list[dict[str, Any]]] = {
        ("ours", workload, count): [{figure: value} for value in (1.0, 3.0, 90.0)]
        for _, workload, count, figure in compare.COLUMNS
    }
    found["ours", "resume", 1000] = [{"refused": "why"}]
    last = compare.table(found, ["ours"]).splitlines()[-1]
    assert last.split(" | ")[1:5] == ["3.0", "3.0", "–", "–"]


def test_a_workload_that_is_ended_ends_its_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.peers.workloads", "ours", "steps", str(tmp_path), "1000000"]
    running = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    while not (tmp_path / "store").exists():
        assert running.poll() is None
        os.sched_yield()
    running.send_signal(signal.SIGTERM)
    assert running.wait(120) != 0
