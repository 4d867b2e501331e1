"""Settings of a layered run, under the names of its system. A run keeps those it began with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.cost.budget import DEFAULT_CEILING_USD
from pipeline.engine.preflight import amount, check_names
from pipeline.errors import ConfigError
from pipeline.formats.casys.checkpoints import KEEP_COUNT
from pipeline.formats.casys.plan import MAX_PARALLEL
from pipeline.formats.casys.secrets import refuse_secrets
from pipeline.records.values import decode_value, encode_value

DEFAULTS: Mapping[str, Any] = {
    # Seconds a task may take; null: as long as it needs.
    "timeout": None,
    # Seconds a decision behind a layer may take before the run is aborted; null: as long as it needs.
    "decisionTimeout": None,
    # Kept for its system; nothing is run before it is certain that it is wanted.
    "speculation": False,
    # Each checkpoint leaves only the newest keepCount on the list.
    "autoPrune": True,
    "keepCount": KEEP_COUNT,
    # Tasks that run at once.
    "maxParallel": MAX_PARALLEL,
    # Paid calls in flight, and the most that they may cost in US dollars (null: no ceiling).
    "concurrency": 4,
    "max_cost_usd": str(DEFAULT_CEILING_USD),
}
_SPELLINGS = {
    "decision_timeout": "decisionTimeout",
    "auto_prune": "autoPrune",
    "keep_count": "keepCount",
    "max_parallel": "maxParallel",
}
_KNOWN = (*DEFAULTS, *_SPELLINGS)
_COUNTS = ("keepCount", "maxParallel", "concurrency")


def check_given(config: Mapping[str, Any]) -> None:
    """Refuse settings that look like misspelt ones; what a stored run holds beside ours is kept for its system.

    Raises:
        ConfigError: Names one and the nearest there is.
    """
    check_names(config, _KNOWN)


def settings(*given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in force: the defaults, and over them what was given, the later winning.

    Raises:
        ConfigError: A setting cannot be what it is.
        SecretRefused: One is named like a secret.
    """
    found = dict(DEFAULTS)
    for each in given:
        found.update({_SPELLINGS.get(name, name): value for name, value in each.items()})
    refuse_secrets(found, "config")
    found["max_cost_usd"] = amount("max_cost_usd", found["max_cost_usd"])
    made: dict[str, Any] = decode_value(encode_value(found, "config"))
    for problem in _problems(made):
        raise ConfigError(f"config: {problem}.")
    return made


def _problems(config: Mapping[str, Any]) -> Iterator[str]:
    for name in _COUNTS:
        if type(config[name]) is not int or config[name] < 1:
            yield f"{name} is {config[name]!r}; it is a count of at least 1"
    for name in ("timeout", "decisionTimeout"):
        value = config[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
            yield f"{name} is {value!r}; it is a number of seconds"
    if not isinstance(config["autoPrune"], bool):
        yield f"autoPrune is {config['autoPrune']!r}; it is true or false"


def differences(stored: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Sentences on what would be otherwise if the run began now; the stored settings are used."""
    return [
        f"{name} is {_shown(stored[name])}, as the run began with; not {_shown(current[name])}"
        for name in stored
        if name in current and stored[name] != current[name]
    ]


def _shown(value: Any) -> str:
    return encode_value(value).decode("ascii")
