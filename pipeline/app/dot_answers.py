"""Who answers a DOT graph's prompts and questions in one start: a model, a simulation, an agent's command, a person."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from pipeline.app.start import Start, check_asked_model, has_credential, set_up, tell_model
from pipeline.errors import ConfigError, CredentialMissing, SettingsConflict
from pipeline.records.redaction import without_keys
from pipeline.settings import DEFAULT_MODEL, OFFLINE, LessonsOptions

if TYPE_CHECKING:
    from pipeline.engine.people import Interviewer
    from pipeline.engine.setup import Setup
    from pipeline.formats.attractor.runner import CompiledGraph
    from pipeline.records.run import RunState

#: The author of a run that asks no model.
_SIMULATION = "simulation"
#: Variables in which an agent's command is found again.
_AGENT_VARIABLES = ("PIPELINE_AGENT_CMD", "ATTRACTOR_AGENT_CMD")
#: A name that a command gives a value: --name, NAME=.
_NAMED = re.compile(r"--?([A-Za-z][\w-]*)|([A-Za-z_]\w*)=")


@dataclass(frozen=True, slots=True, kw_only=True)
class DotOptions:
    """What only DOT pipelines are started with."""

    #: The run's own folder; None: it lies in the store.
    run_dir: Path | None = None
    #: A run of the store, or a folder with a run or another system's checkpoint.
    resume: str | None = None
    simulate: bool = False
    auto_approve: bool = False
    allow_tools: bool = False
    #: Run the node that ended last again.
    rerun_current: bool = False
    #: How much the first node after a resume is told; None: compact.
    resume_fidelity: str | None = None
    #: A command that answers prompts in the place of the model.
    agent_cmd: str | None = None
    #: Where commands and agents leave their outcome.json.
    stage_dir: Path | None = None
    #: Where execution.log.json is written at the end; None: nowhere.
    execution_log: Path | None = None


class Answers:
    """Who answers, as this start's options and the run say."""

    def __init__(self, options: LessonsOptions, dot: DotOptions, interviewer: Interviewer | None) -> None:
        self._options = options
        self._dot = dot
        self._interviewer = interviewer

    @property
    def simulates(self) -> bool:
        """Whether no model is to be asked."""
        return self._dot.simulate or self._options.model == OFFLINE

    def stays_simulated(self, state: RunState) -> bool:
        """Whether a run that is gone on with asks no model.

        Raises:
            SettingsConflict: It asks one, and now it is not to.
        """
        simulated = state.identity.get("author") == _SIMULATION
        if self.simulates and not simulated:
            raise SettingsConflict(
                f"Run {state.run_id} is answered by {state.identity.get('model') or 'no model'}; it is not simulated.",
                hint="Leave --simulate out, or start a new run.",
            )
        return simulated

    def changes(self, state: RunState) -> dict[str, Any]:
        """Another model than the pinned one, given now.

        Raises:
            SettingsConflict: It is given without --accept-changes, or for a simulated run.
        """
        asked, pinned = self._options.model, state.identity.get("model")
        if asked in (None, OFFLINE, pinned) or "model" not in self._options.given:
            return {}
        if state.identity.get("author") == _SIMULATION:
            raise SettingsConflict(
                f"Run {state.run_id} is simulated; no model answers in it.", hint="Start a new run without --simulate."
            )
        if pinned is not None and not self._options.accept_changes:
            raise SettingsConflict(
                f"Run {state.run_id} was made with --model {pinned}, but {asked} is given now.",
                hint="Leave the option out to go on as it was, or --accept-changes to make again what it touches.",
            )
        return {"model": asked}

    def model(self, graph: CompiledGraph, pinned: str | None, *, simulate: bool) -> str:
        """The model to set up; "": none is needed.

        Raises:
            CredentialMissing: The graph asks a model, and no credential is set.
        """
        nodes = [] if simulate or self._dot.agent_cmd else graph.asking_nodes()
        if not nodes:
            return ""
        if self._options.model:
            check_asked_model(self._options.model)
        if not has_credential():
            shown = ", ".join(nodes[:5]) + (", …" if len(nodes) > 5 else "")
            raise CredentialMissing(
                f"This graph asks a model ({shown}), and no credential is set.",
                hint="Set ANTHROPIC_API_KEY (in the environment or in .env beside pipeline.sh); "
                "--simulate runs it without any model.",
            )
        return pinned or self._options.model or DEFAULT_MODEL

    def identity(self, setup: Setup) -> dict[str, Any]:
        """What decides the work of a new run."""
        if setup.options["simulate"]:
            return {"author": _SIMULATION}
        return {"model": setup.info.id, "author": setup.info.author} if setup.info else {}

    def set_up(self, start: Start, model: str, recorded: Mapping[str, Any], *, simulate: bool) -> Setup:
        """What a go at the graph works with.

        Raises:
            CredentialMissing, ModelError, BudgetExceeded, ConfigError: Before any step.
        """
        from pipeline.dot.attributes import FIDELITIES

        dot = self._dot
        if dot.resume_fidelity is not None and dot.resume_fidelity not in FIDELITIES:
            raise ConfigError(f"--resume-fidelity is {dot.resume_fidelity!r}; it can be {', '.join(FIDELITIES)}.")
        setup = set_up(start, model, recorded)
        workdir = str(recorded.get("workdir") or os.getcwd())
        stage_dir = recorded.get("stage_dir") if dot.stage_dir is None else str(dot.stage_dir.absolute())
        setup.options = {
            **setup.options, "simulate": simulate, "allow_tools": dot.allow_tools, "auto_approve": dot.auto_approve,
            "resume_fidelity": dot.resume_fidelity, "workdir": workdir,
            "stage_dir": stage_dir, "needs": " ".join(self._permissions()) or None,
        }  # fmt: skip
        setup.services = {
            name: value for name, value in self._services(Path(workdir), stage_dir, simulate).items() if value
        }
        tell_model(start, setup)
        return setup

    def _permissions(self) -> list[str]:
        """Options of this start that permit something, so that a resume needs them again."""
        dot = self._dot
        given = {"--allow-tools": dot.allow_tools, "--agent-cmd": dot.agent_cmd, "--auto-approve": dot.auto_approve}
        return [option for option, there in given.items() if there]

    def again(self) -> str:
        """The options that a resume needs again, as they are typed: for the person who gave them, never recorded.

        A command that may hold a secret is not repeated; one that a variable holds need not be typed.
        """
        typed = self._permissions()
        command = self._dot.agent_cmd
        if command:
            held = any(os.environ.get(name) == command for name in _AGENT_VARIABLES)
            shown = "COMMAND" if may_hold_secret(command) else quote(command)
            typed = [f"{option} {shown}" if option == "--agent-cmd" else option for option in typed]
            typed = [option for option in typed if not (held and option.startswith("--agent-cmd"))]
        return "".join(f" {option}" for option in typed)

    def _services(self, workdir: Path, stage_dir: str | None, simulate: bool) -> dict[str, Any]:
        from pipeline.formats.attractor.handlers.interviewers import AutoApprove

        dot = self._dot
        return {
            "workdir": str(workdir),
            "interviewer": AutoApprove() if dot.auto_approve else self._interviewer,
            "backend": self._agent(dot.agent_cmd, workdir, stage_dir) if dot.agent_cmd and not simulate else None,
        }

    def _agent(self, command: str, workdir: Path, stage_dir: str | None) -> Any:
        from pipeline.formats.attractor.handlers.codergen import AgentCommand

        if not self._dot.allow_tools:
            raise ConfigError(
                f"--agent-cmd runs a command, which nobody has allowed:\n  {command}",
                hint="Read it; --allow-tools lets this process run it.",
            )
        return AgentCommand(command, Path(stage_dir) if stage_dir else workdir / ".attractor", workdir)


def may_hold_secret(command: str) -> bool:
    """Whether a command's text may hold a secret: something in it looks like one, or a name says so."""
    from pipeline.formats.attractor.handlers import shell

    names = [(option or variable).replace("-", "_") for option, variable in _NAMED.findall(command)]
    return without_keys(command) != command or any(map(shell.is_secret, names))
