"""The run command: a pipeline file of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.app.decided import Confirm
from pipeline.app.executors import on_executor
from pipeline.app.start import (
    RunResult,
    Start,
    accepting,
    check_readable,
    finish,
    has_credential,
    nothing_left,
    set_up,
    tell_model,
    unmodelled,
    wishes,
)
from pipeline.app.unread import unread_params
from pipeline.errors import ConfigError, CredentialMissing, SettingsConflict
from pipeline.records.statuses import COMPLETED
from pipeline.settings import DEFAULT_MODEL, LessonsOptions

if TYPE_CHECKING:
    from pipeline.engine.events import Listener
    from pipeline.records.run import RunState


def run_file(
    target: str,
    *,
    params: Mapping[str, Any],
    resume: str | None,
    options: LessonsOptions,
    listener: Listener,
    confirm: Confirm | None = None,
) -> RunResult:
    """Run a user's own pipeline (FILE.py:NAME), or go on with one of its runs.

    Raises:
        ConfigError, GraphError, StoreError, SettingsConflict: Before anything was recorded.
    """
    from pipeline.engine import preflight
    from pipeline.engine.engine import Engine
    from pipeline.engine.pipeline import load_pipeline
    from pipeline.formats.langgraph.threads import check_is_no_thread
    from pipeline.store.reading import load, resolve

    pipeline, verb = load_pipeline(target), f"run {target}"
    preflight.check_params(params)
    start = Start.of(options, listener, confirm)
    run = resolve(start.store, resume, pipeline.name) if resume else ""
    state = load(start.store, run) if run else None
    if state is not None:
        check_readable(state)
        check_is_no_thread(state)
    if state is not None and state.pipeline != pipeline.name:
        raise ConfigError(f"Run {run} belongs to the pipeline {state.pipeline!r}, but {target} is {pipeline.name!r}.")
    added = preflight.added_params(state, params) if state is not None else {}
    other = _other_model(options, state) if state is not None else ""
    if state is not None and not other and nothing_left(state, pipeline.definition, options):
        start.emit("run_already_completed", run=run, reason="nothing is left to do")
        setup = unmodelled(start, state.execution, verb)
        return finish(start, setup, Engine(pipeline.definition, setup).resume(run), verb)
    pinned = str(state.identity.get("model") or "") if state else ""
    chosen = other or pinned or options.model or _default_model(target, asks=pipeline.asks)
    setup = set_up(start, chosen, state.execution if state else {}, verb)
    # Recorded, so that whoever looks at the run, or forks it, can say what goes on with it.
    setup.options = {**setup.options, "target": target}
    tell_model(start, setup)
    engine = Engine(pipeline.definition, setup)
    identity = {"model": setup.info.id, "author": setup.info.author} if setup.info else {}
    if run:
        # A run that began without a model has none pinned: it gets the one that is there now.
        found = {} if pinned and not other else identity
        with on_executor(options, pipeline.definition, setup):
            result = engine.resume(run, identity=found, params=added, accept=accepting(start), **wishes(options))
        return finish(start, setup, result, verb)
    with on_executor(options, pipeline.definition, setup):
        result = engine.start(params, identity=identity, pins={})
    if params and result.status == COMPLETED:
        for text in unread_params(load(start.store, result.run_id)):
            start.emit("note", text=text)
    return finish(start, setup, result, verb)


def _default_model(target: str, *, asks: bool) -> str:
    """Return the model of a run that was given none; "": no credential is set, and none is needed.

    Raises:
        CredentialMissing: The pipeline says that it asks a model.
    """
    if has_credential():
        return DEFAULT_MODEL
    if asks:
        raise CredentialMissing(
            f"This run has no model to ask: {target} asks one, and no credential is set.",
            hint="Set ANTHROPIC_API_KEY (in the environment or in .env beside pipeline.sh), "
            "or try it with --model offline: stand-in answers for $0.00.",
        )
    return ""


def _other_model(options: LessonsOptions, state: RunState) -> str:
    """Another model than the run's, given now; "": none.

    Raises:
        SettingsConflict: It is given without --accept-changes.
    """
    pinned = state.identity.get("model")
    if not pinned or options.model in (None, pinned) or "model" not in options.given:
        return ""
    if not options.accept_changes:
        raise SettingsConflict(
            f"Run {state.run_id} was made with --model {pinned}, but {options.model} is given now.",
            hint="Leave the option out to go on as it was, or --accept-changes to make again what it touches.",
            changed={"model": [pinned, options.model]},
        )
    return str(options.model)
