"""The options of `run` that only DOT pipelines have, and a person at the terminal for their questions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli.options import F
from pipeline.cli.progress.watch import Display
from pipeline.engine.events import Event
from pipeline.engine.people import Answer, Question

if TYPE_CHECKING:
    from pipeline.app.dot_answers import DotOptions

#: Parameters of `dot_options`.
NAMES = (
    "run_dir", "simulate", "auto_approve", "allow_tools", "rerun_current", "resume_fidelity", "agent_cmd", "stage_dir",
    "execution_log",
)  # fmt: skip
#: Where an execution log goes that is asked for without a name.
_EXECUTION_LOG = Path("execution.log.json")


def dot_options(command: F) -> F:
    """The options of DOT pipelines."""
    decorators: list[Callable[[F], F]] = [
        _valued("--run-dir", "DIR", "The run's own folder: its records, checkpoints, prompts and replies lie in it.",
                type=click.Path(path_type=Path)),
        _valued("--simulate", None, "Run the graph without any model.", is_flag=True),
        _act("--auto-approve", "Answer people's questions with the default, else a yes, else what does not say no."),
        _act("--allow-tools", "Let the graph run its shell commands."),
        _act("--rerun-current", "With --resume: run the node that ended last again."),
        _valued("--resume-fidelity", "MODE",
                "How much the first node after a resume is told: compact (default), summary:high, …"),
        _valued("--agent-cmd", "COMMAND", "A command that answers prompts, read from its stdin; needs --allow-tools."),
        _valued("--stage-dir", "DIR", "Where commands and agents leave their outcome.json.",
                type=click.Path(path_type=Path)),
        _valued("--execution-log", "[PATH]", "Also write run_dot's execution.log.json at the end.",
                type=click.Path(path_type=Path), is_flag=False, flag_value=_EXECUTION_LOG),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def _act(name: str, help: str) -> Callable[[F], F]:
    """An option that permits or asks for one act, so it has no variable."""
    return click.option(name, is_flag=True, help=help)


def _valued(name: str, metavar: str | None, help: str, **more: Any) -> Callable[[F], F]:
    variable = f"PIPELINE_{name.removeprefix('--')}".upper().replace("-", "_")
    return click.option(name, metavar=metavar, help=help, envvar=variable, show_envvar=True, **more)


def dot_options_of(ctx: click.Context, resume: str | None) -> DotOptions:
    """What a command line says of a DOT pipeline; run_dot's own variables count where it says nothing."""
    from pipeline.app.dot_answers import DotOptions

    values = {name: ctx.params[name] for name in NAMES}
    log = os.environ.get("ATTRACTOR_EXECUTION_LOG", "").strip()
    known = {
        "agent_cmd": os.environ.get("ATTRACTOR_AGENT_CMD") or None,
        "stage_dir": _path(os.environ.get("ATTRACTOR_STAGE_DIR", "")),
        "execution_log": _EXECUTION_LOG if log.lower() in ("1", "true") else _path(log),
    }
    return DotOptions(resume=resume, **{**values, **{name: values[name] or known[name] for name in known}})


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def refuse_dot_options(ctx: click.Context) -> None:
    """Refuse them where no DOT file is run.

    Raises:
        click.UsageError: One is given.
    """
    for name in NAMES:
        if ctx.params[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} is for DOT files.")


class Person:
    """A person at the terminal, who is asked while the display leaves the screen alone."""

    def __init__(self, display: Display) -> None:
        from pipeline.formats.attractor.handlers.interviewers import Console

        self._display = display
        self._console = Console()

    def __call__(self, event: Event) -> None:
        """Hear that the run is stopping."""
        self._console(event)

    def ask(self, question: Question) -> Answer | None:
        """The answer; None: nobody sits there."""
        with self._display.paused():
            return self._console.ask(question)
