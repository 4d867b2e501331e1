"""The record kinds: one frozen dataclass a fact, in the past tense; what each field means.

Facts know no seq, time or owner: those belong to the journal's envelope (lines.py).
`path` is `node#visit` frames joined by "/"; None is left out of the written form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

from pipeline.records.fact import Fact as Fact
from pipeline.records.frozen import frozen
from pipeline.records.part_kinds import FleetTold as FleetTold
from pipeline.records.part_kinds import TaskSubmitted as TaskSubmitted
from pipeline.records.part_kinds import TaskTaken as TaskTaken

#: Why an attempt failed: a check did not accept a reply; the step said itself that it failed; the provider gave no
#: answer; code raised; what it made is fine and no edge takes it. The first two close the attempt: the next one asks
#: anew. The others leave it open: what was answered is heard again.
CHECK, CONTENT, PROVIDER, CODE, ROUTE = "check", "content", "provider", "code", "route"

#: The version of the record format; a newer major number is refused (SchemaTooNew).
FORMAT = 1


@frozen
class RunStarted(Fact):
    """A run began; always the first record."""

    kind: ClassVar[str] = "run_started"
    pipeline: str
    params: Mapping[str, Any]
    #: Settings that decide what the work is (model, effort, author, lessons, …).
    identity: Mapping[str, Any]
    #: Settings that decide how it is done (ceiling, concurrency, out, …).
    execution: Mapping[str, Any]
    #: What the run is pinned to: name → blob hash ("graph", "catalogue", "prompt:author", …).
    pins: Mapping[str, str] = field(default_factory=dict)
    #: (pipeline, subject, level, author kind) that an unfinished run holds; or None.
    claim: Sequence[str] | None = None
    #: A fork's source: {"run": id, "seq": n}.
    parent: Mapping[str, Any] | None = None
    #: Who owns it: {"host", "pid", "started"}.
    host: Mapping[str, Any] = field(default_factory=dict)
    product: str = ""
    format: int = FORMAT


@frozen
class RunResumed(Fact):
    """A new owner took the run; its seq is the owner mark of what it appends. Reopens a finished run."""

    kind: ClassVar[str] = "run_resumed"
    execution: Mapping[str, Any]
    host: Mapping[str, Any] = field(default_factory=dict)
    #: Identity settings changed with --accept-changes: name → new value.
    identity: Mapping[str, Any] | None = None
    #: Pins replaced with --accept-changes: name → blob hash.
    pins: Mapping[str, str] | None = None
    product: str = ""
    #: Parameters given in addition: the run had none of these names.
    params: Mapping[str, Any] | None = None


@frozen
class StepStarted(Fact):
    """A node's visit began. Written at once, synced with the next record."""

    kind: ClassVar[str] = "step_started"
    path: str
    #: Edges consumed: [edge id, path of the step that chose it]; [] for the start node.
    consumed: Sequence[Sequence[str]] = ()
    #: 1 for the first try of this visit, then 2, …
    attempt: int = 1
    #: The step function's version.
    version: int = 1


@frozen
class TaskStarted(Fact):
    """A task declared write or external is about to act; synced before its body."""

    kind: ClassVar[str] = "task_started"
    path: str
    task: str
    attempt: int = 1
    effect: str = "write"


@frozen
class CallStarted(Fact):
    """One try of a paid call is about to leave; synced first."""

    kind: ClassVar[str] = "call_started"
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


@frozen
class CallEnded(Fact):
    """The reply as received, with its charge; or the error. Result and charge are one fact."""

    kind: ClassVar[str] = "call_ended"
    text: ClassVar[str] = "reply"
    #: seq of its call_started.
    call: int
    #: JSON text of Reply.to_json() or of {"$blob": hash, "bytes": n}; None where nothing usable came.
    reply: bytes | None = None
    #: Charge.to_json().
    charge: Mapping[str, Any] = field(default_factory=dict)
    #: True if the memo may answer with this reply (stop_reason end_turn, stop_sequence, tool_use, refusal).
    usable: bool = True
    stop_reason: str | None = None
    #: {"type", "message", "retryable", …}; None where the call succeeded.
    error: Mapping[str, Any] | None = None
    request_id: str | None = None


@frozen
class BatchIntended(Fact):
    """A batch is about to be created; durable before create, and after the starts of its calls."""

    kind: ClassVar[str] = "batch_intended"
    #: Begins every custom id of the batch, so that its results can be told from those of another.
    nonce: str
    #: {"id": custom id, "call": seq of its call_started}.
    calls: Sequence[Mapping[str, Any]]
    count: int
    #: The provider's own time just before; "": it did not tell. The batch cannot be older.
    provider_at: str = ""


@frozen
class BatchSubmitted(Fact):
    """The provider accepted a batch."""

    kind: ClassVar[str] = "batch_submitted"
    nonce: str
    batch: str
    expires_at: str
    #: When the provider created it, by its own clock; "": not recorded.
    created_at: str = ""


@frozen
class BatchAbandoned(Fact):
    """The requests of a batch that was not found, or lacked answers, are asked again; it may have been billed."""

    kind: ClassVar[str] = "batch_abandoned"
    nonce: str
    #: The provider's id; "": it is not known.
    batch: str
    #: Requests that were given up.
    requests: int


@frozen
class BatchCancelled(Fact):
    """Somebody had the provider leave what it had not answered of a batch; its results are still to be fetched."""

    kind: ClassVar[str] = "batch_cancelled"
    nonce: str
    batch: str


@frozen
class DayReserved(Fact):
    """A slice of the day was reserved on the store's account for what this owner spends; settled when it leaves."""

    kind: ClassVar[str] = "day_reserved"
    #: Its id on the account, the UTC day (YYYY-MM-DD) and the amount.
    slice: str
    day: str
    usd: str


@frozen
class TaskCompleted(Fact):
    """A task's value is final; its calls' replies are no longer needed."""

    kind: ClassVar[str] = "task_completed"
    text: ClassVar[str] = "value"
    path: str
    task: str
    #: JSON text of the value, or of {"$blob": hash, "bytes": n}.
    value: bytes
    #: Hash of the item it was made from; of the value's canonical JSON.
    item: str = ""
    hash: str = ""
    attempt: int = 1
    version: int = 1
    #: What the body read: name → hash.
    reads: Mapping[str, str] = field(default_factory=dict)
    #: Hash of the source text of the user's code that made it; "": not known.
    code: str = ""


@frozen
class TaskFailed(Fact):
    """A task attempt ended by its content or its provider."""

    kind: ClassVar[str] = "task_failed"
    path: str
    task: str
    #: {"type", "message", "hint"}.
    error: Mapping[str, Any]
    #: CHECK, CONTENT, PROVIDER, CODE or ROUTE.
    cause: str = CONTENT
    attempt: int = 1
    item: str = ""


@frozen
class StepCompleted(Fact):
    """A checkpoint boundary: the step's outputs, what it changed, and the edges chosen."""

    kind: ClassVar[str] = "step_completed"
    path: str
    #: The outputs mapping, or {"$blob": hash, "bytes": n}.
    outputs: Mapping[str, Any]
    #: Checkpoint id (32 hex digits).
    checkpoint: str
    edges: Sequence[str] = ()
    outcome: str = "success"
    context: Mapping[str, Any] = field(default_factory=dict)
    #: Artifacts saved by the step: name → blob hash.
    artifacts: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    attempt: int = 1
    #: Active seconds of this attempt.
    seconds: float = 0.0
    #: Why these edges: condition, weight, retry_target, …; "" where the outcome's label says it.
    reason: str = ""
    #: What it wrote to the user's memory, applied after this record: {"type", "content", "scope", "key"} each.
    writes: Sequence[Mapping[str, Any]] = ()
    #: As of task_completed.
    code: str = ""


@frozen
class MemoryRead(Fact):
    """What the user's memory answered; the same body run again is answered with this."""

    kind: ClassVar[str] = "memory_read"
    path: str
    query: str
    #: {"id", "content", "strength"} each.
    traces: Sequence[Mapping[str, Any]]
    task: str | None = None
    attempt: int = 1
    #: Which of equal queries of the attempt: 1, 2, …
    n: int = 1


@frozen
class MemoryApplied(Fact):
    """The writes of a completed step have reached the user's memory."""

    kind: ClassVar[str] = "memory_applied"
    path: str


@frozen
class StepFailed(Fact):
    """A step attempt failed; also a checkpoint boundary. `edges`: where a route accepted the failure."""

    kind: ClassVar[str] = "step_failed"
    path: str
    error: Mapping[str, Any]
    checkpoint: str
    edges: Sequence[str] = ()
    cause: str = CONTENT
    attempt: int = 1
    seconds: float = 0.0
    outcome: str = "failed"
    #: What it had made and set all the same; as in step_completed.
    outputs: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    #: The same visit is tried again by itself.
    retry: bool = False


@frozen
class DecisionAsked(Fact):
    """A question to a person or agent was put."""

    kind: ClassVar[str] = "decision_asked"
    path: str
    #: Hash of what was shown; an answer holds only for the same hash.
    question: str
    choices: Sequence[str]
    shown: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Decision(Fact):
    """The answer to exactly that question."""

    kind: ClassVar[str] = "decision"
    path: str
    question: str
    choice: str
    by: str = ""
    note: str = ""


@frozen
class Invalidated(Fact):
    """Completed work that is void from here on. Nothing else un-completes work."""

    kind: ClassVar[str] = "invalidated"
    #: redo, changed, from, refresh, retry, jump, missing.
    reason: str
    #: Paths of steps that are void.
    paths: Sequence[str] = ()
    #: Tasks that are void: [path, task].
    tasks: Sequence[Sequence[str]] = ()
    note: str = ""
    by: str = ""


@frozen
class ChargeSettled(Fact):
    """An open interval is closed with the known amount (USD, decimal text)."""

    kind: ClassVar[str] = "charge_settled"
    call: int
    usd: str
    by: str = ""
    #: It replaces the amount of an earlier settlement; without it a settled call keeps what it has.
    corrects: bool = False


@frozen
class Gap(Fact):
    """What a repair had to leave out."""

    kind: ClassVar[str] = "gap"
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


@frozen
class RunEnded(Fact):
    """How this owner left the run; after the last call in flight has ended."""

    kind: ClassVar[str] = "run_ended"
    #: completed, failed, or in_progress with a detail (paused_budget, interrupted, …).
    status: str
    detail: str | None = None
    error: Mapping[str, Any] | None = None
    #: The command to go on, for people.
    command: str = ""


@frozen
class Snapshot(Fact):
    """A whole state document: imports, forks, CheckpointManager.save. Its totals are reported, not itemised."""

    kind: ClassVar[str] = "snapshot"
    document: Mapping[str, Any]
    #: import, fork, api.
    source: str = "import"


@frozen
class DocumentKept(Fact):
    """A document of another system, kept beside the run's own work; it moves nothing."""

    kind: ClassVar[str] = "document_kept"
    text: ClassVar[str] = "content"
    #: JSON text of the document; nobody folds it, so it is parsed only where it is read.
    content: bytes
    #: The system whose document it is: casys, agentos, langgraph.
    source: str = ""


@frozen
class UnknownFact(Fact):
    """A kind of a newer minor version; kept, never acted on."""

    kind: ClassVar[str] = "unknown"
    name: str
    data: Mapping[str, Any]
