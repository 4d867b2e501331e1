"""One start of the program: its store, its model, its settings, put together before any step."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import __version__
from pipeline.app.executors import check_executor
from pipeline.app.stores import open_account, open_store
from pipeline.clock import Clock, SystemClock
from pipeline.cost.prices import PriceBook
from pipeline.engine import changes, preflight
from pipeline.engine.events import Emitter, Event, Listener
from pipeline.engine.retry import look_up
from pipeline.engine.setup import Definition, Setup
from pipeline.errors import CheckpointCorrupt, ConfigError, CredentialMissing, SettingsConflict
from pipeline.publish.folder import FolderPublisher
from pipeline.records.charge import in_full
from pipeline.settings import DEFAULT_MODEL, OFFLINE, Execution
from pipeline.store.address import parse_store_url, store_words
from pipeline.store.base import Store
from pipeline.store.network import network_note

if TYPE_CHECKING:
    from pipeline.llm.base import Model
    from pipeline.records.run import RunState

#: Asks a person; whether the answer was yes.
Confirm = Callable[[str], bool]
#: Names another server than the provider's.
_GATEWAY = "ANTHROPIC_BASE_URL"
#: Variables with which the SDK finds a credential by itself.
_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_IDENTITY_TOKEN_FILE")
#: Settings that a run keeps until others are given; the rest hold for one start.
_KEPT = ("max_cost_usd", "concurrency", "out", "prices", "batch", "batch_min", "daily_budget_usd", "review",
         "downloads")  # fmt: skip
_DECIDED, _BEGUN = frozenset({"run_new", "run_continuing"}), frozenset({"run_started", "run_resumed"})


class DecisionListener:
    """Hold back the news of a new or continued run until the run is begun or owned: a start may be refused."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._held: list[Event] = []

    def __call__(self, event: Event) -> None:
        if event.type in _DECIDED:
            # The later of two decisions counts: a new run that another process has just begun is continued.
            self._held = [each for each in self._held if each.type == event.type] + [event]
            return
        if event.type in _BEGUN:
            self._release()
        self._listener(event)

    def _release(self) -> None:
        held, self._held = self._held, []
        for event in held:
            self._listener(event)

    def before(self, confirm: Confirm | None) -> Confirm | None:
        """Return `confirm`, preceded by what was held back: a person asked for money knows what it is for."""
        if confirm is None:
            return None

        def ask(question: str) -> bool:
            self._release()
            return confirm(question)

        return ask


@dataclass(slots=True)
class Start:
    """One start of the program: what was asked for, and what it works with."""

    execution: Execution
    store: Store
    clock: Clock
    emit: Emitter
    confirm: Confirm | None
    #: What was announced before the first paid call, in USD.
    expected: Decimal | None = None

    @classmethod
    def of(cls, execution: Execution, listener: Listener, confirm: Confirm | None) -> Start:
        """Open the store and say what a person should know of it.

        Raises:
            ConfigError, StoreError: It cannot be opened, or not be shared with the executor.
        """
        check_executor(execution)
        clock, decided = SystemClock(), DecisionListener(listener)
        emit = Emitter(clock, [decided])
        if note := store_note(execution.store_url):
            emit("note", text=note)
        store = open_store(execution.store_url, concurrency=execution.at_once)
        return cls(execution, store, clock, emit, decided.before(confirm))


def store_note(url: str) -> str:
    """Return what a person should know of the place where runs are kept; "" if nothing."""
    parsed = parse_store_url(url)
    if parsed.has_password:
        return "The password in --store is neither stored nor shown; set PGPASSWORD for the commands printed here."
    return network_note(parsed.folder) if parsed.folder is not None else ""


def check_readable(state: RunState) -> None:
    """Refuse to resume a run whose first record is lost: what it is a run of is unknown.

    Raises:
        CheckpointCorrupt: It is.
    """
    if not state.pipeline:
        run = state.run_id
        raise CheckpointCorrupt(
            f"Run {run} cannot be resumed: its first record is damaged.",
            hint=f"`./pipeline.sh log {run}` and `./pipeline.sh cost {run}` show what can still be read; --force "
            "starts a new run.",
        )


def has_credential() -> bool:
    """Return whether the environment holds something the SDK can log in with."""
    return any(os.environ.get(name, "").strip() for name in _CREDENTIALS)


def model_name(asked: str | None) -> str:
    """Return the model that writes: as asked, else Claude where a credential is set, else the offline author.

    Raises:
        CredentialMissing: A Claude model was asked for without a credential.
    """
    if asked is None:
        return DEFAULT_MODEL if has_credential() else OFFLINE
    check_asked_model(asked)
    if asked != OFFLINE and not has_credential():
        raise CredentialMissing(
            f"--model {asked} needs a credential, and none is set.",
            hint="Set ANTHROPIC_API_KEY (in the environment or in .env beside pipeline.sh), or use --model offline.",
        )
    return asked


def check_asked_model(name: str) -> None:
    """Refuse a model of another provider before a credential is asked for; a gateway may have models of any name.

    Raises:
        ConfigError: It is one.
    """
    known = name == OFFLINE or "claude" in name.lower() or "anthropic" in name.lower()
    if not known and not os.environ.get(_GATEWAY, "").strip():
        raise ConfigError(
            f"{name!r} is not a Claude model, and this program supports only Claude models.",
            code="unknown_model",
            hint=f"For example --model {DEFAULT_MODEL}; {_GATEWAY} names a gateway that offers other models.",
        )


def check_model_change(state: RunState, asked: str, *, accept: bool) -> None:
    """Refuse another model than the one a run was made with.

    Raises:
        SettingsConflict: It is another one, and changes are not accepted.
    """
    pinned = str(state.identity.get("model") or "")
    if pinned and asked != pinned and not accept:
        raise SettingsConflict(
            f"Run {state.run_id} was made with --model {pinned}, but {asked} is given now.",
            code="other_model",
            hint="Omit the option to continue as before, or --accept-changes to run again what it affects.",
            changed={"model": [pinned, asked]},
        )


def author_kind(model: str) -> str:
    """Return whether "offline" or "model" writes; the two are never mixed."""
    return "offline" if model == OFFLINE else "model"


def model_of(name: str, *, courses: bool = True, bank: str | None = None) -> Model:
    """Return the model of that name, not yet looked up.

    Args:
        bank: Folder with people's own topics, for the offline author.
        courses: It is asked for lessons, which the offline author can write; other work gets stand-in answers.

    Raises:
        ConfigError: The name is no Claude model's, and no gateway that may know it is set.
    """
    check_asked_model(name)
    if name == OFFLINE and not courses:
        from pipeline.llm.script import offline_model

        return offline_model()
    if name == OFFLINE:
        from pipeline.bank.topic import Bank
        from pipeline.lessons.offline import OfflineAuthor

        return OfflineAuthor(Bank([Path(bank)] if bank else []))
    from pipeline.llm.anthropic import AnthropicModel

    return AnthropicModel(name)


def settings_now(execution: Execution, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return how this start works, as recorded: what was given, else the run's own settings, else the defaults."""
    usd = {name: getattr(execution, name) for name in ("max_cost_usd", "daily_budget_usd")}
    values: dict[str, Any] = {
        "max_cost_usd": None if usd["max_cost_usd"] is None else f"{usd['max_cost_usd']:f}",
        "concurrency": execution.concurrency,
        "out": str(execution.out_folder),
        "prices": None if execution.prices is None else os.path.abspath(os.path.expanduser(execution.prices)),
        "budget": execution.budget,
        "daily_budget_usd": None if usd["daily_budget_usd"] is None else f"{usd['daily_budget_usd']:f}",
        "batch": execution.batch,
        "batch_min": execution.batch_min,
        "batch_poll_seconds": execution.batch_poll,
        "review": execution.review,
        "downloads": execution.downloads,
    }
    values |= {name: recorded[name] for name in _KEPT if name in recorded and name not in execution.given}
    once = ("until", "sample", "skip_failed", "overwrite", "no_wait", "resubmit", "executor")
    return values | {name: getattr(execution, name) for name in once}


def set_up(
    start: Start, model_name: str, recorded: Mapping[str, Any], verb: str = "lessons", bank: str | None = None
) -> Setup:
    """Return all that a run works with; free look-ups and refusals come first. `model_name` "": no model.

    Raises:
        CredentialMissing, ModelError, BudgetExceeded, ConfigError: Before any step.
    """
    how = settings_now(start.execution, recorded)
    model = model_of(model_name, courses=verb == "lessons", bank=bank) if model_name else None
    if model_name and model_name != OFFLINE:
        # The look-up may take a while, and nothing else has been shown by now.
        start.emit("looking", text=f"Checking the model {model_name} ...")
    info = look_up(model, start.clock, start.emit) if model else None
    for warning in info.warnings if info else ():
        start.emit("note", text=warning)
    prices = PriceBook(Path(how["prices"]) if how["prices"] else None)
    preflight.check_batches(model, how)
    if info is not None:
        preflight.check_priced(info, prices, start.clock, how)
    setup = without_model(start, recorded, verb)
    setup.model, setup.info, setup.prices = model, info, prices
    if how["daily_budget_usd"] is not None or (info is not None and info.paid):
        # A run without a limit reports what it spends, so that the limit of another counts it.
        setup.account = open_account(start.execution.store_url)
    setup.services = {"publisher": FolderPublisher(Path(how["out"]))}
    return setup


def without_model(start: Start, recorded: Mapping[str, Any], verb: str = "lessons") -> Setup:
    """Return a setup that can neither ask a model nor publish: enough to look at a completed run."""
    execution = start.execution
    return Setup(
        start.store, start.clock, start.emit, settings_now(execution, recorded), product=__version__,
        command=lambda run: resume_command(execution, run, verb), confirm=start.confirm, yes=execution.yes,
        cancel=lambda run: f"./pipeline.sh cancel {run}{store_words_of(execution)}",
    )  # fmt: skip


def accepting(start: Start) -> Callable[[Any], bool] | None:
    """Return, with --accept-changes, what names the steps that run again and agrees."""
    if not start.execution.accept_changes:
        return None

    def accept(stale: Any) -> bool:
        shown = ", ".join(f"{path} ({why})" for path, why in stale.steps.items())
        start.emit("note", text=f"Running again because of changes: {shown}.")
        return True

    return accept


def resume_wishes(execution: Execution) -> dict[str, Any]:
    """Return what a resume shall do beside continuing, as Engine.resume takes it."""
    return {
        "from_step": execution.from_step or "",
        "refresh": [execution.refresh] if execution.refresh else [],
        "retry_unknown": execution.retry_unknown,
    }


def nothing_left(state: RunState, definition: Definition, execution: Execution, *, same: bool = False) -> bool:
    """Return whether a resume finds a completed run with nothing to make: it needs no model, and no permission.

    Args:
        same: See changes.nothing_left.
    """
    wanted = any(resume_wishes(execution).values())
    return not wanted and changes.nothing_left(state, definition.graph, definition.steps, same=same)


def announce_model(start: Start, setup: Setup) -> None:
    """Say which model is asked, and up to what cost."""
    if setup.info is not None:
        ceiling = setup.options["max_cost_usd"]
        limit = "none" if ceiling is None else in_full(Decimal(str(ceiling)))
        start.emit("note", text=f"Model: {setup.info.id} · Ceiling: {limit} (--max-cost-usd)")


def resume_command(execution: Execution, run: str, verb: str = "lessons") -> str:
    """Return the command that resumes a run."""
    executor = f" --executor {shlex.quote(execution.executor)}" if execution.executor else ""
    return f"./pipeline.sh {verb} --resume {run}{store_words_of(execution)}{executor}"


def store_words_of(execution: Execution) -> str:
    """Return ` --store URL` where a store was given; else ""."""
    return store_words(execution.store_given) if execution.store_given else ""
