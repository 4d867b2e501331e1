"""Kill -9 around the writes to a user's memory: between boundary and write, and between write and its record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import DOCS, ROOT

_PROGRAM = """
import importlib.util, os, signal, sys
from pathlib import Path
from pipeline import open_store
home, moment, resume = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
spec = importlib.util.spec_from_file_location("memory_file", sys.argv[4])
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)

class Deadly(example.FileMemory):
    def write(self, type, content, scope, key):
        if moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        super().write(type, content, scope, key)
        if moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)

store, services = open_store(f"files:{home / 'store'}"), {"memory": Deadly(home / "memory.jsonl")}
if resume:
    result = example.PIPELINE.resume(next(iter(store.heads())).run_id, store=store, services=services)
else:
    result = example.PIPELINE.run({"town": "Oban"}, store=store, services=services)
print(result.status)
"""


def run(home: Path, moment: str, *, resume: bool = False) -> subprocess.CompletedProcess[str]:
    example = DOCS / "examples" / "memory_file.py"
    command = [sys.executable, "-c", _PROGRAM, str(home), moment, "yes" if resume else "", str(example)]
    return subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_write_is_applied_exactly_once_whenever_the_process_dies(tmp_path: Path, moment: str) -> None:
    assert run(tmp_path, moment).returncode == -9
    for _ in range(2):
        assert run(tmp_path, moment, resume=True).returncode == -9
    done = run(tmp_path, "never", resume=True)
    assert (done.returncode, done.stdout.strip()) == (0, "completed"), done.stderr
    rows = [json.loads(line) for line in (tmp_path / "memory.jsonl").read_text().splitlines()]
    assert [row["content"] for row in rows] == ["Oban, visit 1"]
    kinds = [json.loads(line)["kind"] for line in next(tmp_path.glob("store/*/journal.jsonl")).read_text().splitlines()]
    assert kinds.count("step_completed") == 1
    assert kinds.count("memory_applied") == 1
