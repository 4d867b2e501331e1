"""Programs of Node that others wrote, run by the scripts beside this; devops/check.sh installs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

#: Where devops/check.sh puts what package.json beside this names.
PACKAGES = Path(sys.prefix) / "judges" / "node_modules"


def judge(script: str, package: str, given: Any) -> Any:
    """What a script prints of what it is given, both as JSON; the test is skipped where its package is not there."""
    if not (PACKAGES / package).is_dir():
        pytest.skip(f"{package} is not installed: devops/check.sh --judges")
    command = ["node", str(Path(__file__).parent / script), str(PACKAGES / package)]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2_000]
    return json.loads(done.stdout)


def not_set(formulas: Iterable[str]) -> list[str]:
    """The formulas that KaTeX does not set, each with its reason."""
    found: list[str] = judge("katex.cjs", "katex", sorted(set(formulas)))
    return found
