"""The run command: a pipeline file of the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.app.executors import on_executor
from pipeline.app.model_choice import check_model_change, default_model, has_credential, provider_in, with_provider
from pipeline.app.start import (
    Confirm,
    RunReport,
    Start,
    accepting,
    announce_model,
    check_readable,
    finish,
    nothing_left,
    resume_wishes,
    set_up,
    unread_params,
    without_model,
)
from pipeline.engine import preflight
from pipeline.engine.engine import Engine
from pipeline.engine.events import Listener
from pipeline.engine.pipeline import load_pipeline
from pipeline.errors import ConfigError, CredentialMissing
from pipeline.formats.langgraph.threads import check_is_no_thread
from pipeline.providers import ANTHROPIC
from pipeline.records.statuses import COMPLETED
from pipeline.settings import OFFLINE, Execution, Identity
from pipeline.store.reader import load, resolve


def run_file(
    target: str,
    *,
    params: Mapping[str, Any],
    asked: Identity,
    execution: Execution,
    listener: Listener,
    confirm: Confirm | None = None,
) -> RunReport:
    """Run a user's own pipeline (FILE.py:NAME, or FILE.py with one), or resume one of its runs.

    Args:
        asked: The model and its provider as given; None: the run's own, or the default.

    Raises:
        ConfigError, GraphError, StoreError, SettingsConflict: Before anything was recorded.
    """
    pipeline, target = load_pipeline(target)
    verb = f"run {target}"
    preflight.check_params(params)
    start = Start.of(asked, execution, listener, confirm)
    model, provider = start.asked.model, start.asked.provider
    run = resolve(start.store, execution.resume, pipeline.name) if execution.resume else ""
    state = load(start.store, run) if run else None
    added, other, pinned, changed = {}, "", "", False
    if state is not None:
        check_readable(state)
        check_is_no_thread(state)
        if state.pipeline != pipeline.name:
            said = f"Run {run} belongs to the pipeline {state.pipeline!r}, but {target} is {pipeline.name!r}."
            raise ConfigError(said, code="other_pipeline")
        added = preflight.added_params(state, params)
        pinned = str(state.identity.get("model") or "")
        other = model if model and pinned and model != pinned else ""
        changed = bool(other) or (pinned not in ("", OFFLINE) and provider not in (None, provider_in(state.identity)))
        if changed:
            check_model_change(state, other or pinned, provider, accept=execution.accept_changes)
        provider = provider or (provider_in(state.identity) if pinned else None)
        if not changed and nothing_left(state, pipeline.definition, execution):
            start.emit("run_already_completed", run=run, reason="nothing is left to do")
            setup = without_model(start, state.execution, verb)
            return finish(start, setup, Engine(pipeline.definition, setup).resume(run), verb)
    chosen = other or pinned or model or _default_model(target, provider, asks=pipeline.asks)
    setup = set_up(start, chosen, state.execution if state else {}, verb, provider=provider)
    setup.options = {**setup.options, "target": target}  # recorded: `status` and forks name the command that resumes
    announce_model(start, setup)
    engine = Engine(pipeline.definition, setup)
    identity = with_provider(setup.info.identity(), provider) if setup.info else {}
    with on_executor(execution, pipeline.definition, setup):
        if run:
            # A run that began without a model has none pinned: it gets the one that is there now.
            found, wishes = {} if pinned and not changed else identity, resume_wishes(execution)
            result = engine.resume(run, identity=found, params=added, accept=accepting(start), **wishes)
        else:
            result = engine.start(params, identity=identity, pins={})
    if not run and params and result.status == COMPLETED:
        for text in unread_params(load(start.store, result.run_id)):
            start.emit("note", text=text)
    return finish(start, setup, result, verb)


def _default_model(target: str, provider: str | None, *, asks: bool) -> str:
    """Return the model of a run that was given none; "": no credential is set, and none is needed.

    Raises:
        CredentialMissing: The pipeline says that it asks a model.
        ConfigError: The provider needs the name of one.
    """
    if provider not in (None, ANTHROPIC) or has_credential():
        return default_model(provider)
    if asks:
        raise CredentialMissing(
            f"This run has no model: {target} asks one, and no credential is set.",
            hint="Set ANTHROPIC_API_KEY (in the environment or in .env beside pipeline.sh), "
            "or try it with --model offline: stand-in answers for $0.00.",
        )
    return ""
