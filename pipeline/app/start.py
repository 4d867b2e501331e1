"""One start of the program: its store, its model, its settings, put together before any step; and its end."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.app.decided import Confirm, Decided
from pipeline.app.executors import check_executor
from pipeline.clock import Clock, SystemClock
from pipeline.errors import (
    CheckpointCorrupt,
    ConfigError,
    CredentialMissing,
    NeedsConfirmation,
    PipelineError,
    WriteFailed,
)
from pipeline.records.charge import in_full
from pipeline.settings import DEFAULT_MODEL, OFFLINE, LessonsOptions
from pipeline.store.base import Account, Store
from pipeline.store.place import has_password, store_words

if TYPE_CHECKING:
    from pipeline.engine.events import Emitter, Listener
    from pipeline.engine.result import RunResult as EngineResult
    from pipeline.engine.setup import Definition, Setup
    from pipeline.llm.base import Model
    from pipeline.records.run import RunState, Spend

#: Names another server than the provider's.
_GATEWAY = "ANTHROPIC_BASE_URL"
#: Variables with which the SDK finds a credential by itself.
_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_IDENTITY_TOKEN_FILE")


@dataclass(frozen=True, slots=True)
class Amount:
    """US dollars between two bounds; equal where exact."""

    low: Decimal = Decimal(0)
    #: None: no upper bound is known.
    high: Decimal | None = Decimal(0)
    #: Calls whose price is not known: they are in neither bound.
    unpriced: int = 0

    @classmethod
    def of(cls, spend: Spend) -> Amount:
        """Return both bounds of a sum, or of what a start added to one."""
        low = spend.usd + spend.low
        return cls(low, None if spend.unbounded else max(low, spend.usd + spend.high), spend.unpriced)

    def __add__(self, other: Amount) -> Amount:
        high = None if self.high is None or other.high is None else self.high + other.high
        return Amount(self.low + other.low, high, self.unpriced + other.unpriced)

    @property
    def most(self) -> Decimal | None:
        """The upper bound of everything; None where there is none."""
        return None if self.unpriced else self.high


@dataclass(frozen=True, slots=True)
class RunResult:
    """A start as the command line shows its end."""

    run_id: str
    status: str
    detail: str | None
    error: PipelineError | None
    #: Folder of the published course; "" if it was not published, or another run's course stands there.
    published: str
    spent: Amount
    tokens: int
    seconds: float
    resume_command: str
    #: What was expected of this start before it began, and what it did cost (exact, USD); None: no estimate was made.
    expected_usd: Decimal | None = None
    spent_now_usd: Decimal | None = None
    #: What this start has spent.
    spent_now: Amount = Amount()
    #: Of a DOT graph: its nodes in order of their ends.
    completed_nodes: tuple[str, ...] = ()
    #: What else is to be said of the published folder: what was replaced, or stands there now.
    published_note: str = ""
    #: Of a completed course: the lessons it does without.
    left_out: str = ""


def open_store(url: str, *, concurrency: int = 4) -> Store:
    """The store at a URL; see store.url."""
    from pipeline.store.url import open_store as opened

    return opened(url, concurrency=concurrency)


def open_account(url: str) -> Account:
    """The account of the store at a URL."""
    from pipeline.store.url import open_account as opened

    return opened(url)


def check_readable(state: RunState) -> None:
    """Refuse to go on with a run whose first record is lost: nobody knows what it is a run of.

    Raises:
        CheckpointCorrupt: It is.
    """
    if not state.pipeline:
        raise CheckpointCorrupt(
            f"Run {state.run_id} cannot be resumed: its first record is damaged.",
            hint=f"`log {state.run_id}` and `cost {state.run_id}` show what can still be read; --force starts anew.",
        )


def has_credential() -> bool:
    """Whether the environment holds something the SDK can log in with."""
    return any(os.environ.get(name, "").strip() for name in _CREDENTIALS)


@dataclass(slots=True)
class Start:
    """One start of the program: what was asked for, and what it works with."""

    options: LessonsOptions
    store: Store
    clock: Clock
    emit: Emitter
    confirm: Confirm | None
    #: What was announced before the first paid call.
    expected: Decimal | None = None

    @classmethod
    def of(cls, options: LessonsOptions, listener: Listener, confirm: Confirm | None) -> Start:
        from pipeline.engine.events import Emitter

        if options.executor is not None:
            check_executor(options)
        clock = SystemClock()
        decided = Decided(listener)
        emit = Emitter(clock, [decided])
        if note := store_note(options.store_url):
            emit("note", text=note)
        store = open_store(options.store_url, concurrency=options.at_once)
        return cls(options, store, clock, emit, decided.before(confirm))


def store_note(url: str) -> str:
    """What a person should know of the place where runs are kept; "" if nothing."""
    from pipeline.store.network import network_note

    if has_password(url):
        return "The password in --store is neither kept nor repeated; PGPASSWORD gives it to the commands named here."
    scheme, _, folder = url.partition(":")
    return network_note(Path(os.path.expanduser(folder))) if scheme == "files" else ""


def model_name(asked: str | None) -> str:
    """The model that writes: as asked, else Claude where a credential is set, else the offline author.

    Raises:
        CredentialMissing: A Claude model was asked for without a credential.
    """
    if asked is None:
        return DEFAULT_MODEL if has_credential() else OFFLINE
    check_asked_model(asked)
    if asked != OFFLINE and not has_credential():
        raise CredentialMissing(
            f"--model {asked} needs a credential, and none is set.",
            hint="Set ANTHROPIC_API_KEY (in the environment or in .env beside pipeline.sh), or take --model offline.",
        )
    return asked


def check_asked_model(name: str) -> None:
    """Refuse a model of another provider before a credential is asked for.

    A gateway (ANTHROPIC_BASE_URL) may have models of any name.

    Raises:
        ConfigError: It is one.
    """
    known = name == OFFLINE or "claude" in name.lower() or "anthropic" in name.lower()
    if not known and not os.environ.get(_GATEWAY, "").strip():
        raise ConfigError(
            f"{name!r} is not a Claude model, and this program asks Claude models only.",
            hint=f"For example --model {DEFAULT_MODEL}; {_GATEWAY} names a gateway that offers other models.",
        )


def author_kind(model: str) -> str:
    """Whether "offline" or "model" wrote it; the two are never mixed."""
    return "offline" if model == OFFLINE else "model"


def model_of(name: str, *, courses: bool = True) -> Model:
    """The model of that name, not yet looked up.

    Args:
        courses: It is asked for lessons, which the offline author can write; of other work it gives stand-ins.

    Raises:
        ConfigError: The name is no Claude model's, and no gateway that may know it is set.
    """
    check_asked_model(name)
    if name == OFFLINE and not courses:
        from pipeline.llm.script import ScriptedModel, stand_in

        return ScriptedModel(stand_in, model_id=OFFLINE, author=OFFLINE)
    if name == OFFLINE:
        from pipeline.lessons.offline import OfflineAuthor

        return OfflineAuthor()
    from pipeline.llm.anthropic import AnthropicModel

    return AnthropicModel(name)


#: Execution settings that a run keeps until others are given; the rest hold for one start.
_KEPT = ("max_cost_usd", "concurrency", "out", "prices", "batch", "batch_min", "daily_budget_usd")


def execution(options: LessonsOptions, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """How this start works: what was given, else what the run was started with, else the defaults."""
    values: dict[str, Any] = {
        "max_cost_usd": None if options.max_cost_usd is None else f"{options.max_cost_usd:f}",
        "concurrency": options.concurrency,
        "out": str(options.out_folder),
        "prices": None if options.prices is None else os.path.abspath(os.path.expanduser(options.prices)),
    }
    values["budget"] = options.budget
    values["daily_budget_usd"] = None if options.daily_budget_usd is None else f"{options.daily_budget_usd:f}"
    values |= {"batch": options.batch, "batch_min": options.batch_min, "batch_poll_seconds": options.batch_poll}
    for name in _KEPT:
        if name in recorded and name not in options.given:
            values[name] = recorded[name]
    for name in ("until", "sample", "skip_failed", "overwrite", "no_wait", "resubmit", "executor"):
        values[name] = getattr(options, name)
    return values


def set_up(start: Start, model_name: str, recorded: Mapping[str, Any], verb: str = "lessons") -> Setup:
    """Everything a run works with; free look-ups and refusals come first. `model_name` "": no model.

    Raises:
        CredentialMissing, ModelError, BudgetExceeded, ConfigError: Before any step.
    """
    from pipeline.cost.prices import PriceBook
    from pipeline.engine import preflight
    from pipeline.engine.retry import look_up
    from pipeline.publish.folder import FolderPublisher

    options = start.options
    how = execution(options, recorded)
    model = model_of(model_name, courses=verb == "lessons") if model_name else None
    if model_name and model_name != OFFLINE:
        # The look-up may take a while: nothing else has been said by now.
        start.emit("looking", text=f"Checking the model {model_name} ...")
    info = look_up(model, start.clock, start.emit) if model else None
    for warning in info.warnings if info else ():
        start.emit("note", text=warning)
    prices = PriceBook(Path(how["prices"]) if how["prices"] else None)
    preflight.check_batches(model, how)
    if info is not None:
        preflight.check_priced(info, prices, start.clock, how)
    setup = unmodelled(start, recorded, verb)
    setup.model, setup.info, setup.prices = model, info, prices
    if how["daily_budget_usd"] is not None or (info is not None and info.paid):
        # A run without a limit tells what it spends, so that the limit of another counts it.
        setup.account = open_account(options.store_url)
    setup.services = {"publisher": FolderPublisher(Path(how["out"]))}
    return setup


def accepting(start: Start) -> Callable[[Any], bool] | None:
    """With --accept-changes: says what will be made again, and agrees."""
    if not start.options.accept_changes:
        return None

    def accept(stale: Any) -> bool:
        shown = ", ".join(f"{path} ({why})" for path, why in stale.steps.items())
        start.emit("note", text=f"Made again because of changes: {shown}.")
        return True

    return accept


def wishes(options: LessonsOptions) -> dict[str, Any]:
    """What a person wants of a resume beside going on, as Engine.resume takes it."""
    return {
        "from_step": options.from_step or "",
        "refresh": [options.refresh] if options.refresh else [],
        "retry_unknown": options.retry_unknown,
    }


def unmodelled(start: Start, recorded: Mapping[str, Any], verb: str = "lessons") -> Setup:
    """A setup that can ask nobody and publish nothing: enough to look at a completed run."""
    from pipeline import __version__
    from pipeline.engine.setup import Setup

    options = start.options
    return Setup(
        start.store, start.clock, start.emit, execution(options, recorded), product=__version__,
        command=lambda run: resume_command(options, run, verb),
        cancel=lambda run: f"./pipeline.sh cancel {run}{_store_words(options)}", confirm=start.confirm, yes=options.yes,
    )  # fmt: skip


def nothing_left(state: RunState, definition: Definition, options: LessonsOptions, *, same: bool = False) -> bool:
    """Return whether a resume finds a completed run with nothing to make: it needs no model, and no permission.

    Args:
        same: See changes.nothing_left.
    """
    from pipeline.engine import changes

    wanted = any(wishes(options).values())
    return not wanted and changes.nothing_left(state, definition.graph, definition.steps, same=same)


def tell_model(start: Start, setup: Setup) -> None:
    """Say who is asked, and up to what cost."""
    if setup.info is not None:
        ceiling = setup.options["max_cost_usd"]
        limit = "none" if ceiling is None else in_full(Decimal(str(ceiling)))
        start.emit("note", text=f"Model: {setup.info.id} · Ceiling: {limit} (--max-cost-usd)")


def resume_command(options: LessonsOptions, run: str, verb: str = "lessons") -> str:
    """What to type to go on with a run."""
    store = _store_words(options)
    executor = f" --executor {shlex.quote(options.executor)}" if options.executor else ""
    return f"./pipeline.sh {verb} --resume {run}{store}{executor}"


def _store_words(options: LessonsOptions) -> str:
    """` --store URL` where one was given; else ""."""
    return store_words(options.store) if options.store and "store" in options.given else ""


def name_recovery(error: Any, run: str, options: LessonsOptions) -> None:
    """Make the advice on an emergency file one that can be typed: the store does not know how it was named."""
    short = f"recover {run} "
    if isinstance(error, WriteFailed) and f": {short}" in error.hint:
        error.hint = error.hint.replace(f": {short}", f": ./pipeline.sh {short}") + _store_words(options)


def finish(start: Start, setup: Setup, result: EngineResult, verb: str = "lessons") -> RunResult:
    """The end as the command line shows it; the receipt beside what was published."""
    from pipeline.app.published import left_out, replaced
    from pipeline.engine.limits import more_room
    from pipeline.engine.sources import missing_param

    if setup.model is not None:
        setup.model.close()
    outputs = result.outputs.get("publish") or {}
    again = resume_command(start.options, result.run_id, verb)
    name_recovery(result.error, result.run_id, start.options)
    spent = Amount.of(result.spent)
    note = ""
    if verb == "lessons" and result.status == "completed" and result.worked and outputs.get("path"):
        publisher = setup.services["publisher"]
        note = replaced(publisher, result.run_id, outputs)
        publisher.receipt(str(outputs["path"]), _receipt(result, spent))
    return RunResult(
        result.run_id, result.status, result.detail, result.error,
        str(Path(setup.options["out"], str(outputs["path"]))) if verb == "lessons" and outputs.get("path") else "",
        spent, sum(result.spent.tokens.values()), result.seconds,
        "" if result.status == "completed"
        else again + more_room(result.error) + missing_param(result.error) + _confirmed(result.error),
        start.expected if result.status == "completed" and result.worked else None,
        result.spent_now.usd if result.worked else Decimal(0),
        spent_now=Amount.of(result.spent_now) if result.worked else Amount(),
        published_note=note,
        left_out=left_out(result.outputs.get("lessons") or {}, again)
        if verb == "lessons" and result.status == "completed" else "",
    )  # fmt: skip


def _confirmed(error: BaseException | None) -> str:
    """The option without which a resume would ask again what a person has just been asked."""
    return " --retry-unknown" if isinstance(error, NeedsConfirmation) else ""


def _receipt(result: EngineResult, spent: Amount) -> dict[str, Any]:
    """What stands beside a published course, outside its hash: run, money and time."""
    return {
        "run_id": result.run_id,
        "content_hash": result.outputs["publish"].get("content_hash"),
        "cost_usd": float(spent.low),
        "cost_usd_at_most": None if spent.most is None else float(spent.most),
        "tokens": dict(result.spent.tokens),
        "calls": result.spent.calls,
        "active_seconds": round(result.seconds, 3),
    }
