"""Options that a run is given from Python: misspelt ones are refused, and without a word it has the default ceiling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.cost.budget import DEFAULT_CEILING_USD, MOST_USD
from pipeline.errors import ConfigError

#: Options that the engine reads; a pipeline's steps may read others.
OPTIONS = (
    "max_cost_usd", "daily_budget_usd", "budget", "concurrency", "batch", "batch_min", "batch_poll_seconds", "no_wait",
    "resubmit", "until", "executor",
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
    if found.get("budget") not in _BUDGETS:
        raise ConfigError(f"Option 'budget' is {found['budget']!r}; it can be 'worst' or 'estimate'.")
    calls = found.get("concurrency")
    if not (calls is None or calls == "auto" or (isinstance(calls, int) and not isinstance(calls, bool) and calls > 0)):
        raise ConfigError(f"Option 'concurrency' is {calls!r}; it is a count of at least 1, or 'auto'.")
    until = found.get("until")
    if until is not None and until not in nodes:
        raise ConfigError(f"Option 'until' is {until!r}; it names a step: {', '.join(nodes)}.")
    return found


def check_names(given: Iterable[str], known: Collection[str], hint: str = "") -> None:
    """Refuse a name that was probably meant to be a known one.

    Raises:
        ConfigError: Names it and the nearest known one.
    """
    for name in given:
        if name not in known and (near := _nearest(str(name), known)):
            raise ConfigError(
                f"There is no option {name!r}. Did you mean {near!r}?", hint=hint, option=name, nearest=near
            )


def _nearest(name: str, known: Collection[str]) -> str:
    """The known name that another was meant to be; "" where it resembles none."""
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
        raise ConfigError(
            f'Option {name!r} is {value!r}; it is an amount of dollars such as "2.50".',
            hint=f"{name}=None says that there is no limit.",
        )
    return format(usd, "f")
