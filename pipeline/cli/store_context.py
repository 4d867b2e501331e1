"""Which store a command looks at: named in what is said of missing runs, where it is not the default one."""

from __future__ import annotations

from typing import Any

import click

from pipeline import environment
from pipeline.cli.text import PROGRAM
from pipeline.errors import PipelineError, RunNotFound

_KEY = "pipeline.store"
#: Makes the first run of a store; the store's words follow where it is not the default one.
FIRST_RUN = f"{PROGRAM} lessons --subject mathematics --level national_5"


def remember(ctx: click.Context, _: click.Parameter, value: Any) -> Any:
    """Note the value of --store; a callback of click."""
    look_at(ctx, value)
    return value


def look_at(ctx: click.Context, url: str | None) -> None:
    """Note the store that a command looks at."""
    ctx.meta[_KEY] = url


def _url() -> str | None:
    ctx = click.get_current_context(silent=True)
    found: str | None = ctx.meta.get(_KEY) if ctx is not None else None
    return found


def store_words_here() -> str:
    """Return ` --store URL` of the store that the command looks at, without a password; "" for the default one."""
    url = _url()
    if not url:
        return ""
    from pipeline.store.address import anchored, store_words

    return "" if anchored(url) == environment.default_store() else store_words(url)


def here() -> str:
    """Return ` in URL` of the store that the command looks at; "" for the default one."""
    return store_words_here().replace(" --store ", " in ", 1)


def name_store(error: PipelineError) -> None:
    """Name the store in the error of a run that was not found, and the command that lists it; idempotent.

    Where the store holds no run at all, the hint is the command that makes one.
    """
    data = error.data
    if (
        not isinstance(error, RunNotFound)
        or error.code != RunNotFound.code
        or "run" not in data
        or "candidates" in data
    ):
        return
    words = store_words_here()
    if words and words not in error.hint:
        error.args = (f"{error.message.removesuffix('.')}{here()}.",)
    nothing = data["run"] == "latest" and data.get("pipeline") in (None, "lessons")
    error.hint = f"`{FIRST_RUN}{words}` makes one." if nothing else f"`{PROGRAM} list{words}` shows the runs there are."
