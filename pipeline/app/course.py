"""The lessons command: which run it means, and how it is started or resumed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from pipeline.app.cost_estimate import CourseHistory, expectations, remaining
from pipeline.app.course_identity import (
    changed_settings,
    check_same_course,
    course_of_run,
    earlier_schema,
    identity_of,
    lost_pins,
    pinned,
    prompts_in,
    scheme_of,
    todays_prompts,
    unwritten_note,
)
from pipeline.app.course_work import RUN, CourseWork
from pipeline.app.executors import on_executor
from pipeline.app.limits import short_limits
from pipeline.app.model_choice import author_kind, model_name, prices_for, provider_in
from pipeline.app.review import decided_since, to_redo
from pipeline.app.start import (
    RunReport,
    Start,
    accepting,
    check_readable,
    finish,
    published_now,
    resume_wishes,
    set_up,
    settings_now,
    without_model,
)
from pipeline.content.lesson import LESSON_SCHEMA
from pipeline.engine.engine import Engine
from pipeline.engine.missing_values import find as find_lost
from pipeline.engine.setup import Setup
from pipeline.errors import ConfigError, PipelineError, RunExists
from pipeline.export.base import checked, listed
from pipeline.formats.langgraph.threads import check_is_no_thread
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.course import Course
from pipeline.lessons.pipeline import PIPELINE, bundle_name
from pipeline.lessons.run_selection import choose_run
from pipeline.lessons.schemas import Entry
from pipeline.publish.folder import FolderPublisher
from pipeline.records.charge import dollars
from pipeline.records.run import RunState, bare
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.settings import ASK_ABOVE_USD, OFFLINE, Execution, option_name
from pipeline.store.base import Claim, Store
from pipeline.store.reader import COURSES, LESSONS, load, resolve

#: Settings that change with others, or that void nothing of what is made.
_NO_CHANGE = frozenset({"author", "lesson_schema", "bank_folder"})
_NOTHING_LEFT = "nothing is left to do"


@dataclass(frozen=True, slots=True)
class Redo:
    """Lessons to make again: (path, task) of each with what to change, and why there may be none."""

    tasks: Mapping[tuple[str, str], str] = field(default_factory=dict)
    #: Why a completed run is left as it is.
    otherwise: str = _NOTHING_LEFT


def lessons(start: Start) -> RunReport:
    """Start a course, resume the unfinished run of the same one, or find nothing to do.

    Raises:
        ConfigError, ModelError, StoreError: Before anything was recorded.
    """
    asked, execution = start.asked, start.execution
    course = Catalogue(asked.catalogue).course(asked.subject, asked.level)
    model = model_name(asked.model, asked.provider, execution.base_url)
    if model == OFFLINE and asked.model is None:
        start.emit("note", text="No credential (ANTHROPIC_API_KEY): the offline author writes a draft, $0.00.")
    if note := unwritten_note(asked, model, course):
        start.emit("note", text=note)
    start.emit("looking", text=f"Looking for an unfinished run of this course in {start.store.url} ...")
    claim = Claim("lessons", course.subject, course.level, author_kind(model))
    identity, pins = identity_of(asked, model, course)
    reason = "--force"
    if not execution.force:
        choice = choose_run(start.store.heads(), claim, identity, start.clock.now())
        reason = choice.reason
        if choice.kind == "completed":
            return _resume(start, choice.run, Redo(otherwise=reason))
        if choice.kind == "continuing":
            start.emit("run_continuing", run=choice.run, reason=reason)
            return _resume(start, choice.run)
    start.emit("run_new", run="", reason=reason)
    setup = _set_up(start, identity, {}, course)
    work = work_of(execution, int(identity.get("lessons") or 1))
    _announce(start, setup, identity, course, prompts_in(pins), work)
    params = {"subject": course.subject, "level": course.level}
    try:
        with on_executor(execution, PIPELINE.definition, setup):
            result = Engine(PIPELINE.definition, setup).start(
                params, identity=identity, pins=pins, claim=claim, exclusive=not execution.force
            )
    except RunExists as exists:
        start.emit("run_continuing", run=str(exists.data["run"]), reason="another process just started it")
        return _resume(start, str(exists.data["run"]))
    return finish(start, setup, result)


def resume(start: Start, text: str) -> RunReport:
    """Resume a run of the lessons pipeline: an id, a unique prefix, or "latest".

    Raises:
        RunNotFound, RunLocked, SettingsConflict, …: Before anything was recorded.
    """
    return _resume(start, resolve(start.store, text, COURSES))


def redo(start: Start, text: str, place: str, note: str) -> RunReport:
    """Make one lesson of a run again, with a teacher's note, and publish anew.

    Args:
        place: lessons/7, or 7.
        note: What to change; added to the prompt.

    Raises:
        ConfigError: The run has no such lesson; or as `resume`.
    """
    run = resolve(start.store, text, COURSES)
    state = load(start.store, run)
    tasks = state.tasks.get(LESSONS, {})
    step, _, item = place.rpartition("/")
    if step not in ("", "lessons", LESSONS) or f"lessons/{item}" not in tasks:
        raise ConfigError(f"Run {run} has no {place!r} to redo.", code="lesson_not_found",
                          hint=f"Finished lessons: {', '.join(tasks) or 'none yet'}.")  # fmt: skip
    if note and state.identity.get("author") == OFFLINE:
        start.emit("note", text="The offline author ignores notes: the lesson will come out the same.")
    return _resume(start, run, Redo({(LESSONS, f"lessons/{item}"): note}))


def _resume(start: Start, run: str, wanted: Redo | None = None) -> RunReport:
    """Resume a run whose id is known."""
    asked, execution, wanted = start.asked, start.execution, wanted or Redo()
    state = load(start.store, run)
    check_readable(state)
    check_is_no_thread(state)
    if state.pipeline != "lessons":
        raise ConfigError(f"Run {run} belongs to the pipeline {state.pipeline!r}.", code="other_pipeline",
                          hint=f"./pipeline.sh run FILE.py:NAME --resume {run}")  # fmt: skip
    if state.pins:
        identity, pins = changed_settings(start.store, asked, state, accept=execution.accept_changes)
    else:
        # An imported run has none: it gets those of a new run.
        check_same_course(asked, state)
        model = model_name(asked.model, asked.provider, execution.base_url)
        identity, pins = identity_of(asked, model, course_of_run(asked, state))
    pins = {**lost_pins(start, state, pins), **pins}
    missing = _unpublished(start, state)
    again = (execution.from_step or "").removesuffix("#1")
    if execution.retry_failed:
        failed = [task for task, end in state.tasks.get(LESSONS, {}).items() if end.status == FAILED]
        wanted = Redo(dict.fromkeys(((LESSONS, task) for task in failed), ""), otherwise="no lesson has failed")
    wanted = replace(wanted, tasks={**to_redo(state), **wanted.tasks})
    if state.status == COMPLETED and not (identity or missing or again or wanted.tasks or execution.refresh):
        start.emit("run_already_completed", run=run, reason=wanted.otherwise)
        return _nothing_to_do(start, state)
    if missing:
        start.emit("run_continuing", run=run, reason="; ".join(missing.values()))
    tasks = [task for _, task in wanted.tasks]
    lost = find_lost(start.store, state).forget(state)
    pins, identity, work = _with_todays_prompts(start, state, (pins, identity), (again, tasks))
    now = {**state.identity, **identity}
    course, prompts = pinned(start.store, state, pins)
    asks = bool(lost or execution.refresh or work.left() | {bare(path) for path in missing} != {"publish"})
    setup = _set_up(start, now, state.execution, course, asks=asks)
    if f"{again}#1" in state.steps:
        start.emit("note", text=f"Re-running {again} and every step that depends on it.")
    if tasks:
        start.emit("note", text=f"Regenerating {', '.join(tasks)} as requested.")
    # A run that is still without today's prompts has no lesson left that they would make.
    writes = asks and not todays_prompts(start.store, state, pins)
    if writes and (state.status != COMPLETED or identity or again or tasks or lost):
        scheme = None if work.changed else scheme_of(start.store, state)
        _announce(start, setup, now, course, prompts, work, scheme)
    with on_executor(execution, PIPELINE.definition, setup):
        result = Engine(PIPELINE.definition, setup).resume(
            run, identity=identity, pins=pins, accept=accepting(start), missing=missing, redo=wanted.tasks,
            **{**resume_wishes(execution), "from_step": again},
        )  # fmt: skip
    if not result.worked:
        start.emit("run_already_completed", run=run, reason="another process has just completed it")
    return finish(start, setup, result)


def _with_todays_prompts(
    start: Start, state: RunState, given: tuple[dict[str, Any], dict[str, Any]], wanted: tuple[str, Sequence[str]]
) -> tuple[dict[str, Any], dict[str, Any], CourseWork]:
    """Return the pins and settings a resume works with, and what it makes.

    Args:
        given: Pins and settings that are replaced.
        wanted: A step and lessons that are made again.

    Raises:
        SettingsConflict: Lessons are to be written in a run of an earlier schema, and that is not accepted.
    """
    pins, identity = given
    total = int({**state.identity, **identity}.get("lessons") or 1)
    work = work_of(start.execution, total, state, identity, *wanted)
    prompts = todays_prompts(start.store, state, pins)
    left = sum(piece.name.startswith("lessons/") and piece.action == RUN for piece in work.pieces())
    if not (prompts and left):
        return pins, identity, work
    pins = {**pins, **prompts}
    if not start.execution.accept_changes:
        how = settings_now(start.execution, state.execution)
        expected, _ = rest_of_run(start.store, state, how, work, pins, identity)
        raise earlier_schema(state, left, "no known price" if expected is None else f"about {dollars(expected)}")
    return pins, {**identity, "lesson_schema": LESSON_SCHEMA[1]}, work


def rest_of_run(
    store: Store,
    state: RunState,
    how: Mapping[str, Any],
    work: CourseWork,
    pins: Mapping[str, Any],
    identity: Mapping[str, Any] | None = None,
    history: CourseHistory | None = None,
) -> tuple[Decimal | None, Decimal | None]:
    """Return (expected, worst) USD of what is left of a run's course; None: its model has no known price.

    Args:
        how: As `settings_now` gives it.
        pins, identity: Texts and settings that replace the run's own.
    """
    course, prompts = pinned(store, state, pins)
    now = {**state.identity, **(identity or {})}
    prices, scheme = prices_for(how, provider_in(now)), None if work.changed else scheme_of(store, state)
    return remaining(course, prompts, now, prices, work, scheme, batch=bool(how.get("batch")), history=history)


def _set_up(
    start: Start, identity: Mapping[str, Any], recorded: Mapping[str, Any], course: Course, *, asks: bool = True
) -> Setup:
    """Return what a run of a course works with; refuse a place that it could not be published to hours later.

    Args:
        asks: A model may be asked. Where only publishing is left it is not looked up, and no key is needed.

    Raises:
        PublishError: The folder cannot be written, or what is there is not ours; or as `set_up`.
        ConfigError, PackageMissing: It is to be published with a format that there is not.
    """
    checked(listed(settings_now(start.execution, recorded)["downloads"]))
    model, bank = str(identity["model"]), identity.get("bank_folder")
    if asks:
        setup = set_up(start, model, recorded, bank=bank, provider=provider_in(identity))
    else:
        setup = without_model(start, recorded)
    setup.anew = lambda run, path, task: _command_again(start, run, path, task)
    publisher = FolderPublisher(Path(setup.options["out"]))
    setup.services = {"publisher": publisher}
    if setup.options["until"] in (None, "publish") and setup.options["sample"] is None:
        name = bundle_name(course.course_id, draft=author_kind(model) == OFFLINE)
        publisher.check(name, overwrite=setup.options["overwrite"])
    return setup


def _command_again(start: Start, run: str, path: str, task: str | None) -> str:
    """Return the command that has a lesson, or all of a step, made again."""
    command = start.command(run)
    if path == LESSONS and task is not None:
        return command.replace(f"lessons --resume {run}", f"redo {run} {task}")
    return f"{command} --from {bare(path)}"


def _unpublished(start: Start, state: RunState) -> dict[str, str]:
    """Return the publish step of a run whose published folder is missing, or not as people decided: path → why."""
    done = state.steps.get("publish#1")
    if done is None or done.status != COMPLETED:
        return {}
    if decided_since(state):
        return {"publish#1": "lessons were reviewed since it was published"}
    how = settings_now(start.execution, state.execution)
    with_ = ", ".join(listed(how["downloads"]))
    if with_ != done.outputs.get("with", ""):
        return {"publish#1": f"it is to be published with {with_ or 'no downloads'}"}
    there = Path(how["out"], str(done.outputs.get("path")), "index.html").exists()
    return {} if there else {"publish#1": "the published folder is missing"}


def _nothing_to_do(start: Start, state: RunState) -> RunReport:
    """Return what a completed run came to, and whether its course is what is published now."""
    setup = without_model(start, state.execution)
    report = finish(start, setup, Engine(PIPELINE.definition, setup).resume(state.run_id))
    if not report.published:
        return report
    again, folder = f"{start.command(state.run_id)} --from publish", Path(report.published)
    outputs = state.steps["publish#1"].outputs
    there, note = published_now(FolderPublisher(folder.parent), outputs, folder, again)
    return replace(report, published=report.published if there else "", published_note=note)


def _announce(
    start: Start,
    setup: Setup,
    identity: Mapping[str, Any],
    course: Course,
    prompts: Mapping[str, str],
    work: CourseWork,
    scheme: Sequence[Entry] | None = None,
) -> None:
    """Say what is left will cost, before the first paid call; ask where that is much.

    Raises:
        PipelineError: The person said no.
    """
    info, prices = setup.info, setup.prices
    if info is None or prices is None or not info.paid:
        return
    expected, worst = remaining(
        course, prompts, identity, prices, work, scheme, batch=bool(setup.options.get("batch")),
        history=expectations(start.execution.store_url, info.id, course.subject),
    )  # fmt: skip
    start.expected = expected
    usd = {"expected_usd": expected, "worst_usd": worst}
    shown = {name: None if amount is None else str(amount) for name, amount in usd.items()}
    start.emit("plan", model=info.id, expected_usd=shown["expected_usd"], worst_usd=shown["worst_usd"],
               ceiling_usd=setup.options["max_cost_usd"])  # fmt: skip
    for each in short_limits(start.execution.store_url, setup.options, expected, worst):
        start.emit("note", text=each.text)
    if expected is None or expected <= ASK_ABOVE_USD or start.confirm is None or start.execution.yes:
        return
    if not start.confirm(f"This will cost about {dollars(expected)}. Continue?"):
        raise PipelineError("Not started.", code="not_confirmed",
                            hint="--yes proceeds without asking; --dry-run shows the plan.")  # fmt: skip


def work_of(
    execution: Execution,
    total: int,
    state: RunState | None = None,
    changed: Collection[str] = (),
    again: str = "",
    redo: Collection[str] = (),
) -> CourseWork:
    """Return what a start with these settings makes of a course.

    Args:
        total: Lessons of the course.
        changed: Settings that are given otherwise than the run has them; they may void all but the seed.
        again, redo: A step and lessons that are made again.
    """
    why = ", ".join(f"changed {option_name(name)[2:]}" for name in changed if name not in _NO_CHANGE)
    return CourseWork(total, state, execution.until, execution.sample, why, again, redo, execution.skip_failed)
