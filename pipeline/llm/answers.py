"""The JSON in a reply, checked against its schema. Pure; keywords of schemas that are not known here pass."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from pipeline.records.values import read_json

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
        ValueError: It is no JSON, and has no object or several.
    """
    text = text.strip().removeprefix("\ufeff")
    try:
        return read_json(text)
    except ValueError:
        begin, end = text.find("{"), text.rfind("}") + 1
        try:
            return read_json(text[begin:end])
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
                value = read_json(value)
            except ValueError:
                return
        else:
            return
        yield value


def fitting(text: str, schema: Mapping[str, Any]) -> str | None:
    """Return a text that is JSON as a schema describes it, else what it wraps of that form; None: neither."""
    with suppress(ValueError, RecursionError):
        if _is_of_form(read_json(text), schema):
            return text
    with suppress(ValueError, RecursionError):
        for value in unwrapped(json_in(text)):
            if _is_of_form(value, schema):
                return json.dumps(value, ensure_ascii=False)
    return None


def faults(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return what a schema does not allow in a JSON value, each as "PLACE: fault"; its limits count too."""
    try:
        return list(_faults(value, schema, schema, "", limits=True))
    except _TOO_STRANGE:
        return []


#: What a schema that is stranger than what is known here comes to.
_TOO_STRANGE = (RecursionError, TypeError, AttributeError, KeyError)


def _is_of_form(value: Any, schema: Schema) -> bool:
    """Return whether a value has the members and types of a schema, whatever its limits are."""
    try:
        return _fits(value, schema, schema, limits=False)
    except _TOO_STRANGE:
        return True


def _fits(value: Any, schema: Schema, root: Schema, *, limits: bool) -> bool:
    return next(_faults(value, schema, root, "", limits=limits), None) is None


def _faults(value: Any, schema: Schema, root: Schema, at: str, *, limits: bool) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        if schema is False:
            yield f"{at or _WHOLE}: is not wanted"
        return
    if "$ref" in schema:
        yield from _faults(value, _resolved(str(schema["$ref"]), root), root, at, limits=limits)
        return
    for text in _own_faults(value, schema, root, limits=limits):
        yield f"{at or _WHOLE}: {text}"
    if isinstance(value, dict):
        yield from _member_faults(value, schema, root, at, limits=limits)
    if isinstance(value, list) and "items" in schema:
        for index, each in enumerate(value):
            yield from _faults(each, schema["items"], root, f"{at}[{index}]", limits=limits)


def _own_faults(value: Any, schema: Schema, root: Schema, *, limits: bool) -> Iterator[str]:
    """Yield the faults of a value itself, not those of its members."""
    if "const" in schema and value != schema["const"]:
        yield f"must be {json.dumps(schema['const'])}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"must be one of {json.dumps(schema['enum'])}"
    if not _is_one_of(value, schema.get("type")):
        yield f"must be of type {schema['type']}"
    for name, together in (("anyOf", any), ("oneOf", any), ("allOf", all)):
        if name in schema and not together(_fits(value, each, root, limits=limits) for each in schema[name]):
            yield "fits none of its forms" if together is any else "does not fit each of its forms"
    if limits:
        yield from _past_limits(value, schema)


#: What a fault of the value itself is said of.
_WHOLE = "the answer"


def _resolved(reference: str, root: Schema) -> Schema:
    found = root
    for name in reference.removeprefix("#").strip("/").split("/"):
        found = found[name]
    return found


def _is_one_of(value: Any, wanted: Any) -> bool:
    names = [wanted] if isinstance(wanted, str) else wanted or []
    return not names or any(_TYPES.get(name, lambda _: True)(value) for name in names)


def _member_faults(value: Mapping[str, Any], schema: Schema, root: Schema, at: str, *, limits: bool) -> Iterator[str]:
    known, before = schema.get("properties") or {}, f"{at}." if at else ""
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{before}{name}: is missing"
    others = schema.get("additionalProperties", True)
    for name, each in value.items():
        yield from _faults(each, known.get(name, others), root, f"{before}{name}", limits=limits)


#: Keyword → what it says of a value's length or size; the limit, and whether the value keeps it.
_LENGTHS = {
    "minLength": (str, "must have at least {} characters", operator.ge),
    "maxLength": (str, "must have at most {} characters", operator.le),
    "minItems": (list, "must have at least {} items", operator.ge),
    "maxItems": (list, "must have at most {} items", operator.le),
}
_SIZES = {
    "minimum": ("must be at least {}", operator.ge),
    "maximum": ("must be at most {}", operator.le),
    "exclusiveMinimum": ("must be more than {}", operator.gt),
    "exclusiveMaximum": ("must be less than {}", operator.lt),
}


def _past_limits(value: Any, schema: Schema) -> Iterator[str]:
    """Yield which limits of a schema a text, list or number does not keep."""
    for name, (kind, words, keeps) in _LENGTHS.items():
        if name in schema and isinstance(value, kind) and not keeps(len(value), schema[name]):
            yield words.format(schema[name])
    if type(value) in (int, float):
        for name, (words, keeps) in _SIZES.items():
            if name in schema and not keeps(value, schema[name]):
                yield words.format(schema[name])
    if isinstance(value, str) and "pattern" in schema:
        with suppress(re.error):
            if not re.search(schema["pattern"], value):
                yield f"must match {schema['pattern']}"
