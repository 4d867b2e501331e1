"""A run as one row, whichever program wrote its head document: what `list` shows, and the command that resumes it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.app.stores import open_list
from pipeline.clock import parse_iso
from pipeline.errors import CatalogueError, ConfigError
from pipeline.records.statuses import COMPLETED, DETAILS, FAILED, IN_PROGRESS, PENDING, SKIPPED

if TYPE_CHECKING:
    from pipeline.store.base import Head, Listable

CORRUPT = "corrupt"
#: What `--status` takes.
STATUSES = (PENDING, IN_PROGRESS, COMPLETED, FAILED, *DETAILS, CORRUPT)
#: What can be resumed.
UNFINISHED = frozenset({PENDING, IN_PROGRESS, FAILED})
#: How a run stands whose process ended without a word.
GONE = "process is gone"
#: status_detail → word.
_DETAILS: Mapping[str, str] = {
    "running": "running",
    "interrupted": "interrupted",
    "paused_budget": "stopped at the ceiling",
    "paused_rate_limit": "paused by a rate limit",
    "paused_spend_limit": "stopped by the account's limit",
    "waiting_for_human": "waits for a person",
    "waiting_for_batch": "waits for a batch",
    "stopped_as_asked": "stopped as asked",
}
#: The pipeline of runs that hold threads of LangGraph: they have no steps.
LANGGRAPH = "langgraph"
#: Steps of a document that does not say how many it has: the original system's.
_SEED_STEPS = 4
#: The higher ceiling, or the missing parameter, that the run's last owner named when it stopped.
_ROOM, _PARAM = re.compile(r" --max-cost-usd [0-9.]+$"), re.compile(r" --param \S+=VALUE$")


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run; texts are "" where nothing is known."""

    run_id: str
    pipeline: str
    subject: str
    level: str
    #: pending, in_progress, completed, failed, corrupt.
    status: str
    #: running, interrupted, …; None where there is nothing more to say.
    status_detail: str | None
    #: Nodes that completed or were skipped, each once however often a loop visited it.
    steps_completed: int
    steps_total: int
    #: Of the completed: nodes of a completed run that its route did not reach.
    steps_skipped: int
    #: Nodes of a completed run whose failure led on by an edge.
    steps_failed: int
    cost_usd: float
    #: What open intervals may add; None: no upper bound known.
    possibly_usd: float | None
    unpriced_calls: int
    started_at: str
    updated_at: str
    last_completed_step: str
    next_step: str
    error: str
    #: Unfinished, readable, and owned by no living process.
    resumable: bool
    #: The run it was forked from.
    parent: str
    # Down to here: what `list --json` has.
    #: A living process owns it.
    owned: bool = False
    #: It was running when its process ended without a word.
    gone: bool = False
    #: Who writes: a model's id, or offline.
    author: str = ""
    #: seq of the last record that this tells of; 0: not known.
    seq: int = 0
    #: When the last step of a completed run ended: later records, such as reviews, are no work on it.
    completed_at: str = ""
    #: Seconds that its completed steps were worked on, pauses left out; 0: not known.
    worked_seconds: float = 0.0
    #: Records are missing that may have held calls: the cost is a lower bound.
    at_least: bool = False
    #: Of a run that has no steps of ours: how many checkpoints of another system it holds.
    checkpoints: int | None = None
    #: The command to resume it as its last owner gave it.
    command: str = ""
    #: What was run (FILE.dot, FILE.py:NAME), where that is recorded.
    target: str = ""
    #: Permissions that it was last started with, by the names of their options; a resume needs them again.
    needs: str = ""
    #: Where its map items were last run, as --executor names it.
    executor: str = ""

    @property
    def shown_status(self) -> str:
        """Return the status, or the detail where the run is not running."""
        return self.status if self.status_detail in (None, "running") else self.status_detail

    @property
    def lasted(self) -> float | None:
        """Return for how long a completed run was worked on, else how long ago it began when last heard of (s)."""
        try:
            seconds = (parse_iso(self.completed_at or self.updated_at) - parse_iso(self.started_at)).total_seconds()
        except ValueError:
            return None
        # Steps side by side take no longer than the run.
        return min(self.worked_seconds or seconds, seconds) if self.completed_at else seconds

    def to_json(self) -> dict[str, Any]:
        """Return the object of `list --json`."""
        names = RunRow.__slots__[: RunRow.__slots__.index("parent") + 1]
        return {name: None if (value := getattr(self, name)) == "" else value for name in names}


def row_of(head: Head) -> RunRow:
    """Return the row of a head; a corrupt one has what little is known."""
    document = head.document
    # Of a corrupt run the sums of its last head are the least that is known.
    sums = head.known if head.corrupt else document
    status = CORRUPT if head.corrupt else str(document.get("status") or PENDING)
    ended = document.get("completed_steps") or ()
    done = len({str(step.get("step")).partition("#")[0] for step in ended})
    nodes, threads = document.get("nodes"), document.get("pipeline") == LANGGRAPH
    total = len(nodes) if nodes else 0 if threads else max(_SEED_STEPS, done)

    def text(name: str, source: Mapping[str, Any] = document) -> str:
        value = source.get(name)
        return "" if value is None else str(value)

    return RunRow(
        run_id=head.run_id,
        pipeline=text("pipeline"),
        subject=text("subject"),
        level=text("level"),
        status=status,
        status_detail=document.get("status_detail") if status == IN_PROGRESS else None,
        steps_completed=done,
        steps_total=total,
        steps_skipped=sum(step.get("status") == SKIPPED for step in ended),
        steps_failed=max(total - done, 0) if status == COMPLETED else int(status == FAILED),
        cost_usd=sums.get("total_cost_usd") or 0,
        possibly_usd=None if sums.get("unbounded_calls") or head.known else sums.get("possibly_spent_usd") or 0,
        unpriced_calls=sums.get("unpriced_calls") or 0,
        started_at=text("started_at"),
        updated_at=text("updated_at"),
        last_completed_step=text("last_completed_step"),
        next_step=text("next_step"),
        error=head.corrupt or text("error"),
        resumable=status in UNFINISHED and not head.owned,
        parent=text("run", document.get("parent") or {}),
        owned=head.owned,
        gone=head.gone,
        author=text("model", document.get("identity") or {}) or text("author"),
        seq=document.get("seq") or 0,
        completed_at=max((str(step.get("completed_at") or "") for step in ended), default="")
        if status == COMPLETED
        else "",
        worked_seconds=sum(took for step in ended if isinstance(took := step.get("duration_seconds"), int | float)),
        at_least=bool(sums.get("holes") or head.known),
        checkpoints=document.get("checkpoints") if threads else None,
        command=text("resume_command"),
        target=text("target"),
        needs=text("needs"),
        executor=text("executor"),
    )


def run_word(status: str, detail: str | None, *, gone: bool = False) -> str:
    """Return how a run stands in the words of the pages.

    Args:
        gone: It counts as running, and no living process owns it.
    """
    if status == CORRUPT:
        return "cannot be read"
    if status != IN_PROGRESS:
        return status
    return GONE if gone else _DETAILS.get(detail or "", "running" if detail is None else detail)


def find(store: str | None, *, status: frozenset[str] | None, subject: str, resumable: bool) -> Iterator[RunRow]:
    """Return the runs asked for, newest first, lazily.

    Args:
        subject: A name or alias; "": any.
    """
    place = open_list(store)
    if subject:
        _check_subject(place, subject)

    def is_wanted(found: str) -> bool:
        from pipeline.content.names import same_subject

        return same_subject(found, subject)

    for head in place.heads(_match(UNFINISHED if resumable else status, is_wanted if subject else None)):
        row = row_of(head)
        has_status = status is None or row.status in status or row.status_detail in status
        if has_status and (not subject or is_wanted(row.subject)) and (row.resumable or not resumable):
            yield row


def _check_subject(store: Listable, text: str) -> None:
    """Refuse a subject that is not known, and that no run of this store has.

    Raises:
        CatalogueError: Names the nearest.
    """
    from pipeline.content.names import SUBJECTS, known_subject, nearest, same_subject

    its = store.heads(lambda document: same_subject(str(document.get("subject") or ""), text))
    if known_subject(text) or any(not head.corrupt for head in its):
        return
    guess = nearest(text, SUBJECTS)
    raise CatalogueError(
        f"No run has the subject {text!r}." + (f" Did you mean {guess}?" if guess else ""),
        code="unknown_subject",
        hint="`./pipeline.sh list` shows all runs.",
        text=text,
        nearest=guess,
    )


def _match(
    status: frozenset[str] | None, is_wanted: Callable[[str], bool] | None
) -> Callable[[Mapping[str, Any]], bool] | None:
    """Return what the document alone can rule out, so that the store need not look further."""
    if is_wanted is None and (status is None or CORRUPT in status):
        return None

    def match(document: Mapping[str, Any]) -> bool:
        if is_wanted is not None and not is_wanted(str(document.get("subject") or "")):
            return False
        stored = document.get("status")
        return status is None or stored in status or stored == IN_PROGRESS

    return match


def way_on(row: RunRow, store: str | None, more: str = "") -> str:
    """Return the command that resumes a run, with a remark on what must be given again because it is never stored.

    Args:
        more: Options that this run needs besides.
    """
    from pipeline.store.address import has_password

    needs = [each for each in (row.needs, "PGPASSWORD" if store and has_password(store) else "") if each]
    remark = f"  # give again: {', '.join(needs)}" if needs else ""
    return f"{resume_command(row, store)}{more}{remark}"


def resume_command(row: RunRow, store: str | None) -> str:
    """Return the command that resumes a run of the store that was named, or of the default one."""
    from pipeline.store.address import folder_of, store_words
    from pipeline.store.names import JOURNAL

    if row.pipeline == "layers":
        # Layered DAGs are run from Python.
        return f'ControlledExecutor(tools=…, store=…).resume_from_checkpoint("{row.run_id}")'
    verb = _verb(row) or "run FILE.py:NAME"
    folder = folder_of(store) if store else None
    if folder is not None and verb != "lessons" and os.path.lexists(folder / JOURNAL):
        return f"./pipeline.sh {verb} --resume {shlex.quote(str(folder))}"
    more = _ROOM.search(row.command) if row.status_detail == "paused_budget" else None
    more = more or (_PARAM.search(row.command) if row.status == FAILED else None)
    executor = f" --executor {shlex.quote(row.executor)}" if row.executor else ""
    place = store_words(store) if store else ""
    return f"./pipeline.sh {verb} --resume {row.run_id}{place}{executor}{more[0] if more else ''}"


def _verb(row: RunRow) -> str:
    """Return the command that makes runs such as this one, and its target; "": it is not known."""
    if row.command.startswith("./pipeline.sh run "):
        return row.command.removeprefix("./pipeline.sh ").partition(" --resume ")[0]
    if row.pipeline in ("", "lessons"):
        return "lessons"
    return f"run {shlex.quote(row.target)}" if row.target and row.pipeline != LANGGRAPH else ""


def resume_arguments(row: RunRow, more: Sequence[str] = ()) -> list[str]:
    """Return the program's arguments that resume a run of the store which its environment names, without asking.

    Args:
        more: Options that a person gives besides, such as a permission or a higher ceiling.

    Raises:
        ConfigError: It is not resumed by a command, or needs more that only a person can give; data["needs"].
    """
    verb = "" if row.pipeline == "layers" else _verb(row)
    if not verb:
        raise ConfigError(f"Run {row.run_id} is resumed by the program that made it.", code="resume_by_program",
                          hint=f"From Python: {resume_command(row, None)}")  # fmt: skip
    room = ["--max-cost-usd"] if row.status_detail == "paused_budget" else []
    param = _PARAM.search(row.command) if row.status == FAILED else None
    asked = [*row.needs.split(), *room, *(["--param"] if param else [])]
    given = {word.partition("=")[0] for word in more}
    if needs := [option for option in asked if option not in given]:
        hint = "Resume it at a terminal, with the command that its page shows."
        hint = "Raise its ceiling on its own page." if needs == room else hint
        raise ConfigError(f"Run {row.run_id} needs {' and '.join(needs)} to go on.", code="resume_needs_more",
                          hint=hint, needs=needs)  # fmt: skip
    executor = ["--executor", row.executor] if row.executor else []
    return [*shlex.split(verb), "--resume", row.run_id, *executor, *more, "--yes"]
