"""`run` and `mark-done`: a pipeline of the user's own, in DOT or in Python, with the same runs, costs and progress."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from pipeline.app.run_list import row_of, way_on
from pipeline.app.stores import head_of, open_store, place_of, run_folder
from pipeline.app.words import count
from pipeline.cli.options import F, NamedPath, common_options, own_option, run_argument
from pipeline.cli.progress import Quiet
from pipeline.cli.results import watched
from pipeline.cli.run_options import EXECUTION, options_of, settings_options
from pipeline.cli.text import table, tell
from pipeline.engine.events import Event
from pipeline.engine.people import Answer, Question
from pipeline.records.values import read_json

if TYPE_CHECKING:
    from pipeline.app.run_dot import DotOptions
    from pipeline.app.run_plan import RunPlan
    from pipeline.settings import Execution

#: Where an execution log goes that is asked for without a name.
_EXECUTION_LOG = Path("execution.log.json")
_FOLDER = NamedPath()
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

    def __init__(self, display: Quiet) -> None:
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


@click.command("run")
@click.argument("target", type=click.Path(), metavar="FILE.dot|FILE.py[:NAME]", required=False)
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", envvar="PIPELINE_PARAM", show_envvar=True,
              help="A parameter; JSON values are parsed. Repeatable. "
              "With --resume of a FILE.py:NAME: one that the run does not have yet.")  # fmt: skip
@click.option("--resume-from", metavar="DIR|RUN", help="The same as --resume.")
@dot_options
@settings_options(
    "accept_changes", *EXECUTION, "dry_run",
    dry_run="Show the nodes, who answers and what a resume finds done; run, record and send nothing.",
    accept_changes="Continue with a changed graph or model; work that this affects is run again.",
    model="A model, FILE.py:NAME of your own, or offline: stand-in answers for $0.00.  "
    "[default: claude-sonnet-5-5 with a credential; without one, graphs that call a model are refused]",
)  # fmt: skip
@click.pass_context
def run(ctx: click.Context, /, target: str | None, params: tuple[str, ...], **_: Any) -> int:
    """Run your own pipeline: a graph in FILE.dot, or the object NAME (or the only Pipeline) in FILE.py.

    Every start is a new run; --resume continues one: a run of the store, or the folder of a run. State is
    saved after every node, and every paid reply before it is used: a run may be stopped or killed at any moment.
    """
    asked, execution, how = options_of(ctx)
    values = dict(read_param(text) for text in params)
    resume = execution.resume or ctx.params["resume_from"]
    if target is None and resume is None:
        raise click.UsageError("Missing FILE.dot or FILE.py (or --resume RUN).")
    if target is None or not is_python(target):
        from pipeline.app.run_dot import run_dot as start_dot

        dot = dot_options_of(ctx, resume)
        if execution.dry_run:
            from pipeline.app.run_plan import plan_dot

            return _show(plan_dot(target, resume, asked, execution, simulate=dot.simulate), as_json=how.json)
        folder = dot.run_dir or (run_folder(str(dot.resume), execution.store or None) if dot.resume else None)
        place = execution if folder is None else kept_in(execution, f"files:{os.path.abspath(folder)}")
        return watched(place, how, lambda shown, ask: start_dot(
            target, params=values, asked=asked, execution=execution, dot=dot, listener=shown, confirm=ask,
            interviewer=None if how.json else Person(cast(Quiet, shown)),
        ))  # fmt: skip
    refuse_dot_options(ctx)
    if resume:
        name, store = place_of(resume, execution.store or None)
        execution = replace(execution, resume=name)
        if store and store != execution.store:
            execution = kept_in(execution, store)
    if execution.dry_run:
        from pipeline.app.run_plan import plan_file

        return _show(plan_file(target, asked, execution), as_json=how.json)
    from pipeline.app.run_file import run_file

    return watched(execution, how, lambda shown, ask: run_file(
        target, params=values, asked=asked, execution=execution, listener=shown, confirm=ask
    ))  # fmt: skip


def kept_in(execution: Execution, store: str) -> Execution:
    """Return a start whose run is kept in another store."""
    return replace(execution, store=store, given=execution.given | {"store"})


def _show(plan: RunPlan, *, as_json: bool) -> int:
    """Print what a start would do."""
    rows = [[each.node, each.does + (f": {each.command}" if each.command else ""), each.status] for each in plan.nodes]
    lines = [f"{plan.pipeline}: {count(len(plan.nodes), 'node')}" + (f", resuming run {plan.run}" if plan.run else "")]
    lines += [table(["Node", "What it does", "So far"] if plan.run else ["Node", "What it does"],
                    rows if plan.run else [row[:2] for row in rows])]  # fmt: skip
    if plan.model:
        missing = "" if plan.credential else "; no credential is set yet (ANTHROPIC_API_KEY)"
        lines.append(f"Model: {plan.model}{missing}")
    ceiling = "there is no ceiling" if plan.ceiling_usd is None else f"the ceiling is ${plan.ceiling_usd}"
    lines.append(f"Its cost is known as it runs; {ceiling}.")
    if plan.permissions:
        lines.append(f"It needs --allow-tools, for {', '.join(plan.permissions)}.")
    tell([plan.to_json()], [*lines, "Nothing was run, recorded or sent."], as_json=as_json)
    return 0


#: The same command by the name that the Attractor family knows.
run_dot = copy.copy(run)
run_dot.name = "run_dot"


def is_python(target: str) -> bool:
    """Return whether FILE.py:NAME or FILE.py was given; not a DOT file."""
    file, _, name = target.rpartition(":")
    return target.endswith(".py") or file.endswith(".py") or (bool(file) and name.isidentifier())


def read_param(text: str) -> tuple[str, Any]:
    """Return KEY=VALUE as (key, value): a number, true, null, list or object as JSON says, else the text itself.

    Raises:
        click.UsageError: There is no "=", or nothing before it.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"Invalid --param {text!r}; use KEY=VALUE.")
    try:
        return name.strip(), read_json(value)
    except ValueError:
        return name.strip(), value


@click.command("mark-done")
@run_argument
@click.argument("step")
@own_option("mark-done", "--output", "outputs", multiple=True, metavar="KEY=VALUE",
            help="An output of the step, for the steps after it. Repeatable.")  # fmt: skip
@own_option("mark-done", "--file", "target", type=click.Path(), metavar="FILE.py:NAME",
            help="The code of your own pipeline.")  # fmt: skip
@common_options
def mark_done(
    run: str, step: str, outputs: tuple[str, ...], target: str | None, as_json: bool, store: str | None
) -> None:
    """Mark STEP as completed: it was interrupted, but its side effects have happened."""
    from pipeline.app import travel

    place = open_store(store)
    name = travel.mark_done(place, run, step, dict(read_param(text) for text in outputs), target)
    resume = way_on(row_of(head_of(place, name)), store)
    lines = [f"{step}: recorded as completed", f"Resume: {resume}"]
    tell([{"run": name, "step": step, "resume": resume}], lines, as_json=as_json)
