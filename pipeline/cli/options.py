"""Options and arguments that several commands share, with their environment variables."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from pipeline import environment
from pipeline.app.stores import open_list, place_of, words_of
from pipeline.cli.text import PROGRAM
from pipeline.errors import CatalogueError, ConfigError, PipelineError, RunNotFound

F = TypeVar("F", bound=Callable[..., Any])
_KEY = "pipeline.store"
#: Makes the first run of a store; the store's words follow where it is not the default one.
FIRST_RUN = f"{PROGRAM} lessons --subject mathematics --level national_5"
#: Commands that look at a store: those of all runs, and those that a run may follow.
OF_RUNS = (
    "budget list",
    "budget remove",
    "budget set",
    "cleanup",
    "courses",
    "list",
    "store info",
    "store upgrade",
    "ui",
)
OF_A_RUN = (
    "answer", "batches", "cancel", "cost", "delete", "diff", "draw", "export", "fork", "gates", "history", "lessons",
    "log", "mark-done", "recover", "redo", "replay", "review", "run", "run_dot", "settle", "show", "status",
    "store check", "traces", "why",
)  # fmt: skip
#: Such a command in a hint, up to its run, that names no store and no folder of a run's own: most hints are of those
#: who do not know its words.
_NAMES_NO_STORE = re.compile(
    rf"\./pipeline\.sh (?:(?:{'|'.join(OF_RUNS)})\b|(?:{'|'.join(OF_A_RUN)})\b(?: (?:--resume )?\w[\w-]*(?![\w.:/-]))?)"
    r"(?![\w-])(?! ['\"]?[/~][^`;\n ]*(?: |$)(?!--resume))(?![^`;\n]* --(?:store |run-dir |resume ['\"]?[/~]))"
)


class NamedPath(click.Path[Path]):
    """A file or folder; "", as a shell gives for a variable that is not set, is refused, not the current folder."""

    def __init__(self, *, dir_okay: bool = True, allow_dash: bool = False) -> None:
        super().__init__(path_type=Path, dir_okay=dir_okay, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if value == "":
            name = param.opts[0] if param and param.param_type_name == "option" else self.name.upper()
            raise ConfigError(f"{name} is empty; give the path of a file or folder.", code="empty_path")
        return super().convert(value, param, ctx)


class RunName(click.ParamType[str]):
    """A run's id, a unique prefix of it, or `latest`."""

    name = "run"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if os.sep in incomplete or incomplete.startswith((".", "~")):
            return [CompletionItem(incomplete, type="dir")]
        try:
            names = (head.run_id for head in open_list(ctx.params.get("store")).heads())
            found = [name for name in names if name.startswith(incomplete)]
        except (PipelineError, OSError):
            return []
        return [CompletionItem(name) for name in [*found[:50], "latest"] if name.startswith(incomplete)]


class OneOf(click.ParamType[str]):
    """A name that is completed from a list; its reader decides whether it is valid."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        self.name = name
        self._names = tuple(names)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self._names if name.startswith(incomplete)]


class CourseName(OneOf):
    """The name of a subject or level: a usual one, one of the catalogue, or any other."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from pipeline.lessons.catalogue import Catalogue

        own: set[str] = set()
        with suppress(CatalogueError):
            own = {getattr(file, self.name) for file in Catalogue(ctx.params.get("catalogue")).files()}
        usual = super().shell_complete(ctx, param, incomplete)
        known = {item.value for item in usual}
        return [*usual, *(CompletionItem(name) for name in sorted(own - known) if name.startswith(incomplete))]


def run_argument(command: F) -> F:
    """Add the argument RUN: a run of the store, or the folder of a run."""
    return click.argument("run", type=RunName(), metavar="RUN")(in_its_folder(command))


def in_its_folder(command: F) -> F:
    """Hand a command whose RUN is a folder that run's own id, and the folder as its store."""

    @functools.wraps(command)
    def placed(*args: Any, run: str | None, store: str | None, **rest: Any) -> Any:
        if run is not None:
            run, store = place_of(run, store)
        return command(*args, run=run, store=store, **rest)

    return cast(F, placed)


def common_options(command: F) -> F:
    """Add --store and --json."""
    told = environment.typed("Where runs are kept.  [default: files:devops/checkpoints beside pipeline.sh]")
    store = click.option("--store", envvar=environment.VARIABLES["store"], metavar="URL", callback=remember, help=told,
                         show_envvar=True)  # fmt: skip
    return json_option(store(command))


def json_option(command: F) -> F:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, envvar=environment.VARIABLES["json"], show_envvar=True,
                        help="One JSON object per line on stdout.")(command)  # fmt: skip


def own_option(command: str, *names: str, **details: Any) -> Callable[[F], F]:
    """Add an option that only one command has, with its variable PIPELINE_COMMAND_NAME."""
    long = next(name for name in names if name.startswith("--"))
    variable = f"PIPELINE_{command}{long[1:]}".upper().replace("-", "_")
    return click.option(*names, envvar=variable, show_envvar=True, **details)


# --- which store a command looks at: named in what is said of it, where it is not the default one ----------


def remember(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
    """Note the value of --store; a callback of click."""
    look_at(ctx, value)
    return value


def look_at(ctx: click.Context, url: str | None) -> None:
    """Note the store that a command looks at."""
    ctx.meta[_KEY] = url


def store_words_here() -> str:
    """Return ` --store URL` of the store that the command looks at, without a password; "" for the default one."""
    ctx = click.get_current_context(silent=True)
    return words_of(ctx.meta.get(_KEY) if ctx is not None else None)


def here() -> str:
    """Return ` in URL` of the store that the command looks at; "" for the default one."""
    return store_words_here().replace(" --store ", " in ", 1)


def name_store(error: PipelineError) -> None:
    """Name the store in an error: in the commands of its hint, and where its run was not found; idempotent.

    Where the store holds no run at all, the hint is the command that makes one.
    """
    data, words = error.data, store_words_here()
    unnamed = bool(words) and words not in error.hint
    if words:
        error.hint = _NAMES_NO_STORE.sub(lambda command: command[0] + words, error.hint)
    if error.code != RunNotFound.code or "run" not in data or "candidates" in data:
        return
    if unnamed:
        error.args = (f"{error.message.removesuffix('.')}{here()}.",)
    nothing = data["run"] == "latest" and data.get("pipeline") in (None, "lessons")
    error.hint = f"`{FIRST_RUN}{words}` makes one." if nothing else f"`{PROGRAM} list{words}` shows the runs there are."
