"""What is refused before a run begins: secrets as parameters, a ceiling that cannot be kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pipeline.clock import Clock
from pipeline.engine.entries import Prices
from pipeline.engine.events import Emitter
from pipeline.engine.limits import CoolDown
from pipeline.engine.retry import RetryPolicy, retrying
from pipeline.engine.stop import Stop
from pipeline.errors import BudgetExceeded, ConfigError, CredentialMissing, Pause, SecretRefused, SettingsConflict
from pipeline.llm.base import Model, ModelInfo
from pipeline.records.charge import in_full
from pipeline.records.redaction import holds_key
from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED
from pipeline.store.base import Account


def limit(options: Mapping[str, Any]) -> Decimal | None:
    """The run's ceiling in USD; None: none."""
    value = options.get("max_cost_usd")
    return None if value is None else Decimal(str(value))


def daily(options: Mapping[str, Any]) -> Decimal | None:
    """The limit of a day over all runs of the store in USD; None: none."""
    value = options.get("daily_budget_usd")
    return None if value is None else Decimal(str(value))


def look_up(model: Model, clock: Clock, emit: Emitter, policy: RetryPolicy | None = None) -> ModelInfo:
    """Return what a free look-up says of a model; tried as often as a call is, with the same waits.

    Raises:
        CredentialMissing, ModelRejected: As `Model.check`.
        ModelUnavailable: It failed as often as the policy allows.
    """
    stop = Stop(clock)
    cool_down = CoolDown(clock, stop, emit)
    patience = replace(policy or RetryPolicy(), later="Try again later; nothing was begun.")
    loop = retrying(patience, 0, cool_down, stop, lambda: 0)

    def attempt() -> ModelInfo:
        cool_down.wait()
        return model.check()

    try:
        info: ModelInfo = loop(attempt)
    except Pause as pause:
        raise pause.cause from None
    return info


def check_priced(info: ModelInfo, prices: Prices, clock: Clock, options: Mapping[str, Any]) -> None:
    """Refuse a run with a ceiling or a day's limit on a model whose price is unknown.

    Raises:
        BudgetExceeded: Names the model and the ways out.
    """
    limits = [amount for amount in (limit(options), daily(options)) if amount is not None]
    if info.paid and limits and prices.worst(1, 1, model=info.id, at=clock.now()) is None:
        raise BudgetExceeded(
            f"No price is known for {info.id}, so a ceiling of {in_full(min(limits))} cannot be kept.",
            hint="Give its prices with --prices FILE, or lift the ceiling with --max-cost-usd none; from Python with "
            "prices=PriceBook(FILE) or max_cost_usd=None.",
        )


def no_model() -> CredentialMissing:
    """The error of a run that asks a model and was given none."""
    return CredentialMissing(
        "This run has no model to ask: ANTHROPIC_API_KEY is not set, and no model was given.",
        hint="Set ANTHROPIC_API_KEY; from Python, pass model=… to run().",
    )


def check_asks(model: Any, *, asks: bool) -> None:
    """Refuse a pipeline that says it asks a model where there is none.

    Raises:
        CredentialMissing: There is none.
    """
    if asks and model is None:
        raise no_model()


def check_batches(model: Any, options: Mapping[str, Any]) -> None:
    """Refuse batches with a model that takes none.

    Raises:
        ConfigError: It does not, and they were asked for.
    """
    if options.get("batch") and getattr(model, "batches", None) is None:
        raise ConfigError("This model takes no batches.", hint="Leave --batch out, or choose a Claude model.")


def check_account(account: Account | None, options: Mapping[str, Any]) -> None:
    """Refuse a day's limit where there is no account that all processes share.

    Raises:
        ConfigError: There is none.
    """
    if daily(options) is not None and account is None:
        raise ConfigError("A day's limit needs the account of the store.", hint="Pass account=open_account(URL).")


def added_params(state: RunState, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a resume adds to its run.

    Raises:
        SettingsConflict: The run has the name with another value, or finished work has found it missing.
        SecretRefused: As check_params.
    """
    check_params(given)
    read = {name for step in state.steps.values() if step.status == COMPLETED for name in step.reads}
    for tasks in state.tasks.values():
        read |= {name for task in tasks.values() if task.status == COMPLETED for name in task.reads}
    for name, value in given.items():
        if name in state.params and state.params[name] == value:
            continue
        if name in state.params or f"params.{name}" in read:
            was = "has another value of" if name in state.params else "has finished work that went without"
            raise SettingsConflict(
                f"Run {state.run_id} {was} the parameter {name!r}.",
                hint=f"`fork {state.run_id} --set params.{name}=VALUE` makes a run with the new value.",
            )
    return {name: value for name, value in given.items() if name not in state.params}


def check_params(params: Mapping[str, Any]) -> None:
    """Refuse parameters whose names say they are secrets, or that hold one of Anthropic's keys at any depth.

    Raises:
        SecretRefused: Names the parameter.
    """
    marks = ("key", "token", "secret", "password", "passwd", "credential")
    for name, value in params.items():
        if holds_key(value) or any(part in marks for part in name.lower().replace("-", "_").split("_")):
            raise SecretRefused(f"Parameter {name!r} looks like a secret; secrets are never stored.")
