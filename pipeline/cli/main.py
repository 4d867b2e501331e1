"""The command line's root: commands, each loaded only when it is called."""

from __future__ import annotations

import importlib
import io
import os
import platform
import sys
from collections.abc import Sequence
from typing import cast

import click
from click.shell_completion import CompletionItem, shell_complete

from pipeline import __version__, environment
from pipeline.cli import errors
from pipeline.cli.options import name_store
from pipeline.cli.text import PROGRAM, is_of_stdout, stdout_refused, warn
from pipeline.engine.stop import end_process_after_stop, end_process_on_signal
from pipeline.errors import PipelineError, RunInterrupted
from pipeline.providers import variables

COMPLETE_VARIABLE = "_PIPELINE_COMPLETE"

#: Command → module, attribute, what it does. `--help` and completion read only this.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "lessons": ("pipeline.cli.lessons", "lessons", "Make a course, or resume one: seed, sow, lessons, publish."),
    "courses": ("pipeline.cli.courses", "courses", "Make many courses, one per line of a CSV file."),
    "list": ("pipeline.cli.runs", "list_runs", "List runs, newest first."),
    "status": ("pipeline.cli.status", "status", "Show one run: its steps, its cost and how to resume it."),
    "show": ("pipeline.cli.status", "show", "Show what a step or one of its items made."),
    "budget": ("pipeline.cli.budget", "budget", "Limit what runs spend per day, week or month, for all or by label."),
    "cost": ("pipeline.cli.cost", "cost", "Show what was spent, wasted and saved."),
    "log": ("pipeline.cli.records", "log", "Print a run's records; --follow waits for more."),
    "traces": ("pipeline.cli.records", "traces", "Send a run's traces to an OpenTelemetry collector."),
    "ui": ("pipeline.cli.ui", "ui", "Serve the desk in the browser: watch, steer and review runs."),
    "history": ("pipeline.cli.history", "history", "List a run's checkpoints: where each led, and what it set."),
    "diff": ("pipeline.cli.history", "diff", "Show how two runs, or two points of runs, differ."),
    "why": ("pipeline.cli.history", "why", "Explain why a step or item ran, or was reused."),
    "replay": ("pipeline.cli.fork", "replay", "Run a run's graph again on its recorded replies alone."),
    "fork": ("pipeline.cli.fork", "fork", "Start a new run from a checkpoint of another."),
    "run": ("pipeline.cli.run", "run", "Run your own pipeline: a graph in FILE.dot, or FILE.py."),
    "run_dot": ("pipeline.cli.run", "run_dot", "Another name for run."),
    "gates": ("pipeline.cli.gates", "gates", "List questions that await an answer."),
    "answer": ("pipeline.cli.gates", "answer", "Answer an open question of a run."),
    "validate": ("pipeline.cli.dot", "validate", "Check whether a DOT pipeline can be run; list its commands."),
    "parse": ("pipeline.cli.dot", "parse", "Show what a DOT file contains: nodes, edges, attributes."),
    "handlers": ("pipeline.cli.dot", "handlers", "List the kinds of nodes a DOT pipeline may have."),
    "draw": ("pipeline.cli.dot", "draw", "Draw a DOT pipeline, or a run with statuses and costs."),
    "subjects": ("pipeline.cli.subjects", "subjects", "List the courses of the catalogue; check or start a new one."),
    "bank": ("pipeline.cli.bank", "bank", "Check and show topics of the question bank."),
    "mark-done": ("pipeline.cli.run", "mark_done", "Mark an interrupted step as completed."),
    "review": ("pipeline.cli.review", "review", "Review the lessons of a course: approve, edit, have made again."),
    "export": ("pipeline.cli.export", "export", "Write a course as worksheets, slides, quizzes, cards or tables."),
    "redo": ("pipeline.cli.lessons", "redo", "Make one lesson again, with a note, and publish again."),
    "batches": ("pipeline.cli.batches", "batches", "List the batches that runs have submitted."),
    "cancel": ("pipeline.cli.batches", "cancel", "Cancel a run's batches at the provider."),
    "settle": ("pipeline.cli.settlement", "settle", "Close an open charge with what was billed."),
    "cleanup": ("pipeline.cli.store", "cleanup", "Remove old runs; their cost stays on the account."),
    "delete": ("pipeline.cli.store", "delete", "Delete runs permanently; their cost stays on the account."),
    "recover": ("pipeline.cli.store", "recover", "Append the records of an emergency file to a run."),
    "store": ("pipeline.cli.store", "store", "Inspect the store, find damage, copy runs to another store."),
    "extras": ("pipeline.cli.completion", "extras", "List optional packages and whether they are installed."),
    "completion": ("pipeline.cli.completion", "completion", "Print a shell's completion script."),
}

EPILOG = """\b
Examples:
  ./pipeline.sh lessons --subject mathematics --level national_5
  ./pipeline.sh lessons --resume latest
  ./pipeline.sh list --resumable
  ./pipeline.sh cost latest --by step
  ./pipeline.sh install ui       optional packages for a command; extras lists them

\b
Exit codes:
  0 done, 1 unexpected, 2 wrong option, setting or file, 3 run store,
  4 model, 5 spending ceiling, 6 a step failed, 7 publishing,
  8 waits for a person, 9 the executor is gone, 75 waits for a batch, 130 interrupted
"""


class HelpText(click.HelpFormatter):
    """Help whose commands can be typed."""

    def getvalue(self) -> str:
        return environment.typed(super().getvalue())


click.Context.formatter_class = HelpText


class LazyGroup(click.Group):
    """Know the commands' names and purposes without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "help":
            return _help
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        return cast(click.Command, getattr(importlib.import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in (*COMMANDS, "help") and not ctx.resilient_parsing:
            import difflib

            if near := difflib.get_close_matches(args[0], COMMANDS, 1):
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]}?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, purpose) for name, (_, _, purpose) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [(name, purpose) for name, (_, _, purpose) in COMMANDS.items() if name.startswith(incomplete)]
        items = [CompletionItem(name, help=purpose) for name, purpose in names]
        return items + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=LazyGroup, epilog=EPILOG, invoke_without_command=True, context_settings={"max_content_width": 100})
@click.option("--version", is_flag=True, help="Show the versions of this program and of its Python.")
@click.pass_context
def root(ctx: click.Context, version: bool) -> None:
    """Make lessons with Claude: resumable at any moment, never paid twice, always accounted for."""
    if version:
        click.echo(f"course-pipeline {__version__} (Python {platform.python_version()}, {sys.prefix})")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@click.command("help")
@click.argument("command", required=False)
@click.pass_context
def _help(ctx: click.Context, command: str | None) -> None:
    """Show this help, or a command's."""
    parent = ctx.find_root()
    if command is None:
        click.echo(parent.get_help())
        return
    found = root.get_command(parent, command)
    if found is None:
        raise click.UsageError(f"No such command {command!r}.", parent)
    click.echo(found.get_help(click.Context(found, info_name=command, parent=parent)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; return its exit code."""
    for name in ("stdin", "stdout", "stderr"):
        # Where the caller closed one, the next file opened would get its number, and the output meant for a screen.
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    load_env_file()
    if arguments is None:
        end_process_after_stop()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code
    except OSError as error:
        return stdout_refused(error) if is_of_stdout(error) else errors.report(error)
    except (KeyboardInterrupt, click.Abort) as error:
        if arguments is None:
            end_process_on_signal()
        return errors.report(error)
    except (Exception, RunInterrupted) as error:
        return errors.report(error)


def _run(arguments: list[str]) -> int:
    # click's own main would end a broken pipe with exit code 1, and look for its variable under another name.
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return shell_complete(root, {}, PROGRAM, COMPLETE_VARIABLE, instruction)
    try:
        with root.make_context(PROGRAM, arguments) as context:
            try:
                result = root.invoke(context)
            except PipelineError as error:
                name_store(error)
                raise
    except click.exceptions.Exit as end:
        return end.exit_code
    return result if isinstance(result, int) else 0


def load_env_file() -> None:
    """Take variables that are not set from `.env` beside pipeline.sh; its contents are never printed."""
    folder = environment.home()
    try:
        pairs, bad = environment.read_env_file(folder / ".env")
    except OSError as error:
        pairs, bad = {}, []
        if COMPLETE_VARIABLE not in os.environ:
            warn(f".env cannot be read and was ignored: {error.strerror or error}.")
    for option in environment.PATHS:
        name = str(environment.VARIABLES[option])
        if value := pairs.get(name):
            from pipeline.store.address import anchored

            # The same file means the same wherever the program is started.
            pairs[name] = anchored(value, folder) if option == "store" else str(folder / value)
    if value := pairs.get(environment.HOME):
        pairs[environment.HOME] = str(folder / os.path.expanduser(value))
    for name, value in pairs.items():
        os.environ.setdefault(name, value)
    if COMPLETE_VARIABLE in os.environ:
        return
    if bad:
        warn(f".env: line {', '.join(map(str, bad))} is not NAME=value and was ignored.")
    for name, meant in environment.mistyped(pairs, COMMANDS, variables()):
        warn(f".env: {name} is no setting of this program; did you mean {meant}?")
