"""Runs of dying_steps.py in a folder: started in processes of their own, gone on with anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pipeline.clock import SystemClock
from pipeline.records.run import RunState
from pipeline.store.files import FileStore
from pipeline.store.reader import load
from tests.documents import ROOT
from tests.said import Cli, Said

STEPS = Path(__file__).with_name("dying_steps.py")
KILLED = -9


class Acting:
    """One store, and the folder in which steps note what they do."""

    def __init__(self, home: Path, root: Path, cli: Cli) -> None:
        self.home = home
        self.store = FileStore(root, SystemClock())
        self._cli = cli

    def order(self, *names: str) -> None:
        """Let a step die or fail: die-STEP, fail-STEP, …."""
        for name in names:
            (self.home / name).touch()

    def withdraw(self, name: str) -> None:
        (self.home / name).unlink()

    def ran(self) -> list[str]:
        """The steps that acted since the last time this was asked, in order."""
        return self._noted("ran")

    def asked(self) -> list[str]:
        """What a scripted model was asked, likewise."""
        return self._noted("asked")

    def _noted(self, name: str) -> list[str]:
        path = self.home / name
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def process(self, *arguments: str) -> subprocess.Popen[str]:
        """A process of its own: `run FILE.py:NAME …`, or the program itself."""
        return subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def started(self, name: str) -> subprocess.Popen[str]:
        return self.process("-m", "pipeline", "run", f"{STEPS}:{name}", "--quiet")

    def start(self, name: str) -> int:
        """A new run in a process of its own; its exit code, or minus the signal that ended it."""
        return self.end(self.started(name))

    def program(self, what: str) -> int:
        """Start or resume with what the command line cannot give; the exit code."""
        return self.end(self.process(str(STEPS), what))

    def end(self, process: subprocess.Popen[str]) -> int:
        process.communicate()
        return process.returncode

    def resume(self, name: str, *more: str) -> Said:
        """Go on with the newest run through the command line, in this process."""
        return self._cli("run", f"{STEPS}:{name}", "--resume", "latest", "--quiet", *more)

    def killed_again(self, name: str) -> int:
        """Go on with the newest run in a process of its own."""
        return self.end(self.process("-m", "pipeline", "run", f"{STEPS}:{name}", "--resume", "latest", "--quiet"))

    @property
    def run(self) -> str:
        return next(head.run_id for head in self.store.heads())

    @property
    def state(self) -> RunState:
        return load(self.store, self.run)

    def output(self, step: str) -> object:
        """The text a step's newest visit gave."""
        return [run.outputs.get("text") for run in self.state.steps.values() if run.node == step][-1]
