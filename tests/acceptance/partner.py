"""A process beside the tests that takes one JSON object a line and answers each with one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Partner:
    """The process; `program` is the path of its script."""

    def __init__(self, program: Path) -> None:
        command = [sys.executable, str(program)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Hand over an order; its first answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process beside the tests died"
        answered: dict[str, Any] = json.loads(line)
        return answered

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(300) == 0
        self._process.stdout.close()
