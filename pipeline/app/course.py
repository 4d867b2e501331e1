"""The lessons command: which run it means, what it is pinned to, and going on with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.app.start import Confirm, RunResult, Start, author_kind, finish, model_name, set_up
from pipeline.errors import ConfigError, RunExists, SettingsConflict
from pipeline.settings import OFFLINE, LessonsOptions, option_name
from pipeline.store.base import Claim

if TYPE_CHECKING:
    from pipeline.engine.engine import Setup
    from pipeline.engine.events import Listener
    from pipeline.lessons.course import Course
    from pipeline.records.run import RunState


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
    claim = Claim("lessons", course.subject, course.level, author_kind(model))
    identity, pins = _identity(options, model, course)
    choice = again.Choice("new", reason="--force")
    if not options.force:
        choice = again.choose_run(start.store.heads(), claim, identity, start.clock.now())
    if choice.kind != "new":
        start.emit(f"run_{'already_completed' if choice.kind == 'completed' else choice.kind}", run=choice.run,
                   reason=choice.reason)  # fmt: skip
        return _resume(start, choice.run)
    start.emit("run_new", run="", reason=choice.reason)
    setup = set_up(start, model, {})
    _announce(start, setup, identity, course, done=0)
    params = {"subject": course.subject, "level": course.level}
    try:
        result = _engine(setup).start(params, identity=identity, pins=pins, claim=claim, exclusive=not options.force)
    except RunExists as exists:
        return _resume(start, str(exists.data["run"]))
    return finish(start, result)


def resume(text: str, options: LessonsOptions, *, listener: Listener, confirm: Confirm | None = None) -> RunResult:
    """Go on with a run of the lessons pipeline: an id, a unique prefix, or "latest".

    Raises:
        RunNotFound, RunLocked, SettingsConflict, …: Before anything was recorded.
    """
    from pipeline.store.reading import resolve

    start = Start.of(options, listener, confirm)
    return _resume(start, resolve(start.store, text))


def _resume(start: Start, run: str) -> RunResult:
    """Go on with a run whose id is known."""
    from pipeline.lessons.again import conflicts
    from pipeline.store.reading import load

    options = start.options
    state = load(start.store, run)
    if state.pipeline != "lessons":
        raise ConfigError(
            f"Run {run} is of the pipeline {state.pipeline!r}.", hint=f"./pipeline.sh run … --resume {run}"
        )
    changed = conflicts(state.identity, _given_identity(options))
    if changed and not options.accept_changes:
        raise _conflict(run, changed)
    identity = {name: value for name, (_, value) in changed.items()}
    pins: Mapping[str, Any] = {}
    if not state.pins:
        identity, pins = _adopt(options, state)
    model = str(identity.get("model") or state.identity.get("model") or OFFLINE)
    if state.status == "completed" and not changed:
        start.emit("run_already_completed", run=run, reason="nothing is left to do")
    setup = set_up(start, model, state.execution)
    engine = _engine(setup)
    _announce(start, setup, {**state.identity, **identity}, None, done=_lessons_done(state))
    result = engine.resume(run, identity=identity, pins=pins, accept=_accepting(start))
    return finish(start, result)


def _adopt(options: LessonsOptions, state: RunState) -> tuple[dict[str, Any], dict[str, Any]]:
    """Identity and pins for an imported run, which has none: those a new run would get now."""
    from pipeline.lessons.catalogue import Catalogue

    course = Catalogue(options.catalogue).course(str(state.params.get("subject")), str(state.params.get("level")))
    return _identity(options, model_name(options.model), course)


def _given_identity(options: LessonsOptions) -> dict[str, Any]:
    """The identity settings the user gave with this start."""
    given: dict[str, Any] = {name: getattr(options, name) for name in ("effort", "lessons") if name in options.given}
    if options.model is not None and "model" in options.given:
        given["model"] = options.model
        given["author"] = author_kind(options.model)
    if "catalogue" in options.given and options.subject and options.level:
        from pipeline.lessons.catalogue import Catalogue

        given["catalogue"] = Catalogue(options.catalogue).course(options.subject, options.level).content_hash()
    return given


def _conflict(run: str, changed: Mapping[str, tuple[Any, Any]]) -> SettingsConflict:
    name, (pinned, given) = next(iter(changed.items()))
    return SettingsConflict(
        f"Run {run} was made with {option_name(name)} {pinned}, and now {given} is given.",
        hint="Leave the option out to go on as it was, --accept-changes to make again what it touches, "
        "or --force for a new run.",
        changed={key: list(pair) for key, pair in changed.items()},
    )


def _accepting(start: Start) -> Callable[[Any], bool] | None:
    """With --accept-changes: says what will be made again, and agrees."""
    if not start.options.accept_changes:
        return None

    def accept(stale: Any) -> bool:
        shown = ", ".join(f"{path} ({why})" for path, why in stale.steps.items())
        start.emit("note", text=f"Made again because of changes: {shown}.")
        return True

    return accept


def _identity(options: LessonsOptions, model: str, course: Course) -> tuple[dict[str, Any], dict[str, Any]]:
    """What decides the work, and the texts it is pinned to."""
    from pipeline.lessons.prompts import load_prompts
    from pipeline.records.values import value_hash

    prompts = load_prompts()
    pins: dict[str, Any] = {f"prompt:{name}": text for name, text in prompts.items()}
    pins["catalogue"] = course.to_json()
    identity = {
        "author": author_kind(model),
        "model": model,
        "effort": options.effort,
        "lessons": options.lessons,
        "catalogue": course.content_hash(),
        "prompts": value_hash(prompts),
    }
    return identity, pins


def _engine(setup: Setup) -> Any:
    from pipeline.engine.engine import Engine
    from pipeline.lessons.pipeline import PIPELINE

    return Engine(PIPELINE.definition, setup)


def _announce(start: Start, setup: Setup, identity: Mapping[str, Any], course: Course | None, done: int) -> None:
    """Say what it will cost, before the first paid call; ask where that is much.

    Raises:
        PipelineError: The person said no.
    """
    info = setup.info
    if info is None or not info.paid:
        return
    start.emit("plan", model=info.id, ceiling_usd=setup.options["max_cost_usd"])


def _lessons_done(state: RunState) -> int:
    """Lessons that need no more calls."""
    return sum(1 for task in state.tasks.get("lessons#1", {}).values() if task.status == "completed")
