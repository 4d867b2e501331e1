"""What is refused before a run begins: misspelt options, secrets as parameters, a ceiling that cannot be kept."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.clock import Clock
from pipeline.cost.admission import DEFAULT_CEILING_USD, MOST_USD
from pipeline.engine.ceiling import Prices
from pipeline.errors import BudgetExceeded, ConfigError, CredentialMissing, SecretRefused, SettingsConflict
from pipeline.llm.base import ModelInfo
from pipeline.records.budgets import labels_text
from pipeline.records.charge import in_full
from pipeline.records.redaction import holds_key
from pipeline.records.run import RunState
from pipeline.records.statuses import COMPLETED

#: Options that the engine reads; a pipeline's steps may read others.
OPTIONS = (
    "max_cost_usd", "daily_budget_usd", "budget", "concurrency", "batch", "batch_min", "batch_poll_seconds", "no_wait",
    "resubmit", "until", "executor", "labels",
)  # fmt: skip
_AMOUNTS = ("max_cost_usd", "daily_budget_usd")
_BUDGETS = (None, "worst", "estimate")
#: Words of a name by which a limit of money is meant, however it is spelt.
_MONEY = frozenset(
    {
        "usd", "cost", "costs", "budget", "ceiling", "spend", "spending", "spent", "dollar", "dollars", "money",
        "price", "cap", "limit",
    }
)  # fmt: skip
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
#: How alike two names are of which one is taken for a misspelling of the other: surely, and where nothing says more.
_SURELY, _ALIKE = 0.9, 0.8


def kept_ceiling(execution: Mapping[str, Any]) -> Any:
    """Return the ceiling that a run with these recorded settings keeps where a resume names none.

    A run that was begun by a version without a default ceiling, and named none, has none. One that recorded no
    settings at all was imported: it gets the default.
    """
    return execution.get("max_cost_usd") if execution else str(DEFAULT_CEILING_USD)


def check_options(options: Mapping[str, Any], nodes: Collection[str], own: Collection[str] = ()) -> dict[str, Any]:
    """Return the options given from Python, with amounts as decimal text.

    Args:
        nodes: The steps that `until` may name.
        own: Names of the pipeline's own options.

    Raises:
        ConfigError: A name looks like a misspelt one, or a value cannot be what it is; names the option.
    """
    check_names(set(options) - set(own), OPTIONS, "Declare options of your own: Pipeline(…, options=[NAME]).")
    found = {name: amount(name, value) if name in _AMOUNTS else value for name, value in options.items()}
    if "labels" in found:
        found["labels"] = _labels(found["labels"] or "")
    if found.get("budget") not in _BUDGETS:
        raise _invalid(f"Option 'budget' is {found['budget']!r}; it can be 'worst' or 'estimate'.")
    calls = found.get("concurrency")
    if not (calls is None or calls == "auto" or (isinstance(calls, int) and not isinstance(calls, bool) and calls > 0)):
        raise _invalid(f"Option 'concurrency' is {calls!r}; it must be a count of at least 1, or 'auto'.")
    until = found.get("until")
    if until is not None and until not in nodes:
        raise _invalid(f"Option 'until' is {until!r}; it must name a step: {', '.join(nodes)}.")
    return found


def _labels(given: Any) -> str:
    if isinstance(given, (list, tuple)):
        given = ",".join(map(str, given))
    if not isinstance(given, (str, Mapping)):
        raise _invalid(f"Option 'labels' is {given!r}; it must be a mapping such as {{'team': 'maths'}}.")
    return labels_text(given)


def _invalid(text: str, hint: str = "") -> ConfigError:
    return ConfigError(text, code="invalid_option", hint=hint)


def check_names(given: Iterable[str], known: Collection[str], hint: str = "") -> None:
    """Refuse a name that was probably meant to be a known one.

    Raises:
        ConfigError: Names it and the nearest known one.
    """
    for name in given:
        if name not in known and (near := _nearest(str(name), known)):
            text = f"Unknown option {name!r}. Did you mean {near!r}?"
            raise ConfigError(text, code="unknown_option", hint=hint, option=name, nearest=near)


def _nearest(name: str, known: Collection[str]) -> str:
    """Return the known name that another was meant to be; "" where it resembles none."""
    plain = {each.replace("_", "").lower(): each for each in known}
    asked = name.replace("_", "").lower()
    words = {word.lower() for word in _WORD.findall(name)}
    money = not words.isdisjoint(_MONEY)
    if near := difflib.get_close_matches(asked, plain, n=1, cutoff=_SURELY if money else _ALIKE):
        return plain[near[0]]
    if not money:
        return ""
    return "daily_budget_usd" if words & {"day", "daily"} and "daily_budget_usd" in known else "max_cost_usd"


def amount(name: str, value: Any) -> str | None:
    """Return an amount of dollars as decimal text; None stays None.

    Raises:
        ConfigError: It is no amount; names the option.
    """
    if value is None:
        return None
    try:
        usd = Decimal("NaN") if isinstance(value, bool) else Decimal(str(value))
    except InvalidOperation:
        usd = Decimal("NaN")
    if not usd.is_finite() or usd.is_signed() or usd > MOST_USD:
        text = f'Option {name!r} is {value!r}; it must be an amount of dollars such as "2.50".'
        raise _invalid(text, f"{name}=None means no limit.")
    return format(usd, "f")


def limits(options: Mapping[str, Any]) -> tuple[Decimal | None, Decimal | None]:
    """Return the run's ceiling, and the limit of a day over all runs of the store, in USD; None: none."""
    ceiling, day = (None if (usd := options.get(name)) is None else Decimal(str(usd)) for name in _AMOUNTS)
    return ceiling, day


def check_priced(info: ModelInfo, prices: Prices, clock: Clock, options: Mapping[str, Any]) -> None:
    """Refuse a run with a ceiling or a day's limit on a model whose price is unknown.

    Raises:
        BudgetExceeded: Names the model and the ways out.
    """
    kept = [usd for usd in limits(options) if usd is not None]
    if info.paid and kept and _unpriced(info, prices, clock):
        raise BudgetExceeded(
            f"No price is known for {info.id}, so a ceiling of {in_full(min(kept))} cannot be kept.",
            code="unknown_price",
            hint="Give its prices with --prices FILE, or lift the ceiling with --max-cost-usd none; from Python with "
            "prices=PriceBook(FILE) or max_cost_usd=None.",
        )


def _unpriced(info: ModelInfo, prices: Prices, clock: Clock) -> bool:
    return prices.worst(1, 1, model=info.id, at=clock.now(), provider=info.provider) is None


def no_model() -> CredentialMissing:
    """Return the error of a run that asks a model and was given none."""
    return CredentialMissing(
        "This run has no model: ANTHROPIC_API_KEY is not set, and no model was given.",
        hint="Set ANTHROPIC_API_KEY; from Python, pass model=… to run().",
    )


def no_batches() -> ConfigError:
    """Return the error of a run that uses batches and has a model that takes none."""
    return ConfigError(
        "This model does not support batches.", code="batches_unsupported",
        hint="Omit --batch, or choose a Claude model with --model.",
    )  # fmt: skip


def check_batches(model: Any, options: Mapping[str, Any]) -> None:
    """Refuse batches with a model that takes none.

    Raises:
        ConfigError: It does not, and they were asked for.
    """
    if options.get("batch") and getattr(model, "batches", None) is None:
        raise no_batches()


def check_counts(model: Any, info: ModelInfo, options: Mapping[str, Any]) -> None:
    """Refuse worst cases by the provider's count with a paid model that counts no tokens.

    Raises:
        ConfigError: It does not, and that was asked for.
    """
    if options.get("budget") == "estimate" and info.paid and getattr(model, "count_tokens", None) is None:
        raise ConfigError(
            "This model counts no tokens beforehand.", code="counting_unsupported",
            hint="Omit budget='estimate': worst cases are then bounded by the bytes that are sent.",
        )  # fmt: skip


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
            was = "has a different value of" if name in state.params else "has finished work that ran without"
            raise SettingsConflict(
                f"Run {state.run_id} {was} the parameter {name!r}.",
                code="param_conflict",
                hint=f"`./pipeline.sh fork {state.run_id} --set params.{name}=VALUE` makes a run with the new value.",
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
