"""The options of `run` that only DOT pipelines have, and a person at the terminal for their questions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.displays import EventDisplay
from pipeline.cli.options import F
from pipeline.engine.events import Event
from pipeline.engine.people import Answer, Question

if TYPE_CHECKING:
    from pipeline.app.run_dot import DotOptions

#: Where an execution log goes that is asked for without a name.
_EXECUTION_LOG = Path("execution.log.json")
_FOLDER = click.Path(path_type=Path)
#: Option, metavar, help, and what else click is told; one without a metavar is a flag.
_OPTIONS: tuple[tuple[str, str | None, str, dict[str, Any]], ...] = (
    ("--run-dir", "DIR", "Keep the run in this folder: records, checkpoints, prompts and replies.", {"type": _FOLDER}),
    ("--simulate", None, "Run the graph without any model.", {}),
    ("--auto-approve", None, "Answer questions to people automatically: with the default, else a yes, else the first "
     "choice that is not a no.", {}),
    ("--allow-tools", None, "Permit the graph to run shell commands.", {}),
    ("--rerun-current", None, "With --resume: run the last finished node again.", {}),
    ("--resume-fidelity", "MODE", "How much earlier context the first node after a resume is given: compact "
     "(default), summary:high, …", {}),
    ("--agent-cmd", "COMMAND", "Command that answers prompts, read from its stdin; needs --allow-tools.", {}),
    ("--stage-dir", "DIR", "Folder where commands and agents write outcome.json.", {"type": _FOLDER}),
    ("--execution-log", "[PATH]", "Also write run_dot's execution.log.json at the end.",
     {"type": _FOLDER, "is_flag": False, "flag_value": _EXECUTION_LOG}),
)  # fmt: skip
#: Those that permit or ask for one act, so they have no variable.
_ACTS = frozenset({"--auto-approve", "--allow-tools", "--rerun-current"})
_NAMES = tuple(option.removeprefix("--").replace("-", "_") for option, *_ in _OPTIONS)


def dot_options(command: F) -> F:
    """Add the options of DOT pipelines to a command."""
    for (option, metavar, text, more), name in reversed(list(zip(_OPTIONS, _NAMES, strict=True))):
        if option not in _ACTS:
            more = {"envvar": f"PIPELINE_{name.upper()}", "show_envvar": True, **more}
        if metavar is None:
            more = {"is_flag": True, **more}
        command = click.option(option, metavar=metavar, help=text, **more)(command)
    return command


def dot_options_of(ctx: click.Context, resume: str | None) -> DotOptions:
    """Return what a command line says of a DOT pipeline; run_dot's own variables count if it says nothing."""
    from pipeline.app.run_dot import DotOptions

    values = {name: ctx.params[name] for name in _NAMES}
    log = os.environ.get("ATTRACTOR_EXECUTION_LOG", "").strip()
    stage_dir = os.environ.get("ATTRACTOR_STAGE_DIR", "")
    known = {
        "agent_cmd": os.environ.get("ATTRACTOR_AGENT_CMD") or None,
        "stage_dir": Path(stage_dir) if stage_dir else None,
        "execution_log": _EXECUTION_LOG if log.lower() in ("1", "true") else Path(log) if log else None,
    }
    return DotOptions(resume=resume, **{**values, **{name: values[name] or known[name] for name in known}})


def refuse_dot_options(ctx: click.Context) -> None:
    """Refuse them if no DOT file is run.

    Raises:
        click.UsageError: One is given.
    """
    for name in _NAMES:
        if ctx.params[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} is for DOT files.")


class Person:
    """A person at the terminal, who is asked while the display leaves the screen alone."""

    def __init__(self, display: EventDisplay) -> None:
        from pipeline.formats.attractor.handlers.interviewers import Console

        self._display = display
        self._console = Console()

    def __call__(self, event: Event) -> None:
        """Hear that the run is stopping."""
        self._console(event)

    def ask(self, question: Question) -> Answer | None:
        """Return the answer; None if there is none."""
        with self._display.paused():
            return self._console.ask(question)
