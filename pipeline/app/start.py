"""One start of the program: what it works with, put together before any step; and what is told at its end."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import __version__, environment
from pipeline.app.executors import check_executor
from pipeline.app.model_choice import OwnModel, billed_by, check_able, model_of, prices_for, with_own
from pipeline.app.stores import open_store
from pipeline.clock import Clock, SystemClock
from pipeline.engine import changes, preflight
from pipeline.engine.ceiling import more_room
from pipeline.engine.events import Emitter, Event, Listener
from pipeline.engine.result import RunResult
from pipeline.engine.retry import look_up
from pipeline.engine.setup import Definition, Setup
from pipeline.engine.sources import missing_param
from pipeline.errors import CheckpointCorrupt, NeedsConfirmation, WriteFailed
from pipeline.providers import ANTHROPIC
from pipeline.publish.base import Publisher
from pipeline.records.charge import in_full
from pipeline.records.run import RunState, Spend
from pipeline.records.statuses import COMPLETED
from pipeline.settings import OFFLINE, Execution, Identity
from pipeline.store.address import parse_store_url, store_words
from pipeline.store.base import Store
from pipeline.store.network import network_note

if TYPE_CHECKING:
    from pipeline.dot.model import DotGraph

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
    if "model_file" in recorded:
        values["model_file"] = recorded["model_file"]
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
        model = model_of(
            model_name, provider=provider, base_url=how["base_url"], own=start.own,
            own_file=recorded.get("model_file") or "FILE.py:NAME", courses=verb == "lessons", bank=bank,
        )  # fmt: skip
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
    if model_name == OFFLINE and "concurrency" not in {*start.execution.given, *recorded}:
        # It computes here, where threads only wait for each other.
        setup.options = {**setup.options, "concurrency": 1}
    if start.own is not None:
        # Recorded, so that people see what to name again, from any folder.
        file, _, name = start.own.target.rpartition(":")
        file = os.path.abspath(os.path.expanduser(file))
        setup.options = {**setup.options, "model_file": f"{file}:{name}"}
    return setup


def without_model(start: Start, recorded: Mapping[str, Any], verb: str = "lessons") -> Setup:
    """Return a setup that cannot ask a model: enough to look at a completed run, or to publish one."""
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


# --- the end -------------------------------------------------------------------------------------


#: Files changed by hand that are named; parameters that are suggested where none is like the one given.
_NAMED, _SUGGESTED = 5, 10
_PARAMS = "params."


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of one start or resume."""

    result: RunResult
    #: "" where nothing is left to do.
    resume_command: str = ""
    #: Folder of the published course; "" if it was not published, or holds another run's course.
    published: str = ""
    #: What was replaced in the published folder, or what it holds now.
    published_note: str = ""
    #: Of a completed course: the lessons that are missing from it.
    left_out: str = ""
    #: What this start was expected to cost before it began; None: no estimate was made.
    expected_usd: Decimal | None = None
    #: Of a DOT graph: its nodes in order of their ends.
    completed_nodes: tuple[str, ...] = ()

    @property
    def spent_now(self) -> Spend:
        """Return what this start has spent."""
        return self.result.spent_now if self.result.worked else Spend()


def finish(start: Start, setup: Setup, result: RunResult, verb: str = "lessons") -> RunReport:
    """Close what the run worked with, write the receipt beside what was published, and return the report."""
    if setup.model is not None:
        try:
            setup.model.close()
        except Exception as fault:
            # A model of the user's own may fail here: all that it answered is recorded.
            start.emit("note", text=f"The model's close() failed: {type(fault).__name__}.")
    again = setup.command(result.run_id)
    error, done = result.error, result.status == COMPLETED
    if isinstance(error, WriteFailed) and error.data.get("emergency") and not error.data.get("gone"):
        # The store does not know how it was named.
        command = f"./pipeline.sh recover {result.run_id} {error.data['emergency']}{store_words_of(start.execution)}"
        error.hint = f"Resuming on this machine adds what was kept; on another one, first: {command}"
    outputs = result.outputs.get("publish") or {}
    published = note = left_out = ""
    if verb == "lessons" and outputs.get("path"):
        published = str(Path(setup.options["out"], str(outputs["path"])))
        if done and result.worked:
            publisher = setup.services["publisher"]
            note = _replaced(publisher, result.run_id, outputs)
            publisher.receipt(str(outputs["path"]), _receipt(result))
    failed = int((result.outputs.get("lessons") or {}).get("failed") or 0)
    if verb == "lessons" and done and failed:
        which = "1 lesson failed and is" if failed == 1 else f"{failed} lessons failed and are"
        left_out = f"{which} left out; {again} --retry-failed tries again."
    # Without it a resume would ask again what a person has just been asked.
    confirmed = " --retry-unknown" if isinstance(error, NeedsConfirmation) else ""
    return RunReport(
        result,
        "" if done else f"{again}{more_room(error)}{missing_param(error)}{confirmed}{setup.again}",
        published,
        note,
        left_out,
        start.expected if done and result.worked else None,
    )


def _receipt(result: RunResult) -> dict[str, Any]:
    """Return what is kept beside a published course, outside its hash: run, money and time."""
    spent = result.spent
    low = spent.usd + spent.low
    unknown = spent.unbounded or spent.unpriced
    return {
        "run_id": result.run_id,
        "content_hash": result.outputs["publish"].get("content_hash"),
        "cost_usd": float(low),
        "cost_usd_at_most": None if unknown else float(max(low, spent.usd + spent.high)),
        "tokens": dict(spent.tokens),
        "calls": spent.calls,
        "active_seconds": round(result.seconds, 3),
    }


def _replaced(publisher: Publisher, run: str, outputs: Mapping[str, Any]) -> str:
    """Return which other run's course was replaced; asked before the run's own receipt is written."""
    there = publisher.standing(str(outputs["path"]))
    if there is None or there.run in ("", run) or there.run_hash == outputs.get("content_hash"):
        return ""
    kept = "; that version is kept in .versions until the next one" if there.kept else ""
    return f"It replaces what run {there.run} had published there{kept}."


def published_now(publisher: Publisher, outputs: Mapping[str, Any], folder: Path, again: str) -> tuple[bool, str]:
    """Return whether a completed run's course is what is published now, and a note on it.

    Args:
        outputs: Of the run's publish step.
        again: The command that publishes it again.
    """
    there = publisher.standing(str(outputs.get("path")))
    if there is None:
        return False, f"{folder} is gone; {again} publishes it again."
    if there.content_hash and there.content_hash != outputs.get("content_hash"):
        other = f"run {there.run}" if there.run and there.run_hash == there.content_hash else "another run"
        return False, f"{folder} holds what {other} published since; {again} publishes this one again."
    named = ", ".join(there.edited[:_NAMED]) + (", …" if len(there.edited) > _NAMED else "")
    return True, f"Changed by hand since: {named}." if named else ""


# --- parameters that are given and never read: most are misspelt -----------------------------------


def unnamed_params(params: Iterable[str], graph: DotGraph) -> list[str]:
    """Return a sentence for each parameter that nothing in a graph names."""
    from pipeline.dot.names import names_in

    names = names_in(graph)
    strange = [name for name in params if name not in names and name.removeprefix("graph.") not in graph.attributes]
    return [f"Nothing in the graph uses the parameter {name!r}{_instead(name, names)}" for name in strange]


def unread_params(state: RunState) -> list[str]:
    """Return a sentence for each parameter of a completed run that no step has read."""
    from pipeline.travel.overrides import names_read

    names = {name.removeprefix(_PARAMS) for name in names_read(state) if name.startswith(_PARAMS)}
    return [f"No step has read the parameter {name!r}{_instead(name, names)}"
            for name in state.params if name not in names]  # fmt: skip


def _instead(name: str, names: Collection[str]) -> str:
    """Return the names that may have been meant."""
    from difflib import get_close_matches

    if near := get_close_matches(name, names, 3, 0.6):
        return f"; did you mean {' or '.join(near)}?"
    return f". Known names: {', '.join(sorted(names)[:_SUGGESTED])}." if names else "."
