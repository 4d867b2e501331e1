"""RunState: what a journal says so far. Filled by fold.py; read by the loop, heads, reports and the CLI.

The builder owns it and mutates it in place; everybody else gets `freeze()`d copies or reads it
under the Recorder's lock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field

from pipeline.records.charge import Spend as Spend
from pipeline.records.charge import SpendKey as SpendKey
from pipeline.records.reviews import Review
from pipeline.records.statuses import COMPLETED, IN_PROGRESS, PENDING
from pipeline.records.tasks import TaskRun as TaskRun
from pipeline.records.tasks import TaskTable as TaskTable

_VISIT = re.compile(r"#[0-9]+$")
_PIECES = re.compile(r"([^0-9]+)|([0-9]{1,18})")
T = TypeVar("T")
#: What a body can read as a whole, without a hash: the context, the tokens that came, the visits they came from.
#: What read it depends on all that led to it.
WHOLE = frozenset({"context", "arrivals", "ancestors"})


class Token(Struct, gc=False):
    """An edge chosen and not yet consumed. Replaced, never changed."""

    #: Edge id ("a->b", "a->b#2"); "" (with source ""): the start of the run.
    edge: str
    #: Path of the step visit that chose it.
    source: str
    #: seq of the record that chose it: its age.
    seq: int


class StepRun(Struct, gc=False):
    """One visit of a node. Once it has ended the fold replaces it, never changes it, so copies may share it."""

    #: node#visit frames.
    path: str
    #: Node id and visit number of the last frame.
    node: str
    visit: int
    status: str = IN_PROGRESS
    attempt: int = 1
    version: int = 1
    #: [edge id, source path] consumed.
    consumed: Sequence[Sequence[str]] = ()
    started_at: str = ""
    completed_at: str | None = None
    #: Active seconds over all attempts.
    seconds: float = 0.0
    #: Inline outputs or {"$blob": …}.
    outputs: Mapping[str, Any] = {}
    artifacts: Mapping[str, str] = {}
    context: Mapping[str, Any] = {}
    reads: Mapping[str, str] = {}
    outcome: str = ""
    edges: Sequence[str] = ()
    #: Why these edges; "" where the outcome's label says it.
    reason: str = ""
    #: {"type", "message", "hint"} of the last failed attempt; None after success.
    error: Mapping[str, Any] | None = None
    checkpoint: str = ""
    #: seq of step_started of the latest attempt, and of its end (0: open).
    started_seq: int = 0
    ended_seq: int = 0
    #: Deaths of this attempt with no call or task recorded between them.
    deaths: int = 0
    #: Hash of the source text of the user's code that made it; "": not known.
    code: str = ""


class CallRun(Struct, gc=False):
    """One try of a paid call, kept while its task attempt is unfinished. Replaced, never changed."""

    #: seq of call_started.
    seq: int
    k: int
    model: str
    label: str
    worst: Decimal | None
    at: str
    path: str
    task: str | None
    attempt: int = 1
    #: Request hash, and which of equal asks it is.
    key: str = ""
    n: int = 1
    #: None while open (unknown).
    ended: bool = False
    usable: bool = False
    #: JSON text of the reply or of its reference; None: nothing usable came.
    reply: bytes | None = None
    error: Mapping[str, Any] | None = None
    stop_reason: str | None = None
    #: seq of call_ended.
    ended_seq: int = 0
    #: Nonce of the batch it goes out in; "": by itself.
    batch: str = ""
    #: Mark of the owner that admitted it under this run's ceiling; 0: it was copied from a part.
    admitted: int = 0
    #: The request as sent: blob hash; "": not known (inherited by a fork).
    request: str = ""
    #: Who bills it; "": Anthropic.
    provider: str = ""
    #: Labels of the run when it started.
    labels: str = ""


#: The parts of a run in which all who work on it leave notices for each other, and people what they decide meanwhile.
NOTICES, REVIEW = "notices", "review"
_NONE: Mapping[int, int] = MappingProxyType({})


class Submitted(NamedTuple):
    """A task that is with an executor: its end, and its newest calls, stand in a part of the run."""

    #: The part's name.
    part: str
    #: The worker knows the run as it was at this seq.
    base: int
    attempt: int
    #: What its calls may cost at worst, all of them together (USD); None: no ceiling.
    usd: Decimal | None
    #: Calls of the part that were copied: seq there → seq here.
    copied: Mapping[int, int] = _NONE


class BatchRun(NamedTuple):
    """A batch that was submitted, or was about to be."""

    nonce: str
    #: Custom id → seq of its call_started.
    calls: Mapping[str, int]
    #: Requests in it.
    size: int
    #: When it was intended.
    at: str
    #: The provider's id of it, and when it gives up; "" while only the intent is recorded.
    batch: str = ""
    expires_at: str = ""
    #: When the provider was asked to leave the rest of it; "": it was not.
    cancelled_at: str = ""
    #: The provider's own time just before it was submitted, and when it was created; "": not recorded.
    provider_at: str = ""
    created_at: str = ""
    #: When its requests were given up to be asked again; "": they were not.
    abandoned_at: str = ""


class Remark(NamedTuple):
    """What a person said about a task that is to be made again."""

    note: str
    #: Where its former value is: inline JSON bytes, or None: read back at `seq`. seq 0: there was none.
    value: bytes | None
    seq: int


class OpenQuestion(NamedTuple):
    """A question to a person that has no answer yet."""

    #: Hash of what was shown.
    question: str
    choices: Sequence[str]
    shown: Mapping[str, Any]
    seq: int
    at: str


class Answered(NamedTuple):
    """A person's or agent's answer to one question."""

    choice: str
    note: str
    by: str
    at: str


class CheckpointMark(Struct, gc=False):
    """A checkpoint boundary, for history."""

    seq: int
    id: str
    path: str
    at: str
    #: Exact spend so far.
    usd: Decimal


class RunState(Struct):
    """Everything the records say."""

    run_id: str = ""
    pipeline: str = ""
    params: Mapping[str, Any] = {}
    identity: dict[str, Any] = {}
    execution: dict[str, Any] = {}
    pins: dict[str, str] = {}
    claim: Sequence[str] | None = None
    parent: Mapping[str, Any] | None = None
    host: Mapping[str, Any] = {}
    product: str = ""
    status: str = PENDING
    detail: str | None = None
    error: Mapping[str, Any] | None = None
    #: The command to go on, as the last owner gave it when it left; "" if none has.
    command: str = ""
    started_at: str = ""
    updated_at: str = ""
    #: seq of the last record and owner mark of the present owner.
    seq: int = 0
    owner: int = 0
    #: Position: edges chosen and not consumed, by (edge, source), oldest first.
    waiting: dict[tuple[str, str], Token] = {}
    #: Visits by path, in order of first start.
    steps: dict[str, StepRun] = {}
    #: Visits so far by node path prefix + node id.
    visits: dict[str, int] = {}
    #: Context: key → value, merged from completed steps.
    context: dict[str, Any] = {}
    #: Ended tasks: step path → task key → TaskRun.
    tasks: dict[str, MutableMapping[str, TaskRun]] = {}
    #: Replies of unfinished attempts: slot → (request hash, n) → tries.
    memo: dict[tuple[str, str | None, int], dict[tuple[str, int], list[CallRun]]] = {}
    #: Next attempt number of a task: (path, task) → n (absent: 1).
    attempts: dict[tuple[str, str | None], int] = {}
    #: First attempt whose replies the present one hears again, where code failed in between: (path, task).
    heard_from: dict[tuple[str, str | None], int] = {}
    #: Tasks that act outside (task_started) and have no recorded end: (path, task).
    unknown_tasks: set[tuple[str, str]] = set()
    #: Tasks that are with an executor, and whose end is not recorded here: (path, task).
    submitted: dict[tuple[str, str], Submitted] = {}
    #: Tries without a recorded end, by seq of call_started.
    open_calls: dict[int, CallRun] = {}
    #: Worst cases of the open tries that the present owner admitted, and how many of them have no upper bound.
    flying: Decimal = Decimal(0)
    flying_unbounded: int = 0
    spend: dict[SpendKey, Spend] = {}
    checkpoints: list[CheckpointMark] = []
    #: Imported totals, not itemised: {"cost_usd", "total_tokens"}.
    reported: Mapping[str, Any] = {}
    #: Snapshot document the run was imported from; {} otherwise.
    imported: Mapping[str, Any] = {}
    gaps: list[Mapping[str, Any]] = []
    #: What records that are missing may have told of money (in `total` too): at least `low`, `high` as far as a head
    #: knew, and `unbounded`: how many places are missing whose cost is not known.
    lost: Spend = field(default_factory=Spend)
    #: Times the run was taken by a new owner.
    resumes: int = 0
    #: Visits started without an end, and those that failed with no edge to go on by (ordered sets).
    open_paths: dict[str, None] = {}
    failed_paths: dict[str, None] = {}
    #: Which visit consumed a token before it was made void: the same one gets it again.
    returning: dict[tuple[str, str], str] = {}
    #: seq of the last call or task record of a path; tells a step that got somewhere from one that did not.
    active: dict[str, int] = {}
    #: Completed visits that are void only because they followed from changed ones: they stand again if all they
    #: read turns out to be the same.
    former: dict[str, StepRun] = {}
    #: Active seconds of visits that are void, until they are made again: they count on.
    worked: dict[str, float] = {}
    #: seq of the snapshot with which a fork began: what ended by then was inherited. 0: no fork.
    inherited: int = 0
    #: Remarks on tasks that are to be made again: (path, task).
    remarks: dict[tuple[str, str], Remark] = {}
    #: Answers of the user's memory: slot → (query, n) → traces; dropped when the work has ended.
    recalled: dict[tuple[str, str | None, int], dict[tuple[str, int], Sequence[Mapping[str, Any]]]] = {}
    #: Writes of completed steps that have not reached the user's memory yet, oldest first.
    unapplied: dict[str, Sequence[Mapping[str, Any]]] = {}
    #: Slices on the store's account of the owner that works, of owners that died, and while a charge is not exactly
    #: known of all before: id → (UTC day, owner).
    slices: dict[str, tuple[str, int]] = {}
    #: Batches by nonce, oldest first.
    batches: dict[str, BatchRun] = {}
    #: Unanswered questions by path, and answers by (path, hash of the question).
    questions: dict[str, OpenQuestion] = {}
    decisions: dict[tuple[str, str], Answered] = {}
    #: What people decided about what tasks made, oldest first: (path, task); and up to which seq of the part REVIEW.
    reviews: dict[tuple[str, str], tuple[Review, ...]] = {}
    reviewed: int = 0
    #: Times the position was changed other than by steps (void, snapshot): indexes of it are built again.
    jumps: int = 0
    #: Models that answered in the place of one that was asked: asked → answered.
    answered_by: dict[str, frozenset[str]] = {}
    #: All of `spend` in one sum.
    total: Spend = field(default_factory=Spend)

    @property
    def labels(self) -> str:
        """Return what the run is labelled with (records.budgets.labels_text); "" for nothing."""
        return str(self.execution.get("labels") or "")

    @property
    def tokens(self) -> list[Token]:
        """Return edges chosen and not consumed, oldest first."""
        return list(self.waiting.values())


def error_text(error: Mapping[str, Any]) -> str:
    """Return a recorded error for people: its message, and where in the user's code it came up."""
    where = f" ({error['where']})" if error.get("where") else ""
    return f"{error.get('message', '')}{where}"


def bare(path: str) -> str:
    """Return a step path as people see it: first visits without their number ("seed#1" → "seed")."""
    if "/" not in path:
        return path.removesuffix("#1")
    return "/".join(frame.removesuffix("#1") for frame in path.split("/"))


def in_order(things: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """Return things by their names `STEP/ITEM`: maps as they first come, items of one by number, 2 before 10."""
    maps: dict[str, int] = {}
    keyed = [(order_key(name(thing), maps), thing) for thing in things]
    return [thing for _, thing in sorted(keyed, key=lambda pair: pair[0])]


def order_key(name: str, maps: dict[str, int]) -> tuple[int | str, ...]:
    """Return what puts a name in that order: numbers and words in turn; `maps` numbers the maps that have come."""
    place, _, last = name.rpartition("/")
    number = maps.setdefault(place, len(maps))
    if len(last) <= 18 and last.isascii() and last.isdigit():
        return number, int(last), ""
    pieces = ((int(digits or 0), word) for word, digits in _PIECES.findall(last))
    return number, *(part for piece in pieces for part in piece)


def full(name: str) -> str:
    """Return the step path of a name that `bare` gave: "seed" → "seed#1", "write#2" stays."""
    return "/".join(frame if _VISIT.search(frame) else f"{frame}#1" for frame in name.split("/"))


def item_name(path: str, task: str | None) -> str:
    """Return `STEP[/ITEM]` of a step path and the key of one of its tasks, as people name it: "lessons/7"."""
    step = bare(path)
    node = step.rpartition("/")[2].partition("#")[0]
    return f"{step}/{task.removeprefix(f'{node}/')}" if task else step


def spend_by(state: RunState, name: Callable[[SpendKey], str]) -> dict[str, Spend]:
    """Return the spend of a run by the names that its keys are given."""
    sums: dict[str, Spend] = {}
    for key, spend in state.spend.items():
        sums.setdefault(name(key), Spend()).add(spend)
    return sums


def slot_of(state: RunState, path: str, task: str | None, attempt: int) -> tuple[str, str | None, int]:
    """Return where the replies of an attempt are kept: with those of the first one whose replies it hears."""
    return path, task, min(state.heard_from.get((path, task), attempt), attempt)


def first_heard(state: RunState, path: str, task: str | None) -> int:
    """Return the first attempt whose replies still count."""
    return state.heard_from.get((path, task), state.attempts.get((path, task), 1))


def next_attempt(state: RunState, path: str, task: str | None = None) -> int:
    """Return the attempt number to run a task (or, task None, a step) under."""
    return state.attempts.get((path, task), 1)


def completed_tasks(state: RunState, path: str) -> int:
    """Return how many tasks of a visit completed."""
    found = state.tasks.get(path, {})
    if isinstance(found, TaskTable):
        return found.count_completed()
    return sum(task.status == COMPLETED for task in found.values())
