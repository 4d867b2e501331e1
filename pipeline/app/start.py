"""One start of the program: its store, its model, its settings, put together before any step."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from pipeline import __version__, environment
from pipeline.app.executors import check_executor
from pipeline.app.model_choice import OwnModel, billed_by, check_able, model_of, prices_for, with_own
from pipeline.app.stores import open_store
from pipeline.clock import Clock, SystemClock
from pipeline.engine import changes, preflight
from pipeline.engine.events import Emitter, Event, Listener
from pipeline.engine.retry import look_up
from pipeline.engine.setup import Definition, Setup
from pipeline.errors import CheckpointCorrupt
from pipeline.providers import ANTHROPIC
from pipeline.publish.folder import FolderPublisher
from pipeline.records.charge import in_full
from pipeline.records.run import RunState
from pipeline.settings import OFFLINE, Execution, Identity
from pipeline.store.address import parse_store_url, store_words
from pipeline.store.base import Store
from pipeline.store.network import network_note

#: Asks a person; whether the answer was yes.
Confirm = Callable[[str], bool]
#: Settings that a run keeps until others are given; and those that hold for one start.
_KEPT = ("base_url", "max_cost_usd", "concurrency", "out", "prices", "batch", "batch_min", "daily_budget_usd", "review",
         "downloads", "labels")  # fmt: skip
_ONCE = ("until", "sample", "skip_failed", "overwrite", "no_wait", "resubmit", "executor")
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
    #: What decides the work.
    asked: Identity = field(default_factory=Identity)
    #: A model of the user's own (--model FILE.py:NAME).
    own: OwnModel | None = None
    #: What was announced before the first paid call, in USD.
    expected: Decimal | None = None

    @classmethod
    def of(cls, asked: Identity, execution: Execution, listener: Listener, confirm: Confirm | None = None) -> Start:
        """Load a model of the user's own, open the store, and say what a person should know of it.

        Raises:
            ConfigError, ModelError, StoreError: It cannot be opened or shared with the executor; or as load_own.
        """
        asked, own = with_own(asked)
        check_executor(execution)
        clock, decided = SystemClock(), DecisionListener(listener)
        emit = Emitter(clock, [decided])
        if note := store_note(execution.store_url):
            emit("note", text=note)
        if environment.is_installed() and not execution.store_given:
            kept = environment.data_home()
            emit("note", text=f"Runs are kept in {kept}; {environment.HOME} or --store names another place.")
        store = open_store(execution.store_url, concurrency=execution.at_once)
        return cls(execution, store, clock, emit, decided.before(confirm), asked, own)

    def command(self, run: str, verb: str = "lessons") -> str:
        """Return the command that resumes a run."""
        return resume_command(self.execution, run, verb) + (self.own.words if self.own else "")


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


def settings_now(execution: Execution, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return how this start works, as recorded: what was given, else the run's own settings, else the defaults."""
    values: dict[str, Any] = {name: getattr(execution, name) for name in (*_KEPT, "budget")}
    for name in ("max_cost_usd", "daily_budget_usd"):
        values[name] = None if values[name] is None else f"{values[name]:f}"
    if execution.prices is not None:
        values["prices"] = os.path.abspath(os.path.expanduser(execution.prices))
    values |= {"out": str(execution.out_folder), "batch_poll_seconds": execution.batch_poll}
    values |= {name: recorded[name] for name in _KEPT if name in recorded and name not in execution.given}
    return values | {name: getattr(execution, name) for name in _ONCE}


def set_up(
    start: Start,
    model_name: str,
    recorded: Mapping[str, Any],
    verb: str = "lessons",
    bank: str | None = None,
    provider: str | None = None,
) -> Setup:
    """Return all that a run works with; free look-ups and refusals come first. `model_name` "": no model.

    Raises:
        CredentialMissing, ModelError, BudgetExceeded, ConfigError: Before any step.
    """
    how = settings_now(start.execution, recorded)
    model = None
    if model_name and model_name != OFFLINE:
        check_able(provider, how)
        # The look-up may take a while, and nothing else has been shown by now.
        start.emit("looking", text=f"Checking the model {model_name} ...")
    if model_name:
        model = model_of(model_name, provider=provider, base_url=how["base_url"], own=start.own,
                         courses=verb == "lessons", bank=bank)  # fmt: skip
    own = start.own is not None
    info = billed_by(look_up(model, start.clock, start.emit), model, own=own) if model else None
    for warning in info.warnings if info else ():
        start.emit("note", text=warning)
    prices = prices_for(how, info.provider if info else provider)
    preflight.check_batches(model, how)
    if info is not None:
        preflight.check_counts(model, info, how)
        preflight.check_priced(info, prices, start.clock, how)
    setup = without_model(start, recorded, verb)
    setup.model, setup.info, setup.prices = model, info, prices
    if start.own is not None:
        # Recorded, so that people see what to name again.
        setup.options = {**setup.options, "model_file": start.own.target}
    setup.services = {"publisher": FolderPublisher(Path(how["out"]))}
    return setup


def without_model(start: Start, recorded: Mapping[str, Any], verb: str = "lessons") -> Setup:
    """Return a setup that can neither ask a model nor publish: enough to look at a completed run."""
    execution = start.execution
    return Setup(
        start.store, start.clock, start.emit, settings_now(execution, recorded), product=__version__,
        command=lambda run: start.command(run, verb), confirm=start.confirm, yes=execution.yes,
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
        start.emit("note", text=f"Model: {setup.info.id}{_where(setup)} · Ceiling: {limit} (--max-cost-usd)")


def _where(setup: Setup) -> str:
    """Return at which provider a model is asked, where that needs saying."""
    provider = setup.info.provider if setup.info else ANTHROPIC
    return "" if provider in (ANTHROPIC, OFFLINE) else f" ({provider})"


def resume_command(execution: Execution, run: str, verb: str = "lessons") -> str:
    """Return the command that resumes a run."""
    executor = f" --executor {shlex.quote(execution.executor)}" if execution.executor else ""
    return f"./pipeline.sh {verb} --resume {run}{store_words_of(execution)}{executor}"


def store_words_of(execution: Execution) -> str:
    """Return ` --store URL` where a store was given; else ""."""
    return store_words(execution.store_given) if execution.store_given else ""
