"""The lessons command: which run it means, what it is pinned to, and going on with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.app.decided import Confirm
from pipeline.app.executors import on_executor
from pipeline.app.identity import identity_of
from pipeline.app.pins import pins_again
from pipeline.app.published import stands
from pipeline.app.start import (
    RunResult,
    Start,
    accepting,
    author_kind,
    check_readable,
    execution,
    finish,
    model_name,
    resume_command,
    set_up,
    unmodelled,
    wishes,
)
from pipeline.app.work import Work
from pipeline.errors import CheckpointCorrupt, ConfigError, PipelineError, RunExists, SettingsConflict
from pipeline.files import parse_json
from pipeline.lessons.again import conflicts
from pipeline.records.charge import dollars
from pipeline.records.run import bare
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.settings import ASK_ABOVE_USD, OFFLINE, LessonsOptions, option_name
from pipeline.store.base import Claim, Store

if TYPE_CHECKING:
    from pipeline.engine.events import Listener
    from pipeline.engine.setup import Setup
    from pipeline.lessons.course import Course
    from pipeline.lessons.schemas import Entry
    from pipeline.records.run import RunState


#: The one visit of the step that writes lessons.
_LESSONS = "lessons#1"


def lessons(options: LessonsOptions, *, listener: Listener, confirm: Confirm | None = None) -> RunResult:
    """The plain command: a new course, or the unfinished run of the same one, or nothing to do.

    Raises:
        ConfigError, ModelError, StoreError: Before anything was recorded.
    """
    from pipeline.lessons import again
    from pipeline.lessons.catalogue import Catalogue

    start = Start.of(options, listener, confirm)
    course = Catalogue(options.catalogue).course(options.subject, options.level)
    model = model_name(options.model)
    if model == OFFLINE and options.model is None:
        start.emit("note", text="No credential (ANTHROPIC_API_KEY): the offline author writes a draft, $0.00.")
    start.emit("looking", text=f"Looking for an unfinished run of this course in {start.store.url} ...")
    claim = Claim("lessons", course.subject, course.level, author_kind(model))
    identity, pins = identity_of(options, model, course)
    choice = again.Choice("new", reason="--force")
    if not options.force:
        choice = again.choose_run(start.store.heads(), claim, identity, start.clock.now())
    if choice.kind == "completed":
        return _resume(start, choice.run, choice.reason)
    if choice.kind == "continuing":
        start.emit("run_continuing", run=choice.run, reason=choice.reason)
        return _resume(start, choice.run)
    start.emit("run_new", run="", reason=choice.reason)
    setup = _set_up(start, model, {})
    _check_publishing(setup, course, model)
    prompts = {name.removeprefix("prompt:"): text for name, text in pins.items() if name.startswith("prompt:")}
    _announce(start, setup, identity, course, prompts, work_of(options, int(identity.get("lessons") or 1)))
    params = {"subject": course.subject, "level": course.level}
    try:
        with _executor(start, setup):
            result = _engine(setup).start(
                params, identity=identity, pins=pins, claim=claim, exclusive=not options.force
            )
    except RunExists as exists:
        start.emit("run_continuing", run=str(exists.data["run"]), reason="another process just started it")
        return _resume(start, str(exists.data["run"]))
    return finish(start, setup, result)


def _set_up(start: Start, model: str, recorded: Mapping[str, Any]) -> Setup:
    setup = set_up(start, model, recorded)
    setup.anew = lambda run, path, task: _anew(start.options, run, path, task)
    return setup


def _check_publishing(setup: Setup, course: Course, model: str) -> None:
    """Refuse a place that the course cannot be published to now, not hours later.

    Raises:
        PublishError: The folder cannot be written, or what stands there is not ours.
    """
    from pipeline.lessons.pipeline import bundle_name

    if setup.options["until"] in (None, "publish") and setup.options["sample"] is None:
        name = bundle_name(course.course_id, draft=author_kind(model) == OFFLINE)
        setup.services["publisher"].check(name, overwrite=setup.options["overwrite"])


def resume(text: str, options: LessonsOptions, *, listener: Listener, confirm: Confirm | None = None) -> RunResult:
    """Go on with a run of the lessons pipeline: an id, a unique prefix, or "latest".

    Raises:
        RunNotFound, RunLocked, SettingsConflict, …: Before anything was recorded.
    """
    from pipeline.store.reading import COURSES, resolve

    start = Start.of(options, listener, confirm)
    return _resume(start, resolve(start.store, text, COURSES))


def redo(
    text: str, place: str, note: str, options: LessonsOptions, *, listener: Listener, confirm: Confirm | None = None
) -> RunResult:
    """Make one lesson of a run again, with a teacher's note, and publish anew.

    Args:
        place: lessons/7, or 7.
        note: What is to be different; it goes into the prompt.

    Raises:
        ConfigError: The run has no such lesson; or as `resume`.
    """
    from pipeline.store.reading import COURSES, load, resolve

    start = Start.of(options, listener, confirm)
    run = resolve(start.store, text, COURSES)
    state = load(start.store, run)
    tasks = state.tasks.get(_LESSONS, {})
    task = f"lessons/{place.rpartition('/')[2]}"
    if place.rpartition("/")[0] not in ("", "lessons", "lessons#1") or task not in tasks:
        known = ", ".join(tasks) or "none yet"
        raise ConfigError(f"Run {run} has no {place!r} to make again.", hint=f"Lessons that have ended: {known}.")
    if note and state.identity.get("author") == OFFLINE:
        start.emit("note", text="The offline author reads no notes: the lesson comes out as it was.")
    return _resume(start, run, redo=[(_LESSONS, task)], note=note)


def _resume(
    start: Start,
    run: str,
    done: str = "nothing is left to do",
    *,
    redo: Sequence[tuple[str, str]] = (),
    note: str = "",
) -> RunResult:
    """Go on with a run whose id is known.

    Args:
        done: Why a completed one is left as it is.
        redo, note: Lessons to make again, and what is to be different.
    """
    from pipeline.engine.missing_values import find as find_lost
    from pipeline.store.reading import load

    options = start.options
    state = load(start.store, run)
    _check_pipeline(state)
    identity, pins = changed_settings(options, state) if state.pins else _adopt(options, state)
    pins = {**pins_again(start, state, pins), **pins}
    void = _unpublished(start, state)
    again = (options.from_step or "").removesuffix("#1")
    if options.retry_failed:
        redo = [(_LESSONS, task) for task, end in state.tasks.get(_LESSONS, {}).items() if end.status == FAILED]
        done = "no lesson has failed"
    if state.status == COMPLETED and not (identity or void or again or redo or options.refresh):
        start.emit("run_already_completed", run=run, reason=done)
        return _nothing_to_do(start, state)
    if void:
        start.emit("run_continuing", run=run, reason="; ".join(void.values()))
    now = {**state.identity, **identity}
    setup = _set_up(start, str(now["model"]), state.execution)
    course, prompts = pinned(start.store, state, pins)
    _check_publishing(setup, course, str(now["model"]))
    _tell_asked(start, state, again, redo)
    lost = find_lost(start.store, state).forget(state)
    if state.status != COMPLETED or identity or again or redo or lost:
        asked = work_of(options, int(now.get("lessons") or 1), state, identity, again, [task for _, task in redo])
        scheme = None if identity else scheme_of(start.store, state)
        _announce(start, setup, now, course, prompts, asked, scheme)
    with _executor(start, setup):
        result = _engine(setup).resume(
            run,
            identity=identity,
            pins=pins,
            accept=accepting(start),
            missing=void,
            redo=redo,
            note=note,
            **{**wishes(options), "from_step": again},
        )
    if not result.worked:
        start.emit("run_already_completed", run=run, reason="another process has just completed it")
    return finish(start, setup, result)


def _check_pipeline(state: RunState) -> None:
    """Refuse a run that is none of this pipeline.

    Raises:
        CheckpointCorrupt, ConfigError: It cannot be read, or is of another one.
    """
    from pipeline.formats.langgraph.threads import check_is_no_thread

    check_readable(state)
    check_is_no_thread(state)
    if state.pipeline != "lessons":
        raise ConfigError(
            f"Run {state.run_id} belongs to the pipeline {state.pipeline!r}.",
            hint=f"./pipeline.sh run FILE.py:NAME --resume {state.run_id}",
        )


def _tell_asked(start: Start, state: RunState, again: str, redo: Sequence[tuple[str, str]]) -> None:
    if f"{again}#1" in state.steps:
        start.emit("note", text=f"{again} is made again, as asked, and after it whatever read what it made.")
    if redo:
        start.emit("note", text=f"Made again, as asked: {', '.join(task for _, task in redo)}.")


def _nothing_to_do(start: Start, state: RunState) -> RunResult:
    """The answer for a completed run: what it came to, and whether its course is what is published now."""
    from pipeline.publish.folder import FolderPublisher

    setup = unmodelled(start, state.execution)
    result = finish(start, setup, _engine(setup).resume(state.run_id))
    if not result.published:
        return result
    again = f"{resume_command(start.options, state.run_id)} --from publish"
    folder = Path(result.published)
    outputs = state.steps["publish#1"].outputs
    there, note = stands(FolderPublisher(folder.parent), outputs, folder, again)
    return replace(result, published=result.published if there else "", published_note=note)


def pinned(store: Store, state: RunState, pins: Mapping[str, Any]) -> tuple[Course, dict[str, str]]:
    """The course and the prompts a run works from: `pins` that will replace its own, else its own.

    Raises:
        CheckpointCorrupt: The run is pinned to no course that can be read.
    """
    from pipeline.lessons.author import course_of

    # The graph is compared, not worked from.
    read = state.pins.keys() - pins.keys() - {"graph"}
    try:
        own = {name: parse_json(store.get_blob(state.run_id, state.pins[name])) for name in sorted(read)}
        all_pins = {**own, **pins}
        course = course_of(all_pins["catalogue"])
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointCorrupt(
            f"Run {state.run_id} is pinned to a course that cannot be read ({type(error).__name__}).", run=state.run_id
        ) from error
    return course, {key.removeprefix("prompt:"): text for key, text in all_pins.items() if key.startswith("prompt:")}


def _anew(options: LessonsOptions, run: str, path: str, task: str | None) -> str:
    """The command that has a lesson, or all of a step, asked anew."""
    command = resume_command(options, run)
    if path == _LESSONS and task is not None:
        return command.replace(f"lessons --resume {run}", f"redo {run} {task}")
    return f"{command} --from {bare(path)}"


def _unpublished(start: Start, state: RunState) -> dict[str, str]:
    """The publish step of a run whose published folder is not there (any more): path → why."""
    done = state.steps.get("publish#1")
    if done is None or done.status != COMPLETED:
        return {}
    folder = execution(start.options, state.execution)["out"]
    there = Path(folder, str(done.outputs.get("path")), "index.html").exists()
    return {} if there else {"publish#1": "the published folder is missing"}


def _adopt(options: LessonsOptions, state: RunState) -> tuple[dict[str, Any], dict[str, Any]]:
    """Identity and pins for an imported run, which has none: those a new run would get now."""
    _check_course(options, state)
    course = _course(options, state)
    return identity_of(options, model_name(options.model), course)


def changed_settings(options: LessonsOptions, state: RunState) -> tuple[dict[str, Any], dict[str, Any]]:
    """Identity settings given with this start that differ from the pinned ones, and pins to replace.

    Raises:
        SettingsConflict: There are some, and --accept-changes is not given; or another kind of author, or course.
    """
    _check_course(options, state)
    given: dict[str, Any] = {name: getattr(options, name) for name in ("effort", "lessons") if name in options.given}
    if options.model is not None and "model" in options.given:
        given |= {"model": options.model, "author": author_kind(options.model)}
    course = _course(options, state) if "catalogue" in options.given else None
    if course is not None:
        given["catalogue"] = course.content_hash()
    changed = conflicts(state.identity, given)
    if changed and ("author" in changed or not options.accept_changes):
        raise _conflict(state.run_id, changed)
    identity = {name: value for name, (_, value) in changed.items()}
    return identity, {"catalogue": course.to_json()} if course is not None and "catalogue" in identity else {}


def _check_course(options: LessonsOptions, state: RunState) -> None:
    """Refuse to go on with a run under the name of another course.

    Raises:
        SettingsConflict: --subject or --level is given and says other than the run.
    """
    from pipeline.errors import CatalogueError
    from pipeline.lessons.names import level_name, subject_name

    for name, canonical in (("subject", subject_name), ("level", level_name)):
        given, own = str(getattr(options, name)), str(state.params.get(name) or "")
        if name not in options.given or not given or not own:
            continue
        with suppress(CatalogueError):
            given = canonical(given, more=[own])
        if given != own:
            raise SettingsConflict(
                f"Run {state.run_id} belongs to {state.params.get('subject')} {state.params.get('level')}, "
                f"but {option_name(name)} {getattr(options, name)} is given.",
                hint=f"Leave {option_name(name)} out to go on with this run, or --resume out for another course.",
                changed={name: [own, given]},
            )


def _course(options: LessonsOptions, state: RunState) -> Course:
    from pipeline.lessons.catalogue import Catalogue

    return Catalogue(options.catalogue).course(str(state.params.get("subject")), str(state.params.get("level")))


def _conflict(run: str, changed: Mapping[str, tuple[Any, Any]]) -> SettingsConflict:
    values = {key: list(pair) for key, pair in changed.items()}
    if "author" in changed:
        return SettingsConflict(
            f"Run {run} was written by {changed['model'][0]}; a draft and a course by a model are never mixed.",
            hint="Leave --model out to go on as it was, or --force for a new run.",
            changed=values,
        )
    name, (pinned, given) = next(iter(changed.items()))
    return SettingsConflict(
        f"Run {run} was made with {option_name(name)} {pinned}, but {given} is given now.",
        hint="Leave the option out to go on as it was, --accept-changes to make again what it touches, "
        "or --force for a new run.",
        changed=values,
    )


def _engine(setup: Setup) -> Any:
    from pipeline.engine.engine import Engine
    from pipeline.lessons.pipeline import PIPELINE

    return Engine(PIPELINE.definition, setup)


def _executor(start: Start, setup: Setup) -> AbstractContextManager[None]:
    """What `--executor` names, while a run goes."""
    from pipeline.lessons.pipeline import PIPELINE

    return on_executor(start.options, PIPELINE.definition, setup)


def _announce(
    start: Start,
    setup: Setup,
    identity: Mapping[str, Any],
    course: Course,
    prompts: Mapping[str, str],
    work: Work,
    scheme: Sequence[Entry] | None = None,
) -> None:
    """Say what is left will cost, before the first paid call; ask where that is much.

    Raises:
        PipelineError: The person said no.
    """
    from pipeline.app.expect import expectations
    from pipeline.app.pricing import remaining

    info, prices = setup.info, setup.prices
    if info is None or prices is None or not info.paid:
        return
    expected, worst = remaining(
        course, prompts, identity, prices, work, scheme,
        batch=bool(setup.options.get("batch")), history=expectations(start.options, info.id, course.subject),
    )  # fmt: skip
    start.expected = expected
    ceiling = setup.options["max_cost_usd"]
    start.emit("plan", model=info.id, expected_usd=_text(expected), worst_usd=_text(worst), ceiling_usd=ceiling)
    if expected is None or expected <= ASK_ABOVE_USD or start.confirm is None or start.options.yes:
        return
    if not start.confirm(f"This will cost about {dollars(expected)}. Go on?"):
        raise PipelineError("Not started.", hint="--yes goes on without asking; --dry-run shows the plan.")


def work_of(
    options: LessonsOptions,
    total: int,
    state: RunState | None = None,
    changed: Collection[str] = (),
    again: str = "",
    redo: Collection[str] = (),
) -> Work:
    """Return what a start with these options makes of a course.

    Args:
        total: Lessons of the course.
        changed: Settings that are given otherwise than the run has them; they may void all but the seed.
        again, redo: A step and lessons that are made again.
    """
    why = ", ".join(f"changed {option_name(name)[2:]}" for name in changed if name != "author")
    return Work(total, state, options.until, options.sample, why, again, redo, options.skip_failed)


def scheme_of(store: Store, state: RunState) -> Sequence[Entry] | None:
    """Return the scheme that a run works from, once it has one; None also where it cannot be read.

    What a run will cost is estimated without it: the run itself finds out that it is damaged, and makes it again.
    """
    from pipeline.lessons.schemas import Scheme

    sow = state.steps.get("sow#1")
    if sow is None or sow.status != COMPLETED or "scheme" not in sow.artifacts:
        return None
    try:
        return Scheme.model_validate_json(store.get_blob(state.run_id, sow.artifacts["scheme"])).entries
    except (CheckpointCorrupt, ValueError):
        return None


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)
