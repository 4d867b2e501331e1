"""Settings of a course as they are typed into fields: read one by one, each fault at its field, and as arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.app.courses import COLUMNS, yes_or_no
from pipeline.app.model_choice import model_name
from pipeline.environment import VARIABLES
from pipeline.errors import CatalogueError, ConfigError
from pipeline.lessons.catalogue import Catalogue
from pipeline.settings import Execution, Identity, option_name, parse_usd

#: Field → what reads it (text, option).
FIELDS: Mapping[str, Callable[[str, str], Any]] = {
    **COLUMNS, "daily_budget_usd": parse_usd, "blind_solve": yes_or_no, "review": yes_or_no,
    "force": yes_or_no,
}  # fmt: skip
#: Fields that are given as a bare option where they say yes; of these the first have one for no, too.
_SWITCHES = ("batch", "blind_solve", "review", "force", "skip_failed")
_WITH_NO = frozenset({"batch", "blind_solve", "review"})


@dataclass(frozen=True, slots=True)
class CourseFields:
    """Hold the settings that were read from a form, and its faults."""

    asked: Identity
    execution: Execution
    #: Field → what is wrong with it, for people.
    errors: Mapping[str, str]


def defaults() -> dict[str, str]:
    """Return what the environment sets, by field."""
    return {name: text for name in FIELDS if (text := os.environ.get(VARIABLES.get(name) or "", ""))}


def read_fields(typed: Mapping[str, str], store: str, *, starting: bool = False) -> CourseFields:
    """Return the settings of a start; an empty field is the environment's, else the program's default.

    Args:
        store: URL of the store; "": the default one.
        starting: The model needs its credential now.
    """
    values = defaults() | {name: text.strip() for name, text in typed.items() if name in FIELDS and text.strip()}
    asked, errors = Identity(), dict[str, str]()
    execution = Execution(store=store, given=frozenset({"store"}) if store else frozenset())
    for name, text in values.items():
        try:
            if not text.isprintable():
                raise ConfigError(f"{option_name(name)} holds a character that cannot be typed.", code="invalid_option")
            value = FIELDS[name](text, option_name(name))
            if name in Identity.__slots__:
                asked = replace(asked, **{name: value}, given=asked.given | {name})
            else:
                execution = replace(execution, **{name: value}, given=execution.given | {name})
        except ConfigError as error:
            errors[name] = error.message
    errors |= {name: f"Choose a {name}." for name in ("subject", "level") if name not in values}
    if not errors:
        errors |= _refusals(asked, execution, starting=starting)
    return CourseFields(asked, execution, errors)


def _refusals(asked: Identity, execution: Execution, *, starting: bool) -> dict[str, str]:
    """Return what only shows once all fields are read."""
    try:
        Catalogue(asked.catalogue).course(asked.subject, asked.level)
    except CatalogueError as error:
        return {"level": error.message}
    try:
        model_name(asked.model if starting else None, asked.provider, execution.base_url)
    except ConfigError as error:
        return {"model": f"{error.message} {error.hint}"}
    return {}


def arguments(typed: Mapping[str, str]) -> list[str]:
    """Return the options of the `lessons` command that say the same as the fields."""
    found = []
    for name, text in typed.items():
        option, text = option_name(name), text.strip()
        if name not in FIELDS or not text:
            continue
        if name not in _SWITCHES:
            found.append(f"{option}={text}")
        elif yes_or_no(text, option):
            found.append(option)
        elif name in _WITH_NO:
            found.append(f"--no-{option[2:]}")
    return found
