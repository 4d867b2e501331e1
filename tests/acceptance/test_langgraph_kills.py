"""A real LangGraph graph over a folder of runs, killed with SIGKILL at each moment, goes on in a new process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT

SCRIPT = Path(__file__).with_name("dying_threads.py")
EXAMPLE = ROOT / "devops" / "docs" / "examples" / "langgraph_graph.py"


def test_langgraph_thread_killed_at_any_moment_goes_on_where_it_was(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["signal"] for row in rows] == [signal.SIGKILL] * (len(rows) - 1) + [0]
    assert len(rows) > 15
    for row in rows:
        assert row["last"] == 0
        assert row["words"] == ["in", "a", "b", "c"]
        assert row["ran"].startswith(row["first"])
        again = row["ran"].removeprefix(row["first"])
        # What was recorded is not run again: at most the nodes that were at work.
        assert not set(again) & set(row["kept"])
        assert set(row["ran"]) == set("abc")
        assert not ("a" in again and set("bc") & set(row["first"]))
        assert row["history"] == [4, 2, 1, 0]


def test_docs_example_of_langgraph_goes_on_and_takes_another_way(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "{'letter': 'Dear reader, tides matter.'}",
        "['Dear reader, tides matter.', 'P.S. Mind the moon.']",
        "[(), ('review',), ('draft',), ('__start__',)]",
        "['Dear reader, start again.', 'P.S. Mind the wind.']",
    ]
    listed = subprocess.run(
        [sys.executable, "-m", "pipeline", "list", "--store", f"files:{tmp_path}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "letter-1" in listed.stdout
    assert "6 kept" in listed.stdout
