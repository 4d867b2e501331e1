"""The record kinds: one class a fact, in the past tense; what each field means.

Facts know no seq, time or owner: those belong to the journal's envelope (lines.py).
`path` is `node#visit` frames joined by "/"; fields at their default are left out of the written form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta, Raw, Struct
from msgspec.structs import replace as replace

if TYPE_CHECKING:
    #: JSON text that is long and rarely read back: neither parsed nor encoded with the rest of its record.
    Text = bytes
    MaybeText = bytes | None
else:
    Text = MaybeText = Raw

#: An edge id, or a step's path, with the name of what belongs to it.
Pair = Annotated[Sequence[str], Meta(min_length=2, max_length=2)]
#: Active time; what no clock of ours can have counted is refused.
Seconds = Annotated[float, Meta(ge=-(10**15), le=10**15)]

#: Why an attempt failed: a check did not accept a reply; the step said itself that it failed; the provider gave no
#: answer; code raised; what it made is fine and no edge takes it. The first two close the attempt: the next one asks
#: anew. The others leave it open: what was answered is heard again.
CHECK, CONTENT, PROVIDER, CODE, ROUTE = "check", "content", "provider", "code", "route"

#: Why a model stopped where its answer is no good: it declined; it was cut off at its cap, or because prompt and answer
#: fill its window, where no higher cap makes room.
REFUSAL, WINDOW_FULL = "refusal", "model_context_window_exceeded"
CUT_OFF = frozenset({"max_tokens", WINDOW_FULL})

#: The version of the record format; a newer major number is refused (SchemaTooNew).
FORMAT = 1


class Fact(Struct, omit_defaults=True, gc=False, tag_field="kind"):
    """One fact. Facts are never changed once they are made."""

    #: The word in the record.
    kind: ClassVar[str] = ""
    #: The field that is JSON text. It is written last.
    text: ClassVar[str] = ""


class RunStarted(Fact, tag="run_started"):
    """A run began; always the first record."""

    pipeline: str
    params: Mapping[str, Any]
    #: Settings that decide what the work is (model, effort, author, lessons, …).
    identity: Mapping[str, Any]
    #: Settings that decide how it is done (ceiling, concurrency, out, …).
    execution: Mapping[str, Any]
    #: What the run is pinned to: name → blob hash ("graph", "catalogue", "prompt:author", …).
    pins: Mapping[str, str] = {}
    #: (pipeline, subject, level, author kind) that an unfinished run holds; or None.
    claim: Sequence[str] | None = None
    #: A fork's source: {"run": id, "seq": n}.
    parent: Mapping[str, Any] | None = None
    #: Who owns it: {"host", "pid", "started"}.
    host: Mapping[str, Any] = {}
    product: str = ""
    format: int = FORMAT


class RunResumed(Fact, tag="run_resumed"):
    """A new owner took the run; its seq is the owner mark of what it appends. Reopens a finished run."""

    execution: Mapping[str, Any]
    host: Mapping[str, Any] = {}
    #: Identity settings changed with --accept-changes: name → new value.
    identity: Mapping[str, Any] | None = None
    #: Pins replaced with --accept-changes: name → blob hash.
    pins: Mapping[str, str] | None = None
    product: str = ""
    #: Parameters given in addition: the run had none of these names.
    params: Mapping[str, Any] | None = None


class StepStarted(Fact, tag="step_started"):
    """A node's visit began. Written at once, synced with the next record."""

    path: str
    #: Edges consumed: [edge id, path of the step that chose it]; [] for the start node.
    consumed: Sequence[Pair] = ()
    #: 1 for the first try of this visit, then 2, …
    attempt: int = 1
    #: The step function's version.
    version: int = 1


class TaskStarted(Fact, tag="task_started"):
    """A task declared write or external is about to act; synced before its body."""

    path: str
    task: str
    attempt: int = 1
    effect: str = "write"


class CallStarted(Fact, tag="call_started"):
    """One try of a paid call is about to leave; synced first."""

    path: str
    #: Hash of what the model sees (Request.hash()).
    key: str
    model: str
    #: The request as sent: blob hash.
    request: str
    #: Which of equal asks in this attempt (1, 2, …) and which try of it (1, 2, …).
    n: int = 1
    k: int = 1
    task: str | None = None
    attempt: int = 1
    #: Kind of call ("lesson", "critic", …).
    label: str = "call"
    #: Upper bound of its cost in USD, decimal text; None: cannot be priced.
    worst: str | None = None
    #: Nonce of the batch it goes out in; "": by itself.
    batch: str = ""
    #: Where it was first recorded, if it was copied from a part: "PART:SEQ".
    origin: str = ""
    #: Who bills it (llm.base.ModelInfo.provider); "": Anthropic, as in runs of versions that knew no other.
    provider: str = ""


class CallEnded(Fact, tag="call_ended"):
    """The reply as received, with its charge; or the error. Result and charge are one fact."""

    text: ClassVar[str] = "reply"
    #: seq of its call_started.
    call: int
    #: JSON text of Reply.to_json() or of {"$blob": hash, "bytes": n}; None where nothing usable came.
    reply: MaybeText = None
    #: Charge.to_json().
    charge: Mapping[str, Any] = {}
    #: True if the memo may answer with this reply (stop_reason end_turn, stop_sequence, tool_use, refusal).
    usable: bool = True
    stop_reason: str | None = None
    #: {"type", "message", "retryable", …}; None where the call succeeded.
    error: Mapping[str, Any] | None = None
    request_id: str | None = None


class BatchIntended(Fact, tag="batch_intended"):
    """A batch is about to be created; durable before create, and after the starts of its calls."""

    #: Begins every custom id of the batch, so that its results can be told from those of another.
    nonce: str
    #: {"id": custom id, "call": seq of its call_started}.
    calls: Sequence[Mapping[str, Any]]
    count: int
    #: The provider's own time just before; "": it did not tell. The batch cannot be older.
    provider_at: str = ""


class BatchSubmitted(Fact, tag="batch_submitted"):
    """The provider accepted a batch."""

    nonce: str
    batch: str
    expires_at: str
    #: When the provider created it, by its own clock; "": not recorded.
    created_at: str = ""


class BatchAbandoned(Fact, tag="batch_abandoned"):
    """The requests of a batch that was not found, or lacked answers, are sent again; it may have been billed."""

    nonce: str
    #: The provider's id; "": it is not known.
    batch: str
    #: Requests that were given up.
    requests: int


class BatchCancelled(Fact, tag="batch_cancelled"):
    """The provider was asked to cancel the rest of a batch; its results are still to be fetched."""

    nonce: str
    batch: str


class DayReserved(Fact, tag="day_reserved"):
    """A slice of the day was reserved on the store's account for what this owner spends; settled when it leaves."""

    #: Its id on the account, the UTC day (YYYY-MM-DD) and the amount.
    slice: str
    day: str
    usd: str


class TaskCompleted(Fact, tag="task_completed"):
    """A task's value is final; its calls' replies are no longer needed."""

    text: ClassVar[str] = "value"
    path: str
    task: str
    #: JSON text of the value, or of {"$blob": hash, "bytes": n}.
    value: Text
    #: Hash of the item it was made from; of the value's canonical JSON.
    item: str = ""
    hash: str = ""
    attempt: int = 1
    version: int = 1
    #: What the body read: name → hash.
    reads: Mapping[str, str] = {}
    #: Hash of the source text of the user's code that made it; "": not known.
    code: str = ""
    #: Replies that its code did not accept: request hash, and which of equal asks.
    rejected: Sequence[Pair] = ()


class TaskFailed(Fact, tag="task_failed"):
    """A task attempt ended by its content or its provider."""

    path: str
    task: str
    #: {"type", "message", "hint"}.
    error: Mapping[str, Any]
    #: CHECK, CONTENT, PROVIDER, CODE or ROUTE.
    cause: str = CONTENT
    attempt: int = 1
    item: str = ""


class StepCompleted(Fact, tag="step_completed"):
    """A checkpoint boundary: the step's outputs, what it changed, and the edges chosen."""

    path: str
    #: The outputs mapping, or {"$blob": hash, "bytes": n}.
    outputs: Mapping[str, Any]
    #: Checkpoint id (32 hex digits).
    checkpoint: str
    edges: Sequence[str] = ()
    outcome: str = "success"
    context: Mapping[str, Any] = {}
    #: Artifacts saved by the step: name → blob hash.
    artifacts: Mapping[str, str] = {}
    reads: Mapping[str, str] = {}
    attempt: int = 1
    #: Active seconds of this attempt.
    seconds: Seconds = 0.0
    #: Why these edges: condition, weight, retry_target, …; "" where the outcome's label says it.
    reason: str = ""
    #: What it wrote to the user's memory, applied after this record: {"type", "content", "scope", "key"} each.
    writes: Sequence[Mapping[str, Any]] = ()
    #: As of task_completed.
    code: str = ""
    rejected: Sequence[Pair] = ()


class MemoryRead(Fact, tag="memory_read"):
    """What the user's memory answered; the same body run again is answered with this."""

    path: str
    query: str
    #: {"id", "content", "strength"} each.
    traces: Sequence[Mapping[str, Any]]
    task: str | None = None
    attempt: int = 1
    #: Which of equal queries of the attempt: 1, 2, …
    n: int = 1


class MemoryApplied(Fact, tag="memory_applied"):
    """The writes of a completed step have reached the user's memory."""

    path: str


class StepFailed(Fact, tag="step_failed"):
    """A step attempt failed; also a checkpoint boundary. `edges`: where a route accepted the failure."""

    path: str
    error: Mapping[str, Any]
    checkpoint: str
    edges: Sequence[str] = ()
    cause: str = CONTENT
    attempt: int = 1
    seconds: Seconds = 0.0
    outcome: str = "failed"
    #: What it had made and set all the same; as in step_completed.
    outputs: Mapping[str, Any] = {}
    context: Mapping[str, Any] = {}
    artifacts: Mapping[str, str] = {}
    reads: Mapping[str, str] = {}
    reason: str = ""
    #: The same visit is tried again by itself.
    retry: bool = False


class DecisionAsked(Fact, tag="decision_asked"):
    """A person or agent was asked a question."""

    path: str
    #: Hash of what was shown; an answer holds only for the same hash.
    question: str
    choices: Sequence[str]
    shown: Mapping[str, Any] = {}


class Decision(Fact, tag="decision"):
    """The answer to exactly that question; with `task`, what a person decided about what a task made (reviews.py)."""

    path: str
    #: Hash of what was asked; of a task: of its value, or of the edit that is decided upon.
    question: str
    choice: str
    by: str = ""
    note: str = ""
    task: str = ""
    #: The value as the person edited it: blob hash.
    edit: str = ""
    #: As of call_started.
    origin: str = ""


class Invalidated(Fact, tag="invalidated"):
    """Completed work became void. Nothing else un-completes work."""

    #: redo, changed, from, refresh, retry, jump, missing.
    reason: str
    #: Paths of steps that are void.
    paths: Sequence[str] = ()
    #: Tasks that are void: [path, task].
    tasks: Sequence[Pair] = ()
    note: str = ""
    by: str = ""


class ChargeSettled(Fact, tag="charge_settled"):
    """An open interval is closed with the known amount (USD, decimal text)."""

    call: int
    usd: str
    by: str = ""
    #: It replaces the amount of an earlier settlement; without it a settled call keeps what it has.
    corrects: bool = False


class Gap(Fact, tag="gap"):
    """What a repair had to leave out."""

    #: Seq range missing or unreadable (inclusive), and the damaged bytes kept in `kept`.
    first: int
    last: int
    bytes: int = 0
    kept: str = ""
    reason: str = ""
    #: What is missing is a write that was never finished: it was not acted on, so it cost nothing. None: that is not
    #: said, as in records of old; then it is told by the name of the file that keeps it.
    torn: bool | None = None
    #: The seq of a head (checkpoint.json) that was compared with the records up to there; 0: none was. What it knew to
    #: be spent beyond what they tell, at least and at most (USD, decimal text).
    head: int = 0
    low: str = ""
    high: str = ""
    #: That head was written when no record was missing: up to there it knew all.
    whole: bool = False


class RunEnded(Fact, tag="run_ended"):
    """How this owner left the run; after the last call in flight has ended."""

    #: completed, failed, or in_progress with a detail (paused_budget, interrupted, …).
    status: str
    detail: str | None = None
    error: Mapping[str, Any] | None = None
    #: The command to go on, for people.
    command: str = ""


class Snapshot(Fact, tag="snapshot"):
    """A whole state document: imports, forks, CheckpointManager.save. Its totals are reported, not itemised."""

    document: Mapping[str, Any]
    #: import, fork, api.
    source: str = "import"


class DocumentKept(Fact, tag="document_kept"):
    """A document of another system was kept beside the run's own work; the position stays."""

    text: ClassVar[str] = "content"
    #: JSON text of the document; the fold does not use it, so it is parsed only where it is read.
    content: Text
    #: The system whose document it is: casys, agentos, langgraph.
    source: str = ""


class TaskSubmitted(Fact, tag="task_submitted"):
    """A task is handed to an executor: from here on a part of the run, a journal of its own, says how it goes."""

    path: str
    task: str
    #: The part's name in the run; "": task-SEQ of this record.
    part: str = ""
    #: The worker knows the run as it was at this seq.
    base: int = 0
    attempt: int = 1
    #: What its calls may cost at worst, all its submissions together (USD, decimal text); None: no ceiling.
    usd: str | None = None


class TaskTaken(Fact, tag="task_taken"):
    """A worker took the task that a part is of; its seq is the owner mark of what follows in the part."""

    path: str
    task: str
    attempt: int = 1
    #: {"host", "pid"}.
    host: Mapping[str, Any] = {}


class FleetTold(Fact, tag="fleet_told"):
    """What all who work on a run must know before their next call; recorded in the part `notices`."""

    #: No call leaves before this moment (ISO-8601 UTC); "": nothing is said of that.
    until: str = ""
    reason: str = ""
    #: Owner mark of the coordinator whose workers are to begin nothing more; 0: none's.
    stop: int = 0


class UnknownFact(Fact, tag="unknown"):
    """A kind of a newer minor version; kept, never acted on."""

    name: str
    data: Mapping[str, Any]


def _by_word() -> dict[str, type[Fact]]:
    for cls in Fact.__subclasses__():
        cls.kind = str(cls.__struct_config__.tag)
    return {cls.kind: cls for cls in Fact.__subclasses__()}


#: Every kind by its word.
KINDS: Mapping[str, type[Fact]] = _by_word()
