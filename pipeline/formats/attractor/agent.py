"""A command of the user's own that answers prompts in the place of the model (run_dot's --agent-cmd).

It reads the prompt from stdin; what it prints is the reply; an outcome.json it leaves is the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.formats.attractor.handlers import shell
from pipeline.formats.attractor.handlers.left import astray, cleared, marks, read_outcome
from pipeline.formats.attractor.outcome import NodeOutcome, failure

#: Where such commands leave their outcome, if nobody says otherwise.
STAGE_DIR = ".attractor"
_MOST_REASON = 2000


class AgentCommand:
    """The backend of nodes whose prompts a command answers; branches that run at once have a folder each."""

    #: It acts outside the run: one that was cut off is not asked again without a person's word.
    effect = "external"
    #: Of a node it reads nothing but its id and its time limit.
    reads_nodes = False

    def __init__(self, command: str, folder: Path, workdir: Path, own: str = "") -> None:
        self.command = command
        self._shared = folder
        self._folder = folder / own if own else folder
        self._workdir = workdir

    def apart(self, name: str, workdir: Path) -> AgentCommand:
        """The same for one visit.

        Args:
            name: Of its own folder, where others run beside it; "": it has the whole one.
            workdir: Where the command runs.
        """
        return AgentCommand(self.command, self._shared, workdir, name)

    def run(self, node: Any, prompt: str, context: Mapping[str, Any]) -> str | NodeOutcome:
        """The command's answer: its output, or the outcome it left."""
        places = {
            "PIPELINE_NODE": node.id,
            "PIPELINE_NODE_DIR": str(self._folder),
            "ATTRACTOR_STAGE_DIR": str(self._folder),
        }
        before = marks(self._shared)
        cleared(self._folder)
        done = shell.run(
            self.command, cwd=self._workdir, environment=shell.environment(places), seconds=node.seconds("timeout"),
            text=prompt,
        )  # fmt: skip
        said = read_outcome(self._folder) or astray(self._shared, self._folder, before)
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
