"""Whether a reply is what its JSON schema asked for. Pure; what it does not know of schemas it lets pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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


def fits(text: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a text is JSON of the form that a schema describes."""
    try:
        return _fits(json.loads(text), schema, schema)
    except ValueError:
        return False
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
