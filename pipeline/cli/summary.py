"""A run as one row: what `list` shows of a head document, whoever wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.cli.text import money, with_unpriced
from pipeline.records.statuses import COMPLETED, DETAILS, FAILED, IN_PROGRESS, PENDING, SKIPPED
from pipeline.store.base import Head

if TYPE_CHECKING:
    from pipeline.records.run import RunState

CORRUPT = "corrupt"
#: What `--status` takes.
STATUSES = (PENDING, IN_PROGRESS, COMPLETED, FAILED, *DETAILS, CORRUPT)
#: What can be gone on with.
UNFINISHED = frozenset({PENDING, IN_PROGRESS, FAILED})
#: Steps of a document that does not say how many it has: the original system's.
_SEED_STEPS = 4
#: The pipeline of runs that hold threads of LangGraph: they have no steps.
LANGGRAPH = "langgraph"
#: Their graphs call models by themselves.
UNKNOWN_SPEND = "Spent:   not known here: a LangGraph graph makes its calls itself"


@dataclass(frozen=True, slots=True)
class Row:
    """One run."""

    run_id: str
    pipeline: str
    subject: str
    level: str
    #: pending, in_progress, completed, failed, corrupt.
    status: str
    #: running, interrupted, …; None where there is nothing more to say.
    detail: str | None
    done: int
    total: int
    cost_usd: float
    #: What open intervals may add; None: no upper bound known.
    possibly_usd: float | None
    unpriced: int
    started_at: str
    updated_at: str
    last_step: str
    next_step: str
    error: str
    owned: bool
    #: The command to go on as the run's last owner gave it, "" if unknown.
    command: str = ""
    #: What was run (FILE.dot, FILE.py:NAME), where that is recorded.
    target: str = ""
    #: Permissions that it was last started with, by the names of their options; a resume needs them again.
    needs: str = ""
    #: Where the items of its maps were last done, as --executor names it; "": where it was started.
    executor: str = ""
    #: The run it was forked from; "": from none.
    parent: str = ""
    #: Of `done`: nodes of a completed run that its route did not come by.
    skipped: int = 0
    #: Records are missing that may have told of calls: the cost is at least what is said.
    at_least: bool = False
    #: Of a run that has no steps of ours: how many checkpoints of another system it holds.
    kept: int | None = None

    @property
    def shown_status(self) -> str:
        """The status, or the detail where the run is not running."""
        return self.status if self.detail in (None, "running") else self.detail

    @property
    def failed(self) -> int:
        """Nodes of a completed run whose failure led on by an edge."""
        return max(self.total - self.done, 0) if self.status == COMPLETED else 0

    @property
    def steps(self) -> str:
        """3/4; of a completed run also what has failed on its way, and what its way did not come by."""
        if self.status == CORRUPT:
            return "-"
        if self.kept is not None:
            return f"{self.kept} kept"
        told = [f"{number} {word}" for number, word in ((self.failed, "failed"), (self.skipped, "not taken")) if number]
        return f"{self.done - self.skipped}/{self.total}" + (f" ({', '.join(told)})" if told else "")

    @property
    def resumable(self) -> bool:
        """It can be gone on with now: unfinished, readable, owned by nobody."""
        return self.status in UNFINISHED and not self.owned

    @property
    def cost(self) -> str:
        """$1.85; with a + where more may have been spent; calls without a price; - where others keep the books."""
        if self.kept is not None:
            return "-"
        if self.at_least:
            return with_unpriced(f"at least {money(self.cost_usd)}", self.unpriced)
        more = self.possibly_usd is None or self.possibly_usd > 0
        return with_unpriced(money(self.cost_usd) + ("+" if more else ""), self.unpriced)


def thread_line(state: RunState) -> str:
    """What a run says in place of its steps that holds a thread of LangGraph; "" for any other run."""
    if state.pipeline != LANGGRAPH:
        return ""
    thread = state.params.get("subject")
    return f"It holds the LangGraph thread {thread!r}; `get_state_history` of its graph shows the checkpoints."


def row_of(head: Head) -> Row:
    """The row of a head; a corrupt one has what little is known."""
    document = head.document
    # Of a corrupt run the sums of its last head are the least that is known.
    told = head.known if head.corrupt else document
    status = CORRUPT if head.corrupt else str(document.get("status") or PENDING)
    detail = document.get("status_detail") if status == IN_PROGRESS else None
    return Row(
        run_id=head.run_id,
        pipeline=_text(document, "pipeline"),
        subject=_text(document, "subject"),
        level=_text(document, "level"),
        status=status,
        detail=detail,
        done=len(_done(document)),
        total=steps_of(document),
        cost_usd=told.get("total_cost_usd") or 0,
        possibly_usd=None if told.get("unbounded_calls") or head.known else told.get("possibly_spent_usd") or 0,
        unpriced=told.get("unpriced_calls") or 0,
        at_least=bool(told.get("holes") or head.known),
        started_at=_text(document, "started_at"),
        updated_at=_text(document, "updated_at"),
        last_step=_text(document, "last_completed_step"),
        next_step=_text(document, "next_step"),
        error=head.corrupt or _text(document, "error"),
        owned=head.owned,
        command=_text(document, "resume_command"),
        target=_text(document, "target"),
        needs=_text(document, "needs"),
        executor=_text(document, "executor"),
        parent=_text(document.get("parent") or {}, "run"),
        skipped=sum(step.get("status") == SKIPPED for step in document.get("completed_steps") or ()),
        kept=document.get("checkpoints") if document.get("pipeline") == LANGGRAPH else None,
    )


def steps_of(document: Mapping[str, Any]) -> int:
    """How many steps the run's pipeline has."""
    nodes = document.get("nodes")
    if not nodes and document.get("pipeline") == LANGGRAPH:
        return 0
    return len(nodes) if nodes else max(_SEED_STEPS, len(_done(document)))


def _done(document: Mapping[str, Any]) -> set[str]:
    """Nodes that completed or were skipped, each once however often a loop visited it."""
    return {str(step.get("step")).partition("#")[0] for step in document.get("completed_steps") or ()}


def row_json(row: Row) -> dict[str, Any]:
    """One object of `list --json`."""
    return {
        "run_id": row.run_id,
        "pipeline": row.pipeline or None,
        "subject": row.subject or None,
        "level": row.level or None,
        "status": row.status,
        "status_detail": row.detail,
        "steps_completed": row.done,
        "steps_total": row.total,
        "steps_skipped": row.skipped,
        "steps_failed": row.failed,
        "cost_usd": row.cost_usd,
        "possibly_usd": row.possibly_usd,
        "unpriced_calls": row.unpriced,
        "started_at": row.started_at or None,
        "updated_at": row.updated_at or None,
        "last_completed_step": row.last_step or None,
        "next_step": row.next_step or None,
        "error": row.error or None,
        "resumable": row.resumable,
        "parent": row.parent or None,
    }


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    return "" if value is None else str(value)
