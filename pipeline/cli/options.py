"""Options and arguments that several commands share, with their environment variables."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from pipeline import environment
from pipeline.cli.where import remember
from pipeline.clock import SystemClock
from pipeline.errors import PipelineError
from pipeline.store.folder import FolderBackend
from pipeline.store.head import HEAD
from pipeline.store.heads import Listing
from pipeline.store.names import JOURNAL
from pipeline.store.place import folder_of

if TYPE_CHECKING:
    from pipeline.store.backend import Backend, Tip
    from pipeline.store.base import Account, Head, Listable, Store

F = TypeVar("F", bound=Callable[..., Any])


class RunName(click.ParamType[str]):
    """A run's id, a unique prefix of it, or `latest`."""

    name = "run"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if os.sep in incomplete or incomplete.startswith((".", "~")):
            return [CompletionItem(incomplete, type="dir")]
        try:
            heads = open_list(ctx.params.get("store")).heads()
            names = (head.run_id for head in heads)
            found = [name for name in names if name.startswith(incomplete)]
        except (PipelineError, OSError):
            return []
        return [CompletionItem(name) for name in [*found[:50], "latest"] if name.startswith(incomplete)]


class OneOf(click.ParamType[str]):
    """A name that is completed from a list; whether it is a name is decided by who reads it."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        self.name = name
        self._names = tuple(names)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self._names if name.startswith(incomplete)]


class FileAndName(click.ParamType[str]):
    """FILE.py:NAME; the shell completes the file."""

    name = "target"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def open_store(url: str | None) -> Store:
    """The store named by `--store`, or the one beside pipeline.sh."""
    from pipeline.store import url as places

    return places.open_store(url or environment.default_store())


def open_account(url: str | None) -> Account:
    """The spending account of the same store."""
    from pipeline.store import url as places

    return places.open_account(url or environment.default_store())


def open_list(url: str | None) -> Listable:
    """The runs of the same store, only to be looked over: what reads records is loaded when a run needs it."""
    folder = folder_of(url or environment.default_store())
    if folder is None or os.path.lexists(folder / JOURNAL):
        return open_store(url)
    return Listing(FolderBackend(folder, SystemClock()), _rebuild)


def _rebuild(backend: Backend, tip: Tip) -> Head | None:
    from pipeline.store import head_rebuild

    return head_rebuild.rebuild(backend, tip)


def run_argument(command: F) -> F:
    """The argument RUN: a run of the store, or the folder of a run."""
    return click.argument("run", type=RunName(), metavar="RUN")(in_its_folder(command))


def in_its_folder(command: F) -> F:
    """Hand a command whose RUN is a folder that run's own id, and the folder as its store."""

    @functools.wraps(command)
    def placed(*args: Any, run: str | None, store: str | None, **rest: Any) -> Any:
        if run is not None:
            run, store = place_of(run, store)
        return command(*args, run=run, store=store, **rest)

    return cast(F, placed)


def place_of(run: str, store: str | None) -> tuple[str, str | None]:
    """A run and its store as they were named; where a folder was named, the id of its run and the folder's URL."""
    folder = run_folder(run, store)
    if folder is None:
        return run, store
    from pipeline.store.run_folder import RunFolder

    return RunFolder(folder, SystemClock()).run_id, f"files:{folder}"


def run_folder(run: str, store: str | None) -> Path | None:
    """The folder of a run that a text names; None: it names a run of the store, or nothing."""
    path = Path(os.path.expanduser(run))
    if os.sep not in run and not run.startswith((".", "~")):
        root = folder_of(store or environment.default_store())
        # A name alone is first one of the store's.
        if not run or (root is not None and os.path.lexists(root / run)):
            return None
    if any(os.path.lexists(path / name) for name in (JOURNAL, HEAD)):
        return path.absolute()
    return None


def store_option(command: F) -> F:
    """--store."""
    return click.option(
        "--store",
        envvar=environment.VARIABLES["store"],
        metavar="URL",
        callback=remember,
        help="Where runs are kept.  [default: files:devops/checkpoints beside pipeline.sh]",
        show_envvar=True,
    )(command)


def json_option(command: F) -> F:
    """--json."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        envvar=environment.VARIABLES["json"],
        show_envvar=True,
        help="One JSON object a line on stdout.",
    )(command)


def own(command: str, name: str) -> str:
    """The variable of an option that only one command has: PIPELINE_COMMAND_NAME."""
    return f"PIPELINE_{command}_{name}".upper().replace("-", "_")
