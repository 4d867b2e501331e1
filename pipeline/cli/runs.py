"""`list`: which runs there are."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import click

from pipeline.cli.options import json_option, open_list, open_store, own, store_option
from pipeline.cli.summary import CORRUPT, STATUSES, UNFINISHED, Row, row_json, row_of
from pipeline.cli.text import heading, one_line, say, say_json, table, when
from pipeline.cli.where import named, shown_in
from pipeline.lessons.names import known_subject, subject_name
from pipeline.records.statuses import COMPLETED, FAILED, IN_PROGRESS
from pipeline.store.base import Listable
from pipeline.store.names import JOURNAL
from pipeline.store.place import has_password, store_words

#: Rows shown unless --limit says otherwise.
DEFAULT_LIMIT = 50
#: More rows than any store has; islice takes no number beyond a machine word.
_MOST = 10**9
#: How many runs the closing hint names.
_HINTS = 5
_ROOM = re.compile(r" --max-cost-usd [0-9.]+$")
_PARAM = re.compile(r" --param \S+=VALUE$")


class Statuses(click.ParamType[frozenset[str]]):
    """One or more statuses, separated by commas."""

    name = "status"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        if isinstance(value, frozenset):
            return value
        names = frozenset(part.strip().lower().replace("-", "_") for part in str(value).split(","))
        for name in sorted(names - set(STATUSES)):
            self.fail(f"{name!r} is no status; there are {', '.join(STATUSES)}.", param, ctx)
        return names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        return click.Choice(STATUSES).shell_complete(ctx, param, incomplete)


@click.command("list")
@click.option("--status", type=Statuses(), envvar=own("list", "status"), show_envvar=True, metavar="STATUS[,STATUS]",
              help="Only runs with one of these; in_progress means all of its details.")  # fmt: skip
@click.option("--subject", envvar=own("list", "subject"), show_envvar=True, metavar="NAME",
              help="Only runs of this subject; aliases count.")  # fmt: skip
@click.option("--resumable", is_flag=True, envvar=own("list", "resumable"), show_envvar=True,
              help="Only runs that can be resumed.")  # fmt: skip
@click.option("--verbose", "-v", is_flag=True, envvar=own("list", "verbose"), show_envvar=True,
              help="Also times, last and next step, and the error.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), default=DEFAULT_LIMIT, envvar=own("list", "limit"), metavar="N",
              show_envvar=True, show_default=True, help="At most N runs; 0: all.")  # fmt: skip
@json_option
@store_option
def list_runs(
    status: frozenset[str] | None, subject: str | None, resumable: bool, verbose: bool, limit: int, as_json: bool,
    store: str | None,
) -> None:  # fmt: skip
    """List runs, newest first."""
    place = open_list(store)
    wanted = _subject(place, subject) if subject else None
    rows = find(place, status=status, subject=wanted, resumable=resumable)
    shown = list(islice(rows, min(limit, _MOST) or None))
    if as_json:
        for row in shown:
            say_json(row_json(row))
        return
    say(heading("PIPELINE RUNS"))
    say()
    if not shown:
        say(_nothing(store, filtered=bool(status or subject or resumable)))
        return
    say(render(shown, verbose=verbose))
    if limit and len(shown) == limit and next(rows, None) is not None:
        newest = "The newest run is" if limit == 1 else f"The newest {limit} are"
        say(f"\n{newest} shown; --limit 0 shows all.")
    for line in hints(shown, store):
        say(line)


def _subject(store: Listable, text: str) -> str:
    """The subject meant: one that is known, or one that a run of this store has: an own catalogue's, a thread's."""
    if name := known_subject(text):
        return name
    wanted = text.strip().lower().replace("-", "_").replace(" ", "_")
    heads = store.heads(lambda document: document.get("subject") in (text, wanted))
    own = next((str(head.document["subject"]) for head in heads if not head.corrupt), "")
    return own if own == text else subject_name(text, more=[own] if own else [])


def find(store: Listable, *, status: frozenset[str] | None, subject: str | None, resumable: bool) -> Iterator[Row]:
    """Rows of the runs asked for, newest first, lazily."""
    for head in store.heads(_match(UNFINISHED if resumable else status, subject)):
        row = row_of(head)
        if status is not None and not _has_status(row, status):
            continue
        if subject is not None and not _same_subject(row.subject, subject):
            continue
        if not resumable or row.resumable:
            yield row


def _match(status: frozenset[str] | None, subject: str | None) -> Callable[[Mapping[str, Any]], bool] | None:
    """What the document alone can rule out, so that the store need not look further."""
    if subject is None and (status is None or CORRUPT in status):
        return None

    def match(document: Mapping[str, Any]) -> bool:
        if subject is not None and not _same_subject(str(document.get("subject") or ""), subject):
            return False
        stored = document.get("status")
        return status is None or stored in status or stored == IN_PROGRESS

    return match


def _has_status(row: Row, wanted: frozenset[str]) -> bool:
    return row.status in wanted or (row.detail is not None and row.detail in wanted)


def _same_subject(found: str, wanted: str) -> bool:
    return found == wanted or known_subject(found) == wanted


def render(rows: list[Row], *, verbose: bool) -> str:
    """The table."""
    head = ["Run ID", "Subject", "Level", "Status", "Steps", "Cost"]
    # What others name a run by, such as a thread's id, may be of any length.
    cells = [[row.run_id, one_line(row.subject or row.pipeline, 40) or "-", one_line(row.level, 40) or "-",
              row.shown_status, row.steps, row.cost] for row in rows]  # fmt: skip
    if any(row.parent for row in rows):
        head.append("Fork of")
        for line, row in zip(cells, rows, strict=True):
            line.append(row.parent or "-")
    if verbose:
        head += ["Started", "Updated", "Last step", "Next step", "Error"]
        for line, row in zip(cells, rows, strict=True):
            line += [when(row.started_at), when(row.updated_at), row.last_step or "-", row.next_step or "-",
                     one_line(row.error, 60) or "-"]  # fmt: skip
    return table(head, cells)


def hints(rows: list[Row], store: str | None) -> list[str]:
    """The newest runs that can be gone on with, and how."""
    found = [row for row in rows if row.resumable and row.status != COMPLETED][:_HINTS]
    if not found:
        return []
    return ["", "Go on with:", *(f"  {way_on(row, store)}" for row in found)]


def way_on(row: Row, store: str | None, more: str = "") -> str:
    """The command that continues a run, with what else it needs and nobody has stored, as a remark behind it.

    Args:
        more: Options that this run needs besides.
    """
    needs = [each for each in (row.needs, "PGPASSWORD" if store and has_password(store) else "") if each]
    remark = f"  # give again: {', '.join(needs)}" if needs else ""
    return f"{resume_command(row, store)}{more}{remark}"


def resume_command(row: Row, store: str | None) -> str:
    """The command that continues a run of the store that was named, or of the default one."""
    if row.pipeline == "layers":
        # Layered DAGs are run from Python.
        return f'ControlledExecutor(tools=…, store=…).resume_from_checkpoint("{row.run_id}")'
    unknown = f"run {shlex.quote(row.target)}" if row.target else "run FILE.py:NAME"
    verb = "lessons" if row.pipeline in ("", "lessons") else unknown
    if row.command.startswith("./pipeline.sh run "):
        verb = row.command.removeprefix("./pipeline.sh ").partition(" --resume ")[0]
    if store and verb != "lessons" and os.path.lexists(os.path.join(store.removeprefix("files:"), JOURNAL)):
        return f"./pipeline.sh {verb} --resume {shlex.quote(store.removeprefix('files:'))}"
    place = store_words(store) if store else ""
    executor = f" --executor {shlex.quote(row.executor)}" if row.executor else ""
    return f"./pipeline.sh {verb} --resume {row.run_id}{place}{executor}{_more_room(row)}"


def _more_room(row: Row) -> str:
    """The higher ceiling, or the missing parameter, that the run's last owner named when it stopped; else ""."""
    found = _ROOM.search(row.command) if row.detail == "paused_budget" else None
    found = found or (_PARAM.search(row.command) if row.status == FAILED else None)
    return found[0] if found else ""


def _nothing(store: str | None, *, filtered: bool) -> str:
    place = open_store(store)
    if named(store) and not place.is_there():
        said = f"There is no store at {place.url} yet."
    elif filtered:
        return "No run matches."
    else:
        said = f"No runs yet{shown_in(store)}."
    return f"{said} Start one: ./pipeline.sh lessons --subject mathematics --level national_5{named(store)}"
