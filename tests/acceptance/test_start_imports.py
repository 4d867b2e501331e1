"""Commands that only look start fast: they load nothing that they do not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.cli.main import COMPLETE_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"anthropic", "genai_prices", "httpx2", "pydantic", "pydantic_core", "rich", "sqlite3", "tenacity"}


def loaded_by(*arguments: str, cwd: Path, **variables: str) -> set[str]:
    """The top-level packages that a command imports, seen from outside."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    result = subprocess.run(
        [sys.executable, "-P", "-X", "importtime", "-m", "pipeline", *arguments],
        cwd=cwd,
        env={**env, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    lines = [line for line in result.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize("arguments", [["--help"], ["list", "--store", "files:none"], ["lessons", "--help"]])
def test_command_loads_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    loaded = loaded_by(*arguments, cwd=tmp_path)

    assert "click" in loaded
    assert loaded & HEAVY == set()


def test_completion_loads_nothing_heavy(tmp_path: Path) -> None:
    words = {"COMP_WORDS": "pipeline.sh lessons --", "COMP_CWORD": "2"}
    loaded = loaded_by(cwd=tmp_path, **{COMPLETE_VARIABLE: "bash_complete"}, **words)

    assert "click" in loaded
    assert loaded & HEAVY == set()
