"""The JSON in a reply, checked against its schema. Pure; keywords of schemas that are not known here pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

Schema = Any

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "number": lambda value: type(value) in (int, float),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


#: So many wrappers around a value are looked through.
_MOST_WRAPPERS = 5


def json_in(text: str) -> Any:
    """Return the JSON value that a text is, or the one object in it, inside a fence or a sentence.

    Raises:
        ValueError, RecursionError: It is no JSON, and has no object or several.
    """
    text = text.strip().removeprefix("\ufeff")
    try:
        return _loaded(text)
    except ValueError:
        begin, end = text.find("{"), text.rfind("}") + 1
        try:
            return _loaded(text[begin:end])
        except ValueError:
            pass
        # The fault of the whole text says more.
        raise


def unwrapped(value: Any) -> Iterator[Any]:
    """Yield a value and what it wraps: the only member of an object or list, the JSON that a string holds."""
    yield value
    for _ in range(_MOST_WRAPPERS):
        if isinstance(value, (dict, list)) and len(value) == 1:
            (value,) = value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            try:
                value = _loaded(value)
            except (ValueError, RecursionError):
                return
        else:
            return
        yield value


def _loaded(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def fitting(text: str, schema: Mapping[str, Any]) -> str | None:
    """Return a text that is JSON as a schema describes it, else what it wraps of that form; None: neither."""
    with suppress(ValueError, RecursionError):
        if _is_of_form(_loaded(text), schema):
            return text
    with suppress(ValueError, RecursionError):
        for value in unwrapped(json_in(text)):
            if _is_of_form(value, schema):
                return json.dumps(value, ensure_ascii=False)
    return None


def _is_of_form(value: Any, schema: Schema) -> bool:
    try:
        return _fits(value, schema, schema)
    except (RecursionError, TypeError, AttributeError, KeyError):
        # The schema is stranger than what is known here.
        return True


def _fits(value: Any, schema: Schema, root: Schema) -> bool:
    if not isinstance(schema, Mapping):
        return schema is not False
    if "$ref" in schema:
        return _fits(value, _resolved(str(schema["$ref"]), root), root)
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if not _is_one_of(value, schema.get("type")):
        return False
    for name, together in (("anyOf", any), ("oneOf", any), ("allOf", all)):
        if name in schema and not together(_fits(value, each, root) for each in schema[name]):
            return False
    if isinstance(value, dict):
        return _members_fit(value, schema, root)
    if isinstance(value, list) and "items" in schema:
        return all(_fits(each, schema["items"], root) for each in value)
    return True


def _resolved(reference: str, root: Schema) -> Schema:
    found = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        found = found[name]
    return found


def _is_one_of(value: Any, wanted: Any) -> bool:
    names = [wanted] if isinstance(wanted, str) else wanted or []
    return not names or any(_TYPES.get(name, lambda _: True)(value) for name in names)


def _members_fit(value: Mapping[str, Any], schema: Schema, root: Schema) -> bool:
    known = schema.get("properties") or {}
    if any(name not in value for name in schema.get("required") or ()):
        return False
    others = schema.get("additionalProperties", True)
    return all(_fits(each, known.get(name, others), root) for name, each in value.items())
