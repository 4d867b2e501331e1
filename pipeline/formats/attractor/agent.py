"""A command of the user's own that answers prompts in the place of the model (run_dot's --agent-cmd).

It reads the prompt from stdin; what it prints is the reply; an outcome.json it leaves is the outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.formats.attractor.handlers import shell
from pipeline.formats.attractor.handlers.tool import read_outcome
from pipeline.formats.attractor.outcome import NodeOutcome, failure

#: Where such commands leave their outcome, if nobody says otherwise.
STAGE_DIR = ".attractor"
_MOST_REASON = 2000


class AgentCommand:
    """The backend of nodes whose prompts a command answers; one at a time, for they share a folder."""

    #: It acts outside the run: one that was cut off is not asked again without a person's word.
    effect = "external"

    def __init__(self, command: str, folder: Path, workdir: Path) -> None:
        self.command = command
        self._folder = folder
        self._workdir = workdir
        self._turn = threading.Lock()

    def run(self, node: Any, prompt: str, context: Mapping[str, Any]) -> str | NodeOutcome:
        """The command's answer: its output, or the outcome it left."""
        places = {
            "PIPELINE_NODE": node.id,
            "PIPELINE_NODE_DIR": str(self._folder),
            "ATTRACTOR_STAGE_DIR": str(self._folder),
        }
        with self._turn:
            self._folder.mkdir(parents=True, exist_ok=True)
            for name in ("outcome.json", "status.json"):
                (self._folder / name).unlink(missing_ok=True)
            done = shell.run(
                self.command, cwd=self._workdir, environment=shell.environment(places),
                seconds=node.seconds("timeout"), text=prompt,
            )  # fmt: skip
            said = read_outcome(self._folder)
        if done.timed_out:
            return failure(f"The agent did not end within {node.seconds('timeout'):g} s.", "transient_infra")
        if done.exit_code:
            words = (done.stderr.strip() or done.stdout.strip())[-_MOST_REASON:]
            return failure(
                f"The agent ended with exit code {done.exit_code}: {words}", outputs={"response": done.stdout}
            )
        if said is None:
            return done.stdout
        return replace(said, outputs={**said.outputs, "response": done.stdout})
