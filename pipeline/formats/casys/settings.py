"""Settings of a layered run, under the names of its system, and what is refused because it would store a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pipeline.cost.admission import DEFAULT_CEILING_USD
from pipeline.engine.preflight import amount, check_names
from pipeline.errors import ConfigError, SecretRefused
from pipeline.formats.casys.plan import MAX_PARALLEL
from pipeline.records.redaction import holds_key
from pipeline.records.values import decode_value, encode_value

KEEP_COUNT = 5
DEFAULTS: Mapping[str, Any] = {
    # Seconds a task may take; null: no limit.
    "timeout": None,
    # Seconds a decision behind a layer may take before the run is aborted; null: no limit.
    "decisionTimeout": None,
    # Kept for its system; nothing runs before it is certain to be needed.
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


def check_spelling(config: Mapping[str, Any]) -> None:
    """Refuse settings that look like misspelt ones; others are kept for the run's system.

    Raises:
        ConfigError: Names one and the nearest there is.
    """
    check_names(config, (*DEFAULTS, *_SPELLINGS))


def settings(*given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in force: the defaults, and over them the given ones, the later winning.

    Raises:
        ConfigError: A setting has a value that it cannot have.
        SecretRefused: One is named like a secret.
    """
    found = dict(DEFAULTS)
    for each in given:
        found.update({_SPELLINGS.get(name, name): value for name, value in each.items()})
    refuse_secrets(found, "config")
    found["max_cost_usd"] = amount("max_cost_usd", found["max_cost_usd"])
    made: dict[str, Any] = decode_value(encode_value(found, "config"))
    for problem in _problems(made):
        raise ConfigError(f"config: {problem}.", code="invalid_setting")
    return made


def _problems(config: Mapping[str, Any]) -> Iterator[str]:
    for name in ("keepCount", "maxParallel", "concurrency"):
        if type(config[name]) is not int or config[name] < 1:
            yield f"{name} is {config[name]!r}; it must be a count of at least 1"
    for name in ("timeout", "decisionTimeout"):
        value = config[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
            yield f"{name} is {value!r}; it is a number of seconds"
    if not isinstance(config["autoPrune"], bool):
        yield f"autoPrune is {config['autoPrune']!r}; it is true or false"


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET = frozenset(
    {"secret", "secrets", "password", "passwd", "passphrase", "credential", "credentials", "apikey", "authorization"}
)
#: "key" and "token" name harmless things too (a cache's key, a page's token), but not behind these.
_KINDS = frozenset({"api", "access", "auth", "bearer", "private", "refresh", "signing", "client"})
_THINGS = frozenset({"key", "token"})


def refuse_secrets(value: Any, where: str) -> None:
    """Refuse what must not be stored.

    Raises:
        SecretRefused: A name at any depth is that of a secret, or a text is one; names the place.
    """
    for place in _secrets(value, where):
        raise SecretRefused(
            f"{place} looks like a secret; secrets are never stored.",
            hint="Let the tool take it from the environment, or pass it in services.",
        )
    if holds_key(value):
        raise SecretRefused(f"{where} holds an API key; secrets are never stored.")


def _secrets(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            place = f"{where}.{name}"
            words = [word.lower() for word in _WORD.findall(str(name))]
            named = any(first in _KINDS and second in _THINGS for first, second in pairwise(words))
            if named or words == ["token"] or not _SECRET.isdisjoint(words):
                yield place
            yield from _secrets(item, place)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _secrets(item, f"{where}[{index}]")
