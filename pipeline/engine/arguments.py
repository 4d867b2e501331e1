"""What `run` and `resume` are given from Python: names and URLs are opened; what cannot be meant gets a sentence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import Any

from pipeline.cost.prices import PriceBook
from pipeline.engine.preflight import OPTIONS
from pipeline.engine.remote.parcels import resolve
from pipeline.engine.setup import check_body
from pipeline.errors import ConfigError
from pipeline.llm.base import Model
from pipeline.store.base import Account, Store

#: Where stores and models are opened; the engine itself knows protocols only.
_STORES = {"module": "pipeline.store.url"}
_CLAUDE = {"module": "pipeline.llm.anthropic", "name": "AnthropicModel"}
_OFFLINE, _STAND_IN = "offline", {"module": "pipeline.llm.script", "name": "offline_model"}


def store_of(given: Store | str) -> Store:
    """Return a store; one that is named by its URL is opened.

    Raises:
        ConfigError: It is no store, and no URL of one.
    """
    opened: Store = _opened(given, "open_store")
    _check(opened, ("create", "open", "read"), "store", 'open_store("files:runs")')
    return opened


def account_of(given: Account | str | None) -> Account | None:
    """Return an account; that of a store which is named by its URL is opened.

    Raises:
        ConfigError: It is none, and no URL of a store.
    """
    if given is None:
        return None
    opened: Account = _opened(given, "open_account")
    _check(opened, ("reserve", "settle"), "account", 'open_account("files:runs")')
    return opened


def model_of(given: Model | str | None) -> Model | None:
    """Return a model; one that is named is Claude's of that name, or "offline": stand-in answers.

    Raises:
        ConfigError: It is no model.
        CredentialMissing: As AnthropicModel.
    """
    if given is None:
        return None
    if isinstance(given, str):
        made: Model = resolve(_STAND_IN)() if given == _OFFLINE else resolve(_CLAUDE)(given)
        return made
    _check(given, ("check", "complete"), "model", 'model="claude-sonnet-5-5", or an object with check() and complete()')
    check_body(given.check, "the model's check()")
    check_body(given.complete, "the model's complete()", "request")
    return given


def prices_of(given: PriceBook | str | Path | None) -> PriceBook | None:
    """Return a price book; a file of prices is read.

    Raises:
        InvalidValue: The file cannot be read.
    """
    return PriceBook(given) if isinstance(given, (str, Path)) else given


def check_arguments(function: str, unknown: Collection[str], known: Collection[str]) -> None:
    """Refuse arguments that there are not.

    Raises:
        ConfigError: Names the nearest one, or says that it is an option.
    """
    for name in unknown:
        text = f"{function}() has no argument {name!r}"
        if near := get_close_matches(name, OPTIONS, 1, 0.8):
            text = f'{text}: {near[0]!r} is an option; write options={{"{near[0]}": …}}.'
            raise ConfigError(text, code="unknown_argument", nearest=near[0])
        meant = get_close_matches(name, known, 1)
        text += f". Did you mean {meant[0]!r}?" if meant else f"; it has {', '.join(known)}."
        raise ConfigError(text, code="unknown_argument", nearest=meant[0] if meant else "")


def check_mapping(given: object, name: str) -> None:
    """Refuse what has no names where values are given by name.

    Raises:
        ConfigError: It is no mapping with texts as keys.
    """
    if given is None or (isinstance(given, Mapping) and all(isinstance(key, str) for key in given)):
        return
    odd = next((key for key in given if not isinstance(key, str)), None) if isinstance(given, Mapping) else None
    what = f"has the key {odd!r}" if isinstance(given, Mapping) else f"is {given!r:.60}"
    raise ConfigError(
        f'{name} {what}; it must be a mapping such as {{"name": value}}.', code="invalid_argument", argument=name
    )


def _opened(given: Any, name: str) -> Any:
    return resolve({**_STORES, "name": name})(given) if isinstance(given, (str, PurePath)) else given


def _check(given: Any, wanted: Collection[str], what: str, example: str) -> None:
    missing = [name for name in wanted if not callable(getattr(given, name, None))]
    if isinstance(given, type):
        text = f"{what}={given.__name__} is a class; give one of its objects: {given.__name__}(…)."
    elif missing:
        text = f"{what}= is {given!r:.80}, which is no {what}: it has no {'(), '.join(missing)}()."
    else:
        return
    raise ConfigError(text, code="invalid_argument", argument=what, hint=f"For example: {example}.")
