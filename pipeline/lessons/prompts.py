"""Prompt files: read, completed with the generated tables, rendered by a template that forgives nothing.

[[name]] is a generated table, filled when a run is pinned, so that a pinned prompt never changes.
{{name}} is a value of one request, filled when it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pipeline.errors import ConfigError
from pipeline.files import read_regular
from pipeline.lessons import rules

#: Prompt file → the values its requests give it.
PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "shared": frozenset({"course", "level"}),
    "outline": frozenset({"lessons", "counts", "reach"}),
    "entry": frozenset(),
    "detail": frozenset({"order"}),
    "lesson": frozenset(),
    "write": frozenset({"order", "lesson_type", "people", "places"}),
    "scheme": frozenset({"scheme"}),
    "revision": frozenset({"faults"}),
    "critic": frozenset({"course", "level"}),
    "judge": frozenset({"order"}),
}
_FOLDER = Path(__file__).with_name("prompts")
_TABLE = re.compile(r"\[\[([a-z_]+)\]\]")
_VALUE = re.compile(r"\{\{([a-z_]+)\}\}")


def load_prompts(folder: Path = _FOLDER) -> dict[str, str]:
    """Every prompt by name, tables filled in, checked: what a run pins as "prompt:NAME".

    Raises:
        ConfigError: A file is missing or unknown, or holds an unknown placeholder; names it.
    """
    there = {path.stem for path in folder.glob("*.md")}
    if there != set(PLACEHOLDERS):
        wrong = ", ".join(sorted(there ^ set(PLACEHOLDERS)))
        raise ConfigError(f"{folder}: prompt files missing or unknown: {wrong}")
    tables = rules.tables()
    prompts = {}
    for name in PLACEHOLDERS:
        text = _text(folder / f"{name}.md")
        prompts[name] = _fill(name, text, _TABLE, tables)
        _check(name, prompts[name])
    return prompts


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no text in UTF-8.", hint="Save it as UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None


def render(name: str, text: str, values: Mapping[str, str]) -> str:
    """The prompt with its values.

    Raises:
        ConfigError: A placeholder has no value, or a value no placeholder.
    """
    unused = set(values) - set(_VALUE.findall(text))
    if unused:
        raise ConfigError(f"prompt {name}: no placeholder for {', '.join(sorted(unused))}")
    return _fill(name, text, _VALUE, values)


def _fill(name: str, text: str, pattern: re.Pattern[str], values: Mapping[str, str]) -> str:
    missing = sorted({found for found in pattern.findall(text) if found not in values})
    if missing:
        raise ConfigError(f"prompt {name}: unknown placeholder {', '.join(missing)}")
    return pattern.sub(lambda match: values[match[1]], text)


def _check(name: str, text: str) -> None:
    found, wanted = set(_VALUE.findall(text)), PLACEHOLDERS[name]
    if found != wanted:
        wrong = ", ".join(sorted(found ^ wanted))
        raise ConfigError(f"prompt {name}: placeholders missing or unknown: {wrong}")
