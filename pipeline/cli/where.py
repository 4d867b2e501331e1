"""Which store a command looks at: told, where it is not the default one, in what is said of runs that are missing."""

from __future__ import annotations

from typing import Any

import click

from pipeline import environment
from pipeline.cli.text import PROGRAM
from pipeline.errors import PipelineError, RunNotFound
from pipeline.store.place import anchored, store_words

_KEY = "pipeline.store"
#: How the hint of a run that is not there ends, whoever gives it.
_LISTED = "shows the runs there are."
#: The run that is meant where none is named, as store.reading spells it (which `--help` need not load).
_LATEST = "latest"
_COURSES = "lessons"
#: What makes the first run of a store; its words for another store than the default one follow.
FIRST_RUN = f"{PROGRAM} lessons --subject mathematics --level national_5"


def remember(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
    """The callback of --store."""
    look_at(ctx, value)
    return value


def look_at(ctx: click.Context, url: str | None) -> None:
    """Note the store that a command looks at."""
    ctx.meta[_KEY] = url


def named(url: str | None) -> str:
    """` --store URL` of another store than the default one, without a password; else ""."""
    return "" if not url or anchored(url) == environment.default_store() else store_words(url)


def shown_in(url: str | None) -> str:
    """` in URL` for a sentence on another store than the default one; else ""."""
    return named(url).replace(" --store ", " in ", 1)


def here() -> str:
    """As `shown_in`, of the store that the command looks at."""
    return shown_in(_looked_at())


def store_words_here() -> str:
    """` --store URL` of the store that the command looks at, where it is not the default one; else ""."""
    return named(_looked_at())


def name_store(error: PipelineError) -> None:
    """Have the error of a run that is not there say in which store it is not, and how to list that one; idempotent.

    Where there is none at all, there is nothing to list: it says how to make one.
    """
    url = _looked_at()
    if not (isinstance(error, RunNotFound) and error.hint.endswith(_LISTED)):
        return
    words = named(url)
    if words and words not in error.hint:
        error.args = (f"{error.message.removesuffix('.')}{shown_in(url)}.",)
    course = error.data.get("run") == _LATEST and error.data.get("pipeline") in (None, _COURSES)
    error.hint = f"`{FIRST_RUN}{words}` makes one." if course else f"`list{words}` {_LISTED}"


def _looked_at() -> str | None:
    ctx = click.get_current_context(silent=True)
    found: str | None = ctx.meta.get(_KEY) if ctx is not None else None
    return found
